// The two output densities, the threshold between them, and the four areas it cuts.

import { Chart } from "../chart.js";
import { Handle } from "../handle.js";
import { density } from "../normal.js";
import { linear } from "../scale.js";
import { percent, plain } from "../digits.js";

const POINTS = 64;
const PEAK = density(0);

export class Densities {
  constructor(host, change) {
    this.chart = new Chart(host, {
      label: "Densities of the output without and with the person, with the threshold of the attack",
      x: "output, in standard deviations σ from the answer without", height: (w) => Math.min(0.66 * w, 350),
      margin: { left: 14, right: 14, top: 26, bottom: 40 },
    });
    this.now = null;
    this.psi = new Handle(this.chart, {
      name: "psi", label: "Density with the person: psi", className: "by-psi",
      drag: (x) => change({ psi: Math.max(this.chart.fromX(x), 0.02) }),
      step: (n) => change({ psi: Math.max(this.now.psi + 0.02 * n, 0.02) }),
    });
    this.threshold = new Handle(this.chart, {
      name: "threshold", label: "Threshold", className: "by-threshold", line: true,
      drag: (x) => change({ threshold: this.chart.fromX(x) }),
      step: (n) => change({ threshold: this.now.threshold + 0.05 * n }),
    });
  }

  render(model) {
    this.now = model;
    const { psi, threshold, rates } = model;
    const { chart } = this;
    const [low, high] = [-3.6, Math.max(5, Math.ceil(psi + 3.6))];
    chart.frame(linear(low, high, 9), { key: "density", to: (v) => v / (1.04 * PEAK), from: (t) => t, ticks: [] });
    const cut = Math.min(Math.max(threshold, low), high);
    this.areas(psi, low, cut, high);
    chart.kept("without", "without", 0, () => this.curve(0, low, high));
    chart.kept("with", "with", psi, () => this.curve(psi, low, high));
    for (const pin of [0, 1, 2, 3]) {
      const pinned = model.pins[pin];
      chart.kept(`pin-${pin}`, "pinned", pinned?.psi, () => (pinned ? this.curve(pinned.psi, low, high) : []));
    }
    const top = chart.inner.top - 10;
    const close = chart.x(psi) - chart.x(0) < 120;
    chart.note("label-without", "label-without", chart.x(0) - (close ? 8 : 0), top, "without", close ? "end" : "middle");
    chart.note("label-with", "label-with", chart.x(psi) + (close ? 8 : 0), top, `with, ψ = ${plain(psi, 4)}`, close ? "start" : "middle");
    this.psi.place(chart.x(Math.min(psi, high)), chart.y(PEAK));
    this.psi.says(psi, 0.02, 30, `psi ${plain(psi, 4)}`);
    this.threshold.place(chart.x(cut), chart.inner.bottom - 14);
    this.threshold.says(threshold, -40, 80, `${plain(threshold, 4)} standard deviations; accuses ${percent(rates.tpr)} of members, ${percent(rates.fpr)} of others`);
  }

  curve(mean, from, to) {
    const points = [];
    for (let i = 0; i <= POINTS; i += 1) {
      const value = from + (i / POINTS) * (to - from);
      points.push([this.chart.x(value), this.chart.y(density(value - mean))]);
    }
    return points;
  }

  areas(psi, low, cut, high) {
    const under = (mean, from, to) => {
      const base = this.chart.y(0);
      return [[this.chart.x(from), base], ...this.curve(mean, from, to), [this.chart.x(to), base]];
    };
    this.chart.line("tn", "area tn", under(0, low, cut), true);
    this.chart.line("tp", "area tp", under(psi, cut, high), true);
    this.chart.line("fn", "area fn", under(psi, low, cut), true); // the smaller ones lie on top
    this.chart.line("fp", "area fp", under(0, cut, high), true);
  }
}
