// What the page shows, as one flat value; the address holds it, so that a link shows what you saw.

export const PINS = 4;
export const RELEASES = 6;

const RANGES = {
  psi: [1e-3, 30], sensitivity: [1e-12, 1e12], sigma: [1e-14, 1e15], threshold: [-40, 80], above: [-40, 80],
  delta: [1e-300, 0.999999], epsilon: [0, 1e4], prior: [1e-3, 0.9], alpha: [1.01, 64],
  noise_multiplier: [1e-3, 1e6], sampling_rate: [0, 1], steps: [1, 1e9], run_delta: [1e-300, 1],
  bands: [1, 1e6], epochs: [1, 1e6],
};

/** Kinds of training runs: independent noise, correlated noise with cyclic sampling, correlated noise in a fixed order. */
export const RUNS = ["plain", "bands", "fixed"];

/** Pairs of which one member is locked: it stays when psi moves, and the other follows. */
export const LOCKS = { pair: ["delta", "epsilon"], rates: ["fpr", "tpr"], noise: ["sensitivity", "sigma"] };

export const DEFAULTS = Object.freeze({
  psi: 1, pair: "delta", delta: 1e-5, epsilon: 1, rates: "fpr", threshold: 2.3263478740408408, above: 0,
  noise: "sensitivity", sensitivity: 1, sigma: 1, prior: 0.1, alpha: 5, axes: "linear", unit: "person",
  releases: [0.5, 0.5], pins: [], noise_multiplier: 1, sampling_rate: 0.01, steps: 1000, run_delta: 1e-5,
  run: "plain", bands: 8, epochs: 1,
});

/** What the page can show of `name`: its least and its largest value. */
export function range(name) {
  return RANGES[name];
}

/** `value` inside what the page can show of `name`, or null where it is no number. */
export function within(name, value) {
  const [low, high] = RANGES[name];
  return Number.isFinite(value) ? Math.min(Math.max(value, low), high) : null;
}

/** The state in an address, with defaults for what is absent or is nonsense. */
export function readState(hash) {
  const words = new URLSearchParams(hash.replace(/^#/, ""));
  const state = { ...DEFAULTS, pins: [], releases: [...DEFAULTS.releases] };
  const number = (name, word) => (word === "" ? null : within(name, Number(word)));
  for (const name of Object.keys(RANGES)) {
    const value = words.has(name) ? number(name, words.get(name)) : null;
    if (value !== null) state[name] = value;
  }
  for (const [lock, names] of Object.entries(LOCKS)) {
    if (names.includes(words.get(lock))) state[lock] = words.get(lock);
  }
  if (words.get("axes") === "probit") state.axes = "probit";
  if (RUNS.includes(words.get("run"))) state.run = words.get("run");
  const unit = (words.get("unit") ?? "").trim().slice(0, 40);
  if (unit) state.unit = unit;
  for (const word of words.getAll("pin").slice(0, PINS)) {
    const [psi, ...name] = word.split(":");
    const found = number("psi", psi);
    if (found !== null) state.pins.push({ psi: found, name: name.join(":").slice(0, 30) });
  }
  const releases = words.getAll("release").slice(0, RELEASES).map((word) => number("psi", word)).filter((psi) => psi !== null);
  if (releases.length > 1) state.releases = releases;
  return state;
}

/** The address of a state: only what differs from the defaults, with every digit. */
export function writeState(state) {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) {
    if (!Array.isArray(value) && value !== DEFAULTS[name]) words.set(name, String(value));
  }
  for (const pin of state.pins) words.append("pin", `${pin.psi}:${pin.name}`);
  const usual = String(state.releases) === String(DEFAULTS.releases);
  for (const psi of usual ? [] : state.releases) words.append("release", String(psi));
  return words.toString();
}
