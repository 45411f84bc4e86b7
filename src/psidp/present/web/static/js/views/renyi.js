// The Renyi divergence, linear in its order, and what one order is worth as (epsilon, delta).

import { Chart } from "../chart.js";
import { Handle } from "../handle.js";
import { plain, shown, up } from "../digits.js";
import { epsilonFromPsi } from "../profile.js";
import { epsilonFromRdp, rhoFromPsi } from "../attack.js";
import { linear, roundStep } from "../scale.js";
import { say } from "../page.js";
import { pinned } from "./densities.js";

const [LEAST, LARGEST] = [1.01, 32];

export class Renyi {
  constructor(host, change) {
    this.title = "Rényi divergence: a straight line";
    const move = (alpha) => change({ alpha: Math.min(Math.max(alpha, LEAST), LARGEST) });
    this.chart = new Chart(host, { label: "Renyi divergence over its order", x: "order α", y: "ρ(α)", height: (w) => Math.min(0.6 * w, 330) });
    this.order = new Handle(this.chart, {
      name: "order", label: "Order alpha", className: "by-point", rest: () => change({}),
      drag: (x) => move(this.chart.fromX(x)),
      step: (n) => move(this.now.alpha + 0.1 * n),
      edge: (end) => move(end < 0 ? LEAST : LARGEST),
    });
  }

  render(model) {
    this.now = model;
    const { chart } = this;
    const { psi, delta } = model;
    const alpha = Math.min(model.alpha, LARGEST);
    chart.frame(linear(1, LARGEST, 6), linear(0, 4 * roundStep(rhoFromPsi(psi, LARGEST) / 4), 4));
    const reach = chart.yScale.high;
    const line = (p) => [[chart.x(1), chart.y(rhoFromPsi(p, 1))], [chart.x(LARGEST), chart.y(rhoFromPsi(p, LARGEST))]];
    for (const i of [0, 1, 2, 3]) {
      const pin = model.pins[i];
      chart.kept(`pin-${i}`, `pinned p${i}`, pin?.psi, () => (pin ? line(pin.psi) : []));
      const at = pin ? Math.min(28, (0.9 * reach) / (0.5 * pin.psi * pin.psi)) : 1;
      chart.note(`pin-label-${i}`, `pin-label p${i}`, chart.x(Math.max(at, 1)), chart.y(pin ? rhoFromPsi(pin.psi, at) : 0) - 5, pin ? pin.letter : "", "end");
    }
    chart.line("renyi", "curve", line(psi));
    const rho = rhoFromPsi(psi, alpha);
    this.order.place(chart.x(alpha), chart.y(rho));
    this.order.says(alpha, LEAST, LARGEST, `alpha ${plain(alpha, 3)}, rho ${up(rho)}`);
    const bound = epsilonFromRdp(rho, alpha, delta);
    say("renyi-note", `At α = ${plain(alpha, 3)} ρ is ${up(rho, 3)}, which shows ε ≤ **${up(bound, 6)}** at δ = ${shown(delta)}; the exact ε is **${shown(epsilonFromPsi(psi, delta))}**.`);
  }

  legend({ psi, pins }) {
    return [["line curve", `ρ(α) = α ψ²/2, ψ = ${plain(psi, 4)}`], ...pinned(pins)];
  }
}
