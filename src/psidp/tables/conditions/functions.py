"""Functions that have a value for every row: parts of dates, bins, CASE, prefixes and patterns of LIKE."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from psidp.tables.conditions.compare import UnfitError, between_years, compare, family, read
from psidp.tables.conditions.tree import Applied, Case, Joined, Like, Missing, Nan, Not, Value
from psidp.tables.types import DECLARED

__all__ = ["FUNCTIONS", "PARTS", "call", "choose", "like"]

PARTS: dict[str, tuple[int, ...] | None] = {
    "year": None,
    "quarter": tuple(range(1, 5)),
    "month": tuple(range(1, 13)),
    "week": tuple(range(1, 54)),
    "day": tuple(range(1, 32)),
    "isoweekday": tuple(range(1, 8)),
    "hour": tuple(range(24)),
    "minute": tuple(range(60)),
}
"""Parts of dates and instants, and all their values, if few: weeks are those of ISO 8601, weekday 1 is Monday."""

OF_TEXTS = {
    "lower": "LOWER({0})",
    "upper": "UPPER({0})",
    "trim": "TRIM(BOTH ' \t\n\r\v\f' FROM {0})",
    "length": "CAST(LENGTH({0}) AS BIGINT)",
}
FUNCTIONS = {name: f"{name}(column)" for name in (*PARTS, "date", *OF_TEXTS, "isnan")}
FUNCTIONS |= {"left": "left(text, 2)", "cut": "cut(number, 0, 15, 60)"}
"""All functions, and how they are called."""

INTEGER, FLOAT, TEXT = (DECLARED[name] for name in ("int64", "float64", "string"))
LONGEST_PREFIX, MOST_EDGES, LONGEST_PATTERN = 1000, 1000, 1000


def call(name: str, value: Value, rest: Sequence[str]) -> Value:
    """A function of a value, and of constants behind it."""
    kind = family(value.type)
    if name == "cut":
        return _cut(value, rest)
    if bool(rest) is not (name == "left"):
        raise UnfitError
    if name in PARTS or name == "date":
        # Dates outside the years 1 to 9999 have no parts: engines have infinite ones, and read them in different ways.
        if kind not in (("timestamp",) if name in ("hour", "minute") else ("date", "timestamp")):
            raise UnfitError
        if name == "date" and kind == "date" and isinstance(value, Applied):
            return value  # date(date(...)): each would repeat its text three times
        if name == "date":
            return Applied(value, "CAST({0} AS DATE)", DECLARED["date"], between_years(value))
        part = "{weekday}" if name == "isoweekday" else name
        form = f"CAST(EXTRACT({part} FROM {{0}}) AS BIGINT)"
        return Applied(value, form, INTEGER, between_years(value), PARTS[name])
    if name == "isnan" and value.type.kind in ("float", "decimal"):
        return Nan(value)
    if name == "isnan" or kind != "text":
        raise UnfitError
    if name == "left":
        return _prefix(value, rest)
    return Applied(value, OF_TEXTS[name], INTEGER if name == "length" else value.type)


def _prefix(value: Value, rest: Sequence[str]) -> Value:
    """The first letters of a text."""
    length = rest[0] if len(rest) == 1 else ""
    if not (value.type.searchable and re.fullmatch("[0-9]{1,4}", length) and 1 <= int(length) <= LONGEST_PREFIX):
        raise UnfitError
    return Applied(value, f"SUBSTRING({{0}}, 1, {int(length)})", value.type)


def _cut(value: Value, edges: Sequence[str]) -> Value:
    """The bin between public edges as text: (-inf, 0), [0, 15), ..., [60, inf); NULL for a missing value and NaN."""
    if family(value.type) not in ("number", "date", "timestamp") or not 1 <= len(edges) <= MOST_EDGES:
        raise UnfitError
    if not all(a < b for a, b in pairwise(read(value.type, edge) for edge in edges)):
        raise UnfitError(f"cut at edges in increasing order, got {', '.join(edges[:20])}.")
    labels = [f"{'[' if i else '('}{a}, {b})" for i, (a, b) in enumerate(pairwise(["-inf", *edges, "inf"]))]
    cases = [(compare(value, "<", edge), label) for edge, label in zip(edges, labels, strict=False)]
    bins = Case(tuple(cases), labels[-1], TEXT)
    return Applied(bins, "{0}", TEXT, Not(Joined("OR", (Missing(value), Nan(value)))), tuple(labels))


def choose(cases: Sequence[tuple[Value, Any]], otherwise: Any) -> Value:
    """CASE: the constant behind the first condition that holds; constants of one kind, or None for NULL."""
    results = [value for value in (*(result for _, result in cases), otherwise) if value is not None]
    kinds = {type(value) for value in results}
    if kinds == {str} and all(read(TEXT, value) == value for value in results):
        return Case(tuple(cases), otherwise, TEXT)
    if kinds == {bool}:
        return Case(tuple(cases), otherwise, DECLARED["boolean"])
    if kinds == {int} and all(-(2**63) <= value < 2**63 for value in results):
        return Case(tuple(cases), otherwise, INTEGER)
    if float in kinds and kinds <= {int, float} and all(abs(float(value)) <= 1e300 for value in results):
        return Case(tuple(cases), otherwise, FLOAT)
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
