"""Descent: the lowest point of a smooth function that is found from a starting point, by L-BFGS."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["lowest"]

Point = NDArray[np.float64]


def lowest(
    function: Callable[[Point], tuple[float, Point]], start: Point, steps: int = 500, tolerance: float = 1e-11
) -> Point:
    """The best point found from `start` in so many steps; `function` gives its value and its gradient.

    Nothing is promised but that the value is no larger than at the start: another SciPy gives other digits.

    Examples:
        >>> lowest(lambda x: (float((x - 3.0) @ (x - 3.0)), 2.0 * (x - 3.0)), np.zeros(2)).round(6).tolist()
        [3.0, 3.0]
    """
    from scipy.optimize import minimize  # 0.1 s, and few need it

    options = {"maxiter": steps, "maxfun": 2 * steps, "maxcor": 20, "ftol": tolerance, "gtol": 1e-10}
    found = minimize(function, start, jac=True, method="L-BFGS-B", options=options)
    return found.x if found.fun <= function(start)[0] else start
