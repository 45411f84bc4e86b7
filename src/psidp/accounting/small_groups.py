"""Small groups: groups of steps that hardly lose anything beside the others, and what the others are left to answer.

A group whose loss exceeds x with a chance of kappa at most costs the rest no more than x of epsilon and kappa of delta,
and no less than nothing: delta_rest(epsilon) <= delta(epsilon) <= delta_rest(epsilon - x) + kappa. A group is also no
worse than its unsampled Gaussians (docs/design/accounting.md, "Small groups").
"""

from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from psidp.accounting.composition import Composition
from psidp.accounting.contours.error_bounds import NotCertified, Survey
from psidp.accounting.contours.mgf_table import ULP
from psidp.accounting.contours.saddle import dyadic, saddle_at_delta
from psidp.accounting.contours.window import Window
from psidp.accounting.exact_sums import NOTHING, Squares
from psidp.accounting.pld.step_law import log_tail

__all__ = ["Apart", "groups", "largest_loss", "set_apart"]

SHARE = 2.0**-30
"""The part of delta that small groups are granted."""
SMALL = (1e-4, 1e-2)
"""What small groups may lose, beside the largest epsilon in question: the first that allows any of them."""
TILTS = np.array([0.6, 1.0, 1.6])
"""Tilts that are tried, beside the saddle's."""
FAR = 1e300
"""An epsilon that no step decides: the window is cut by its chance alone."""


class Apart(NamedTuple):
    """The rest, the groups set apart, and what they lose at most but with a chance of e^log_kappa."""

    rest: Composition
    small: Composition
    most: float
    log_kappa: float

    @property
    def unsampled(self) -> Composition:
        """The rest with unsampled Gaussians for the groups set apart: it loses no less than all groups."""
        groups = zip(self.small.sigma.tolist(), self.small.count.tolist(), strict=True)
        squares = Squares.of((1 / Fraction(sigma) ** 2, int(count)) for sigma, count in groups)
        return replace(self.rest, plain=self.rest.plain + squares)

    def unsampled_first(self, slope: float) -> bool:
        """Whether that costs less than the shift, about, where log delta falls so fast."""
        return 0.5 * float((self.small.count / self.small.sigma**2).sum()) * (slope + 1.0) < self.most


def set_apart(steps: Composition, epsilon: float, log_delta: float) -> Apart | None:
    """The groups that together lose next to nothing beside epsilon, or little; None where none does.

    Only for a removed record.
    """
    if steps.count.size < 2 or steps.pairs or not (steps.sign == 1.0).all():
        return None
    log_kappa = log_delta + float(np.log(SHARE))
    each = [largest_loss(groups(steps, [i]), log_kappa) for i in range(steps.count.size)]
    order = np.argsort(each).tolist()
    for share in SMALL:
        for size in range(steps.count.size - 1, 0, -1):
            if not each[order[size - 1]] <= share * epsilon:
                continue
            small = groups(steps, order[:size])
            most = each[order[0]] if size == 1 else largest_loss(small, log_kappa)
            if most <= share * epsilon:
                return Apart(groups(steps, order[size:], steps.plain), small, most, log_kappa)
    return None


@np.errstate(all="ignore")
def largest_loss(steps: Composition, log_kappa: float) -> float:
    """An x >= 0 that the loss of removed records exceeds with a chance of e^log_kappa at most; inf if none is proved.

    With half of that chance no step is set aside by a window; E[e^(cL)] over the paths that keep every step is at most
    the survey's M(c), so L > x has a chance of at most M(c) e^(-c x) there, at any tilt c.
    """
    log_half = log_kappa - float(np.log(2.0)) - 1e-9
    c, best = 1.0, float(np.inf)
    for _ in range(3):
        window = Window.around(steps, c, FAR, log_half)
        saddle = saddle_at_delta(steps, log_half, window)
        c = saddle.c
    reach = (window.cut - 1.0 / window.steps.sigma[:, None]) / np.sqrt(1.0 + window.b * window.b)
    lost = np.log(steps.count[:, None]) + log_tail(reach * (1.0 - 1e-12))
    if not float(np.logaddexp.reduce(lost, axis=None)) + 1e-9 * (1.0 - log_half) <= log_half:
        return best
    for c in dyadic(saddle.c * TILTS).tolist():
        if not (0.0 < c < np.inf and (1.0 + c) - 1.0 == c):
            continue
        tilted = replace(saddle, c=c / 1.5, beyond_c=np.array([c]), beyond_k=np.array([0.0]))
        try:
            log_m = Survey(steps, tilted, window, 0.5).log_m2
        except NotCertified:
            continue
        best = min(best, (log_m - log_half + 1e-9 * (abs(log_m) + abs(log_half))) / c * (1.0 + 8.0 * ULP))
    return max(best, 0.0)


def groups(steps: Composition, chosen: list[int], plain: Squares = NOTHING) -> Composition:
    """Some groups of a composition by themselves, in their order, beside these plain Gaussians."""
    rows = np.array(sorted(chosen), dtype=np.int64)
    return Composition(steps.sigma[rows], steps.q[rows], steps.count[rows], steps.sign[rows], plain)
