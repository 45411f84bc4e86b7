"""Stored questions and answers: what was written as plain values, read again."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from psidp.forms import check_form
from psidp.tables.answer import Answer, unpacked
from psidp.tables.ask import Ask, Bins, Cap
from psidp.tables.choices.private_groups import PrivateGroups
from psidp.tables.cube_answer import Cube
from psidp.tables.question import FORM, Question
from psidp.tables.strategies.residual import Column

__all__ = ["read_answer", "read_question"]


def read_answer(values: Mapping[str, Any]) -> Answer | Cube:
    """The answer of a table or a cube that to_dict wrote, version 0.2's included."""
    return Cube.from_dict(values) if values.get("kind") == "cube" else Answer.from_dict(dict(values))


def read_question(curator: Any, values: Mapping[str, Any]) -> Question:
    """The question that `Question.to_dict` wrote, about this curator's table; checked as if it were asked anew."""
    if not (isinstance(values, Mapping) and values.get("form")):
        raise ValueError("a question must state its form, such as psidp-question-1: it is what to_dict of one wrote.")
    check_form(values["form"], FORM, "the question")
    kind = values["layout"]["kind"]
    if kind not in _LAYOUTS:
        raise ValueError(f"the layout of a question must be one of {', '.join(_LAYOUTS)}, got {kind!r}.")
    derived = values["derived"]
    asks = [Ask.from_dict(ask) for ask in values["asks"]]
    asks = [replace(ask, measure=ask.measure.renamed(derived)) for ask in asks]
    return _LAYOUTS[kind](curator, asks, values)


def _table(curator: Any, asks: list[Ask], values: Mapping[str, Any]) -> Question:
    share = values["clipping_share"]
    question: Question = curator.ask(*asks, **_groups(values), **_shared(values), clipping_share=share)
    return question


def _cube(curator: Any, asks: list[Ask], values: Mapping[str, Any]) -> Question:
    layout, derived = values["layout"], values["derived"]
    columns = [Column.from_dict(column) for column in layout["columns"]]
    names = [derived.get(column.name, column.name) for column in columns]
    question: Question = curator.cube(
        {name: _values(column) for name, column in zip(names, columns, strict=True)},
        [tuple(columns[i].name for i in table) for table in layout["tables"]],
        measures=[replace(ask, contribution=None) for ask in asks],
        contribution=asks[0].contribution,
        balance=layout["balance"],
        bound=layout["bound"],
        clipping_share=values["clipping_share"],
        **_shared(values),
    )
    return question


def _stream(curator: Any, asks: list[Ask], values: Mapping[str, Any]) -> Question:
    layout = values["layout"]
    each = layout.get("each")
    cap = Cap(layout.get("at_most"), layout.get("apart", 1), tuple(each) if isinstance(each, list) else each)
    question: Question = curator.stream(
        values["name"], *asks, every=layout["every"], since=layout["since"], periods=layout["periods"],
        arrived=layout["arrived"], cap=cap, windows=layout["windows"], wait=timedelta(seconds=values["wait"]),
        **_groups(values), **_shared(values),
    )  # fmt: skip
    return question


def _values(column: Column) -> Any:
    """A column of a cube as it is asked for."""
    return Bins(column.edges, column.ordered) if column.edges else list(column.keys)


def _shared(values: Mapping[str, Any]) -> dict[str, Any]:
    """What all questions have."""
    return {"where": values["where"], "confidence": values["confidence"]}


def _groups(values: Mapping[str, Any]) -> dict[str, Any]:
    """The groups of a table or a stream."""
    layout, derived = values["layout"], values["derived"]
    if not layout["by"]:
        return {}
    groups: Any = layout["groups"]
    private = isinstance(groups, Mapping)
    groups = PrivateGroups(**groups) if private else [tuple(map(unpacked, key)) for key in groups]
    return {"by": [derived.get(name, name) for name in layout["by"]], "groups": groups}


_LAYOUTS: dict[str, Callable[[Any, list[Ask], Mapping[str, Any]], Question]] = {
    "table": _table,
    "cube": _cube,
    "stream": _stream,
}
