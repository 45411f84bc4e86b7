// Everything the pictures show, derived once per frame from the state.

import { advantageFromPsi, aucFromPsi, predictiveValue, ratesAt } from "./attack.js";
import { deltaFromPsi, epsilonFromPsi } from "./profile.js";

export const LETTERS = ["A", "B", "C", "D"];

/** The state with its consequences; `epsilon` is signed, |epsilon| and `delta` are the pair of the tangent. */
export function derive(state) {
  const { psi, threshold, sensitivity, prior } = state;
  const epsilon = psi * threshold - 0.5 * psi * psi;
  const rates = ratesAt(psi, threshold);
  return {
    ...state,
    sigma: sensitivity / psi,
    epsilon,
    delta: deltaFromPsi(psi, Math.abs(epsilon)),
    rates,
    auc: aucFromPsi(psi),
    advantage: advantageFromPsi(psi),
    usual: epsilonFromPsi(psi, 1e-5),
    ppv: predictiveValue(rates.tpr, rates.fpr, prior),
    pins: state.pins.map((pin, i) => ({ ...pin, letter: LETTERS[i], name: pin.name || `ψ = ${Number(pin.psi.toPrecision(4))}` })),
  };
}

/** The threshold at which the tangent has slope e^epsilon. */
export function thresholdAt(psi, epsilon) {
  return 0.5 * psi + epsilon / psi;
}
