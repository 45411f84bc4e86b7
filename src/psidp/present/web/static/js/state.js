// What the page shows, as one flat value; the address holds it, so that a link shows what you saw.

export const PINS = 4;

const RANGES = {
  psi: [1e-3, 30], sensitivity: [1e-12, 1e12], threshold: [-40, 80], prior: [1e-3, 0.9], alpha: [1.01, 64],
  noise_multiplier: [1e-3, 1e6], sampling_rate: [0, 1], steps: [1, 1e9], run_delta: [1e-300, 1],
};

export const DEFAULTS = Object.freeze({
  psi: 1, sensitivity: 1, threshold: 1.5, prior: 0.1, alpha: 5, axes: "linear", unit: "person", pins: [],
  noise_multiplier: 1, sampling_rate: 0.01, steps: 1000, run_delta: 1e-5,
});

/** `value` inside what the page can show of `name`, or null where it is no number. */
export function within(name, value) {
  const [low, high] = RANGES[name];
  return Number.isFinite(value) ? Math.min(Math.max(value, low), high) : null;
}

/** The state in an address, with defaults for what is absent or is nonsense. */
export function readState(hash) {
  const words = new URLSearchParams(hash.replace(/^#/, ""));
  const state = { ...DEFAULTS, pins: [] };
  for (const name of Object.keys(RANGES)) {
    const value = words.has(name) && words.get(name) !== "" ? within(name, Number(words.get(name))) : null;
    if (value !== null) state[name] = value;
  }
  if (words.get("axes") === "probit") state.axes = "probit";
  const unit = (words.get("unit") ?? "").trim().slice(0, 40);
  if (unit) state.unit = unit;
  for (const word of words.getAll("pin").slice(0, PINS)) {
    const [number, ...name] = word.split(":");
    const psi = number === "" ? null : within("psi", Number(number));
    if (psi !== null) state.pins.push({ psi, name: name.join(":").slice(0, 30) });
  }
  return state;
}

/** The address of a state: only what differs from the defaults, with every digit. */
export function writeState(state) {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) {
    if (name !== "pins" && value !== DEFAULTS[name]) words.set(name, String(value));
  }
  for (const pin of state.pins) words.append("pin", `${pin.psi}:${pin.name}`);
  return words.toString();
}
