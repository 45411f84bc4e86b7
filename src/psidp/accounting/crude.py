"""Crude bounds, which no method can take away: a composition loses no more than its unsampled Gaussians."""

from sys import float_info

import numpy as np

from psidp.accounting.composition import Array, Composition
from psidp.accounting.contours.mgf_table import ULP
from psidp.accounting.pld.step_law import log_tail
from psidp.maths.normal import TINY
from psidp.maths.profile_inverse import epsilon_from_log_delta
from psidp.maths.roc import advantage_from_psi

__all__ = ["least_unsampled", "log_any", "log_distance", "unsampled", "unsampled_psi"]

MOST = float_info.max
CUTS = (0.5, 0.7, 0.85)
"""Cuts of the noise, as shares of the way 1/sigma to a sampled record."""


def unsampled(steps: Composition, log_delta: float) -> float:
    """epsilon of the same composition without sampling: an upper bound, since sampling only helps.

    Where the record is added, no loss of a group exceeds -T log(1-q) either; each group is taken by the better of both.
    """
    most = np.where(steps.sign == -1.0, -steps.count * np.log1p(-steps.q), np.inf) * (1.0 + 1e-12)
    square = steps.count / steps.sigma**2 * (1.0 + 1e-12)
    order = np.argsort(most / square)
    most, square = np.append(0.0, np.cumsum(most[order])), np.append(np.cumsum(square[order][::-1])[::-1], 0.0)
    some = most < np.inf
    others = sum(pair.count * pair.psi * pair.psi for pair in steps.pairs)
    psi = np.sqrt(square[some] + steps.gauss + others) * (1.0 + 8.0 * ULP * (steps.count.size + len(steps.pairs) + 2.0))
    psi = np.minimum(psi, MOST)  # whose epsilon is inf, as that of every larger one
    best = float(np.min(most[some] + epsilon_from_log_delta(psi, log_delta))) * (1.0 + 8.0 * ULP)
    return min(best, steps.most)


def least_unsampled(steps: Composition, log_delta: float) -> float:
    """What `unsampled` is at least, or 0: from psi = 2 on, delta at psi^2/2 is above a quarter."""
    if not log_delta < np.log(0.25):
        return 0.0
    square = steps.count / steps.sigma**2
    each = np.where(square >= 4.0, 0.5 * square, 0.0)
    most = np.where(steps.sign == -1.0, -steps.count * np.log1p(-steps.q), np.inf)
    return float(np.minimum(each, most).sum())


def unsampled_psi(steps: Composition) -> float:
    """psi of the same composition without sampling, rounded up: it covers the whole curve."""
    square = float((steps.count / steps.sigma**2).sum()) + steps.gauss
    square += sum(pair.count * pair.psi * pair.psi for pair in steps.pairs)
    return float(np.sqrt(square)) * (1.0 + 8.0 * ULP * (steps.count.size + len(steps.pairs) + 2.0))


def log_distance(steps: Composition) -> float:
    """Log of the sum of the steps' total variations, q (2 Phi(1/(2 sigma)) - 1) each: delta is never more."""
    if steps.pairs or (steps.sign == 2.0).any():
        return 0.0
    with np.errstate(over="ignore"):
        each = steps.q * advantage_from_psi(np.minimum(1.0 / steps.sigma, MOST))
    total = float((steps.count * each).sum() + advantage_from_psi(min(steps.plain.psi[1], MOST)))
    return min(0.0, float(np.log(total * (1.0 + 1e-12) + 5e-324)))


def log_any(steps: Composition, epsilon: Array) -> Array:
    """Lower bounds of log delta from one test: whether any step of one group passes a cut.

    With P and Q the chances that one does, delta >= P - e^epsilon Q where the record is removed, and
    delta >= (1 - Q) - e^epsilon (1 - P) where it is added.
    """
    best = np.full(epsilon.size, -np.inf)
    for sigma, q, count, sign in zip(steps.sigma, steps.q, steps.count, steps.sign, strict=True):
        if sign == 2.0:
            continue
        for share in CUTS:
            g = share / sigma
            plain, shifted = (float(log_tail(np.array(x))) for x in (g, g - 1.0 / sigma))
            error = 1e-12 + 16.0 * ULP * (1.0 / sigma + 1.0) ** 2
            log_p = np.logaddexp(np.log1p(-q) + plain, np.log(q) + shifted)
            none_p, none_q = (count * np.log1p(-np.exp(x + side)) for x, side in ((log_p, -error), (plain, error)))
            ahead, behind = (-np.expm1(none_p), -np.expm1(none_q)) if sign > 0 else (np.exp(none_q), np.exp(none_p))
            with np.errstate(all="ignore"):
                grown = np.exp(epsilon)  # of tails that may be no floats
                value = np.log(
                    np.maximum(
                        ahead - grown * behind - error * (1.0 + grown * behind) - 16.0 * TINY * count * grown, 0.0
                    )
                )
            best = np.fmax(best, value)  # e^epsilon may be no float
    return best
