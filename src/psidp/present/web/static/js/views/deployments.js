// Known deployments of differential privacy beside the psi of this page: a strip of dots and a table.

import { Chart, shape } from "../chart.js";
import { advantageFromPsi } from "../attack.js";
import { perThousand, plain, up } from "../digits.js";
import { element, say } from "../page.js";

const TICKS = [0.25, 0.5, 1, 2, 3];
const NONE = { key: "none", to: (v) => v, from: (t) => t, ticks: [] };

/** From psi to the share of the way from tossing a coin to knowing. */
const SCALE = {
  key: "guesses", to: (psi) => 0.01 + 0.98 * advantageFromPsi(psi), from: (t) => t,
  ticks: [...[0, ...TICKS].map((value) => ({ value, text: String(value) })), { value: 40, text: "∞" }],
};

export class Deployments {
  constructor(host) {
    this.title = "Known deployments, by what an attacker could gain";
    this.known = JSON.parse(element("deployments").textContent);
    this.chart = new Chart(host, {
      label: "Known deployments on the scale of psi", x: "ψ; the axis is even in right guesses, from 500 to 1,000 in 1,000", short: "ψ; the axis is even in right guesses", height: () => 150,
      margin: { left: 16, right: 16, top: 30, bottom: 40 },
    });
    this.chart.svg.setAttribute("role", "img");
    this.chart.handles.remove();
    this.rows();
  }

  rows() {
    const body = element("known").querySelector("tbody");
    this.mine = row([["th", "the ψ on this page"], ["td", ""], ["td", ""], ["td", ""], ["td", ""], ["td", ""]]);
    this.mine.className = "mine";
    this.lines = this.known.map((d) => {
      const name = document.createElement("a");
      name.href = d.source;
      name.rel = "noreferrer";
      name.textContent = `${d.name}, ${d.curator}, ${d.year}`;
      const made = row([["th", name], ["td", d.claim], ["td", d.unit], ["td", d.trust], ["td", up(d.psi, 3)], ["td", perThousand((1 + advantageFromPsi(d.psi)) / 2)]]);
      return made;
    });
    body.replaceChildren(...this.lines, this.mine);
  }

  render({ psi, unit }) {
    const { chart } = this;
    chart.frame(SCALE, NONE);
    if (this.drawn !== chart.key) this.dots();
    const x = chart.x(Math.min(psi, 12));
    chart.line("here", "here", [[x, chart.inner.top - 6], [x, chart.inner.bottom]]);
    chart.note("here-label", "label-psi", x, chart.inner.top - 10, `this page: ψ = ${plain(psi, 3)}`, "middle");
    const after = this.known.findIndex((d) => d.psi > psi);
    const before = after < 0 ? null : this.lines[after];
    if (this.mine.nextElementSibling !== before) element("known").querySelector("tbody").insertBefore(this.mine, before);
    const [, claim, whose, , number, guesses] = this.mine.children;
    say(claim, "");
    say(whose, `one ${unit}`);
    say(number, up(psi, 3));
    say(guesses, perThousand((1 + advantageFromPsi(psi)) / 2));
  }

  /** A dot for each, stacked where they would cover one another; local ones are squares. */
  dots() {
    const { chart } = this;
    this.drawn = chart.key;
    this.group?.remove();
    this.group = shape("g", { "aria-hidden": "true" }, chart.body);
    const heights = new Map();
    for (const d of this.known) {
      const x = chart.x(d.psi);
      const slot = Math.round(x / 11);
      const level = heights.get(slot) ?? 0;
      heights.set(slot, level + 1);
      const y = chart.inner.bottom - 8 - 11 * level;
      const local = d.trust === "local";
      const mark = local ? shape("rect", { class: "known local", x: x - 4, y: y - 4, width: 8, height: 8 }, this.group) : shape("circle", { class: "known", cx: x, cy: y, r: 4.5 }, this.group);
      shape("title", {}, mark).textContent = `${d.name}, ${d.curator}: ψ = ${up(d.psi, 3)} per ${d.unit}, ${d.trust}`;
    }
  }

  legend({ psi }) {
    return [["line here", `this page: ψ = ${plain(psi, 4)}`], ["area known", "deployments, central"], ["area known local", "deployments, local"]];
  }
}

function row(cells) {
  const made = document.createElement("tr");
  for (const [tag, words] of cells) {
    const cell = document.createElement(tag);
    if (tag === "th") cell.scope = "row";
    cell.append(words);
    made.append(cell);
  }
  return made;
}
