"""The card as one HTML file: no script, nothing loaded, prints on one sheet of A4."""

import numpy as np

from psidp.accounting.upper import UpperEnds
from psidp.guarantee import Guarantee
from psidp.maths.normal import tail
from psidp.present.card.record import Card
from psidp.present.card.reproduce import command_of
from psidp.present.card.rows import Rows, sections, warning
from psidp.present.formatting import up
from psidp.present.markup import Element, element, source_hash
from psidp.present.palette import LIGHT

__all__ = ["to_html"]

STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { font: 10.5pt/1.4 system-ui, "Liberation Sans", sans-serif; color: #1b1d22; background: #fff; margin: 0 auto;
  max-width: 190mm; padding: 8mm; }
h1 { font-size: 17pt; margin: 0 0 2mm; overflow-wrap: anywhere; }
h2 { font-size: 10.5pt; margin: 0 0 1mm; color: #a0358a; }
header { display: grid; grid-template-columns: 1fr 52mm; gap: 6mm;
  border-bottom: 2px solid #a0358a; padding-bottom: 3mm; }
.psi { font-size: 15pt; margin: 0 0 2mm; } .psi b { color: #a0358a; }
.words { margin: 0 0 1.5mm; }
.broken { margin: 0 0 2mm; padding: 1.5mm 2.5mm; border: 2px solid #b3261e; color: #b3261e; font-weight: 600; }
main { columns: 2; column-gap: 6mm; margin-top: 4mm; }
section { break-inside: avoid; margin-bottom: 3.5mm; }
table { width: 100%; border-collapse: collapse; font-size: 9.5pt; }
.short td { white-space: nowrap; }
th { text-align: left; font-weight: 400; color: #565b66; padding: .6mm 3mm .6mm 0; vertical-align: top; }
td { padding: .6mm 0; text-align: right; vertical-align: top; overflow-wrap: anywhere;
  font-variant-numeric: tabular-nums; }
tr { border-bottom: 1px solid #e6e8ec; }
.long td { text-align: left; }
footer { font-size: 8.5pt; color: #565b66; } code { overflow-wrap: anywhere; }
svg { width: 52mm; height: auto; } svg text { font-size: 9px; fill: #565b66; }
@media (max-width: 40rem) { header { grid-template-columns: 1fr; } main { columns: 1; } }
@page { size: A4; margin: 10mm; } @media print { body { padding: 0; max-width: none; } }
"""


def to_html(card: Card) -> str:
    """The card as a whole HTML page; every text that a user gave is escaped.

    Examples:
        >>> from psidp.present.card.record import card
        >>> "<script>" in to_html(card(Guarantee(1.0), title="<script>alert(1)</script>"))
        False
    """
    policy = f"default-src 'none'; style-src {source_hash(STYLE)}; base-uri 'none'; form-action 'none'"
    head = Element(
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    )
    page = element(
        "html",
        element("head", head, element("title", card.title), element("style", Element(STYLE))),
        element("body", _header(card), _main(card), _footer(card)),
        lang="en",
    )
    return f"<!doctype html>\n{page}\n"


def _header(card: Card) -> Element:
    g = card.guarantee
    failure = f", kappa = {up(g.kappa)}" if g.kappa else ""
    said = [element("b", f"psi = {up(g.psi)}"), failure]
    if card.events:
        said = [element("b", f"epsilon = {up(card.epsilon)}"), f" at delta = {up(card.delta)}"]
    number = element("p", *said, f" per {g.unit}, {g.adjacency}", class_="psi")
    words = [element("p", warning(card), class_="broken")] if warning(card) else []
    words += [element("p", sentence, class_="words") for sentence in card.sentences]
    return element("header", element("div", element("h1", card.title), number, *words), roc_picture(card.promise))


def _main(card: Card) -> Element:
    return element("main", *(_section(heading, rows) for heading, rows in sections(card)))


def _section(heading: str, rows: Rows) -> Element:
    wordy = max(len(value) for _, value in rows) > 24
    lines = [element("tr", element("th", name, scope="row"), element("td", value)) for name, value in rows]
    table = element("table", element("tbody", *lines), class_="long" if wordy else "short")
    return element("section", element("h2", heading), table)


def _footer(card: Card) -> Element:
    said = "Made again, to the last digit, by: "
    return element("footer", element("p", said, element("code", command_of(card))))


def roc_picture(promise: Guarantee | UpperEnds) -> Element:
    """The best attack's ROC curve beside that of a coin, as an SVG of 200 by 210."""
    x = np.unique(np.concatenate([[0.0, 1.0], np.asarray(tail(np.linspace(-5.0, 8.0, 120)))]))
    y = np.asarray(promise.roc(x) if isinstance(promise, Guarantee) else promise.roc(x, fine=0.5))
    curve = " ".join(f"{20 + 170 * a:.1f},{180 - 170 * b:.1f}" for a, b in zip(x, y, strict=True))
    frame = element("rect", x=20, y=10, width=170, height=170, fill="none", stroke=LIGHT["line"])
    chance = element("line", x1=20, y1=180, x2=190, y2=10, stroke=LIGHT["quiet"], stroke_dasharray="3 4")
    line = element("polyline", points=curve, fill="none", stroke=LIGHT["psi"], stroke_width=2.5)
    across = element("text", "false positive rate", x=105, y=195, text_anchor="middle")
    upward = element("text", "true positive rate", text_anchor="middle", transform="translate(12 95) rotate(-90)")
    label = f"ROC curve of the best attack, AUC {up(promise.auc)}"
    area = element("text", f"AUC at most {up(promise.auc)}", x=184, y=170, text_anchor="end")
    named = {"role": "img", "aria_label": label, "viewBox": "0 0 200 202"}
    return element("svg", frame, chance, line, across, upward, area, xmlns="http://www.w3.org/2000/svg", **named)
