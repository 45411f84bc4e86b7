// Be the attacker: twenty releases, twenty guesses, the score so far, and the best that anybody can expect.

import { Chart, shape } from "../chart.js";
import { density, tail } from "../normal.js";
import { element, say } from "../page.js";
import { linear } from "../scale.js";

const ROUNDS = 20;
const POINTS = 60;

/** A fair number in (0, 1) from the operating system. */
function uniform() {
  const [high, low] = crypto.getRandomValues(new Uint32Array(2));
  return (high * 2 ** 21 + (low >>> 11) + 0.5) / 2 ** 53;
}

function normal() {
  return Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
}

export class Game {
  constructor(host) {
    this.chart = new Chart(host, {
      label: "The two curves, and the output that the attacker sees", x: "published number, in standard deviations σ", short: "published number, in σ", height: () => 170,
      margin: { left: 14, right: 14, top: 14, bottom: 40 },
    });
    this.chart.handles.remove();
    this.past = shape("g", { "aria-hidden": "true" }, this.chart.body);
    this.dot = shape("circle", { class: "drawn", r: 7, cy: -20 }, this.chart.body);
    this.rounds = [];
    this.output = null;
    element("game-start").addEventListener("click", () => this.start());
    element("game-in").addEventListener("click", () => this.guess(true));
    element("game-out").addEventListener("click", () => this.guess(false));
  }

  start() {
    this.rounds = [];
    this.psi = this.now.psi;
    say("game-start", "Start again");
    this.playing(true);
    this.draw("");
    element("game-in").focus();
  }

  playing(on) {
    element("game-in").disabled = !on;
    element("game-out").disabled = !on;
  }

  draw(verdict) {
    this.member = uniform() < 0.5;
    this.output = normal() + (this.member ? this.psi : 0);
    say("game-score", `${verdict}Release ${this.rounds.length + 1} of ${ROUNDS}: the output is **${this.output.toFixed(2)}**. In the data?`);
    this.render(this.now);
  }

  guess(member) {
    const right = member === this.member;
    this.rounds.push({ right, member: this.member, output: this.output });
    const score = this.rounds.filter((round) => round.right).length;
    const verdict = `${right ? "Right" : "Wrong"}, it was ${this.member ? "in" : "out"}. Your score: **${score} of ${this.rounds.length}**. `;
    if (this.rounds.length < ROUNDS) return this.draw(verdict);
    this.playing(false);
    this.output = null;
    const best = (ROUNDS * tail(-0.5 * this.psi)).toFixed(1);
    say("game-score", `${verdict}You were right **${score} of ${ROUNDS}** times. A coin gets 10; the best attack, "in" right of ψ/2, gets ${best} on average.`);
    element("game-start").focus();
    return this.render(this.now);
  }

  render(model) {
    this.now = model;
    const { chart } = this;
    const psi = this.rounds.length || this.output !== null ? this.psi : model.psi;
    chart.frame(linear(-4, Math.max(8, Math.ceil(psi) + 2), 12), { key: "game", to: (v) => v / 0.45, from: (t) => t, ticks: [] });
    chart.kept("without", "without", 0, () => this.curve(0));
    chart.kept("with", "with", psi, () => this.curve(psi));
    this.dot.setAttribute("cx", this.output === null ? -20 : chart.x(this.output).toFixed(1));
    this.dot.setAttribute("cy", chart.y(0.02).toFixed(1));
    const key = `${this.rounds.length} ${chart.key}`;
    if (key !== this.seen) this.history(key);
  }

  /** What was drawn before: blue was in the data, orange was not; a ring was guessed wrongly. */
  history(key) {
    this.seen = key;
    this.past.replaceChildren();
    this.rounds.forEach(({ right, member, output }, i) => {
      const kind = `past ${member ? "with" : "without"}${right ? "" : " wrong"}`;
      shape("circle", { class: kind, r: 4, cx: this.chart.x(output).toFixed(1), cy: this.chart.y(0.06 + 0.015 * i).toFixed(1) }, this.past);
    });
  }

  curve(mean) {
    const { low, high } = this.chart.xScale;
    return Array.from({ length: POINTS + 1 }, (_, i) => {
      const value = low + (i / POINTS) * (high - low);
      return [this.chart.x(value), this.chart.y(density(value - mean))];
    });
  }
}
