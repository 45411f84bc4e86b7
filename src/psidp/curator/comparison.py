"""Comparisons that fail on no row: each side in a type that its engine compares as it is, constants read here first.

A constant is moved to where the column's own values lie, exactly: n < 1.5 is n <= 1 for whole numbers, and 300 is above
every number of 8 bits. So no engine looks for a type that holds both sides, and casts rows to it that do not fit.
"""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from math import floor, inf
from typing import Any

from psidp.curator.native_types import HUGE, Native
from psidp.curator.row_sql import boundless, ibis_library, number, real

__all__ = ["MIRRORED", "Side", "UnfitError", "among", "compare", "compare_sides", "constant", "missing", "side"]

OPERATORS = {
    ">=": lambda a, b: a >= b,
    "<=": lambda a, b: a <= b,
    "!=": lambda a, b: a != b,
    "=": lambda a, b: a == b,
    ">": lambda a, b: a > b,
    "<": lambda a, b: a < b,
}

MIRRORED = {">": "<", ">=": "<=", "<": ">", "<=": ">="}
"""The comparison with its sides exchanged, where that is another."""

FAMILIES = ("boolean", "string", "date", "timestamp")
LARGEST = 1000
"""Digits before and behind the point of a number that is written out."""

EPOCH = datetime.datetime(1970, 1, 1)
LONG = 2**63


class UnfitError(ValueError):
    """What no engine is sure to compare or compute; caught by whoever knows what was asked. Its words, if it has some,
    say what a condition must do instead."""


@dataclass(frozen=True, slots=True)
class Side:
    """A column, or what is made of one, in a type of the list.

    Args:
        value: the Ibis expression. kind: the Ibis type that says what it holds. collation: of text. searchable: whether
            parts of it can be looked for. values: all that it can be, where its definition says so.
    """

    value: Any
    kind: Any
    collation: str = ""
    searchable: bool = True
    values: tuple[Any, ...] | None = None

    @property
    def family(self) -> str:
        """What compares with what."""
        return next((name for name in FAMILIES if getattr(self.kind, f"is_{name}")()), "number")

    @property
    def never(self) -> Any:
        """False, and NULL where the value is."""
        return self.value.isnull() & _unknown()

    @property
    def always(self) -> Any:
        """True, and NULL where the value is."""
        return self.value.notnull() | _unknown()


def side(column: Any, native: Native | None) -> Side:
    """A column as one side, in a form in which its engine compares it; or a refusal by its type."""
    made = Side(column, native.kind, native.collation, native.searchable) if native and native.kind else None
    if made is None or made.family != Side(column, column.type()).family:
        raise UnfitError
    if made.family == "string" and native and native.name != "VARCHAR" and not native.name.startswith("string"):
        kind = column.type()
        plain = column.cast(kind.copy(length=None, nullable=not kind.nullable))  # Ibis leaves out a cast to the same
        return Side(plain, made.kind, made.collation, made.searchable)
    return made


def compare(given: Side, operator: str, written: Any) -> Any:
    """The comparison of a side with a constant; true, false or NULL."""
    value = constant(given, written)
    if not _on_grid(given):
        return OPERATORS[operator](*_as_it_is(given, value))
    step, exact = _step(given.kind, value)
    if not exact and operator in ("=", "!="):
        return given.never if operator == "=" else given.always
    operator = operator if exact else {"<": "<=", ">=": ">"}.get(operator, operator)
    low, high = _ends(given.kind)
    if not low <= step <= high:
        beyond = ("<", "<=", "!=") if step > high else (">", ">=", "!=")
        return given.always if operator in beyond else given.never
    return OPERATORS[operator](*_at_step(given, step))


def among(given: Side, written: Sequence[Any]) -> Any:
    """Whether a side is one of the constants; None is NULL, and makes the answer NULL where no other is met."""
    values = [constant(given, value) for value in written if value is not None]
    if _on_grid(given):
        low, high = _ends(given.kind)
        steps = dict.fromkeys(step for step, exact in (_step(given.kind, v) for v in values) if exact)
        pairs = [_at_step(given, step) for step in steps if low <= step <= high]
    else:
        pairs = [_as_it_is(given, value) for value in dict.fromkeys(values)]
    found = given.never
    for near in (True, False):
        side_by_side = [pair for pair in pairs if (pair[0] is pairs[0][0]) is near]
        found = found | side_by_side[0][0].isin([pair[1] for pair in side_by_side]) if side_by_side else found
    return found | _unknown() if len(values) < len(written) else found


def missing(value: Any) -> Any:
    """Whether a value is NULL; NaN is not, though Ibis takes it for that on Spark."""
    there = value.type().is_floating() and value.get_backend().name == "pyspark"
    return value.isnull() & ~value.isnan() if there else value.isnull()


def compare_sides(left: Side, operator: str, right: Side) -> Any:
    """The comparison of two sides of one family; numbers of different types as doubles."""
    if left.family != right.family or left.collation != right.collation:
        raise UnfitError
    same = left.kind == right.kind and left.value.type().copy(nullable=True) == right.value.type().copy(nullable=True)
    if left.family == "timestamp" and not same:
        raise UnfitError
    plain = left.family != "number" or (left.kind.is_integer() and right.kind.is_integer())
    if plain or (same and not left.kind.is_floating()):
        return OPERATORS[operator](left.value, right.value)
    return OPERATORS[operator](number(left.value), number(right.value))


