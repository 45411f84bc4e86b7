"""Densities: of the output with and without one person, and of the privacy loss."""

from typing import Any

import numpy as np

from psidp.guarantee import Guarantee
from psidp.maths.loss import sufficient_delta
from psidp.maths.normal import SQRT_2PI
from psidp.maths.roc import rates_at_threshold
from psidp.present.figures.theme import Chart, altair, colours, data, finished
from psidp.present.formatting import up
from psidp.present.palette import LIGHT

__all__ = ["areas", "densities", "density", "loss"]


def density(x: Any, mean: float, deviation: float) -> Any:
    """Density of the normal distribution."""
    z = (np.asarray(x) - mean) / deviation
    return np.exp(-0.5 * z * z) / (deviation * SQRT_2PI)


def densities(guarantee: Guarantee, threshold: float | None = None) -> Chart:
    """The outputs of the mechanism with and without one person, in units of sigma, and the four areas of a threshold.

    The threshold lies in the middle unless given.
    """
    psi = guarantee.psi
    cut = 0.5 * psi if threshold is None else threshold
    chart = areas(0.0, psi, 1.0, cut, "output, in standard deviations of the noise")
    return finished(chart, f"Outputs with and without one {guarantee.unit}", f"psi = {up(psi)}, threshold {cut:.3g}")


def areas(without: float, with_: float, sigma: float, threshold: float, title: str) -> Chart:
    """Both densities, the threshold, and true and false positives and negatives as areas, labelled with their rates."""
    alt = altair()
    found = rates_at_threshold(threshold, without, with_, sigma)
    low, high = min(without, with_) - 4.0 * sigma, max(without, with_) + 4.0 * sigma
    left, right = np.linspace(low, threshold, 121), np.linspace(threshold, high, 121)
    parts = [
        (f"TN, rate {found.tnr:.3f}", "tn", without, left),
        (f"TP, rate {found.tpr:.3f}", "tp", with_, right),
        (f"FN, rate {found.fnr:.3f}", "fn", with_, left),
        (f"FP, rate {found.fpr:.3f}", "fp", without, right),
    ]
    x = alt.X("x:Q", title=title, scale=alt.Scale(domain=[low, high], nice=False))
    y = alt.Y("y:Q", title="density", axis=alt.Axis(labels=False, ticks=False))
    names = {name: concept for name, concept, _, _ in parts}
    rows = [_row(name, v, m, sigma) for name, _, m, where in parts for v in where.tolist()]
    filled = alt.Chart(data(rows)).mark_area(opacity=0.55).encode(x=x, y=y.stack(None), color=_fill(names))
    whole = np.linspace(low, high, 241).tolist()
    lines = [_row("without", v, without, sigma) for v in whole] + [_row("with", v, with_, sigma) for v in whole]
    curves = alt.Chart(data(lines)).mark_line(strokeWidth=2.5).encode(x=x, y=y, color=_line_colours())
    rule = alt.Chart(data([{"x": threshold}])).mark_rule(color=LIGHT["ink"], strokeWidth=2).encode(x="x:Q")
    return alt.layer(filled, curves, rule).resolve_scale(color="independent")


def loss(guarantee: Guarantee, epsilon: float = 1.0) -> Chart:
    """The density of the privacy loss, normal with mean psi^2/2 and variance psi^2, and its mass above epsilon."""
    alt, psi = altair(), guarantee.psi
    if not psi > 0.0:
        raise ValueError("psi must be above 0 for the privacy loss to have a density.")
    mean = 0.5 * psi * psi
    low, high = mean - 4.0 * psi, max(mean + 4.0 * psi, epsilon)
    x = alt.X("x:Q", title="privacy loss", scale=alt.Scale(domain=[low, high], nice=False))
    y = alt.Y("y:Q", title="density", axis=alt.Axis(labels=False, ticks=False))
    whole = [_row("loss", v, mean, psi) for v in np.linspace(low, high, 241).tolist()]
    above = [_row("loss", v, mean, psi) for v in np.linspace(epsilon, high, 121).tolist()]
    area = alt.Chart(data(above)).mark_area(opacity=0.4, color=LIGHT["tangent"]).encode(x=x, y=y)
    line = alt.Chart(data(whole)).mark_line(color=LIGHT["psi"], strokeWidth=2.5).encode(x=x, y=y)
    rule = alt.Chart(data([{"x": epsilon}])).mark_rule(color=LIGHT["tangent"], strokeWidth=2).encode(x="x:Q")
    mass, exact = float(sufficient_delta(psi, epsilon)), float(guarantee.delta(epsilon))
    words = f"mean psi^2/2 = {mean:.4g}; P(loss >= {epsilon:g}) = {up(mass)}, exact delta = {up(exact)}"
    return finished(area + line + rule, "Privacy loss", words)


def _row(kind: str, value: float, mean: float, deviation: float) -> dict[str, Any]:
    return {"kind": kind, "x": value, "y": float(density(value, mean, deviation))}


def _fill(names: dict[str, str]) -> Any:
    return colours(names, legend=altair().Legend(title="at this threshold"))


def _line_colours() -> Any:
    return colours({"without": "without", "with": "with"}, legend=altair().Legend(title="the person"))
