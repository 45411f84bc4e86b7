"""Objects draw themselves in a notebook: a still picture and a table, with no script and no network.

Guarantee, PrivacyCurve and AuditResult ask for it by name, when a notebook shows them.
"""

from html import escape
from typing import Any

from psidp.auditing.result import AuditResult
from psidp.errors import MissingExtraError

__all__ = ["bundle", "drawn"]


def drawn(value: Any) -> str:
    """The ROC curve as SVG, an audit's over its claim; empty where the plot extra is not installed."""
    from psidp.present.figures import claim_and_audit, roc

    try:
        chart = claim_and_audit(value.claimed, value) if isinstance(value, AuditResult) else roc(value)
    except MissingExtraError:
        return ""
    import vl_convert

    picture: str = vl_convert.vegalite_to_svg(chart.to_dict())
    return picture


def bundle(value: Any) -> dict[str, str]:
    """What a notebook shows of a value: text, and HTML with the picture above the table."""
    picture, table = drawn(value), getattr(value, "_repr_html_", lambda: f"<pre>{escape(repr(value))}</pre>")()
    shown = {"text/plain": repr(value), "text/html": picture + table}
    return shown | ({"image/svg+xml": picture} if picture else {})
