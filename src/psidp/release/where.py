"""Where: which rows a question is about. A condition looks at one row at a time, or units could sway others' rows.

And it cannot fail on any row: whether 1/(patient_id - 7) > 0 fails says, at no cost, whether patient 7 is there.
"""

import datetime
import re
from decimal import Decimal
from math import isfinite
from typing import Any

from psidp.release.cell import boundless, ibis_library, number, real
from psidp.release.untyped import read_for

__all__ = ["condition", "in_words"]

COMPARISON = re.compile(r"^\s*(.+?)\s*(>=|<=|!=|==|=|>|<)\s*(.+?)\s*$", re.DOTALL)
OPERATORS = {
    ">=": lambda a, b: a >= b,
    "<=": lambda a, b: a <= b,
    "!=": lambda a, b: a != b,
    "==": lambda a, b: a == b,
    "=": lambda a, b: a == b,
    ">": lambda a, b: a > b,
    "<": lambda a, b: a < b,
}

ORDER = ("Equals", "NotEquals", "Greater", "GreaterEqual", "Less", "LessEqual", "IdenticalTo", "Between")
LIKE = (*ORDER, "InValues", "Coalesce", "NullIf")
TEXT = (
    "StringContains",
    "StartsWith",
    "EndsWith",
    "Lowercase",
    "Uppercase",
    "StringLength",
    "Strip",
    "LStrip",
    "RStrip",
)
TRUTH = ("And", "Or", "Xor", "Not", "IsNull", "NotNull", "IsNan", "IsInf")
SURE = {"Field", "Literal", "Alias", *LIKE, *TEXT, *TRUTH}
"""Ibis operations that give a value for every row, on every engine; in LIKE, if the values are alike."""

DIGITS, MICRO = 38, 6
"""Digits of the widest decimal that every engine has, and of a second in which engines and Python agree."""

LONGEST = 200
"""Letters of a condition in words."""

NO_NUMBERS = ("boolean", "string", "date", "timestamp")


def condition(table: Any, where: Any, untyped: frozenset[str] = frozenset()) -> Any:
    """`where` as a boolean column of the table; untyped columns are read in the type of the value in the text.

    Args:
        where: text such as "age >= 18" (column, comparison, value); an Ibis expression such as ibis._.age >= 18; a
            function from the table to one; or a list of these, all of which must hold.

    Refused by its form alone: what is not true or false for each row, and what looks beyond a row (aggregates, windows,
    subqueries, other tables, random numbers), or could fail on some row (arithmetic, casts, patterns).
    """
    if isinstance(where, list | tuple):
        parts = [condition(table, part, untyped) for part in where]
        whole = parts[0]
        for part in parts[1:]:
            whole = whole & part
        return whole
    if isinstance(where, str):
        return _parsed(table, where, untyped)
    bound = where(table) if callable(where) and not hasattr(where, "resolve") else table.bind(where)[0]
    _refuse_beyond_a_row(table, bound)
    _refuse_what_may_fail(bound)
    return bound


def in_words(table: Any, where: Any) -> str:
    """The condition as it was written, or the SQL of an expression; its beginning where it is long."""
    if isinstance(where, list | tuple):
        return " and ".join(in_words(table, part) for part in where)
    if isinstance(where, str):
        return where.strip()
    sql = str(table.get_backend().compile(table.select(said=condition(table, where)))).removeprefix("SELECT ")
    said = re.sub(r"\s+", " ", re.sub(r"[\"`]t[0-9]+[\"`]\.", "", sql.rpartition(" FROM ")[0].rpartition(" AS ")[0]))
    return said if len(said) <= LONGEST else f"{said[:LONGEST]}..."


def _parsed(table: Any, text: str, untyped: frozenset[str]) -> Any:
    """column, comparison, value."""
    match = COMPARISON.match(text)
    if match is None:
        raise ValueError(f'where must be column, comparison and value, such as "age >= 18", got {text!r}.')
    name, operator, word = match.groups()
    name = name[1:-1] if len(name) > 1 and name[0] == name[-1] == '"' else name
    if name not in table.columns:
        raise ValueError(f"where must name a column of the table ({', '.join(table.columns)}), got {name!r}.")
    column = read_for(table[name], word) if name in untyped else table[name]
    word = word[1:-1] if len(word) > 1 and word[0] == word[-1] and word[0] in "\"'" else word
    try:
        return OPERATORS[operator](*_sides(column, word))
    except (ValueError, OverflowError):
        raise ValueError(
            f"where must compare {name!r} with one value of type {column.type()}, got {word!r}. "
            "Give several conditions as a list; --where may be repeated."
        ) from None


