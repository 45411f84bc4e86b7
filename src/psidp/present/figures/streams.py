"""A stream as it was published: a line for each group, and the band in which the truth lies."""

from collections.abc import Iterable
from math import erf, sqrt
from typing import Any

from psidp.present.figures.theme import Chart, altair, colours, data, finished, word
from psidp.present.palette import LIGHT

__all__ = ["series"]

LINES = ("with", "without", "tangent", "psi", "tn", "fn")
"""Concepts whose colours lines take, in turn."""

CAPPED = ", of what counts under the cap"
NOT_ALL = (
    "not of all rows: what units have beyond the stream's cap is left out,",
    "so a line may lie far below the table's, and fall where the table's does not",
)


def series(points: Iterable[Any], title: str = "Published", confidence: float | None = None) -> Chart:
    """Numbers over the periods with their intervals; `points` are those of a stream or a counter.

    The confidence is that of the intervals unless told. Where a stream's cap can leave rows out, the picture says so.
    """
    alt = altair()
    points = list(points)
    statistics = list(dict.fromkeys(getattr(point, "statistic", "total") for point in points))
    rows = [_row(point, alone=len(statistics) == 1) for point in points]
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
    capped = any(getattr(point, "flag", "") for point in points)
    value = f"{word(statistics[0]) if len(statistics) == 1 else 'value'}{CAPPED if capped else ''}"
    band = base.mark_area(opacity=0.25).encode(alt.Y("lower:Q", title=value), alt.Y2("upper:Q"))
    line = base.mark_line(strokeWidth=2).encode(
        alt.Y("value:Q"), tooltip=["x:T" if dated else "x:Q", "kind:N", "value:Q", "lower:Q", "upper:Q"]
    )
    chance = _confidence(points[-1]) if confidence is None else confidence
    band_words = f"each band holds {'what counts' if capped else 'its number'} with chance {chance:g}"
    return finished(band + line, title, band_words, *(NOT_ALL if capped else ()))


def _confidence(point: Any) -> float:
    """The chance with which a number's interval covers, as its width says."""
    return round(erf((point.upper - point.lower) / (2.0 * point.standard_error) / sqrt(2.0)), 3)


def _row(point: Any, *, alone: bool) -> dict[str, Any]:
    """One published number; a counter's has no group. Where all are of one statistic, the axis names it."""
    group, statistic = getattr(point, "group", ()), getattr(point, "statistic", "total")
    period = point.period if isinstance(point.period, int) else point.period.isoformat()
    kind = ", ".join([*map(word, group), *([] if alone and group else [word(statistic)])])
    return {"x": period, "kind": kind, "value": point.value, "lower": point.lower, "upper": point.upper}
