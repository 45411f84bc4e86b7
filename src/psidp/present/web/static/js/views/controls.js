// The two-way inputs: psi, and three pairs. Of each pair one member is locked: it stays when psi moves.

import { shape } from "../chart.js";
import { plain, share, shown, typed } from "../digits.js";
import { element, say } from "../page.js";
import { epsilonFromPsi, psiFromEpsilonDelta } from "../profile.js";
import { quantile } from "../normal.js";
import { LOCKS, range } from "../state.js";

const FIELDS = {
  psi: ["sensitivity index Delta/sigma", "(0, inf)", (v) => v > 0],
  sensitivity: ["L2 sensitivity of the query", "(0, inf)", (v) => v > 0],
  sigma: ["standard deviation of the noise", "(0, inf)", (v) => v > 0],
  epsilon: ["privacy loss bound", "[0, inf)", (v) => v >= 0],
  delta: ["probability slack of (epsilon, delta)-DP", "(0, 1)", (v) => v > 0 && v < 1],
  tpr: ["true positive rate of the attack", "(0, 1), such as 0.02 or 2 %", (v) => v > 0 && v < 1],
  fpr: ["false positive rate of the attack", "(0, 1), such as 0.01 or 1 %", (v) => v > 0 && v < 1],
};
const SHARES = ["tpr", "fpr"];
const PAIRED = ["epsilon", "delta"];
const SLIDER = 6;

export class Controls {
  constructor(change) {
    this.change = change;
    this.typing = null;
    this.said = {};
    element("controls").addEventListener("submit", (event) => event.preventDefault());
    element("translate").addEventListener("submit", (event) => event.preventDefault());
    element("psi-range").addEventListener("input", (event) => change({ psi: Number(event.target.value) }));
    for (const name of Object.keys(FIELDS)) {
      const field = element(name);
      field.setAttribute("aria-describedby", refusalOf(name));
      field.addEventListener("input", () => this.typed(name, field.value));
      field.addEventListener("blur", () => this.left(name));
      field.addEventListener("keydown", (event) => this.nudge(event, name));
    }
    element("padlock-closed").replaceChildren(padlock(true));
    element("padlock-open").replaceChildren(padlock(false));
    for (const [lock, names] of Object.entries(LOCKS)) {
      for (const name of names) element(`lock-${name}`).addEventListener("click", () => this.lock(lock, name));
    }
  }

  /** What was typed, where it is in its domain; else the refusal, and nothing moves. */
  typed(name, text) {
    this.typing = name;
    const [meaning, domain, allowed] = FIELDS[name];
    const value = typed(text, SHARES.includes(name));
    const fine = Number.isFinite(value) && allowed(value);
    const said = text.trim().slice(0, 40) || "nothing";
    const two = Number.isNaN(value) && /\d,\d/.test(text) ? " A comma there may mean two things: write a point, or no comma." : "";
    this.refuse(name, fine ? "" : `${called(name)} (${meaning}) must be in ${domain}, got ${called(name)}=${said}.${two}`);
    if (fine) this.lead(name, value);
  }

  refuse(name, sentence) {
    element(name).setAttribute("aria-invalid", String(sentence !== ""));
    element(refusalOf(name)).textContent = sentence;
  }

  /**
   * The open member of a pair changes psi, the locked one stays. The locked one changes its partner and psi stays, unless
   * the partner was typed too, since psi was last set otherwise: then psi follows both.
   */
  lead(name, value) {
    const now = this.now;
    const lock = lockOf(name);
    if (!lock) return this.psi(name, value);
    const [partner] = LOCKS[lock].filter((other) => other !== name);
    const values = this.typedSince(lock);
    const locked = { pair: now.pair, rates: now.locked, noise: now.noise }[lock] === name;
    const patch = locked ? kept(name, value) : {};
    if (locked && !this.showable(name, value)) return undefined;
    if (locked && !(partner in values)) {
      this.said[lock] = { psi: now.psi, values: { [name]: value } };
      return this.change(patch);
    }
    const psi = psiOf(lock, now, { ...values, [name]: value });
    const [low, guess] = [name === "tpr" ? "above FPR" : "below TPR", "an attack that guesses has TPR = FPR"];
    if (!this.psi(name, psi, `${called(name)} must be ${low}: ${guess}.`, patch)) return undefined;
    this.said[lock] = { psi, values: { ...values, [name]: value } };
    return undefined;
  }

  /** What was typed into a pair since psi, or the pair, was last set otherwise. */
  typedSince(lock) {
    const { psi, values } = this.said[lock] ?? { psi: NaN, values: {} };
    const now = valuesOf(this.now);
    const stands = psi === this.now.psi && Object.entries(values).every(([name, value]) => Math.abs(now[name] - value) <= 1e-9 * value);
    return stands ? values : {};
  }

  /** psi, where the page can show it, with what else changes; `low` says why there is none below 0. */
  psi(name, psi, low = "", patch = {}) {
    const [least, most] = range("psi");
    if (psi >= least && psi <= most) {
      this.change({ ...patch, psi });
      return true;
    }
    const limits = `psi (sensitivity index Delta/sigma) must be in [${least}, ${most}] on this page, got psi=${plain(psi, 3)}.`;
    this.refuse(name, SHARES.includes(name) && !(psi > 0) ? low : limits);
    return false;
  }

