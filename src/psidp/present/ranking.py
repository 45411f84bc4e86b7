"""Gaussian mechanisms in order, the most private first, with the distance from each to the next."""

from dataclasses import dataclass
from itertools import pairwise

from psidp.guarantee import Guarantee
from psidp.maths.bayes import divergence

__all__ = ["Ranked", "rank"]


@dataclass(frozen=True, slots=True)
class Ranked:
    """A mechanism in the order of privacy: its name, how it was described, and the distance to the next."""

    name: str
    guarantee: Guarantee
    divergence_to_next: float | None
    mechanism: str = ""


def rank(named: list[tuple[str, Guarantee]], described: list[str] | None = None) -> list[Ranked]:
    """The mechanisms by privacy; refused where adjacency or unit differ or where two cross.

    `described` says in the same order how each was given; its name unless told.

    Examples:
        >>> [r.name for r in rank([("a", Guarantee(2.0)), ("b", Guarantee(1.0))])]
        ['b', 'a']
    """
    words = described or [name for name, _ in named]
    ordered = sorted(zip(named, words, strict=True), key=lambda entry: entry[0][1])
    steps = [float(divergence(a.psi, b.psi)) for ((_, a), _), ((_, b), _) in pairwise(ordered)]
    return [Ranked(name, g, step, text) for ((name, g), text), step in zip(ordered, [*steps, None], strict=True)]
