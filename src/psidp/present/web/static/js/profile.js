// The privacy profile of the Gaussian mechanism and its inverses; the algebra is told in docs/design/profile.md.

import { SQRT_2PI, mills, millsDifference, quantile } from "./normal.js";

/** x y as the unrounded sum of two floats (Dekker). */
function product(x, y) {
  const xh = x * 134217729 - (x * 134217729 - x);
  const yh = y * 134217729 - (y * 134217729 - y);
  const xl = x - xh;
  const yl = y - yh;
  return [x * y, xh * yh - x * y + xh * yl + xl * yh + xl * yl];
}

/** a = epsilon/psi - psi/2 as the unrounded sum of two floats. */
function offset(psi, epsilon) {
  const [square, squareRest] = product(psi, psi);
  const top = 2 * epsilon - square;
  const back = top - 2 * epsilon;
  const topRest = 2 * epsilon - (top - back) - (square + back) - squareRest;
  const a = (top + topRest) / (2 * psi);
  const [p, pRest] = product(a, 2 * psi);
  return [a, (top - p - pRest + topRest) / (2 * psi)];
}

/** Where (psi, epsilon) lies: log phi(a), and D with phi(a) D = delta, or 1 - delta in the complement. */
function point(psi, epsilon) {
  const [a, rest] = offset(psi, epsilon);
  const [square, squareRest] = product(a, a);
  const m = epsilon / psi;
  const complement = a < -0.3 && psi > 1.25;
  const D = complement ? mills(-a) + mills(m + 0.5 * psi) : millsDifference(m, psi);
  return { a, D, complement, square: 0.5 * square, rest: 0.5 * squareRest + a * rest, b: m + 0.5 * psi };
}

/** delta at epsilon; a negative epsilon belongs to the tangent with slope below one. */
export function deltaFromPsi(psi, epsilon) {
  if (epsilon < 0) return -Math.expm1(epsilon) + Math.exp(epsilon) * deltaFromPsi(psi, -epsilon);
  if (!(psi > 0)) return 0;
  const { D, complement, square, rest } = point(psi, epsilon);
  const mass = ((Math.exp(-square) * (1 - rest)) / SQRT_2PI) * D;
  return complement ? 1 - mass : mass;
}

/** log delta at epsilon >= 0, without underflow. */
export function logDeltaFromPsi(psi, epsilon) {
  if (!(psi > 0)) return -Infinity;
  const { D, complement, square, rest } = point(psi, epsilon);
  if (complement) return Math.log1p(-((Math.exp(-square) * (1 - rest)) / SQRT_2PI) * D);
  return Math.log(D / SQRT_2PI) - rest - square;
}

/** Root of a decreasing function by Newton inside a bracket; `step(x)` gives the value and its slope. */
function descend(step, low, high, start) {
  let x = start > low && start < high ? start : 0.5 * (low + high);
  for (let i = 0; i < 200; i += 1) {
    const [value, slope] = step(x);
    if (value > 0) low = x;
    else high = x;
    let next = x - value / slope;
    if (!(next > low && next < high)) next = 0.5 * (low + high);
    if (Math.abs(next - x) <= 1e-15 * Math.abs(x) || next === x) return next;
    x = next;
  }
  return x;
}

/** log delta - goal, or the same seen from 1 - delta where delta is large; and the slope in epsilon. */
function gap(psi, epsilon, delta) {
  const { D, complement, square, rest, b } = point(psi, epsilon);
  const log = Math.log(D / SQRT_2PI) - rest - square;
  if (complement) return [Math.log1p(-delta) - log, -mills(b) / D];
  return [log - Math.log(delta), -mills(b) / D];
}

/** Smallest epsilon with (epsilon, delta)-DP. */
export function epsilonFromPsi(psi, delta) {
  if (!(psi > 0) || delta >= deltaFromPsi(psi, 0)) return 0;
  if (!(delta > 0)) return Infinity;
  let high = psi * (0.5 * psi + Math.max(-quantile(Math.min(delta, 0.5)), 1));
  while (deltaFromPsi(psi, high) > delta) high *= 2;
  return descend((epsilon) => gap(psi, epsilon, delta), 0, high, 0.9 * high);
}

/** Largest psi with (epsilon, delta)-DP. */
export function psiFromEpsilonDelta(epsilon, delta) {
  if (!(delta > 0)) return 0;
  if (!(delta < 1) || epsilon === Infinity) return Infinity;
  let high = 1;
  while (deltaFromPsi(high, epsilon) < delta) high *= 2;
  let low = high / 2;
  while (deltaFromPsi(low, epsilon) > delta) low /= 2;
  const step = (psi) => {
    const { D, complement, square, rest } = point(psi, epsilon);
    const log = Math.log(D / SQRT_2PI) - rest - square;
    return complement ? [log - Math.log1p(-delta), -1 / D] : [Math.log(delta) - log, -1 / D];
  };
  return descend(step, low, high, 0.5 * (low + high));
}
