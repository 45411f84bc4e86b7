// Light or dark: as the system has it, until somebody chooses.

import { element, say } from "./page.js";

const ORDER = ["auto", "light", "dark"];

function remembered() {
  try {
    return ORDER.includes(localStorage.getItem("psidp-theme")) ? localStorage.getItem("psidp-theme") : "auto";
  } catch {
    return "auto";
  }
}

/** Keep the page's theme in step with the choice and with the system. */
export function followTheme() {
  const system = matchMedia("(prefers-color-scheme: dark)");
  let choice = remembered();
  const apply = () => {
    document.documentElement.dataset.theme = choice === "auto" ? (system.matches ? "dark" : "light") : choice;
    say("theme", `Theme: ${choice}`);
  };
  system.addEventListener("change", apply);
  element("theme").addEventListener("click", () => {
    choice = ORDER[(ORDER.indexOf(choice) + 1) % ORDER.length];
    try {
      localStorage.setItem("psidp-theme", choice);
    } catch {
      // A page from disk may have no memory; the choice then lasts as long as the page.
    }
    apply();
  });
  apply();
}
