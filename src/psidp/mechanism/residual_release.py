"""Noisy residuals: exact tables in, coefficients with independent exact noise out, one sigma for each residual."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psidp.noise.ratios import noisy_ratios, ratio_gaussian
from psidp.strategies.marginals import Table
from psidp.strategies.residual_plan import ResidualPlan

__all__ = ["check_noise", "noisy_residuals"]

Floats = NDArray[np.float64]


def check_noise(plan: ResidualPlan, steps: int) -> None:
    """Refuse, before anything is read, noise that cannot be drawn exactly for coefficients of this size."""
    for part, sigma in zip(plan.marginals.residuals, plan.sigmas, strict=True):
        ratio_gaussian(sigma, plan.marginals.scales(part, steps).shift)


def noisy_residuals(plan: ResidualPlan, totals: Mapping[Table, NDArray[Any]], steps: int) -> dict[Table, Floats]:
    """The coefficients of every residual plus noise, in rows: what `Marginals.decode` takes.

    Guarantees:
        With one row of `steps` steps more or less in exact `totals` of the maximal tables, all of it has psi =
        `plan.psi` (docs/design/cubes.md, claim 1): each coefficient is divided by at least its norm before noise of
        the residual's sigma is added, and rounded once.
    """
    marginals, found = plan.marginals, {}
    for part, sigma in zip(marginals.residuals, plan.sigmas, strict=True):
        home = marginals.home(part)
        exact = marginals.encode(part, home, totals[home])
        scales = marginals.scales(part, steps)
        gaussian = ratio_gaussian(sigma, scales.shift)
        found[part] = noisy_ratios(gaussian, exact, scales.multiple, scales.shift) * (scales.value / steps)
    return found
