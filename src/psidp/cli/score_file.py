"""ScoreFile: where the scores are in a file, by the names that were given or guessed."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psidp.cli.number_files import column_names, read_column

__all__ = ["ScoreFile"]

SIDES = (
    ("in", "out"), ("inscore", "outscore"), ("inscores", "outscores"), ("member", "nonmember"),
    ("members", "nonmembers"), ("with", "without"), ("0", "1"),
)  # fmt: skip
"""Names of two columns, one a side, as they are guessed."""
SCORES = ("score", "scores", "1")
MEMBERS = ("included", "member", "ismember", "membership", "in", "label", "0")
WORDS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0, "in": 1.0, "out": 0.0}
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ScoreFile:
    """A file with one column a side, or with a column of scores and one that says who was in."""

    source: str
    first: str
    """The in-scores, or all scores."""
    second: str
    """The out-scores, or who was in."""
    layout: str
    """"sides" or "rows"."""
    guessed: bool

    @classmethod
    def find(
        cls, source: str, ins: str | None, outs: str | None, score: str | None, member: str | None, one_run: bool
    ) -> "ScoreFile":
        """The columns as named, or as their names suggest."""
        sides, rows = (ins, outs), (score, member)
        if any(sides) and (any(rows) or one_run or not all(sides)):
            raise ValueError(
                "--in-column and --out-column go together and with no other column, and not with --one-run."
            )
        if any(rows) and not all(rows):
            raise ValueError("--score-column and --member-column go together.")
        if (all(sides) and ins == outs) or (all(rows) and score == member):
            raise ValueError(f"two different columns must be named, got {ins or score!r} twice.")
        names = column_names(source)
        if not names:
            raise ValueError(f"{source!r} is empty: its first line must name the columns, such as in,out.")
        if all(sides):
            return cls(source, str(ins), str(outs), "sides", False)
        if all(rows):
            return cls(source, str(score), str(member), "rows", False)
        return cls._guess(source, names, one_run)

    @classmethod
    def _guess(cls, source: str, names: list[str], one_run: bool) -> "ScoreFile":
        """The first pair of names that is there."""
        plain = {"".join(c for c in name.lower() if c.isalnum()): name for name in names}
        found = [(a, b) for a, b in SIDES if a in plain and b in plain and not one_run]
        if found:
            return cls(source, plain[found[0][0]], plain[found[0][1]], "sides", True)
        found = [(s, m) for s in SCORES for m in MEMBERS if s in plain and m in plain]
        if found:
            return cls(source, plain[found[0][0]], plain[found[0][1]], "rows", True)
        ways = "" if one_run else "--in-column and --out-column, or "
        raise ValueError(
            f"the columns of the scores must be named, since {', '.join(names)[:200]} does not tell: "
            f"{ways}--score-column and --member-column."
        )

    def sides(self) -> tuple[Array, Array]:
        """In-scores and out-scores; a shorter column may end in empty cells."""
        if self.layout == "sides":
            first, second = (self._read(name) for name in (self.first, self.second))
            return _without_end(first, second), _without_end(second, first)
        member, score = self.canaries()
        return score[member], score[~member]

    def canaries(self) -> tuple[NDArray[np.bool_], Array]:
        """Who was in, and all scores."""
        member, score = self._read(self.second), self._read(self.first)
        if not np.isin(member, (0.0, 1.0)).all():
            raise ValueError(f'column "{self.second}" must say 1 or true (in), 0 or false (out) in every row.')
        return member.astype(bool), score

    def _read(self, name: str) -> Array:
        return np.asarray(read_column(self.source, name, WORDS), dtype=np.float64)

    @property
    def sentence(self) -> str:
        """Which columns were read as what."""
        how = "guessed from their names" if self.guessed else "as named"
        if self.layout == "sides":
            return f'In-scores: column "{self.first}"; out-scores: column "{self.second}" ({how}).'
        return f'Scores: column "{self.first}"; who was in: column "{self.second}" ({how}).'

    def to_dict(self) -> dict[str, Any]:
        """Which columns were read as what, as plain values."""
        names = ("in", "out") if self.layout == "sides" else ("score", "member")
        return {names[0]: self.first, names[1]: self.second, "guessed": self.guessed}


def _without_end(column: Array, other: Array) -> Array:
    """The column without the empty cells at its end where the other one goes on."""
    numbers = np.flatnonzero(~np.isnan(column))
    end = int(numbers[-1]) + 1 if numbers.size else 0
    return column[:end] if not np.isnan(other[end:]).any() else column
