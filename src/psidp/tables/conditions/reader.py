"""What a text means: sqlglot's tree read node by node into values of the list, checked against the columns' types.

No SQL of sqlglot is ever run: it casts as it likes, and a cast that fails by a row would tell something about that row.

A word that names a column is that column; constants are read in the type of what they meet. Columns without a type are
read in the type of the constants that they meet, by what is written and never by their rows.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import sqlglot
from sqlglot import exp

from psidp.tables.conditions import compare as comparing
from psidp.tables.conditions.compare import MIRRORED, UnfitError, compare_sides, family
from psidp.tables.conditions.functions import FUNCTIONS, PARTS, call, choose, like
from psidp.tables.conditions.readings import Reading, kind_in_order, read_kind
from psidp.tables.conditions.text import CONSTANT, FUNCTION, Text, refusal, shorten, too_deep
from psidp.tables.conditions.tree import Column, Joined, Literal, Missing, Not, Read, Value
from psidp.tables.types import Type

__all__ = ["Reader"]

OPERATORS: dict[type[exp.Expression], str] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
PREDICATES = (*OPERATORS, exp.And, exp.Or, exp.Not, exp.In, exp.Between, exp.Like, exp.Is)
ORDERED = ("<", "<=", ">", ">=")
Made = TypeVar("Made")


class _Constant(NamedTuple):
    """A constant as it was written."""

    text: str
    quoted: bool


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the trees of one text.

    Args:
        schema: the columns' types. untyped: columns that are read in the type of what they meet. role: what the text
            is, for refusals. text: as it was written. seen: how untyped columns were read; grows.
    """

    schema: Mapping[str, Type]
    untyped: frozenset[str]
    role: str
    text: str
    seen: dict[Reading, None] = field(default_factory=dict)

    def tree(self, words: Text) -> exp.Expression:
        """The tree that sqlglot makes of the words; refused if they are more or less than one expression."""
        try:
            made = sqlglot.parse_one(f"SELECT {words.marked}")
        except sqlglot.errors.SqlglotError:
            raise refusal(self.role, self.text) from None
        except RecursionError:
            raise too_deep(self.role) from None
        clauses = [name for name, value in made.args.items() if value]
        parts: list[exp.Expression] = made.expressions if isinstance(made, exp.Select) else []
        if clauses != ["expressions"] or len(parts) != 1:
            raise refusal(self.role, self.text)
        return parts[0]

    def truth(self, node: exp.Expression) -> Value:
        """A condition: true, false or NULL for each row."""
        node = _bare(node)
        if isinstance(node, exp.And | exp.Or):
            return Joined("AND" if isinstance(node, exp.And) else "OR", tuple(map(self.truth, _flat(node))))
        if isinstance(node, exp.Not):
            return Not(self.truth(node.this))
        if isinstance(node, tuple(OPERATORS)):
            return self._compared(self._operand(node.this), OPERATORS[type(node)], self._operand(node.expression))
        made: Value | None = None
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
            made = Missing(self._any(self._operand(node.this)))
        elif isinstance(node, exp.In) and node.expressions and self._only(node, "this", "expressions"):
            made = self._listed(self._operand(node.this), [self._operand(option) for option in node.expressions])
        elif isinstance(node, exp.Between) and self._only(node, "this", "low", "high"):
            value, *ends = map(self._operand, (node.this, node.args["low"], node.args["high"]))
            sides = [self._compared(value, sign, end, ends) for sign, end in zip((">=", "<="), ends, strict=True)]
            made = Joined("AND", tuple(sides))
        elif isinstance(node, exp.Like) and self._only(node, "this", "expression"):
            made = self._like(self._operand(node.this), self._operand(node.expression))
        if made is not None:
            return Not(made) if node.args.get("negate") else made  # from sqlglot 30.9 on; before, a Not around it
        if isinstance(node, PREDICATES):  # IN of a query, BETWEEN SYMMETRIC, IS TRUE
            raise refusal(self.role, self.text)
        return self._itself(node)

    def value(self, node: exp.Expression, kind: str | None = None) -> Value:
        """A column or what is made of it; a column without a type is read as `kind`."""
        node = _bare(node)
        if isinstance(node, exp.Column) and len(node.parts) == 1:
            return self._column(node.name, kind)
        if isinstance(node, exp.Anonymous) and node.name.startswith(FUNCTION):
            return self._call(node.name.removeprefix(FUNCTION), node.expressions)
        if isinstance(node, exp.Case) and self._only(node, "ifs", "default"):
            return self._case(node)
        if isinstance(node, PREDICATES):
            return self.truth(node)
        raise refusal(self.role, self.text)

    def _operand(self, node: exp.Expression) -> exp.Expression:
        """One side of a comparison; one that is a comparison itself stands in brackets, or 1 < n < 5 would be one."""
        if isinstance(node, PREDICATES):
            raise refusal(self.role, self.text)
        return _bare(node)

    def _only(self, node: exp.Expression, *names: str) -> bool:
        """Whether a node has no other arguments, such as SYMMETRIC or a subquery."""
        return all(name in (*names, "negate") for name, value in node.args.items() if value)

    def _column(self, name: str, kind: str | None) -> Value:
        if name not in self.schema:
            names = shorten(", ".join(self.schema))
            raise ValueError(
                f"{self.role} must name a column of the table ({names}), got {shorten(name)!r}. Text stands in single "
                "quotes."
            )
        of = self.schema[name]
        if name not in self.untyped and not family(of):
            raise ValueError(
                f"{self.role} must be about columns of numbers, text, dates, instants or truth values, got {name!r} of "
                f"type {of}. Give a view of the table in which it is one of these."
            )
        if name not in self.untyped:
            return Column(name, of)
        if kind is None:
            raise ValueError(
                f"{self.role} must say what {name!r} holds, which has no type of its own: compare it with a value, or "
                f'declare it, types={{{name!r}: "int64"}} or --type {name}:int64.'
            )
        self.seen[name, kind] = None
        return Read(name, kind) if kind != "string" else Column(name, of)

    def _any(self, node: exp.Expression) -> Value:
        """Whatever may be missing: a column of any type, or what is made of one."""
        if isinstance(node, exp.Column) and node.name in self.schema and len(node.parts) == 1:
            return Column(node.name, self.schema[node.name])
        return self.value(node)

    def _compared(
        self, left: exp.Expression, operator: str, right: exp.Expression, ends: Sequence[exp.Expression] = ()
    ) -> Value:
        """A comparison; `ends` are all constants that an untyped column meets in it."""
        if _constant(left) and not _constant(right):
            left, operator, right = right, MIRRORED.get(operator, operator), left
        written = _constant(right)
        if written is None:
            sides = self.value(left), self.value(right)
            reason = f"compare like with like, got {_shown(left)} and {_shown(right)}"
            return self._sure(lambda: compare_sides(sides[0], operator, sides[1]), reason)
        ordered = operator in ORDERED
        met = [constant for end in ends if (constant := _constant(end))] or [written]
        given = self._meeting(left, met, ordered=ordered)
        text = self._written(given, written, self._is_untyped(left))
        reason = f"compare {_shown(left)} with one value of type {given.type}, got {shorten(text)!r}"
        return self._sure(lambda: comparing.compare(given, operator, text), reason)

    def _listed(self, value: exp.Expression, options: Sequence[exp.Expression]) -> Value:
        """IN: constants in one list, other columns one by one."""
        written = [constant for option in options if (constant := _constant(option))]
        parts = [self._compared(value, "=", option) for option in options if not _constant(option)]
        if written:
            given = self._meeting(value, written)
            texts = [self._written(given, constant, self._is_untyped(value)) for constant in written]
            reason = f"list values of type {given.type} for {_shown(value)}, text in quotes"
            parts.append(self._sure(lambda: comparing.among(given, texts), reason))
        return parts[0] if len(parts) == 1 else Joined("OR", tuple(parts))

    def _like(self, value: exp.Expression, pattern: exp.Expression) -> Value:
        written = _constant(pattern)
        if not (written and written.quoted):
            raise ValueError(f"{self.role} must have a fixed pattern in quotes after LIKE, such as name like 'Mc%'.")
        given = self.value(value, "string")
        return self._sure(lambda: like(given, written.text), f"search {_shown(value)} for text")

    def _is_untyped(self, node: exp.Expression) -> bool:
        return isinstance(node, exp.Column) and node.name in self.untyped

    def _meeting(self, node: exp.Expression, met: Sequence[_Constant], *, ordered: bool = False) -> Value:
        """A value that meets these constants: an untyped column is read in their type."""
        if not self._is_untyped(node):
            return self.value(node)
        if ordered:
            kinds = {kind_in_order(self.role, node.name, text, quoted=quoted) for text, quoted in met}
        else:
            kinds = {"string" if quoted else read_kind(text) for text, quoted in met}
        if len(kinds) > 1:
            raise ValueError(
                f"{self.role} must compare {_shown(node)} with values of one kind, got "
                f"{', '.join(shorten(constant.text) for constant in met[:5])}. It has no type: text stands in quotes."
            )
        return self.value(node, kinds.pop())

    def _written(self, given: Value, constant: _Constant, untyped: bool) -> str:
        """The text of a constant; an instant's zone is left behind where an untyped column is read without one."""
        if not constant.quoted and constant.text == "null":
            raise ValueError(f"{self.role} must ask for missing values by IS NULL or IS NOT NULL, got = NULL.")
        if not constant.quoted and constant.text in ("true", "false") and family(given.type) == "text":
            raise ValueError(f"{self.role} must have text in single quotes, got {constant.text}, which is no text.")
        return comparing.in_utc(constant.text) if untyped and given.type.kind == "timestamp" else constant.text

    def _itself(self, node: exp.Expression) -> Value:
        """A column of truth values, or true or false."""
        if isinstance(node, exp.Boolean):
            return Literal(node.this)
        given = self.value(node, "string")
        if given.type.kind != "boolean":
            raise ValueError(
                f'{self.role} must be column, comparison and value, such as "age >= 18", got {_shown(node)} alone, '
                f"which is of type {given.type}."
            )
        return given

    def _call(self, name: str, arguments: Sequence[exp.Expression]) -> Value:
        if name not in FUNCTIONS:
            raise ValueError(
                f"{self.role} must use functions that fail on no row ({', '.join(FUNCTIONS)}), got {shorten(name)!r}. "
                "Have others as columns of the table."
            )
        first, *rest = map(self._operand, arguments) if arguments else [exp.Null()]
        written = [constant for node in rest if (constant := _constant(node))]
        reason = f"call {name} of what has it, as {FUNCTIONS[name]}, got {_shown(first)}"
        if _constant(first) or len(written) < len(rest):
            raise ValueError(f"{self.role} must {reason}.")
        if name == "cut" and written:
            given = self._meeting(first, written, ordered=True)
        else:
            kind = "timestamp" if name in PARTS or name == "date" else "float64" if name == "isnan" else "string"
            given = self.value(first, kind)
        return self._sure(lambda: call(name, given, [constant.text for constant in written]), reason)

    def _case(self, node: exp.Case) -> Value:
        branches = [(self.truth(part.this), self._result(part.args["true"])) for part in node.args["ifs"]]
        default = node.args.get("default")
        otherwise = None if default is None else self._result(default)
        reason = "give constants of one kind (text in quotes, numbers, true and false) after THEN and ELSE"
        return self._sure(lambda: choose(branches, otherwise), reason)

    def _result(self, node: exp.Expression) -> Any:
        """The constant behind THEN or ELSE; None for NULL."""
        written = _constant(_bare(node))
        if written and written.quoted:
            return written.text
        if written and written.text in ("null", "true", "false"):
            return {"null": None, "true": True, "false": False}[written.text]
        with suppress(ValueError):
            if written:
                return int(written.text) if written.text.lstrip("+-").isdigit() else float(written.text)
        raise ValueError(
            f"{self.role} must give constants after THEN and ELSE, text in single quotes, got {_shown(node)}."
        )

    def _sure(self, make: Callable[[], Made], reason: str) -> Made:
        """What is made, or the refusal with its reason."""
        try:
            return make()
        except UnfitError as error:
            said = str(error)
        raise ValueError(f"{self.role} must {said or reason + '.'}")


