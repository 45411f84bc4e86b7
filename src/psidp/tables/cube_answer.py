"""Cube: many tables that agree with each other, read from noisy residuals that were paid for once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import inf, isnan, nan, prod, sqrt
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from psidp.forms import check_form
from psidp.guarantee import Guarantee
from psidp.maths.fieller import ratio_error, ratio_interval
from psidp.maths.isotonic import isotonic
from psidp.strategies.marginals import Marginals, Table
from psidp.tables.answer import Answer, Released
from psidp.tables.ask import Ask
from psidp.tables.estimate import Estimate, Spread, count_flag
from psidp.tables.flags import judged
from psidp.tables.measures.quantiles import crossing
from psidp.tables.notes import Note
from psidp.tables.strategies.residual import MOST_CELLS, Column, Product, Residuals, counts_rows
from psidp.tables.words import flag_notes

__all__ = ["Cube", "binned", "placed", "quantile_estimate"]

Floats = NDArray[np.float64]
Choice = Mapping[str, Any]
FORM = "psidp-cube-1"

SHARE = Spread(ratio=True, low=0.0, high=1.0, half=0.5)
"""A share is the mean of what is 0 or 1."""


@dataclass(frozen=True, slots=True)
class Cube(Released):
    """Noisy residuals of tables over some columns. Tables, ranges, quantiles and ratios are read from them at no cost.

    `Curator.cube(...).release(...)` makes one. All readings agree with each other: the cells of a table add up to those
    of every smaller table.

    Args:
        columns: the cube's columns. measures: what was measured in every cell. noisy: the numbers behind each measure.
        guarantee: what all of it cost together. confidence: chance that an interval covers. notes: what was asked and
        done. lost: the share of all rows that clipping took at most (estimated); nan where it was not measured.
        left: what the budget still holds. stored: whether it was answered before. excess: how many rows that share is.
        retry_key: the key under which the ledger keeps it; "" without a ledger.
    """

    columns: tuple[Column, ...]
    measures: tuple[Ask, ...]
    noisy: tuple[Residuals, ...] = field(repr=False)
    guarantee: Guarantee
    confidence: float
    notes: tuple[Note, ...] = field(repr=False)
    lost: float = nan
    left: str = ""
    stored: bool = False
    excess: float = inf
    retry_key: str = ""

    @property
    def marginals(self) -> Marginals:
        """The tables and their residuals."""
        return self.noisy[0].marginals

    @property
    def tables(self) -> list[tuple[str, ...]]:
        """The tables that were asked for, by the names of their columns."""
        return [tuple(self.columns[i].name for i in table) for table in self.marginals.tables]

    @property
    def counted(self) -> Residuals:
        """The noisy numbers of rows; refused where the cube does not count them."""
        for ask, noisy in zip(self.measures, self.noisy, strict=True):
            if counts_rows(ask.measure.vector):
                return noisy
        raise ValueError("a distribution needs a cube that counts rows: ask for ask.count() among its measures.")

    def table(self, *columns: str) -> Answer:
        """A table over these columns, with an interval for every cell; without columns, the total.

        Any table that lies within one that was asked for.
        """
        place, order = placed(self.columns, self.marginals, columns)
        keys = list(product(*(self.columns[i].labels for i in order)))
        shape = tuple(self.columns[i].size for i in place)
        cells = np.arange(prod(shape)).reshape(shape).transpose([place.index(i) for i in order]).reshape(-1)
        found = [self._read(m, place, self._every(place), cells.tolist()) for m in range(len(self.measures))]
        rows = [(key, e) for key, several in zip(keys, zip(*found, strict=True), strict=True) for e in several]
        return self._answer(tuple(columns), rows, f"Table of {', '.join(columns) or 'the total'}.")

    def query(self, where: Choice | None = None, measure: str = "") -> Estimate:
        """One number of all rows with these values: {"origin": "JFK", "month": range(6, 9)}.

        A value, or several, for each column that is to be narrowed. Of a column in bins: the lower edge of a bin or
        several, or slice(low, high) for all bins between two edges, slice(None, high) from the first. measure: which,
        such as "mean of delay"; defaults to the first.
        """
        place, _ = placed(self.columns, self.marginals, list(where or {}))
        return self._read(self._measure(measure), place, self._chosen(place, where or {}))[0]

    def ratio(self, part: Choice, whole: Choice, measure: str = "") -> Estimate:
        """One number over another, such as the share of JFK's flights in winter, with Fieller's interval."""
        m = self._measure(measure)
        if self.measures[m].measure.vector.parts > 1:
            raise ValueError(f"a ratio must be one of counts or sums, got a {self.measures[m].name}.")
        place, _ = placed(self.columns, self.marginals, sorted({*part, *whole}))
        one, two = self._chosen(place, part), self._chosen(place, whole)
        noisy = self.noisy[m]
        (a, va), (b, vb) = ((float(x.reshape(-1)[0]) for x in noisy.moments(0, place, q)) for q in (one, two))
        both = float(noisy.covariances(place, one, two).reshape(-1)[0])
        low, high = (float(x) for x in ratio_interval(a, b, va, vb, both, noisy.width(self.confidence)))
        value = a / b if b != 0.0 else nan
        error, flag = float(ratio_error(value, b, va, vb, both)), count_flag(abs(b), sqrt(vb))
        estimate = Estimate(f"ratio of {self.measures[m].name}", value, error, low, high, flag)
        return judged(SHARE, [[estimate]], self.lost)[0][0]

    def cdf(self, column: str, by: str | Sequence[str] = ()) -> Answer:
        """The share of rows below each edge of a column in bins, group by group.

        The intervals of a group hold all at once, with the cube's confidence: a band.
        """
        noisy, groups = self.counted, (by,) if isinstance(by, str) else tuple(by)
        place, i = binned(self.columns, self.marginals, column, groups)
        size, edges = self.columns[i].size, self.columns[i].edges
        below, every = np.tril(np.ones((size, size)))[:-1], np.ones((size - 1, size))
        (a, va), (b, vb) = (self._moments(noisy, place, i, questions) for questions in (below, every))
        both = noisy.covariances(place, self._every(place, {i: below}), self._every(place, {i: every}))
        both = _by_group(both, place.index(i))
        z = noisy.width(self.confidence, at_once=max(1, size - 1))
        low, high = (np.clip(x, 0.0, 1.0) for x in ratio_interval(a, b, va, vb, both, z))
        with np.errstate(all="ignore"):
            value = np.where(b > 0.0, a / b, nan)
        error = ratio_error(value, b, va, vb, both)
        found: list[list[Estimate]] = []
        for n in range(len(value)):
            rising = np.clip(isotonic(value[n]), 0.0, 1.0) if size > 1 and np.isfinite(value[n]).all() else value[n]
            flag = count_flag(float(b[n, 0]), sqrt(float(vb[n, 0]))) if size > 1 else ""
            found.append([])
            for j in range(size - 1):
                ends = float(low[n, j]), float(high[n, j])
                known = float(np.clip(rising[j], *ends)) if rising[j] == rising[j] else 0.5 * (ends[0] + ends[1])
                found[-1].append(Estimate(f"share below {column}", known, float(error[n, j]), *ends, flag))
        rows = [
            ((*key, edge), e)
            for key, line in zip(self._keys(place, i, groups), judged(SHARE, found, self.lost), strict=True)
            for edge, e in zip(edges[1:-1], line, strict=True)
        ]
        words = f"Shares below each edge of {column}; the intervals of a group hold all at once."
        return self._answer((*groups, column), rows, words)

    def quantile(
        self, column: str, at: float | Iterable[float] = (0.25, 0.5, 0.75), by: str | Sequence[str] = ()
    ) -> Answer:
        """Quantiles of a column in bins, on straight lines between its edges, group by group.

        An interval runs from the last edge that is certainly too low to the first that certainly is not, all edges at
        once.
        """
        wanted = [float(q) for q in (at if isinstance(at, Iterable) else [at])]
        if not (wanted and all(0.0 < q < 1.0 for q in wanted)):
            raise ValueError(
                f"at (which quantiles) must be numbers in (0, 1), got at={wanted}. Write 0.9 for the 90th percentile."
            )
        noisy, groups = self.counted, (by,) if isinstance(by, str) else tuple(by)
        place, i = binned(self.columns, self.marginals, column, groups)
        size, edges = self.columns[i].size, np.asarray(self.columns[i].edges)
        lower = np.vstack([np.zeros(size), np.tril(np.ones((size, size)))])
        counts, variances = self._moments(noisy, place, i, lower)
        errors = [np.sqrt(self._moments(noisy, place, i, lower - q)[1]) for q in wanted]
        z, single = noisy.width(self.confidence, at_once=max(1, size - 1)), noisy.width(self.confidence)
        found: list[list[Estimate]] = []
        for n, below in enumerate(counts):
            flag = count_flag(float(below[-1]), sqrt(float(variances[n, -1])))
            found.append([
                quantile_estimate(f"quantile {q:.15g} of {column}", edges, below, q, z * error[n], single, flag)
                for q, error in zip(wanted, errors, strict=True)
            ])  # fmt: skip
        ranks = Spread(ratio=True, low=edges[0], high=edges[-1], half=float(edges[-1] - edges[0]) / 2.0, ranks=True)
        keys = self._keys(place, i, groups)
        rows = [(key, e) for key, line in zip(keys, judged(ranks, found, self.lost), strict=True) for e in line]
        return self._answer(groups, rows, f"Quantiles of {column}.")

    def summary(self) -> str:
        """What was asked, what it cost, and what is left."""
        return self.summarized(", all tables together")

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values: strategies in whole numbers, noise, coefficients. Nothing is planned again."""
        return {
            "form": FORM,
            "kind": "cube",
            "columns": [column.to_dict() for column in self.columns],
            "marginals": self.marginals.to_dict(),
            "measures": [ask.to_dict() for ask in self.measures],
            "layers": [noisy.to_dict() for noisy in self.noisy],
            "guarantee": self.guarantee.to_dict(),
            "confidence": self.confidence,
            "notes": [note.to_dict() for note in self.notes],
            "lost": None if isnan(self.lost) else self.lost,
            "excess": None if self.excess == inf else self.excess,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The cube that to_dict wrote, here or in version 0.2 (which also wrote what each layer adds)."""
        check_form(values.get("form"), FORM, "the cube")
        columns = tuple(map(Column.from_dict, values["columns"]))
        marginals = _marginals(values["marginals"], columns)
        measures = tuple(map(Ask.from_dict, values["measures"]))
        noisy = (
            Residuals.from_dict(layers, marginals, ask.measure.vector)
            for layers, ask in zip(values["layers"], measures, strict=True)
        )
        return cls(
            columns, measures, tuple(noisy), Guarantee.from_dict(values["guarantee"]), values["confidence"],
            tuple(map(Note.from_dict, values["notes"])), nan if values["lost"] is None else values["lost"],
            values.get("left", ""), values.get("stored", False),
            inf if values.get("excess") is None else values["excess"], values.get("retry_key", ""),
        )  # fmt: skip

    def _read(
        self, m: int, place: Table, weights: Sequence[Floats], order: Sequence[int] | None = None
    ) -> list[Estimate]:
        """The numbers of a measure for a product of questions, flagged where clipping may have moved them."""
        measure = self.measures[m].measure
        found = measure.estimates(self.noisy[m].cells([Product(place, tuple(weights))], self.confidence))
        found = found if order is None else [found[i] for i in order]
        return [e for (e,) in judged(measure.spread, found, self.lost, self.excess)]

    def _measure(self, name: str) -> int:
        names = [ask.name for ask in self.measures]
        if name and name not in names:
            raise KeyError(f"no measure {name!r} in this cube, which has {', '.join(names)}.")
        return names.index(name) if name else 0

    def _keys(self, place: Table, last: int, groups: Sequence[str]) -> list[tuple[Any, ...]]:
        """Keys of all groups, columns as asked for, in the order of the table's own axes."""
        names = [self.columns[i].name for i in place if i != last]
        keys = product(*(self.columns[i].labels for i in place if i != last))
        return [tuple(key[names.index(name)] for name in groups) for key in keys]

    def _chosen(self, place: Table, where: Choice) -> list[Floats]:
        """For each column of a table which of its values count, as 0 and 1; all where it is not narrowed."""
        columns = (self.columns[i] for i in place)
        return [c.chosen(where[c.name]) if c.name in where else np.ones((1, c.size)) for c in columns]

    def _every(self, place: Table, other: Mapping[int, Floats] | None = None) -> list[Floats]:
        """A question for every value of each column; for some columns others."""
        return [(other or {}).get(i, np.eye(self.columns[i].size)) for i in place]

    def _moments(self, noisy: Residuals, place: Table, last: int, questions: Floats) -> tuple[Floats, Floats]:
        """Values and variances of questions about one column in every group, a group a row."""
        value, variance = noisy.moments(0, place, self._every(place, {last: questions}))
        return _by_group(value, place.index(last)), _by_group(variance, place.index(last))

    def _answer(self, by: tuple[str, ...], rows: Sequence[tuple[tuple[Any, ...], Estimate]], words: str) -> Answer:
        notes = (Note("read", words), *self.notes, *flag_notes([e for _, e in rows]))
        return Answer(by, tuple(rows), self.guarantee, self.confidence, notes, self.left, self.stored)


def placed(columns: Sequence[Column], marginals: Marginals, names: Sequence[str]) -> tuple[Table, list[int]]:
    """The columns of these names, ascending and in their order; refused where no table has them together."""
    known = [c.name for c in columns]
    for name in names:
        if name not in known:
            raise KeyError(f"no column {name!r} in this cube, which has {', '.join(known)}.")
    order = [known.index(name) for name in names]
    place = tuple(sorted(order))
    if len(set(place)) < len(place):
        raise ValueError(f"a table must name different columns, got {', '.join(names)}.")
    if not any(set(place) <= set(table) for table in marginals.maximal):
        raise KeyError(
            f"no table of this cube holds {', '.join(names)} together. It has "
            f"{'; '.join(', '.join(known[i] for i in t) for t in marginals.maximal[:8])}."
        )
    return place, order


def binned(columns: Sequence[Column], marginals: Marginals, column: str, groups: Sequence[str]) -> tuple[Table, int]:
    """The columns of a distribution by groups, and the number of the one in bins."""
    place, order = placed(columns, marginals, [*groups, column])
    if not columns[order[-1]].edges:
        raise ValueError(f"column {column!r} must be in bins to have a distribution: ask.ordered(edges), or --ordered.")
    return place, order[-1]


def _by_group(numbers: Floats, axis: int) -> Floats:
    """Numbers about one column in every group, a group a row."""
    moved = np.moveaxis(numbers, axis, -1)
    return moved.reshape(prod(moved.shape[:-1]), moved.shape[-1])


def quantile_estimate(
    name: str, edges: Floats, below: Floats, q: float, room: Floats, single: float, flag: str
) -> Estimate:
    """One quantile: where the rising counts cross, between the edges that noise cannot rule out."""
    balance, j = (below - q * below[-1])[1:-1], np.arange(1, edges.size - 1)  # the outer edges need no proof
    low = float(edges[np.max(j[balance + room[1:-1] < 0.0], initial=0)])
    high = max(low, float(edges[np.min(j[balance - room[1:-1] >= 0.0], initial=edges.size - 1)]))
    value = min(max(crossing(edges, isotonic(below), q * float(below[-1])), low), high)
    error = (high - low) / (2.0 * single) if high > low else nan
    return Estimate(name, value, error, low, high, flag)


def _marginals(values: Mapping[str, Any], columns: Sequence[Column]) -> Marginals:
    """The tables and bases that were written, if they are no larger than a cube's and fit its columns."""
    sizes = [column.size for column in columns]
    if [basis["values"] for basis in values["bases"]] != sizes:
        raise ValueError("the bases of a cube must have as many values as its columns.")
    cells = sum(prod(sizes[i] for i in table) for table in values["tables"])
    if not cells <= MOST_CELLS:
        raise ValueError(f"tables must have at most {MOST_CELLS:,} cells together, got {cells:,}.")
    return Marginals.from_dict(values)
