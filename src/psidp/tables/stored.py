"""Stored questions and answers: what was written as plain values, read again."""

from collections.abc import Mapping
from typing import Any

from psidp.forms import check_form
from psidp.tables.answer import Answer, unpacked
from psidp.tables.ask import Ask
from psidp.tables.choices.groups import PrivateGroups
from psidp.tables.question import FORM, Question
from psidp.tables.readings import Cube

__all__ = ["read_answer", "read_question"]


def read_answer(values: Mapping[str, Any]) -> Answer | Cube:
    """The answer of a table or a cube that to_dict wrote, version 0.2's included."""
    return Cube.from_dict(values) if values.get("kind") == "cube" else Answer.from_dict(dict(values))


def read_question(curator: Any, values: Mapping[str, Any]) -> Question:
    """The question that `Question.to_dict` wrote, about this curator's table; checked as if it were asked anew."""
    if not values.get("form"):
        raise ValueError("a question must state its form, such as psidp-question-1: it is what to_dict of one wrote.")
    check_form(values["form"], FORM, "the question")
    asks = [Ask.from_dict(ask) for ask in values["asks"]]
    shared = {name: values[name] for name in ("where", "confidence", "clipping_share")}
    return _LAYOUTS[values["layout"]["kind"]](curator, asks, values["layout"], shared)


def _table(curator: Any, asks: list[Ask], layout: Mapping[str, Any], shared: dict[str, Any]) -> Question:
    groups: Any = None
    if layout["by"]:
        groups = layout["groups"]
        private = isinstance(groups, Mapping)
        groups = PrivateGroups(**groups) if private else [tuple(map(unpacked, key)) for key in groups]
    question: Question = curator.ask(*asks, by=layout["by"], groups=groups, **shared)
    return question


def _cube(curator: Any, asks: list[Ask], layout: Mapping[str, Any], shared: dict[str, Any]) -> Question:
    question: Question = curator.cube_from(layout, asks, shared)
    return question


_LAYOUTS = {"table": _table, "cube": _cube}
