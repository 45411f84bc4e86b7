"""Several mechanisms in one picture, ordered by privacy, with the divergences between them."""

from psidp.guarantee import Guarantee
from psidp.maths.bayes import divergence
from psidp.present.figures.rates import profile, roc
from psidp.present.figures.theme import Chart, altair, data, finished
from psidp.present.formatting import up
from psidp.present.palette import LIGHT
from psidp.present.ranking import rank

__all__ = ["comparison"]


def comparison(named: dict[str, Guarantee]) -> Chart:
    """ROC curves, profiles, and the table of Delta-divergences of two to four Gaussian mechanisms."""
    if len(named) < 2:
        raise ValueError(f"a comparison must show two to four mechanisms, got {len(named)}.")
    ranked = {r.name: r.guarantee for r in rank(list(named.items()))}
    parts = [roc(ranked), profile(ranked), _divergences(ranked)]
    for part in parts:
        part.config = altair().Undefined
    said = "the most private first; a divergence is what an attacker may gain when the row is replaced by the column"
    return finished(altair().hconcat(*parts), "Mechanisms compared", said)


def _divergences(ranked: dict[str, Guarantee]) -> Chart:
    """Each cell: how much the chance of a right guess may grow."""
    alt, order = altair(), list(ranked)
    rows = [
        {"from": a, "to": b, "value": float(divergence(ranked[a].psi, ranked[b].psi)), "text": _cell(ranked, a, b)}
        for a in order
        for b in order
    ]
    x = alt.X("to:N", sort=order, title="replaced by", axis=alt.Axis(labelAngle=0, labelLimit=90))
    y = alt.Y("from:N", sort=order, title=None)
    shade = alt.Color("value:Q", legend=None, scale=alt.Scale(range=["#ffffff", LIGHT["psi"]], domain=[0.0, 0.5]))
    cells = alt.Chart(data(rows), title="divergences").encode(x, y)
    strong = alt.condition("datum.value > 0.25", alt.value("white"), alt.value(LIGHT["ink"]))
    text = cells.mark_text().encode(text="text:N", color=strong)
    side = 90 * len(order)
    return (cells.mark_rect(stroke=LIGHT["line"]).encode(color=shade) + text).properties(width=side, height=side)


def _cell(ranked: dict[str, Guarantee], a: str, b: str) -> str:
    return "" if a == b else up(float(divergence(ranked[a].psi, ranked[b].psi)), 3)
