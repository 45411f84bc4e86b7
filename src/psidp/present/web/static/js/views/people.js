// A thousand people as dots: who is in the data, who is accused.

import { Chart } from "../chart.js";
import { percent } from "../digits.js";
import { say } from "../page.js";

const KINDS = ["tp", "fn", "fp", "tn"];

/** Whole numbers with the given shares that add up to 1,000, by largest remainder. */
export function thousand(shares) {
  const counts = shares.map((share) => Math.floor(1000 * share));
  const order = shares.map((share, i) => [1000 * share - counts[i], i]).sort((a, b) => b[0] - a[0]);
  for (let left = 1000 - counts.reduce((a, b) => a + b, 0), k = 0; left > 0; left -= 1, k += 1) counts[order[k % 4][1]] += 1;
  return counts;
}

export class People {
  constructor(host) {
    this.title = "1,000 people, one suspicion";
    this.chart = new Chart(host, {
      label: "Icon array of 1,000 people", height: (w) => Math.ceil(1000 / across(w)) * (w / across(w)),
      margin: { left: 0, right: 0, top: 0, bottom: 0 },
    });
    this.chart.svg.setAttribute("role", "img");
    this.chart.handles.remove();
  }

  render({ rates, prior, ppv, unit }) {
    const { chart } = this;
    chart.frame({ key: "people", to: (v) => v, from: (t) => t, ticks: [] });
    const counts = thousand([prior * rates.tpr, prior * rates.fnr, (1 - prior) * rates.fpr, (1 - prior) * rates.tnr]);
    let first = 0;
    KINDS.forEach((kind, i) => {
      this.dots(kind, first, counts[i]);
      first += counts[i];
    });
    const [tp, fn, fp, tn] = counts;
    const label = `Of 1,000 people ${tp + fn} are in the data; ${tp} of them are accused, and ${fp} of the ${fp + tn} others.`;
    chart.svg.setAttribute("aria-label", label);
    const all = `Of 1,000 people ${tp + fn} are in the data.`;
    say("ppv", tp + fp ? `${all} The attacker accuses ${tp + fp}: rightly **${tp}**, wrongly **${fp}**. An accusation raises the belief that this ${unit} is in the data from ${percent(prior)} to **${percent(ppv)}**.` : `${all} The attacker **accuses nobody**: at this threshold fewer than one in 1,000 would be accused${Number.isFinite(ppv) ? `; the rare accusation would be right with probability ${percent(ppv)}` : ""}.`);
  }

  legend({ prior, rates }) {
    return [["area tp", "in the data, accused"], ["area fn", "in the data, not accused"], ["area fp", `not in the data, accused (FPR ${percent(rates.fpr)})`],
      ["area tn", `not in the data, not accused (prior ${percent(prior)})`]];
  }

  /** A run of dots; each dot's outline is written once per width. */
  dots(kind, first, count) {
    if (this.outlines?.width !== this.chart.width) this.outlines = { width: this.chart.width, each: outlines(this.chart.width) };
    this.chart.draw(kind, `person ${kind}`, this.outlines.each.slice(first, first + count).join(""));
  }
}

/** A thousand circles in rows. */
function outlines(width) {
  const columns = across(width);
  const cell = width / columns;
  const r = (0.38 * cell).toFixed(1);
  const wide = (2 * r).toFixed(1);
  return Array.from({ length: 1000 }, (_, i) => {
    const x = ((i % columns) + 0.5) * cell - r;
    const y = (Math.floor(i / columns) + 0.5) * cell;
    return `M${x.toFixed(1)} ${y.toFixed(1)}a${r} ${r} 0 1 0 ${wide} 0a${r} ${r} 0 1 0 -${wide} 0`;
  });
}

function across(width) {
  return width < 420 ? 40 : 50;
}