def _sides(column: Any, word: str) -> tuple[Any, Any]:
    """The column and the value, in types that every engine compares without a failure."""
    ibis, kind = ibis_library(), column.type()
    if kind.is_string():
        return column, ibis.literal(word)
    if kind.is_boolean():
        return column, ibis.literal(("false", "true").index(word.lower()) == 1)
    if kind.is_date():
        return column, ibis.literal(datetime.date.fromisoformat(word).isoformat()).cast(kind)
    if kind.is_timestamp():
        coarse = kind.copy(scale=MICRO) if (kind.scale or 0) > MICRO else kind  # nanoseconds end in 2262
        return column.cast(coarse), ibis.literal(_moment(word, kind.timezone is not None).isoformat(" ")).cast(coarse)
    if not kind.is_numeric():
        raise ValueError
    if re.fullmatch(r"[+-]?[0-9]{1,18}", word) and _fits(int(word), kind):
        return column, ibis.literal(int(word))
    return number(column), real(float(word))


def _moment(word: str, zoned: bool) -> datetime.datetime:
    """An instant in UTC, which a word without a zone means too; or a time of day of no zone."""
    moment = datetime.datetime.fromisoformat(word)
    if moment.tzinfo is not None and not zoned:
        raise ValueError
    moment = moment.replace(tzinfo=datetime.UTC) if zoned and moment.tzinfo is None else moment
    return moment.astimezone(datetime.UTC) if zoned else moment


def _refuse_beyond_a_row(table: Any, bound: Any) -> None:
    """Only what one row of this very table says by itself."""
    ibis = ibis_library()
    import ibis.expr.operations as ops  # type: ignore[import-untyped,unused-ignore]

    if not (isinstance(bound, ibis.Value) and bound.type().is_boolean()):
        raise TypeError("where must be true or false for each row, such as ibis._.age >= 18.")
    if isinstance(bound, ibis.Scalar):
        raise TypeError("where must look at a column of the table.")
    relations = set(bound.op().find(ops.Relation))
    far = (ops.Analytic, ops.Reduction, ops.Subquery, ops.WindowFunction, ops.Impure)
    beyond = bound.op().find(far, filter=ops.Value)  # what made the table's own columns is not asked
    if beyond or not all(relation in set(table.op().find(ops.Relation)) for relation in relations):
        raise ValueError(
            "where must look at one row at a time: no aggregates, windows, subqueries, other tables or random numbers. "
            "They would let one unit sway the rows of others."
        )


def _refuse_what_may_fail(bound: Any) -> None:
    """Only operations that give a value for every row, of values that compare without a cast that could fail."""
    import ibis.expr.operations as ops

    for node in bound.op().find(ops.Value, filter=ops.Value):
        kind = type(node).__name__
        if kind not in SURE or (kind in LIKE and not _comparable(node, ops)):
            raise ValueError(
                f"where must be made of comparisons of like with like, isin, isnull, contains, and, or, not: {kind} "
                "could fail on some row, and the failure would speak of that row. Make it a column of the table first."
            )


def _comparable(node: Any, ops: Any) -> bool:
    """Whether all values are of one family, and those that are written out can be cast to the types of the others: some
    engines cast a constant late, on the first row that comes so far."""
    values = [value for part in node.__args__ for value in (part if isinstance(part, tuple) else (part,))]
    written = [value for value in values if isinstance(value, ops.Literal) and value.value is not None]
    kinds = [value.dtype for value in values if not isinstance(value, ops.Literal)]
    families = {_family(kind) for kind in kinds}
    dates = type(node).__name__ in ORDER and bool(families) and families <= {"date", "timestamp"}
    for value in written:
        number = value.dtype.is_integer() or value.dtype.is_floating()
        read = dates and value.dtype.is_string()  # Ibis has read the text as a date
        if not (read or (number and families.isdisjoint(NO_NUMBERS))):
            families.add(_family(value.dtype))
    return len(families) <= 1 and all(_fits(value.value, kind) for value in written for kind in kinds)


def _fits(value: Any, kind: Any) -> bool:
    """Whether a constant and values of this type have a type in common that holds both."""
    if kind.is_decimal() and not boundless(kind):
        number = Decimal(str(value))
        scale = max(kind.scale, -int(number.as_tuple().exponent)) if number.is_finite() else DIGITS
        return bool(number.adjusted() < kind.precision - kind.scale <= DIGITS - scale)
    if kind.is_decimal():
        return isfinite(value)
    if kind.is_integer() and isinstance(value, int):
        return value >= 0 or bool(kind.is_signed_integer())
    if kind.is_timestamp() and (kind.scale or 0) > MICRO:
        return datetime.datetime(1678, 1, 1) < _moment(str(value)[:19], False) < datetime.datetime(2262, 1, 1)
    return True


def _family(kind: Any) -> str:
    """What compares without a cast that could fail."""
    tests = ((name, getattr(kind, f"is_{name}")) for name in NO_NUMBERS)
    known = next((name for name, test in tests if test()), None)
    return known or ("number" if kind.is_integer() or kind.is_floating() else str(kind.copy(nullable=True)))