def constant(given: Side, written: Any) -> Any:
    """A constant as Python has it, checked against a side; text is read as what the side holds."""
    reader = {"boolean": _truth, "string": _text, "date": _moment, "timestamp": _moment, "number": _number}
    try:
        return reader[given.family](given.kind, written)
    except (ValueError, OverflowError, InvalidOperation):
        raise UnfitError from None


def _truth(_: Any, written: Any) -> bool:
    if isinstance(written, str):
        return bool(("false", "true").index(written.lower()))
    if not isinstance(written, bool):
        raise UnfitError
    return written


def _text(_: Any, written: Any) -> str:
    """Text that every engine can hold."""
    if not isinstance(written, str) or "\0" in written:
        raise UnfitError
    written.encode()
    return written


def _number(_: Any, written: Any) -> Decimal | float:
    """A number of no more digits than make sense; infinities are floats."""
    if isinstance(written, bool) or not isinstance(written, str | int | float | Decimal):
        raise UnfitError
    value = Decimal(repr(written) if isinstance(written, float) else written)
    if value.is_nan():
        raise UnfitError
    if value.is_infinite():
        return inf if value > 0 else -inf
    if not (abs(value.adjusted()) <= LARGEST and len(value.as_tuple().digits) <= LARGEST):
        raise UnfitError
    return value


def _moment(kind: Any, written: Any) -> datetime.datetime:
    """An instant in UTC, which one without a zone means too, or a time of no zone; a day begins at midnight."""
    zoned = kind.is_timestamp() and kind.timezone is not None
    if isinstance(written, str):
        written = datetime.datetime.fromisoformat(written)
    if not isinstance(written, datetime.date):
        raise UnfitError
    day = datetime.time() if not isinstance(written, datetime.datetime) else written.timetz()
    moment = datetime.datetime.combine(written, day)
    if moment.tzinfo is not None and not zoned:
        raise UnfitError
    return moment.astimezone(datetime.UTC).replace(tzinfo=None) if moment.tzinfo is not None else moment


def _on_grid(given: Side) -> bool:
    """Whether its values are multiples of one step: whole numbers, bounded decimals, days, instants."""
    if given.family != "number":
        return given.family in ("date", "timestamp")
    return not (given.kind.is_floating() or boundless(given.kind))


def _as_it_is(given: Side, value: Any) -> tuple[Any, Any]:
    """The two sides where every constant is one: texts, truth values, doubles, PostgreSQL's numeric."""
    if given.family != "number":
        return given.value, ibis_library().literal(value)
    if given.kind.is_floating():
        return number(given.value), real(float(value))
    if isinstance(value, float):
        raise UnfitError
    return given.value, ibis_library().literal(f"{value:f}").cast("decimal")


def _at_step(given: Side, step: Any) -> tuple[Any, Any]:
    """The two sides for a constant on the grid; as doubles beyond 64 bits, where Ibis cannot write one of 128."""
    if given.kind == ibis_library().dtype(HUGE) and not -LONG <= step < LONG:
        return number(given.value), real(float(step))
    return given.value, _literal(given.kind, step)


def _step(kind: Any, value: Any) -> tuple[int | float, bool]:
    """The last step of the column's grid at or below a constant, and whether it is the constant."""
    if isinstance(value, float):
        return value, False
    if isinstance(value, Decimal):
        steps = Fraction(value) * 10 ** (kind.scale if kind.is_decimal() else 0)
    else:
        micros = (value - EPOCH) // datetime.timedelta(microseconds=1)
        steps = Fraction(micros, 86_400_000_000) if kind.is_date() else Fraction(micros * 10**kind.scale, 10**6)
    return floor(steps), steps.denominator == 1


def _ends(kind: Any) -> tuple[int | float, int | float]:
    """The steps that a constant of this type can be, all that lies between them included."""
    if kind.is_integer():
        return kind.bounds.lower, kind.bounds.upper
    if kind.is_decimal():
        widest = 2**127 if kind.precision > 38 else 10**kind.precision
        return 1 - widest, widest - 1
    return (1 - LONG, LONG - 1) if kind.is_timestamp() and kind.scale > 6 else (-inf, inf)


def _literal(kind: Any, step: Any) -> Any:
    """A step of the grid in SQL."""
    ibis = ibis_library()
    if kind.is_integer() or (kind.is_decimal() and kind.precision > 38):
        return ibis.literal(int(step), kind if kind.is_integer() else "int64")
    if kind.is_decimal():
        return ibis.literal(f"{Decimal(f'{step}e-{kind.scale}'):f}").cast(kind)
    if kind.is_date():
        return ibis.literal((EPOCH + datetime.timedelta(days=step)).date().isoformat()).cast(kind)
    moment = EPOCH + datetime.timedelta(microseconds=step * 10**6 // 10**kind.scale)
    zone = "" if kind.timezone is None else "+00:00"
    return ibis.literal(moment.isoformat(" ") + zone).cast(kind)


def _unknown() -> Any:
    """NULL, neither true nor false."""
    return ibis_library().null("boolean")
