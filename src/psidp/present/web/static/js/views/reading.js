// Numbers and sentences beside the pictures: the paragraph, the table of rates, the four facts, the command.

import { down, percent, perThousand, plain, up } from "../digits.js";
import { element, quoted, say } from "../page.js";
import { sentences } from "../words.js";
import { tprFromPsi } from "../attack.js";

export class Reading {
  constructor(change) {
    this.units = [...document.querySelectorAll("[data-unit]")];
    this.paragraphs = [0, 1, 2].map(() => element("words").appendChild(document.createElement("p")));
    element("prior").addEventListener("input", (event) => change({ prior: 10 ** Number(event.target.value) }));
    element("unit").addEventListener("input", (event) => change({ unit: event.target.value.trim() || "person" }));
    element("probit").addEventListener("change", (event) => change({ axes: event.target.checked ? "probit" : "linear" }));
  }

  render(model) {
    const { psi, rates, unit, prior } = model;
    sentences(psi, unit).forEach((sentence, i) => say(this.paragraphs[i], sentence));
    for (const place of this.units) say(place, unit);
    const names = { tp: "tpr", fn: "fnr", fp: "fpr", tn: "tnr" };
    for (const [area, rate] of Object.entries(names)) {
      say(`area-${area}`, percent(rates[rate]));
      say(`rate-${rate}`, `${percent(rates[rate])}`);
    }
    say("fact-auc", up(model.auc));
    say("fact-advantage", up(model.advantage));
    say("fact-epsilon", up(model.usual));
    say("fact-tpr", `${perThousand(tprFromPsi(psi, 0.01))} of 1,000`);
    say("roc-note", `FPR ${percent(rates.fpr)}, TPR ${percent(rates.tpr)}, AUC ${up(model.auc)}`);
    say("prior-shown", percent(prior));
    const slider = element("prior");
    slider.value = String(Math.log10(prior));
    slider.setAttribute("aria-valuetext", percent(prior));
    element("probit").checked = model.axes === "probit";
    const field = element("unit");
    if (document.activeElement !== field) field.value = unit;
    const mechanism = `--psi ${down(psi, 12)} --unit ${quoted(unit)}`;
    const sensitivity = `--sensitivity ${plain(model.sensitivity)}`;
    const card = `psidp card ${mechanism} ${sensitivity} --prior ${plain(prior, 3)} -o card.html`;
    say("command", [`psidp explain ${mechanism}`, card, `psidp calibrate ${sensitivity} ${mechanism}`].join("\n"));
  }
}
