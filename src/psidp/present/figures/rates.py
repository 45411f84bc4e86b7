"""ROC curve, trade-off curve and privacy profile of one or several mechanisms."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from psidp.maths.normal import quantile
from psidp.present.figures.points import Curve, curve_rows, deltas, epsilon_reach, label, rates, sides
from psidp.present.figures.theme import Chart, altair, colours, data, finished
from psidp.present.palette import LIGHT

__all__ = ["profile", "roc", "several", "tradeoff"]

Axes = Literal["linear", "probit"]
SERIES = ("psi", "with", "without", "tangent")
"""Concepts whose colours several mechanisms take in turn: the first is always that of psi."""
EDGE = 1e-4
LEAST = 1e-12


def several(curves: Curve | Mapping[str, Curve]) -> dict[str, Curve]:
    """Curves by name: one, or a mapping of up to four; with more a picture says nothing."""
    named = list(curves.values()) if isinstance(curves, Mapping) else [curves]
    if not all(hasattr(curve, method) for curve in named for method in ("roc", "tradeoff", "delta")):
        raise TypeError(
            "a figure must show a Guarantee or a PrivacyCurve (psidp.account makes one of a run), or several as "
            f'{{"name": curve}}, got {named[0]!r}.'
        )
    found = dict(curves) if isinstance(curves, Mapping) else {label(curves): curves}
    if not 1 <= len(found) <= 4:
        raise ValueError(f"a figure must show one to four mechanisms, got {len(found)}.")
    return found


def roc(curves: Curve | Mapping[str, Curve], axes: Axes = "linear") -> Chart:
    """The ROC curve of the best attack, for one to four mechanisms; on probit axes a Gaussian one is a straight line.

    Curves that are known only as intervals are drawn as bands.
    """
    shown = several(curves)
    x = rates(0.0 if axes == "linear" else EDGE, shown.values())
    rows = [r for name, c in shown.items() for r in curve_rows(name, x, sides(c.roc(x)))]
    rows = rows if axes == "linear" else [_on_probit(row) for row in rows]
    chance = [{"kind": "a coin", "x": t, "lower": t, "upper": t} for t in ((0.0, 1.0) if axes == "linear" else x)]
    chance = chance if axes == "linear" else [_on_probit(row) for row in chance]
    chart = _bands(rows, shown, *_rate_axes(axes, "true positive rate"))
    return finished(_dashed(chance) + chart, "ROC curve of the best attack")


def tradeoff(curves: Curve | Mapping[str, Curve]) -> Chart:
    """The trade-off curve f of f-DP: the smallest false negative rate at each false positive rate."""
    shown = several(curves)
    x = rates(0.0, shown.values())
    rows = [r for name, c in shown.items() for r in curve_rows(name, x, sides(c.tradeoff(x)))]
    chance = [{"kind": "a coin", "x": t, "lower": 1.0 - t, "upper": 1.0 - t} for t in (0.0, 1.0)]
    chart = _bands(rows, shown, *_rate_axes("linear", "false negative rate"))
    return finished(_dashed(chance) + chart, "Trade-off curve")


def profile(curves: Curve | Mapping[str, Curve]) -> Chart:
    """The privacy profile: delta over epsilon with a logarithmic axis."""
    alt, shown = altair(), several(curves)
    reach = epsilon_reach(list(shown.values()), LEAST)
    epsilon = np.linspace(0.0, reach, 161)
    rows = [r for name, c in shown.items() for r in curve_rows(name, epsilon, deltas(c, epsilon, LEAST))]
    rows = [row for row in rows if row["upper"] > LEAST]
    x = alt.X("x:Q", title="epsilon", scale=alt.Scale(nice=False))
    y = alt.Y("lower:Q", title="delta", scale=alt.Scale(type="log", domain=[LEAST, 1.0]), axis=_log_axis())
    return finished(_bands(rows, shown, x, y), "Privacy profile: every (epsilon, delta) at once")


def _log_axis() -> Any:
    return altair().Axis(format=".0e", tickCount=7)


def _bands(rows: list[dict[str, Any]], shown: dict[str, Curve], x: Any, y: Any) -> Chart:
    """A line along the safe side and, where the sides differ, a band between them."""
    alt = altair()
    colour = colours(dict(zip(shown, SERIES, strict=False)), legend=alt.Legend(title=None))
    drawn = alt.Chart(data(rows)).encode(x=x, color=colour, order=alt.Order("x:Q"))
    line = drawn.mark_line(strokeWidth=2.5, clip=True, interpolate="monotone").encode(y=_upper(y))
    if all(row["lower"] == row["upper"] for row in rows):
        return line
    band = drawn.mark_area(opacity=0.35, clip=True, interpolate="monotone").encode(y=y, y2="upper:Q")
    return band + line


def _upper(y: Any) -> Any:
    """The same axis for the upper side."""
    values = y.to_dict() | {"field": "upper", "type": "quantitative"}
    return altair().Y.from_dict(values)


def _dashed(rows: list[dict[str, Any]]) -> Chart:
    alt = altair()
    mark = {"strokeDash": [3, 4], "color": LIGHT["quiet"], "clip": True}
    return alt.Chart(data(rows)).mark_line(**mark).encode(x="x:Q", y="upper:Q", order="x:Q")


def _rate_axes(axes: Axes, upward: str) -> tuple[Any, Any]:
    alt = altair()
    if axes == "linear":
        scale = alt.Scale(domain=[0.0, 1.0])
        return alt.X("x:Q", title="false positive rate", scale=scale), alt.Y("lower:Q", title=upward, scale=scale)
    if axes != "probit":
        raise ValueError(f'axes must be "linear" or "probit", got axes={axes!r}.')
    marks = {_probit(p): f"{p:g}" for p in (0.0001, 0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999)}
    words = " : ".join(f"abs(datum.value - {z}) < 1e-6 ? '{text}'" for z, text in marks.items()) + " : ''"
    axis = alt.Axis(values=list(marks), labelExpr=words)
    scale = alt.Scale(domain=[_probit(EDGE), _probit(1.0 - EDGE)], nice=False)
    across = alt.X("x:Q", title="false positive rate (probit scale)", scale=scale, axis=axis)
    return across, alt.Y("lower:Q", title=f"{upward} (probit scale)", scale=scale, axis=axis)


def _probit(rate: float) -> float:
    return float(quantile(np.float64(min(max(rate, 1e-9), 1.0 - 1e-9))))


def _on_probit(row: dict[str, Any]) -> dict[str, Any]:
    return row | {name: _probit(row[name]) for name in ("x", "lower", "upper")}
