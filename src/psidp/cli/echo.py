"""Text on a terminal: names and values in it cannot act on the terminal that shows them."""

import typer

from psidp.escaping import visible

__all__ = ["echo"]


def echo(text: object = "", *, err: bool = False) -> None:
    """A line on standard output, or on standard error."""
    typer.echo(visible(str(text)), err=err)
