"""The card of a cube or of an answer: what was published of which table, for which psi, and what it does not cover."""

from typing import Any

from psidp.curator.answer import Answer
from psidp.curator.cube import Cube

__all__ = ["release_words"]

TOGETHER = "all numbers of the release together: one psi, however many of them are looked at"
ELSEWHERE = "anything else published from the same data"


def release_words(release: Cube | Answer) -> dict[str, Any]:
    """The fields of the card in words: title, mechanism, contribution bound, what is covered and what not."""
    unit = release.guarantee.unit
    told = _cube(release) if isinstance(release, Cube) else _answer(release)
    said = [note.split(". ")[0].rstrip(".") for note in release.notes]
    bound = [note for note in said if f"one {unit} " in note.lower() and "at most" in note]
    return told | {
        "bound": "; ".join(bound) or f"every row is one {unit}",
        "covered": (TOGETHER, f"everything that the table holds of one {unit}"),
        "not_covered": (ELSEWHERE, "the public lists of groups and bounds, if they were made from the data"),
    }


def _cube(cube: Cube) -> dict[str, str]:
    names, tables = ", ".join(column.name for column in cube.columns), len(cube.tables)
    measures = ", ".join(a.name for a in cube.measures)
    return {
        "title": f"{measures} in {tables} table{'s' * (tables > 1)} of {names}",
        "mechanism": f"Gaussian noise on the residuals of {tables} tables that agree with each other",
    }


def _answer(answer: Answer) -> dict[str, str]:
    names = dict.fromkeys(e.statistic for _, e in answer.rows)
    by = f" by {', '.join(answer.by)}" if answer.by else ""
    shown = list(names)[:4]
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return {"title": f"{', '.join(shown) or 'No numbers'}{more}{by}", "mechanism": "Gaussian noise on clipped totals"}
