// Be the attacker: twenty releases, twenty guesses, and the best score that anybody can expect.

import { Chart } from "../chart.js";
import { element, say } from "../page.js";
import { linear } from "../scale.js";
import { shape } from "../chart.js";
import { tail } from "../normal.js";

const ROUNDS = 20;

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
      label: "The output that the attacker sees", x: "output, in standard deviations σ", height: () => 96,
      margin: { left: 14, right: 14, top: 14, bottom: 40 },
    });
    this.chart.handles.remove();
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
    this.rounds.push(right);
    const verdict = `${right ? "Right" : "Wrong"}, it was ${this.member ? "in" : "out"}. `;
    if (this.rounds.length < ROUNDS) return this.draw(verdict);
    this.playing(false);
    this.output = null;
    const score = this.rounds.filter(Boolean).length;
    const best = (ROUNDS * tail(-0.5 * this.psi)).toFixed(1);
    say("game-score", `${verdict}You were right **${score} of ${ROUNDS}** times. A coin gets 10; the best attack, Φ(ψ/2), gets ${best} on average.`);
    element("game-start").focus();
    return this.render(this.now);
  }

  render(model) {
    this.now = model;
    const psi = this.output === null ? model.psi : this.psi;
    this.chart.frame(linear(-4, Math.max(5, Math.ceil(psi + 4)), 9), { key: "game", to: (v) => v, from: (t) => t, ticks: [] });
    const { chart } = this;
    chart.line("ground", "guide", [[chart.inner.left, chart.y(0.4)], [chart.inner.right, chart.y(0.4)]]);
    this.dot.setAttribute("cx", this.output === null ? -20 : chart.x(this.output).toFixed(1));
    this.dot.setAttribute("cy", chart.y(0.4).toFixed(1));
  }
}
