// delta over epsilon on a logarithmic axis, with the dot that is the tangent's pair.

import { Chart } from "../chart.js";
import { Handle } from "../handle.js";
import { plain, shown } from "../digits.js";
import { epsilonFromPsi, logDeltaFromPsi } from "../profile.js";
import { epsilonTo } from "../model.js";
import { linear, log10, roundStep } from "../scale.js";
import { pinned } from "./densities.js";

const POINTS = 70;
const LEAST = 1e-12;

export class Profile {
  constructor(host, change) {
    this.title = "Privacy profile: every pair (ε, δ) that holds";
    const move = (epsilon) => change(epsilonTo(this.now, Math.min(epsilon, this.chart.xScale.high)));
    this.chart = new Chart(host, {
      label: "Privacy profile: delta over epsilon", x: "ε", y: "δ", height: (w) => Math.min(0.6 * w, 330),
      margin: { left: 62, right: 12, top: 12, bottom: 40 },
    });
    this.dot = new Handle(this.chart, {
      name: "profile-dot", label: "Pair on the privacy profile: epsilon", className: "by-tangent", rest: () => change({}),
      drag: (x) => move(this.chart.fromX(x)),
      step: (n) => move(this.now.epsilon + 0.01 * this.chart.xScale.high * n),
      edge: (end) => move(end < 0 ? 0 : this.chart.xScale.high),
    });
  }

  render(model) {
    this.now = model;
    const { chart } = this;
    chart.frame(linear(0, roundStep(epsilonFromPsi(model.psi, LEAST)), 5), log10(LEAST, 1, 2));
    const reach = chart.xScale.high;
    for (const i of [0, 1, 2, 3]) {
      const pin = model.pins[i];
      chart.kept(`pin-${i}`, `pinned p${i}`, pin?.psi, () => (pin ? this.curve(pin.psi) : []));
      const epsilon = pin ? Math.min(epsilonFromPsi(pin.psi, 1e-4), reach) : 0;
      chart.note(`pin-label-${i}`, `pin-label p${i}`, chart.x(epsilon) + 4, chart.y(1e-4) - 4, pin ? pin.letter : "");
    }
    chart.kept("profile", "curve", model.psi, () => this.curve(model.psi));
    this.mark(model, reach);
  }

  /** The pair, at the edge with an arrow where it lies outside the picture. */
  mark({ epsilon, delta }, reach) {
    const { chart } = this;
    const x = chart.x(Math.min(epsilon, reach));
    const y = chart.y(Math.max(delta, LEAST));
    chart.line("across", "guide", [[chart.inner.left, y], [x, y], [x, chart.inner.bottom]]);
    this.dot.place(x, y);
    this.dot.says(epsilon, 0, Math.max(reach, epsilon), `epsilon ${shown(epsilon)}, delta ${shown(delta)}`);
    const left = x > 0.6 * chart.width;
    const outside = delta < LEAST ? " ↓" : epsilon > reach ? " →" : "";
    const words = `ε = ${shown(epsilon)}, δ = ${shown(delta)}${outside}`;
    chart.note("pair", "label-tangent", x + (left ? -14 : 14), y + (left ? 18 : -6), words, left ? "end" : "start");
  }

  legend({ psi, pins, epsilon, delta }) {
    return [["line curve", `δ at every ε, ψ = ${plain(psi, 4)}`], ["line guide", `ε = ${shown(epsilon)}, δ = ${shown(delta)}`], ...pinned(pins)];
  }

  curve(psi) {
    const points = [];
    const end = Math.min(this.chart.xScale.high, 1.05 * epsilonFromPsi(psi, LEAST));
    for (let i = 0; i <= POINTS; i += 1) {
      const epsilon = (i / POINTS) * end;
      points.push([this.chart.x(epsilon), this.chart.y(Math.exp(Math.max(logDeltaFromPsi(psi, epsilon), -40)))]);
    }
    return points;
  }
}