  /** Whether the page can show this value of a locked member; else it says so. */
  showable(name, value) {
    if (SHARES.includes(name)) return true;
    const [least, most] = range(name);
    if (value >= least && value <= most) return true;
    this.refuse(name, `${name} (${FIELDS[name][0]}) must be in [${least}, ${most}] on this page, got ${name}=${plain(value, 3)}.`);
    return false;
  }

  /** Lock one member of a pair where it is; the other opens. */
  lock(lock, name) {
    const { threshold, psi } = this.now;
    const kept = { fpr: { threshold }, tpr: { above: psi - threshold } }[name] ?? { [name]: this.now[name] };
    this.change({ ...kept, [lock]: name });
  }

  nudge(event, name) {
    const direction = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (!direction) return;
    event.preventDefault();
    const factor = (event.shiftKey ? 1.1 : 1.01) ** direction;
    const value = Math.max(typed(event.target.value, SHARES.includes(name)) || 0.01, 1e-12) * factor;
    this.typed(name, SHARES.includes(name) ? share(Math.min(value, 0.999)) : plain(value));
    this.typing = null;
    this.render(this.now);
  }

  left(name) {
    this.typing = null;
    this.refuse(name, "");
    this.render(this.now);
  }

  render(model) {
    this.now = model;
    const { psi } = model;
    for (const [name, value] of Object.entries({ psi, ...valuesOf(model) })) {
      const field = element(name);
      const words = SHARES.includes(name) ? share(value) : PAIRED.includes(name) ? shown(value) : plain(value);
      if (this.typing !== name && field.value !== words) field.value = words;
    }
    this.locks(model);
    const slider = element("psi-range");
    slider.value = String(psi);
    slider.setAttribute("aria-valuetext", `psi ${plain(psi, 4)}`);
    say("psi-beyond", psi > SLIDER ? `ψ = ${plain(psi, 4)} lies beyond the slider's end, ${SLIDER}` : "");
    say("pair-note", this.edge(model));
  }

  /** What a reader would misread in the pair. */
  edge({ loose, delta, advantage, psi, pair, epsilon }) {
    if (loose) return `δ = ${plain(delta, 3)} is more than this ψ needs even at ε = 0 (${plain(advantage, 3)}).`;
    if (pair === "epsilon" && !(delta > 0)) return `δ at ε = ${plain(epsilon, 4)} is below 1e-308: too small to be written.`;
    if (pair === "epsilon" && epsilonFromPsi(psi, delta) === 0 && epsilon > 0) return `δ cannot be told from 0 at this ψ.`;
    return "";
  }

  locks(model) {
    const chosen = { pair: model.pair, rates: model.locked, noise: model.noise };
    for (const [lock, names] of Object.entries(LOCKS)) {
      for (const name of names) {
        const on = chosen[lock] === name;
        const button = element(`lock-${name}`);
        if (button.getAttribute("aria-pressed") === String(on)) continue;
        button.setAttribute("aria-pressed", String(on));
        button.replaceChildren(padlock(on));
        button.title = on ? `${called(name)} stays when ψ moves` : `lock ${called(name)}: let the other one follow ψ`;
      }
    }
  }
}

/** The name of a quantity in a sentence. */
function called(name) {
  return SHARES.includes(name) ? name.toUpperCase() : name;
}

/** The pair that a field belongs to. */
function lockOf(name) {
  return Object.keys(LOCKS).find((lock) => LOCKS[lock].includes(name));
}

/** Where a field's refusal stands: beside it. */
function refusalOf(name) {
  return lockOf(name) ? `refusal-${lockOf(name)}` : "refusal";
}

/** The members of all pairs, as the page shows them. */
function valuesOf({ sensitivity, sigma, epsilon, delta, rates }) {
  return { sensitivity, sigma, epsilon, delta, tpr: rates.tpr, fpr: rates.fpr };
}

/** The psi that a pair says: what was typed of it, and the rest as it is now. */
function psiOf(lock, now, { tpr, fpr, ...said }) {
  const { sensitivity, sigma, epsilon, delta } = { ...valuesOf(now), ...said };
  if (lock === "noise") return sensitivity / sigma;
  if (lock === "pair") return psiFromEpsilonDelta(epsilon, delta);
  return (tpr === undefined ? now.psi - now.threshold : quantile(tpr)) + (fpr === undefined ? now.threshold : -quantile(fpr));
}

/** The change that gives a locked member this value. */
function kept(name, value) {
  if (name === "fpr") return { threshold: -quantile(value) };
  return name === "tpr" ? { above: quantile(value) } : { [name]: value };
}

/** A closed or an open padlock, drawn: not every machine has a letter for it. */
function padlock(closed) {
  const icon = shape("svg", { viewBox: "0 0 16 16", width: 16, height: 16, class: "padlock", "aria-hidden": "true" });
  shape("rect", { x: 3, y: 7, width: 10, height: 7, rx: 1.5 }, icon);
  shape("path", { d: closed ? "M5 7V5a3 3 0 0 1 6 0V7" : "M9 7V4.5a3 3 0 0 1 6 0V6" }, icon);
  return icon;
}
