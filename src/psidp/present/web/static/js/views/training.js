// A DP-SGD run, accounted by the library with proof: an interval for epsilon and the psi that covers the run.

import { ask, element, say, served } from "../page.js";
import { down, plain, up } from "../digits.js";
import { within } from "../state.js";

const FIELDS = ["noise_multiplier", "sampling_rate", "steps", "run_delta"];

export class Training {
  constructor(change) {
    this.change = change;
    this.shown = {};
    element("training").addEventListener("submit", (event) => {
      event.preventDefault();
      this.account();
    });
    element("training-use").addEventListener("click", () => change({ psi: this.psi }));
    for (const name of FIELDS) {
      element(name).addEventListener("change", (event) => {
        const value = Number(event.target.value);
        if (event.target.value.trim() !== "" && within(name, value) === value) change({ [name]: value });
      });
    }
    element("reset").addEventListener("click", () => { this.shown = {}; });
    element("account").disabled = !served();
  }

  async account() {
    const [noise_multiplier, sampling_rate, steps, delta] = FIELDS.map((name) => Number(element(name).value || NaN));
    say("training-note", "Accounting …");
    element("training-use").hidden = true;
    try {
      const answer = await ask("account", { runs: [{ noise_multiplier, sampling_rate, steps }], delta });
      const { epsilon, guarantee, auc, advantage } = answer;
      this.psi = guarantee.psi;
      const between = epsilon.upper === "inf" ? "inf" : `between **${down(epsilon.lower)}** and **${up(epsilon.upper)}**`;
      say("training-note", `ε at δ = ${plain(delta, 3)} is ${between}, both proved; the best attack on this run has an AUC of at most ${up(auc.upper)} and an advantage of at most ${up(advantage.upper)}. ψ = **${up(guarantee.psi)}** covers the whole run, except with probability ${up(guarantee.kappa, 2)} (${guarantee.adjacency}, Poisson sampling); most of its numbers are larger than the run's own.`);
      element("training-use").hidden = false;
    } catch (refusal) {
      say("training-note", refusal.message);
    }
  }

  /** What a page without the library can still do: say the command that accounts for this run. */
  tell(state) {
    const [noise, rate, steps, delta] = FIELDS.map((name) => plain(state[name], 12));
    say("training-note", `Certified accounting needs the library: psidp explore, or on the command line **psidp account --noise-multiplier ${noise} --sampling-rate ${rate} --steps ${steps} --delta ${delta}**`);
  }

  /** Fields follow the state where it changes; what was typed and is no run stays, for the library to refuse by name. */
  render(state) {
    for (const name of FIELDS) {
      const field = element(name);
      if (this.shown[name] !== state[name] && document.activeElement !== field) field.value = plain(state[name], 12);
      this.shown[name] = state[name];
    }
    if (!served()) this.tell(state);
  }
}
