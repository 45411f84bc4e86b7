"""The card as Markdown that any renderer shows and that cannot be broken out of."""

import re

from psidp.present.card.front import Front, front
from psidp.present.card.record import Card
from psidp.present.card.reproduce import RECOMPUTED, command_of
from psidp.present.card.rows import sections, warning
from psidp.present.card.scale import in_one_line
from psidp.present.formatting import visible

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
    lines += _front(front(card))
    lines += ["# For specialists", ""]
    for heading, rows in sections(card):
        lines += [f"## {heading}", "", "| | | |", "| --- | --- | --- |"]
        lines += [f"| {' | '.join(map(_text, row))} |" for row in rows]
        lines.append("")
    command = visible(command_of(card).replace("\n", " "))
    fence = "`" * (max((len(run) for run in re.findall("`+", command)), default=0) + 3)
    return "\n".join([*lines, RECOMPUTED, "", fence, command, fence, ""])


def _front(page: Front) -> list[str]:
    """The first page: what it means, what is not promised, whether anybody checked it."""
    lines = [_text(page.byline), "", _text(page.whom), ""]
    lines += [f"**{_text(page.number)}**{_spaced(page.at)}. {_text(page.smaller)}", "", _text(page.bound), ""]
    lines += ["Right guesses in 1,000, at most:", "", _text(in_one_line(page.marks)), ""]
    lines += [_text(page.spent), ""] if page.spent else []
    lines += [_text(page.comparison), ""]
    lines += ["## What it means", ""]
    for sentence in (*page.sentences, page.again):
        lines += [_text(sentence), ""]
    for heading, entries in (
        ("What is not promised", page.not_promised),
        ("How far off the numbers are", page.errors),
        ("Has anybody checked it?", [check.words for check in page.checks]),
    ):
        lines += [f"## {heading}", "", *(f"- {_text(entry)}" for entry in entries), ""]
    return lines


def _text(words: str) -> str:
    """`words` with nothing that Markdown or HTML would act on, on one line."""
    return re.sub(r"([\\`*_{}\[\]<>#|~&])", r"\\\1", visible(" ".join(words.split())))


def _spaced(words: str) -> str:
    """As _text, with the space that it begins with."""
    return f"{' ' * words.startswith(' ')}{_text(words)}"
