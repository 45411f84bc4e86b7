"""Comparisons that fail on no row: constants are read here, and moved exactly to where the column's own values lie.

n < 1.5 is n <= 1 for whole numbers, and 300 is above every number of 8 bits. So no engine looks for a type that holds
both sides, and casts rows to it that do not fit.
"""

import datetime
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from math import floor, inf
from typing import Any

from psidp.tables.conditions.tree import Among, Compared, Joined, Known, Sides, Value
from psidp.tables.types import Type

__all__ = ["MIRRORED", "UnfitError", "among", "between_years", "compare", "compare_sides", "family", "in_utc", "read"]

MIRRORED = {">": "<", ">=": "<=", "<": ">", "<=": ">="}
"""The comparison with its sides exchanged, where that is another."""

FAMILIES = dict.fromkeys(("integer", "float", "decimal"), "number")
FAMILIES |= {kind: kind for kind in ("boolean", "text", "date", "timestamp")}
LARGEST = 1000
"""Digits before and behind the point of a number that is written out."""

EPOCH = datetime.datetime(1970, 1, 1)
FIRST, LAST = datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59, 999_999)


class UnfitError(ValueError):
    """What no engine is sure to compare or compute. Its words, if it has some, say what a condition must do instead."""


def family(type: Type) -> str:
    """What compares with what: "number", "text", "boolean", "date", "timestamp"; "" for what compares with nothing."""
    return FAMILIES.get(type.kind, "")


def compare(value: Value, operator: str, written: Any) -> Value:
    """The comparison with a constant; true, false, or NULL where the value is NULL.

    Args:
        operator: "=", "!=", "<", "<=", ">" or ">=". written: as text, or as `read` returns it.
    """
    of, given = value.type, read(value.type, written)
    if not _on_grid(of):
        return Compared(value, operator, given)
    step, exact = _step(of, given)
    if not exact and operator in ("=", "!="):
        return Known(value, operator == "!=", operator == "!=")
    operator = operator if exact else {"<": "<=", ">=": ">"}.get(operator, operator)
    low, high = _ends(of)
    if not low <= step <= high:
        beyond = ("<", "<=", "!=") if step > high else (">", ">=", "!=")
        return Known(value, operator in beyond, operator == "!=")
    return Compared(value, operator, _at(of, step))


def among(value: Value, written: Sequence[str]) -> Value:
    """Whether a value is one of some constants."""
    of, found = value.type, [read(value.type, text) for text in written]
    if _on_grid(of):
        low, high = _ends(of)
        steps = [step for step, exact in (_step(of, given) for given in found) if exact]
        found = [_at(of, step) for step in steps if low <= step <= high]
    return Among(value, tuple(dict.fromkeys(found))) if found else Known(value, False, False)


def compare_sides(left: Value, operator: str, right: Value) -> Value:
    """The comparison of two values of one row, of one family; texts of one collation, instants of one form."""
    a, b = left.type, right.type
    forms = [(family(of), of.collation, (of.zone, of.digits) if of.kind == "timestamp" else ()) for of in (a, b)]
    if not family(a) or forms[0] != forms[1]:
        raise UnfitError
    same = (a.kind, a.bits, a.signed, a.precision, a.scale) == (b.kind, b.bits, b.signed, b.precision, b.scale)
    comparable = (same and a.kind != "float") or (a.whole and b.whole and max(a.bits, b.bits) <= 64)
    return Sides(left, operator, right, as_doubles=family(a) == "number" and not comparable)


def between_years(value: Value) -> Value:
    """Whether a date or an instant lies in the years 1 to 9999."""
    return Joined("AND", (compare(value, ">=", FIRST), compare(value, "<=", LAST)))


def read(type: Type, written: Any) -> Any:
    """A constant as Python has it, read as what a type holds; refused where it is nothing of the kind."""
    reader = {"boolean": _truth, "text": _text, "date": _moment, "timestamp": _moment, "number": _number}
    try:
        return reader[family(type)](type, written)
    except (KeyError, ValueError, OverflowError, InvalidOperation):
        raise UnfitError from None


def _truth(_: Type, written: str) -> bool:
    return bool(("false", "true").index(written.lower()))


def _text(_: Type, written: str) -> str:
    """Text that every engine can hold: without NUL and halves of letters."""
    if "\0" in written:
        raise UnfitError
    written.encode()
    return written


def _number(type: Type, written: str | Decimal) -> Decimal | float:
    """A number of no more digits than make sense; infinities are floats."""
    value = Decimal(written)
    if value.is_nan():
        raise UnfitError
    if value.is_infinite():
        if type.boundless:
            raise UnfitError
        return inf if value > 0 else -inf
    if not (abs(value.adjusted()) <= LARGEST and len(value.as_tuple().digits) <= LARGEST):
        raise UnfitError
    return value


def _moment(type: Type, written: str | datetime.datetime) -> datetime.datetime:
    """An instant in UTC, which one without a zone means too, or a time of no zone; a day begins at midnight."""
    moment = datetime.datetime.fromisoformat(written) if isinstance(written, str) else written
    if moment.tzinfo is None:
        return moment
    if not type.zone:
        raise UnfitError
    return moment.astimezone(datetime.UTC).replace(tzinfo=None)


def in_utc(text: str) -> str:
    """The text of an instant without its zone, as columns without a type are read."""
    moment = datetime.datetime.fromisoformat(text)
    return text if moment.tzinfo is None else moment.astimezone(datetime.UTC).replace(tzinfo=None).isoformat(" ")


def _on_grid(type: Type) -> bool:
    """Whether its values are multiples of one step: whole numbers, bounded decimals, days, instants."""
    return type.kind in ("integer", "date", "timestamp") or (type.kind == "decimal" and not type.boundless)


def _step(type: Type, value: Any) -> tuple[int | float, bool]:
    """The last step of the grid at or below a constant, and whether it is the constant."""
    if isinstance(value, float):
        return value, False
    if isinstance(value, Decimal):
        steps = Fraction(value) * 10 ** (type.scale or 0)
    else:
        micros = (value - EPOCH) // datetime.timedelta(microseconds=1)
        steps = Fraction(micros, 86_400_000_000) if type.kind == "date" else Fraction(micros * 10**type.digits, 10**6)
    return floor(steps), steps.denominator == 1


def _ends(type: Type) -> tuple[int | float, int | float]:
    """The steps that a constant of a type can be, all that lies between them included."""
    if type.kind == "integer":
        return type.ends
    if type.kind == "decimal":
        most = 10 ** (type.precision or 0) - 1
        return -most, most
    # 2^63 nanoseconds end in 2262, and what is finer than a microsecond cannot be written.
    return (1 - 2**63, 2**63 - 1) if type.kind == "timestamp" and type.digits > 6 else (-inf, inf)


def _at(type: Type, step: Any) -> Any:
    """A step of the grid as a constant."""
    if type.kind == "integer":
        return step
    if type.kind == "decimal":
        return Decimal(f"{step}e-{type.scale or 0}")
    if type.kind == "date":
        return EPOCH + datetime.timedelta(days=step)
    return EPOCH + datetime.timedelta(microseconds=step * 10**6 // 10**type.digits)
