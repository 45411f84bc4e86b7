"""Where: which rows a question is about. A condition looks at one row at a time, or units could sway others' rows.

And it cannot fail on any row: whether 1/(patient_id - 7) > 0 fails says, at no cost, whether patient 7 is there. So it
is made anew, of types and operations in a list, each of which gives a value for every row on its engine.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from psidp.curator.comparison import MIRRORED, Side, UnfitError, among, compare, compare_sides, constant, missing, side
from psidp.curator.condition_text import Joined, Node, parse, shorten
from psidp.curator.derived import chosen, day_of, like, part, prefix
from psidp.curator.engine import Engine
from psidp.curator.native_types import Native
from psidp.curator.readings import Reading, kind_in_order
from psidp.curator.row_sql import ibis_library
from psidp.curator.text_rules import TextRules, joined, words_in

__all__ = ["condition", "derived_side", "in_words", "text_rules"]

COMPARISONS = {
    "Equals": "=",
    "NotEquals": "!=",
    "Greater": ">",
    "GreaterEqual": ">=",
    "Less": "<",
    "LessEqual": "<=",
}
CHANGED = {"Lowercase": "lower", "Uppercase": "upper", "Strip": "strip", "LStrip": "lstrip", "RStrip": "rstrip"}
SOUGHT = {"StringContains": "contains", "StartsWith": "startswith", "EndsWith": "endswith"}
DERIVED = {"ExtractYear": "year", "ExtractQuarter": "quarter", "ExtractMonth": "month", "ExtractWeekOfYear": "week",
           "ExtractDay": "day", "ExtractHour": "hour", "ExtractMinute": "minute"}  # fmt: skip
CASES = ("SearchedCase", "SimpleCase", "IfElse")
SPECIAL = {"IsNan": "isnan", "IsInf": "isinf"}
JOINED = {"And": lambda a, b: a & b, "Or": lambda a, b: a | b, "Xor": lambda a, b: (a | b) & ~(a & b)}
ENGINES = ("duckdb", "postgres", "pyspark")


def condition(
    table: Any, where: Any, untyped: frozenset[str] = frozenset(), seen: dict[Reading, None] | None = None
) -> Any:
    """`where` as a boolean column of the table; None where it is an empty list. Untyped columns are read in the type of
    the value that a text compares them with; `seen` takes down how.

    Args:
        where: text such as "age >= 18 and ward in ('A', 'B')"; an Ibis expression such as ibis._.age >= 18; a function
            from the table to one; or a list of these, all of which must hold.

    Refused by schema and form alone: what is not true or false for each row, what looks beyond a row (aggregates,
    windows, subqueries, other tables, random numbers), and what is not in the list of docs/curator.md, since it could
    fail on some row.
    """
    if isinstance(where, list | tuple):
        parts = [rule for part in where if (rule := condition(table, part, untyped, seen)) is not None]
        return joined("and", parts) if parts else None
    if table.get_backend().name not in ENGINES:
        raise ValueError("where must be asked of DuckDB, PostgreSQL or Spark. Give a view of the rows instead.")
    if isinstance(where, str):
        return _parsed(table, where, untyped, seen)
    bound = _bound(table, where)
    natives = _natives(table, bound)
    if seen is not None:
        seen |= {(name, "string"): None for name in natives if name in untyped}
    return _Rules(table, natives, untyped=untyped).truth(bound.op())


def in_words(table: Any, where: Any) -> str:
    """The condition as it was written, or the SQL of an expression; its beginning where it is long."""
    return _in_words(table, where)[0]


def _in_words(table: Any, where: Any) -> tuple[str, bool]:
    """One condition in words, and whether it is an alternative, which "and" beside it would tear apart."""
    if isinstance(where, list | tuple):
        pairs = [pair for part in where if (pair := _in_words(table, part))[0]]
        if len(pairs) == 1:
            return pairs[0]
        return " and ".join(f"({words})" if either else words for words, either in pairs), False
    if isinstance(where, str):
        node, _ = parse(where, table.columns, "where")
        return where.strip(), isinstance(node, Joined) and node.word == "or"
    from sqlglot import exp

    backend = table.get_backend()
    rule = backend.compiler.to_sqlglot(table.select(said=_bound(table, where))).expressions[0].this
    for column in rule.find_all(exp.Column):
        column.set("table", None)
    return shorten(rule.sql(dialect=backend.dialect)), isinstance(rule, exp.Or | exp.Xor)


def _parsed(table: Any, text: str, untyped: frozenset[str], seen: dict[Reading, None] | None) -> Any:
    """A condition that was written as text."""
    node, name = parse(text, table.columns, "where")
    if name:
        raise ValueError(f"where must be a condition, and has no name of its own, got AS {shorten(name)}.")
    return text_rules(table, node, untyped, "where", seen).truth(node)


def text_rules(
    table: Any, node: Node, untyped: frozenset[str], role: str, seen: dict[Reading, None] | None = None
) -> TextRules:
    """The rules for a text, with the native types of the columns that it names; reads no row."""
    names = dict.fromkeys(word.text for word in words_in(node) if word.quote != "'" and word.text in table.columns)
    typed = [name for name in names if name not in untyped]
    return TextRules(table, Engine(table).native_types(table, typed), untyped, role, {} if seen is None else seen)


def _bound(table: Any, where: Any) -> Any:
    """An expression of this very table that is true or false for each of its rows, by what one row says by itself."""
    bound = _row_by_row(table, where, "where")
    if not bound.type().is_boolean():
        raise TypeError("where must be true or false for each row, such as ibis._.age >= 18.")
    return bound


def _row_by_row(table: Any, expression: Any, role: str) -> Any:
    """An expression of this very table's columns that looks at one row at a time."""
    ibis = ibis_library()
    import ibis.expr.operations as ops  # type: ignore[import-untyped,unused-ignore]

    try:
        bound = table.bind(expression)[0]
    except Exception as error:
        raise ValueError(
            f"{role} must be text or an Ibis expression of the table's columns, got one that Ibis refuses "
            f"({type(error).__name__})."
        ) from None
    if not isinstance(bound, ibis.Value):
        raise TypeError(f"{role} must be an Ibis expression that is true or false for each row, or has a value in it.")
    if isinstance(bound, ibis.Scalar):
        raise TypeError(f"{role} must look at a column of the table.")
    relations = set(bound.op().find(ops.Relation))
    far = (ops.Analytic, ops.Reduction, ops.Subquery, ops.WindowFunction, ops.Impure)
    beyond = bound.op().find(far, filter=ops.Value)  # what made the table's own columns is not asked
    if beyond or not all(relation in set(table.op().find(ops.Relation)) for relation in relations):
        raise ValueError(
            f"{role} must look at one row at a time: no aggregates, windows, subqueries, other tables or random "
            "numbers. They would let one unit sway the rows of others."
        )
    return bound


