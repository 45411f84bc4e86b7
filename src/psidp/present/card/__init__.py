"""The privacy card: what was promised, to whom, what it means and who checked it. It computes nothing."""

from psidp.present.card.formats import written
from psidp.present.card.html import to_html
from psidp.present.card.markdown import to_markdown
from psidp.present.card.record import Card, card
from psidp.present.card.schema import validate

__all__ = ["Card", "card", "to_html", "to_markdown", "validate", "written"]
