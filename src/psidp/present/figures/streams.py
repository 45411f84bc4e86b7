"""A stream as it was published: a line for each group, and the band in which the truth lies."""

from collections.abc import Iterable
from typing import Any

from psidp.present.figures.theme import Chart, altair, colours, data, finished
from psidp.present.palette import LIGHT

__all__ = ["series"]

LINES = ("with", "without", "tangent", "psi", "tn", "fn")
"""Concepts whose colours lines take, in turn."""


def series(points: Iterable[Any], title: str = "Published", confidence: float = 0.95) -> Chart:
    """Numbers over the periods with their intervals; `points` are those of a stream or a counter."""
    alt = altair()
    rows = [_row(point) for point in points]
    if not rows:
        raise ValueError("a picture of a stream needs at least one published period.")
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    if not len(kinds) <= len(LINES):
        raise ValueError(
            f"a picture of a stream must have at most {len(LINES)} lines, got {len(kinds)}. Choose groups."
        )
    dated = isinstance(rows[0]["x"], str)
    x = alt.X("x:T" if dated else "x:Q", title="period")
    names = {kind: LIGHT[LINES[i]] for i, kind in enumerate(kinds)}
    colour = colours(names, legend=None if len(kinds) == 1 else alt.Legend())
    base = alt.Chart(data(rows)).encode(x, colour)
    band = base.mark_area(opacity=0.25).encode(alt.Y("lower:Q", title="value"), alt.Y2("upper:Q"))
    line = base.mark_line(strokeWidth=2).encode(
        alt.Y("value:Q"), tooltip=["x:T" if dated else "x:Q", "kind:N", "value:Q", "lower:Q", "upper:Q"]
    )
    return finished(band + line, title, f"each band holds its number with chance {confidence:g}")


def _row(point: Any) -> dict[str, Any]:
    """One published number; a counter's has no group."""
    group, statistic = getattr(point, "group", ()), getattr(point, "statistic", "total")
    period = point.period if isinstance(point.period, int) else point.period.isoformat()
    kind = ", ".join([*map(str, group), statistic])
    return {"x": period, "kind": kind, "value": point.value, "lower": point.lower, "upper": point.upper}
