"""The card as Markdown that any renderer shows and that cannot be broken out of."""

import re

from psidp.present.card.record import Card
from psidp.present.card.reproduce import command_of
from psidp.present.card.rows import sections, warning

__all__ = ["to_markdown"]


def to_markdown(card: Card) -> str:
    """The card as GitHub-flavoured Markdown.

    Examples:
        >>> from psidp.guarantee import Guarantee
        >>> from psidp.present.card.record import card
        >>> print(to_markdown(card(Guarantee(1.0), title="Mean *age*")).splitlines()[0])
        # Mean \\*age\\*
    """
    lines = [f"# {_text(card.title)}", ""]
    lines += [f"**{_text(warning(card))}**", ""] if warning(card) else []
    for sentence in card.sentences:
        lines += [_text(sentence), ""]
    for heading, rows in sections(card):
        lines += [f"## {heading}", "", "| | |", "| --- | --- |"]
        lines += [f"| {_text(name)} | {_text(value)} |" for name, value in rows]
        lines.append("")
    command = command_of(card).replace("\n", " ")
    fence = "`" * (max((len(run) for run in re.findall("`+", command)), default=0) + 3)
    return "\n".join([*lines, "Made by:", "", fence, command, fence, ""])


def _text(words: str) -> str:
    """`words` with nothing that Markdown or HTML would act on, on one line."""
    return re.sub(r"([\\`*_{}\[\]<>#|~&])", r"\\\1", " ".join(words.split()))
