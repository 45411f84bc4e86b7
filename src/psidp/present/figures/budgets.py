"""How a ledger's budget was spent over time: psi^2, in which spending adds up."""

from collections.abc import Iterable
from typing import Any

from psidp.present.figures.theme import Chart, altair, colours, data, finished
from psidp.present.palette import LIGHT

__all__ = ["spending"]


def spending(entries: Iterable[Any], cap: float, title: str = "Budget") -> Chart:
    """The steps in which psi^2 was spent, and the cap; `entries` have time, psi and state, as a ledger's have.

    The axis is psi^2 because that adds up; its labels are psi.
    """
    alt = altair()
    total, most = 0.0, cap**2
    rows: list[dict[str, Any]] = []
    for entry in entries:
        total = 0.0 if entry.state in ("reset", "renewed") else total
        total += entry.psi**2 if entry.state == "spent" else 0.0
        rows.append(
            {"kind": "spent", "x": str(entry.time), "upper": total, "purpose": str(getattr(entry, "purpose", ""))}
        )
    if not rows:
        raise ValueError("a picture of spending needs at least one entry.")
    roots = alt.Axis(labelExpr="format(sqrt(datum.value), '.3~g')", tickCount=5)
    x = alt.X("x:T", title="time")
    y = alt.Y(
        "upper:Q", title="psi spent (on the scale of its square)", axis=roots, scale=alt.Scale(domain=[0.0, most])
    )
    colour = colours({"spent": "psi"}, legend=None)
    step = alt.Chart(data(rows)).mark_area(interpolate="step-after", opacity=0.35, line={"color": LIGHT["psi"]})
    limit = alt.Chart(data([{"upper": cap**2, "text": f"cap, psi = {cap:g}"}]))
    rule = limit.mark_rule(color=LIGHT["bad"], strokeWidth=2, strokeDash=[6, 4]).encode(y="upper:Q")
    words = limit.mark_text(color=LIGHT["bad"], align="left", dy=-8, x=6).encode(y="upper:Q", text="text:N")
    shown = step.encode(x, y, colour, tooltip=["x:T", "upper:Q", "purpose:N"])
    return finished(shown + rule + words, title, "what each release cost, and what is left")
