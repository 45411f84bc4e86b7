// What the best attack on a psi-mechanism reaches: rates, areas, beliefs, Renyi divergence.

import { deltaFromPsi } from "./profile.js";
import { quantile, tail } from "./normal.js";

/** R(x) = Phi(psi + Phi^-1(x)). */
export function tprFromPsi(psi, fpr) {
  return tail(-quantile(fpr) - psi);
}

/** Area under the ROC curve. */
export function aucFromPsi(psi) {
  return tail(-psi * Math.SQRT1_2);
}

/** Largest TPR - FPR. */
export function advantageFromPsi(psi) {
  return deltaFromPsi(psi, 0);
}

/** The four rates of "accuse when the output exceeds the threshold", outputs N(0, 1) without and N(psi, 1) with. */
export function ratesAt(psi, threshold) {
  return { tpr: tail(threshold - psi), fnr: tail(psi - threshold), fpr: tail(threshold), tnr: tail(-threshold) };
}

/** Share of members among the accused. */
export function predictiveValue(tpr, fpr, prior) {
  const hits = prior * tpr;
  const all = hits + (1 - prior) * fpr;
  return all > 0 ? hits / all : NaN;
}

/** Factor by which a member's odds grow, exceeded with this probability. */
export function oddsMultiplier(psi, probability) {
  return Math.exp(0.5 * psi * psi - psi * quantile(probability));
}

/** How much an attacker's chance of a right guess may grow when `psi` is replaced by `other`. */
export function divergence(psi, other) {
  return Math.max(0, tail(0.5 * psi) - tail(0.5 * other));
}

/** Renyi divergence of order alpha. */
export function rhoFromPsi(psi, alpha) {
  return 0.5 * alpha * psi * psi;
}

/** epsilon at delta from one Renyi order, by the improved conversion: a bound, never the exact value. */
export function epsilonFromRdp(rho, alpha, delta) {
  return Math.max(0, rho + Math.log1p(-1 / alpha) - (Math.log(delta) + Math.log(alpha)) / (alpha - 1));
}