def _bare(node: exp.Expression) -> exp.Expression:
    """A node without the brackets around it."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _flat(node: exp.And | exp.Or) -> list[exp.Expression]:
    """The parts of a AND b AND c, which sqlglot has as (a AND b) AND c: a thousand parts lie a thousand deep there."""
    parts: list[exp.Expression] = []
    rest: exp.Expression = node
    while type(rest) is type(node):
        parts.append(rest.expression)
        rest = rest.this
    return [rest, *reversed(parts)]


def _constant(node: exp.Expression) -> _Constant | None:
    """A constant as it was written, if it is one."""
    if isinstance(node, exp.Literal) and node.is_string:
        return _Constant(node.this, True)
    if isinstance(node, exp.Anonymous) and node.name == CONSTANT:
        return _Constant(node.expressions[0].this, False)
    if isinstance(node, exp.Boolean | exp.Null):
        return _Constant("null" if isinstance(node, exp.Null) else str(node.this).lower(), False)
    return None


def _shown(node: exp.Expression) -> str:
    """A part of a condition for a refusal."""
    node = _bare(node)
    constant = _constant(node)
    if constant or isinstance(node, exp.Column):
        return repr(shorten(constant.text if constant else node.name))
    if isinstance(node, exp.Anonymous):
        return f"{node.name.removeprefix(FUNCTION)}(...)"
    return "CASE" if isinstance(node, exp.Case) else "a condition"
