"""Makes src/psidp/auditing/calibration.csv, on standard output.

For each size the ladder's own experiment is drawn at Gaussian curves of several psi and with uneven sides. The gain
kept is the largest for which the share of experiments with a rung at or below gain * alpha/rungs, raised to its upper
confidence limit (wrong with probability 1e-4 a cell), stays at or below alpha: the smallest over psi, sides and alpha.
"""

import sys

import numpy as np

from psidp.auditing.curves import Gaussian
from psidp.auditing.thresholds import rung_p_values, rungs
from psidp.maths.binomial import rate_above

SIZES = (20, 60, 250, 1_000, 5_000, 30_000, 200_000)
PSIS = (0.0, 0.3, 1.0, 3.0)
SIDES = (0.1, 1.0, 10.0)
ALPHAS = (0.01, 0.03, 0.1)
GAINS = np.linspace(1.0, 3.0, 11)
EXPERIMENTS = 40_000
ERROR = 1e-4


def counts(psi, n_in, n_out, experiments, rng):
    """In-scores above each rung in so many Gaussian experiments: only the rungs are drawn, whatever the sizes."""
    k = rungs(n_out)
    gaps = np.diff(np.concatenate([[0], k + 1, [n_out + 1]]))
    spacing = rng.standard_gamma(gaps.astype(float), (experiments, gaps.size))
    fpr = np.cumsum(spacing, axis=1)[:, :-1] / spacing.sum(axis=1, keepdims=True)
    tpr = np.minimum(np.asarray(Gaussian().roc(psi, fpr)), 1.0)
    above = np.empty(tpr.shape, dtype=np.int64)
    done, mass = np.zeros(experiments, dtype=np.int64), np.zeros(experiments)
    for j in range(k.size):
        share = np.clip((tpr[:, j] - mass) / np.maximum(1.0 - mass, 1e-300), 0.0, 1.0)
        done, mass = done + rng.binomial(n_in - done, share), tpr[:, j]
        above[:, j] = done
    return k, above


def critical(psi, k, n_in, n_out, levels):
    """For each level and rung the smallest count that is refuted."""
    low = np.zeros((levels.size, k.size), dtype=np.int64)
    high = np.full(low.shape, n_in + 1, dtype=np.int64)
    rows = np.broadcast_to(k, low.shape).reshape(-1)
    while (high - low > 1).any():
        middle = (low + high) // 2
        p = rung_p_values(Gaussian(), psi, rows, middle.reshape(-1), n_in, n_out).reshape(low.shape)
        refuted = p <= levels[:, None]
        low, high = np.where(refuted, low, middle), np.where(refuted, middle, high)
    return high


def refuted(psi, n_in, n_out, alphas, gains, experiments, rng):
    """How many experiments have a refuted rung, for each alpha and gain."""
    k, above = counts(psi, n_in, n_out, experiments, rng)
    levels = np.outer(alphas, gains).reshape(-1) / k.size
    limits = critical(psi, k, n_in, n_out, levels)
    seen = [int((above >= limit).any(axis=1).sum()) for limit in limits]
    return np.array(seen).reshape(len(alphas), len(gains))


def gain(size, experiments=EXPERIMENTS, seed=1):
    """The gain of one size: the largest that is fine for every psi, side and alpha; 1 is fine by Bonferroni."""
    rng = np.random.default_rng([seed, size])
    fine = np.ones(GAINS.size, dtype=bool)
    for psi in PSIS:
        for side in SIDES:
            seen = refuted(psi, max(int(size * side), 2), size, ALPHAS, GAINS, experiments, rng)
            fine &= (rate_above(seen, experiments, ERROR) <= np.array(ALPHAS)[:, None]).all(axis=0)
    return GAINS[max(int(np.argmin(fine)) - 1, 0)] if not fine.all() else GAINS[-1]


if __name__ == "__main__":
    print("n_out,gain")
    for size in SIZES:
        print(f"{size},{gain(size):.1f}", flush=True)
        print(size, file=sys.stderr)