def derived_side(table: Any, expression: Any, role: str) -> tuple[str, Side]:
    """An Ibis expression of a row's own values, made of the list, and the name it has."""
    bound = _row_by_row(table, expression, role)
    return bound.get_name(), _Rules(table, _natives(table, bound), role).side(bound.op())


def _natives(table: Any, bound: Any) -> Mapping[str, Native]:
    """The native types of the columns that an expression looks at."""
    import ibis.expr.operations as ops

    names = dict.fromkeys(node.name for node in bound.op().find(ops.Field, filter=ops.Value))
    return Engine(table).native_types(table, [name for name in names if name in table.columns])


@dataclass(frozen=True, slots=True)
class _Rules:
    """The list: what an expression may be made of, each operation made anew from sides that its engine is sure of."""

    table: Any
    natives: Mapping[str, Native]
    role: str = "where"
    untyped: frozenset[str] = frozenset()

    def truth(self, node: Any) -> Any:
        """A condition that is in the list, as a boolean column."""
        return self.side(node).value

    def side(self, node: Any) -> Side:
        """A column or what is made of it; refused if it is not in the list."""
        try:
            return self._side(node, type(node).__name__)
        except UnfitError as unfit:
            reason = str(unfit) or (
                "be made of comparisons of like with like, isin, isnull, contains, like, and, or, not, parts of dates "
                f"and the like: {type(node).__name__} could fail on some row{_kinds(node)}, and the failure would "
                "speak of that row. Make it a column of the table first."
            )
        raise ValueError(f"{self.role} must {reason}")

    def _side(self, node: Any, kind: str) -> Side:
        if kind == "Alias":
            return self.side(node.arg)
        if kind == "Field":
            return side(self._column(node), self.natives.get(node.name))
        if kind == "Coalesce":
            return self._first(node.arg)
        if kind in CHANGED or kind == "StringLength":
            return self._text(node, kind)
        if kind in DERIVED or kind in ("DayOfWeekIndex", "Date", "Substring", "StringSlice"):
            return self._made(node, kind)
        if kind in CASES:
            return self._case(node, kind)
        return Side(self._truth(node, kind), ibis_library().dtype("boolean"))

    def _truth(self, node: Any, kind: str) -> Any:
        if kind in COMPARISONS:
            return self._compared(node.left, COMPARISONS[kind], node.right)
        if kind in JOINED:
            return JOINED[kind](self._part(node.left), self._part(node.right))
        if kind == "Not":
            return ~self._part(node.arg)
        if kind in ("IsNull", "NotNull"):
            given = self._column(node.arg) if type(node.arg).__name__ == "Field" else self.side(node.arg).value
            return missing(given) if kind == "IsNull" else ~missing(given)
        if kind == "Between":
            low, high = (">=", node.lower_bound), ("<=", node.upper_bound)
            return self._compared(node.arg, *low) & self._compared(node.arg, *high)
        if kind == "InValues":
            return self._among(self.side(node.value), node.options)
        if kind == "IdenticalTo":
            return self._identical(node.left, node.right)
        return self._looked_into(node, kind)

    def _column(self, node: Any) -> Any:
        """A column of this very table."""
        if node.rel != self.table.op():
            raise UnfitError
        return self.table[node.name]

    def _part(self, node: Any) -> Any:
        """One part of and, or, not: a condition, or true or false."""
        if type(node).__name__ == "Literal":
            return ibis_library().literal(node.value, "boolean")
        part = self.side(node)
        if part.family != "boolean":
            raise UnfitError
        return part.value

    def _compared(self, left: Any, operator: str, right: Any) -> Any:
        if type(left).__name__ == "Literal":
            left, operator, right = right, MIRRORED.get(operator, operator), left
        if type(right).__name__ == "Literal":
            ordered = operator not in ("=", "!=") and type(left).__name__ == "Field" and left.name in self.untyped
            if ordered and isinstance(right.value, str):
                kind_in_order(self.role, left.name, right.value, quoted=True)
            return compare(self.side(left), operator, right.value)
        return compare_sides(self.side(left), operator, self.side(right))

    def _among(self, given: Side, options: Any) -> Any:
        """Constants in one list, other columns one by one."""
        written = [option.value for option in options if type(option).__name__ == "Literal"]
        found = among(given, written) if written or not options else given.never
        for option in options:
            if type(option).__name__ != "Literal":
                found = found | compare_sides(given, "=", self.side(option))
        return found

    def _identical(self, left: Any, right: Any) -> Any:
        """Equal, or both NULL."""
        if type(left).__name__ == "Literal":
            left, right = right, left
        given = self.side(left).value
        if type(right).__name__ == "Literal":
            return missing(given) if right.value is None else ~missing(given) & self._compared(left, "=", right)
        other = self.side(right).value
        both = ~missing(given) & ~missing(other) & self._compared(left, "=", right)
        return both | (missing(given) & missing(other))

    def _first(self, nodes: Any) -> Side:
        """The first of several that is not NULL, all of one type."""
        sides = [self.side(node) for node in nodes if type(node).__name__ != "Literal"]
        kinds = {(given.kind, given.collation, given.searchable) for given in sides}
        if len(kinds) != 1 or sides[0].family not in ("boolean", "string"):
            raise UnfitError
        literal = ibis_library().literal
        values = [
            literal(constant(sides[0], node.value)) if type(node).__name__ == "Literal" else self.side(node).value
            for node in nodes
        ]
        kind, collation, searchable = kinds.pop()
        return Side(ibis_library().coalesce(*values), kind, collation, searchable)

    def _text(self, node: Any, kind: str) -> Side:
        given = self.side(node.arg)
        if given.family != "string":
            raise UnfitError
        if kind == "StringLength":
            return Side(given.value.length(), ibis_library().dtype("int32"))
        return Side(getattr(given.value, CHANGED[kind])(), given.kind, given.collation, given.searchable)

    def _made(self, node: Any, kind: str) -> Side:
        """A part of a date, its day, or the first letters of a text."""
        given = self.side(node.arg)
        if kind in DERIVED:
            return part(given, DERIVED[kind])
        if kind == "Date":
            return day_of(given)
        if kind == "DayOfWeekIndex":  # Ibis counts from 0
            week = part(given, "isoweekday")
            return Side(week.value - ibis_library().literal(1, "int64"), week.kind, values=tuple(range(7)))
        start, length = node.start, node.length if kind == "Substring" else node.end
        if start is not None and not (type(start).__name__ == "Literal" and start.value == 0):
            raise UnfitError
        if type(length).__name__ != "Literal":
            raise UnfitError
        return prefix(given, length.value)

    def _case(self, node: Any, kind: str) -> Side:
        """Constants by conditions."""
        if kind == "IfElse":
            pairs, otherwise = [(node.bool_expr, node.true_expr)], node.false_null_expr
        else:
            pairs, otherwise = list(zip(node.cases, node.results, strict=True)), node.default
        results = [_written(result) for result in (*(result for _, result in pairs), otherwise)]
        if kind == "SimpleCase":
            rules = [self._compared(node.base, "=", case) for case, _ in pairs]
        else:
            rules = [self._part(case) for case, _ in pairs]
        return chosen(list(zip(rules, results[:-1], strict=True)), results[-1])

    def _looked_into(self, node: Any, kind: str) -> Any:
        """Whether a text holds another, or a fraction is none."""
        if kind == "StringSQLLike":
            if type(node.pattern).__name__ != "Literal" or node.escape is not None:
                raise UnfitError
            return like(self.side(node.arg), node.pattern.value)
        if kind not in SOUGHT and kind not in SPECIAL:
            raise UnfitError
        given = self.side(node.__args__[0])
        if kind in SPECIAL and given.kind.is_floating():
            return getattr(given.value, SPECIAL[kind])()
        sought = node.__args__[1] if kind in SOUGHT else None
        if sought is None or given.family != "string" or not given.searchable or type(sought).__name__ != "Literal":
            raise UnfitError
        return getattr(given.value, SOUGHT[kind])(constant(given, sought.value))


def _written(node: Any) -> Any:
    """The value of a constant."""
    if type(node).__name__ != "Literal":
        raise UnfitError
    return node.value


def _kinds(node: Any) -> str:
    """The types that an operation is about."""
    kinds = [str(part.dtype) for part in getattr(node, "__args__", ()) if hasattr(part, "dtype")]
    return f" of {' and '.join(kinds)}" if kinds else ""
