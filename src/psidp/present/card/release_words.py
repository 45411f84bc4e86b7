"""The card of a release, an answer or a cube: what was published, how far off it is, and what is not covered."""

from collections.abc import Sequence
from typing import Any

from psidp.maths.normal import quantile
from psidp.mechanism.release import Release
from psidp.present.card.parts import ErrorRange
from psidp.tables.answer import Answer
from psidp.tables.cube_answer import Cube
from psidp.tables.estimate import Estimate
from psidp.tables.flags import CLIPPING
from psidp.tables.notes import Note

__all__ = ["MOST", "noise_alone", "release_words"]

TOGETHER = "all numbers of the release together: one psi, however many of them are looked at"
ELSEWHERE = "anything else published from the same data"
MOST = 4
"""Statistics whose errors a card tells."""
UNTYPED = "psidp clipped it before noise was drawn; the notes of this answer of an older version say how far"
LIMITS = {
    "rows": "one {unit} adds at most the worth of {n} row{s}, over all groups, combined as the square root of the sum "
    "of squares",
    "values": "one {unit} counts for at most {n} values, over all groups",
    "each": "one {unit} counts {n} row{s} at most; where it has more, each of them counts less, all alike",
    "cell": "one {unit} counts at most what {n} row{s} in one cell are worth under the noise",
}
"""What a limit is, by what the note says that it is of."""


def release_words(release: Cube | Answer | Release) -> dict[str, Any]:
    """The fields of the card in words: title, mechanism, contribution bound, errors, what is covered or not."""
    if isinstance(release, Release):
        return _numbers(release)
    unit = release.guarantee.unit
    told = _cube(release) if isinstance(release, Cube) else _answer(release)
    return told | {
        "bound": _bound(release.notes, unit),
        "covered": (TOGETHER, f"everything that the table holds of one {unit}"),
        "not_covered": (ELSEWHERE, "the public lists of groups and bounds, if they were made from the data"),
    }


def _bound(notes: Sequence[Note], unit: str) -> str:
    """How much one unit adds at most, statistics with the same limit together, from the values of notes."""
    names: dict[str, list[str]] = {}
    for note in notes:
        if note.kind == "contribution":
            n = note.values["at_most"]
            limit = LIMITS[note.values["of"]].format(unit=unit, n=f"{n:.4g}", s="s" if n != 1.0 else "")
            names.setdefault(limit, []).extend(filter(None, [note.values["statistic"]]))
        elif note.kind == "private groups":
            names[f"one {unit} in more than {note.values['at_most']} groups is in none of them"] = []
    if names:
        return "; ".join(f"{', '.join(these)}: {limit}" if these else limit for limit, these in names.items())
    rows = any(note.kind == "asked" and note.values["unit_column"] is None for note in notes)
    return f"every row is one {unit}" if rows else UNTYPED


def _numbers(release: Release) -> dict[str, Any]:
    """A release of the mechanism: it knows its noise, and not what one unit can add."""
    size = getattr(release.value, "size", 1)
    error = release.mean_squared_error**0.5
    known = () if release.steps else (noise_alone("each number", error, numbers=size),)
    return {
        "title": "One number" if size == 1 else f"{size:,} numbers",
        "mechanism": "Gaussian mechanism",
        "sigma": release.sigma,
        "bound": "",
        "covered": (TOGETHER,),
        "not_covered": (ELSEWHERE, "data that move the numbers further than the sensitivity that was stated"),
        "errors": known,
    }


def noise_alone(statistic: str, standard_error: float, confidence: float = 0.95, numbers: int = 1) -> ErrorRange:
    """The error of numbers to which nothing but Gaussian noise of one size was done."""
    half = -float(quantile(0.5 * (1.0 - confidence))) * standard_error
    return ErrorRange(statistic, (half, half), (half, half), confidence, numbers)


def _errors(answer: Answer, of: str = "") -> tuple[ErrorRange, ...]:
    """How far the intervals of each statistic reach from its numbers."""
    found: dict[str, list[Estimate]] = {}
    measured = all(note.values["measured"] for note in answer.notes if note.kind == "contribution")
    for _, e in answer.rows:
        if e.lower <= e.value <= e.upper:  # not where there is no number
            found.setdefault(e.statistic, []).append(e)
    return tuple(
        ErrorRange(
            f"{name}{of}",
            _ends([e.value - e.lower for e in estimates]),
            _ends([e.upper - e.value for e in estimates]),
            answer.confidence,
            len(estimates),
            sum(CLIPPING in e.flag or not measured for e in estimates),
        )
        for name, estimates in list(found.items())[:MOST]
    )


def _ends(distances: list[float]) -> tuple[float, float]:
    return min(distances), max(distances)


def _cube(cube: Cube) -> dict[str, Any]:
    names, tables = ", ".join(column.name for column in cube.columns), len(cube.tables)
    measures, largest = ", ".join(a.name for a in cube.measures), max(cube.tables, key=len)
    return {
        "title": f"{measures} in {tables} table{'s' * (tables > 1)} of {names}",
        "mechanism": f"Gaussian noise on the residuals of {tables} tables that agree with each other",
        "errors": _errors(cube.table(*largest), f" in a cell of {', '.join(largest) or 'the total'}"),
    }


def _answer(answer: Answer) -> dict[str, Any]:
    names = dict.fromkeys(e.statistic for _, e in answer.rows)
    by = f" by {', '.join(answer.by)}" if answer.by else ""
    shown = list(names)[:4]
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return {
        "title": f"{', '.join(shown) or 'No numbers'}{more}{by}",
        "mechanism": "Gaussian noise on clipped totals",
        "errors": _errors(answer, " of a group" if answer.by else ""),
    }
