// delta over epsilon on a logarithmic axis, with the dot that the tangent defines.

import { Chart } from "../chart.js";
import { Handle } from "../handle.js";
import { plain, up } from "../digits.js";
import { epsilonFromPsi, logDeltaFromPsi } from "../profile.js";
import { thresholdAt } from "../model.js";
import { linear, log10, roundStep } from "../scale.js";

const POINTS = 70;
const LEAST = 1e-12;

export class Profile {
  constructor(host, change) {
    const move = (epsilon) => change({ threshold: thresholdAt(this.now.psi, Math.max(epsilon, 0)) });
    this.chart = new Chart(host, {
      label: "Privacy profile: delta over epsilon", x: "ε", y: "δ", height: (w) => Math.min(0.6 * w, 330),
      margin: { left: 62, right: 12, top: 12, bottom: 40 },
    });
    this.dot = new Handle(this.chart, {
      name: "profile-dot", label: "Pair on the privacy profile: epsilon", className: "by-tangent",
      drag: (x) => move(this.chart.fromX(x)),
      step: (n) => move(Math.abs(this.now.epsilon) + 0.01 * this.reach * n),
    });
  }

  render(model) {
    this.now = model;
    const { chart } = this;
    this.reach = roundStep(epsilonFromPsi(model.psi, LEAST));
    chart.frame(linear(0, this.reach, 5), log10(LEAST, 1, 2));
    for (const i of [0, 1, 2, 3]) {
      const pin = model.pins[i];
      chart.kept(`pin-${i}`, "pinned", pin?.psi, () => (pin ? this.curve(pin.psi) : []));
      const epsilon = pin ? Math.min(epsilonFromPsi(pin.psi, 1e-4), this.reach) : 0;
      chart.note(`pin-label-${i}`, "pin-label", chart.x(epsilon) + 4, chart.y(1e-4) - 4, pin ? pin.letter : "");
    }
    chart.kept("profile", "curve", model.psi, () => this.curve(model.psi));
    const epsilon = Math.abs(model.epsilon);
    const x = chart.x(Math.min(epsilon, this.reach));
    const y = chart.y(Math.max(model.delta, LEAST));
    chart.line("across", "guide", [[chart.inner.left, y], [x, y], [x, chart.inner.bottom]]);
    this.dot.place(x, y);
    this.dot.says(epsilon, 0, this.reach, `epsilon ${plain(epsilon, 4)}, delta ${up(model.delta)}`);
    const left = x > 0.6 * chart.width;
    chart.note("pair", "label-tangent", x + (left ? -14 : 14), y + (left ? 18 : -6), `(${plain(epsilon, 3)}, ${up(model.delta, 3)})`, left ? "end" : "start");
  }

  curve(psi) {
    const points = [];
    const end = Math.min(this.reach, 1.05 * epsilonFromPsi(psi, LEAST));
    for (let i = 0; i <= POINTS; i += 1) {
      const epsilon = (i / POINTS) * end;
      points.push([this.chart.x(epsilon), this.chart.y(Math.exp(Math.max(logDeltaFromPsi(psi, epsilon), -40)))]);
    }
    return points;
  }
}
