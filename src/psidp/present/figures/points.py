"""Points of curves, as rows. A curve is anything with roc, tradeoff and delta; intervals become bands."""

from collections.abc import Callable, Iterable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from psidp.guarantee import Guarantee
from psidp.maths.normal import tail

__all__ = ["Curve", "curve_rows", "deltas", "epsilon_reach", "label", "rates", "sides"]

Array = NDArray[np.float64]


class Curve(Protocol):
    """What a figure can be drawn of: a Guarantee, a PrivacyCurve, or anything with their three methods."""

    def roc(self, fpr: Any) -> Any:
        """Largest true positive rate at a false positive rate: numbers, or an interval of them."""

    def tradeoff(self, fpr: Any) -> Any:
        """Smallest false negative rate at a false positive rate."""

    def delta(self, epsilon: Any) -> Any:
        """Smallest delta at an epsilon."""


def sides(value: Any) -> tuple[Array, Array]:
    """Lower and upper side of numbers or of an interval.

    Examples:
        >>> [side.tolist() for side in sides(np.array([1.0, 2.0]))]
        [[1.0, 2.0], [1.0, 2.0]]
    """
    if hasattr(value, "lower"):
        return np.asarray(value.lower, dtype=float), np.asarray(value.upper, dtype=float)
    return np.asarray(value, dtype=float), np.asarray(value, dtype=float)


def rates(inside: float = 0.0, curves: Iterable[Any] = ()) -> Array:
    """False positive rates, dense at both ends; with `inside`, none nearer to 0 and 1 than that.

    Few where a curve is not a Guarantee: each rate of an accounted curve costs a search.
    """
    few = any(not isinstance(curve, Guarantee) for curve in curves)
    spread = np.asarray(tail(np.linspace(-4.5, 4.5, 25) if few else np.linspace(-5.5, 5.5, 161)))[::-1]
    ends = np.concatenate([[0.0], spread, [1.0]])
    return np.clip(ends, inside, 1.0 - inside) if inside else ends


def deltas(curve: Curve, epsilon: Array, least: float) -> tuple[Array, Array]:
    """delta at each epsilon, both sides, kept above what the axis shows."""
    lower, upper = sides(curve.delta(epsilon))
    return np.maximum(lower, least), np.maximum(upper, least)


def curve_rows(name: str, x: Array, values: tuple[Array, Array], order: int = 0) -> list[dict[str, Any]]:
    """Rows with x, lower and upper under one name."""
    columns = zip(x.tolist(), values[0].tolist(), values[1].tolist(), strict=True)
    return [{"kind": name, "x": a, "lower": b, "upper": c, "order": order} for a, b, c in columns]


def epsilon_reach(curves: list[Curve], least: float) -> float:
    """An epsilon at which every curve's delta is below `least`, or a hundred where none is."""
    reach: Callable[[Curve, float], float] = lambda curve, e: float(sides(curve.delta(e))[0])  # noqa: E731
    epsilon = 0.5
    while epsilon < 100.0 and any(reach(curve, epsilon) > least for curve in curves):
        epsilon *= 1.25
    return epsilon


def label(curve: Any) -> str:
    """What a curve is called when nobody named it."""
    if hasattr(curve, "psi"):
        failure = f", kappa = {curve.kappa:.3g}" if getattr(curve, "kappa", 0.0) else ""
        return f"psi = {curve.psi:.4g}{failure}"
    return type(curve).__name__
