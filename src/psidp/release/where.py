"""Where: which rows a question is about. A condition looks at one row at a time, or units could sway others' rows."""

import re
from typing import Any

from psidp.release.cell import ibis_library

__all__ = ["condition"]

COMPARISON = re.compile(r"^\s*(.+?)\s*(>=|<=|!=|==|=|>|<)\s*(.+?)\s*$", re.DOTALL)
OPERATORS = {
    ">=": lambda a, b: a >= b,
    "<=": lambda a, b: a <= b,
    "!=": lambda a, b: a != b,
    "==": lambda a, b: a == b,
    "=": lambda a, b: a == b,
    ">": lambda a, b: a > b,
    "<": lambda a, b: a < b,
}


def condition(table: Any, where: Any) -> Any:
    """`where` as a boolean column of the table.

    Args:
        where: text such as "age >= 18" (column, comparison, value); an Ibis expression such as ibis._.age >= 18; a
            function from the table to one; or a list of these, all of which must hold.

    Refused by its form alone: what is not true or false for each row, and what looks beyond a row (aggregates, windows,
    subqueries, other tables, random numbers).
    """
    if isinstance(where, list | tuple):
        parts = [condition(table, part) for part in where]
        whole = parts[0]
        for part in parts[1:]:
            whole = whole & part
        return whole
    if isinstance(where, str):
        return _parsed(table, where)
    bound = where(table) if callable(where) and not hasattr(where, "resolve") else table.bind(where)[0]
    _refuse_beyond_a_row(table, bound)
    return bound


def _parsed(table: Any, text: str) -> Any:
    """column, comparison, value."""
    match = COMPARISON.match(text)
    if match is None:
        raise ValueError(f'where must be column, comparison and value, such as "age >= 18", got {text!r}.')
    name, operator, word = match.groups()
    name = name[1:-1] if len(name) > 1 and name[0] == name[-1] == '"' else name
    if name not in table.columns:
        raise ValueError(f"where must name a column of the table ({', '.join(table.columns)}), got {name!r}.")
    return OPERATORS[operator](table[name], _value(word, name, table[name].type()))


def _value(word: str, name: str, kind: Any) -> Any:
    """The value in the column's type."""
    ibis = ibis_library()
    word = word[1:-1] if len(word) > 1 and word[0] == word[-1] and word[0] in "\"'" else word
    if kind.is_string():
        return ibis.literal(word)
    if kind.is_boolean() and word.lower() in ("true", "false"):
        return ibis.literal(word.lower() == "true")
    try:
        if kind.is_numeric():
            return ibis.literal(repr(float(word))).cast("float64") if kind.is_floating() else ibis.literal(int(word))
        if kind.is_temporal():
            return ibis.literal(word).cast(kind)
    except ValueError:
        pass
    raise ValueError(f"where must compare {name!r} with a value of type {kind}, got {word!r}.")


def _refuse_beyond_a_row(table: Any, bound: Any) -> None:
    """Only what one row of this very table says by itself."""
    ibis = ibis_library()
    import ibis.expr.operations as ops  # type: ignore[import-untyped,unused-ignore]

    if not (isinstance(bound, ibis.Value) and bound.type().is_boolean()):
        raise TypeError("where must be true or false for each row, such as ibis._.age >= 18.")
    if isinstance(bound, ibis.Scalar):
        raise TypeError("where must look at a column of the table.")
    relations = set(bound.op().find(ops.Relation))
    beyond = bound.op().find((ops.Analytic, ops.Reduction, ops.Subquery, ops.WindowFunction, ops.Impure))
    if beyond or not all(relation in set(table.op().find(ops.Relation)) for relation in relations):
        raise ValueError(
            "where must look at one row at a time: no aggregates, windows, subqueries, other tables or random numbers. "
            "They would let one unit sway the rows of others."
        )
