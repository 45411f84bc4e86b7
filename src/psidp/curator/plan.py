"""Plan: what a release would run, cost and be worth, before anything is spent. No row is read."""

import json
import re
from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import numpy as np

from psidp.curator.answer import Note
from psidp.curator.ask import Aggregate
from psidp.curator.bounds_search import first_histogram
from psidp.curator.contribution import grid_of
from psidp.curator.engine import Engine
from psidp.curator.estimate import Noisy
from psidp.curator.groups import PrivateGroups
from psidp.curator.notes import notes_on, private_groups
from psidp.curator.query import Query
from psidp.curator.row_sql import middle_and_half
from psidp.escaping import one_line
from psidp.guarantee import Guarantee

__all__ = ["Expected", "Plan", "expected_errors", "planned"]

TYPICAL = {"mean": 1.0, "variance": 0.56, "deviation": 0.56, "ratio": sqrt(2.0)}
"""Error in units of the half width, for values about the middle of the bounds that deviate by half of it; of a ratio in
units of bound over bound, for rows at their bounds."""

CONTRIBUTIONS = (1, 64, 256, 1_000)
"""Contributions for which a plan says the error where one is to be chosen."""

ROWS = (100, 1_000, 10_000)
"""Numbers of rows in a group for which a plan says the error of a mean."""

EXAMPLE, WIDTH, BINS = 64, 100.0, 32
"""A contribution, a width of bounds and a number of bins that a plan's examples suppose to be chosen."""


@dataclass(frozen=True, slots=True)
class Expected:
    """One aggregate of a plan: how far a unit can move it, the noise, and the error to expect.

    `standard_error` is that of each number; for a mean, variance or deviation (`per_row`) it is to be divided by the
    number of rows in the group, for values about the middle of their bounds; for quantiles it is that of each bin's
    count. `by_rows` is the standard error of a mean, variance or deviation in groups of 100, 1,000 and 10,000 rows, in
    the column's own unit; `ranks` that of a median, in ranks, and `strategy` what its noise is made for. Both speak of
    rows that are not clipped. `scale` says in what errors are, where bounds are to be chosen and nobody knows the unit
    (`bounds_chosen`); the sentence then has an example. `kind` is the aggregate's.
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
    kind: str = ""
    bounds_chosen: bool = False

    def sentence(self) -> str:
        """In words."""
        shown = self.contribution if isinstance(self.contribution, str) else f"{self.contribution:g}"
        said = f"{self.name}: contribution {shown}, psi {self.psi:.4g}"
        if self.bounds_chosen:
            return f"{said}. {self._if_chosen()}"
        at = "; at a contribution of 1 sensitivity" if self.contribution == "auto" else ", sensitivity"
        return f"{said}{at} {self.sensitivity:.6g}, sigma {self.sigma:.6g}, {self._error()}.{self._examples()}"

    def _error(self) -> str:
        """The standard error in the unit that a reader has."""
        if self.by_rows:
            parts = [f"{error:.3g} in a group of {rows:,} rows" for rows, error in self.by_rows]
            return f"standard error {', '.join(parts)}"
        if self.ranks is not None:
            return f"standard error of a median's rank {self.ranks:.3g} ranks: {self.strategy}"
        return f"standard error {self.standard_error:.4g}"

    def _examples(self) -> str:
        """What the error would be for some contributions, where one is to be chosen."""
        if self.contribution != "auto":
            return ""
        rows = self.by_rows[-1][0] if self.by_rows else 1
        error = self.standard_error / rows if self.ranks is None else self.ranks
        errors = [f"{_digits(error * c, 3)} at {c:,}" for c in CONTRIBUTIONS]
        where = f" in a group of {rows:,} rows" if self.by_rows else ""
        return f" It grows with the contribution that is chosen:{where} {', '.join(errors)}."

    def _if_chosen(self) -> str:
        """An example, where bounds or edges are to be chosen and nobody knows the column's unit."""
        times = EXAMPLE if self.contribution == "auto" else 1
        also, both = (f" and a contribution of {times}", " and with the contribution") if times > 1 else ("", "")
        error, rows = self.standard_error * times, ROWS[-1]
        if self.kind == "histogram":
            where = f"With a contribution of {times} the" if also else "The"
            return f"Edges are chosen. {where} standard error of a bin's count is {_digits(error, 3)}."
        if self.kind == "quantiles":
            ranks = error * sqrt(BINS) / 2.0
            low, high = max(0.0, 0.5 - ranks / rows), min(1.0, 0.5 + ranks / rows)
            return (
                f"Edges are chosen, and errors are ranks, not in the column's own unit. For example, with {BINS} bins"
                f"{also} a median's rank is off by {_digits(ranks, 2)} or so: among {rows:,} rows the number lies "
                f"between about the {low:.2g} and the {high:.2g} quantile, however far apart these are."
            )
        if self.kind == "sum":
            said, off, grows = f"from 0 to {WIDTH:g}{also} a sum", WIDTH * error, "the larger bound"
        else:
            power = 2 if self.kind == "variance" else 1
            said, off = f"{WIDTH:g} apart{also} a {self.kind} over {rows:,} rows", error / rows
            off, grows = (WIDTH / 2.0) ** power * min(1.0, off), f"{'the square of ' if power > 1 else ''}their width"
        about = f"{said} is off by about {_digits(off, 2)}"
        return f"Bounds are chosen. For example, with bounds {about}; that grows with {grows}{both}."


