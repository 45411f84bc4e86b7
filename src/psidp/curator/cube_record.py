"""A cube as plain values: columns, measures, and coefficients packed into text."""

import base64
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psidp.curator.answer import packed, unpacked
from psidp.curator.ask import Aggregate
from psidp.curator.cube_columns import CubeColumn
from psidp.curator.cube_sql import MOST_CELLS
from psidp.strategies.marginals import Marginals, Table

__all__ = ["columns_from", "columns_to", "marginals_from", "measure_from", "numbers_to", "residuals_from"]

Floats = NDArray[np.float64]


def columns_to(columns: Sequence[CubeColumn]) -> list[dict[str, Any]]:
    """Columns as plain values."""
    return [
        {"name": c.name, "keys": [packed(k) for k in c.keys], "edges": list(c.edges), "ordered": c.ordered}
        for c in columns
    ]


def columns_from(values: Sequence[Mapping[str, Any]]) -> tuple[CubeColumn, ...]:
    """The columns that columns_to wrote."""
    return tuple(
        CubeColumn(c["name"], tuple(unpacked(k) for k in c["keys"]), tuple(c["edges"]), c["ordered"]) for c in values
    )


def marginals_from(values: Mapping[str, Any], columns: Sequence[CubeColumn]) -> Marginals:
    """The tables and bases that were written, if they are no larger than a cube's and fit its columns."""
    sizes = [column.size for column in columns]
    if [basis["values"] for basis in values["bases"]] != sizes:
        raise ValueError("the bases of a cube must have as many values as its columns.")
    cells = sum(prod(sizes[i] for i in table) for table in values["tables"])
    if not cells <= MOST_CELLS:
        raise ValueError(f"tables must have at most {MOST_CELLS:,} cells together, got {cells:,}.")
    return Marginals.from_dict(values)


def measure_from(values: Mapping[str, Any]) -> Aggregate:
    """The aggregate that its to_dict wrote."""
    plain: dict[str, Any] = {k: tuple(value) if isinstance(value, list) else value for k, value in values.items()}
    return Aggregate(**plain)


def numbers_to(numbers: Floats) -> str:
    """Doubles as text, to the last bit."""
    return base64.b64encode(numbers.astype("<f8").tobytes()).decode()


def residuals_from(marginals: Marginals, text: str) -> dict[Table, Floats]:
    """Coefficients, residual by residual."""
    flat, found, start = np.frombuffer(base64.b64decode(text), "<f8"), {}, 0
    if flat.size != marginals.coefficients:
        raise ValueError(f"a layer of this cube must have {marginals.coefficients:,} coefficients, got {flat.size:,}.")
    for part in marginals.residuals:
        shape = tuple(n - 1 for n in marginals.shape(part))
        size = int(np.prod(shape))
        found[part] = flat[start : start + size].reshape(shape)
        start += size
    return found
