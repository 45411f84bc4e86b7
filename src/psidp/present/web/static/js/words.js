// What psi means, in the sentences of psidp/present/words.py; a test compares the two word for word.

import { advantageFromPsi, oddsMultiplier, tprFromPsi } from "./attack.js";
import { perThousand, up } from "./digits.js";

/** Three sentences with natural frequencies; what stands in ** is worth stressing. */
export function sentences(psi, unit) {
  const right = (1 + advantageFromPsi(psi)) / 2;
  const caught = tprFromPsi(psi, 0.01);
  const factor = oddsMultiplier(psi, 0.01);
  const suspicion = factor === Infinity ? "1,000" : perThousand(factor / (factor + 999));
  return [
    `Someone who must tell from the release whether one ${unit} was in the data, and would be right 500 times in 1,000 ` +
      `by tossing a coin, is right at most ${perThousand(right)} times in 1,000, however clever.`,
    "An attacker careful enough to accuse wrongly only 10 of 1,000 who are not in the data finds at most " +
      `${perThousand(caught)} of 1,000 who are.`,
    `In 99 of 100 releases, the odds that an attacker gives to one ${unit}'s being in the data grow by a factor of ` +
      `${up(factor, 3)} at most: a suspicion of 1 in 1,000 becomes one of at most ${suspicion} in 1,000.`,
  ];
}
