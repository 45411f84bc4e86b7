"""Formulae as MathML, which browsers draw by themselves: no script, no font and nothing from elsewhere."""

from html import escape
from typing import Any

from latex2mathml.converter import convert


def inline(self: Any, node: Any) -> None:
    """A formula in a line of text."""
    self.body.append(convert(node.astext()))
    raise _skipped()


def displayed(self: Any, node: Any) -> None:
    """A formula on a line of its own; wide ones scroll."""
    name = escape(node.astext(), quote=True)
    self.body.append(f'<div class="math-block" tabindex="0" role="group" aria-label="{name}">')
    self.body.append(convert(node.astext(), display="block") + "</div>")
    raise _skipped()


def _skipped() -> Exception:
    from docutils.nodes import SkipNode

    return SkipNode()


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_html_math_renderer("mathml", (inline, None), (displayed, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
