// The two output densities, the threshold between them, and the four areas it cuts.

import { Chart } from "../chart.js";
import { Handle } from "../handle.js";
import { density } from "../normal.js";
import { linear } from "../scale.js";
import { percent, plain } from "../digits.js";
import { thresholdTo } from "../model.js";

const POINTS = 72;
const PEAK = density(0);
const [LOW, HIGH, ROOM] = [-4, 8, 2];
const LEAST = 0.02;

export class Densities {
  constructor(host, change) {
    this.title = "What comes out, with and without one person";
    this.chart = new Chart(host, {
      label: "Densities of the output without and with the person, with the threshold of the attack",
      x: "published number, in standard deviations σ of the noise", short: "published number, in σ", height: (w) => Math.min(0.7 * w, 380),
      margin: { left: 14, right: 14, top: 26, bottom: 40 },
    });
    this.now = null;
    const psi = (value) => change({ psi: Math.min(Math.max(value, LEAST), this.chart.xScale.high - ROOM) });
    const threshold = (value) => change(thresholdTo(this.now, value));
    const rest = () => change({});
    this.psi = new Handle(this.chart, {
      name: "psi", label: "Density with the person: psi", className: "by-psi", rest,
      drag: (x) => psi(this.chart.fromX(x)),
      step: (n) => psi(this.now.psi + 0.02 * n),
      edge: (end) => psi(end < 0 ? LEAST : HIGH - ROOM),
    });
    this.threshold = new Handle(this.chart, {
      name: "threshold", label: "Threshold", className: "by-threshold", line: true, rest,
      drag: (x) => threshold(this.chart.fromX(x)),
      step: (n) => threshold(this.now.threshold + 0.05 * n),
      edge: (end) => threshold(end < 0 ? this.chart.xScale.low : this.chart.xScale.high),
    });
  }

  render(model) {
    this.now = model;
    const { psi, threshold, rates } = model;
    const { chart } = this;
    chart.frame(linear(LOW, Math.max(HIGH, Math.ceil(psi) + ROOM), 12), { key: "density", to: (v) => v / (1.04 * PEAK), from: (t) => t, ticks: [] });
    const { low, high } = chart.xScale;
    const cut = Math.min(Math.max(threshold, low), high);
    this.areas(psi, low, cut, high);
    chart.kept("without", "without", 0, () => this.curve(0, low, high));
    chart.kept("with", "with", psi, () => this.curve(psi, low, high));
    for (const pin of [0, 1, 2, 3]) {
      const pinned = model.pins[pin];
      chart.kept(`pin-${pin}`, `pinned p${pin}`, pinned?.psi, () => (pinned ? this.curve(pinned.psi, low, high) : []));
    }
    this.labels(psi, model.unit);
    this.psi.place(chart.x(Math.min(psi, high)), chart.y(PEAK));
    this.psi.says(psi, LEAST, Math.max(psi, HIGH - ROOM), `psi ${plain(psi, 4)}`);
    this.threshold.place(chart.x(cut), chart.inner.bottom - 14);
    const beyond = threshold === cut ? "" : `threshold ${plain(threshold, 3)} ${threshold > cut ? "→" : "←"}`;
    chart.note("beyond", "", chart.x(cut) + (threshold > cut ? -12 : 12), chart.inner.bottom - 34, beyond, threshold > cut ? "end" : "start");
    this.threshold.says(threshold, Math.min(low, threshold), Math.max(high, threshold), `${plain(threshold, 4)} standard deviations; accuses ${percent(rates.tpr)} of members, ${percent(rates.fpr)} of others`);
  }

  /** The names of the two curves, never outside the picture. */
  labels(psi, unit) {
    const { chart } = this;
    const top = chart.inner.top - 10;
    const close = chart.x(psi) - chart.x(0) < 130;
    chart.note("label-without", "label-without", chart.x(0) - (close ? 8 : 0), top, "without", close ? "end" : "middle");
    const words = chart.fitted(`with this ${unit}, ψ = ${plain(psi, 4)}`, `with, ψ = ${plain(psi, 4)}`, chart.inner.right - chart.x(psi) - 8);
    chart.note("label-with", "label-with", chart.x(psi) + (close ? 8 : 0), top, words, close ? "start" : "middle");
  }

  legend({ psi, pins, unit, rates }) {
    return [["line without", `without this ${unit}`], ["line with", `with this ${unit}, ψ = ${plain(psi, 4)}`],
      ["area tp", `accused rightly: ${percent(rates.tpr)} of members`], ["area fp", `accused wrongly: ${percent(rates.fpr)} of others`], ...pinned(pins)];
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

/** The legend's lines for pinned mechanisms. */
export function pinned(pins) {
  return pins.map((pin, i) => [`line pinned p${i}`, pin.name.startsWith("ψ") ? `${pin.letter}: ${pin.name}` : `${pin.letter}: ${pin.name}, ψ = ${plain(pin.psi, 4)}`]);
}
