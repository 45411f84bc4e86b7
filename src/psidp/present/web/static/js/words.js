// What psi means, in the sentences of psidp/present/words.py; a test compares the two word for word.

import { advantageFromPsi, oddsMultiplier, tprFromPsi } from "./attack.js";
import { perThousand, up } from "./digits.js";

/** The noun with "a" or "an", by how it sounds. */
export function article(noun) {
  const word = noun.toLowerCase();
  const vowel = /^(hour|honest|heir|[aeio]|u(?!n[ai]|s|t[ei]|ro))/.test(word) && !/^(eu|one|once)/.test(word);
  return `${vowel ? "an" : "a"} ${noun}`;
}

/** Three sentences with natural frequencies; what stands in ** is worth stressing. */
export function sentences(psi, unit) {
  const right = (1 + advantageFromPsi(psi)) / 2;
  const caught = tprFromPsi(psi, 0.01);
  const factor = oddsMultiplier(psi, 0.01);
  return [
    `Someone who must tell from the release whether one ${unit} was in the data, and would be right 500 times in 1,000 ` +
      `by tossing a coin, is right at most ${perThousand(right)} times in 1,000, however clever.`,
    "An attacker who wrongly accuses no more than 10 of 1,000 that are not in the data finds at most " +
      `${perThousand(caught)} of 1,000 that are in the data, instead of 10 by guessing.`,
    odds(factor, unit),
  ];
}

/** How much a suspicion may grow: from 1 in 1,000. */
function odds(factor, unit) {
  if (factor === Infinity) return `Nothing keeps a suspicion that ${article(unit)} is in the data from becoming certainty.`;
  return (
    `In 99 of 100 releases, someone who gave 1 chance in 1,000 to ${article(unit)} being in the data should give at most ` +
    `${suspicion(factor)} in 1,000 afterwards: the odds grow ${up(factor, 3)} times at most.`
  );
}

/** 1 in 1,000 after its odds grew: in whole numbers from 2 on, below with the digits that tell it from 1. */
function suspicion(factor) {
  const rate = factor / (factor + 999);
  return factor < 2 ? up(1000 * rate, 3) : perThousand(rate);
}
