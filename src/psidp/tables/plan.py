"""Plan: what a release would run, cost and be worth, before anything is spent. No row is read."""

import json
from dataclasses import dataclass, field
from typing import Any

from psidp.escaping import one_line
from psidp.guarantee import Guarantee
from psidp.tables.notes import Note

__all__ = ["Expected", "Plan"]

CONTRIBUTIONS = (1, 64, 256, 1_000)
"""Contributions for which a plan says the error where one is to be chosen."""

ROWS = (100, 1_000, 10_000)
"""Numbers of rows in a group for which a plan says the error of a mean."""


@dataclass(frozen=True, slots=True)
class Expected:
    """One measure of a plan: how far a unit can move it, the noise, and the error to expect.

    `standard_error` is that of each number; for a mean, variance or deviation (`per_row`) it is to be divided by the
    number of rows in the group, for values about the middle of their bounds; for quantiles it is that of each bin's
    count. `by_rows` is the standard error of a mean, variance or deviation in groups of 100, 1,000 and 10,000 rows, in
    the column's own unit; `ranks` that of a median, in ranks, and `strategy` what its noise is made for. Both speak of
    rows that are not clipped. `scale` says in what errors are, where bounds are to be chosen and nobody knows the unit.
    """

    name: str
    contribution: float | str
    sensitivity: float
    psi: float
    sigma: float
    standard_error: float
    per_row: bool
    by_rows: tuple[tuple[int, float], ...] = ()
    ranks: float | None = None
    strategy: str = ""
    scale: str = ""
    example: str = ""
    """What errors would be for example, where bounds are to be chosen."""

    def sentence(self) -> str:
        """In words."""
        shown = self.contribution if isinstance(self.contribution, str) else f"{self.contribution:g}"
        start = f"{self.name}: contribution {shown}, psi {self.psi:.4g}"
        if self.example:
            return f"{start}. {self.example}"
        at = "; at a contribution of 1 sensitivity" if self.contribution == "auto" else ", sensitivity"
        return (
            f"{start}{at} {self.sensitivity:.6g}, sigma {self.sigma:.6g}, {self._error()}{self.scale}.{self._growth()}"
        )

    def _error(self) -> str:
        """The standard error in the unit that a reader has."""
        if self.by_rows:
            parts = [f"{error:.3g} in a group of {rows:,} rows" for rows, error in self.by_rows]
            return f"standard error {', '.join(parts)}"
        if self.ranks is not None:
            return f"standard error of a median's rank {self.ranks:.3g} ranks: {self.strategy}"
        return f"standard error {self.standard_error:.4g}"

    def _growth(self) -> str:
        """What the error would be for some contributions, where one is to be chosen."""
        if self.contribution != "auto":
            return ""
        rows = self.by_rows[-1][0] if self.by_rows else 1
        error = self.standard_error / rows if self.ranks is None else self.ranks
        errors = [f"{float(f'{error * c:.3g}'):,.15g} at {c:,}" for c in CONTRIBUTIONS]
        where = f" in a group of {rows:,} rows" if self.by_rows else ""
        return f" It grows with the contribution that is chosen:{where} {', '.join(errors)}."


@dataclass(frozen=True, slots=True)
class Plan:
    """The SQL that will run, and for each measure what to expect.

    Args:
        guarantee: what it would cost. expected: the measures. sql: the queries. groups: how the groups come about.
        notes: what else to know.
    """

    guarantee: Guarantee
    expected: tuple[Expected, ...]
    sql: tuple[str, ...] = field(repr=False)
    groups: str
    notes: tuple[Note, ...] = ()

    def psi_for(self, error: float, name: str | None = None) -> float:
        """psi of the whole release for which a measure has this standard error: errors go as 1/psi.

        For a mean, variance or deviation the error is that times the number of rows.
        """
        if not 0.0 < error < float("inf"):
            raise ValueError(f"error (wanted standard error) must be in (0, inf), got error={error}.")
        known = {e.name: e for e in self.expected}
        if name is None and len(known) == 1:
            name = next(iter(known))
        if name not in known:
            raise ValueError(f"name must be one of {', '.join(map(repr, known))}, got name={name!r}.")
        return self.guarantee.psi * known[name].standard_error / error

    def summary(self) -> str:
        """The plan in words, without the SQL."""
        g = self.guarantee
        kappa = f" and kappa = {g.kappa:.3g}" if g.kappa else ""
        cost = f"It would cost psi = {g.psi:.6g}{kappa} ({g.adjacency}, per {g.unit}). No row was read."
        lines = [*(e.sentence() for e in self.expected), self.groups, *(note.text for note in self.notes), cost]
        return "\n".join(map(one_line, lines))

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain values."""
        return {
            "form": "psidp-plan-1",
            "guarantee": self.guarantee.to_dict(),
            "expected": [{name: getattr(e, name) for name in Expected.__slots__} for e in self.expected],
            "groups": self.groups,
            "notes": [note.to_dict() for note in self.notes],
            "sql": list(self.sql),
        }

    def to_json(self) -> str:
        """The plan as JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False)
