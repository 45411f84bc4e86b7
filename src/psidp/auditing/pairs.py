r"""Pairs: disjoint random (in, out) pairs, an exact binomial count of wins, and the psi it proves.

Under a Guarantee (psi, kappa) no attack wins a pair with a chance above AUC = 1 - (1 - kappa)^2 Phi(-psi/sqrt 2). The
pairs share no score, so the number of wins is binomial: exact at every n, for every attack.
"""

import numpy as np

from psidp.auditing.scores import Scores
from psidp.guarantee import Guarantee
from psidp.maths.binomial import binomial_tail, rate_above, rate_below
from psidp.maths.roc import psi_from_auc

__all__ = ["pair_auc", "pair_p_value", "pair_psi", "pair_wins"]

LARGEST = 12.0


def pair_wins(scores: Scores, seed: int) -> tuple[int, int, int]:
    """Wins, ties and the number of pairs, each score in one pair at most, matched at random."""
    rng = scores.dice(seed, 0)
    pairs = min(scores.n_in, scores.n_out)
    ins, outs = _some(scores.ins, pairs, rng), _some(scores.outs, pairs, rng)
    rng.shuffle(ins)
    return int((ins > outs).sum()), int((ins == outs).sum()), pairs


def _some(row: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    return row.copy() if row.size == size else rng.choice(row, size, replace=False)


def pair_psi(wins: int, pairs: int, alpha: float, kappa: float = 0.0) -> float:
    r"""Lower bound on psi from so many wins, wrong with probability alpha at most, rounded down.

    .. math:: \psi \ge \sqrt 2\,\Phi^{-1}\Big(1 - \frac{1 - a}{(1 - \kappa)^2}\Big)

    with a the lower limit of the AUC (Clopper and Pearson).

    Examples:
        >>> round(pair_psi(800, 1000, 0.05), 3)
        1.0...
    """
    area = float(rate_below(wins, pairs, alpha))
    if kappa > 0.0:
        area = 1.0 - (1.0 - area) / (1.0 - kappa) ** 2 * (1.0 + 1e-12)
    return min(float(psi_from_auc(area)), LARGEST) if area > 0.5 else 0.0


def pair_p_value(wins: int, pairs: int, claimed: Guarantee) -> float:
    """P(at least so many wins) at most, under the claim."""
    return float(binomial_tail(wins, pairs, claimed.auc))


def pair_auc(wins: int, ties: int, pairs: int, alpha: float) -> tuple[float, float]:
    """Interval for the attack's AUC (ties count one half), whatever the scores' distributions."""
    return float(rate_below(wins, pairs, alpha / 2.0)), float(rate_above(wins + ties, pairs, alpha / 2.0))
