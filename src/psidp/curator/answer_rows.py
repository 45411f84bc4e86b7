"""Rows of an answer: from everything noisy of a release to one estimate for each group and statistic."""

from math import nan

from psidp.curator.estimate import Estimate, estimates, flagged, largest
from psidp.curator.execute import Drawn, Part
from psidp.curator.groups import Key

__all__ = ["answer_rows"]


def answer_rows(drawn: Drawn, confidence: float) -> tuple[tuple[Key, Estimate], ...]:
    """Group by group what is said of each; after that the largest groups, where those are asked for."""
    judged = [_estimated(part, len(drawn.groups), confidence) for part in drawn.parts]
    tops = [part.aggregate.top for part in drawn.parts]
    rows = [
        (key, e)
        for group, key in enumerate(drawn.groups)
        for top, part in zip(tops, judged, strict=True)
        if not top
        for e in part[group]
    ]
    for top, part in zip(tops, judged, strict=True):
        chosen = largest([group[0] for group in part], top, confidence) if top else []
        rows += [(drawn.groups[i], e) for i, e in chosen]
    return tuple(rows)


def _estimated(part: Part, groups: int, confidence: float) -> list[list[Estimate]]:
    """What one aggregate says of each group, flagged where clipping may have moved it."""
    lost = nan if part.norms is None else part.norms.lost(part.contribution)[0]
    level = 1.0 - (1.0 - confidence) / groups if part.aggregate.top else confidence
    found = [estimates(part.aggregate, part.lattice, part.noisy, group, level) for group in range(groups)]
    return flagged(part.aggregate, found, lost)
