"""Functions that have a value for every row: parts of dates, bins, CASE, prefixes and patterns of LIKE."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from psidp.tables.conditions.compare import UnfitError, between_years, compare, family, read
from psidp.tables.conditions.tree import (
    BOOLEAN,
    FLOAT,
    INTEGER,
    PARTS,
    TEXT,
    Case,
    Changed,
    Cut,
    Day,
    Length,
    Like,
    Nan,
    Part,
    Prefix,
    Value,
)

__all__ = ["FUNCTIONS", "call", "choose", "cut", "like"]

FUNCTIONS = {
    **{name: f"{name}(column)" for name in (*PARTS, "date")},
    "left": "left(text, 2)",
    "cut": "cut(number, 0, 15, 60)",
    **{name: f"{name}(column)" for name in ("lower", "upper", "trim", "length", "isnan")},
}
"""All functions, and how they are called."""

OF_TIMES = ("hour", "minute")
LONGEST_PREFIX, MOST_EDGES, LONGEST_PATTERN = 1000, 1000, 1000


def call(name: str, value: Value, rest: Sequence[str]) -> Value:
    """A function of a value, and of constants behind it."""
    kind = family(value.type)
    if name == "cut":
        return cut(value, rest)
    if bool(rest) is not (name == "left"):
        raise UnfitError
    if name in PARTS or name == "date":
        if kind not in (("timestamp",) if name in OF_TIMES else ("date", "timestamp")):
            raise UnfitError
        return Part(value, name, between_years(value)) if name in PARTS else Day(value, between_years(value))
    if name == "isnan":
        if value.type.kind not in ("float", "decimal"):
            raise UnfitError
        return Nan(value)
    if kind != "text":
        raise UnfitError
    if name == "length":
        return Length(value)
    return _prefix(value, rest) if name == "left" else Changed(value, name)


def _prefix(value: Value, rest: Sequence[str]) -> Value:
    """The first letters of a text."""
    length = rest[0] if len(rest) == 1 else ""
    if not (value.type.searchable and re.fullmatch("[0-9]{1,4}", length) and 1 <= int(length) <= LONGEST_PREFIX):
        raise UnfitError
    return Prefix(value, int(length))


def cut(value: Value, edges: Sequence[str]) -> Value:
    """The bin between public edges as text: (-inf, 0), [0, 15), ..., [60, inf)."""
    if family(value.type) not in ("number", "date", "timestamp") or not 1 <= len(edges) <= MOST_EDGES:
        raise UnfitError
    if not all(a < b for a, b in pairwise(read(value.type, edge) for edge in edges)):
        raise UnfitError(f"cut at edges in increasing order, got {', '.join(edges[:20])}.")
    ends = ["-inf", *edges, "inf"]
    labels = tuple(f"{'[' if i else '('}{a}, {b})" for i, (a, b) in enumerate(pairwise(ends)))
    return Cut(value, tuple(compare(value, "<", edge) for edge in edges), labels)


def choose(branches: Sequence[tuple[Value, Any]], otherwise: Any) -> Value:
    """CASE: the constant behind the first condition that holds; constants of one kind, or None for NULL."""
    results = [value for value in (*(result for _, result in branches), otherwise) if value is not None]
    kinds = {type(value) for value in results}
    kind = float if kinds == {int, float} else kinds.pop() if len(kinds) == 1 else None
    if kind is int and all(abs(value) < 2**63 for value in results):
        return Case(tuple(branches), otherwise, INTEGER)
    if kind is float and all(abs(float(value)) <= 1e300 for value in results):
        return Case(tuple(branches), otherwise, FLOAT)
    if kind is bool:
        return Case(tuple(branches), otherwise, BOOLEAN)
    if kind is str and all(read(TEXT, value) == value for value in results):
        return Case(tuple(branches), otherwise, TEXT)
    raise UnfitError


def like(value: Value, pattern: str) -> Value:
    r"""Whether a text is like a fixed pattern: % is any text, _ one letter, and \%, \_ and \\ are those letters."""
    if family(value.type) != "text" or not value.type.searchable:
        raise UnfitError
    return Like(value, tuple(_letters(read(value.type, pattern))))


def _letters(pattern: str) -> list[tuple[str, bool]]:
    r"""The letters of a pattern, and whether each is a wildcard; a backslash before any but %, _ and \ is refused."""
    if not len(pattern) <= LONGEST_PATTERN:
        raise UnfitError(f"have a pattern of LIKE of at most {LONGEST_PATTERN:,} letters, got {len(pattern):,}.")
    found = re.findall(r"\\[%_\\]|[^\\]", pattern)
    if "".join(found) != pattern:
        raise UnfitError(
            f"have a backslash in a pattern of LIKE only before %, _ or \\, got {pattern[:100]!r}. "
            "Write \\\\ for the backslash itself."
        )
    return [(piece[-1], piece in ("%", "_")) for piece in found]
