"""Columns of a cube: public keys or bins, and the number of the one that a row belongs to. Ibis expressions only."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import Any

from psidp.curator.groups import key_filter, key_literal, public_groups
from psidp.curator.row_sql import ibis_library, number, real, stairs, usable, whole

__all__ = ["CubeColumn", "finished", "listed", "with_codes"]

DIGITS = 10
"""Width of the number in front of each text of a list."""

PLAIN = 2**62
"""Whole keys below this in size are subtracted in 64 bits."""


@dataclass(frozen=True, slots=True)
class CubeColumn:
    """One column of a cube: public keys, or bins between public edges.

    Args:
        name: the table's column. keys: its public values; None is NULL, which is a key only where it is listed.
        edges: instead of keys, the edges of bins [e0, e1), [e1, e2), ..., the last closed; a value outside belongs to
        the first or the last, and NULL and NaN to none. ordered: whether neighbours in the list are neighbours.

    Examples:
        >>> CubeColumn("age", edges=(0.0, 18.0, 65.0)).labels
        ((0.0, 18.0), (18.0, 65.0))
        >>> CubeColumn("origin", keys=("EWR", "JFK", None)).size
        3
    """

    name: str
    keys: tuple[Any, ...] = ()
    edges: tuple[float, ...] = ()
    ordered: bool = False

    def __post_init__(self) -> None:
        if bool(self.keys) is bool(self.edges):
            raise ValueError(f"column {self.name!r} of a cube must have keys or edges, one of the two.")
        rising = all(a < b for a, b in pairwise(self.edges)) and all(-inf < edge < inf for edge in self.edges)
        if self.edges and not (len(self.edges) >= 2 and rising):
            raise ValueError(
                f"edges of {self.name!r} must be 2 or more finite numbers in increasing order, got {len(self.edges)}."
            )

    @property
    def size(self) -> int:
        """How many keys or bins there are."""
        return len(self.keys) or len(self.edges) - 1

    @property
    def labels(self) -> tuple[Any, ...]:
        """The keys, or the ends of each bin."""
        return self.keys or tuple(pairwise(self.edges))

    def check(self, schema: Any) -> None:
        """Refuse a column that the table has not, or whose type does not fit."""
        if self.name not in schema:
            raise ValueError(f"a cube's columns must be columns of the table, got {self.name!r}.")
        kind = schema[self.name]
        if self.edges and not (kind.is_numeric() or kind.is_boolean()):
            raise TypeError(f"bins need a column of numbers, got {self.name!r} of {kind}.")
        if self.keys and len(public_groups([(key,) for key in self.keys], (self.name,), schema)) < self.size:
            raise ValueError(f"keys of {self.name!r} must be different from each other.")

    def kept(self, rows: Any) -> Any:
        """Whether a row belongs to one of the keys or bins."""
        if self.edges:
            return usable(rows[self.name])
        return key_filter(rows, (self.name,), [(key,) for key in self.keys])

    @property
    def known(self) -> dict[Any, int]:
        """The keys that are no NULL, with their numbers."""
        return {key: code for code, key in enumerate(self.keys) if key is not None}

    def code(self, column: Any) -> Any:
        """The number of a row's key or bin, for a row that belongs to one and a column that is no text."""
        if self.edges:
            inner = [real(edge) for edge in self.edges[1:-1]]
            return stairs(number(column), inner, range(self.size))
        ibis, kind = ibis_library(), column.type()
        absent = [(column.isnull(), whole(self.keys.index(None)))] if None in self.keys else []
        if not self.known:
            return whole(0)
        keys = sorted(self.known)
        codes = [self.known[key] for key in keys]
        if kind.is_boolean():
            found = ibis.cases((column, whole(codes[-1])), else_=whole(codes[0]))
        elif kind.is_integer() and codes == list(range(codes[0], codes[0] + len(keys))) and _gapless(keys):
            inside = column.between(ibis.literal(keys[0], kind), ibis.literal(keys[-1], kind))
            found = ibis.cases((inside, column.cast("!int64") - whole(keys[0] - codes[0])), else_=whole(0))
        else:
            edges = [ibis.literal(k, kind) if kind.is_integer() else key_literal(k, kind) for k in keys[1:]]
            found = stairs(column, edges, codes)
        return ibis.cases(*absent, else_=found) if absent else found


def _gapless(keys: Sequence[int]) -> bool:
    """Whether whole numbers in order are a range that 64 bits hold."""
    return keys[-1] - keys[0] == len(keys) - 1 and keys[0] > -PLAIN and keys[-1] < PLAIN


def with_codes(rows: Any, columns: Sequence[CubeColumn], more: dict[str, Any]) -> Any:
    """Rows that belong to keys or bins of every column: their numbers k0, k1, ... in 32 bits, and more of each row.

    Texts are joined with a list of the keys; all else is compared. No comparison of texts but equality: their order
    is the database's own.
    """
    texts = [i for i, column in enumerate(columns) if column.known and rows[column.name].type().is_string()]
    plain = {f"k{i}": c.code(rows[c.name]).cast("int32") for i, c in enumerate(columns) if i not in texts}
    raw = {f"r{i}": rows[columns[i].name] for i in texts}
    kept = [c.kept(rows) for i, c in enumerate(columns) if i not in texts or None in c.keys]
    rows = (rows.filter(kept) if kept else rows).select(**more, **plain, **raw)
    for i in texts:
        rows = _joined(rows, f"r{i}", f"k{i}", columns[i])
    return finished(rows, [*more, *(f"k{i}" for i in range(len(columns)))])


def _joined(rows: Any, raw: str, name: str, column: CubeColumn) -> Any:
    """The rows with the number of each text's key."""
    keys = listed(list(column.known.items()))
    keys = keys.select(**{f"{name}_key": keys.text, name: keys.number.cast("int32")})
    same = rows[raw] == keys[f"{name}_key"]
    names = [*(n for n in rows.columns if n != raw), name]
    if None not in column.keys:
        return finished(rows.inner_join(keys, same), names)
    joined = finished(rows.left_join(keys, same), names)
    return joined.mutate(**{name: joined[name].fill_null(ibis_library().literal(column.keys.index(None), "int32"))})


def finished(join: Any, names: Sequence[str]) -> Any:
    """Columns of a join as a relation of its own: Ibis takes another join of the join itself for one join of many, in
    which a relation that comes twice is told apart by names alone."""
    return join.select(*names).select(*names)


def listed(numbers: Sequence[tuple[str, int]]) -> Any:
    """A table of texts and their numbers, written into the query itself.

    One array of texts that begin with the number: engines unfold several arrays at once in different ways.
    """
    lines = ibis_library().array([f"{number:0{DIGITS}d}{text}" for text, number in numbers]).unnest().name("line")
    table = lines.as_table()
    return table.select(text=table.line.substr(DIGITS), number=table.line.substr(0, DIGITS).cast("int64"))
