"""Figures as files: SVG, PNG, PDF, JSON, and HTML that moves and needs no network."""

import json
from pathlib import Path
from typing import Any

from psidp.present.figures.theme import Chart, altair
from psidp.present.markup import element

__all__ = ["SUFFIXES", "save", "to_html"]

SUFFIXES = (".svg", ".png", ".pdf", ".html", ".json")
SHOW = (
    'const spec = JSON.parse(document.getElementById("spec").textContent);\n'
    'vegaEmbed("#figure", spec, { actions: true });\n'
)
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)
"""Nothing is loaded and nothing is sent. Vega compiles its expressions, hence eval; a figure's texts are only data."""


def save(chart: Chart, path: str | Path) -> Path:
    """Write the chart in the format that the file's name ends in, and give the path back."""
    target = Path(path)
    if target.suffix not in SUFFIXES:
        raise ValueError(f"a figure's file must end in {', '.join(SUFFIXES)}, got {target.name!r}.")
    if target.suffix == ".html":
        target.write_text(to_html(chart), encoding="utf-8")
    elif target.suffix == ".png":
        chart.save(str(target), scale_factor=2.0)
    else:
        chart.save(str(target))
    return target


def to_html(chart: Chart) -> str:
    """One file with the figure and everything that draws it; every name in it is data and never markup."""
    altair()
    import vl_convert

    spec: dict[str, Any] = chart.to_dict()
    title = spec.get("title", {})
    name = title.get("text", "Figure") if isinstance(title, dict) else str(title)
    code = vl_convert.javascript_bundle(SHOW).replace("</script", "<\\/script")
    values = json.dumps(spec).replace("<", "\\u003c")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">{element("title", name)}</head>\n'
        f'<body><div id="figure"></div>\n<script type="application/json" id="spec">{values}</script>\n'
        f'<script type="module">{code}</script>\n</body></html>\n'
    )
