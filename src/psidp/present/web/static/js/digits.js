// Numbers as people read them, rounded to the private side, digit for digit as psidp/present/formatting.py writes them.

/** The fourteen significant digits that a person means, and the exponent of the first. */
function decimal(value) {
  const [mantissa, exponent] = value.toExponential(13).split("e");
  return { digits: mantissa.replace(".", ""), exponent: Number(exponent) };
}

function written(value, places, raise) {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
  if (!(value > 0)) return value === 0 ? "0" : `-${written(-value, places, !raise)}`;
  let { digits, exponent } = decimal(value);
  const more = raise && /[1-9]/.test(digits.slice(places)) ? 1 : 0;
  let head = String(Number(digits.slice(0, places)) + more);
  if (head.length > places) exponent += 1;
  head = head.replace(/0+$/, "");
  if (exponent < -4 || exponent >= 6) return `${head[0]}${head.length > 1 ? `.${head.slice(1)}` : ""}e${exponent}`;
  if (exponent < 0) return `0.${"0".repeat(-exponent - 1)}${head}`;
  const padded = head.padEnd(exponent + 1, "0");
  return padded.length > exponent + 1 ? `${padded.slice(0, exponent + 1)}.${padded.slice(exponent + 1)}` : padded;
}

/** `value` with so many significant digits, never below it. */
export function up(value, places = 4) {
  return written(value, places, true);
}

/** `value` with so many significant digits, never above it. */
export function down(value, places = 4) {
  return written(value, places, false);
}

/** A rate as a count of `of` people, never below it. */
export function perThousand(rate, of = 1000) {
  const { digits, exponent } = decimal(rate);
  const power = exponent - 13;
  const scaled = BigInt(digits) * BigInt(of);
  const unit = 10n ** BigInt(-power);
  return ((scaled + unit - 1n) / unit).toLocaleString("en-US");
}

/** A plain number for an input field: six digits, rounded to nearest. */
export function plain(value, places = 6) {
  if (value === 0) return "0";
  const rounded = Number(value.toPrecision(places));
  return Math.abs(rounded) < 1e-4 || Math.abs(rounded) >= 1e6 ? rounded.toExponential().replace("e+", "e") : String(rounded);
}

/** epsilon or delta, the same wherever it is read: six digits, never below it; a typed number comes back as it was. */
export function shown(value) {
  const near = plain(value);
  return Math.abs(Number(near) - value) <= 1e-10 * Math.abs(value) ? near : up(value, 6);
}

/** A share in per cent, for reading only; the order of two shares is never turned round by their digits. */
export function percent(rate) {
  const value = 100 * rate;
  const rest = 100 * (1 - rate);
  if (value > 0 && value < 0.01) return `${plain(value, 2)} %`;
  if (rest > 0 && rest < 1e-6) return "over 99.999999 %";
  if (rest > 0 && rest < 0.1) return `${Number((100 - Number(rest.toPrecision(2))).toFixed(9))} %`;
  return `${value.toFixed(value < 10 ? 2 : 1)} %`;
}

/** A share as people type it: in per cent, with as many digits as it needs. */
export function share(rate) {
  const rest = 100 * (1 - rate);
  if (rest > 0 && rest < 0.1) return `${Number((100 - Number(rest.toPrecision(3))).toFixed(12))} %`;
  return `${plain(100 * rate, 4)} %`;
}

/** The number that somebody typed: 1.5 or 1,5 or 1e-5, and 2 % where `shares` says so; NaN where it may mean two things. */
export function typed(text, shares = false) {
  const words = text.trim().replace("−", "-");
  const per = shares && words.endsWith("%") ? 100 : 1;
  const number = per === 100 ? words.slice(0, -1).trim() : words;
  const point = /^[+-]?(0|\d{4,}|\d{1,3}(?=,(\d{1,2}|\d{4,})(e|$))),\d+(e[+-]?\d+)?$/i.test(number) ? number.replace(",", ".") : number;
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(point) ? Number(point) / per : NaN;
}
