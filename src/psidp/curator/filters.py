"""Where: which rows a question is about. A condition looks at one row at a time, or units could sway others' rows.

And it cannot fail on any row: whether 1/(patient_id - 7) > 0 fails says, at no cost, whether patient 7 is there. So it
is made anew, of types and operations in a list, each of which gives a value for every row on its engine.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from psidp.curator.column_types import read_for
from psidp.curator.comparison import Side, UnfitError, among, compare, compare_sides, constant, side
from psidp.curator.engine import Engine
from psidp.curator.native_types import Native
from psidp.curator.row_sql import ibis_library

__all__ = ["condition", "in_words"]

OPERATOR = re.compile(r">=|<=|!=|<>|==|=|>|<")
SAME = {"==": "=", "<>": "!="}
COMPARISONS = {
    "Equals": "=",
    "NotEquals": "!=",
    "Greater": ">",
    "GreaterEqual": ">=",
    "Less": "<",
    "LessEqual": "<=",
}
MIRRORED = {">": "<", ">=": "<=", "<": ">", "<=": ">="}
CHANGED = {"Lowercase": "lower", "Uppercase": "upper", "Strip": "strip", "LStrip": "lstrip", "RStrip": "rstrip"}
SOUGHT = {"StringContains": "contains", "StartsWith": "startswith", "EndsWith": "endswith"}
SPECIAL = {"IsNan": "isnan", "IsInf": "isinf"}
JOINED = {"And": lambda a, b: a & b, "Or": lambda a, b: a | b, "Xor": lambda a, b: a ^ b}
ENGINES = ("duckdb", "postgres", "pyspark")

LONGEST = 200
"""Letters of a condition in words."""

PLAIN = re.compile(r"[\w.+:/-]+")
"""Text that needs no quotes."""

LONGEST_TEXT = 10_000
"""Letters of a condition that is given as text."""


def condition(table: Any, where: Any, untyped: frozenset[str] = frozenset()) -> Any:
    """`where` as a boolean column of the table; None where it is an empty list. Untyped columns are read in the type of
    the value that a text compares them with.

    Args:
        where: text such as "age >= 18" (column, comparison, value); an Ibis expression such as ibis._.age >= 18; a
            function from the table to one; or a list of these, all of which must hold.

    Refused by schema and form alone: what is not true or false for each row, what looks beyond a row (aggregates,
    windows, subqueries, other tables, random numbers), and what is not in the list of docs/curator.md, since it could
    fail on some row.
    """
    if isinstance(where, list | tuple):
        parts = [rule for part in where if (rule := condition(table, part, untyped)) is not None]
        return reduce(lambda a, b: a & b, parts) if parts else None
    if table.get_backend().name not in ENGINES:
        raise ValueError("where must be asked of DuckDB, PostgreSQL or Spark. Give a view of the rows instead.")
    if isinstance(where, str):
        return _parsed(table, where, untyped)
    bound = _bound(table, where)
    return _Rules(table, _natives(table, bound)).truth(bound.op())


def in_words(table: Any, where: Any) -> str:
    """The condition as it was written, or the SQL of an expression; its beginning where it is long."""
    if isinstance(where, list | tuple):
        return " and ".join(words for part in where if (words := in_words(table, part)))
    if isinstance(where, str):
        return where.strip()
    sql = str(table.get_backend().compile(table.select(said=_bound(table, where)))).removeprefix("SELECT ")
    said = re.sub(r"\s+", " ", re.sub(r"[\"`]t[0-9]+[\"`]\.", "", sql.rpartition(" FROM ")[0].rpartition(" AS ")[0]))
    return said if len(said) <= LONGEST else f"{said[:LONGEST]}..."


def _parsed(table: Any, text: str, untyped: frozenset[str]) -> Any:
    """column, comparison, value."""
    if not len(text) <= LONGEST_TEXT:
        raise ValueError(f"where must have at most {LONGEST_TEXT:,} letters, got {len(text):,}.")
    name, operator, word = _split(text.strip(), table.columns)
    if not (name and operator and word):
        raise ValueError(f'where must be column, comparison and value, such as "age >= 18", got {_short(text)!r}.')
    if name not in table.columns:
        raise ValueError(f"where must name a column of the table ({', '.join(table.columns)}), got {_short(name)!r}.")
    given = _read(table[name], word) if name in untyped else _named(table, name)
    word = _unquoted(given, word, ordered=name in untyped and operator in ("<", "<=", ">", ">="))
    try:
        return compare(given, SAME.get(operator, operator), word)
    except UnfitError:
        raise ValueError(
            f"where must compare {name!r} with one value of type {given.kind}, got {_short(word)!r}. "
            "Give several conditions as a list; --where may be repeated."
        ) from None


def _unquoted(given: Side, word: str, ordered: bool) -> str:
    """The value itself. Text stands in quotes, or is one plain word, unless it is put in `ordered` columns without a
    type: what follows a value, such as "and month = 1", would else be taken for part of it."""
    quote = word[0] if word[0] in "\"'" else ""
    inner = word[1:-1] if quote and len(word) > 1 and word[-1] == quote else word
    if quote and inner != word and quote not in inner.replace(2 * quote, ""):
        return inner.replace(2 * quote, quote)
    plain = PLAIN.fullmatch(word) is not None and not ordered
    if quote or (given.family == "string" and not plain):
        raise ValueError(
            f"where must compare with one value, and text that is not one plain word must stand in quotes, such as "
            f"\"city = 'New York'\", got {_short(word)!r}. Give several conditions as a list; --where may be repeated. "
            "Two columns are compared by an Ibis expression."
        )
    return word


def _read(column: Any, word: str) -> Side:
    """An untyped column in the type of the word that it is compared with."""
    value = read_for(column, word)
    kind = value.type()
    return Side(value, kind.copy(scale=6) if kind.is_timestamp() else kind)


def _named(table: Any, name: str) -> Side:
    """A column that can be compared."""
    natives = Engine(table).native_types(table, [name])
    try:
        return side(table[name], natives[name])
    except UnfitError:
        raise ValueError(
            "where must be about columns of numbers, text, dates, instants or truth values, "
            f"got {name!r} of type {table[name].type()}. Give a view of the table in which it is one of these."
        ) from None


def _split(text: str, columns: Any) -> tuple[str, str, str]:
    """The three parts of a text; a name that holds a comparison stands in double quotes."""
    closing = text.find('"', 1) if text.startswith('"') else -1
    quoted = text[1:closing]
    start = closing + 1 if closing > 0 and quoted in columns else 1
    found = OPERATOR.search(text, start)
    if found is None:
        return "", "", ""
    name = quoted if start > 1 else text[: found.start()].strip()
    name = name[1:-1] if start == 1 and len(name) > 1 and name[0] == name[-1] == '"' else name
    return name, found[0], text[found.end() :].strip()


def _short(text: str) -> str:
    """The beginning of a text."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _bound(table: Any, where: Any) -> Any:
    """An expression of this very table that is true or false for each of its rows, by what one row says by itself."""
    ibis = ibis_library()
    import ibis.expr.operations as ops  # type: ignore[import-untyped,unused-ignore]

    try:
        bound = table.bind(where)[0]
    except Exception as error:
        raise ValueError(
            f"where must be text or an Ibis expression of the table's columns, got one that Ibis refuses "
            f"({type(error).__name__})."
        ) from None
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
    return bound


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

    def truth(self, node: Any) -> Any:
        """A condition that is in the list, as a boolean column."""
        return self.side(node).value

    def side(self, node: Any) -> Side:
        """A column or what is made of it; refused if it is not in the list."""
        try:
            return self._side(node, type(node).__name__)
        except UnfitError:
            raise ValueError(
                "where must be made of comparisons of like with like, isin, isnull, contains, and, or, not: "
                f"{type(node).__name__} could fail on some row{_kinds(node)}, and the failure would speak of that row. "
                "Make it a column of the table first."
            ) from None

    def _side(self, node: Any, kind: str) -> Side:
        if kind == "Alias":
            return self.side(node.arg)
        if kind == "Field":
            return side(self._column(node), self.natives.get(node.name))
        if kind == "Coalesce":
            return self._first(node.arg)
        if kind in CHANGED or kind == "StringLength":
            return self._text(node, kind)
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
            return given.isnull() if kind == "IsNull" else given.notnull()
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
            return given.isnull() if right.value is None else given.notnull() & self._compared(left, "=", right)
        other = self.side(right).value
        both = given.notnull() & other.notnull() & self._compared(left, "=", right)
        return both | (given.isnull() & other.isnull())

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

    def _looked_into(self, node: Any, kind: str) -> Any:
        """Whether a text holds another, or a fraction is none."""
        if kind not in SOUGHT and kind not in SPECIAL:
            raise UnfitError
        given = self.side(node.__args__[0])
        if kind in SPECIAL and given.kind.is_floating():
            return getattr(given.value, SPECIAL[kind])()
        sought = node.__args__[1] if kind in SOUGHT else None
        if sought is None or given.family != "string" or not given.searchable or type(sought).__name__ != "Literal":
            raise UnfitError
        return getattr(given.value, SOUGHT[kind])(constant(given, sought.value))


def _kinds(node: Any) -> str:
    """The types that an operation is about."""
    kinds = [str(part.dtype) for part in getattr(node, "__args__", ()) if hasattr(part, "dtype")]
    return f" of {' and '.join(kinds)}" if kinds else ""
