// The two-way inputs: psi, sensitivity, sigma, epsilon, delta. Each follows the others, and each can lead.

import { plain } from "../digits.js";
import { element } from "../page.js";
import { psiFromEpsilonDelta } from "../profile.js";
import { thresholdAt } from "../model.js";

const FIELDS = {
  psi: ["sensitivity index Delta/sigma", "(0, inf)", (v) => v > 0],
  sensitivity: ["L2 sensitivity of the query", "(0, inf)", (v) => v > 0],
  sigma: ["standard deviation of the noise", "(0, inf)", (v) => v > 0],
  epsilon: ["privacy loss bound", "[0, inf)", (v) => v >= 0],
  delta: ["probability slack of (epsilon, delta)-DP", "(0, 1)", (v) => v > 0 && v < 1],
};

export class Controls {
  constructor(change) {
    this.change = change;
    this.typing = null;
    element("controls").addEventListener("submit", (event) => event.preventDefault());
    element("psi-range").addEventListener("input", (event) => change({ psi: Number(event.target.value) }));
    for (const name of Object.keys(FIELDS)) {
      const field = element(name);
      field.addEventListener("input", () => this.typed(name, field.value));
      field.addEventListener("blur", () => this.left(name));
      field.addEventListener("keydown", (event) => this.nudge(event, name));
    }
  }

  /** What was typed, where it is in its domain; else the refusal, and nothing moves. */
  typed(name, text) {
    this.typing = name;
    const [meaning, domain, allowed] = FIELDS[name];
    const value = text.trim() === "" ? NaN : Number(text);
    const fine = Number.isFinite(value) && allowed(value);
    element(name).setAttribute("aria-invalid", String(!fine));
    element("refusal").textContent = fine ? "" : `${name} (${meaning}) must be in ${domain}, got ${name}=${text.trim().slice(0, 40) || "nothing"}.`;
    if (fine) this.lead(name, value);
  }

  lead(name, value) {
    const { sensitivity, sigma, epsilon, delta } = this.now;
    if (name === "psi") this.change({ psi: value });
    if (name === "sensitivity") this.change({ sensitivity: value, psi: value / sigma });
    if (name === "sigma") this.change({ psi: sensitivity / value });
    if (name === "epsilon") this.target(value, delta);
    if (name === "delta") this.target(Math.abs(epsilon), value);
  }

  /** The mechanism that has exactly this (epsilon, delta), with the threshold at its tangent. */
  target(epsilon, delta) {
    const psi = psiFromEpsilonDelta(epsilon, delta);
    if (psi >= 1e-3 && psi <= 30) return this.change({ psi, threshold: thresholdAt(psi, epsilon) });
    element("refusal").textContent = `psi (sensitivity index Delta/sigma) must be in [0.001, 30] on this page, got psi=${plain(psi, 3)} for this pair.`;
    return undefined;
  }

  nudge(event, name) {
    const direction = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (!direction) return;
    event.preventDefault();
    const factor = (event.shiftKey ? 1.1 : 1.01) ** direction;
    this.typed(name, plain(Math.max(Number(event.target.value) || 0.01, 1e-12) * factor));
    this.typing = null;
    this.render(this.now);
  }

  left(name) {
    this.typing = null;
    element(name).setAttribute("aria-invalid", "false");
    element("refusal").textContent = "";
    this.render(this.now);
  }

  render(model) {
    this.now = model;
    const values = { psi: model.psi, sensitivity: model.sensitivity, sigma: model.sigma, epsilon: Math.abs(model.epsilon), delta: model.delta };
    for (const [name, value] of Object.entries(values)) {
      const field = element(name);
      const shown = plain(value);
      if (this.typing !== name && field.value !== shown) field.value = shown;
    }
    const range = element("psi-range");
    range.value = String(model.psi);
    range.setAttribute("aria-valuetext", `psi ${plain(model.psi, 4)}`);
  }
}
