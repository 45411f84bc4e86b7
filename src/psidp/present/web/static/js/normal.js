// The standard normal: Mills ratio, tail, density, quantile. The polynomials are those of psidp/maths/mills.py,
// and tests/present/test_explorer_kernels.py holds the two together to 1e-12.

export const SQRT_2PI = 2.5066282746310002;

const MILLS = [
  7.1459286679478146e-09, -9.562416579419204e-09, -8.334439782839275e-08, 4.442603253685984e-08,
  4.768683648117597e-07, 1.260252039585072e-07, -1.7382006088739798e-06, -2.1296259504912865e-06,
  4.036582134256308e-06, 1.2556232760133224e-05, -1.9942337782720876e-06, -5.396521258817954e-05,
  -4.213393088386537e-05, 0.00020752618364085603, 0.00033298457068503903, -0.0008557379534967888,
  -0.001929121724288638, 0.004690756545490368, 0.009572082732820805, -0.03714163870811446,
  -0.015125015098798662, 0.3226775062521282, -0.9737247696625603, 1.7731541493774758, -2.293602539846009,
  2.2118286241612264,
];
const RATIO = [
  1.605374653283998e-10, 5.388853713981537e-10, 1.0174721260905713e-09, 4.965839222786877e-09,
  1.5046361341087172e-08, 5.4668569213388315e-08, 3.6140236929323334e-07, 4.288714347547059e-07,
  6.959430216662349e-06, 3.178038028649189e-05, -2.755121109360667e-05, 0.002578702418549879,
  7.673384315637471e-05, 0.9973325084674064,
];
const TERMS = 23;

function horner(coefficients, x) {
  let y = 0;
  for (const c of coefficients) y = y * x + c;
  return y;
}

/** R(x) = Phi(-x)/phi(x) for x >= -0.625. */
export function mills(x) {
  const bounded = Math.min(x, 1e300);
  return horner(MILLS, (bounded - 2.75) / (bounded + 4)) / (bounded + 4);
}

/** R(m - psi/2) - R(m + psi/2) without cancellation, for m - psi/2 >= -0.625. */
export function millsDifference(m, psi) {
  const a = m - 0.5 * psi;
  const b = m + 0.5 * psi;
  if (m > 1e3) {
    const u = 1 / a;
    const v = 1 / b;
    return psi * u * v * (1 - (u * u + u * v + v * v));
  }
  return psi <= 1.25 || m >= 2.5 * psi ? midpoint(m, psi) : mills(Math.max(a, -0.625)) - mills(b);
}

function midpoint(m, psi) {
  const w = Math.sqrt(m * m + (4 * TERMS + 2));
  const z = 0.25 * psi * psi;
  let upper = horner(RATIO, (2 * m) / w - 1) * (2 / (m + w));
  let lower = 1;
  let total = upper;
  for (let k = TERMS - 1; k > 1; k -= 2) {
    upper = upper * (k + 1) + m * lower;
    lower = lower * k + m * upper;
    total = total * z + upper;
  }
  return (psi * total) / (m * lower + upper);
}

/** phi(x). */
export function density(x) {
  return Math.exp(-0.5 * x * x) / SQRT_2PI;
}

/** Phi(-x), the mass above x. */
export function tail(x) {
  const small = density(x) * mills(Math.abs(x));
  return x >= 0 ? small : 1 - small;
}

/** Phi^-1(p). */
export function quantile(p) {
  if (!(p > 0 && p < 1)) return p === 0 ? -Infinity : p === 1 ? Infinity : NaN;
  if (Math.abs(p - 0.5) < 0.3) return central(p - 0.5);
  return p < 0.5 ? -upperQuantile(p) : upperQuantile(1 - p);
}

/** z with Phi(z) - 1/2 = q, by Newton on the series phi(z) (z + z^3/3 + z^5/15 + ...), whose terms share a sign. */
function central(q) {
  let z = q * SQRT_2PI;
  for (let i = 0; i < 6; i += 1) {
    let term = z;
    let sum = z;
    for (let k = 3; k < 60; k += 2) {
      term *= (z * z) / k;
      sum += term;
    }
    z -= sum - q / density(z);
  }
  return z;
}

/** x > 0 with Phi(-x) = p, from Abramowitz and Stegun 26.2.23 by Newton on log Phi(-x). */
function upperQuantile(p) {
  const t = Math.sqrt(-2 * Math.log(p));
  let x = t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
  const goal = Math.log(p);
  for (let i = 0; i < 4; i += 1) {
    const ratio = mills(x);
    x += (Math.log(ratio / SQRT_2PI) - 0.5 * x * x - goal) * ratio;
  }
  return x;
}
