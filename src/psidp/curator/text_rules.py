"""Conditions and derived columns that were written as text, made of what fails on no row.

A word that names a column is that column, as in SQL; any other is a value, read in the type of the column it meets.
"""

import datetime
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from functools import reduce
from typing import Any, TypeVar

from psidp.curator import condition_text as written
from psidp.curator.column_types import read_as, read_kind
from psidp.curator.comparison import MIRRORED, Side, UnfitError, among, compare, compare_sides, missing, side
from psidp.curator.condition_text import Node, Word, shorten
from psidp.curator.derived import PARTS, chosen, cut, day_of, like, part, prefix
from psidp.curator.native_types import Native
from psidp.curator.readings import Reading, kind_in_order
from psidp.curator.row_sql import ibis_library

__all__ = ["TextRules", "joined", "words_in"]

TEXTS = {"lower": "lower", "upper": "upper", "trim": "strip"}
FUNCTIONS = (*PARTS, "date", "left", "cut", *TEXTS, "length")
ORDERED = ("<", "<=", ">", ">=")
Made = TypeVar("Made")
JOINS: dict[str, Callable[[Any, Any], Any]] = {"and": lambda a, b: a & b, "or": lambda a, b: a | b}


def words_in(node: Node | None) -> list[Word]:
    """All words of a tree."""
    if isinstance(node, Word):
        return [node]
    found: list[Word] = []
    for name in getattr(node, "__slots__", ()):
        waiting = [getattr(node, name)]
        while waiting:
            given = waiting.pop()
            waiting += given if isinstance(given, tuple) else []
            found += [] if isinstance(given, tuple | str) else words_in(given)
    return found


def joined(word: str, parts: Sequence[Any]) -> Any:
    """Conditions joined by and, or by or; in halves, so that many of them do not nest deep."""
    if len(parts) <= 2:
        return reduce(JOINS[word], parts)
    half = len(parts) // 2
    return JOINS[word](joined(word, parts[:half]), joined(word, parts[half:]))


