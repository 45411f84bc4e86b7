"""The card as one HTML file: no script, nothing loaded, two pages of A4, for people and for specialists."""

import numpy as np

from psidp.accounting.upper import UpperEnds
from psidp.guarantee import Guarantee
from psidp.maths.normal import tail
from psidp.present.card.front import front
from psidp.present.card.record import Card
from psidp.present.card.reproduce import RECOMPUTED, command_of
from psidp.present.card.rows import Rows, sections, warning
from psidp.present.card.scale import scale_picture
from psidp.present.formatting import up
from psidp.present.markup import Element, element, source_hash
from psidp.present.palette import LIGHT

__all__ = ["to_html"]

STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { font: 10pt/1.4 system-ui, "Liberation Sans", sans-serif; color: #1b1d22; background: #fff; margin: 0 auto;
  max-width: 190mm; padding: 8mm; }
h1 { font-size: 19pt; line-height: 1.2; margin: 0 0 1.5mm; overflow-wrap: anywhere; }
h2 { font-size: 12pt; margin: 0 0 1.5mm; color: #a0358a; }
p { margin: 0 0 2mm; } ul { margin: 0; padding: 0 0 0 4.5mm; } li { margin: 0 0 1mm; }
.by { color: #565b66; } .whom { font-size: 11.5pt; }
.psi { font-size: 15pt; margin: 3mm 0 1mm; } .psi b { color: #a0358a; }
.small { font-size: 9.5pt; color: #565b66; }
.broken { margin: 0 0 2mm; padding: 1.5mm 2.5mm; border: 2px solid #b3261e; color: #b3261e; font-weight: 600; }
.front { break-after: page; }
.headline { font-size: 12pt; }
.two { display: grid; grid-template-columns: 1fr 1fr; gap: 3mm 7mm; margin-top: 3mm; }
.check { border: 2px solid #565b66; border-radius: 2mm; padding: 2.5mm 3mm; margin-top: 3mm; font-size: 12pt; }
.check h2 { color: #1b1d22; } .check p:last-child { margin: 0; }
.good { color: #00775a; } .bad { color: #b3261e; font-weight: 600; } .open { color: #8a5a00; }
.back { margin-top: 8mm; border-top: 2px solid #a0358a; padding-top: 3mm; }
.back h1 { font-size: 13pt; } .columns { columns: 2; column-gap: 7mm; }
.back section { margin-bottom: 2.5mm; break-inside: avoid; } .back h2 { font-size: 10pt; margin: 0 0 .5mm; }
table { width: 100%; border-collapse: collapse; font-size: 9pt; line-height: 1.25; }
th, td { padding: .5mm 0; vertical-align: top; text-align: left; font-weight: 400; overflow-wrap: anywhere; }
th { padding-right: 3mm; } th small { display: block; font-size: 7.5pt; color: #565b66; }
td { font-variant-numeric: tabular-nums; } .short td { text-align: right; white-space: nowrap; }
.long th { width: 38%; }
tr { border-bottom: 1px solid #e6e8ec; }
footer { font-size: 8pt; color: #565b66; } code { overflow-wrap: anywhere; }
svg { width: 100%; height: auto; } .roc { max-width: 52mm; } svg text { font-size: 9px; fill: #565b66; }
.scale text { font-size: 11px; fill: #1b1d22; } .scale .mark { font-weight: 600; fill: #a0358a;
  paint-order: stroke; stroke: #fff; stroke-width: 3px; }
.scale .end { font-weight: 600; }
@media (max-width: 40rem) { body { padding: 4mm; } .two { grid-template-columns: 1fr; } .columns { columns: 1; }
  .scale text { font-size: 17px; }
  .scale .unit, .scale .inner { display: none; } }
@page { size: A4; margin: 10mm; }
@media print { body { padding: 0; max-width: none; } .back { margin-top: 0; border-top: 0; padding-top: 0; }
  .front { line-height: 1.3; } .headline, .check { font-size: 11pt; } .front p { margin-bottom: 1.5mm; }
  .back th, .back td { padding-block: .3mm; } }
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
        element("body", _front(card), _back(card)),
        lang="en",
    )
    return f"<!doctype html>\n{page}\n"


def _front(card: Card) -> Element:
    """Page one, for people."""
    page = front(card)
    warned = [element("p", warning(card), class_="broken")] if warning(card) else []
    number = element("p", element("b", page.number), page.at, class_="psi")
    first, *others = page.sentences
    means = [element("p", first, class_="headline"), *(element("p", words) for words in (*others, page.again))]
    two = element(
        "div",
        element("section", element("h2", "What is not promised"), _list(page.not_promised)),
        element("section", element("h2", "How far off the numbers are"), _list(page.errors)),
        class_="two",
    )
    checks = [element("p", check.words, class_=check.state) for check in page.checks]
    return element(
        "main",
        *warned,
        element("h1", card.title),
        element("p", page.byline, class_="by"),
        element("p", page.whom, class_="whom"),
        number,
        element("p", page.smaller),
        element("p", page.bound),
        scale_picture(page.marks),
        *([element("p", page.spent)] if page.spent else []),
        element("p", page.comparison, class_="small"),
        element("h2", "What it means"),
        *means,
        two,
        element("section", element("h2", "Has anybody checked it?"), *checks, class_="check"),
        class_="front",
    )


def _list(entries: tuple[str, ...]) -> Element:
    return element("ul", *(element("li", entry) for entry in entries))


def _back(card: Card) -> Element:
    """Page two, for specialists."""
    tables = [_section(heading, rows) for heading, rows in sections(card)]
    curve = element("section", element("h2", "The best attack"), roc_picture(card.promise))
    command = element("p", f"{RECOMPUTED} ", element("code", command_of(card)))
    return element(
        "aside",
        element("h1", f"For specialists: {card.title}"),
        element("div", *tables, curve, class_="columns"),
        element("footer", command),
        class_="back",
        aria_label="For specialists",
    )


def _section(heading: str, rows: Rows) -> Element:
    wordy = max(len(value) for _, value, _ in rows) > 24
    lines = [
        element("tr", element("th", name, element("small", meaning), scope="row"), element("td", value))
        for name, value, meaning in rows
    ]
    table = element("table", element("tbody", *lines), class_="long" if wordy else "short")
    return element("section", element("h2", heading), table)


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
    named = {"role": "img", "aria_label": label, "viewBox": "0 0 200 202", "class_": "roc"}
    return element("svg", frame, chance, line, across, upward, area, xmlns="http://www.w3.org/2000/svg", **named)
