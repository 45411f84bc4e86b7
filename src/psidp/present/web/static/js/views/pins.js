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
    const key = JSON.stringify([model.pins, model.psi]);
    if (key === this.key) return;
    this.key = key;
    this.list(model.pins);
    this.table(model);
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
    if (this.listed === JSON.stringify(pins)) return;
    this.listed = JSON.stringify(pins);
    element("pins").replaceChildren(...items);
  }

  /** Rows and columns: the pins and the mechanism on the page. */
  table({ pins, psi }) {
    const all = [...pins.map((pin) => ({ name: pin.letter, psi: pin.psi })), { name: "now", psi }];
    const table = element("divergences");
    if (pins.length === 0) return table.replaceChildren();
    const cell = (tag, words, scope) => {
      const made = document.createElement(tag);
      made.textContent = words;
      if (scope) made.scope = scope;
      return made;
    };
    const head = document.createElement("tr");
    head.append(cell("td", "replaced by →"), ...all.map((m) => cell("th", m.name, "col")));
    const rows = all.map((from) => {
      const row = document.createElement("tr");
      row.append(cell("th", from.name, "row"), ...all.map((to) => cell("td", from === to ? "" : up(divergence(from.psi, to.psi), 3))));
      return row;
    });
    const parts = [document.createElement("thead"), document.createElement("tbody")];
    parts[0].append(head);
    parts[1].append(...rows);
    return table.replaceChildren(...parts);
  }
}
