// Pictures as files and the privacy card.

import { cardPage } from "../card.js";
import { shape } from "../chart.js";
import { plain } from "../digits.js";
import { ask, download, element, say, served } from "../page.js";
import { writeState } from "../state.js";

const NS = "http://www.w3.org/2000/svg";
const HEAD = 54;
const KEPT = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size", "font-weight", "text-anchor", "paint-order", "stroke-linejoin"];

/** The picture as text, in the light theme on any page: its colours written in, a title above and a legend below. */
export function standalone(svg, title, below, legend) {
  const [, , wide, high] = svg.getAttribute("viewBox").split(" ").map(Number);
  const copy = svg.cloneNode(true);
  const theme = document.documentElement.dataset.theme;
  document.documentElement.dataset.theme = "light";
  inked(svg, copy);
  const height = HEAD + high + 18 * legend.length + 10;
  const whole = shape("svg", { xmlns: NS, width: wide, height, viewBox: `0 0 ${wide} ${height}` });
  shape("rect", { width: wide, height, fill: "#ffffff" }, whole);
  const words = { "font-family": "sans-serif", fill: "#1b1d22" };
  const size = Math.min(15, (wide - 24) / (0.62 * title.length));
  shape("text", { x: 12, y: 22, "font-size": size.toFixed(1), "font-weight": 600, ...words }, whole).textContent = title;
  shape("text", { x: 12, y: 41, "font-size": 12, ...words }, whole).textContent = below;
  copy.setAttribute("y", String(HEAD));
  copy.setAttribute("width", String(wide));
  copy.setAttribute("height", String(high));
  whole.append(copy);
  legend.forEach(([kind, meaning], i) => key(whole, svg, kind, meaning, HEAD + high + 18 * i + 10));
  document.documentElement.dataset.theme = theme;
  return new XMLSerializer().serializeToString(whole);
}

/** Colours and lines of the original, written into its copy. */
function inked(svg, copy) {
  const [from, to] = [svg.querySelectorAll("*"), copy.querySelectorAll("*")];
  from.forEach((part, i) => {
    const style = getComputedStyle(part);
    for (const name of KEPT) to[i].setAttribute(name, style.getPropertyValue(name));
    if (part.tagName === "text") to[i].setAttribute("font-family", "sans-serif");
  });
}

/** One line of the legend: a sample as the picture draws it, and what it means. */
function key(whole, svg, kind, meaning, y) {
  const [form, ...names] = kind.split(" ");
  const sample = shape("path", { class: [form === "area" ? "area" : "", ...names].join(" "), d: form === "area" ? "M0 0" : "M0 0" }, svg);
  const style = getComputedStyle(sample);
  const drawn = form === "area" ? shape("rect", { x: 14, y: y - 5, width: 20, height: 10 }, whole) : shape("path", { d: `M12 ${y}H36` }, whole);
  for (const name of KEPT) drawn.setAttribute(name, style.getPropertyValue(name));
  sample.remove();
  shape("text", { x: 44, y: y + 4, "font-size": 12, "font-family": "sans-serif", fill: "#1b1d22" }, whole).textContent = meaning;
}

/** The picture as pixels, twice as fine as on the page. */
export async function pixels(text) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [2 * image.width, 2 * image.height];
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

export class Takeaway {
  /** `original`: the page as it was loaded, before anything was drawn. */
  constructor(charts, original) {
    this.original = original;
    const picture = () => {
      const view = charts[element("picture").value];
      return standalone(view.chart.svg, view.title, `ψ = ${plain(this.model.psi, 4)}, per ${this.model.unit}`, view.legend(this.model));
    };
    element("export-svg").addEventListener("click", () => {
      download(`psidp-${element("picture").value}.svg`, new Blob([picture()], { type: "image/svg+xml" }));
    });
    element("export-png").addEventListener("click", async () => {
      download(`psidp-${element("picture").value}.png`, await pixels(picture()));
    });
    element("export-card").addEventListener("click", () => this.card());
    element("export-page").addEventListener("click", () => this.page());
    element("print").addEventListener("click", () => window.print());
    if (!served()) say("card-note", "A saved page makes the card's first page; the second command below makes both.");
  }

  async card() {
    const { psi, unit, sensitivity, prior } = this.model;
    if (!served()) {
      const known = JSON.parse(element("deployments").textContent);
      const command = element("command").textContent.split("\n")[1];
      const page = cardPage(this.model, known, new Date().toISOString().slice(0, 10), command);
      return download("privacy-card.html", new Blob([page], { type: "text/html" }));
    }
    try {
      const answer = await ask("card", { psi, unit, sensitivity, prior, format: "html" });
      return download("privacy-card.html", new Blob([answer.text], { type: "text/html" }));
    } catch (refusal) {
      return say("card-note", refusal.message);
    }
  }

  /** This page as one file that needs no server and opens with what is shown now. */
  async page() {
    const source = served() ? await (await fetch("explorer.html")).text() : this.original;
    const state = writeState(this.state).replaceAll('"', "%22");
    const opened = source.replace(/<html lang="en" data-server="no"(?: data-state="[^"]*")?/, `<html lang="en" data-server="no" data-state="${state.replaceAll("&", "&amp;")}"`);
    download("explorer.html", new Blob([opened], { type: "text/html" }));
  }

  render(model, state) {
    this.model = model;
    this.state = state;
  }
}
