"""Column types, the same for all engines: what a column holds, as far as a question has to know it."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

__all__ = ["DECLARED", "Type"]


@dataclass(frozen=True, slots=True)
class Type:
    """What a column holds. It comes from the engine's schema or from a declaration, never from the rows.

    Args:
        kind: "boolean", "integer", "float", "decimal", "text", "date", "timestamp", "time", "uuid", "binary", "inet",
            "macaddr", or "other" for all that no question can use.
        native: the engine's own name, for refusals and records.
        bits, signed: of integers, 8 to 128; `bits` of floats, 16 to 64.
        precision, scale: of decimals; None where they have as many digits as they like (PostgreSQL's numeric).
        zone: whether a timestamp is an instant, shown in UTC, or the reading of a clock in no zone.
        digits: of a second that a timestamp has: 0, 3, 6 or 9.
        collation: of text; "" for one that tells all texts apart by their letters and is the same everywhere.
        searchable: whether parts of a text can be looked for under its collation.
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
        """Whether it can be read as doubles."""
        return self.kind in ("boolean", "integer", "float", "decimal")

    @property
    def whole(self) -> bool:
        """Whether it is an integer type."""
        return self.kind == "integer"

    @property
    def text(self) -> bool:
        """Whether it is text, of whatever length and collation."""
        return self.kind == "text"

    @property
    def temporal(self) -> bool:
        """Whether it is a date or a timestamp."""
        return self.kind in ("date", "timestamp")

    @property
    def boundless(self) -> bool:
        """Whether it is a decimal that can have more digits than doubles reach."""
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
"""The words by which a column without a type is declared or read, and what they mean."""
