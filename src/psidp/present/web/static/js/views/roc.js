// The ROC curve, the point of the threshold on it, and the tangent of the pair: slope e^epsilon, intercept delta.

import { Chart } from "../chart.js";
import { Handle } from "../handle.js";
import { percent, plain, shown, up } from "../digits.js";
import { quantile, tail } from "../normal.js";
import { deltaTo, thresholdAt, thresholdTo } from "../model.js";
import { linear, probit } from "../scale.js";
import { pinned } from "./densities.js";

const POINTS = 90;
const EDGE = 1e-4;
const LEAST = 1e-9;

export class Roc {
  constructor(host, change) {
    this.title = "The best attack: its ROC curve, and the tangent of (ε, δ)";
    this.chart = new Chart(host, {
      label: "ROC curve of the best attack with the tangent of the pair",
      x: "false positive rate, FPR", y: "true positive rate, TPR", height: (w) => Math.min(0.85 * w, 430),
      margin: { left: 50, right: 24, top: 12, bottom: 40 },
    });
    const rest = () => change({});
    const threshold = (value) => change(thresholdTo(this.now, value));
    const tangent = (delta) => change(deltaTo(this.now, Math.min(Math.max(delta, LEAST), this.now.advantage)));
    this.point = new Handle(this.chart, {
      name: "roc-point", label: "Point on the ROC curve", className: "by-point", rest,
      drag: (x, y) => threshold(this.thresholdNear(x, y)),
      step: (n) => threshold(this.now.threshold - 0.05 * n),
      edge: (end) => threshold(end < 0 ? this.now.psi + 4 : -4),
    });
    this.intercept = new Handle(this.chart, {
      name: "tangent", label: "Intercept of the tangent: delta", className: "by-tangent", rest,
      drag: (x, y) => tangent(this.chart.fromY(y)),
      step: (n) => tangent(this.now.delta * 1.1 ** n),
      edge: (end) => tangent(end < 0 ? LEAST : this.now.advantage),
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

  render(model) {
    this.now = model;
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

  legend({ psi, pins, epsilon, delta, scores }) {
    return [["line curve", `best attack, ψ = ${plain(psi, 4)}`], ["line tangent", `tangent: δ = ${shown(delta)}, slope e^ε = ${up(Math.exp(epsilon))}`],
      ["line guide", "guessing"], ...(scores ? [["line audit", `scores of ${scores.name}`]] : []), ...pinned(pins)];
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

  pin(i, mechanism) {
    this.chart.kept(`pin-${i}`, `pinned p${i}`, mechanism?.psi, () => (mechanism ? this.curve(mechanism.psi) : []));
    if (!mechanism) return this.chart.note(`pin-label-${i}`, `pin-label p${i}`, 0, 0, "");
    const where = this.at(tail(0.5 * mechanism.psi), tail(-0.5 * mechanism.psi));
    return this.chart.note(`pin-label-${i}`, `pin-label p${i}`, where[0] - 4, where[1] - 4, mechanism.letter, "end");
  }

  /** y = delta + e^epsilon x, as far as it lies in the picture, and where it touches the curve. */
  tangent({ psi, epsilon, delta, loose }, straight) {
    const slope = Math.exp(epsilon);
    const points = [];
    const last = straight ? 60 : 1;
    for (let i = 0; i <= last; i += 1) {
      const t = straight ? tail(4 - (8 * i) / last) : i;
      const x = t * Math.min(1, (1 - delta) / slope);
      points.push(this.at(x, Math.min(delta + slope * x, 1)));
    }
    this.chart.line("tangent", "tangent", points);
    const c = thresholdAt(psi, epsilon);
    const [x, y] = this.at(tail(c), tail(c - psi));
    const dot = `M${(x - 4).toFixed(1)} ${y.toFixed(1)}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0`;
    this.chart.draw("touch", "touch", loose ? "" : dot);
  }

  audit(scores) {
    this.chart.kept("audit", "audit", scores?.id, () => (scores ? scores.steps.map(([fpr, tpr]) => this.at(fpr, tpr)) : []));
  }

  mark({ rates, epsilon, delta, advantage }, straight) {
    const { chart } = this;
    const { left, right, top, bottom } = chart.inner;
    const [px, py] = this.at(rates.fpr, rates.tpr);
    this.point.place(clamp(px, left, right), clamp(py, top, bottom));
    this.point.says(rates.fpr, 0, 1, `false positive rate ${percent(rates.fpr)}, true positive rate ${percent(rates.tpr)}`);
    const floor = straight ? EDGE : 0;
    this.intercept.place(chart.x(floor), clamp(chart.y(Math.max(delta, floor)), top, bottom));
    this.intercept.says(delta, 0, Math.max(advantage, delta), `delta ${shown(delta)}, epsilon ${shown(epsilon)}`);
    const below = delta < floor ? ", below the picture" : "";
    chart.note("tangent-line", "label-tangent", right - 8, bottom - 28, "tangent: TPR = δ + e^ε · FPR", "end");
    const slope = `slope e^ε = ${up(Math.exp(epsilon))}`;
    const short = chart.fitted(`δ = ${shown(delta)}, ${slope}`, slope, right - left - 30);
    chart.note("tangent-label", "label-tangent", right - 8, bottom - 11, chart.fitted(`δ = ${shown(delta)}${below}, ${slope}`, short, right - left - 30), "end");
  }
}

function clamp(value, low, high) {
  return Math.min(Math.max(value, low), high);
}
