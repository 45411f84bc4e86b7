"""Curator: the trusted keeper of a table. Answers questions with noise, writes down what they cost, and says so."""

import datetime
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self, Unpack

from psidp.curator.answer import Answer, Note
from psidp.curator.ask import Aggregate, Contribution, UpTo, count
from psidp.curator.calendar import Calendar, Every, as_date
from psidp.curator.column_types import has_columns, without_words
from psidp.curator.cube import Cube
from psidp.curator.cube_plan import CubePlan, cube_planned, cube_words, prepare_cube
from psidp.curator.cube_price import Errors
from psidp.curator.cube_query import Bound, CubeQuery, cube_question
from psidp.curator.derived_columns import derived_cube, derived_table, with_groups
from psidp.curator.engine import Engine, open_source
from psidp.curator.execute import prepare
from psidp.curator.notes import answer_of, question_words
from psidp.curator.payment import Given, Payer, standing, table_name
from psidp.curator.plan import Plan, planned
from psidp.curator.price import Wanted, price_of, priced_by_error, psi_of_notion
from psidp.curator.public_table import joined_table
from psidp.curator.query import CLIPPING_SHARE, Query, check_unit, question
from psidp.curator.stream import WAIT, Stream
from psidp.curator.stream_question import check_groups, check_wait, place_of, stream_question, table_words
from psidp.curator.unit import columns_of, pinned, unit_of
from psidp.maths.notion import Notions, spelled_out
from psidp.maths.sensitivity import Adjacency, check_adjacency
from psidp.strategies.residual_plan import Balance
from psidp.symbols import check_text

__all__ = ["Curator"]

UNKEPT = "No ledger keeps count: what this and other releases cost together is yours to add up."


