// An attack's scores over the promised ROC curve, and what the library's audit makes of them.

import { ask, element, quoted, say, served } from "../page.js";
import { up, down, typed } from "../digits.js";

const MOST = 50000;
const FEW = 100;

/** Scores of members and of others from CSV text with the columns score and member; an Error says what is wrong. */
export function parseScores(text) {
  const lines = text.replace(/^\ufeff/, "").split(/\r?\n/).filter((line) => line.trim() !== "");
  const between = [";", "\t", ","].find((sign) => (lines[0] ?? "").includes(sign)) ?? ",";
  const cells = (line) => line.split(between).map((word) => word.trim().replace(/^"|"$/g, ""));
  const head = cells(lines[0] ?? "").map((word) => word.toLowerCase());
  const [at, who] = [head.indexOf("score"), head.indexOf("member")];
  if (at < 0 || who < 0) throw new Error("the first line must name the columns score and member.");
  if (lines.length - 1 > MOST) throw new Error(`the file must have at most ${MOST} rows, got ${lines.length - 1}.`);
  const found = { in_scores: [], out_scores: [] };
  lines.slice(1).forEach((line, i) => {
    const row = cells(line);
    const score = row.length === head.length ? typed(row[at]) : NaN;
    const member = { 1: "in_scores", true: "in_scores", 0: "out_scores", false: "out_scores" }[(row[who] ?? "").toLowerCase()];
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
    this.colour("");
    say("scores-note", "");
    this.show(null);
  }

  /** The verdict in words and in colour, with the area under the curve, and a warning where the file is small. */
  tell() {
    const { auc, members, others, audit, name } = this.overlay;
    const { psi, auc: promised } = this.now;
    const few = Math.min(members, others) < FEW ? ` **Small file**: with fewer than ${FEW} scores on a side even a large leak would not show; take 1,000 or more.` : "";
    const seen = `${name}: ${members.toLocaleString("en-US")} members, ${others.toLocaleString("en-US")} others, AUC ${auc.toFixed(4)} (promise: at most ${up(promised)}). `;
    const over = auc > promised;
    this.colour(audit ? (audit.psi > psi ? "bad" : few ? "warn" : "good") : over || few ? "warn" : "");
    if (audit) return say("scores-note", `${seen}With 95 % confidence psi is at least **${down(audit.psi)}**: ${audit.psi > psi ? "more than promised. **The promise is broken.**" : "no contradiction to the promise. That is no proof that it is kept: a better attack may find more."}${few}`);
    const guess = over ? "The attack does better than the promise allows on average; chance may be the reason. " : "The attack stays below the promise. ";
    const how = served() ? "" : `For the audited bound on psi: **psidp audit ${quoted(name)} --claimed-psi ${down(psi, 12)}**, or psidp explore.`;
    return say("scores-note", seen + guess + how + few);
  }

  colour(kind) {
    for (const each of ["bad", "warn", "good"]) element("scores-note").classList.toggle(each, each === kind);
  }

  render(model) {
    this.now = model;
    if (this.overlay) this.tell();
  }
}
