"""Derived values that fail on no row: parts of dates, bins, CASE, prefixes and LIKE, each made of one row's value.

Where all values that one can have are known from its definition (a month is 1 to 12), it says them: they are public.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cache
from itertools import pairwise
from typing import Any

from psidp.curator.comparison import Side, UnfitError, compare, constant
from psidp.curator.row_sql import ibis_library, real, usable, whole

__all__ = ["PARTS", "chosen", "cut", "day_of", "like", "like_pieces", "part", "prefix"]

PARTS: dict[str, tuple[Any, ...] | None] = {
    "year": None,
    "quarter": tuple(range(1, 5)),
    "month": tuple(range(1, 13)),
    "week": tuple(range(1, 54)),
    "day": tuple(range(1, 32)),
    "isoweekday": tuple(range(1, 8)),
    "hour": tuple(range(24)),
    "minute": tuple(range(60)),
}
"""Parts of dates and instants, and all their values: weeks are those of ISO 8601, weekday 1 is Monday."""

OF_TIMES = ("hour", "minute")
FIRST, LAST = "0001-01-01", "9999-12-31T23:59:59.999999"
"""Dates outside have no parts: some engines have infinite ones, and years of six digits."""

LONGEST_PREFIX, MOST_EDGES, LONGEST_PATTERN = 1000, 1000, 1000


def part(given: Side, name: str) -> Side:
    """A part of a date or an instant, a whole number; NULL before year 1 and after year 9999. Instants are in UTC."""
    inside = _inside(given, OF_TIMES if name in OF_TIMES else ())
    value = given.value
    made = {
        "week": lambda: value.week_of_year(),
        "isoweekday": lambda: value.day_of_week.index() + ibis_library().literal(1, "int16"),
    }.get(name, lambda: getattr(value, name)())()
    known = ibis_library().cases((inside, made.cast("int64")))
    return Side(known, ibis_library().dtype("int64"), values=PARTS[name])


def day_of(given: Side) -> Side:
    """The day of a date or an instant, in UTC; NULL before year 1 and after year 9999."""
    ibis = ibis_library()
    return Side(ibis.cases((_inside(given), given.value.cast("date"))), ibis.dtype("date"))


def _inside(given: Side, times: Sequence[str] = ()) -> Any:
    """Whether a date has parts; refused where it is none, or where hours are asked of days."""
    if given.family not in (("timestamp",) if times else ("date", "timestamp")):
        raise UnfitError
    if given.family == "timestamp" and given.kind.timezone is not None:
        _check_zone(given.value)
    return compare(given, ">=", FIRST) & compare(given, "<=", LAST)


def _check_zone(value: Any) -> None:
    """Refuse parts of instants where the engine would read them in a zone other than UTC."""
    backend = value.get_backend()
    zone = _zone(backend)
    if zone.upper() not in ("UTC", "ETC/UTC", "ETC/UCT", "UCT", "GMT", "ETC/GMT", "Z", "ZULU"):
        raise UnfitError(
            f"read parts of instants in UTC, got a connection whose time zone is {zone!r}: engines know zones by "
            "different tables. Set its zone to UTC, or give a column of local time without a zone."
        )


def _zone(backend: Any) -> str:
    """The time zone in which a connection shows instants; reads no row."""
    if backend.name == "pyspark":
        return str(backend._session.conf.get("spark.sql.session.timeZone"))
    if backend.name == "duckdb":
        return str(backend.con.execute("SELECT current_setting('TimeZone')").fetchall()[0][0])
    with backend.con.cursor() as cursor:
        return str(cursor.execute("SHOW timezone").fetchall()[0][0])


def prefix(given: Side, length: Any) -> Side:
    """The first letters of a text."""
    if given.family != "string" or not given.searchable:
        raise UnfitError
    count = _whole(length)
    if not (count is not None and 1 <= count <= LONGEST_PREFIX):
        raise UnfitError
    return replace(given, value=given.value.left(count), values=None)


def _whole(written: Any) -> int | None:
    """A whole number, out of text or not."""
    if isinstance(written, str):
        return int(written) if re.fullmatch(r"[0-9]{1,9}", written) else None
    return written if isinstance(written, int) and not isinstance(written, bool) else None


def cut(given: Side, edges: Sequence[Any]) -> Side:
    """The bin between public edges as text: (-inf, 0), [0, 15), ..., [60, inf); NULL for a missing value and NaN."""
    ibis = ibis_library()
    if given.family not in ("number", "date", "timestamp") or not 1 <= len(edges) <= MOST_EDGES:
        raise UnfitError
    values = [constant(given, edge) for edge in edges]
    if not all(a < b for a, b in pairwise(values)):
        raise UnfitError(f"cut at edges in increasing order, got {', '.join(map(str, edges[:20]))}.")
    ends = ["-inf", *map(str, edges), "inf"]
    labels = [f"{'(' if i == 0 else '['}{a}, {b})" for i, (a, b) in enumerate(pairwise(ends))]
    there = usable(given.value) if given.family == "number" else given.value.notnull()
    below = [(compare(given, "<", edge), ibis.literal(label)) for edge, label in zip(edges, labels, strict=False)]
    made = ibis.cases((there, ibis.cases(*below, else_=ibis.literal(labels[-1]))))
    return Side(made, ibis.dtype("string"), values=tuple(labels))


def chosen(branches: Sequence[tuple[Any, Any]], otherwise: Any) -> Side:
    """CASE: the constant behind the first condition that holds; constants of one kind, or NULL."""
    ibis = ibis_library()
    results = [*(result for _, result in branches), otherwise]
    kind = _kind([value for value in results if value is not None])
    write = {"int64": whole, "float64": lambda v: real(float(v))}.get(kind, ibis.literal)
    made = ibis.cases(
        *((rule, ibis.null(kind) if value is None else write(value)) for rule, value in branches),
        else_=ibis.null(kind) if otherwise is None else write(otherwise),
    )
    values = None if kind == "float64" else tuple(dict.fromkeys(results))
    return Side(made, ibis.dtype(kind), values=values)


def _kind(values: Sequence[Any]) -> str:
    """The one type of constants: text, whole numbers, fractions or truth values."""
    kinds = {bool: "boolean", str: "string", int: "int64", float: "float64", Decimal: "float64"}
    found = {kinds.get(type(value), "") for value in values}
    found = {"float64"} if found == {"int64", "float64"} else found
    if len(found) != 1 or "" in found:
        raise UnfitError
    kind = found.pop()
    if kind == "int64" and not all(-(2**63) <= value < 2**63 for value in values):
        raise UnfitError
    if kind == "float64" and not all(abs(float(value)) <= 1e300 for value in values):
        raise UnfitError
    if kind == "string" and not all("\0" not in value and value.encode(errors="ignore").decode() == value
                                    for value in values):  # fmt: skip
        raise UnfitError
    return kind


def like(given: Side, pattern: Any) -> Any:
    r"""Whether a text is like a fixed pattern: % is any text, _ one letter, and \%, \_ and \\ are those letters.

    Engines differ in what escapes a letter unless told (DuckDB: nothing; PostgreSQL and Spark: a backslash), so the
    pattern is read here and written for each.
    """
    if given.family != "string" or not given.searchable:
        raise UnfitError
    pieces = like_pieces(constant(given, pattern))
    backend = given.value.get_backend().name
    if backend == "pyspark" and given.collation:  # LIKE has no plan there, or ignores case
        raise UnfitError
    mark = "!" if backend == "duckdb" else "\\"
    written = "".join(piece if wild or piece not in ("%", "_", mark) else f"{mark}{piece}" for piece, wild in pieces)
    if backend != "duckdb":
        return given.value.like(written)
    return _like_escape()(given.value, written, mark)


def like_pieces(pattern: str) -> list[tuple[str, bool]]:
    r"""The letters of a pattern, and whether each is a wildcard; a backslash before any but %, _ and \ is refused."""
    if not len(pattern) <= LONGEST_PATTERN:
        raise UnfitError(f"have a pattern of LIKE of at most {LONGEST_PATTERN:,} letters, got {len(pattern):,}.")
    pieces, at = [], 0
    while at < len(pattern):
        letter, escaped = pattern[at], pattern[at] == "\\"
        if escaped:
            at += 1
            letter = pattern[at] if at < len(pattern) else ""
            if letter not in ("%", "_", "\\"):
                raise UnfitError(
                    f"have a backslash in a pattern of LIKE only before %, _ or \\, got {pattern[:100]!r}. "
                    "Write \\\\ for the backslash itself."
                )
        pieces.append((letter, not escaped and letter in "%_"))
        at += 1
    return pieces


@cache
def _like_escape() -> Any:
    """DuckDB's LIKE ... ESCAPE ..., which Ibis does not write."""

    @ibis_library().udf.scalar.builtin(name="like_escape", signature=(("string", "string", "string"), "boolean"))
    def like_escape(text, pattern, mark):  # type: ignore[no-untyped-def]
        """text LIKE pattern ESCAPE mark"""

    return like_escape
