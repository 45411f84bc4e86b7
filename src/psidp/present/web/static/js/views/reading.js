// Numbers and sentences beside the pictures: the paragraph, the table of rates, the facts, the commands.

import { down, percent, perThousand, plain, shown, up } from "../digits.js";
import { element, quoted, say } from "../page.js";
import { sentences } from "../words.js";

export class Reading {
  constructor(change) {
    this.units = [...document.querySelectorAll("[data-unit]")];
    this.paragraphs = [0, 1, 2].map(() => element("words").appendChild(document.createElement("p")));
    element("prior").addEventListener("input", (event) => change({ prior: 10 ** Number(event.target.value) }));
    element("unit").addEventListener("input", (event) => change({ unit: event.target.value.trim() || "person" }));
    element("probit").addEventListener("change", (event) => change({ axes: event.target.checked ? "probit" : "linear" }));
  }

  render(model) {
    const { psi, rates, unit, prior, delta, epsilon } = model;
    sentences(psi, unit).forEach((sentence, i) => say(this.paragraphs[i], sentence.replace(/at most ([\d.,]+\d)/, "at most **$1**")));
    for (const place of this.units) say(place, unit);
    const names = { tp: "tpr", fn: "fnr", fp: "fpr", tn: "tnr" };
    for (const [area, rate] of Object.entries(names)) {
      say(`area-${area}`, percent(rates[rate]));
      say(`rate-${rate}`, `${percent(rates[rate])}`);
    }
    say("fact-right", perThousand((1 + model.advantage) / 2));
    say("fact-auc", up(model.auc));
    say("fact-advantage", up(model.advantage));
    say("roc-note", `FPR ${percent(rates.fpr)}, TPR ${percent(rates.tpr)}, AUC ${up(model.auc)}`);
    say("tangent-note", `The line TPR = δ + e^ε · FPR lies above the whole curve: no attack crosses it. Here δ = ${shown(delta)} (where it meets the left edge) and e^ε = ${up(Math.exp(epsilon))} (its slope), so ε = **${shown(epsilon)}**. ${delta < 1e-3 ? "With so small a δ it is almost the left edge and says little about the rest of the curve: drag the green dot upwards to see others." : "Every δ has its own line, and its own ε."}`);
    say("prior-shown", percent(prior));
    const slider = element("prior");
    slider.value = String(Math.log10(prior));
    slider.setAttribute("aria-valuetext", percent(prior));
    element("probit").checked = model.axes === "probit";
    const field = element("unit");
    if (document.activeElement !== field) field.value = unit;
    this.commands(model);
  }

  commands({ psi, unit, sensitivity, prior }) {
    const mechanism = `--psi ${down(psi, 12)} --unit ${quoted(unit)}`;
    const query = `--sensitivity ${plain(sensitivity, 12)}`;
    const card = `psidp card ${mechanism} ${query} --prior ${plain(prior, 3)} -o card.html`;
    say("command", [`psidp explain ${mechanism}`, card, `psidp calibrate ${query} ${mechanism}`].join("\n"));
  }
}
