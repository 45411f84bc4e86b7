"""The card as Markdown that any renderer shows and that cannot be broken out of."""

import re

from psidp.escaping import markdown, one_line
from psidp.present.card.front import Front, front
from psidp.present.card.record import Card
from psidp.present.card.reproduce import RECOMPUTED, command_of
from psidp.present.card.rows import sections, warning
from psidp.present.card.scale import in_one_line

__all__ = ["to_markdown"]


def to_markdown(card: Card) -> str:
    """The card as GitHub-flavoured Markdown.

    Examples:
        >>> from psidp.guarantee import Guarantee
        >>> from psidp.present.card.record import card
        >>> print(to_markdown(card(Guarantee(1.0), title="Mean *age*")).splitlines()[0])
        # Mean \\*age\\*
    """
    lines = [f"# {markdown(card.title)}", ""]
    lines += [f"**{markdown(warning(card))}**", ""] if warning(card) else []
    lines += _front(front(card))
    lines += ["# For specialists", ""]
    for heading, rows in sections(card):
        lines += [f"## {heading}", "", "| | | |", "| --- | --- | --- |"]
        lines += [f"| {' | '.join(map(markdown, row))} |" for row in rows]
        lines.append("")
    command = one_line(command_of(card))
    fence = "`" * (max((len(run) for run in re.findall("`+", command)), default=0) + 3)
    return "\n".join([*lines, RECOMPUTED, "", fence, command, fence, ""])


def _front(page: Front) -> list[str]:
    """The first page: what it means, what is not promised, whether anybody checked it."""
    lines = [markdown(page.byline), "", markdown(page.whom), ""]
    lines += [f"**{markdown(page.number)}**{_spaced(page.at)}. {markdown(page.smaller)}", "", markdown(page.bound), ""]
    lines += ["Right guesses in 1,000, at most:", "", markdown(in_one_line(page.marks)), ""]
    lines += [markdown(page.spent), ""] if page.spent else []
    lines += [markdown(page.comparison), ""]
    lines += ["## What it means", ""]
    for sentence in (*page.sentences, page.again):
        lines += [markdown(sentence), ""]
    for heading, entries in (
        ("What is not promised", page.not_promised),
        ("How far off the numbers are", page.errors),
        ("Has anybody checked it?", [check.words for check in page.checks]),
    ):
        lines += [f"## {heading}", "", *(f"- {markdown(entry)}" for entry in entries), ""]
    return lines


def _spaced(words: str) -> str:
    """Escaped, with the space that it begins with."""
    return f"{' ' * words.startswith(' ')}{markdown(words.strip())}"
