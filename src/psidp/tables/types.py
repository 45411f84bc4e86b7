"""Column types, the same for all engines."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

__all__ = ["DECLARED", "Type"]


@dataclass(frozen=True, slots=True)
class Type:
    """What a column holds. It comes from the engine's schema or from a declaration, never from the rows.

    Args:
        kind: "boolean", "integer", "float", "decimal", "text", "date", "timestamp", "time", "uuid", "binary", "inet",
            "macaddr", or "other" for types that no question can use.
        native: the engine's own name, for refusals and records.
        bits, signed: of integers, 8 to 128; `bits` of floats, 16 to 64.
        precision, scale: of decimals; None where the number of digits is not limited (PostgreSQL's numeric).
        zone: whether a timestamp is an instant, shown in UTC; others are times without a zone.
        digits: decimal places of a timestamp's seconds: 0, 3, 6 or 9.
        collation: of text; "" for the engine's default.
        searchable: whether LIKE can search a text under its collation.
    """

    kind: str
    native: str
    bits: int = 64
    signed: bool = True
    precision: int | None = None
    scale: int | None = None
    zone: bool = False
    digits: int = 6
    collation: str = ""
    searchable: bool = True

    def __str__(self) -> str:
        return self.native

    @property
    def numeric(self) -> bool:
        """Whether it can be read as doubles, truth as 1 and 0."""
        return self.kind in ("boolean", "integer", "float", "decimal")

    @property
    def whole(self) -> bool:
        """Whether it is an integer type."""
        return self.kind == "integer"

    @property
    def text(self) -> bool:
        """Whether it is text of any length and collation."""
        return self.kind == "text"

    @property
    def temporal(self) -> bool:
        """Whether it is a date or a timestamp."""
        return self.kind in ("date", "timestamp")

    @property
    def boundless(self) -> bool:
        """Whether it is a decimal whose values can lie beyond the range of doubles."""
        return self.kind == "decimal" and not 0 <= (self.scale or 0) <= (self.precision or inf) <= 300

    @property
    def ends(self) -> tuple[int, int]:
        """The least and the largest number of an integer type."""
        return (-(1 << self.bits - 1), (1 << self.bits - 1) - 1) if self.signed else (0, (1 << self.bits) - 1)


DECLARED: Mapping[str, Type] = {
    "string": Type("text", "VARCHAR"),
    "int64": Type("integer", "BIGINT"),
    "float64": Type("float", "DOUBLE"),
    "boolean": Type("boolean", "BOOLEAN"),
    "date": Type("date", "DATE"),
    "timestamp": Type("timestamp", "TIMESTAMP"),
}
"""The types in which a column without a type is declared or read."""
