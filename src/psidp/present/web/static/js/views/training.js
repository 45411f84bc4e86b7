// A training run, accounted by the library with proof: an interval for epsilon and the psi that covers the run.

import { ask, element, say, served } from "../page.js";
import { down, plain, up } from "../digits.js";
import { within } from "../state.js";

const FIELDS = {
  plain: ["noise_multiplier", "sampling_rate", "steps", "run_delta"],
  bands: ["noise_multiplier", "sampling_rate", "steps", "bands", "run_delta"],
  fixed: ["noise_multiplier", "epochs", "run_delta"],
};
const ALL = [...new Set(Object.values(FIELDS).flat())];
const KINDS = {
  plain: "",
  bands: "Noise is correlated over b steps, so that most of it cancels in the model. Each record belongs to one of b classes for good, and step t draws from class t mod b at the rate b q. The price is that of DP-SGD at rate b q for T/b steps. It is for a record more or less (add-remove) where a record's class comes from its own id; where it goes by position, for a record blanked with the number of records public (zero-out). The numbers are the same, the promise is another.",
  fixed: "All records in one order, the same in each of k epochs: no sampling, nothing secret about the batches, one exact ψ. The promise is for a record blanked with the number of records public (zero-out): one record more or less would move all later ones.",
};
const SAMPLED = { plain: "Poisson sampling", bands: "cyclic Poisson sampling", fixed: "no sampling" };

export class Training {
  constructor(change) {
    this.change = change;
    this.shown = {};
    element("training").addEventListener("submit", (event) => {
      event.preventDefault();
      this.account();
    });
    element("training-use").addEventListener("click", () => change({ psi: this.psi }));
    element("run").addEventListener("change", (event) => {
      say("training-note", "");
      element("training-use").hidden = true;
      change({ run: event.target.value });
    });
    for (const name of ALL) {
      element(name).addEventListener("change", (event) => {
        const value = Number(event.target.value);
        if (event.target.value.trim() !== "" && within(name, value) === value) change({ [name]: value });
      });
    }
    element("reset").addEventListener("click", () => { this.shown = {}; });
    element("account").disabled = !served();
  }

  async account() {
    const kind = element("run").value;
    const { run_delta: delta, ...run } = Object.fromEntries(FIELDS[kind].map((name) => [name, Number(element(name).value || NaN)]));
    say("training-note", "Accounting …");
    element("training-use").hidden = true;
    try {
      const answer = await ask("account", { runs: [kind === "fixed" ? { ...run, order: "fixed" } : run], delta });
      const { epsilon, guarantee, auc, advantage } = answer;
      this.psi = guarantee.psi;
      const between = epsilon.upper === "inf" ? "inf" : `between **${down(epsilon.lower)}** and **${up(epsilon.upper)}**`;
      const how = `(${guarantee.adjacency}, ${SAMPLED[kind]})`;
      const covers = kind === "fixed"
        ? `ψ = **${up(guarantee.psi)}** is the price of the whole run ${how}.`
        : `ψ = **${up(guarantee.psi)}** covers the whole run, except with probability ${up(guarantee.kappa, 2)} ${how}; most of its numbers are larger than the run's own.`;
      say("training-note", `ε at δ = ${plain(delta, 3)} is ${between}, both proved; the best attack on this run has an AUC of at most ${up(auc.upper)} and an advantage of at most ${up(advantage.upper)}. ${covers}`);
      element("training-use").hidden = false;
    } catch (refusal) {
      say("training-note", refusal.message);
    }
  }

  /** What a page without the library can still do: say the command that accounts for this run. */
  tell(state) {
    const options = FIELDS[state.run].map((name) => `--${name.replace("run_", "").replaceAll("_", "-")} ${plain(state[name], 12)}`);
    const order = state.run === "fixed" ? " --order fixed" : "";
    say("training-note", `Certified accounting needs the library: psidp explore, or on the command line **psidp account${order} ${options.join(" ")}**`);
  }

  /** Fields follow the state where it changes; what was typed and is no run stays, for the library to refuse by name. */
  render(state) {
    for (const name of ALL) {
      const field = element(name);
      field.parentElement.hidden = !FIELDS[state.run].includes(name);
      if (this.shown[name] !== state[name] && document.activeElement !== field) field.value = plain(state[name], 12);
      this.shown[name] = state[name];
    }
    if (this.shown.run !== state.run) {
      element("run").value = state.run;
      say("training-kind", KINDS[state.run]);
      this.shown.run = state.run;
    }
    if (!served()) this.tell(state);
  }
}
