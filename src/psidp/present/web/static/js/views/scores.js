// An attack's scores over the promised ROC curve, and what the library's audit makes of them.

import { ask, element, quoted, say, served } from "../page.js";
import { up, down } from "../digits.js";

const MOST = 50000;

/** Scores of members and of others from CSV text with the columns score and member; an Error says what is wrong. */
export function parseScores(text) {
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== "");
  const head = (lines[0] ?? "").split(/[,;\t]/).map((word) => word.trim().toLowerCase().replace(/^"|"$/g, ""));
  const [at, who] = [head.indexOf("score"), head.indexOf("member")];
  if (at < 0 || who < 0) throw new Error("the first line must name the columns score and member.");
  if (lines.length - 1 > MOST) throw new Error(`the file must have at most ${MOST} rows, got ${lines.length - 1}.`);
  const found = { in_scores: [], out_scores: [] };
  lines.slice(1).forEach((line, i) => {
    const cells = line.split(/[,;\t]/).map((word) => word.trim());
    const score = cells[at] === "" ? NaN : Number(cells[at]);
    const member = { 1: "in_scores", true: "in_scores", 0: "out_scores", false: "out_scores" }[(cells[who] ?? "").toLowerCase()];
    if (!Number.isFinite(score) || !member) throw new Error(`row ${i + 2} must hold a number and 1 or 0, got "${line.slice(0, 40)}".`);
    found[member].push(score);
  });
  if (!found.in_scores.length || !found.out_scores.length) throw new Error("there must be scores of members and of others.");
  return found;
}

/** The empirical ROC as steps, at most 600 of them, and its area. */
export function empiricalRoc({ in_scores: inside, out_scores: outside }) {
  const all = [...inside.map((s) => [s, 1]), ...outside.map((s) => [s, 0])].sort((a, b) => b[0] - a[0]);
  const steps = [[0, 0]];
  let [tp, fp, area] = [0, 0, 0];
  const every = Math.max(1, Math.floor(all.length / 600));
  for (let i = 0; i < all.length; ) {
    const [tp0, fp0] = [tp, fp];
    const score = all[i][0];
    while (i < all.length && all[i][0] === score) {
      if (all[i][1]) tp += 1;
      else fp += 1;
      i += 1;
    }
    area += ((fp - fp0) * (tp + tp0)) / 2;
    if (i % every === 0 || i === all.length) steps.push([fp / outside.length, tp / inside.length]);
  }
  return { steps, auc: area / (inside.length * outside.length), members: inside.length, others: outside.length };
}

export class Scores {
  constructor(show) {
    this.show = show;
    const drop = element("drop");
    element("scores").addEventListener("change", (event) => this.take(event.target.files[0]));
    element("scores-clear").addEventListener("click", () => this.clear());
    drop.addEventListener("dragover", (event) => {
      event.preventDefault();
      drop.classList.add("over");
    });
    drop.addEventListener("dragleave", () => drop.classList.remove("over"));
    drop.addEventListener("drop", (event) => {
      event.preventDefault();
      drop.classList.remove("over");
      this.take(event.dataTransfer.files[0]);
    });
  }

  async take(file) {
    if (!file) return;
    try {
      if (file.size > 4e6) throw new Error(`the file must have at most 4 MB, got ${(file.size / 1e6).toFixed(1)} MB.`);
      const found = parseScores(await file.text());
      this.overlay = { ...empiricalRoc(found), name: file.name, id: performance.now() };
      element("scores-clear").disabled = false;
      this.show(this.overlay);
      this.tell();
      if (served()) await this.judge(found);
    } catch (refusal) {
      this.clear();
      say("scores-note", `${file.name}: ${refusal.message}`);
    }
  }

  async judge(found) {
    const overlay = this.overlay;
    overlay.audit = await ask("audit", { ...found, confidence: 0.95 });
    if (this.overlay === overlay) this.tell();
  }

  clear() {
    this.overlay = null;
    element("scores").value = "";
    element("scores-clear").disabled = true;
    element("scores-note").classList.remove("bad");
    say("scores-note", "");
    this.show(null);
  }

  /** AUC against the promise, and the audited psi where the library answered. */
  tell() {
    const { auc, members, others, audit, name } = this.overlay;
    const seen = `${name}: ${members.toLocaleString("en-US")} members, ${others.toLocaleString("en-US")} others, AUC ${auc.toFixed(4)} (promise: at most ${up(this.now.auc)}). `;
    const broken = audit && audit.psi > this.now.psi;
    element("scores-note").classList.toggle("bad", Boolean(broken));
    let verdict = served() ? "" : `For the audited bound on psi: **psidp audit ${quoted(name)} --claimed-psi ${down(this.now.psi, 12)}**, or psidp explore.`;
    if (audit) verdict = `With 95 % confidence psi is at least **${down(audit.psi)}**: ${broken ? "more than promised. The promise is broken." : "no contradiction to the promise."}`;
    say("scores-note", seen + verdict);
  }

  render(model) {
    this.now = model;
    if (this.overlay) this.tell();
  }
}
