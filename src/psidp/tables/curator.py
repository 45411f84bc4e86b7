"""Curator: keeps a table private. Its questions are answered with noise, and a ledger records what they cost."""

import datetime
from collections.abc import Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any, Self

from psidp.maths.sensitivity import Adjacency, check_adjacency
from psidp.strategies.residual_plan import Balance
from psidp.symbols import check_text
from psidp.tables.ask import Ask, Cap, Contribution, UpTo, count
from psidp.tables.calendar import Calendar, Every, as_date
from psidp.tables.columns import check_unit, unit_columns
from psidp.tables.cube import Bound, CubeQuestion, cube_question
from psidp.tables.payment import Payment, unit_column
from psidp.tables.question import CLIPPING_SHARE, Question
from psidp.tables.sources import joined, open_source
from psidp.tables.stored import read_question
from psidp.tables.stream import WAIT, StreamQuestion, lasting_groups, stream_question
from psidp.tables.table import TableQuestion, table_question

__all__ = ["Curator"]


class Curator:
    """Private statistics from a table where it lies: the engine clips and counts, exact noise is added to the totals.

    Guarantees:
        A release with psi is psi-GDP for one unit's whole data, all measures, groups and bins together, except for
        kappa where groups are private (docs/design/tables.md). Totals are exact integers on every engine. With a
        ledger, the spend is durable before any noise is drawn. Refusals look at schema and parameters alone.

    Args:
        table: a path to .parquet, .csv or .duckdb, a folder, a pattern or a list of files; a pandas, Polars or Arrow
            frame; a DuckDB connection with `name`; or with `engine` a table's name.
        unit: the column that names units of privacy, such as "patient_id"; several that do so together, such as
            ("carrier", "day"); None where every row is one. Rows without a unit, or a part of it, do not count.
        ledger: a psidp.Ledger. budget: the budget in it that pays.
        adjacency: "add-remove" or "replace-one"; defaults to the budget's.
        protects: whose data is protected, in words; defaults to the budget's, else to the unit column's name.
        same_unit: why the units are the budget's all the same, in words, where `unit` is another column than the one
            that the budget's first release through a curator had, or None on a budget that is not per row.
        name: which table of a .duckdb file or a connection. engine: postgresql://... or spark://...
        types: what columns of a .csv file or a pandas frame hold, such as {"age": "int64"}: string, int64, float64,
            boolean, date or timestamp, read row by row; values that cannot be parsed are missing. Other columns are
            text, and numbers or dates where a question takes them for that.
        missing: texts that stand for a missing value there, such as "NA"; an empty field always does.

    Examples:
        >>> import pyarrow as pa
        >>> from psidp import ask
        >>> visits = pa.table({"patient": [1, 1, 2, 3], "ward": ["A", "B", "A", "A"], "cost": [10.0, 20.0, 5.0, 7.0]})
        >>> question = Curator(visits, unit="patient").ask(ask.count(), by="ward", groups=["A", "B", "C"])
        >>> answer = question.release(psi=1.0)
        >>> [row["ward"] for row in answer], answer.guarantee
        (['A', 'B', 'C'], Guarantee(psi=1.0, unit='patient'))
    """

    def __init__(
        self,
        table: Any,
        unit: str | Sequence[str] | None,
        *,
        ledger: Any = None,
        budget: str | None = None,
        adjacency: Adjacency | None = None,
        protects: str | None = None,
        same_unit: str = "",
        name: str | None = None,
        engine: str | None = None,
        types: Mapping[str, str] | None = None,
        missing: str | Sequence[str] | None = None,
    ) -> None:
        if (ledger is None) != (budget is None):
            raise ValueError("ledger and budget must be given together, or neither.")
        if isinstance(ledger, str | Path):
            raise TypeError(f"ledger must be a psidp.Ledger, such as psidp.Ledger({str(ledger)!r}).")
        terms = None if ledger is None else ledger.budget(budget)
        self.given, self.unit_columns = table, unit_columns(unit)
        self.adjacency: Adjacency = check_adjacency(adjacency or (terms.adjacency if terms else "add-remove"))
        if self.adjacency == "zero-out":
            raise ValueError(
                'adjacency must be "add-remove" or "replace-one" for a table, got adjacency="zero-out": it is for '
                "trainings that go by the position of a record."
            )
        named = " and ".join(column.removesuffix("_id") for column in self.unit_columns) or "record"
        self.protects: str = check_text("protects", protects or (terms.unit if terms else named))
        if ledger is not None:
            ledger.check_unit(budget, unit_column(self.unit_columns), same_unit)
        self.source = open_source(table, name=name, engine=engine, types=types, missing=missing)
        try:
            check_unit(self.unit_columns, self.source.schema)
        except (TypeError, ValueError):
            self.source.close()
            raise
        self.payment = Payment(ledger, budget or "", self.unit_columns, same_unit, self.source.name)
        self.public: Mapping[str, tuple[Any, ...]] = {}
        words = [missing] if isinstance(missing, str) else missing
        self.readings: dict[str, list[str]] = {"missing": sorted(set(words))} if words else {}
        self._whole = self.source  # before public tables are joined to it

    @property
    def unit(self) -> str | tuple[str, ...] | None:
        """The column, or the columns together, that name units; None where every row is one."""
        return self.unit_columns[0] if len(self.unit_columns) == 1 else self.unit_columns or None

    @property
    def ledger(self) -> Any:
        """The ledger that records what is spent, or None."""
        return self.payment.ledger

    @property
    def budget(self) -> str | None:
        """The budget that pays, or None."""
        return self.payment.budget or None

    @property
    def identity(self) -> dict[str, Any]:
        """Which table questions are about and how it is read, as plain values: frames are told apart by their columns
        alone."""
        return {
            "table": self._whole.place,
            "schema": {name: kind.native for name, kind in self.source.schema.items()},
            "unit": unit_column(self.unit_columns),
            **self.readings,
        }

    @property
    def home(self) -> str:
        """Which table it is, whatever files are added to it later."""
        return self._whole.home

    def __repr__(self) -> str:
        kept = f", budget={self.budget!r}" if self.budget else ""
        return f"Curator({self.source.engine.name} table, unit={self.unit!r}{kept})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.dispose()

    def dispose(self) -> None:
        """Close the connection that was opened for a file, a frame or an address; one of your own stays open."""
        self.source.close()

    def join(self, public: Any, on: str, columns: Sequence[str] | None = None) -> Self:
        """A curator whose table also has columns of a public table, looked up by a key that is unique there.

        Args:
            public: {"ward": ["A", "B"], "region": ["north", "south"]}, a frame, or a .csv or .parquet file. on: the
                key, a column of both. columns: those to take; defaults to all.

        Rows whose key is not there have NULL. The values are public, so that groups of such a column may be left out.
        """
        source, values, said = joined(self.source, public, on, columns, self.given)
        other = copy(self)
        other.source, other.public = source, {**self.public, **values}
        other.readings = self.readings | {"joined": [*self.readings.get("joined", []), said]}
        return other

    def progress(self) -> float | None:
        """Percent of the running query that is done, where the engine reports it; for another thread to ask."""
        return self.source.engine.progress()

    def ask(
        self,
        *asks: Ask,
        by: str | Sequence[str] = (),
        groups: Any = None,
        where: str | None = None,
        contribution: Contribution = 1.0,
        confidence: float = 0.95,
        clipping_share: float = CLIPPING_SHARE,
    ) -> TableQuestion:
        """A question about groups: a value with `plan` and `release`. Reads no row and spends nothing.

        Args:
            asks: the measures: psidp.ask.count(), psidp.ask.sum("cost", 0, 5000), ...
            by: column or columns that make groups, or what is derived from them, such as "month(visited)".
            groups: the groups: public ones, or psidp.PrivateGroups(kappa=..., at_most=...). They may be left out for
                derived columns whose values are known, such as months.
            where: which rows, in SQL, such as "age >= 18 and ward in ('A', 'B')".
            contribution: rows' worth that one unit may add, [1, 2^20], or "auto"; a measure's own goes first.
            confidence: chance that an interval covers.
            clipping_share: part of psi^2, [0, 0.5], that goes into measuring how many units were clipped and how much
                of the total that took; 0 measures nothing. "auto" has measured it already.
        """
        return table_question(self, asks, by, groups, where, contribution, confidence, clipping_share)

    def cube(
        self,
        columns: Mapping[str, Any],
        tables: UpTo | Sequence[str | Sequence[str]],
        *,
        measures: Sequence[Ask] = (count(),),
        balance: Balance = "worst",
        contribution: Contribution = 1.0,
        bound: Bound = "rows",
        where: str | None = None,
        confidence: float = 0.95,
        clipping_share: float = CLIPPING_SHARE,
    ) -> CubeQuestion:
        """A question about many tables over the same columns, which agree with each other and have the least error.

        Args:
            columns: each column with its public values: {"origin": ["EWR", "JFK"], "month": range(1, 13), "delay":
                psidp.ask.bins(edges)}; psidp.ask.ordered(edges) where cumulative sums or quantiles are asked of it.
                None for a derived column whose values are known: {"month(visited)": None}.
            tables: psidp.ask.up_to(3) for all of one to three columns, or a list such as [("origin", "month")].
            measures: what is asked of every cell: psidp.ask.count(), .sum("fare", 0, 100), .mean("delay", -60, 180).
            balance: "worst" for the least error of the worst table, so that none is worse than by itself at its share
                of psi; "total" for the least sum over all cells, which favours large tables.
            contribution: rows' worth that one unit may add, [1, 2^20]; where it has more, its rows count less, alike.
                "auto" chooses it privately, with a tenth of psi^2.
            bound: "rows" takes the number of a unit's rows for that; "image" what they are worth together under the
                noise, which is less where they lie in different cells.
            where, confidence, clipping_share: as in `ask`.
        """
        return cube_question(
            self, columns, tables, measures, balance=balance, contribution=contribution, bound=bound, where=where,
            confidence=confidence, clipping_share=clipping_share,
        )  # fmt: skip

    def stream(
        self,
        name: str,
        *asks: Ask,
        every: Every,
        since: datetime.date | str,
        periods: int,
        arrived: str,
        by: str | Sequence[str] = (),
        groups: Any = None,
        where: str | None = None,
        contribution: float = 1.0,
        cap: Cap | None = None,
        windows: Sequence[int] = (),
        confidence: float = 0.95,
        wait: datetime.timedelta = WAIT,
    ) -> StreamQuestion:
        """A question that is answered again in every period, for one psi paid once: a value with `plan` and `open`.

        Args:
            name: what it is called in the ledger; asks, by, groups, where, contribution and confidence as in `ask`,
                the contribution being what one unit may add to one period.
            every: "day", "week", "month", "quarter" or "year". since: the first day of the first. periods: how many
                there will be at most; a generous number costs little.
            arrived: the column that says when a row came into the table: a row counts in the period of its arrival.
                What arrived in a period that is over must not change; corrections arrive as new rows.
            cap: in which periods a unit counts, such as psidp.ask.cap(at_most=3); needed with a unit.
            windows: lengths of windows that matter, beside single periods and totals to date.
            wait: how long after its end a period is published, so that what arrived in it is there.

        Reads no row and spends nothing.
        """
        table = table_question(self, asks, by, lasting_groups(by, groups), where, contribution, confidence, 0.0)
        calendar = Calendar(every, as_date("since", since), periods)
        return stream_question(table, name, calendar, arrived, cap, windows, wait)

    def question(self, values: Mapping[str, Any]) -> Question:
        """The question that `to_dict` wrote, about this table."""
        return read_question(self, values)
