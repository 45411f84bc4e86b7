"""What histograms and quantiles have in common: a column, and public edges that are given or chosen privately."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

from psidp.tables.estimate import Floats
from psidp.tables.measures.measure import OfColumn, is_real, number, numbers_in_words
from psidp.tables.vector import Rows, Vector

__all__ = ["Binned", "Found", "check_edges", "column_and_edges"]

LARGEST = 2.0**1023
MOST_EDGES = 10_000


class Found(Protocol):
    """Where the values of a column were found to lie."""

    lower: float
    upper: float
    seen_rows: float
    """About how many rows there are, where a histogram of them is known, else 0."""

    def at_ranks(self, ranks: Floats) -> Floats:
        """The values at some shares of all rows."""


@dataclass(frozen=True, slots=True)
class Binned(OfColumn):
    """Rows between public edges. "auto" stands for edges that are to be chosen, and leaves none."""

    edges: tuple[float, ...] = ()

    binned = True
    summed = False
    ordered = False
    """Whether cumulative counts are what is asked of the bins."""

    def __post_init__(self) -> None:
        OfColumn.__post_init__(self)
        if isinstance(self.edges, str) and self.edges == "auto":
            object.__setattr__(self, "edges", ())
            object.__setattr__(self, "bounds", "auto")
        elif self.bounds != "auto":
            object.__setattr__(self, "edges", check_edges(self.column, self.edges))

    @property
    def vector(self) -> Vector:
        return Vector((Rows(),), edges=self.edges, column=self.column, ordered=self.ordered)

    def details(self) -> list[str]:
        known = [f"bounds {self.bounds}"] if self.bounds else []
        return [*known, *([f"edges {numbers_in_words(self.edges)}"] if self.edges else [])]

    def clipped_words(self) -> str:
        if self.chooses_bounds:
            return ""
        return f"values below {self.edges[0]:.6g} or above {self.edges[-1]:.6g} count in the end bins"


def check_edges(column: str, edges: Any) -> tuple[float, ...]:
    """Public edges, finite and increasing."""
    given = list(edges) if isinstance(edges, Iterable) else [edges]
    numbers = tuple(float(e) for e in given if is_real(e) and abs(e) <= LARGEST)
    rising = len(numbers) == len(given) and all(a < b for a, b in pairwise(numbers))
    if not (2 <= len(given) <= MOST_EDGES and rising):
        raise ValueError(
            f"edges of {column!r} must be 2 to {MOST_EDGES:,} finite numbers in increasing order, got {len(given)}."
        )
    return numbers


def column_and_edges(text: str) -> tuple[str, Any]:
    """column:edge,edge,..., or column:auto."""
    column, colon, edges = text.rpartition(":")
    if colon and edges == "auto":
        return column, "auto"
    if not colon:
        raise ValueError(f"a histogram must be column:edge,edge,..., such as age:0,18,65,100, got {text!r}.")
    return column, [number(edge, text) for edge in edges.split(",")]
