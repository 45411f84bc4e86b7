"""Tables: measures by group, planned, priced and released."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import inf, nan, sqrt
from typing import Any, Unpack

from psidp.maths.notion import Notions, spelled_out
from psidp.tables.answer import Answer
from psidp.tables.ask import Ask, Contribution, check_contribution
from psidp.tables.choices.private_groups import PrivateGroups
from psidp.tables.columns import check_key, need_column
from psidp.tables.derived import derived_table
from psidp.tables.estimate import Estimate
from psidp.tables.flags import judged
from psidp.tables.measures import Measure
from psidp.tables.payment import Payment
from psidp.tables.plan import ROWS, Expected, Plan
from psidp.tables.price import Wanted, wanted_errors
from psidp.tables.question import Drawn, Priced, Question
from psidp.tables.sources.public_groups import key_tuples, key_types, public_groups, refuse_own_groups
from psidp.tables.strategies.identity import Identity
from psidp.tables.words import answer_notes, full_words, groups_words, plan_notes

__all__ = ["TableQuestion", "check_asks", "check_terms", "table_question"]

EXAMPLE = 64
"""A contribution that a plan's examples suppose, where one is to be chosen."""

ROOM = 1.0 + 2.0**-40
"""psi is a little more than errors need, so that rounding leaves none of them above what was asked."""


@dataclass(frozen=True, slots=True)
class TableQuestion(Question):
    """Measures of groups: `Curator.ask` makes one; `plan` says what it would cost and be worth, `release` answers."""

    @spelled_out
    def plan(
        self, psi: float | None = None, *, error: Wanted | None = None, retry_key: str = "", **notions: Unpack[Notions]
    ) -> Plan:
        """What `release` with the same arguments would run, cost and be worth. Reads no row and spends nothing."""
        priced = self.priced(psi, error, notions)
        expected = tuple(_expected(priced, j) for j in range(len(self.asks)))
        notes = plan_notes(priced) + self.curator.payment.notes(priced, retry_key)
        return Plan(priced.guarantee, expected, tuple(priced.sql()), groups_words(priced), notes)

    @spelled_out
    def release(
        self,
        psi: float | None = None,
        *,
        error: Wanted | None = None,
        purpose: str = "",
        retry_key: str = "",
        **notions: Unpack[Notions],
    ) -> Answer:
        """Noisy answers, paid for before they are drawn.

        Args:
            psi: what all of it costs together, (0, inf); shared by psi^2 in proportion to the measures' weights.
            notions: instead of psi, a notion of Guarantee.gaussian, such as epsilon=1, delta=1e-6 or auc=0.6; the
                kappa of private groups comes out of it.
            error: instead of psi, the wanted standard error: of a count in rows, of a sum in its unit, of a mean as
                (error, rows of a group), of a quantile in ranks; for several measures {name: error}. The least psi
                that reaches it is paid.
            purpose: why, for the ledger; defaults to the question in words.
            retry_key: idempotency key: the same question under the same key gets the stored answer and costs nothing.
                Frames are told apart by their columns alone: use another key for another frame.

        Nothing is spent when the engine fails before noise could have been drawn.
        """
        payment: Payment = self.curator.payment
        priced = self.priced(psi, error, notions)
        return payment.release(priced, _answer, Answer.from_dict, full_words, purpose=purpose, retry_key=retry_key)

    def priced(self, psi: float | None, error: Wanted | None, notions: Mapping[str, Any]) -> Priced:
        """The question at its price, given in one of three ways."""
        given = [name for name, value in notions.items() if value is not None]
        if error is not None and (psi is not None or given):
            raise TypeError("psi, another notion, or error must be given, one of them.")
        if error is not None:
            return self._priced_by_error(error)
        return self.at_notion(psi, notions)

    def _priced_by_error(self, wanted: Wanted) -> Priced:
        """The question at the least psi for which every measure has the wanted standard error.

        Noise goes as 1/psi_j, so a measure needs psi_j = (its error at psi_j = 1) / wanted, and all of them together
        sqrt(sum psi_j^2), shared by psi_j^2.
        """
        one, needed, words = self.at(1.0), [], []
        for j, (ask, (error, rows)) in enumerate(zip(self.asks, wanted_errors(self.asks, wanted), strict=True)):
            expected = _expected(one, j)
            unit = expected.standard_error if expected.ranks is None else expected.ranks
            needed.append(one.share(ask.weight) * unit / (rows or 1.0) / error)
            words.append(f"{error:g} for {ask.name}" + (f" in a group of {rows:,.0f} rows" if rows else ""))
        squares = [n * n for n in needed]
        mean = sum(squares) / len(squares)
        asks = tuple(replace(a, weight=square / mean) for a, square in zip(self.asks, squares, strict=True))
        groups = self.layout.terms.weight if self.layout.terms else 0.0
        psi = sqrt(sum(squares) * (1.0 + groups / len(asks))) * ROOM
        note = f"Price: standard errors of {', '.join(words)} need psi {psi:.3g}."
        return replace(self, asks=asks).at(psi, note)


