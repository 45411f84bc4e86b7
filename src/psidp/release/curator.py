"""Curator: the trusted keeper of a table. Answers questions with noise, writes down what they cost, and says so."""

from collections.abc import Mapping, Sequence
from decimal import ROUND_FLOOR, Context
from pathlib import Path
from typing import Any

from psidp.maths.sensitivity import Adjacency, check_adjacency
from psidp.release.answer import Answer
from psidp.release.ask import Aggregate, Contribution
from psidp.release.budget import check_text, shorten
from psidp.release.drawing import Drawn, prepare
from psidp.release.engine import Engine
from psidp.release.estimate import estimates
from psidp.release.plan import Plan, notes_on, planned, private_keys
from psidp.release.question import Question, check_unit, question
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
        self.unit = unit
        self.ledger, self.budget = ledger, budget
        self.adjacency: Adjacency = check_adjacency(adjacency or (terms.adjacency if terms else "add-remove"))
        words = protects or (terms.unit if terms else (unit or "record").removesuffix("_id"))
        self.protects: str = check_text("protects", words)
        self._engine = Engine(self.table)
        self._opened = self.table is not table

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
    ) -> Plan:
        """What `release` with the same arguments would run, cost and be worth. Reads no row and spends nothing."""
        return planned(self._question(asks, by, keys, where, psi, contribution, level), self._engine)

    def release(
        self,
        *asks: Aggregate,
        psi: float,
        by: str | Sequence[str] = (),
        keys: Any = None,
        where: Any = None,
        contribution: Contribution = 1.0,
        level: float = 0.95,
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
            purpose: why, for the ledger; the question in words unless told.
            key: idempotency key: the same question under the same key gets the stored answer and costs nothing.

        Nothing is spent when the engine fails before noise could have been drawn.
        """
        asked = self._question(asks, by, keys, where, psi, contribution, level)
        if self.ledger is None:
            if key:
                raise ValueError("key (idempotency key) needs a ledger, which keeps the answer.")
            return self._answered(asked, prepare(asked, self._engine)()).settled(UNKEPT, False)
        return self._paid(asked, purpose or shorten(self._words(asked)), key)

    def _paid(self, asked: Question, purpose: str, key: str) -> Answer:
        """The release through the ledger."""
        spend = self.ledger.spend(
            self.budget, asked.guarantee, purpose=purpose, key=key, request=asked.to_dict() if key else None
        )
        draw = None if self._settled(asked, key) else prepare(asked, self._engine)
        with spend as entry:
            before = bool(entry.answered)
            values = entry.answer(
                lambda: self._answered(asked, draw() if draw else prepare(asked, self._engine)()).to_dict()
            )
        answer = Answer.from_dict(values)
        left = self.ledger.remaining(self.budget)
        kappa = f" and kappa = {left.kappa:.3g}" if asked.guarantee.kappa else ""
        meant = Context(prec=14).create_decimal_from_float(left.psi)
        psi = Context(prec=6, rounding=ROUND_FLOOR).plus(meant).normalize()
        said = f"Budget {self.budget!r} has psi = {psi:f}{kappa} left."
        return answer.settled(said, before)

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
    ) -> Question:
        return question(
            self.table, self.unit, asks, by=by, keys=keys, where=where, psi=psi, contribution=contribution,
            adjacency=self.adjacency, protects=self.protects, level=level, untyped=self.untyped,
        )  # fmt: skip

    def _answered(self, asked: Question, drawn: Drawn) -> Answer:
        """The answer made of noisy totals."""
        rows = tuple(
            (key, estimate)
            for group, key in enumerate(drawn.keys)
            for a, lattice, noisy in drawn.noisy
            for estimate in estimates(a, lattice, noisy, group, asked.level)
        )
        said = [f"Asked: {self._words(asked)}."]
        alike: dict[float, list[str]] = {}
        for a, c in zip(asked.asks, drawn.contributions, strict=True):
            alike.setdefault(c, []).append(a.name)
        for c, names in alike.items() if self.unit is not None else ():
            worth = "one row's worth" if c == 1.0 else f"{c:g} rows' worth"
            said.append(f"{', '.join(names)}: one {self.protects} adds at most {worth} (L2, over all groups).")
        said += [private_keys(asked)] if asked.private else []
        said += (
            [] if drawn.keys else ["No key came through. More psi, a larger kappa or coarser groups let more through."]
        )
        return Answer(asked.by, rows, asked.guarantee, asked.level, (*said, *notes_on(asked)))

    def _words(self, asked: Question) -> str:
        """The question in words."""
        groups = f" by {', '.join(asked.by)}" if asked.by else ""
        some = f" where {asked.some}" if asked.some else ""
        return f"{', '.join(a.name for a in asked.asks)}{groups}{some}"
