"""Questions about a cube: which cells count, what they are called, and where a distribution crosses a share."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psidp.curator.cube_columns import CubeColumn
from psidp.curator.estimate import Estimate, crossing
from psidp.maths.isotonic import isotonic

__all__ = ["Choice", "applied", "indicator", "labels", "quantile_estimate"]

Floats = NDArray[np.float64]
Choice = Mapping[str, Any]


def labels(column: CubeColumn) -> tuple[Any, ...]:
    """Keys, or bins as text: numbers beyond the edges count in the first and the last."""
    if column.keys:
        return column.keys
    pairs = list(pairwise(column.edges))
    words = [f"[{low:.15g}, {high:.15g}{']' if high == pairs[-1][1] else ')'}" for low, high in pairs]
    words[0] += " and below"
    words[-1] += " and above"
    return tuple(words)


def applied(cells: Floats, questions: Sequence[Floats]) -> Floats:
    """A matrix of questions along each axis of a table."""
    for axis, matrix in enumerate(questions):
        cells = np.moveaxis(np.tensordot(matrix, cells, axes=(1, axis)), 0, axis)
    return np.asarray(cells)


def indicator(column: CubeColumn, where: Choice) -> Floats:
    """Which values of a column are chosen; all, where nothing is said of it."""
    found = np.zeros((1, column.size))
    if column.name not in where:
        return found + 1.0
    given = where[column.name]
    if isinstance(given, slice):
        found[0, _between(column, given)] = 1.0
        return found
    several = isinstance(given, Iterable) and not isinstance(given, str | tuple)
    known = list(column.keys) if column.keys else [low for low, _ in column.labels]
    for value in list(given) if several else [given]:
        if value not in known:
            what = "values are" if column.keys else "bins have the lower edges"
            raise KeyError(f"no {value!r} in column {column.name!r}, whose {what} {_some(known)}.")
        found[0, known.index(value)] = 1.0
    return found


def _between(column: CubeColumn, ends: slice) -> slice:
    """The bins between two edges."""
    edges = list(column.edges)
    for end in (ends.start, ends.stop):
        if end is not None and end not in edges:
            what = f"edges are {_some(edges)}" if edges else "values are no bins"
            raise KeyError(f"no {end!r} in column {column.name!r}, whose {what}.")
    low = 0 if ends.start is None else edges.index(ends.start)
    return slice(low, column.size if ends.stop is None else edges.index(ends.stop))


def _some(known: Sequence[Any]) -> str:
    """Values for a refusal; not all, where there are many."""
    shown = ", ".join(map(repr, known[:20]))
    return shown if len(known) <= 20 else f"{shown}, and {len(known) - 20} more"


def quantile_estimate(
    name: str, edges: Floats, raw: Floats, q: float, room: Floats, single: float, flag: str
) -> Estimate:  # fmt: skip
    """One quantile: where the rising counts cross, between the edges that noise cannot rule out."""
    balance, j = (raw - q * raw[-1])[1:-1], np.arange(1, edges.size - 1)  # the outer edges need no proof
    low = float(edges[np.max(j[balance + room[1:-1] < 0.0], initial=0)])
    high = max(low, float(edges[np.min(j[balance - room[1:-1] >= 0.0], initial=edges.size - 1)]))
    value = min(max(crossing(edges, isotonic(raw), q * float(raw[-1])), low), high)
    spread = (high - low) / (2.0 * single) if high > low else np.nan
    return Estimate(name, value, spread, low, high, flag)
