"""Tables of a cube, or of a release: a heat map of two columns with its errors, and shares below with their band."""

from collections.abc import Sequence
from typing import Any

from psidp.present.figures.flags import DASHED, marks, marks_in_words
from psidp.present.figures.theme import Chart, altair, colours, data, finished, word
from psidp.present.palette import LIGHT

__all__ = ["heat_map", "shares_below"]

MOST_SIDE = 60
"""Values of a column that a heat map shows."""

PALEST = 0.12
"""Part of its colour that a cell keeps whose interval is as wide as the range of the numbers shown."""

LINES = ("with", "without", "tangent", "psi", "tn", "fn")
"""Concepts whose colours lines take, in turn."""


def heat_map(answer: Any, statistic: str = "") -> Chart:
    """A table of two columns: colour for the number, its interval below it; the paler, the less is known of it.

    A number that clipping may have moved has a dashed outline; a cell whose number cannot be told from noise is empty.

    Args:
        answer: what a release by two columns or `Cube.table` of two gave. statistic: which of its numbers; the first
            unless told.
    """
    alt = altair()
    if len(answer.by) != 2:
        raise ValueError(f"a heat map must have two columns, got {', '.join(answer.by) or 'none'}.")
    rows = _chosen(answer, statistic)
    across, down = (list(dict.fromkeys(word(key[i]) for key, _ in rows)) for i in (1, 0))
    if not (len(across) <= MOST_SIDE and len(down) <= MOST_SIDE):
        raise ValueError(f"a heat map must have at most {MOST_SIDE} values a column, got {len(down)} by {len(across)}.")
    cells = [
        {
            "down": word(key[0]), "across": word(key[1]), "value": e.value, "lower": e.lower, "upper": e.upper,
            "text": _digits(e.value, e.standard_error),
            "below": " to ".join(_digits(end, e.standard_error) for end in (e.lower, e.upper)),
            "flag": e.flag or "none", **marks(e),
        }
        for key, e in rows
    ]  # fmt: skip
    x = alt.X("across:N", sort=across, title=word(answer.by[1]), axis=alt.Axis(labelAngle=0, labelLimit=90))
    y = alt.Y("down:N", sort=down, title=word(answer.by[0]))
    sure = [cell["value"] for cell in cells if not cell["blank"]] or [0.0, 1.0]
    for cell, (_, e) in zip(cells, rows, strict=True):
        cell["known"] = 1.0 if cell["blank"] else _known(e.upper - e.lower, max(sure) - min(sure))
    base = alt.Chart(data(cells)).encode(x, y)
    scale = alt.Scale(range=["#ffffff", LIGHT["psi"]], domain=[min(sure), max(sure)], interpolate="rgb", clamp=True)
    legend = alt.Legend(orient="right", title=word(rows[0][1].statistic))
    shade = alt.condition("datum.blank", alt.value("#f4f4f6"), alt.Color("value:Q", scale=scale, legend=legend))
    tip = ["down:N", "across:N", "value:Q", "lower:Q", "upper:Q", "flag:N"]
    faded = alt.FillOpacity("known:Q", scale=None)
    squares = base.mark_rect(stroke=LIGHT["line"]).encode(color=shade, fillOpacity=faded, tooltip=tip)
    told = base.transform_filter("!datum.blank")
    outline = told.transform_filter("datum.clipped").mark_rect(
        fillOpacity=0.0, stroke=LIGHT["ink"], strokeDash=DASHED, strokeWidth=1.5
    )
    dark = f"datum.known * (datum.value - {min(sure)!r}) > {0.6 * (max(sure) - min(sure))!r}"
    ink = alt.condition(dark, alt.value("white"), alt.value(LIGHT["ink"]))
    upper = told.mark_text(dy=-6, fontSize=11).encode(text="text:N", color=ink)
    lower = told.mark_text(dy=8, fontSize=9).encode(text="below:N", color=ink)
    wide = max(62, *(8 + 5 * len(str(cell["below"])) for cell in cells))
    chart = (squares + outline + upper + lower).properties(width=wide * len(across), height=38 * len(down))
    g = answer.guarantee
    said = f"number and interval (chance {answer.confidence:g}); it cost psi = {g.psi:.4g}, per {g.unit}"
    pale = ["the paler a cell, the wider its interval against the range of the numbers shown"]
    marked = (pale if any(cell["known"] < 1.0 for cell in cells) else []) + marks_in_words(cells, "empty")
    return finished(chart, f"{rows[0][1].statistic} by {answer.by[0]} and {answer.by[1]}", said, *marked)


