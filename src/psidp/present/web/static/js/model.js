// Everything the pictures show, derived once per frame from the state.

import { advantageFromPsi, aucFromPsi, predictiveValue, ratesAt } from "./attack.js";
import { deltaFromPsi, epsilonFromPsi } from "./profile.js";

export const LETTERS = ["A", "B", "C", "D"];

/** The state with its consequences. Of every pair the locked member is as the state has it, and the other follows. */
export function derive(state) {
  const { psi, prior } = state;
  const threshold = state.rates === "fpr" ? state.threshold : psi - state.above;
  const epsilon = state.pair === "epsilon" ? state.epsilon : epsilonFromPsi(psi, state.delta);
  const rates = ratesAt(psi, threshold);
  const advantage = advantageFromPsi(psi);
  return {
    ...state,
    sensitivity: state.noise === "sensitivity" ? state.sensitivity : psi * state.sigma,
    sigma: state.noise === "sigma" ? state.sigma : state.sensitivity / psi,
    threshold,
    epsilon,
    delta: state.pair === "delta" ? state.delta : deltaFromPsi(psi, epsilon),
    loose: state.pair === "delta" && state.delta > advantage,
    locked: state.rates,
    rates,
    auc: aucFromPsi(psi),
    advantage,
    ppv: predictiveValue(rates.tpr, rates.fpr, prior),
    pins: state.pins.map((pin, i) => ({ ...pin, letter: LETTERS[i], name: pin.name && pin.name !== LETTERS[i] ? pin.name : `ψ = ${Number(pin.psi.toPrecision(4))}` })),
  };
}

/** The threshold at which the tangent has slope e^epsilon. */
export function thresholdAt(psi, epsilon) {
  return 0.5 * psi + epsilon / psi;
}

/** The change that puts the threshold there, whichever rate is locked. */
export function thresholdTo({ psi, locked }, threshold) {
  return locked === "tpr" ? { above: psi - threshold } : { threshold };
}

/** The change that makes the pair the one with this epsilon, psi as it is. */
export function epsilonTo({ psi, pair }, epsilon) {
  const least = Math.max(epsilon, 0);
  return pair === "epsilon" ? { epsilon: least } : { delta: deltaFromPsi(psi, least) };
}

/** The change that makes the pair the one with this delta, psi as it is. */
export function deltaTo({ psi, pair }, delta) {
  return pair === "epsilon" ? { epsilon: epsilonFromPsi(psi, delta) } : { delta };
}

/** psi of several releases of the same data: the root of the sum of squares. */
export function composed(releases) {
  return Math.hypot(...releases);
}
