// Mechanisms pinned for comparison: which is more private, and by how much.

import { PINS, range } from "../state.js";
import { divergence } from "../attack.js";
import { element, say } from "../page.js";
import { perThousand, plain, typed } from "../digits.js";
import { psiFromEpsilonDelta } from "../profile.js";
import { shape } from "../chart.js";

const FIELDS = ["pin-name", "pin-epsilon", "pin-delta"];

export class Pins {
  constructor(change) {
    this.change = change;
    element("pin").addEventListener("click", () => this.add(this.state.psi));
    element("pin-pair").addEventListener("click", () => this.pair());
    for (const id of FIELDS) {
      element(id).addEventListener("keydown", (event) => {
        if (event.key !== "Enter") return;
        if (FIELDS.slice(1).some((field) => element(field).value.trim()) || id !== FIELDS[0]) this.pair();
        else this.add(this.state.psi);
      });
    }
  }

  add(psi, otherwise = "") {
    const pins = this.state.pins;
    if (pins.length >= PINS) return;
    const name = element("pin-name").value.trim().slice(0, 30) || otherwise;
    for (const id of FIELDS) element(id).value = "";
    say("pin-refusal", "");
    this.change({ pins: [...pins, { psi, name }] });
  }

  /** The Gaussian mechanism that has exactly this (epsilon, delta). */
  pair() {
    const [epsilon, delta] = ["pin-epsilon", "pin-delta"].map((id) => typed(element(id).value));
    const fine = epsilon >= 0 && delta > 0 && delta < 1;
    const psi = fine ? psiFromEpsilonDelta(epsilon, delta) : NaN;
    const [least, most] = range("psi");
    const shown = psi >= least && psi <= most;
    say("pin-refusal", fine ? (shown ? "" : `psi must be in [${least}, ${most}] on this page, got psi=${plain(psi, 3)} for this pair.`) : "epsilon must be in [0, inf) and delta in (0, 1), such as 1 and 1e-5.");
    if (shown) this.add(psi, `(${plain(epsilon, 4)}, ${plain(delta, 3)})`);
  }

  render(model, state) {
    this.state = state;
    for (const id of ["pin", "pin-pair"]) element(id).disabled = state.pins.length >= PINS;
    const key = JSON.stringify(model.pins);
    if (key !== this.key) {
      this.key = key;
      this.list(model.pins);
      this.table(model.pins);
    }
    this.fill(model);
    this.order(model);
  }

  list(pins) {
    const items = pins.map((pin, i) => {
      const item = document.createElement("li");
      const sample = shape("svg", { width: 28, height: 10, "aria-hidden": "true" });
      shape("path", { class: `pinned p${i}`, d: "M0 5H28" }, sample);
      const remove = document.createElement("button");
      remove.type = "button";
      remove.textContent = "×";
      remove.setAttribute("aria-label", `Unpin ${pin.letter}, ${pin.name}`);
      remove.addEventListener("click", () => this.change({ pins: this.state.pins.filter((_, k) => k !== i) }));
      const words = document.createElement("span");
      say(words, `**${pin.letter}** `);
      words.append(pin.name.startsWith("ψ") ? pin.name : `${pin.name}, ψ = ${plain(pin.psi, 4)}`);
      item.append(sample, words, remove);
      return item;
    });
    element("pins").replaceChildren(...items);
  }

  /** Rows and columns: the pins and the mechanism on the page. */
  table(pins) {
    const names = [...pins.map((pin) => pin.letter), "now"];
    const cell = (tag, words, scope) => {
      const made = document.createElement(tag);
      made.textContent = words;
      if (scope) made.scope = scope;
      return made;
    };
    const row = (...cells) => {
      const made = document.createElement("tr");
      made.append(...cells);
      return made;
    };
    this.cells = names.map(() => names.map(() => cell("td", "")));
    const [head, body] = [document.createElement("thead"), document.createElement("tbody")];
    head.append(row(cell("td", "replaced by →"), ...names.map((name) => cell("th", name, "col"))));
    body.append(...names.map((name, i) => row(cell("th", name, "row"), ...this.cells[i])));
    element("divergences").replaceChildren(...(pins.length ? [head, body] : []));
  }

  fill({ pins, psi }) {
    const all = [...pins.map((pin) => pin.psi), psi];
    if (pins.length === 0) return;
    all.forEach((from, i) => all.forEach((to, k) => i !== k && say(this.cells[i][k], perThousand(divergence(from, to)))));
  }

  /** The pins and the page in words, the most private first. */
  order({ pins, psi }) {
    const named = (pin) => (pin.name.startsWith("ψ") ? pin.letter : `${pin.letter} (${pin.name})`);
    const all = [...pins.map((pin) => [pin.psi, named(pin)]), [psi, "this page"]].sort((a, b) => a[0] - b[0]);
    if (!pins.length) return say("pins-order", "");
    const words = all.map(([value, name], i) => `${i ? (value === all[i - 1][0] ? " = " : " < ") : ""}${name} with ψ = ${plain(value, 4)}`).join("");
    return say("pins-order", `More private to the left: ${words}. **${all[0][1]}** is the most private, since its ψ is the smallest.`);
  }
}
