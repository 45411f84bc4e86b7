"""The ROC curve with its tangents, and what the roads from psi to epsilon give away."""

import numpy as np

from psidp.guarantee import Guarantee
from psidp.maths.profile_inverse import epsilon_from_psi
from psidp.maths.renyi import epsilon_from_rdp, epsilon_via_rdp, rho_from_psi
from psidp.maths.tangent import tangent as tangent_to
from psidp.present.figures.points import curve_rows, rates, sides
from psidp.present.figures.theme import Chart, altair, colours, data, finished
from psidp.present.formatting import up

__all__ = ["conversions", "tangent", "tangent_layers"]


def tangent(guarantee: Guarantee, epsilon: float = 1.0) -> Chart:
    """The ROC curve with the tangent of slope e^epsilon, whose intercept is delta, and its mirror image."""
    if guarantee.kappa:
        raise ValueError(f"a tangent picture needs kappa = 0, got kappa={guarantee.kappa}.")
    delta = up(float(guarantee.delta(epsilon)))
    words = f"psi = {up(guarantee.psi)}: slope e^{epsilon:g} = {np.exp(epsilon):.4g}, intercept delta = {delta}"
    return finished(tangent_layers(guarantee.psi, epsilon), "Tangent to the ROC curve", words)


def tangent_layers(psi: float, epsilon: float) -> Chart:
    """Curve, tangent, mirror, the point of contact and the intercept."""
    alt, x, line = altair(), rates(), tangent_to(psi, epsilon)
    end = (1.0 - line.intercept) / line.slope
    ends = {"tangent": [(0.0, line.intercept), (end, 1.0)], "mirror": [(0.0, 1.0 - end), (1.0 - line.intercept, 1.0)]}
    ends["mirror"][0] = (0.0, line.mirror.intercept)
    rows = curve_rows("ROC curve", x, sides(Guarantee(psi).roc(x)))
    for name, pair in ends.items():
        rows += [{"kind": f"{name}", "x": a, "lower": b, "upper": b} for a, b in pair]
    dots = [
        {"kind": "ROC curve", "x": line.fpr, "upper": line.tpr, "text": "point of contact"},
        {"kind": "tangent", "x": 0.0, "upper": line.intercept, "text": f"delta = {line.intercept:.4g}"},
    ]
    scale = alt.Scale(domain=[0.0, 1.0])
    across = alt.X("x:Q", title="false positive rate", scale=scale)
    upward = alt.Y("upper:Q", title="true positive rate", scale=scale)
    colour = colours({"ROC curve": "psi", "tangent": "tangent", "mirror": "quiet"}, legend=alt.Legend(title=None))
    lines = alt.Chart(data(rows)).mark_line(strokeWidth=2.5, clip=True).encode(across, upward, colour, order="x:Q")
    marks = alt.Chart(data(dots)).encode(across, upward)
    points = marks.mark_point(filled=True, size=90, opacity=1).encode(color=colour)
    return lines + points + marks.mark_text(align="left", dx=10, dy=4).encode(text="text:N", color=colour)


def conversions(delta: float = 1e-5, alpha: float | None = None, largest: float = 6.0) -> Chart:
    """Three roads from psi to epsilon at delta: the exact profile, and Renyi DP by two conversions.

    The Renyi roads take one order alpha, or the best of all orders where none is given.
    """
    alt, psi = altair(), np.linspace(largest / 120.0, largest, 120)
    roads = {"privacy profile (exact)": np.asarray(epsilon_from_psi(psi, delta))}
    for kind in ("improved", "standard"):
        if alpha is None:
            roads[f"{kind} RDP, best order"] = np.asarray(epsilon_via_rdp(psi, delta, kind))
        else:
            roads[f"{kind} RDP, alpha = {alpha:g}"] = np.asarray(
                epsilon_from_rdp(rho_from_psi(psi, alpha), alpha, delta, kind)
            )
    rows = [r for name, epsilon in roads.items() for r in curve_rows(name, psi, (epsilon, epsilon))]
    colour = colours(
        dict(zip(roads, ("psi", "with", "without"), strict=True)), legend=alt.Legend(title=None, columns=1)
    )
    x, y = alt.X("x:Q", title="psi"), alt.Y("upper:Q", title=f"epsilon at delta = {delta:g}")
    chart = alt.Chart(data(rows)).mark_line(strokeWidth=2.5).encode(x, y, colour, order="x:Q")
    return finished(chart, "From psi to epsilon by three roads", "only the profile is exact")
