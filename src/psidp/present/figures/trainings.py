"""Several trainings in one picture: what each level of privacy costs in accuracy, and what an audit found."""

from collections.abc import Iterable
from math import floor
from typing import Any

from psidp.present.figures.theme import Chart, altair, colours, data, finished
from psidp.present.palette import LIGHT

__all__ = ["accuracy"]

Trained = tuple[float, float, float | None]
"""psi as promised, accuracy, and the psi that an audit proves, if there was one."""


def accuracy(trainings: Iterable[Trained], without: float | None = None, title: str = "Accuracy and privacy") -> Chart:
    """Accuracy against psi, a bar from what an audit proves to what was promised, and a line for no privacy at all.

    Args:
        trainings: (psi, accuracy, audited psi or None) of each.
        without: the accuracy of the same model trained without privacy.
        title: above the picture.
    """
    alt, promised, proved = altair(), "promised, psi at most", "audited, psi at least"
    rows: list[dict[str, Any]] = [
        {"psi": psi, "accuracy": right, "from": found, "text": f"{right:.1%}", "kind": promised}
        for psi, right, found in sorted(trainings)
    ]
    if not rows:
        raise ValueError("a picture of trainings needs at least one.")
    if not all(row["psi"] >= 0.0 and 0.0 <= row["accuracy"] <= 1.0 for row in rows):
        raise ValueError("a training must have psi in [0, inf) and accuracy in [0, 1].")
    audited = [row | {"kind": proved} for row in rows if row["from"] is not None]
    lowest = max(0.0, floor(10.0 * min(row["accuracy"] for row in rows) - 0.5) / 10.0)
    levels = alt.Axis(values=[0.0, *(row["psi"] for row in rows)], format=".3~g")
    scale = alt.Scale(type="sqrt", domainMin=0.0, nice=True)
    x = alt.X("psi:Q", title="psi, sensitivity index (square-root scale)", axis=levels, scale=scale)
    y = alt.Y("accuracy:Q", axis=alt.Axis(format="%"), scale=alt.Scale(domain=[lowest, 1.0]))
    colour = colours(
        {promised: "psi"} | ({proved: "audit"} if audited else {}), legend=alt.Legend(title=None, columnPadding=28)
    )
    points = alt.Chart(data(rows)).encode(x, y)
    shown = points.mark_line(color=LIGHT["line"], strokeWidth=2)
    if audited:
        found = alt.Chart(data(audited)).encode(alt.X("from:Q"), y)
        shown += found.mark_rule(color=LIGHT["audit"], strokeWidth=1.5).encode(x2="psi:Q")
        shown += found.mark_tick(thickness=3, size=16, orient="vertical").encode(colour)
    shown += points.mark_point(filled=True, size=110, opacity=1.0).encode(colour)
    shown += points.mark_text(dy=18, color=LIGHT["ink"]).encode(text="text:N")
    if without is not None:
        line = alt.Chart(data([{"accuracy": without, "text": f"without privacy, {without:.1%}"}]))
        shown += line.mark_rule(color=LIGHT["quiet"], strokeDash=[6, 4]).encode(y="accuracy:Q")
        shown += line.mark_text(color=LIGHT["quiet"], align="left", dy=-8, x=6).encode(y="accuracy:Q", text="text:N")
    said = "a training each" + ("; bars from what the audit proves to what is promised" if audited else "")
    return finished(shown, title, said)
