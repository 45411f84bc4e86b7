"""The card of a release, an answer or a cube: what was published, how far off it is, and what is not covered."""

from math import isfinite
from statistics import median
from typing import Any

from psidp.curator.answer import Answer
from psidp.curator.cube import Cube
from psidp.mechanism.release import Release
from psidp.present.card.parts import TypicalError

__all__ = ["release_words"]

TOGETHER = "all numbers of the release together: one psi, however many of them are looked at"
ELSEWHERE = "anything else published from the same data"
MOST = 4
"""Statistics whose errors a card tells."""


def release_words(release: Cube | Answer | Release) -> dict[str, Any]:
    """The fields of the card in words: title, mechanism, contribution bound, typical errors, what is covered or not."""
    if isinstance(release, Release):
        return _numbers(release)
    unit = release.guarantee.unit
    told = _cube(release) if isinstance(release, Cube) else _answer(release)
    said = [note.split(". ")[0].rstrip(".") for note in release.notes]
    bound = [note for note in said if f"one {unit} " in note.lower() and "at most" in note]
    return told | {
        "bound": "; ".join(_gathered(bound, unit)) or f"every row is one {unit}",
        "covered": (TOGETHER, f"everything that the table holds of one {unit}"),
        "not_covered": (ELSEWHERE, "the public lists of groups and bounds, if they were made from the data"),
    }


def _gathered(bounds: list[str], unit: str) -> list[str]:
    """Statistics with the same bound, told once."""
    names: dict[str, list[str]] = {}
    for bound in bounds:
        name, _, rest = bound.partition(": ")
        if rest.startswith(f"one {unit} "):
            names.setdefault(rest, []).append(name)
        else:
            names.setdefault(bound, [])
    return [f"{', '.join(these)}: {rest}" if these else rest for rest, these in names.items()]


def _numbers(release: Release) -> dict[str, Any]:
    """A release of the mechanism: it knows its noise, and not what one unit can add."""
    size = getattr(release.value, "size", 1)
    known = () if release.steps else (TypicalError("each number", release.mean_squared_error**0.5),)
    return {
        "title": "One number" if size == 1 else f"{size:,} numbers",
        "mechanism": "Gaussian mechanism",
        "sigma": release.sigma,
        "bound": "",
        "covered": (TOGETHER,),
        "not_covered": (ELSEWHERE, "data that move the numbers further than the sensitivity that was stated"),
        "errors": known,
    }


def _typical(answer: Answer, of: str = "") -> list[TypicalError]:
    """The middle one of the standard errors of each statistic."""
    found: dict[str, list[float]] = {}
    for _, e in answer.rows:
        if isfinite(e.standard_error):
            found.setdefault(e.statistic, []).append(e.standard_error)
    return [TypicalError(f"{name}{of}", median(errors)) for name, errors in found.items()][:MOST]


def _cube(cube: Cube) -> dict[str, Any]:
    names, tables = ", ".join(column.name for column in cube.columns), len(cube.tables)
    measures, largest = ", ".join(a.name for a in cube.measures), max(cube.tables, key=len)
    return {
        "title": f"{measures} in {tables} table{'s' * (tables > 1)} of {names}",
        "mechanism": f"Gaussian noise on the residuals of {tables} tables that agree with each other",
        "errors": tuple(_typical(cube.table(*largest), f" in a cell of {', '.join(largest) or 'the total'}")),
    }


def _answer(answer: Answer) -> dict[str, Any]:
    names = dict.fromkeys(e.statistic for _, e in answer.rows)
    by = f" by {', '.join(answer.by)}" if answer.by else ""
    shown = list(names)[:4]
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return {
        "title": f"{', '.join(shown) or 'No numbers'}{more}{by}",
        "mechanism": "Gaussian noise on clipped totals",
        "errors": tuple(_typical(answer, " of a group" if answer.by else "")),
    }
