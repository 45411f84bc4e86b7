// Several releases of the same data: right triangles, one upon the other, whose last side is the total.

import { Chart, path } from "../chart.js";
import { advantageFromPsi } from "../attack.js";
import { perThousand, plain, typed } from "../digits.js";
import { composed } from "../model.js";
import { element, say } from "../page.js";
import { RELEASES, range } from "../state.js";

const FLAT = { key: "triangles", to: (v) => v, from: (t) => t, ticks: [] };

export class Composition {
  constructor(host, change) {
    this.title = "Several releases: ψ adds as the sides of a right triangle";
    this.change = change;
    this.count = 0;
    this.chart = new Chart(host, {
      label: "Right triangles: each release is a leg, the total is the longest side", height: (w) => Math.min(0.6 * w, 300),
      margin: { left: 30, right: 60, top: 26, bottom: 26 },
    });
    this.chart.svg.setAttribute("role", "img");
    this.chart.handles.remove();
    element("release-add").addEventListener("click", () => change({ releases: [...this.now.releases, this.now.releases.at(-1)].slice(0, RELEASES) }));
    element("release-drop").addEventListener("click", () => change({ releases: this.now.releases.slice(0, Math.max(2, this.now.releases.length - 1)) }));
    element("release-use").addEventListener("click", () => change({ psi: composed(this.now.releases) }));
  }

  render(model) {
    this.now = model;
    const { releases, unit } = model;
    this.fields(releases);
    this.chart.frame(FLAT, FLAT);
    this.draw(releases);
    const total = composed(releases);
    const plainSum = releases.reduce((a, b) => a + b, 0);
    const each = releases.map((psi) => plain(psi, 4));
    const right = (psi) => perThousand((1 + advantageFromPsi(psi)) / 2);
    say("composition-note", `ψ = ${each.slice(0, -1).join(", ")} and ${each.at(-1)} together make ψ = √(${each.map((psi) => `${psi}²`).join(" + ")}) = **${plain(total, 4)}**, not ${plain(plainSum, 4)}: separate noise does not add up straight. An attacker who sees all ${releases.length} is right at most ${right(total)} times in 1,000 about one ${unit}.`);
    element("release-add").disabled = releases.length >= RELEASES;
    element("release-drop").disabled = releases.length <= 2;
  }

  /** One field for each release; made anew only when their number changes. */
  fields(releases) {
    if (this.count !== releases.length) {
      this.count = releases.length;
      element("releases").replaceChildren(...releases.map((_, i) => this.field(i)));
    }
    [...element("releases").querySelectorAll("input")].forEach((field, i) => {
      if (document.activeElement !== field) field.value = plain(releases[i]);
    });
  }

  field(i) {
    const label = document.createElement("label");
    const input = document.createElement("input");
    input.inputMode = "decimal";
    input.autocomplete = "off";
    input.dataset.release = String(i + 1);
    input.addEventListener("input", () => this.typed(i, input));
    input.addEventListener("blur", () => {
      input.setAttribute("aria-invalid", "false");
      say("release-refusal", "");
    });
    label.append(`ψ of release ${i + 1} `, input);
    return label;
  }

  typed(i, input) {
    const psi = typed(input.value);
    const [least, most] = range("psi");
    const fine = psi >= least && psi <= most;
    input.setAttribute("aria-invalid", String(!fine));
    say("release-refusal", fine ? "" : `psi (sensitivity index Delta/sigma) must be in [${least}, ${most}] on this page, got psi=${input.value.trim().slice(0, 40) || "nothing"}.`);
    if (fine) this.change({ releases: this.now.releases.map((old, k) => (k === i ? psi : old)) });
  }

  /** Corners of the triangles, in units of psi: each leg stands at a right angle on the total so far. */
  corners(releases) {
    const points = [[0, 0], [releases[0], 0]];
    for (const psi of releases.slice(1)) {
      const [x, y] = points.at(-1);
      const r = Math.hypot(x, y);
      points.push([x - (psi * y) / r, y + (psi * x) / r]);
    }
    return points;
  }

  draw(releases) {
    const { chart } = this;
    const points = this.corners(releases);
    const [xs, ys] = [points.map(([x]) => x), points.map(([, y]) => y)];
    const [x0, x1, y0, y1] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    const { left, right, top, bottom } = chart.inner;
    const scale = Math.min((right - left) / (x1 - x0), (bottom - top) / (y1 - y0));
    const shift = left + ((right - left) - scale * (x1 - x0)) / 2;
    const at = ([x, y]) => [shift + scale * (x - x0), bottom - scale * (y - y0)];
    const origin = at([0, 0]);
    const drawn = points.map(at);
    chart.draw("area", "triangle", drawn.slice(1, -1).map((p, i) => `${path([origin, p, drawn[i + 2]])}Z`).join(""));
    chart.line("legs", "legs", drawn);
    chart.line("inner", "guide", drawn.slice(2, -1).flatMap((p) => [origin, p]));
    chart.line("total", "curve", [origin, drawn.at(-1)]);
    for (let i = 0; i < RELEASES; i += 1) this.label(i, releases, drawn);
    const [tx, ty] = [(origin[0] + drawn.at(-1)[0]) / 2, (origin[1] + drawn.at(-1)[1]) / 2];
    const words = `together ${plain(composed(releases), 4)}`;
    chart.note("label-total", "label-psi", tx - 10, ty - 8, words, "end");
    chart.svg.setAttribute("aria-label", `Right triangles with legs ${releases.map((psi) => plain(psi, 4)).join(", ")}; the longest side is ${plain(composed(releases), 4)}`);
  }

  label(i, releases, drawn) {
    if (i >= releases.length) return this.chart.note(`leg-${i}`, "", 0, 0, "");
    const [[xa, ya], [xb, yb]] = [drawn[i], drawn[i + 1]];
    const flat = i === 0;
    return this.chart.note(`leg-${i}`, "axis-title", (xa + xb) / 2 + (flat ? 0 : 10), (ya + yb) / 2 + (flat ? 18 : 4), plain(releases[i], 4), flat ? "middle" : "start");
  }

  legend({ releases }) {
    return [["line legs", `releases: ψ = ${releases.map((psi) => plain(psi, 4)).join(", ")}`], ["line curve", `together: ψ = ${plain(composed(releases), 4)}`]];
  }
}
