"""The paper's seven figures, drawn truly: real curves, the loss at its real mean, the order of the real data."""

from collections.abc import Callable

import numpy as np

from psidp.guarantee import Guarantee
from psidp.maths.tangent import failed_roc
from psidp.present.figures.outputs import areas, density
from psidp.present.figures.points import curve_rows, rates
from psidp.present.figures.tangents import tangent_layers
from psidp.present.figures.theme import Chart, altair, colours, data, finished
from psidp.present.palette import LIGHT
from psidp.present.paper_experiment import FIGURES as ORDERS
from psidp.present.paper_experiment import ROADS, experiment

__all__ = ["PAPER", "paper_figure"]

WITHOUT, WITH, SIGMA = -2.0, 2.0, 2.0
"""f(D), f(D') and sigma of the paper's Figures 1 and 2: psi = 2."""
PSI = (WITH - WITHOUT) / SIGMA
CUT = -1.0
EPSILON = 1.0
FAILURE = 0.2


def losses() -> Chart:
    """Figure 1: the outputs on D and D', and the privacy loss, which is N(psi^2/2, psi^2) = N(2, 2^2)."""
    alt, x = altair(), np.linspace(-9.0, 9.0, 301)
    parts = {
        "output on D": density(x, WITHOUT, SIGMA),
        "output on D'": density(x, WITH, SIGMA),
        "privacy loss": density(x, 0.5 * PSI**2, PSI),
    }
    rows = [r for name, y in parts.items() for r in curve_rows(name, x, (y, y))]
    concepts = dict(zip(parts, ("without", "with", "psi"), strict=True))
    dash = alt.StrokeDash("kind:N", scale=alt.Scale(domain=list(parts), range=[[1, 0], [1, 0], [9, 9]]), legend=None)
    colour = colours(concepts, legend=alt.Legend(title=None))
    encoded = alt.Chart(data(rows)).mark_line(strokeWidth=2.5)
    chart = encoded.encode(alt.X("x:Q", title="value"), alt.Y("upper:Q", title="density"), colour, dash, order="x:Q")
    said = ("f(D) = -2, f(D') = 2, sigma = 2, so psi = 2;", "the loss has mean psi^2/2 = 2 and covers the output on D'")
    return finished(chart, "Figure 1. Outputs and privacy loss", *said)


def threshold() -> Chart:
    """Figure 2: the attack's cut-off and its four rates."""
    chart = areas(WITHOUT, WITH, SIGMA, CUT, "output")
    return finished(chart, "Figure 2. The attack as a classification", "f(D) = -2, f(D') = 2, sigma = 2, cut-off -1")


def roc_curve() -> Chart:
    """Figure 3: the ROC curve and the area under it."""
    alt, x = altair(), rates()
    g = Guarantee(1.0)
    rows = curve_rows("ROC curve", x, (np.zeros_like(x), np.asarray(g.roc(x))))
    across, upward = _unit_axes()
    drawn = alt.Chart(data(rows))
    area = drawn.mark_area(opacity=0.25, color=LIGHT["psi"]).encode(across, upward)
    line = drawn.mark_line(strokeWidth=2.5, color=LIGHT["psi"]).encode(across, upward, order="x:Q")
    note = alt.Chart(data([{"x": 0.6, "upper": 0.4, "text": f"AUC = {g.auc:.4f}"}]))
    words = note.mark_text(fontSize=14, color=LIGHT["ink"]).encode(across, upward, text="text:N")
    return finished(area + line + words, "Figure 3. ROC curve", "psi = 1: R(x) = Phi(psi + Phi^-1(x))")


def tangent() -> Chart:
    """Figure 4: the tangent with slope e^epsilon has the intercept delta."""
    said = f"psi = 1, epsilon = {EPSILON:g}: the intercept is the exact delta, 0.1269"
    return finished(tangent_layers(1.0, EPSILON), "Figure 4. Tangent and delta", said)


def failed() -> Chart:
    """Figure 5: the ROC curve of a mechanism that fails with probability kappa, beside its own."""
    alt, x = altair(), rates()
    own = np.asarray(Guarantee(1.0).roc(x))
    rows = curve_rows("failed mechanism", x, (own, np.asarray(failed_roc(1.0, FAILURE, x))))
    rows += curve_rows("its own curve", x, (own, own))
    across, upward = _unit_axes()
    names = {"failed mechanism": "bad", "its own curve": "psi"}
    dash = alt.StrokeDash("kind:N", scale=alt.Scale(domain=list(names), range=[[1, 0], [6, 4]]), legend=None)
    colour = colours(names, legend=alt.Legend(title=None))
    lines = alt.Chart(data(rows)).mark_line(strokeWidth=2.5).encode(across, upward, colour, dash, order="x:Q")
    dot = alt.Chart(data([{"x": 0.0, "upper": FAILURE, "text": f"kappa = {FAILURE:g}"}])).encode(across, upward)
    marks = dot.mark_point(filled=True, size=90, color=LIGHT["bad"], opacity=1)
    words = dot.mark_text(align="left", dx=10, dy=12, color=LIGHT["bad"]).encode(text="text:N")
    return finished(lines + marks + words, "Figure 5. A failed mechanism", "psi = 1, failure with probability kappa")


def roads(figure: int) -> Chart:
    """Figures 6 and 7: three roads from psi to epsilon, our curves over the published points."""
    alt, table, alpha = altair(), experiment(figure), ORDERS[figure]
    names = dict(zip(ROADS, ("privacy profile (exact)", "improved RDP", "standard RDP"), strict=True))
    rows = [r for road, name in names.items() for r in curve_rows(name, table["psi"], (table[road], table[road]))]
    some = slice(0, None, 6)
    points = [
        r
        for road, name in names.items()
        for r in curve_rows(name, table["psi"][some], (table[f"published_{road}"][some],) * 2)
    ]
    x, y = alt.X("x:Q", title="psi"), alt.Y("upper:Q", title="epsilon at delta = 1e-5")
    concepts = dict(zip(names.values(), ("psi", "with", "without"), strict=True))
    colour = colours(concepts, legend=alt.Legend(title=None))
    lines = alt.Chart(data(rows)).mark_line(strokeWidth=2.5).encode(x, y, colour, order="x:Q")
    dots = alt.Chart(data(points)).mark_point(size=28, opacity=0.9).encode(x, y, colour)
    said = [f"RDP at alpha = {alpha:g}; points: the published numbers"]
    said += ["(the paper's title says alpha = 2; its data are those of 1.9)"] if figure == 6 else []
    return finished(lines + dots, f"Figure {figure}. From psi to epsilon", *said)


PAPER: dict[int, Callable[[], Chart]] = {
    1: losses,
    2: threshold,
    3: roc_curve,
    4: tangent,
    5: failed,
    6: lambda: roads(6),
    7: lambda: roads(7),
}


def paper_figure(figure: int) -> Chart:
    """One of the paper's seven figures."""
    if figure not in PAPER:
        raise ValueError(f"figure must be in 1, ..., 7, got figure={figure}.")
    return PAPER[figure]()


def _unit_axes() -> tuple[object, object]:
    alt = altair()
    scale = alt.Scale(domain=[0.0, 1.0])
    across = alt.X("x:Q", title="false positive rate", scale=scale)
    return across, alt.Y("upper:Q", title="true positive rate", scale=scale)
