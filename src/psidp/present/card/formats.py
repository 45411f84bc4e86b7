"""The card in each of its formats."""

from psidp.present.card.html import to_html
from psidp.present.card.markdown import to_markdown
from psidp.present.card.record import Card

__all__ = ["FORMATS", "written"]

FORMATS = ("html", "md", "json")


def written(card: Card, form: str) -> str:
    """The card in one of the formats."""
    if form not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, got format={form!r}.")
    return {"html": to_html, "md": to_markdown, "json": Card.to_json}[form](card)
