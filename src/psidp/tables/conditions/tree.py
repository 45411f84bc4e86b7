"""The tree of a condition: frozen values of this list and no others, each of which writes SQL that fails on no row.

A failure would tell, at no cost, that some row made it. So nothing here computes with a cell before comparisons have
bounded it, and no engine is left to look for a type that two sides share. Names of columns are written by the dialect.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psidp.tables.engines.engine import Dialect
from psidp.tables.types import DECLARED, Type

__all__ = ["Among", "Applied", "Case", "Column", "Compared", "Joined", "Known", "Like", "Literal", "Missing", "Nan"]
__all__ += ["Not", "Read", "Sides", "Truth", "Value", "constant"]


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


class Truth(Value):
    """True, false or NULL."""

    __slots__ = ()

    @property
    def type(self) -> Type:
        """Truth values."""
        return DECLARED["boolean"]


def constant(dialect: Dialect, value: Any, type: Type) -> str:
    """A constant of a type in SQL: as text that is cast, so that no engine chooses a type for it."""
    if type.kind == "text":
        return dialect.quote(value)
    if type.kind == "boolean":
        return "TRUE" if value else "FALSE"
    if type.kind == "float":
        return dialect.real(float(value))
    if type.kind == "decimal":
        return f"CAST('{value:f}' AS {'NUMERIC' if type.boundless else type.native})"
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
    """A column of text without a type, read as a type of `DECLARED`; NULL where a cell cannot be read so."""

    name: str
    kind: str

    @property
    def type(self) -> Type:
        return DECLARED[self.kind]

    def sql(self, dialect: Dialect) -> str:
        return dialect.read(dialect.column(self.name), self.kind)


@dataclass(frozen=True, slots=True)
class Applied(Value):
    """A function of a value, NULL where a condition on it does not hold.

    Args:
        form: SQL with {0} for the value, an instant as the clock of UTC shows it, so that no connection's zone matters,
            and {weekday} for the dialect's word. inside: the condition, if there is one.
    """

    value: Value
    form: str
    type: Type
    inside: Value | None = None
    values: tuple[Any, ...] | None = None

    def sql(self, dialect: Dialect) -> str:
        text = self.value.sql(dialect)
        made = self.form.format(dialect.in_utc(text) if self.value.type.zone else text, weekday=dialect.weekday)
        return made if self.inside is None else f"CASE WHEN {self.inside.sql(dialect)} THEN {made} END"


@dataclass(frozen=True, slots=True)
class Case(Value):
    """The constant behind the first condition that holds, of `cases` and then of `otherwise`; None is NULL."""

    cases: tuple[tuple[Value, Any], ...]
    otherwise: Any
    type: Type

    @property
    def values(self) -> tuple[Any, ...] | None:
        results = (*(result for _, result in self.cases), self.otherwise)
        return None if self.type.kind == "float" else tuple(dict.fromkeys(results))

    def sql(self, dialect: Dialect) -> str:
        null = f"CAST(NULL AS {dialect.type(self.type.kind).native})"
        results = (*(result for _, result in self.cases), self.otherwise)
        *written, other = [null if value is None else constant(dialect, value, self.type) for value in results]
        return dialect.cases(
            [(rule.sql(dialect), value) for (rule, _), value in zip(self.cases, written, strict=True)], other
        )


@dataclass(frozen=True, slots=True)
class Literal(Truth):
    """TRUE or FALSE."""

    value: bool

    def sql(self, dialect: Dialect) -> str:
        return constant(dialect, self.value, self.type)


@dataclass(frozen=True, slots=True)
class Compared(Truth):
    """A value and a constant of its own type. NaN is as in Python: equal to no number, nor above or below."""

    value: Value
    operator: str
    constant: Any

    def sql(self, dialect: Dialect) -> str:
        of, text = self.value.type, _number(self.value, dialect)
        made = f"{text} {self.operator.replace('!=', '<>')} {constant(dialect, self.constant, of)}"
        nan = dialect.nan(text, of) if self.operator in (">", ">=") else ""  # engines have NaN above all numbers
        return f"({made} AND NOT {nan})" if nan else f"({made})"


@dataclass(frozen=True, slots=True)
class Known(Truth):
    """The same truth for all numbers that a value can be, NULL where it is NULL: n < 300 where n has 8 bits."""

    value: Value
    truth: bool
    of_nan: bool

    def sql(self, dialect: Dialect) -> str:
        text = self.value.sql(dialect)
        nan = dialect.nan(text, self.value.type) if self.of_nan is not self.truth else ""
        made = (f"NOT {nan}" if self.truth else nan) if nan else constant(dialect, self.truth, self.type)
        return f"CASE WHEN {text} IS NOT NULL THEN {made} END"


@dataclass(frozen=True, slots=True)
class Among(Truth):
    """Whether a value is one of some constants of its own type."""

    value: Value
    constants: tuple[Any, ...]

    def sql(self, dialect: Dialect) -> str:
        listed = ", ".join(constant(dialect, value, self.value.type) for value in self.constants)
        return f"({_number(self.value, dialect)} IN ({listed}))"


@dataclass(frozen=True, slots=True)
class Sides(Truth):
    """Two values of one row, as they are or `as_doubles`. NaN is as in Python."""

    left: Value
    operator: str
    right: Value
    as_doubles: bool

    def sql(self, dialect: Dialect) -> str:
        sides = [(side.sql(dialect), side.type) for side in (self.left, self.right)]
        nans = [nan for text, of in sides if (nan := dialect.nan(text, of))]
        left, right = (dialect.as_double(text, of) if self.as_doubles else text for text, of in sides)
        made = f"{left} {self.operator.replace('!=', '<>')} {right}"
        if not nans:
            return f"({made})"
        made = " OR ".join((made, *nans)) if self.operator == "!=" else " AND NOT ".join((made, *nans))
        return f"CASE WHEN {' AND '.join(f'{text} IS NOT NULL' for text, _ in sides)} THEN {made} END"


@dataclass(frozen=True, slots=True)
class Missing(Truth):
    """Whether a value is NULL; NaN is not."""

    value: Value

    def sql(self, dialect: Dialect) -> str:
        return f"({self.value.sql(dialect)} IS NULL)"


@dataclass(frozen=True, slots=True)
class Nan(Truth):
    """Whether a number is NaN; NULL where it is NULL."""

    value: Value

    def sql(self, dialect: Dialect) -> str:
        text = self.value.sql(dialect)
        return f"CASE WHEN {text} IS NOT NULL THEN {dialect.nan(text, self.value.type) or 'FALSE'} END"


@dataclass(frozen=True, slots=True)
class Like(Truth):
    """Whether a text is like a pattern: its letters, and for each whether it is a wildcard."""

    value: Value
    pattern: tuple[tuple[str, bool], ...]

    def sql(self, dialect: Dialect) -> str:
        # What escapes a letter by default differs (DuckDB: nothing; PostgreSQL, Spark: a backslash), so it is given.
        text = "".join(f"!{a}" if a in ("%", "_", "!") and not wild else a for a, wild in self.pattern)
        return f"({self.value.sql(dialect)} LIKE {dialect.quote(text)} ESCAPE '!')"


@dataclass(frozen=True, slots=True)
class Joined(Truth):
    """Conditions joined by AND or by OR."""

    word: str
    parts: tuple[Value, ...]

    def sql(self, dialect: Dialect) -> str:
        return _in_halves(f" {self.word} ", [part.sql(dialect) for part in self.parts])


@dataclass(frozen=True, slots=True)
class Not(Truth):
    """NOT part; NULL where the part is NULL."""

    part: Value

    def sql(self, dialect: Dialect) -> str:
        return f"(NOT {self.part.sql(dialect)})"


def _number(value: Value, dialect: Dialect) -> str:
    """A value as its constants compare with it: floats as doubles, so that 0.1 is the double 0.1."""
    text = value.sql(dialect)
    return dialect.as_double(text, value.type) if value.type.kind == "float" else text


def _in_halves(word: str, parts: Sequence[str]) -> str:
    """Parts joined in halves: an engine's parser makes a tree of a thousand parts that is ten deep, not a thousand."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return f"({_in_halves(word, parts[:half])}{word}{_in_halves(word, parts[half:])})"