class Curator:
    """Private statistics from a table where it lies: the engine clips and counts, exact noise is added to the totals.

    Guarantees:
        A release with psi is psi-GDP for one unit's whole data, all aggregates, groups and bins together, except for
        kappa where groups are private (docs/design/curator.md). Totals are exact integers on every engine. With a
        ledger, the spend is durable before any noise is drawn. Refusals look at schema and parameters alone.

    Args:
        table: an Ibis table; a path to .parquet, .csv or .duckdb, a folder, a pattern or a list of files; a pandas,
            Polars or Arrow frame; or with `engine` a table's name.
        unit: the column that names units of privacy, such as "patient_id"; several that do so together, such as
            ("carrier", "day"); None where every row is one. Rows without a unit, or a part of it, do not count.
        ledger: a psidp.Ledger. budget: the budget in it that pays.
        adjacency: "add-remove" or "replace-one"; the budget's unless told.
        protects: whose data is protected, in words; the budget's unless told, else the unit column's name.
        same_unit: why the units are the budget's all the same, in words, where `unit` is another column than the one
            that the budget's first release through a curator had, or None on a budget that is not per row.
        name: which table of a .duckdb file. engine: postgresql://... or spark://...
        types: what columns of a .csv file or a pandas frame hold, such as {"age": "int64"}: string, int64, float64,
            boolean, date or timestamp, read row by row; what does not read so is missing. Other columns of theirs are
            text, and numbers or dates where a question takes them for that.
        missing: texts of theirs that stand for a missing value, such as "NA"; an empty field always does.

    Examples:
        >>> import pyarrow as pa
        >>> from psidp.curator import ask
        >>> visits = pa.table({"patient": [1, 1, 2, 3], "ward": ["A", "B", "A", "A"], "cost": [10.0, 20.0, 5.0, 7.0]})
        >>> curator = Curator(visits, unit="patient")
        >>> answer = curator.release(ask.count(), by="ward", groups=["A", "B", "C"], psi=1.0)
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
        source = open_source(table, name=name, engine=engine, types=types)
        self.table, self.untyped, self._first = source.table, source.untyped, source.table
        if missing is not None:
            self.table = without_words(self.table, {*self.untyped, *(types or ())}, missing)
        self.unit, self.same_unit = unit_of(unit), same_unit
        check_unit(self.unit, self.table.schema())
        if ledger is not None:
            ledger.check_unit(budget, pinned(self.unit), same_unit)
        self.ledger, self.budget = ledger, budget
        self.adjacency: Adjacency = check_adjacency(adjacency or (terms.adjacency if terms else "add-remove"))
        if self.adjacency == "zero-out":
            raise ValueError(
                'adjacency must be "add-remove" or "replace-one" for a table, got adjacency="zero-out": it is for '
                "trainings that go by the position of a record."
            )
        named = " and ".join(name.removesuffix("_id") for name in columns_of(self.unit)) or "record"
        words = protects or (terms.unit if terms else named)
        self.protects: str = check_text("protects", words)
        self._engine = Engine(self.table)
        self._opened = self.table is not table
        self._source, self._table_name = table, "" if ledger is None else table_name(table, name, engine)
        self.public: Mapping[str, tuple[Any, ...]] = {}

    def __repr__(self) -> str:
        kept = f", budget={self.budget!r}" if self.budget else ""
        return f"Curator({self._engine.name} table, unit={self.unit!r}{kept})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.dispose()

    def dispose(self) -> None:
        """Close the connection that was opened for a file, a frame or an address; one of your own stays open."""
        if self._opened:
            self._engine.dispose()

    def join(self, public: Any, on: str, columns: Sequence[str] | None = None) -> Self:
        """A curator whose table has columns of a public table besides, looked up by a key that is unique there.

        Args:
            public: {"ward": ["A", "B"], "region": ["north", "south"]}, a frame, an Ibis table, or a .csv or .parquet
                file. on: the key, a column of both. columns: those to take; all unless told.

        Rows whose key is not there have NULL. The values are public, so that groups of such a column may be left out.
        """
        made = joined_table(self.table, public, on, columns, self.untyped, self._source)
        joined = copy(self)
        joined.table, joined.public = made.table, {**self.public, **made.values}
        return joined

    def progress(self) -> float | None:
        """Percent of the running query that is done, where the engine says so; for another thread to ask."""
        return self._engine.progress()

    @spelled_out
    def plan(
        self,
        *asks: Aggregate,
        psi: float | None = None,
        error: Wanted | None = None,
        by: str | Sequence[str] = (),
        groups: Any = None,
        where: Any = None,
        contribution: Contribution = 1.0,
        confidence: float = 0.95,
        clipping_share: float = CLIPPING_SHARE,
        retry_key: str = "",
        **notions: Unpack[Notions],
    ) -> Plan:
        """What `release` with the same arguments would run, cost and be worth. Reads no row and spends nothing."""
        asked = self._question(asks, by, groups, where, psi, contribution, confidence, clipping_share, error, notions)
        made, ledger = planned(asked, self._engine), self.ledger
        said = () if ledger is None else (Note("budget", standing(ledger, str(self.budget), asked, retry_key)),)
        return replace(made, notes=(*made.notes, *said))

    @spelled_out
    def release(
        self,
        *asks: Aggregate,
        psi: float | None = None,
        error: Wanted | None = None,
        by: str | Sequence[str] = (),
        groups: Any = None,
        where: Any = None,
        contribution: Contribution = 1.0,
        confidence: float = 0.95,
        clipping_share: float = CLIPPING_SHARE,
        purpose: str = "",
        retry_key: str = "",
        **notions: Unpack[Notions],
    ) -> Answer:
        """Noisy answers, paid for before they are drawn.

        Args:
            asks: what is asked: psidp.ask.count(), psidp.ask.sum("cost", 0, 5000), ...
            psi: what all of it costs together, (0, inf); shared by psi^2 in proportion to the aggregates' weights.
            notions: instead of psi, a notion of Guarantee.gaussian, such as epsilon=1, delta=1e-6 or auc=0.6; the
                kappa of private groups comes out of it.
            error: instead of psi, the standard error that is wanted: of a count in rows, of a sum in its unit, of a
                mean as (error, rows of a group), of a quantile in ranks; for several aggregates {name: error}. The
                least psi that reaches it is paid.
            by: column or columns that make groups, or what is derived from them, such as "month(visited)".
            groups: the groups: public ones, or psidp.PrivateGroups(kappa=..., at_most=...). They may be left out for
                derived columns whose values are known, such as months.
            where: which rows, such as "age >= 18 and ward in ('A', 'B')" or ibis._.age >= 18.
            contribution: rows' worth that one unit may add, [1, 2^20], or "auto"; an aggregate's own goes first.
            confidence: chance that an interval covers.
            clipping_share: part of psi^2, [0, 0.5], that goes into measuring how many units were clipped and how much
                of the total that took; 0 measures nothing. "auto" has measured it already.
            purpose: why, for the ledger; the question in words unless told.
            retry_key: idempotency key: the same question under the same key gets the stored answer and costs nothing.
                Frames are told apart by their columns alone: use another key for another frame.

        Nothing is spent when the engine fails before noise could have been drawn.
        """
        asked = self._question(asks, by, groups, where, psi, contribution, confidence, clipping_share, error, notions)

        def ready() -> Callable[[], Answer]:
            draw = prepare(asked, self._engine)
            return lambda: answer_of(asked, draw())

        return self._released(asked, ready, Answer.from_dict, question_words(asked), purpose, retry_key)

    @spelled_out
    def stream(
        self,
        name: str,
        *asks: Aggregate,
        every: Every,
        since: datetime.date | str,
        periods: int,
        psi: float | None = None,
        arrived: str | None = None,
        totals: Literal["sealed"] | None = None,
        dated: str | None = None,
        seal: str | Path | None = None,
        at_most: int | None = None,
        apart: int = 1,
        each: int | Every | None = None,
        by: str | Sequence[str] = (),
        groups: Any = None,
        where: Any = None,
        contribution: float = 1.0,
        windows: Sequence[int] = (),
        confidence: float = 0.95,
        wait: datetime.timedelta = WAIT,
        **notions: Unpack[Notions],
    ) -> Stream:
        """Counts, units or sums that are published in every period, for one psi paid once: plan, open, publish, series.

        Args:
            name: what it is called in the ledger; asks, by, groups, where, contribution and confidence as in `release`,
                the contribution being what one unit may add to one period.
            every: "day", "week", "month", "quarter" or "year". since: the first day of the first. periods: how many
                there will be at most; a generous number costs little.
            psi: what all periods cost together; or a notion, as in `release`.
            arrived: the column that says when a row came into the table: a row counts in the period of its arrival.
                What arrived in a period that is over must not change; corrections arrive as rows of their own.
            totals: "sealed", instead of `arrived`, for a table that is written anew: a row counts in the period of the
                column `dated`, as the table is when that period is published, and the file `seal` keeps what was
                counted. It is as secret as the table.
            at_most: the number of periods in which a unit counts, its first ones. each: a unit counts once in each
                bucket: "month", "quarter", "year", or so many periods. apart: a unit counts in a period where it has no
                row in the apart - 1 periods before.
            windows: lengths of windows that matter, beside single periods and totals to date.
            wait: how long after its end a period is published, so that what arrived in it is there.

        Nothing is read and nothing spent before `open` and `publish`.
        """
        if self.ledger is None or self.budget is None:
            raise ValueError("a stream needs a ledger and a budget, which keep its strategy and what it published.")
        check_groups(by, groups)
        asked = self._question(asks, by, groups, where, psi, contribution, confidence, 0.0, None, notions)
        calendar = Calendar(every, as_date("since", since), periods)
        promise = stream_question(asked, calendar, at_most, apart, each)
        place = place_of(asked, self.table.schema(), self.untyped, arrived, totals, dated, seal)
        place = place._replace(table=table_words(self._first, self._source))
        return Stream(
            name, asked, self._engine, calendar, promise, place, untyped=place.column in self.untyped, windows=windows,
            wait=check_wait(wait), ledger=self.ledger, budget=self.budget, same_unit=self.same_unit,
            table=self._table_name,
        )  # fmt: skip

    @spelled_out
    def plan_cube(
        self,
        columns: Mapping[str, Any],
        tables: UpTo | Sequence[str | Sequence[str]],
        *,
        measures: Sequence[Aggregate] = (count(),),
        psi: float | None = None,
        errors: Errors | None = None,
        balance: Balance = "worst",
        contribution: Contribution = 1.0,
        bound: Bound = "rows",
        where: Any = None,
        confidence: float = 0.95,
        clipping_share: float = CLIPPING_SHARE,
        **notions: Unpack[Notions],
    ) -> CubePlan:
        """What `cube` with the same arguments would run, cost and be worth. Reads no row and spends nothing."""
        asked = self._cube(
            columns, tables, measures, psi, errors, balance, contribution, bound, where, confidence, clipping_share,
            notions,
        )  # fmt: skip
        return cube_planned(asked, self._engine)

    @spelled_out
    def cube(
        self,
        columns: Mapping[str, Any],
        tables: UpTo | Sequence[str | Sequence[str]],
        *,
        measures: Sequence[Aggregate] = (count(),),
        psi: float | None = None,
        errors: Errors | None = None,
        balance: Balance = "worst",
        contribution: Contribution = 1.0,
        bound: Bound = "rows",
        where: Any = None,
        confidence: float = 0.95,
        clipping_share: float = CLIPPING_SHARE,
        purpose: str = "",
        retry_key: str = "",
        **notions: Unpack[Notions],
    ) -> Cube:
        """Many tables over the same columns for one psi, which agree with each other and have the least error.

        Args:
            columns: each column with its public values: {"origin": ["EWR", "JFK"], "month": range(1, 13), "delay":
                psidp.ask.bins(edges)}; psidp.ask.ordered(edges) where cumulative sums or quantiles are asked of it.
                None for a derived column whose values are known: {"month(visited)": None}.
            tables: psidp.ask.up_to(3) for all of one to three columns, or a list such as [("origin", "month")].
            measures: what is asked of every cell: psidp.ask.count(), .sum("fare", 0, 100), .mean("delay", -60, 180).
            psi: what all of it costs together; or a notion, as in `release`. errors: instead, standard errors that
                counts shall have, by table or by number of columns: {("origin",): 2, 2: 5}; the least psi that reaches
                them is paid.
            balance: "worst" for the least error of the worst table, so that none is worse than by itself at its share
                of psi; "total" for the least sum over all cells, which favours large tables.
            contribution: rows' worth that one unit may add, [1, 2^20]; where it has more, its rows count less, alike.
                "auto" chooses it privately, with a tenth of psi^2.
            bound: "rows" takes the number of a unit's rows for that; "image" what they are worth together under the
                noise, which is less where they lie in different cells.
            where, confidence, clipping_share, purpose, retry_key: as in `release`.

        Nothing is spent when the engine fails before noise could have been drawn.
        """
        asked = self._cube(
            columns, tables, measures, psi, errors, balance, contribution, bound, where, confidence, clipping_share,
            notions,
        )  # fmt: skip
        ready = partial(prepare_cube, asked, self._engine)
        return self._released(asked, ready, Cube.from_dict, cube_words(asked), purpose, retry_key)

    def _released(
        self, asked: Query | CubeQuery, prepare: Callable[[], Callable[[], Given]],
        read: Callable[[dict[str, Any]], Given], words: str, purpose: str, retry_key: str,
    ) -> Given:  # fmt: skip
        """What `prepare` makes ready, drawn once it is paid for, where there is a ledger."""
        if self.ledger is not None:
            payer = Payer(self.ledger, str(self.budget), self.unit, self.same_unit, self._table_name)
            return payer.release(asked, prepare, read, words, purpose, retry_key)
        if retry_key:
            raise ValueError("retry_key (idempotency key) needs a ledger, which keeps the answer.")
        return prepare()().settled(UNKEPT, False)

    def _cube(
        self, columns: Mapping[str, Any], tables: Any, measures: Sequence[Aggregate], psi: float | None,
        errors: Errors | None, balance: Balance, contribution: Contribution, bound: Bound, where: Any,
        confidence: float, clipping_share: float, notions: Notions | None = None,
    ) -> CubeQuery:  # fmt: skip
        psi, words = psi_of_notion(psi, notions) if notions else (psi, "")
        made = derived_cube(self.table, columns, measures, self.untyped, self.public)
        asked = cube_question(
            made.table, self.unit, columns=made.columns, tables=tables, measures=made.asks, psi=psi, errors=errors,
            balance=balance, contribution=contribution, clipping_share=clipping_share, bound=bound, where=where,
            adjacency=self.adjacency, protects=self.protects, confidence=confidence, source=self._source,
            untyped=self.untyped, readings=made.readings,
        )  # fmt: skip
        return replace(asked, price=words)

    def _question(
        self,
        asks: Sequence[Aggregate],
        by: str | Sequence[str],
        groups: Any,
        where: Any,
        psi: float | None,
        contribution: Contribution,
        confidence: float,
        clipping_share: float = CLIPPING_SHARE,
        error: Wanted | None = None,
        notions: Notions | None = None,
    ) -> Query:
        table, readings = self.table, tuple[tuple[str, str], ...]()
        if self.public or not has_columns(table, by, asks):
            made = derived_table(table, by, asks, self.untyped, self.public)
            groups, readings = with_groups(made, groups, self._source), made.readings
            table, by, asks = made.table, made.by, made.asks
        plain = psi if error is None and not notions else None
        cost, words = (plain, "") if plain is not None else price_of(psi, notions or {}, error, groups)
        asked = question(
            table, self.unit, asks, by=by, groups=groups, where=where, psi=cost, contribution=contribution,
            adjacency=self.adjacency, protects=self.protects, confidence=confidence, clipping_share=clipping_share,
            source=self._source, untyped=self.untyped, readings=readings,
        )  # fmt: skip
        return replace(asked, price=words) if error is None else priced_by_error(asked, error)
