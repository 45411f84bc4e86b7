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
    """Keys, or bins as text."""
    if column.keys:
        return column.keys
    pairs = list(pairwise(column.edges))
    return tuple(f"[{low:.15g}, {high:.15g}{']' if high == pairs[-1][1] else ')'}" for low, high in pairs)


def applied(cells: Floats, questions: Sequence[Floats]) -> Floats:
    """A matrix of questions along each axis of a table."""
    for axis, matrix in enumerate(questions):
        cells = np.moveaxis(np.tensordot(matrix, cells, axes=(1, axis)), 0, axis)
    return np.asarray(cells)


def indicator(column: CubeColumn, where: Choice) -> Floats:
    """Which values of a column are chosen; all, where nothing is said of it."""
    if column.name not in where:
        return np.ones((1, column.size))
    given = where[column.name]
    several = isinstance(given, Iterable) and not isinstance(given, str | tuple)
    values = list(given) if several else [given]
    known = list(column.keys) if column.keys else [low for low, _ in column.labels]
    found = np.zeros((1, column.size))
    for value in values:
        if value not in known:
            what = "values" if column.keys else "bins by their lower edge"
            raise KeyError(
                f"no {value!r} in column {column.name!r}, whose {what} are {', '.join(map(repr, known[:20]))}."
            )
        found[0, known.index(value)] = 1.0
    return found


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