@dataclass(frozen=True, slots=True)
class TextRules:
    """Makes Ibis expressions of what was parsed.

    Args:
        table: the Ibis table. natives: the native types of its columns that the text names. untyped: columns that are
            read in the type of what they meet. role: what the text is, for refusals. seen: how they were read.
    """

    table: Any
    natives: Mapping[str, Native]
    untyped: frozenset[str]
    role: str
    seen: dict[Reading, None] = field(default_factory=dict)

    def truth(self, node: Node) -> Any:
        """A condition, as a boolean column."""
        if isinstance(node, written.Joined):
            return joined(node.word, [self.truth(part) for part in node.parts])
        if isinstance(node, written.Not):
            return ~self.truth(node.part)
        if isinstance(node, written.Compared):
            return self._compared(node)
        if isinstance(node, written.Missing):
            return missing(self._any(node.value))
        if isinstance(node, written.Listed):
            return self._listed(node)
        if isinstance(node, written.Between):
            low = self._compared(written.Compared(node.value, ">=", node.low), [node.low, node.high])
            return low & self._compared(written.Compared(node.value, "<=", node.high), [node.low, node.high])
        if isinstance(node, written.Like):
            given = self.side(node.value, "string")
            pattern = self._text(node.pattern)
            return self._sure(lambda: like(given, pattern), f"search {_shown(node.value)} for text")
        return self._itself(node)

    def side(self, node: Node, kind: str | None = None) -> Side:
        """A column or what is made of it; untyped columns are read as `kind`."""
        if isinstance(node, written.Call):
            return self._call(node)
        if isinstance(node, written.Case):
            return self._case(node)
        if isinstance(node, Word):
            return self._column(node, kind)
        return Side(self.truth(node), ibis_library().dtype("boolean"))

    def _names_column(self, node: Node) -> bool:
        return isinstance(node, Word) and node.quote != "'" and node.text in self.table.columns

    def _is_value(self, node: Node) -> bool:
        return isinstance(node, Word) and not self._names_column(node)

    def _column(self, word: Word, kind: str | None) -> Side:
        if not self._names_column(word):
            names = ", ".join(self.table.columns)
            raise ValueError(
                f"{self.role} must name a column of the table ({shorten(names)}), got {shorten(word.text)!r}."
            )
        name = word.text
        if name not in self.untyped:
            return self._listed_type(name)
        if kind is None:
            raise ValueError(
                f"{self.role} must say what {name!r} holds, which has no type of its own: compare it with a value, or "
                f'declare it, types={{{name!r}: "int64"}} or --type {name}:int64.'
            )
        self.seen[name, kind] = None
        value = read_as(self.table[name], kind) if kind != "string" else self.table[name]
        found = value.type()
        return Side(value, found.copy(scale=6) if found.is_timestamp() else found)

    def _listed_type(self, name: str) -> Side:
        try:
            return side(self.table[name], self.natives.get(name))
        except UnfitError:
            raise ValueError(
                f"{self.role} must be about columns of numbers, text, dates, instants or truth values, got {name!r} of "
                f"type {self.table[name].type()}. Give a view of the table in which it is one of these."
            ) from None

    def _any(self, node: Node) -> Any:
        """Whatever may be missing: a column of any type, or what is made of one."""
        if isinstance(node, Word) and self._names_column(node):
            return self.table[node.text]
        return self.side(node).value

    def _compared(self, node: written.Compared, values: Sequence[Node] = ()) -> Any:
        left, operator, right = node.left, node.operator, node.right
        if self._is_value(left) and not self._is_value(right):
            left, operator, right = right, MIRRORED.get(operator, operator), left
        if not self._is_value(right):
            given, other = self.side(left), self.side(right)
            reason = f"compare like with like, got {_shown(left)} and {_shown(right)}"
            return self._sure(lambda: compare_sides(given, operator, other), reason)
        return self._with_value(left, operator, right, list(values) or [right])

    def _with_value(self, left: Node, operator: str, right: Node, values: Sequence[Node]) -> Any:
        """The comparison with a value; the refusal names the type that the value must have."""
        given = self._for(left, values, operator in ORDERED)
        value = self._value(given, right, self._is_untyped(left), operator in ORDERED)
        reason = (
            f"compare {_shown(left)} with one value of type {given.kind}, got {shorten(value)!r}. Several conditions "
            "are joined by AND or OR, or given as a list; --where may be repeated"
        )
        return self._sure(lambda: compare(given, operator, value), reason)

    def _listed(self, node: written.Listed) -> Any:
        options = [option for option in node.options if self._is_value(option)]
        others = [written.Compared(node.value, "=", option) for option in node.options if not self._is_value(option)]
        parts = [self._compared(other) for other in others]
        if options:
            given = self._for(node.value, options)
            values = [self._value(given, option, self._is_untyped(node.value), False) for option in options]
            reason = f"list values of type {given.kind} for {_shown(node.value)}, text in quotes"
            parts.append(self._sure(lambda: among(given, values), reason))
        return joined("or", parts)

    def _is_untyped(self, node: Node) -> bool:
        return isinstance(node, Word) and self._names_column(node) and node.text in self.untyped

    def _for(self, node: Node, values: Sequence[Node], ordered: bool = False) -> Side:
        """A side that meets these values: an untyped column is read in their type."""
        words = [value for value in values if isinstance(value, Word)]
        if isinstance(node, Word) and ordered and self._is_untyped(node):
            kinds = {kind_in_order(self.role, node.text, word.text, quoted=bool(word.quote)) for word in words}
        else:
            kinds = {"string" if word.quote else read_kind(word.text) for word in words}
        if len(kinds) > 1 and self._is_untyped(node):
            raise ValueError(
                f"{self.role} must compare {_shown(node)} with values of one kind, got "
                f"{', '.join(shorten(word.text) for word in words[:5])}. It has no type: text stands in quotes."
            )
        return self.side(node, next(iter(kinds), "string"))

    def _value(self, given: Side, node: Node, untyped: bool, ordered: bool) -> str:
        """A value as text; one that a column of text without a type is put in order with stands in quotes."""
        if not isinstance(node, Word):
            raise ValueError(f"{self.role} must compare {given.kind} with a value.")
        if not node.quote and node.text.lower() == "null":
            raise ValueError(f"{self.role} must ask for missing values by IS NULL or IS NOT NULL, got = NULL.")
        if not node.quote and untyped and ordered and given.family == "string":
            raise ValueError(
                f"{self.role} must compare with one value, and text that a column without a type is put in order with "
                f"must stand in quotes, got {shorten(node.text)!r}."
            )
        return _in_utc(node.text) if untyped and given.family == "timestamp" else node.text

    def _text(self, node: Node) -> str:
        if not (isinstance(node, Word) and node.quote and not self._names_column(node)):
            raise ValueError(f"{self.role} must have a fixed pattern in quotes after LIKE, such as name like 'Mc%'.")
        return node.text

    def _itself(self, node: Node) -> Any:
        """A column of truth values, or true or false."""
        if (
            self._is_value(node)
            and isinstance(node, Word)
            and node.text.lower() in ("true", "false")
            and not node.quote
        ):
            return ibis_library().literal(node.text.lower() == "true")
        given = self.side(node, "string")
        if given.family != "boolean":
            raise ValueError(
                f'{self.role} must be column, comparison and value, such as "age >= 18", got {_shown(node)} alone, '
                f"which is of type {given.kind}."
            )
        return given.value

    def _call(self, node: written.Call) -> Side:
        name, (first, *rest) = node.name, node.arguments
        if name not in FUNCTIONS:
            raise ValueError(
                f"{self.role} must use functions that fail on no row ({', '.join(FUNCTIONS)}), got {shorten(name)!r}. "
                "Have others as columns of the table."
            )
        if any(not self._is_value(word) for word in rest) or bool(rest) is not (name in ("left", "cut")):
            raise ValueError(f"{self.role} must call {name} as {_usage(name)}.")
        values = [word.text for word in rest if isinstance(word, Word)]
        reason = f"call {name} of what has it, as {_usage(name)}, got {_shown(first)}"
        if name == "cut":
            given = self._for(first, rest, ordered=True)
            return self._sure(lambda: cut(given, values), reason)
        given = self.side(first, "timestamp" if name in PARTS or name == "date" else "string")
        if name == "left" and len(values) == 1:
            return self._sure(lambda: prefix(given, values[0]), reason)
        if name in PARTS:
            return self._sure(lambda: part(given, name), reason)
        if name == "date":
            return self._sure(lambda: day_of(given), reason)
        if given.family != "string":
            raise ValueError(f"{self.role} must {reason} of type {given.kind}.")
        if name == "length":
            return Side(given.value.length(), ibis_library().dtype("int32"))
        return replace(given, value=getattr(given.value, TEXTS[name])(), values=None)

    def _case(self, node: written.Case) -> Side:
        branches = [(self.truth(rule), self._result(result)) for rule, result in node.branches]
        otherwise = None if node.otherwise is None else self._result(node.otherwise)
        reason = "give constants of one kind (text in quotes, numbers, true and false) after THEN and ELSE"
        return self._sure(lambda: chosen(branches, otherwise), reason)

    def _result(self, node: Node) -> Any:
        """A constant behind THEN or ELSE."""
        if isinstance(node, Word) and node.quote == "'":
            return node.text
        word = node.text.lower() if isinstance(node, Word) and not node.quote else ""
        known = {"true": True, "false": False, "null": None}
        value = known[word] if word in known else number_of(word)
        if value is None and word != "null":
            raise ValueError(
                f"{self.role} must give constants after THEN and ELSE, text in single quotes, got {_shown(node)}."
            )
        return value

    def _sure(self, make: Callable[[], Made], reason: str) -> Made:
        """What is made, or the refusal with its reason."""
        try:
            return make()
        except UnfitError as error:
            said = str(error)
        raise ValueError(f"{self.role} must {said or reason + '.'}")


def number_of(text: str) -> int | float | None:
    """A bare word as a whole number or a fraction; None where it is neither."""
    if re.fullmatch(r"[+-]?[0-9]{1,18}", text):
        return int(text)
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    return float(value) if value.is_finite() else None


def _in_utc(text: str) -> str:
    """An instant without its zone, as an untyped column is read."""
    moment = datetime.datetime.fromisoformat(text)
    return text if moment.tzinfo is None else moment.astimezone(datetime.UTC).replace(tzinfo=None).isoformat(" ")


def _usage(name: str) -> str:
    return {"left": "left(text, 2)", "cut": "cut(number, 0, 15, 60)"}.get(name, f"{name}(column)")


def _shown(node: Node) -> str:
    """A part of a condition for a refusal."""
    if isinstance(node, Word):
        return repr(shorten(node.text))
    if isinstance(node, written.Call):
        return f"{node.name}(...)"
    return "a condition" if not isinstance(node, written.Case) else "CASE"
