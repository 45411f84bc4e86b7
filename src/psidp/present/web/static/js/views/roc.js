// The ROC curve, the point of the threshold on it, and its tangent: slope e^epsilon, intercept delta.

import { Chart } from "../chart.js";
import { Handle } from "../handle.js";
import { percent, plain, up } from "../digits.js";
import { quantile, tail } from "../normal.js";
import { epsilonFromPsi } from "../profile.js";
import { thresholdAt } from "../model.js";
import { linear, probit } from "../scale.js";

const POINTS = 90;
const EDGE = 1e-4;

export class Roc {
  constructor(host, change) {
    this.change = change;
    this.chart = new Chart(host, {
      label: "ROC curve of the best attack with the tangent at its threshold",
      x: "false positive rate", y: "true positive rate", height: (w) => Math.min(0.75 * w, 400),
    });
    this.point = new Handle(this.chart, {
      name: "roc-point", label: "Point on the ROC curve", className: "by-point",
      drag: (x, y) => change({ threshold: this.thresholdNear(x, y) }),
      step: (n) => change({ threshold: this.now.threshold - 0.05 * n }),
    });
    this.intercept = new Handle(this.chart, {
      name: "tangent", label: "Intercept of the tangent: delta", className: "by-tangent",
      drag: (x, y) => this.tangentTo(this.mirrored ? 1 - this.chart.fromX(x) : this.chart.fromY(y)),
      step: (n) => this.tangentTo(this.now.delta * 1.1 ** n),
    });
  }

  /** The threshold whose point lies nearest along the anti-diagonal: FPR + TPR falls as the threshold grows. */
  thresholdNear(x, y) {
    const { psi } = this.now;
    const [fpr, tpr] = [this.chart.fromX(x), this.chart.fromY(y)];
    if (this.now.axes === "probit") return 0.5 * (psi - quantile(fpr) - quantile(tpr));
    let [low, high] = [-6, psi + 6];
    for (let i = 0; i < 50; i += 1) {
      const middle = 0.5 * (low + high);
      if (tail(middle) + tail(middle - psi) > fpr + tpr) low = middle;
      else high = middle;
    }
    return 0.5 * (low + high);
  }

  tangentTo(delta) {
    const { psi, advantage } = this.now;
    const epsilon = epsilonFromPsi(psi, Math.min(Math.max(delta, 1e-9), advantage));
    this.change({ threshold: thresholdAt(psi, this.mirrored ? -epsilon : epsilon) });
  }

  render(model) {
    this.now = model;
    this.mirrored = model.epsilon < 0;
    const { chart } = this;
    const straight = model.axes === "probit";
    const scale = straight ? probit(EDGE, 1 - EDGE) : linear(0, 1, 5);
    chart.frame(scale, scale);
    chart.line("chance", "guide", [[chart.x(straight ? EDGE : 0), chart.y(straight ? EDGE : 0)], [chart.x(straight ? 1 - EDGE : 1), chart.y(straight ? 1 - EDGE : 1)]]);
    for (const i of [0, 1, 2, 3]) this.pin(i, model.pins[i]);
    chart.kept("roc", "curve", model.psi, () => this.curve(model.psi));
    this.tangent(model, straight);
    this.audit(model.scores);
    this.mark(model, straight);
  }

  curve(psi) {
    const points = [];
    for (let i = 0; i <= POINTS; i += 1) {
      const c = -4.5 + (i / POINTS) * (psi + 9);
      points.push(this.at(tail(c), tail(c - psi)));
    }
    return points;
  }

  at(fpr, tpr) {
    if (this.now.axes !== "probit") return [this.chart.x(fpr), this.chart.y(tpr)];
    const inside = (rate) => Math.min(Math.max(rate, 1e-6), 1 - 1e-6);
    return [this.chart.x(inside(fpr)), this.chart.y(inside(tpr))];
  }

  pin(i, pinned) {
    this.chart.kept(`pin-${i}`, "pinned", pinned?.psi, () => (pinned ? this.curve(pinned.psi) : []));
    if (!pinned) return this.chart.note(`pin-label-${i}`, "pin-label", 0, 0, "");
    const where = this.at(tail(0.5 * pinned.psi), tail(-0.5 * pinned.psi));
    return this.chart.note(`pin-label-${i}`, "pin-label", where[0] - 4, where[1] - 4, pinned.letter, "end");
  }

  /** y = delta + e^epsilon x, and the mirror image where the threshold lies left of the middle. */
  tangent({ epsilon, delta }, straight) {
    const slope = Math.exp(Math.abs(epsilon));
    const points = [];
    const last = straight ? 60 : 1;
    for (let i = 0; i <= last; i += 1) {
      const t = straight ? tail(4 - (8 * i) / last) : i;
      const x = t * Math.min(1, (1 - delta) / slope);
      const y = Math.min(delta + slope * x, 1);
      points.push(this.mirrored ? this.at(1 - y, 1 - x) : this.at(x, y));
    }
    this.chart.line("tangent", "tangent", points);
  }

  audit(scores) {
    this.chart.kept("audit", "audit", scores?.id, () => (scores ? scores.steps.map(([fpr, tpr]) => this.at(fpr, tpr)) : []));
  }

  mark({ rates, threshold, epsilon, delta, advantage }, straight) {
    const { chart } = this;
    const [px, py] = this.at(rates.fpr, rates.tpr);
    this.point.place(clamp(px, chart.inner.left, chart.inner.right), clamp(py, chart.inner.top, chart.inner.bottom));
    this.point.says(rates.fpr, 0, 1, `false positive rate ${percent(rates.fpr)}, true positive rate ${percent(rates.tpr)}`);
    const floor = straight ? EDGE : 0;
    const rest = Math.max(delta, floor);
    const [ix, iy] = this.mirrored ? [1 - rest, 1 - floor] : [floor, rest];
    this.intercept.place(chart.x(ix), chart.y(iy));
    this.intercept.says(delta, 0, advantage, `delta ${up(delta)}, epsilon ${plain(Math.abs(epsilon), 4)}`);
    const words = `δ = ${up(delta, 3)}, slope e^ε = ${plain(Math.exp(Math.abs(epsilon)), 3)}`;
    const x = this.mirrored ? chart.x(ix) : chart.x(ix) + 14;
    chart.note("tangent-label", "label-tangent", clamp(x, chart.inner.left + 14, chart.inner.right), this.mirrored ? chart.inner.top + 22 : chart.y(iy) + 4, words, this.mirrored ? "end" : "start");
  }
}

function clamp(value, low, high) {
  return Math.min(Math.max(value, low), high);
}
