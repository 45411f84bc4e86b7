"""The published JSON Schema of the card, and a check against it that needs no other library."""

import json
from functools import cache
from importlib.resources import files
from operator import ge, gt, le, lt
from typing import Any

__all__ = ["schema", "validate"]


@cache
def schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) that every card obeys."""
    text = files("psidp.present.card").joinpath("card.schema.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def validate(values: Any) -> None:
    """Refuse what the schema does not allow, naming the place; knows the words that our schema uses.

    Examples:
        >>> validate({"card": "psidp.card/1"})
        Traceback (most recent call last):
        ValueError: card has no title, which the schema requires.
    """
    _check(values, schema(), "card")


KINDS = {
    "object": dict,
    "array": list,
    "string": str,
    "null": type(None),
    "integer": int,
    "number": (int, float),
}


def _check(value: Any, rule: dict[str, Any], place: str) -> None:
    if "$ref" in rule:
        rule = schema()["$defs"][rule["$ref"].removeprefix("#/$defs/")]
    if "anyOf" in rule:
        return _any(value, rule["anyOf"], place)
    if "const" in rule and value != rule["const"]:
        raise ValueError(f"{place} must be {rule['const']!r}, got {value!r}.")
    if "enum" in rule and value not in rule["enum"]:
        raise ValueError(f"{place} must be one of {', '.join(map(repr, rule['enum']))}, got {value!r}.")
    kind = rule.get("type")
    if kind and (isinstance(value, bool) or not isinstance(value, KINDS[kind])):  # type: ignore[arg-type]
        raise ValueError(f"{place} must be of type {kind}, got {type(value).__name__}.")
    _check_range(value, rule, place)
    if kind == "object":
        _check_object(value, rule, place)
    if kind == "array":
        for index, entry in enumerate(value):
            _check(entry, rule["items"], f"{place}[{index}]")
    return None


def _any(value: Any, rules: list[dict[str, Any]], place: str) -> None:
    """One of the rules must hold; else the first refusal is told."""
    refusals = []
    for rule in rules:
        try:
            return _check(value, rule, place)
        except ValueError as refusal:
            refusals.append(refusal)
    raise refusals[0]


def _check_range(value: Any, rule: dict[str, Any], place: str) -> None:
    """Limits in positive form, so that NaN fails."""
    held = {
        "minimum": ge,
        "maximum": le,
        "exclusiveMinimum": gt,
        "exclusiveMaximum": lt,
    }
    for word, test in held.items():
        if word in rule and not test(value, rule[word]):
            raise ValueError(f"{place} breaks {word} {rule[word]}, got {value}.")


def _check_object(value: dict[str, Any], rule: dict[str, Any], place: str) -> None:
    for name in rule.get("required", []):
        if name not in value:
            raise ValueError(f"{place} has no {name}, which the schema requires.")
    for name, entry in value.items():
        if name not in rule["properties"]:
            raise ValueError(f"{place} has {name!r}, which the schema does not know.")
        _check(entry, rule["properties"][name], f"{place}.{name}")
