// Scales: from a quantity to a place between 0 and 1 and back, with the ticks that people expect.

import { quantile, tail } from "./normal.js";

/** Even spacing; about `count` round ticks. */
export function linear(low, high, count = 6) {
  const step = roundStep((high - low) / count);
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i += 1) {
    const value = i * step;
    ticks.push({ value, text: String(Number(value.toPrecision(6))) });
  }
  return { key: `linear ${low} ${high}`, low, high, to: (v) => (v - low) / (high - low), from: (t) => low + t * (high - low), ticks };
}

/** Powers of ten. */
export function log10(low, high, every = 2) {
  const a = Math.log10(low);
  const b = Math.log10(high);
  const ticks = [];
  for (let e = Math.ceil(a); e <= b; e += 1) {
    if (e % every === 0) ticks.push({ value: 10 ** e, text: e === 0 ? "1" : `1e${e}` });
  }
  return { key: `log ${low} ${high}`, to: (v) => (Math.log10(v) - a) / (b - a), from: (t) => 10 ** (a + t * (b - a)), ticks };
}

/** Rates on the scale of the normal quantile. */
export function probit(low, high) {
  const a = quantile(low);
  const b = quantile(high);
  const values = [0.0001, 0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999];
  const ticks = values.filter((v) => v >= low && v <= high).map((value) => ({ value, text: String(value) }));
  return { key: `probit ${low} ${high}`, to: (v) => (quantile(v) - a) / (b - a), from: (t) => tail(-(a + t * (b - a))), ticks };
}

/** 1, 2 or 5 times a power of ten, at or above `rough`. */
export function roundStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  for (const factor of [1, 2, 5]) {
    if (factor * power >= rough * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}