def _digits(number: float, digits: int) -> str:
    """So many digits, and no power of ten."""
    return f"{float(f'{number:.{digits}g}'):,.15g}"


@dataclass(frozen=True, slots=True)
class Plan:
    """The SQL that will run, and for each aggregate what to expect.

    Args:
        guarantee: what it would cost. expected: the aggregates. sql: the queries. groups: how the groups come about.
        notes: what else to know.
    """

    guarantee: Guarantee
    expected: tuple[Expected, ...]
    sql: tuple[str, ...] = field(repr=False)
    groups: str
    notes: tuple[Note, ...] = ()

    def psi_for(self, error: float, name: str | None = None) -> float:
        """psi of the whole release for which an aggregate has this standard error: errors go as 1/psi.

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
        return "\n".join(
            [*(e.sentence() for e in self.expected), self.groups, *(one_line(note.text) for note in self.notes), cost]
        )

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain values."""
        expected = [{name: getattr(e, name) for name in Expected.__slots__} for e in self.expected]
        return {
            "form": "psidp-plan-1",
            "guarantee": self.guarantee.to_dict(),
            "expected": expected,
            "groups": self.groups,
            "notes": [note.to_dict() for note in self.notes],
            "sql": list(self.sql),
        }

    def to_json(self) -> str:
        """The plan as JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False)


def planned(asked: Query, engine: Engine) -> Plan:
    """What the question would run and be worth."""
    sql, said = _queries(asked, engine)
    groups = asked.private.at_most if asked.private else len(asked.groups)  # type: ignore[arg-type]
    expected = tuple(_expected(asked, a, groups) for a in asked.asks)
    return Plan(asked.guarantee, expected, sql, said, notes_on(asked))


def _expected(asked: Query, a: Aggregate, groups: int) -> Expected:
    contribution = 1.0 if a.contribution == "auto" else float(a.contribution or 1.0)
    sigma = asked.sigma(a, contribution)
    row = 1.0
    by_rows: tuple[tuple[int, float], ...] = ()
    if a.parts > 1:
        half = a.terms[0].reach / a.terms[1].reach if a.terms else middle_and_half(a)[1]
        largest = half * half if a.kind == "variance" else half
        grid = grid_of(a, contribution, groups)
        row = grid.part(a.parts) * grid.step / (largest * TYPICAL[a.kind])
        by_rows = tuple((rows, min(largest, sigma / row / rows)) for rows in ROWS)
    return Expected(
        name=a.name,
        contribution=a.contribution or 1.0,
        sensitivity=asked.sensitivity(a, contribution),
        psi=asked.psi_of(a),
        sigma=sigma,
        standard_error=sigma / row,
        per_row=a.parts > 1,
        by_rows=by_rows,
        ranks=_ranks(asked, a, sigma),
        strategy=_strategy(asked, a, sigma),
        scale=_scale(a),
        kind=a.kind,
        bounds_chosen=a.bounds is not None,
    )


def expected_errors(asked: Query, a: Aggregate) -> float:
    """Standard error of one aggregate at the question's psi: of a ratio times the rows, of a quantile in ranks."""
    groups = asked.private.at_most if asked.private else len(asked.groups)  # type: ignore[arg-type]
    found = _expected(asked, a, groups)
    return found.standard_error if found.ranks is None else found.ranks


