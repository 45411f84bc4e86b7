"""The tree of a condition: frozen values of this list and no others, each of which writes SQL that fails on no row.

A failure would tell, at no cost, that some row made it: so nothing here computes with a cell before comparisons have
bounded it, and no engine is left to look for a type that two sides share. Names of columns are written by the dialect.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from psidp.tables.engines.base import Dialect
from psidp.tables.types import DECLARED, Type

__all__ = [
    "BOOLEAN",
    "FLOAT",
    "INTEGER",
    "PARTS",
    "TEXT",
    "Among",
    "Case",
    "Changed",
    "Column",
    "Compared",
    "Cut",
    "Day",
    "Joined",
    "Known",
    "Length",
    "Like",
    "Literal",
    "Missing",
    "Nan",
    "Not",
    "Part",
    "Prefix",
    "Read",
    "Sides",
    "Value",
    "constant",
]

BOOLEAN, INTEGER, FLOAT, DAY = (DECLARED[name] for name in ("boolean", "int64", "float64", "date"))
TEXT = DECLARED["string"]
BLANKS = " \t\n\r\v\f"

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
"""Parts of dates and instants, and all their values where they are few: weeks are those of ISO 8601, weekday 1 is Monday."""


class Value:
    """What one row has: a column, what is made of one, or a truth value that may be NULL."""

    __slots__ = ()

    @property
    def type(self) -> Type:
        """What it holds."""
        raise NotImplementedError

    @property
    def values(self) -> tuple[Any, ...] | None:
        """All that it can be, where its definition says so: these are public."""
        return None

    def sql(self, dialect: Dialect) -> str:
        """SQL text that stands anywhere without brackets."""
        raise NotImplementedError


def constant(dialect: Dialect, value: Any, type: Type) -> str:
    """A constant of a type in SQL: as text that is cast, so that no engine chooses a type for it."""
    if type.kind == "text":
        return dialect.quote(value)
    if type.kind == "boolean":
        return "TRUE" if value else "FALSE"
    if type.kind == "float":
        return dialect.real(float(value))
    if type.boundless:
        return f"CAST('{value:f}' AS NUMERIC)"
    if type.kind == "decimal":
        return f"CAST('{value:f}' AS {type.native})"
    if type.kind == "date":
        return f"CAST('{value.date().isoformat()}' AS DATE)"
    if type.kind == "timestamp":
        return f"CAST('{value.isoformat(' ')}{'+00:00' if type.zone else ''}' AS {type.native})"
    return f"CAST('{value}' AS {type.native})"


@dataclass(frozen=True, slots=True)
class Column(Value):
    """A column of the table; text of every kind (padded, enumerated) as plain text."""

    name: str
    type: Type

    def sql(self, dialect: Dialect) -> str:
        return dialect.plain(self.name)


@dataclass(frozen=True, slots=True)
class Read(Value):
    """A column of text without a type, read as `kind` of `DECLARED`; NULL where a cell cannot be read so."""

    name: str
    kind: str

    @property
    def type(self) -> Type:
        return DECLARED[self.kind]

    def sql(self, dialect: Dialect) -> str:
        return dialect.read(dialect.column(self.name), self.kind)


@dataclass(frozen=True, slots=True)
class Literal(Value):
    """TRUE or FALSE."""

    value: bool
    type: Type = BOOLEAN

    def sql(self, dialect: Dialect) -> str:
        return "TRUE" if self.value else "FALSE"


@dataclass(frozen=True, slots=True)
class Compared(Value):
    """A value and a constant of its own type. NaN is as in Python: unequal to every number, and neither above nor below."""

    value: Value
    operator: str
    constant: Any
    type: Type = BOOLEAN

    def sql(self, dialect: Dialect) -> str:
        of, text = self.value.type, _number(self.value, dialect)
        made = f"{text} {_sign(self.operator)} {constant(dialect, self.constant, of)}"
        nan = dialect.nan(text, of) if self.operator in (">", ">=") else ""  # engines have NaN above all numbers
        return f"({made} AND NOT {nan})" if nan else f"({made})"


@dataclass(frozen=True, slots=True)
class Known(Value):
    """The same truth for every number that a value can be, NULL where it is NULL: n < 300 for numbers of 8 bits."""

    value: Value
    truth: bool
    of_nan: bool
    type: Type = BOOLEAN

    def sql(self, dialect: Dialect) -> str:
        text = self.value.sql(dialect)
        nan = dialect.nan(text, self.value.type) if self.of_nan is not self.truth else ""
        made = "TRUE" if self.truth else "FALSE"
        return f"CASE WHEN {text} IS NOT NULL THEN {f'NOT {nan}' if self.truth and nan else nan or made} END"


@dataclass(frozen=True, slots=True)
class Among(Value):
    """Whether a value is one of some constants of its own type."""

    value: Value
    constants: tuple[Any, ...]
    type: Type = BOOLEAN

    def sql(self, dialect: Dialect) -> str:
        listed = ", ".join(constant(dialect, value, self.value.type) for value in self.constants)
        return f"({_number(self.value, dialect)} IN ({listed}))"


@dataclass(frozen=True, slots=True)
class Sides(Value):
    """Two values of one row: of one type as they are, numbers of different types as doubles. NaN is as in Python."""

    left: Value
    operator: str
    right: Value
    type: Type = BOOLEAN

    def sql(self, dialect: Dialect) -> str:
        a, b = self.left.type, self.right.type
        whole = a.whole and b.whole and max(a.bits, b.bits) <= 64
        as_it_is = not (a.numeric and b.numeric) or whole or (replace(a, native=b.native) == b and a.kind != "float")
        left, right = self.left.sql(dialect), self.right.sql(dialect)
        nans = [nan for text, of in ((left, a), (right, b)) if (nan := dialect.nan(text, of))]
        there = f"{left} IS NOT NULL AND {right} IS NOT NULL"
        if not as_it_is:
            left, right = dialect.as_double(left, a), dialect.as_double(right, b)
        made = f"{left} {_sign(self.operator)} {right}"
        if not nans:
            return f"({made})"
        with_nan = (
            f"{made} OR {' OR '.join(nans)}" if self.operator == "!=" else f"{made} AND NOT {' AND NOT '.join(nans)}"
        )
        return f"CASE WHEN {there} THEN ({with_nan}) END"


@dataclass(frozen=True, slots=True)
class Missing(Value):
    """Whether a value is NULL; NaN is not."""

    value: Value
    type: Type = BOOLEAN

    def sql(self, dialect: Dialect) -> str:
        return f"({self.value.sql(dialect)} IS NULL)"


@dataclass(frozen=True, slots=True)
class Nan(Value):
    """Whether a number is NaN; NULL where it is NULL."""

    value: Value
    type: Type = BOOLEAN

    def sql(self, dialect: Dialect) -> str:
        text = self.value.sql(dialect)
        return f"CASE WHEN {text} IS NOT NULL THEN {dialect.nan(text, self.value.type) or 'FALSE'} END"


@dataclass(frozen=True, slots=True)
class Like(Value):
    """Whether a text is like a pattern: its letters, and for each whether it is a wildcard."""

    value: Value
    pattern: tuple[tuple[str, bool], ...]
    type: Type = BOOLEAN

    def sql(self, dialect: Dialect) -> str:
        # What escapes a letter by default differs (DuckDB: nothing; PostgreSQL, Spark: a backslash), so it is given.
        text = "".join(f"!{a}" if a in ("%", "_", "!") and not wild else a for a, wild in self.pattern)
        return f"({self.value.sql(dialect)} LIKE {dialect.quote(text)} ESCAPE '!')"


@dataclass(frozen=True, slots=True)
class Joined(Value):
    """Conditions joined by AND or by OR."""

    word: str
    parts: tuple[Value, ...]
    type: Type = BOOLEAN

    def sql(self, dialect: Dialect) -> str:
        return _in_halves(f" {self.word} ", [part.sql(dialect) for part in self.parts])


@dataclass(frozen=True, slots=True)
class Not(Value):
    """NOT part; NULL where the part is NULL."""

    part: Value
    type: Type = BOOLEAN

    def sql(self, dialect: Dialect) -> str:
        return f"(NOT {self.part.sql(dialect)})"


@dataclass(frozen=True, slots=True)
class Part(Value):
    """A part of a date or an instant in UTC, a whole number; NULL where it is not `inside` the years 1 to 9999.

    Dates outside have no parts: engines have infinite ones and years of six digits, and read them in different ways.
    """

    value: Value
    name: str
    inside: Value
    type: Type = INTEGER

    @property
    def values(self) -> tuple[Any, ...] | None:
        return PARTS[self.name]

    def sql(self, dialect: Dialect) -> str:
        name = dialect.weekday if self.name == "isoweekday" else self.name
        made = f"CAST(EXTRACT({name} FROM {_in_utc(self.value, dialect)}) AS BIGINT)"
        return f"CASE WHEN {self.inside.sql(dialect)} THEN {made} END"


@dataclass(frozen=True, slots=True)
class Day(Value):
    """The day of a date or of an instant in UTC; NULL where it is not `inside` the years 1 to 9999."""

    value: Value
    inside: Value
    type: Type = DAY

    def sql(self, dialect: Dialect) -> str:
        return f"CASE WHEN {self.inside.sql(dialect)} THEN CAST({_in_utc(self.value, dialect)} AS DATE) END"


@dataclass(frozen=True, slots=True)
class Prefix(Value):
    """The first letters of a text."""

    value: Value
    length: int

    @property
    def type(self) -> Type:
        return self.value.type

    def sql(self, dialect: Dialect) -> str:
        return f"SUBSTRING({self.value.sql(dialect)}, 1, {self.length})"


@dataclass(frozen=True, slots=True)
class Changed(Value):
    """A text in small or capital letters, or without blanks at its ends."""

    value: Value
    how: str

    @property
    def type(self) -> Type:
        return self.value.type

    def sql(self, dialect: Dialect) -> str:
        text = self.value.sql(dialect)
        return (
            f"TRIM(BOTH {dialect.quote(BLANKS)} FROM {text})" if self.how == "trim" else f"{self.how.upper()}({text})"
        )


@dataclass(frozen=True, slots=True)
class Length(Value):
    """The number of letters of a text."""

    value: Value
    type: Type = INTEGER

    def sql(self, dialect: Dialect) -> str:
        return f"CAST(LENGTH({self.value.sql(dialect)}) AS BIGINT)"


@dataclass(frozen=True, slots=True)
class Cut(Value):
    """The bin of a number, a date or an instant as text; NULL for a missing value and NaN.

    Args:
        below: for each edge, whether the value is below it. labels: of all bins, one more than edges.
    """

    value: Value
    below: tuple[Value, ...]
    labels: tuple[str, ...]
    type: Type = TEXT

    @property
    def values(self) -> tuple[Any, ...] | None:
        return self.labels

    def sql(self, dialect: Dialect) -> str:
        text = self.value.sql(dialect)
        nan = dialect.nan(text, self.value.type)
        there = f"{text} IS NOT NULL AND NOT {nan}" if nan else f"{text} IS NOT NULL"
        rules = [rule.sql(dialect) for rule in self.below]
        bins = _cases(list(zip(rules, map(dialect.literal, self.labels), strict=False)), dialect.quote(self.labels[-1]))
        return f"CASE WHEN {there} THEN {bins} END"


@dataclass(frozen=True, slots=True)
class Case(Value):
    """The constant behind the first condition that holds; None is NULL."""

    branches: tuple[tuple[Value, Any], ...]
    otherwise: Any
    type: Type

    @property
    def values(self) -> tuple[Any, ...] | None:
        results = (*(result for _, result in self.branches), self.otherwise)
        return None if self.type.kind == "float" else tuple(dict.fromkeys(results))

    def sql(self, dialect: Dialect) -> str:
        kind = dialect.type(self.type.kind).native

        def write(value: Any) -> str:
            return f"CAST(NULL AS {kind})" if value is None else constant(dialect, value, self.type)

        return _cases([(rule.sql(dialect), write(value)) for rule, value in self.branches], write(self.otherwise))


def _number(value: Value, dialect: Dialect) -> str:
    """A value as its constants compare with it: floats as doubles, so that 0.1 is the double 0.1."""
    text = value.sql(dialect)
    return dialect.as_double(text, value.type) if value.type.kind == "float" else text


def _sign(operator: str) -> str:
    return "<>" if operator == "!=" else operator


def _cases(cases: Sequence[tuple[str, str]], other: str) -> str:
    return f"CASE {' '.join(f'WHEN {rule} THEN {value}' for rule, value in cases)} ELSE {other} END"


def _in_halves(word: str, parts: Sequence[str]) -> str:
    """Parts joined in halves, so that a thousand of them make a tree ten deep where an engine's parser makes trees."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return f"({_in_halves(word, parts[:half])}{word}{_in_halves(word, parts[half:])})"


def _in_utc(value: Value, dialect: Dialect) -> str:
    """A date, or an instant as a timestamp without zone: parts do not depend on the zone of a connection."""
    return dialect.in_utc(value.sql(dialect)) if value.type.zone else value.sql(dialect)
