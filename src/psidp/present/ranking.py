"""Gaussian mechanisms in order, the most private first, with the distance from each to the next."""

from dataclasses import dataclass
from itertools import pairwise

from psidp.guarantee import Guarantee
from psidp.maths.bayes import divergence

__all__ = ["Ranked", "rank"]


@dataclass(frozen=True, slots=True)
class Ranked:
    """A named mechanism in the order of privacy."""

    name: str
    guarantee: Guarantee
    divergence_to_next: float | None


def rank(named: list[tuple[str, Guarantee]]) -> list[Ranked]:
    """The mechanisms by privacy; refused where adjacency or unit differ or where two cross.

    Examples:
        >>> [r.name for r in rank([("a", Guarantee(2.0)), ("b", Guarantee(1.0))])]
        ['b', 'a']
    """
    ordered = sorted(named, key=lambda pair: pair[1])
    steps = [float(divergence(a.psi, b.psi)) for (_, a), (_, b) in pairwise(ordered)]
    return [Ranked(name, g, step) for (name, g), step in zip(ordered, [*steps, None], strict=True)]
