// Pictures as files and the privacy card.

import { ask, download, element, say, served } from "../page.js";

const KEPT = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size", "font-weight", "text-anchor", "paint-order", "stroke-linejoin"];

/** The picture as text: a copy with its colours written in, so that it looks the same anywhere. */
export function standalone(svg) {
  const copy = svg.cloneNode(true);
  const [from, to] = [svg.querySelectorAll("*"), copy.querySelectorAll("*")];
  from.forEach((element_, i) => {
    const style = getComputedStyle(element_);
    for (const name of KEPT) to[i].setAttribute(name, style.getPropertyValue(name));
    if (element_.tagName === "text") to[i].setAttribute("font-family", "sans-serif");
  });
  const [, , width, height] = svg.getAttribute("viewBox").split(" ");
  const ground = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  const colour = getComputedStyle(document.documentElement).getPropertyValue("--card").trim();
  for (const [name, value] of Object.entries({ width, height, fill: colour })) ground.setAttribute(name, value);
  copy.prepend(ground);
  for (const [name, value] of Object.entries({ xmlns: "http://www.w3.org/2000/svg", width, height })) copy.setAttribute(name, value);
  return new XMLSerializer().serializeToString(copy);
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
  constructor(charts) {
    const chosen = () => charts[element("picture").value].chart.svg;
    element("export-svg").addEventListener("click", () => {
      download(`psidp-${element("picture").value}.svg`, new Blob([standalone(chosen())], { type: "image/svg+xml" }));
    });
    element("export-png").addEventListener("click", async () => {
      download(`psidp-${element("picture").value}.png`, await pixels(standalone(chosen())));
    });
    element("export-card").addEventListener("click", () => this.card());
    element("export-card").disabled = !served();
    if (!served()) say("card-note", "A saved page cannot make the privacy card: the second command below does.");
  }

  async card() {
    const { psi, unit, sensitivity, prior } = this.now;
    try {
      const answer = await ask("card", { psi, unit, sensitivity, prior, format: "html" });
      download("privacy-card.html", new Blob([answer.text], { type: "text/html" }));
    } catch (refusal) {
      say("command", refusal.message);
    }
  }

  render(state) {
    this.now = state;
  }
}
