"""A claim and its audit in one picture: the promised ROC curve, and the one that an attack reached."""

from typing import Any

import numpy as np

from psidp.guarantee import Guarantee
from psidp.maths.roc import tpr_from_psi
from psidp.present.figures.points import curve_rows, rates, sides
from psidp.present.figures.theme import Chart, altair, colours, data, finished
from psidp.present.formatting import down, up
from psidp.present.palette import LIGHT

__all__ = ["claim_and_audit"]


def claim_and_audit(claim: Guarantee | None, result: Any, scale: str = "linear") -> Chart:
    """The claimed ROC curve, the empirical one with its band, and the psi that the audit proves; red if it refutes.

    Without a claim there is only the attack and what it proves.

    `result` is an AuditResult: psi, confidence, and roc(fpr) with tpr, lower and upper. `scale` is "linear" or "log":
    the second shows small rates.
    """
    alt = altair()
    if scale not in ("linear", "log"):
        raise ValueError(f'scale must be "linear" or "log", got scale={scale!r}.')
    x = rates() if scale == "linear" else np.geomspace(1e-4, 1.0, 161)
    band = result.roc(x)
    broken = claim is not None and result.psi > claim.psi and result.kappa == claim.kappa
    proved = f"audited, psi >= {down(result.psi)}"
    names = {proved: "bad" if broken else "tangent", "attack": "audit"}
    rows = curve_rows(proved, x, sides(tpr_from_psi(result.psi, x)))
    if claim is not None:
        claimed = f"claimed, psi = {up(claim.psi)}"
        names = {claimed: "psi"} | names
        rows += curve_rows(claimed, x, sides(claim.roc(x)))
    seen = curve_rows("attack", x, (np.asarray(band.lower), np.asarray(band.upper)))
    middle = [
        {"kind": "attack", "x": a, "upper": b} for a, b in zip(x.tolist(), np.asarray(band.tpr).tolist(), strict=True)
    ]
    colour = colours(names, legend=alt.Legend(title=None, columns=1))
    limits = {"domain": [0.0, 1.0]} if scale == "linear" else {"type": "log", "domain": [1e-4, 1.0], "clamp": True}
    across = alt.X("x:Q", title="false positive rate", scale=alt.Scale(**limits))
    upward = alt.Y("upper:Q", title="true positive rate", scale=alt.Scale(**limits))
    area = alt.Chart(data(seen)).mark_area(opacity=0.2, color=LIGHT["audit"]).encode(across, upward, y2="lower:Q")
    steps = alt.Chart(data(middle)).mark_line(strokeWidth=1.5).encode(across, upward, colour, order="x:Q")
    lines = alt.Chart(data(rows)).mark_line(strokeWidth=2.5, clip=True).encode(across, upward, colour, order="x:Q")
    verdict = "the promise is broken" if broken else "no contradiction to the promise"
    said = f"confidence {result.confidence:g}" + (f": {verdict}" if claim is not None else "")
    return finished(area + lines + steps, "Claim and audit", said)
