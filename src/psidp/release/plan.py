"""Plan: what a release would run, cost and be worth, before anything is spent. No row is read."""

import json
from dataclasses import dataclass, field
from typing import Any

from psidp.guarantee import Guarantee
from psidp.maths.sensitivity import clipped_vector
from psidp.release.ask import CANDIDATES, Aggregate
from psidp.release.cell import middle_and_half
from psidp.release.engine import Engine
from psidp.release.keys import PrivateKeys
from psidp.release.lattice import Lattice
from psidp.release.question import Question

__all__ = ["Expected", "Plan", "planned"]

TYPICAL = {"mean": 1.0, "variance": 0.56, "deviation": 0.56}
"""Error in units of the half width, for values about the middle of the bounds that deviate by half of it."""


@dataclass(frozen=True, slots=True)
class Expected:
    """One aggregate of a plan: how far a unit can move it, the noise, and the error to expect.

    `standard_error` is that of each number; for a mean, variance or deviation (`per_row`) it is to be divided by the
    number of rows in the group, for values about the middle of their bounds; for quantiles it is that of each bin's
    count.
    """

    name: str
    contribution: float | str
    sensitivity: float
    psi: float
    sigma: float
    standard_error: float
    per_row: bool

    def sentence(self) -> str:
        """In words."""
        over = " divided by the number of rows" if self.per_row else ""
        chosen = " for each row's worth that is chosen" if self.contribution == "auto" else ""
        return (
            f"{self.name}: contribution {self.contribution}, sensitivity {self.sensitivity:.6g}{chosen}, psi "
            f"{self.psi:.4g}, sigma {self.sigma:.6g}{chosen}, standard error {self.standard_error:.4g}{over}."
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """The SQL that will run, and for each aggregate what to expect.

    Args:
        guarantee: what it would cost. expected: the aggregates. sql: the queries. keys: how the groups come about.
        notes: what else to know.
    """

    guarantee: Guarantee
    expected: tuple[Expected, ...]
    sql: tuple[str, ...] = field(repr=False)
    keys: str
    notes: tuple[str, ...] = ()

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
        return "\n".join([*(e.sentence() for e in self.expected), self.keys, *self.notes, cost])

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain values."""
        expected = [{name: getattr(e, name) for name in Expected.__slots__} for e in self.expected]
        return {
            "guarantee": self.guarantee.to_dict(),
            "expected": expected,
            "keys": self.keys,
            "notes": list(self.notes),
            "sql": list(self.sql),
        }

    def to_json(self) -> str:
        """The plan as JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False)


def planned(asked: Question, engine: Engine) -> Plan:
    """What the question would run and be worth."""
    sql, keys = _queries(asked, engine)
    return Plan(asked.guarantee, tuple(_expected(asked, a) for a in asked.asks), sql, keys, notes_on(asked))


def notes_on(asked: Question) -> tuple[str, ...]:
    """What a reader has to know about clipping."""
    unit = asked.guarantee.unit
    said = []
    if asked.unit is not None:
        said.append(
            f"The rows of one {unit}, over all groups, are scaled down where their L2 norm exceeds its contribution in "
            "rows' worth."
        )
    if asked.unit is not None and any(a.contribution == 1.0 and a.kind != "units" for a in asked.asks):
        said.append(
            f"With contribution 1, four rows of one {unit} in one group count as one row, and in four groups as half a "
            f'row each. Where many have several rows, ask for a larger contribution, or for "auto".'
        )
    if any(a.contribution == "auto" for a in asked.asks):
        shown = ", ".join(f"{c:g}" for c in CANDIDATES)
        said.append(f"A contribution is chosen privately among {shown}, with a tenth of the aggregate's psi^2.")
    if asked.adjacency == "replace-one":
        said.append(
            f"Under replace-one one {unit} can move the totals by twice its bound, and the noise is twice as large."
        )
    if any(a.parts > 1 for a in asked.asks):
        said.append("The sums and the count behind a mean or a variance share one clipping weight.")
    return tuple(said)


def private_keys(asked: Question) -> str:
    """How keys are chosen, in words; nothing where they are public."""
    private, unit = asked.private, asked.guarantee.unit
    if private is None:
        return ""
    sigma = Guarantee(asked.share(private.weight)).sigma(clipped_vector(private.contribution, asked.adjacency))
    threshold = private.threshold(sigma, sigma * 2.0**-24)
    return (
        f"Keys are those whose noisy number of {unit}s exceeds {threshold:.4g} (sigma {sigma:.4g}); one {unit} in more "
        f"than {private.at_most} counts nowhere."
    )


def _expected(asked: Question, a: Aggregate) -> Expected:
    contribution = 1.0 if a.contribution == "auto" else float(a.contribution or 1.0)
    sigma = asked.sigma(a, contribution)
    row = 1.0
    if a.parts > 1:
        _, half = middle_and_half(a)
        lattice = Lattice.fitting(contribution, a.parts)
        row = lattice.part(a.parts) * lattice.step / (half * (half if a.kind == "variance" else 1.0) * TYPICAL[a.kind])
    shown = a.contribution if a.contribution == "auto" else contribution
    return Expected(
        a.name, shown or 1.0, asked.sensitivity(a, contribution), asked.psi_of(a), sigma, sigma / row, a.parts > 1
    )


def _queries(asked: Question, engine: Engine) -> tuple[tuple[str, ...], str]:
    """The SQL, and how the groups come about."""
    if isinstance(asked.keys, PrivateKeys):
        query = asked.keys.expression(asked.rows, asked.unit, asked.by)
        return (engine.sql(query),), f"{private_keys(asked)} The totals' SQL will name the chosen keys."
    queries = asked.totals(asked.largest(), asked.keys, engine.narrow)
    keys = f"{len(asked.keys):,} public keys; those absent from the data appear with noise alone." if asked.by else ""
    return tuple(engine.sql(query.expression()) for query in queries), keys or "One group: the whole table."
