"""Cube: many tables that agree with each other, read from noisy residuals that were paid for once."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import inf, isnan, nan, sqrt
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from psidp.curator.aggregate import PERCENT
from psidp.curator.answer import Answer, Note
from psidp.curator.ask import Aggregate
from psidp.curator.cube_columns import CubeColumn
from psidp.curator.cube_questions import Choice, applied, indicator, labels, quantile_estimate
from psidp.curator.cube_record import columns_from, columns_to, marginals_from, measure_from, numbers_to, residuals_from
from psidp.curator.cube_sql import Layer
from psidp.curator.estimate import Estimate, count_flag, flagged, open_flag
from psidp.curator.notes import flag_notes
from psidp.escaping import one_line
from psidp.forms import check_form
from psidp.guarantee import Guarantee
from psidp.maths.fieller import bounded_ratio, ratio_error, ratio_interval
from psidp.maths.isotonic import isotonic
from psidp.maths.normal import two_sided
from psidp.strategies.marginals import Marginals, Table
from psidp.strategies.residual_plan import ResidualPlan

__all__ = ["Cube"]

Floats = NDArray[np.float64]
FORM = "psidp-cube-1"
SHARE = Aggregate("mean", "share", 0.0, 1.0)
"""A share is the mean of what is 0 or 1."""


@dataclass(frozen=True, slots=True)
class Cube:
    """Noisy residuals of tables over some columns. Tables, ranges, quantiles and ratios are read from them at no cost.

    `psidp.Curator.cube` makes one. Whatever is read agrees with whatever else is: a table's cells add up to those of
    every smaller table.

    Args:
        columns: the cube's columns. measures: what was measured in every cell. layers: the numbers behind that.
        plans: the noise of each layer. residuals: noisy coefficients of each layer. guarantee: what all of it cost
        together. confidence: chance that an interval covers. notes: what was asked and done. lost: which share of all
        rows clipping took at most, as far as noise lets one see; nan where that was not measured. left: what the budget
        still holds. stored: whether it was answered before. excess: how many rows that share is. retry_key: the key
        under which the ledger keeps it; "" without a ledger.
    """

    columns: tuple[CubeColumn, ...]
    measures: tuple[Aggregate, ...]
    layers: tuple[tuple[Layer, ...], ...] = field(repr=False)
    plans: tuple[tuple[ResidualPlan, ...], ...] = field(repr=False)
    residuals: tuple[tuple[Mapping[Table, Floats], ...], ...] = field(repr=False)
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
        return self.plans[0][0].marginals

    @property
    def tables(self) -> list[tuple[str, ...]]:
        """The tables that were asked for, by the names of their columns."""
        return [tuple(self.columns[i].name for i in table) for table in self.marginals.tables]

    def table(self, *columns: str) -> Answer:
        """A table over these columns, with an interval for every cell; without columns, the total.

        Any table that lies within one that was asked for.
        """
        place, order = self._place(columns)
        keys = list(product(*(labels(self.columns[i]) for i in order)))
        axes = [place.index(i) for i in order]
        found = []
        for m in range(len(self.measures)):
            numbers = [np.transpose(x, axes).reshape(-1).tolist() for x in self._cells(m, place)]
            found.append(self._judged(m, [self._estimate(m, *cell) for cell in zip(*numbers, strict=True)]))
        rows = [(key, e) for key, several in zip(keys, zip(*found, strict=True), strict=True) for e in several]
        return self._answer(tuple(columns), rows, f"Table of {', '.join(columns) or 'the total'}.")

    def query(self, where: Choice | None = None, measure: str = "") -> Estimate:
        """One number of all rows with these values: {"origin": "JFK", "month": range(6, 9)}.

        A value, or several, for each column that is to be narrowed. Of a column in bins: the lower edge of a bin or
        several, or slice(low, high) for all bins between two edges, slice(None, high) from the first. measure: which,
        such as "mean of delay"; the first unless told.
        """
        m = self._measure(measure)
        place, questions = self._chosen(where or {})
        numbers = (float(x.reshape(-1)[0]) for x in self._asked(m, place, questions, self._z()))
        return self._judged(m, [self._estimate(m, *numbers)])[0]

    def ratio(self, part: Choice, whole: Choice, measure: str = "") -> Estimate:
        """One number over another, such as the share of JFK's flights in winter, with Fieller's interval."""
        m = self._measure(measure)
        if self.measures[m].kind == "mean":
            raise ValueError("a ratio must be one of counts or sums, got a mean.")
        names = sorted({*part, *whole})
        place, _ = self._place(names)
        one, two = self._vectors(place, part), self._vectors(place, whole)
        plan, cells = self.plans[m][0], self.marginals.decode(place, self.residuals[m][0])
        a, b = (float(applied(cells, questions).reshape(-1)[0]) for questions in (one, two))
        va, vb = (float(plan.covariances(place, q).reshape(-1)[0]) for q in (one, two))
        both = float(plan.covariances(place, one, two).reshape(-1)[0])
        low, high = (float(x) for x in ratio_interval(a, b, va, vb, both, self._z()))
        value = a / b if b != 0.0 else np.nan
        spread = float(ratio_error(value, b, va, vb, both))
        name, flag = f"ratio of {self.measures[m].name}", count_flag(abs(b), sqrt(vb))
        return flagged(SHARE, [[Estimate(name, value, spread, low, high, flag)]], self.lost)[0][0]

    def cdf(self, column: str, by: str | Sequence[str] = ()) -> Answer:
        """The share of rows below each edge of a column in bins, group by group.

        The intervals of a group hold all at once, with the cube's confidence: a band.
        """
        m, groups, names = self.counted(), self._by(by), (column,)
        place, i = self._binned(column, groups)
        size, edges = self.columns[i].size, self.columns[i].edges
        below, every = np.tril(np.ones((size, size)))[:-1], np.ones((max(0, size - 1), size))
        a, b, va, vb, both = self._pairs(m, place, i, below, every)
        low, high = (np.clip(x, 0.0, 1.0) for x in ratio_interval(a, b, va, vb, both, self._z(max(1, size - 1))))
        with np.errstate(all="ignore"):
            value = np.where(b > 0.0, a / b, np.nan)
        spread = ratio_error(value, b, va, vb, both)
        found: list[list[Estimate]] = []
        for n in range(len(value)):
            rising = np.clip(isotonic(value[n]), 0.0, 1.0) if np.isfinite(value[n]).all() and size > 1 else value[n]
            flag = count_flag(float(b[n, 0]), sqrt(float(vb[n, 0]))) if size > 1 else ""
            found.append([])
            for j in range(size - 1):
                ends = float(low[n, j]), float(high[n, j])
                known = float(np.clip(rising[j], *ends)) if rising[j] == rising[j] else 0.5 * (ends[0] + ends[1])
                found[-1].append(Estimate(f"share below {column}", known, float(spread[n, j]), *ends, flag))
        judged = zip(self._keys(place, i, groups), flagged(SHARE, found, self.lost), strict=True)
        rows = [((*key, edge), e) for key, line in judged for edge, e in zip(edges[1:-1], line, strict=True)]
        said = f"Shares below each edge of {column}; the intervals of a group hold all at once."
        return self._answer((*groups, *names), rows, said)

    def quantile(
        self, column: str, at: float | Iterable[float] = (0.25, 0.5, 0.75), by: str | Sequence[str] = ()
    ) -> Answer:
        """Quantiles of a column in bins, on straight lines between its edges, group by group.

        An interval runs from the last edge that is surely too low to the first that surely is not, all edges at once.
        """
        wanted = [float(q) for q in (at if isinstance(at, Iterable) else [at])]
        if not (wanted and all(0.0 < q < 1.0 for q in wanted)):
            raise ValueError(f"at (which quantiles) must be numbers in (0, 1), got at={wanted}. {PERCENT}")
        m, groups = self.counted(), self._by(by)
        place, i = self._binned(column, groups)
        size, edges = self.columns[i].size, np.asarray(self.columns[i].edges)
        lower = np.vstack([np.zeros(size), np.tril(np.ones((size, size)))])
        raw, deviation = self._moments(m, place, i, lower)
        found: list[list[Estimate]] = []
        z = self._z(max(1, size - 1))
        apart = [self._moments(m, place, i, lower - q)[1] for q in wanted]
        for n in range(len(raw)):
            flag = count_flag(float(raw[n, -1]), float(deviation[n, -1]))
            found.append([])
            for q, spread in zip(wanted, apart, strict=True):
                name = f"quantile {q:.15g} of {column}"
                found[-1].append(quantile_estimate(name, edges, raw[n], q, z * spread[n], self._z(), flag))
        judged = flagged(Aggregate("quantiles", column, edges=tuple(edges.tolist())), found, self.lost)
        keys = self._keys(place, i, groups)
        rows = [(key, e) for key, line in zip(keys, judged, strict=True) for e in line]
        return self._answer(groups, rows, f"Quantiles of {column}.")

    def settled(self, left: str, stored: bool, retry_key: str = "") -> Self:
        """The same cube with what the budget holds, whether it was answered before, and its key in the ledger."""
        return replace(self, left=left, stored=stored, retry_key=retry_key)

    def summary(self) -> str:
        """What was asked, what it cost, and what is left."""
        g = self.guarantee
        paid = "This was answered before: the same numbers, and nothing was spent now." if self.stored else ""
        cost = f"It cost psi = {g.psi:.6g} ({g.adjacency}, per {g.unit}), all tables together."
        return "\n".join(
            line for line in (*(one_line(note.text) for note in self.notes), paid, cost, self.left) if line
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values: strategies in whole numbers, noise, coefficients. Nothing is planned again."""
        order = self.marginals.residuals
        layers = [
            [
                {
                    "kind": layer.kind, "column": layer.column, "lower": layer.lower, "upper": layer.upper,
                    "sigmas": list(plan.sigmas), "gap": plan.gap,
                    "coefficients": numbers_to(np.concatenate([found[s].reshape(-1) for s in order])),
                }
                for layer, plan, found in zip(*parts, strict=True)
            ]
            for parts in zip(self.layers, self.plans, self.residuals, strict=True)
        ]  # fmt: skip
        return {
            "form": FORM,
            "kind": "cube",
            "columns": columns_to(self.columns),
            "marginals": self.marginals.to_dict(),
            "measures": [a.to_dict() for a in self.measures],
            "layers": layers,
            "guarantee": self.guarantee.to_dict(),
            "confidence": self.confidence,
            "notes": [note.to_dict() for note in self.notes],
            "lost": None if isnan(self.lost) else self.lost,
            "excess": None if self.excess == inf else self.excess,
        }

    def to_json(self) -> str:
        """The cube as JSON, from which `Cube.from_dict(json.loads(...))` makes it again."""
        return json.dumps(self.to_dict() | self.payment(), ensure_ascii=False)

    def payment(self) -> dict[str, Any]:
        """What the ledger knows of it, as plain values."""
        return {"left": self.left, "stored": self.stored, "retry_key": self.retry_key}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The cube that to_dict wrote."""
        check_form(values.get("form"), FORM, "the cube")
        columns = columns_from(values["columns"])
        marginals = marginals_from(values["marginals"], columns)
        layers, plans, residuals = [], [], []
        for parts in values["layers"]:
            layers.append(tuple(Layer(p["kind"], p["column"], p["lower"], p["upper"]) for p in parts))
            plans.append(tuple(ResidualPlan(marginals, tuple(p["sigmas"]), p["gap"]) for p in parts))
            residuals.append(tuple(residuals_from(marginals, p["coefficients"]) for p in parts))
        measures = tuple(measure_from(a) for a in values["measures"])
        return cls(
            columns, measures, tuple(layers), tuple(plans), tuple(residuals),
            Guarantee.from_dict(values["guarantee"]), values["confidence"], tuple(map(Note.from_dict, values["notes"])),
            nan if values["lost"] is None else values["lost"], values.get("left", ""), values.get("stored", False),
            inf if values.get("excess") is None else values["excess"],
        )  # fmt: skip

    def _z(self, at_once: int = 1) -> float:
        """Standard errors to either side that an interval has, where so many hold at once (Sidak's inequality)."""
        alone = 1.0 - self.confidence ** (1.0 / at_once)
        rounding = 2.0**-25 * sqrt(2.0 * self.marginals.coefficients)  # the grid of the coefficients, of two layers
        return two_sided(alone) + rounding

    def _place(self, names: Sequence[str]) -> tuple[Table, list[int]]:
        """The columns of these names, ascending and in their order; refused where no table has them together."""
        known = [c.name for c in self.columns]
        for name in names:
            if name not in known:
                raise KeyError(f"no column {name!r} in this cube, which has {', '.join(known)}.")
        order = [known.index(name) for name in names]
        place = tuple(sorted(order))
        if len(set(place)) < len(place):
            raise ValueError(f"a table must name different columns, got {', '.join(names)}.")
        held = any(set(place) <= set(table) for table in self.marginals.maximal)
        if not held:
            raise KeyError(
                f"no table of this cube holds {', '.join(names)} together. It has "
                f"{'; '.join(', '.join(known[i] for i in t) for t in self.marginals.maximal[:8])}."
            )
        return place, order

    def _measure(self, name: str) -> int:
        names = [a.name for a in self.measures]
        if name and name not in names:
            raise KeyError(f"no measure {name!r} in this cube, which has {', '.join(names)}.")
        return names.index(name) if name else 0

    def counted(self) -> int:
        """The number of the measure that counts rows."""
        for m, a in enumerate(self.measures):
            if a.kind == "count":
                return m
        raise ValueError("a distribution needs a cube that counts rows: ask for ask.count() among its measures.")

    def _by(self, by: str | Sequence[str]) -> tuple[str, ...]:
        return (by,) if isinstance(by, str) else tuple(by)

    def _binned(self, column: str, groups: Sequence[str]) -> tuple[Table, int]:
        place, order = self._place([*groups, column])
        if not self.columns[order[-1]].edges:
            raise ValueError(f"column {column!r} must be in bins to have a distribution: ask.ordered(edges).")
        return place, order[-1]

    def _keys(self, place: Table, last: int, groups: Sequence[str]) -> list[tuple[Any, ...]]:
        """Keys of all groups, columns as asked for, in the order of the table's own axes."""
        names = [self.columns[i].name for i in place if i != last]
        keys = product(*(labels(self.columns[i]) for i in place if i != last))
        return [tuple(key[names.index(name)] for name in groups) for key in keys]

    def _cells(self, m: int, place: Table) -> tuple[Floats, ...]:
        """All cells of a table: value, standard error, ends, and the count behind in standard errors."""
        return self._asked(m, place, [np.eye(self.columns[i].size) for i in place], self._z())

    def _estimate(self, m: int, value: float, error: float, low: float, high: float, behind: float) -> Estimate:
        """One number of a measure, flagged where the count behind it, in standard errors, is near 0."""
        a = self.measures[m]
        flag = "" if a.kind == "sum" else count_flag(behind, 1.0)
        if a.kind == "mean":
            flag = open_flag(behind, 1.0, error, a.upper - a.lower)
        return Estimate(a.name, value, error, low, high, flag)

    def _judged(self, m: int, found: list[Estimate]) -> list[Estimate]:
        """The numbers of a measure, flagged where clipping may have moved them further than their intervals say."""
        measure = self.measures[m]
        return [e for (e,) in flagged(measure, [[e] for e in found], self.lost, self.excess * measure.reach)]

    def _asked(self, m: int, place: Table, questions: Sequence[Floats], z: float) -> tuple[Floats, ...]:
        """Answers to products of questions: value, standard error, ends, and the count behind in standard errors."""
        a, layers = self.measures[m], self.layers[m]
        moments = [self._moments_of(m, n, place, questions) for n in range(len(layers))]
        if a.kind != "mean":
            layer, (value, variance) = layers[0], moments[0]
            scale = layer.steps * layer.step
            error = np.sqrt(variance) * scale
            low, high = value * scale - z * error, value * scale + z * error
            return value * scale, error, low, high, value * scale / error
        (n, vn), (t, vt) = moments
        return *bounded_ratio(t, n, vt, vn, z, a.lower, a.upper), n / np.sqrt(vn)

    def _moments_of(self, m: int, n: int, place: Table, questions: Sequence[Floats]) -> tuple[Floats, Floats]:
        """Values and variances of products of questions, of one layer."""
        cells = self.marginals.decode(place, self.residuals[m][n])
        return applied(cells, questions), self.plans[m][n].covariances(place, questions)

    def _moments(self, m: int, place: Table, last: int, questions: Floats) -> tuple[Floats, Floats]:
        """Values and standard deviations of questions about one column in every group, a group a row."""
        asked = [questions if i == last else np.eye(self.columns[i].size) for i in place]
        value, variance = self._moments_of(m, 0, place, asked)
        axis = place.index(last)
        flat = (np.moveaxis(x, axis, -1).reshape(-1, len(questions)) for x in (value, np.sqrt(variance)))
        one, two = flat
        return one, two

    def _pairs(self, m: int, place: Table, last: int, first: Floats, second: Floats) -> tuple[Floats, ...]:
        """Values, variances and covariances of two lists of questions about one column, a group a row."""
        one, two = (
            [questions if i == last else np.eye(self.columns[i].size) for i in place] for questions in (first, second)
        )
        cells, plan, axis = self.marginals.decode(place, self.residuals[m][0]), self.plans[m][0], place.index(last)
        found = (
            applied(cells, one), applied(cells, two), plan.covariances(place, one), plan.covariances(place, two),
            plan.covariances(place, one, two),
        )  # fmt: skip
        return tuple(np.moveaxis(x, axis, -1).reshape(-1, len(first)) for x in found)

    def _chosen(self, where: Choice) -> tuple[Table, list[Floats]]:
        place, _ = self._place(list(where))
        return place, self._vectors(place, where)

    def _vectors(self, place: Table, where: Choice) -> list[Floats]:
        """For each column of a table which of its values count, as 0 and 1."""
        return [indicator(self.columns[i], where) for i in place]

    def _answer(self, by: tuple[str, ...], rows: Sequence[tuple[tuple[Any, ...], Estimate]], said: str) -> Answer:
        notes = (Note("read", said), *self.notes, *flag_notes([e for _, e in rows]))
        return Answer(by, tuple(rows), self.guarantee, self.confidence, notes, self.left, self.stored)
