"""Curator: the trusted keeper of a table. Answers questions with noise, writes down what they cost, and says so."""

from collections.abc import Mapping, Sequence
from decimal import ROUND_FLOOR, Context
from math import nan
from pathlib import Path
from typing import Any

from psidp.maths.sensitivity import Adjacency, check_adjacency
from psidp.release.answer import Answer
from psidp.release.ask import Aggregate, Contribution
from psidp.release.budget import check_text, shorten
from psidp.release.drawing import Drawn, Part, prepare
from psidp.release.engine import Engine
from psidp.release.estimate import Estimate, estimates
from psidp.release.flags import flagged
from psidp.release.notes import flag_notes, notes_on, private_keys, what_clipping_took
from psidp.release.plan import Plan, planned
from psidp.release.question import CLIPPING_SHARE, Question, check_unit, question
from psidp.release.source import open_source

__all__ = ["Curator"]

UNKEPT = "No ledger keeps count: what this and other releases cost together is yours to add up."


class Curator:
    """Private statistics from a table where it lies: the engine clips and counts, exact noise is added to the totals.

    Guarantees:
        A release with psi is psi-GDP for one unit's whole data, all aggregates, groups and bins together, except for
        kappa where keys are private (docs/design/curator.md). Totals are exact integers on every engine. With a ledger,
        the spend is durable before any noise is drawn. Refusals look at schema and parameters alone.

    Args:
        table: an Ibis table; a path to .parquet, .csv or .duckdb; a pandas, Polars or Arrow frame; or with `engine` a
            table's name.
        unit: the column that names units of privacy, such as "patient_id"; None where every row is one. Rows without a
            unit do not count.
        ledger: a psidp.Ledger. budget: the budget in it that pays.
        adjacency: "add-remove" or "replace-one"; the budget's unless told.
        protects: whose data is protected, in words; the budget's unless told, else the unit column's name.
        same_unit: why the units are the budget's all the same, in words, where `unit` is another column than the one
            that the budget's first release through a curator had, or None on a budget that is not per row.
        name: which table of a .duckdb file. engine: postgresql://... or spark://...
        types: what columns of a .csv file or a pandas frame hold, such as {"age": "int64"}: string, int64, float64,
            boolean, date or timestamp, read row by row; what does not read so is missing. Other columns of theirs are
            text, and numbers or dates where a question takes them for that.

    Examples:
        >>> import pyarrow as pa
        >>> from psidp.release import ask
        >>> visits = pa.table({"patient": [1, 1, 2, 3], "ward": ["A", "B", "A", "A"], "cost": [10.0, 20.0, 5.0, 7.0]})
        >>> curator = Curator(visits, unit="patient")
        >>> answer = curator.release(ask.count(), by="ward", keys=["A", "B", "C"], psi=1.0)
        >>> [row["ward"] for row in answer], answer.guarantee
        (['A', 'B', 'C'], Guarantee(psi=1.0, unit='patient'))
    """

    def __init__(
        self,
        table: Any,
        unit: str | None,
        *,
        ledger: Any = None,
        budget: str | None = None,
        adjacency: Adjacency | None = None,
        protects: str | None = None,
        same_unit: str = "",
        name: str | None = None,
        engine: str | None = None,
        types: Mapping[str, str] | None = None,
    ) -> None:
        if (ledger is None) != (budget is None):
            raise ValueError("ledger and budget must be given together, or neither.")
        if isinstance(ledger, str | Path):
            raise TypeError(f"ledger must be a psidp.Ledger, such as psidp.Ledger({str(ledger)!r}).")
        terms = None if ledger is None else ledger.budget(budget)
        source = open_source(table, name=name, engine=engine, types=types)
        self.table, self.untyped = source.table, source.untyped
        check_unit(unit, self.table.schema())
        if ledger is not None:
            ledger.check_unit(budget, unit, same_unit)
        self.unit, self.same_unit = unit, same_unit
        self.ledger, self.budget = ledger, budget
        self.adjacency: Adjacency = check_adjacency(adjacency or (terms.adjacency if terms else "add-remove"))
        words = protects or (terms.unit if terms else (unit or "record").removesuffix("_id"))
        self.protects: str = check_text("protects", words)
        self._engine = Engine(self.table)
        self._opened = self.table is not table
        self._source = table

    def __repr__(self) -> str:
        kept = f", budget={self.budget!r}" if self.budget else ""
        return f"Curator({self._engine.name} table, unit={self.unit!r}{kept})"

    def dispose(self) -> None:
        """Close the connection that was opened for a file, a frame or an address; one of your own stays open."""
        if self._opened:
            self._engine.dispose()

    def progress(self) -> float | None:
        """Percent of the running query that is done, where the engine says so; for another thread to ask."""
        return self._engine.progress()

    def plan(
        self,
        *asks: Aggregate,
        psi: float,
        by: str | Sequence[str] = (),
        keys: Any = None,
        where: Any = None,
        contribution: Contribution = 1.0,
        level: float = 0.95,
        clipping_share: float = CLIPPING_SHARE,
    ) -> Plan:
        """What `release` with the same arguments would run, cost and be worth. Reads no row and spends nothing."""
        return planned(self._question(asks, by, keys, where, psi, contribution, level, clipping_share), self._engine)

    def release(
        self,
        *asks: Aggregate,
        psi: float,
        by: str | Sequence[str] = (),
        keys: Any = None,
        where: Any = None,
        contribution: Contribution = 1.0,
        level: float = 0.95,
        clipping_share: float = CLIPPING_SHARE,
        purpose: str = "",
        key: str = "",
    ) -> Answer:
        """Noisy answers, paid for before they are drawn.

        Args:
            asks: what is asked: psidp.ask.count(), psidp.ask.sum("cost", 0, 5000), ...
            psi: what all of it costs together, (0, inf); shared by psi^2 in proportion to the aggregates' weights.
            by: column or columns that make groups.
            keys: the groups: public ones, or psidp.PrivateKeys(kappa=..., at_most=...).
            where: which rows, such as "age >= 18" or ibis._.age >= 18.
            contribution: rows' worth that one unit may add, [1, 2^20], or "auto"; an aggregate's own goes first.
            level: chance that an interval covers.
            clipping_share: part of psi^2, [0, 0.5], that goes into measuring how many units were clipped and how much
                of the total that took; 0 measures nothing. "auto" has measured it already.
            purpose: why, for the ledger; the question in words unless told.
            key: idempotency key: the same question under the same key gets the stored answer and costs nothing.

        Nothing is spent when the engine fails before noise could have been drawn.
        """
        asked = self._question(asks, by, keys, where, psi, contribution, level, clipping_share)
        if self.ledger is None:
            if key:
                raise ValueError("key (idempotency key) needs a ledger, which keeps the answer.")
            return self._answered(asked, prepare(asked, self._engine)()).settled(UNKEPT, False)
        return self._paid(asked, purpose or shorten(self._words(asked)), key)

    def _paid(self, asked: Question, purpose: str, key: str) -> Answer:
        """The release through the ledger."""
        event = {"kind": "guarantee", "unit_column": self.unit, "same_unit": self.same_unit}
        spend = self.ledger.spend(
            self.budget,
            asked.guarantee,
            purpose=purpose,
            key=key,
            request=asked.to_dict() if key else None,
            event=event,
        )
        draw = None if self._settled(asked, key) else prepare(asked, self._engine)
        with spend as entry:
            values = entry.answer(
                lambda: self._answered(asked, draw() if draw else prepare(asked, self._engine)()).to_dict()
            )
        answer = Answer.from_dict(values)
        left = self.ledger.remaining(self.budget)
        kappa = f" and kappa = {left.kappa:.3g}" if asked.guarantee.kappa else ""
        meant = Context(prec=14).create_decimal_from_float(left.psi)
        psi = Context(prec=6, rounding=ROUND_FLOOR).plus(meant).normalize()
        said = f"Budget {self.budget!r} has psi = {psi:f}{kappa} left."
        return answer.settled(said, entry.stored)

    def _settled(self, asked: Question, key: str) -> bool:
        """Whether the ledger will answer or refuse by itself, so that the engine need not work."""
        if key and self.ledger.answered(self.budget, key):
            return True
        left = self.ledger.remaining(self.budget)
        return not (asked.guarantee.psi <= left.psi and asked.guarantee.kappa <= left.kappa)

    def _question(
        self,
        asks: Sequence[Aggregate],
        by: str | Sequence[str],
        keys: Any,
        where: Any,
        psi: float,
        contribution: Contribution,
        level: float,
        clipping_share: float = CLIPPING_SHARE,
    ) -> Question:
        return question(
            self.table, self.unit, asks, by=by, keys=keys, where=where, psi=psi, contribution=contribution,
            adjacency=self.adjacency, protects=self.protects, level=level, clipping_share=clipping_share,
            source=self._source, untyped=self.untyped,
        )  # fmt: skip

    def _answered(self, asked: Question, drawn: Drawn) -> Answer:
        """The answer made of noisy totals."""
        judged = [_estimated(part, len(drawn.keys), asked.level) for part in drawn.parts]
        rows = tuple((key, e) for group, key in enumerate(drawn.keys) for part in judged for e in part[group])
        said = [f"Asked: {self._words(asked)}.", *what_clipping_took(asked, drawn)]
        said += [private_keys(asked)] if asked.private else []
        said += (
            [] if drawn.keys else ["No key came through. More psi, a larger kappa or coarser groups let more through."]
        )
        said += flag_notes([e for _, e in rows])
        return Answer(asked.by, rows, asked.guarantee, asked.level, (*said, *notes_on(asked)))

    def _words(self, asked: Question) -> str:
        """The question in words."""
        groups = f" by {', '.join(asked.by)}" if asked.by else ""
        some = f" where {asked.some}" if asked.some else ""
        return f"{', '.join(a.name for a in asked.asks)}{groups}{some}"


def _estimated(part: Part, groups: int, level: float) -> list[list[Estimate]]:
    """What one aggregate says of each group, flagged where clipping may have moved it."""
    lost = nan if part.norms is None else part.norms.lost(part.contribution)[0]
    found = [estimates(part.aggregate, part.lattice, part.noisy, group, level) for group in range(groups)]
    return flagged(part.aggregate, found, lost)