def table_question(
    curator: Any,
    asks: Sequence[Any],
    by: str | Sequence[str],
    groups: Any,
    where: str | None,
    contribution: Contribution,
    confidence: float,
    clipping_share: float,
) -> TableQuestion:
    """The question, or a refusal that looked at schema and parameters alone."""
    columns = (by,) if isinstance(by, str) else tuple(by or ())
    check_asks(asks)
    derived = derived_table(curator.source, columns, asks, curator.public)
    source, columns, asks = derived.source, derived.by, derived.asks
    check_asks(asks)  # what is written in two ways may be one: what is found for a measure goes by its name
    refuse_own_groups(groups, columns, curator.given)
    groups = _with_known(groups, columns, derived.values, source)
    reads = derived.numbers((*curator.unit_columns, *columns))
    untyped = source.untyped.intersection(columns)
    if untyped and groups is not None and not isinstance(groups, PrivateGroups):
        groups = key_tuples(groups, columns, source.schema)
        reads |= key_types(groups, columns, untyped)
    rule, read, readings = derived.read(where, reads)
    for ask in asks:
        ask.measure.check(read.schema)
    _check_by(columns, read.schema, curator.unit_columns, asks)
    check_terms(confidence, clipping_share)
    check_contribution(contribution)
    layout = Identity(columns, *_groups(groups, columns, read.schema))
    cells = None if layout.groups is None else len(layout.groups)
    settled = tuple(_settled(ask, contribution, curator.unit_columns, cells) for ask in asks)
    return TableQuestion(
        settled, layout, rule, float(confidence), float(clipping_share), read, curator, readings, derived.definitions
    )


def check_asks(asks: Sequence[Any]) -> None:
    """Refuse what is no measure, and what is asked twice."""
    if not asks:
        raise TypeError("ask for at least one measure, such as psidp.ask.count(), or --count on the command line.")
    for ask in asks:
        if not isinstance(ask, Ask):
            raise TypeError(f"each measure must come from a call such as psidp.ask.count(), got {ask!r:.60}.")
    names = [ask.name for ask in asks]
    if len(set(names)) < len(names):
        raise ValueError(f"ask for different things: {', '.join(names)} has one twice.")


def check_terms(confidence: float, clipping_share: float) -> None:
    """Refuse a confidence that is no chance, and a share that is no part of psi^2."""
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence (chance that an interval covers) must be in (0, 1), got confidence={confidence}.")
    if not 0.0 <= clipping_share <= 0.5:
        raise ValueError(
            "clipping_share (part of psi^2 that goes into measuring what clipping takes) must be in [0, 0.5], "
            f"got clipping_share={clipping_share}."
        )


def _check_by(columns: Sequence[str], schema: Mapping[str, Any], unit: Sequence[str], asks: Sequence[Ask]) -> None:
    for name in columns:
        need_column(name, schema, "by")
    if not columns and any(ask.measure.needs_groups for ask in asks):
        raise ValueError("by must name the columns whose groups are compared where the top ones are asked for.")
    if len(set(columns)) < len(columns):
        raise ValueError(f"by must name different columns, got {', '.join(columns)}.")
    if unit and set(unit) <= set(columns):
        raise ValueError(
            f"by must not name the unit's own column, got {' and '.join(unit)!r}: every group would be one unit."
        )


def _with_known(groups: Any, by: Sequence[str], known: Mapping[str, tuple[Any, ...]], source: Any) -> Any:
    """The groups, with those of columns whose values are known, where they were left out: all combinations."""
    names = [name for name in by if name in known]
    rest = [name for name in by if name not in known]
    if not names or isinstance(groups, PrivateGroups):
        return groups
    if groups is None:
        return groups if rest else list(product(*(known[name] for name in by)))
    if isinstance(groups, Mapping):
        return {**groups, **{name: known[name] for name in names if name not in groups}}
    if not rest:
        return groups
    try:
        given = key_tuples(groups, rest, source.schema)
    except ValueError:
        return groups  # they name all columns, or are refused where all groups are
    rows = (
        dict(zip(rest, key, strict=True)) | dict(zip(names, values, strict=True))
        for key in given
        for values in product(*(known[name] for name in names))
    )
    return [tuple(row[name] for name in by) for row in rows]


