"""psidp notation: every quantity with its name, letter, meaning and domain."""

from psidp.cli.echo import echo
from psidp.symbols import notation as lines_of_notation

__all__ = ["notation"]


def notation() -> None:
    """List every quantity: its name, letter, meaning and domain.

    The list is Markdown, and says what others call the same thing.
    """
    echo("\n".join(lines_of_notation()))
