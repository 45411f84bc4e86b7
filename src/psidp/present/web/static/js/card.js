// The first page of the privacy card, in the words of psidp/present/card/front.py: for a page that has no library behind it.

import { advantageFromPsi } from "./attack.js";
import { perThousand, up } from "./digits.js";
import { article, sentences } from "./words.js";

const STYLE = "body{font:11pt/1.45 system-ui,sans-serif;color:#1b1d22;background:#fff;max-width:180mm;margin:0 auto;padding:8mm}" +
  "h1{margin:0 0 2mm}h2{font-size:12pt;color:#a0358a;margin:4mm 0 1mm}.psi{font-size:15pt}b{color:#a0358a}" +
  "meter{width:100%}.check{border:2px solid #565b66;border-radius:2mm;padding:2mm 3mm}@page{size:A4;margin:10mm}";
const WIDER = 1.959964;

/** Right guesses out of 1,000, at most. */
function right(psi) {
  return perThousand((1 + advantageFromPsi(psi)) / 2);
}

/** The nearest known deployments on either side, by the same measure. */
function comparison(psi, deployments) {
  const known = deployments.filter((d) => d.trust === "central");
  const [below, above] = [known.filter((d) => d.psi <= psi), known.filter((d) => d.psi > psi)];
  const near = [...below.slice(-1), ...above.slice(0, 1), ...above.slice(1).filter((d) => d.curator.includes("Census")).slice(0, 1)];
  const each = near.map((d) => `psi ${up(d.psi, 2)} for ${d.name} (${d.curator}, per ${d.unit})`).join("; ");
  return `For comparison, published elsewhere: ${each}. Other data and other units: a guide, not a limit.`;
}

/** What a second release would make of it. */
function again(psi) {
  const [one, both] = [up(psi, 3), Math.hypot(psi, psi)];
  return `Releases from the same data add up. After a second one like this the two together have psi ${up(both, 2)}, not ` +
    `${up(2 * psi, 3)}: psi adds as the sides of a right triangle (the root of ${one}² + ${one}²). Whoever sees both ` +
    `is right at most ${right(both)} times in 1,000.`;
}

/** The first page, paragraph by paragraph: headings, and the paragraphs or lists below them. */
export function frontPage({ psi, unit, sigma }, deployments, date) {
  return {
    title: "Privacy card",
    above: [
      `Publisher not stated. Card of ${date}.`,
      `It protects one ${unit}: whether ${article(unit)} is in the data at all, and so all that the data holds of them.`,
      `psi = ${up(psi)} per ${unit}`,
      `psi is how far one ${unit} can move the numbers, divided by the noise that hides it. Smaller is safer: at 0 nothing ` +
        `can be learnt about one ${unit}, and there is no largest value.`,
      `Limit on what one ${unit} adds: none was enforced here. The promise holds only where no ${unit} moves the numbers ` +
        "further than was assumed.",
      `500 (nothing can be learnt) ... ${right(psi)} (this release) ... 1,000 (no protection)`,
      comparison(psi, deployments),
    ],
    "What it means": [...sentences(psi, unit), again(psi)],
    "What is not promised": [
      "Anything else published from the same data.",
      "Insiders: whoever keeps the data sees it as it is.",
      "The 1 in 100: in one of 100 releases a suspicion may grow more than is said above.",
      `General findings: what the numbers say of all can be held against each ${unit}, in the data or not.`,
    ],
    "How far off the numbers are": [
      `the number: with a chance of 95 in 100 the truth is within ${up(WIDER * sigma, 3)} to either side.`,
    ],
    "Has anybody checked it?": [
      "Ledger: none given. A ledger is the record of what each release cost. Nothing here shows that every release was counted.",
      "Audit: none. Nobody is known to have attacked this release to test the promise.",
    ],
  };
}

/** The first page as a whole HTML file; names enter it as text. */
export function cardPage(model, deployments, date, command) {
  const { title, above, ...sections } = frontPage(model, deployments, date);
  const page = document.implementation.createHTMLDocument(title);
  page.documentElement.lang = "en";
  const add = (tag, words, parent = page.body) => {
    const made = parent.appendChild(page.createElement(tag));
    made.textContent = words;
    return made;
  };
  add("h1", title);
  above.forEach((words, i) => {
    add("p", words).className = i === 2 ? "psi" : "";
  });
  for (const [heading, entries] of Object.entries(sections)) {
    const section = add("section", "");
    section.className = heading.startsWith("Has") ? "check" : "";
    add("h2", heading, section);
    for (const words of entries) add("p", words, section);
  }
  add("h2", "The page for specialists, by the library:");
  add("code", command);
  // As text: a page that allows only its own styles would refuse this one while it is made.
  return `<!doctype html>\n${page.documentElement.outerHTML.replace("</head>", () => `<style>${STYLE}</style></head>`)}\n`;
}
