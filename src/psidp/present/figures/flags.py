"""Flags in pictures: what noise hides is left blank, and what clipping may have moved is dashed, yet readable."""

from collections.abc import Iterable, Mapping
from typing import Any

from psidp.tables.estimate import NOISE
from psidp.tables.flags import CLIPPING

__all__ = ["DASHED", "marks", "marks_in_words"]

DASHED = [4, 2]
"""Outline of what clipping may have moved."""


def marks(estimate: Any) -> dict[str, bool]:
    """Whether noise hides a number, which is blank then, and whether clipping may have moved it, which is dashed."""
    blank = NOISE in estimate.flag
    return {"blank": blank, "clipped": CLIPPING in estimate.flag and not blank}


def marks_in_words(rows: Iterable[Mapping[str, Any]], blank: str) -> list[str]:
    """The lines of a legend, for the marks that occur; `blank` says how a number without one looks."""
    seen = list(rows)
    said = ["dashed: clipping may have moved it further than its interval says"] * any(row["clipped"] for row in seen)
    return said + [f"{blank}: cannot be told from noise"] * any(row["blank"] for row in seen)