def _groups(groups: Any, by: Sequence[str], schema: Mapping[str, Any]) -> tuple[Any, PrivateGroups | None]:
    """The groups, None where they are still to be chosen; and how they are chosen."""
    if not by:
        if groups is not None:
            raise ValueError("groups must be left out where by names no column.")
        return ((),), None
    for name in by:
        check_key(name, schema[name])
    if groups is None:
        raise ValueError(
            f"groups must be given for by={', '.join(by)}: a list of groups that does not depend on the data, or "
            "psidp.PrivateGroups(kappa=..., at_most=...) to choose them privately. On the command line: --groups A,B,C "
            "or --groups groups.csv, or --private-groups kappa:at_most."
        )
    return (None, groups) if isinstance(groups, PrivateGroups) else (public_groups(groups, by, schema), None)


def _settled(ask: Ask, contribution: Contribution, unit: Sequence[str], cells: int | None) -> Ask:
    """The measure with its contribution; no more than a unit can add, once in each group, to a number of units."""
    vector = ask.measure.vector
    if ask.measure.at_most is not None:
        return replace(ask, contribution=ask.measure.at_most if unit else 1.0)
    asked = contribution if ask.contribution is None else ask.contribution
    if not unit and asked not in (1, None):
        raise ValueError(f"contribution must be 1 where every row is its own unit, got contribution={asked!r}.")
    asked = asked or 1.0
    if not vector.once or cells is None:
        return replace(ask, contribution=asked if asked == "auto" else float(asked))
    most = sqrt(cells)
    return replace(ask, contribution=(1.0 if most == 1.0 else "auto") if asked == "auto" else min(float(asked), most))


def _expected(priced: Priced, j: int) -> Expected:
    """What to expect of one measure."""
    ask, noise = priced.asks[j], priced.noises[j]
    measure: Measure = ask.measure
    several = measure.vector.parts > 1
    error = noise.sigma / (noise.one / measure.error_scale)
    by_rows = tuple((rows, min(measure.largest_error, error / rows)) for rows in ROWS) if several else ()
    ranks = noise.rank_deviation(measure.vector.bins) if measure.ranks and measure.vector.edges else None
    times = EXAMPLE if ask.contribution == "auto" else 1
    example = measure.example(error * times, times) if measure.chooses_bounds else ""
    return Expected(
        ask.name, "auto" if ask.contribution == "auto" else ask.worth, noise.sensitivity, priced.psi_of(ask),
        noise.sigma, error, several, by_rows, ranks,
        noise.strategy_words if ranks is not None else "", measure.scale_words, example,
    )  # fmt: skip


def _answer(drawn: Drawn) -> Answer:
    """The answer made of noisy numbers, with its notes."""
    priced = drawn.priced
    rows = _rows(drawn, priced.question.confidence)
    return Answer(priced.layout.by, rows, priced.guarantee, priced.question.confidence, answer_notes(drawn, rows))


def _rows(drawn: Drawn, confidence: float) -> tuple[tuple[Any, Estimate], ...]:
    """Group by group what is said of each; after that the largest groups, where those are asked for."""
    priced = drawn.priced
    if not drawn.noisy:  # no group came through
        return ()
    keys, readings = zip(*priced.layout.rows(), strict=True) if priced.layout.groups else ((), ())
    by_group: list[list[tuple[Any, Estimate]]] = [[] for _ in keys]
    last: list[tuple[Any, Estimate]] = []
    for ask, noisy in zip(priced.asks, drawn.noisy, strict=True):
        measure, norms = ask.measure, drawn.norms.get(ask.name)
        level = 1.0 - (1.0 - confidence) / len(keys) if measure.simultaneous and keys else confidence
        lost, rows = (nan, inf) if norms is None else norms.at_most(ask.worth)
        found = judged(measure.spread, measure.estimates(noisy.cells(readings, level)), lost, rows)
        for i, estimate in measure.chosen(found, confidence):
            (last if measure.simultaneous else by_group[i]).append((keys[i], estimate))
    return (*(row for group in by_group for row in group), *last)
