"""Aggregates in words: what stands behind --mean, --ratio, --top and the like on the command line."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from psidp.curator import ask
from psidp.curator.aggregate import PERCENT

__all__ = [
    "bounded", "bounds", "distinct", "edges_of", "errors_of", "largest", "number", "quantiles", "ratio", "shared",
    "weighted_sum",
]  # fmt: skip

Words = list[str]


def bounded(make: Callable[..., ask.Aggregate], word: str) -> ask.Aggregate:
    """column:lower:upper, or column:auto."""
    column, colon, last = word.rpartition(":")
    if not colon:
        raise ValueError(
            "a bounded column must be column:lower:upper, such as cost:0:5000, or column:auto where nobody knows its "
            f"bounds, got {word!r}."
        )
    return make(column, bounds="auto") if last == "auto" and column else make(*bounds(word))


def bounds(word: str) -> tuple[str, float, float]:
    """column:lower:upper; the column itself may contain colons."""
    parts = word.rsplit(":", 2)
    if len(parts) != 3:
        raise ValueError(f"a bounded column must be column:lower:upper, such as cost:0:5000, got {word!r}.")
    return parts[0], number(parts[1], word), number(parts[2], word)


def errors_of(words: Words) -> Any:
    """error, error:rows, name:error or name:error:rows; several by name; None where there is none."""
    found = dict(map(_error, words))
    if len(found) < len(words):
        raise ValueError(f"--error must name every statistic once, got {', '.join(map(repr, words))}.")
    return found.get("", found) if found else None


def _error(word: str) -> tuple[str, float | tuple[float, float]]:
    """The name, and a number or two."""
    parts = word.split(":")
    numbers: list[float] = []
    while parts and len(numbers) < 2:
        try:
            numbers.insert(0, float(parts[-1]))
        except ValueError:
            break
        parts.pop()
    if not numbers:
        raise ValueError(f"--error must be a number, name:number or name:number:rows, such as count:10, got {word!r}.")
    return ":".join(parts), numbers[0] if len(numbers) == 1 else (numbers[0], numbers[1])


def shared(asks: list[ask.Aggregate], words: Words) -> list[ask.Aggregate]:
    """The aggregates with the weights that name:number gives them: their shares of psi^2."""
    weights: dict[str, float] = {}
    for word in words:
        name, colon, weight = word.rpartition(":")
        if not colon or name in weights or name not in {a.name for a in asks}:
            known = ", ".join(repr(a.name) for a in asks)
            raise ValueError(f"--weight must be name:number, once for each name of {known}, got {word!r}.")
        weights[name] = number(weight, word)
    return [replace(a, weight=weights[a.name]) if a.name in weights else a for a in asks]


def edges_of(word: str) -> tuple[str, Any]:
    """column:edge,edge,..., or column:auto."""
    column, colon, edges = word.rpartition(":")
    if colon and edges == "auto":
        return column, "auto"
    if not colon:
        raise ValueError(f"a histogram must be column:edge,edge,..., such as age:0,18,65,100, got {word!r}.")
    return column, [number(edge, word) for edge in edges.split(",")]


def quantiles(word: str) -> ask.Aggregate:
    """column:edges:quantiles."""
    rest, colon, at = word.rpartition(":")
    if not colon or ":" not in rest:
        raise ValueError(
            "quantiles must be column:edge,edge,...:0.25,0.5,0.75, such as fee:0,5,10,20:0.9, or fee:auto:0.9 where "
            f"edges are to be chosen, got {word!r}."
        )
    return ask.quantiles(*edges_of(rest), at=[_share(q, word) for q in at.split(",")])


def _share(text: str, word: str) -> float:
    """Which quantile, as a number."""
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"quantiles must be numbers in (0, 1), got {text!r} in {word!r}. {PERCENT}") from None


def number(text: str, word: str) -> float:
    """A number, or the refusal that shows where it stands."""
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} in {word!r} must be a number.") from None


def weighted_sum(word: str) -> ask.Aggregate:
    """column:lower:upper:weights:most."""
    parts = word.rsplit(":", 4)
    if len(parts) != 5:
        raise ValueError(
            f"a weighted sum must be column:lower:upper:weights:most, such as cost:0:5000:w:10, got {word!r}."
        )
    column, lower, upper, weights, most = parts
    return ask.weighted_sum(column, number(lower, word), number(upper, word), weights=weights, most=number(most, word))


def ratio(word: str) -> ask.Aggregate:
    """above/below, each count or column:lower:upper."""
    above, slash, below = word.partition("/")
    if not slash:
        raise ValueError(
            f"a ratio must be above/below, such as cost:0:5000/count or cost:0:5000/days:0:60, got {word!r}."
        )
    return ask.ratio(*(ask.count() if term == "count" else ask.sum(*bounds(term)) for term in (above, below)))


def distinct(word: str) -> ask.Aggregate:
    """column:at_most."""
    column, colon, most = word.rpartition(":")
    if not colon:
        raise ValueError(f"distinct values must be column:at_most, such as diagnosis:10, got {word!r}.")
    return ask.distinct(column, number(most, word))


def largest(word: str) -> ask.Aggregate:
    """k, or k:column:lower:upper."""
    k, colon, of = word.partition(":")
    if not k.isdecimal():
        raise ValueError(f"--top must be k or k:column:lower:upper, such as 3 or 3:cost:0:5000, got {word!r}.")
    return ask.top(int(k), ask.sum(*bounds(of)) if colon else None)
