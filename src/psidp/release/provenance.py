"""Provenance: whether groups were read from the very table that is asked about, as far as that can be known."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["refuse_own_groups"]


def refuse_own_groups(keys: Any, by: Sequence[str], table: Any, source: Any) -> None:
    """Refuse groups that come from the table itself: each would be released merely because it is in the data.

    Seen are Ibis expressions over the table, its own file, and frames and columns that lie in the memory of the frame
    it was made of. A list of the values that occur cannot be told from a public one.
    """
    if _same_relation(keys, table) or _same_file(keys, source) or _shared(keys, by, source):
        raise ValueError(
            "keys must not come from the table itself: a group would be shown merely because somebody is in it. Give "
            "those that are known without it, or psidp.PrivateKeys(kappa=..., at_most=...) to choose them privately."
        )


def _same_relation(keys: Any, table: Any) -> bool:
    """Whether an Ibis expression reads a table that the curator reads."""
    import ibis.expr.operations as ops  # type: ignore[import-untyped,unused-ignore]

    op = keys.op() if hasattr(keys, "op") else None
    return op is not None and bool(set(op.find(ops.PhysicalTable)) & set(table.op().find(ops.PhysicalTable)))


def _same_file(keys: Any, source: Any) -> bool:
    """Whether both are one file."""
    if not (isinstance(keys, str | Path) and isinstance(source, str | Path)):
        return False
    one, other = Path(keys), Path(source)
    files = [other] if other.is_file() else other.parent.glob(other.name) if "*" in other.name else []
    return one == other or (one.is_file() and any(file.is_file() and one.samefile(file) for file in files))


def _shared(keys: Any, by: Sequence[str], source: Any) -> bool:
    """Whether a frame or column lies in the memory of the frame that is asked about."""
    if keys is source:
        return True
    given = keys.values() if isinstance(keys, Mapping) else [keys[n] for n in by if _has(keys, n)] or [keys]
    with suppress(Exception):  # text that is none, say; its error would quote the cell
        own = {place for name in by if _has(source, name) for place in _places(source[name])}
        return any(_places(column) & own for column in given)
    return False


def _has(frame: Any, name: str) -> bool:
    """Whether it is a frame with such a column."""
    names: Any = getattr(frame, "column_names", getattr(frame, "columns", ()))
    return hasattr(frame, "__getitem__") and not hasattr(frame, "op") and name in list(names)


def _places(column: Any) -> set[int]:
    """Where in memory a column's values lie; nowhere where that is not known."""
    array = getattr(column, "array", column)  # pandas
    if hasattr(array, "__arrow_array__"):
        array = array.__arrow_array__()
    elif hasattr(array, "to_arrow"):  # Polars
        array = array.to_arrow(compat_level=sys.modules["polars"].CompatLevel.newest())
    chunks = getattr(array, "chunks", [array])
    if all(hasattr(chunk, "buffers") for chunk in chunks):
        return {buffer.address for chunk in chunks for buffer in chunk.buffers() if buffer is not None and buffer.size}
    if isinstance(array, np.ndarray) or hasattr(array, "to_numpy"):
        values = array if isinstance(array, np.ndarray) else array.to_numpy()
        return {int(values.__array_interface__["data"][0])} if values.size else set()
    return set()
