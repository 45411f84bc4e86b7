"""Answers of a release as pictures: bars with their intervals, or the heat map of two columns."""

from typing import Any

from psidp.present.figures.cubes import MOST_SIDE, heat_map
from psidp.present.figures.flags import DASHED, marks, marks_in_words
from psidp.present.figures.theme import Chart, altair, data, finished, stacked, word
from psidp.present.palette import LIGHT

__all__ = ["answer", "bars"]

MOST_BARS = 200
MOST_PICTURES = 6
"""Statistics that are shown below each other."""


def answer(given: Any, statistic: str = "") -> Chart:
    """The picture that fits an answer: a heat map where two columns make groups, else bars with intervals.

    Args:
        given: what a release gave. statistic: which of its numbers; each unless told, below each other, where there are
            at most six, else the first.
    """
    names = list(dict.fromkeys(e.statistic for _, e in given.rows))
    if not statistic and given.by and 1 < len(names) <= MOST_PICTURES:
        return stacked([answer(given, name) for name in names])
    if len(given.by) == 2:
        sides = [len({key[i] for key, _ in given.rows}) for i in (0, 1)]
        if all(side <= MOST_SIDE for side in sides):
            return heat_map(given, statistic)
    return bars(given, statistic)


def bars(given: Any, statistic: str = "") -> Chart:
    """A bar for each group, with its interval. Without groups, a bar for each number.

    A number that clipping may have moved has a dashed outline; of one that cannot be told from noise the interval alone
    is shown, in grey.

    Args:
        given: what a release gave. statistic: which of its numbers; the first unless told.
    """
    alt = altair()
    names = list(dict.fromkeys(e.statistic for _, e in given.rows))
    if statistic and statistic not in names:
        raise ValueError(f"statistic must be one of {', '.join(map(repr, names))}, got statistic={statistic!r}.")
    wanted = {statistic or name for name in (names[:1] if given.by else names)}
    rows = [
        {
            "group": " / ".join(map(word, key)) if given.by else word(e.statistic), "value": e.value,
            "lower": e.lower, "upper": e.upper, "flag": e.flag or "none", **marks(e),
        }
        for key, e in given.rows
        if e.statistic in wanted
    ]  # fmt: skip
    if not 0 < len(rows) <= MOST_BARS:
        raise ValueError(f"a picture must have 1 to {MOST_BARS} bars, got {len(rows)}.")
    order = list(dict.fromkeys(row["group"] for row in rows))
    said = word(next(iter(wanted))) if len(wanted) == 1 else "value"
    base = alt.Chart(data(rows)).encode(
        alt.X("group:N", sort=order, title=" / ".join(map(word, given.by)) or None, axis=alt.Axis(labelLimit=160)),
        tooltip=["group:N", "value:Q", "lower:Q", "upper:Q", "flag:N"],
    )
    columns = base.transform_filter("!datum.blank").mark_bar(color=LIGHT["psi"]).encode(alt.Y("value:Q", title=said))
    sure = columns.transform_filter("!datum.clipped").mark_bar(color=LIGHT["psi"], opacity=0.75)
    moved = columns.transform_filter("datum.clipped").mark_bar(
        color=LIGHT["psi"], fillOpacity=0.3, stroke=LIGHT["psi"], strokeDash=DASHED, strokeWidth=1.5
    )
    ink = alt.condition("datum.blank", alt.value(LIGHT["line"]), alt.value(LIGHT["ink"]))
    spans = base.mark_rule(strokeWidth=1.5).encode(alt.Y("lower:Q", title=said), alt.Y2("upper:Q"), color=ink)
    chart = (sure + moved + spans).properties(width=max(220, 26 * len(order)), height=280)
    g = given.guarantee
    cost = f"lines hold their number with chance {given.confidence:g}; it cost psi = {g.psi:.4g}, per {g.unit}"
    legend = marks_in_words(rows, "grey, without a bar")
    title = f"{said} by {', '.join(given.by)}" if given.by else said
    return finished(chart, title, cost, *legend)
