"""How a ledger's budget was spent over time: psi^2, in which spending adds up."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from psidp.present.figures.theme import Chart, altair, colours, data, finished
from psidp.present.palette import LIGHT

__all__ = ["spending"]

PIXELS = 120
"""Stretches of the time axis in which spends count as one: closer ones cannot be told apart."""


class _Step(NamedTuple):
    time: str
    total: float
    purpose: str


def spending(entries: Iterable[Any], cap: float, title: str = "Budget") -> Chart:
    """The steps in which psi^2 was spent, and the cap; `entries` have time, psi and state, as a ledger's have.

    The axis is psi^2 because that adds up; its labels are psi. Where spends come in bursts, seconds apart and then
    months of nothing, time would squeeze each burst into one line: then every spend has the same room, and its time
    is written below.
    """
    steps = list(_steps(entries))
    if not steps:
        raise ValueError("a picture of spending needs at least one entry.")
    alt = altair()
    bursts = _in_bursts([step.time for step in steps])
    rows = [
        {"kind": "spent", "x": number if bursts else step.time, "upper": step.total, "purpose": step.purpose,
         "time": step.time}
        for number, step in enumerate(steps)
    ]  # fmt: skip
    roots = alt.Axis(labelExpr="format(sqrt(datum.value), '.3~g')", tickCount=5)
    y = alt.Y(
        "upper:Q", title="psi spent (on the scale of its square)", axis=roots,
        scale=alt.Scale(domain=[0.0, max(cap**2, *(step.total for step in steps))]),
    )  # fmt: skip
    colour = colours({"spent": "psi"}, legend=None)
    step = alt.Chart(data(rows)).mark_area(interpolate="step-after", opacity=0.35, line={"color": LIGHT["psi"]})
    limit = alt.Chart(data([{"upper": cap**2, "text": f"cap, psi = {cap:g}"}]))
    rule = limit.mark_rule(color=LIGHT["bad"], strokeWidth=2, strokeDash=[6, 4]).encode(y="upper:Q")
    words = limit.mark_text(color=LIGHT["bad"], align="left", dy=-8, x=6).encode(y="upper:Q", text="text:N")
    shown = step.encode(_axis(alt, steps, bursts), y, colour, tooltip=["time:T", "upper:Q", "purpose:N"])
    return finished(shown + rule + words, title, "what each release cost, and what is left")


def _steps(entries: Iterable[Any]) -> Iterable[_Step]:
    """What was spent after each entry, since the last reset or renewal."""
    total = 0.0
    for entry in entries:
        total = 0.0 if entry.state in ("reset", "renewed") else total
        total += entry.psi**2 if entry.state == "spent" else 0.0
        yield _Step(str(entry.time), total, str(getattr(entry, "purpose", "")))


def _in_bursts(times: Sequence[str]) -> bool:
    """Whether most entries would share their place on an axis of time with another one."""
    moments = [datetime.fromisoformat(time).timestamp() for time in times]
    span = moments[-1] - moments[0]
    if not span > 0.0:
        return len(moments) > 1
    places = {round(PIXELS * (moment - moments[0]) / span) for moment in moments}
    return len(places) < min(len(moments), PIXELS) / 2


def _axis(alt: Any, steps: Sequence[_Step], bursts: bool) -> Any:
    """Time; or the order of entries with their times at a few of them."""
    if not bursts:
        return alt.X("x:T", title="time (UTC)")
    chosen = sorted({round(k * (len(steps) - 1) / 5) for k in range(6)})
    names = {number: steps[number].time[:16].replace("T", " ") for number in chosen}
    label = " : ".join(f"datum.value == {number} ? '{name}'" for number, name in names.items()) + " : ''"
    axis = alt.Axis(values=chosen, labelExpr=label, labelAngle=-30)
    return alt.X("x:Q", title="entries in order, with their time (UTC)", axis=axis)