def _scale(a: Aggregate) -> str:
    """In what errors are, where bounds are to be chosen."""
    if a.bounds is None or a.kind in ("histogram", "quantiles"):
        return ""
    if a.kind == "sum":
        return " times the larger of the bounds that are chosen"
    return f" times {'the square of ' if a.kind == 'variance' else ''}half the range that is chosen"


def _strategy(asked: Query, a: Aggregate, sigma: float) -> str:
    """What the noise of quantiles is made for, and why."""
    if a.kind != "quantiles" or not a.edges:
        return ""
    if asked.quantile_plan(a) is not None:
        return "noise made for cumulative counts, since every row is in one bin"
    if asked.unit is None:
        return f"noise of {sigma:.4g} on each bin alone, for the number of bins"
    return f"noise of {sigma:.4g} on each bin alone, best where a unit's rows are bounded in L2"


def _ranks(asked: Query, a: Aggregate, sigma: float) -> float | None:
    """Standard error of a median's rank, where it lies in the middle bin."""
    if a.kind != "quantiles" or not a.edges:
        return None
    return float(Noisy(np.zeros(0), sigma, 0.0, asked.quantile_plan(a)).deviations(a.bins, 0.5)[a.bins // 2])


def _queries(asked: Query, engine: Engine) -> tuple[tuple[str, ...], str]:
    """The SQL, and how the groups come about."""
    if isinstance(asked.groups, PrivateGroups):
        query = asked.groups.expression(asked.rows, asked.unit, asked.by)
        return (engine.sql(query),), f"{private_groups(asked)} The totals' SQL will name the chosen groups."
    if found := [a for a in asked.asks if a.bounds == "auto"]:
        first = [asked.bins_query(first_histogram(a), asked.groups, engine.narrow) for a in found]
        said = "The SQL is that of the first histograms; what follows will name the chosen bounds."
        return tuple(engine.sql(query.expression()) for query in first), f"{_public_groups(asked)} {said}"
    sql = [engine.sql(query.sizes()) for query in asked.choices(asked.groups, engine.narrow)]
    sql += [engine.sql(query.expression()) for query in asked.totals(asked.fixed(), asked.groups, engine.narrow)]
    return tuple(sql), _public_groups(asked)


SHOWN = 4
"""Groups that a plan names, so that a key with a blank too many is seen before it is paid for."""


RANGE = re.compile(r"(\d{1,9})\s*[-\u2013]\s*(\d{1,9})")
"""A group that looks like a range of numbers, such as 1-12."""


def _public_groups(asked: Query) -> str:
    """How groups that are given come about."""
    if not asked.by:
        return "One group: the whole table."
    groups = [key[0] if len(key) == 1 else key for key in asked.groups]  # type: ignore[union-attr]
    some = ", ".join(repr(key) for key in groups[:SHOWN]) + (", ..." if len(groups) > SHOWN else "")
    said = f"{len(groups):,} public groups ({some}); those absent from the data appear with noise alone."
    found = RANGE.fullmatch(str(groups[0])) if len(groups) == 1 else None
    if found is None:
        return said
    first, last = found.groups()
    return f"{said} Warning: {found[0]!r} is one group; the numbers from {first} to {last} are {first}..{last}."
