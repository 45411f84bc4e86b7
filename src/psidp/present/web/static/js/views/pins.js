// Mechanisms pinned for comparison, and the divergences between them.

import { PINS } from "../state.js";
import { divergence } from "../attack.js";
import { element, say } from "../page.js";
import { plain, up } from "../digits.js";

export class Pins {
  constructor(change) {
    this.change = change;
    element("pin").addEventListener("click", () => this.add());
    element("pin-name").addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.add();
    });
  }

  add() {
    const pins = this.state.pins;
    if (pins.length >= PINS) return;
    const name = element("pin-name").value.trim().slice(0, 30);
    element("pin-name").value = "";
    this.change({ pins: [...pins, { psi: this.state.psi, name }] });
  }

  render(model, state) {
    this.state = state;
    element("pin").disabled = state.pins.length >= PINS;
    const key = JSON.stringify(model.pins);
    if (key !== this.key) {
      this.key = key;
      this.list(model.pins);
      this.table(model.pins);
    }
    this.fill(model);
  }

  list(pins) {
    const items = pins.map((pin, i) => {
      const item = document.createElement("li");
      const remove = document.createElement("button");
      remove.type = "button";
      remove.textContent = "×";
      remove.setAttribute("aria-label", `Unpin ${pin.letter}, ${pin.name}`);
      remove.addEventListener("click", () => this.change({ pins: this.state.pins.filter((_, k) => k !== i) }));
      const words = document.createElement("span");
      say(words, `**${pin.letter}** `);
      words.append(pin.name.startsWith("ψ") ? pin.name : `${pin.name}, ψ = ${plain(pin.psi, 4)}`);
      item.append(words, remove);
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
    all.forEach((from, i) => all.forEach((to, k) => i !== k && say(this.cells[i][k], up(divergence(from, to), 3))));
  }
}