def _known(width: float, span: float) -> float:
    """How much of a cell's colour is shown: less, the wider its interval is against the range of all numbers."""
    if not span > 0.0:  # one number, or alike: nothing to tell apart
        return 1.0
    return max(PALEST, 1.0 - width / span) if width < span else PALEST


def shares_below(answer: Any, groups: Sequence[Any] = ()) -> Chart:
    """The cumulative distribution of a column with its band, a line for each group: what `Cube.cdf` gave.

    groups: which of the groups to show, such as ["AA", "DL"]; all unless told.
    """
    alt = altair()
    chosen = {key if isinstance(key, tuple) else (key,) for key in groups}
    rows = [
        {
            "x": float(key[-1]), "kind": ", ".join(map(word, key[:-1])) or answer.by[-1], "value": e.value,
            "lower": e.lower, "upper": e.upper,
        }
        for key, e in answer.rows
        if not e.flag and (not chosen or key[:-1] in chosen)
    ]  # fmt: skip
    hidden = {key[:-1] for key, e in answer.rows if e.flag and (not chosen or key[:-1] in chosen)}
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    if not 0 < len(kinds) <= len(LINES):
        raise ValueError(
            f"a picture of shares must have 1 to {len(LINES)} groups without a flag, got {len(kinds)}. "
            "Name some: groups=[...]."
        )
    colour = colours(
        {kind: LIGHT[LINES[i]] for i, kind in enumerate(kinds)}, legend=None if len(kinds) == 1 else alt.Legend()
    )
    base = alt.Chart(data(rows)).encode(alt.X("x:Q", title=word(answer.by[-1])), colour)
    band = base.mark_area(opacity=0.25, interpolate="linear").encode(
        alt.Y("lower:Q", title="share below", scale=alt.Scale(domain=[0, 1])), alt.Y2("upper:Q")
    )
    line = base.mark_line(strokeWidth=2).encode(
        alt.Y("value:Q"), tooltip=["kind:N", "x:Q", "value:Q", "lower:Q", "upper:Q"]
    )
    said = f"each group's band holds it everywhere with chance {answer.confidence:g}"
    left = (
        [f"not shown, since noise or clipping hides them: {', '.join(', '.join(map(word, k)) for k in hidden)}"]
        if hidden
        else []
    )
    return finished(band + line, f"Shares below {answer.by[-1]}", said, *left)


def _chosen(answer: Any, statistic: str) -> list[Any]:
    """The rows of one statistic."""
    names = list(dict.fromkeys(e.statistic for _, e in answer.rows))
    if statistic and statistic not in names:
        raise ValueError(f"statistic must be one of {', '.join(map(repr, names))}, got statistic={statistic!r}.")
    wanted = statistic or (names[0] if names else "")
    if not wanted:
        raise ValueError("a heat map must have a number at least, got an answer without rows.")
    return [(key, e) for key, e in answer.rows if e.statistic == wanted]


def _digits(value: float, error: float) -> str:
    """A number with the digits that its error leaves."""
    if not 0.0 < error < float("inf"):
        return f"{value:,.4g}"
    places = max(0, 1 - int(f"{error:e}".split("e")[1]))
    return f"{value:,.{min(places, 6)}f}"
