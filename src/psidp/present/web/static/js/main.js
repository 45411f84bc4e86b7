// The page: one state, one model per frame, every view follows.

import { DEFAULTS, readState, within, writeState } from "./state.js";
import { derive } from "./model.js";
import { element, say } from "./page.js";
import { plain } from "./digits.js";
import { sentences } from "./words.js";
import { followTheme } from "./theme.js";
import { Composition } from "./views/composition.js";
import { Controls } from "./views/controls.js";
import { Densities } from "./views/densities.js";
import { Deployments } from "./views/deployments.js";
import { Game } from "./views/game.js";
import { People } from "./views/people.js";
import { Pins } from "./views/pins.js";
import { Profile } from "./views/profile.js";
import { Reading } from "./views/reading.js";
import { Renyi } from "./views/renyi.js";
import { Roc } from "./views/roc.js";
import { Scores } from "./views/scores.js";
import { Takeaway } from "./views/takeaway.js";
import { Training } from "./views/training.js";

const original = `<!doctype html>\n${document.documentElement.outerHTML}\n`;
let state = readState(location.hash || (document.documentElement.dataset.state ?? ""));
let scores = null;
let waiting = false;
let saving = 0;
const shownFirst = state;

/** Change the state; nonsense is kept inside what the page can show, and the next frame shows it. */
function change(patch) {
  const next = { ...state };
  for (const [name, value] of Object.entries(patch)) {
    const kept = typeof value === "number" ? within(name, value) : value;
    if (kept !== null) next[name] = kept;
  }
  state = next;
  schedule();
}

function schedule() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(catchUp);
}

/** Show what has changed and is not shown yet. */
function catchUp() {
  if (waiting) render();
}

const charts = {
  densities: new Densities(element("densities"), change),
  roc: new Roc(element("roc"), change),
  profile: new Profile(element("profile"), change),
  renyi: new Renyi(element("renyi"), change),
  people: new People(element("people")),
  composition: new Composition(element("composition"), change),
  strip: new Deployments(element("strip")),
  game: new Game(element("game")),
};
const controls = new Controls(change);
const reading = new Reading(change);
const pins = new Pins(change);
const training = new Training(change);
const takeaway = new Takeaway(charts, original);
const overlay = new Scores((found) => {
  scores = found;
  schedule();
});

function render() {
  waiting = false;
  const begin = performance.now();
  const model = { ...derive(state), scores };
  controls.render(model);
  for (const chart of Object.values(charts)) chart.render(model);
  reading.render(model);
  pins.render(model, state);
  overlay.render(model);
  training.render(state);
  takeaway.render(model, state);
  remember();
  performance.clearMeasures("psidp-frame");
  performance.measure("psidp-frame", { start: begin, end: performance.now() });
}

/** Write the address a moment after the last change: browsers allow only so many writes. */
function remember() {
  clearTimeout(saving);
  saving = setTimeout(rest, 150);
}

/** When nothing has moved for a moment: the address, and one sentence for those who listen. */
function rest() {
  address();
  if (state !== shownFirst) say("announce", `psi ${plain(state.psi, 4)}. ${sentences(state.psi, state.unit)[0]}`);
}

function address() {
  const words = writeState(state);
  history.replaceState(null, "", words ? `#${words}` : "#");
}

element("link").addEventListener("click", async () => {
  address();
  try {
    await navigator.clipboard.writeText(location.href);
    say("link", "Copied");
  } catch {
    say("link", "Copy it from the address bar");
  }
  setTimeout(() => say("link", "Copy link"), 2000);
});
element("reset").addEventListener("click", () => {
  state = { ...DEFAULTS, pins: [], releases: [...DEFAULTS.releases] };
  schedule();
});
for (const folded of document.querySelectorAll("details")) folded.addEventListener("toggle", () => {
  for (const { chart } of Object.values(charts)) chart.measure();
  schedule();
});
// Fields and handles start from what is shown: whatever comes between two frames must find the last change there.
for (const kind of ["input", "change", "keydown", "click", "blur"]) addEventListener(kind, catchUp, { capture: true });
addEventListener("hashchange", () => {
  state = readState(location.hash);
  schedule();
});
addEventListener("resize", () => {
  for (const { chart } of Object.values(charts)) chart.measure();
  schedule();
});
followTheme();
for (const { chart } of Object.values(charts)) chart.measure();
render();
document.documentElement.dataset.ready = "yes";
