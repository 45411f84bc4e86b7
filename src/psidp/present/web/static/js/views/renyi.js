// The Renyi divergence, linear in its order, and what one order is worth as (epsilon, delta).

import { Chart } from "../chart.js";
import { Handle } from "../handle.js";
import { plain, up } from "../digits.js";
import { epsilonFromRdp, rhoFromPsi } from "../attack.js";
import { linear, roundStep } from "../scale.js";
import { say } from "../page.js";

const LARGEST = 32;
const DELTA = 1e-5;

export class Renyi {
  constructor(host, change) {
    const move = (alpha) => change({ alpha: Math.min(Math.max(alpha, 1.01), LARGEST) });
    this.chart = new Chart(host, { label: "Renyi divergence over its order", x: "order α", y: "ρ(α)", height: (w) => Math.min(0.6 * w, 330) });
    this.order = new Handle(this.chart, {
      name: "order", label: "Order alpha", className: "by-point",
      drag: (x) => move(this.chart.fromX(x)),
      step: (n) => move(this.now.alpha + 0.1 * n),
    });
  }

  render(model) {
    this.now = model;
    const { chart } = this;
    const { psi, alpha } = model;
    const reach = 4 * roundStep(rhoFromPsi(psi, LARGEST) / 4);
    chart.frame(linear(1, LARGEST, 6), linear(0, reach, 4));
    const line = (p) => [[chart.x(1), chart.y(rhoFromPsi(p, 1))], [chart.x(LARGEST), chart.y(rhoFromPsi(p, LARGEST))]];
    for (const i of [0, 1, 2, 3]) {
      const pin = model.pins[i];
      chart.kept(`pin-${i}`, "pinned", pin?.psi, () => (pin ? line(pin.psi) : []));
      const at = pin ? Math.min(28, (0.9 * reach) / (0.5 * pin.psi * pin.psi)) : 1;
      chart.note(`pin-label-${i}`, "pin-label", chart.x(Math.max(at, 1)), chart.y(pin ? rhoFromPsi(pin.psi, at) : 0) - 5, pin ? pin.letter : "", "end");
    }
    chart.line("renyi", "curve", line(psi));
    const rho = rhoFromPsi(psi, alpha);
    this.order.place(chart.x(alpha), chart.y(rho));
    this.order.says(alpha, 1.01, LARGEST, `alpha ${plain(alpha, 3)}, rho ${up(rho)}`);
    const bound = epsilonFromRdp(rho, alpha, DELTA);
    say("renyi-note", `At α = ${plain(alpha, 3)} ρ is ${up(rho, 3)}, which shows ε ≤ **${up(bound, 4)}** at δ = 1e-5; the exact ε is **${up(model.usual, 4)}**.`);
  }
}
