"""ResidualPlan: how much noise each residual gets, so that wanted tables have the least error for one psi.

What a row of a table costs is sum_S share_S/sigma_S^2 = psi^2, and the mean squared error of table A is linear in the
variances: both are known before any row is read. So the best noise is the solution of a small convex problem, computed
together with a lower bound for every choice of noise (docs/design/cubes.md, claims 3 to 5).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from math import frexp, inf, prod, sqrt
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray

from psidp.maths.rounding import root_above
from psidp.strategies.basis import Basis
from psidp.strategies.marginals import Marginals, Table
from psidp.symbols import symbol

__all__ = ["Balance", "ResidualPlan", "least_psi", "least_total", "least_worst"]

Floats = NDArray[np.float64]
Balance = Literal["worst", "total"]

GAP = 1e-3
"""How far above the least psi or error a plan may be."""

STEPS = 2_000
MARGIN = 2.0**-28
"""Scales lie above the norms they stand for, by less than half of this."""

ULP = 2.0**-40
"""Sigmas are raised by this, so that their exact sum stays within psi^2."""


@final
@dataclass(frozen=True, slots=True)
class ResidualPlan:
    """Noise for each residual, at the psi of one row.

    Args:
        marginals: the tables and their residuals. sigmas: one for each residual. gap: how far above the least error or
        psi it can be, relative; proved.

    Examples:
        >>> from psidp.strategies.haar import Haar
        >>> plan = least_worst(Marginals((Haar(3), Haar(16), Haar(12)), ((0,), (1,), (0, 1), (0, 1, 2))), psi=1.0)
        >>> [round(error, 2) for error in plan.errors], plan.squared <= 1
        ([1.78, 1.78, 1.78, 1.78], True)
    """

    marginals: Marginals
    sigmas: tuple[float, ...]
    gap: float = 0.0

    @property
    def squared(self) -> Fraction:
        """psi^2 of one row that joins or leaves; rounded up by less than 2^-90 of it for each residual."""
        total, shares = 0, [basis.share.as_integer_ratio() for basis in self.marginals.bases]
        bits = 96 + 2 * max(0, frexp(min(self.sigmas))[1])
        for part, sigma in zip(self.marginals.residuals, self.sigmas, strict=True):
            n, d = sigma.as_integer_ratio()
            above, below = d * d << bits, n * n
            for i in part:
                above, below = above * shares[i][0], below * shares[i][1]
            total -= -above // below
        return Fraction(total, 2**bits)

    @property
    def psi(self) -> float:
        """psi of one row, rounded up."""
        return root_above(self.squared)

    @property
    def errors(self) -> list[float]:
        """Root mean squared error of what is asked of each table: its cells, cumulative sums of ordered columns."""
        problem = _Problem.of(self.marginals)
        return [float(e) for e in np.sqrt(problem.variances(np.square(self.sigmas)))]

    def scaled(self, factor: float) -> "ResidualPlan":
        """The same with all noise larger by a factor; psi is smaller by it."""
        return ResidualPlan(self.marginals, tuple(sigma * factor * (1.0 + ULP) for sigma in self.sigmas), self.gap)

    def sigma(self, part: Table) -> float:
        """The noise of one residual."""
        return self.sigmas[self.marginals.residuals.index(part)]

    def deviation(self, table: Table, question: Floats) -> float:
        """Standard deviation of the answer to any question: a number for each cell of a table."""
        weights = self.marginals.weights(table, question)
        variances = dict(zip(self.marginals.residuals, np.square(self.sigmas), strict=True))
        parts = (variances[s] * np.sum((self.marginals.scales(s).value * w) ** 2) for s, w in weights.items())
        return sqrt(float(sum(parts)))

    def covariances(self, table: Table, questions: Sequence[Floats], others: Sequence[Floats] | None = None) -> Floats:
        """Covariances of products of questions with products of others (variances, where these are left out).

        For each column of the table a matrix, one question a row; what comes back has one axis for each column.
        """
        found = np.zeros(tuple(len(q) for q in questions))
        pairs = [
            _both(self.marginals.bases[i], q, r)
            for i, q, r in zip(table, questions, questions if others is None else others, strict=True)
        ]
        place = {part: n for n, part in enumerate(self.marginals.residuals)}
        for part in self.marginals.parts(table):
            vectors = [pair[0] if i in part else pair[1] for i, pair in zip(table, pairs, strict=True)]
            found += self.sigmas[place[part]] ** 2 * reduce(np.multiply.outer, vectors, np.ones(()))
        return np.asarray(found * (1.0 + MARGIN))


def least_total(marginals: Marginals, psi: float) -> ResidualPlan:
    """The least sum of squared errors over all cells of all tables: large tables count most."""
    problem = _Problem.of(marginals)
    sizes = np.array([float(marginals.cells(table)) for table in marginals.tables])
    return _within(marginals, problem.costs, problem.best(sizes), _positive(psi), 0.0)


def least_worst(marginals: Marginals, psi: float) -> ResidualPlan:
    """The plan whose worst table is best: the error of each is compared with what it would have alone at the same psi.

    So no table is worse than if psi^2 were shared equally by independent tables.
    """
    problem, psi = _Problem.of(marginals), _positive(psi)
    variances, gap = problem.solved(np.square([_alone(marginals, table) for table in marginals.tables]))
    return _within(marginals, problem.costs, variances, psi, gap)


def least_psi(marginals: Marginals, errors: Mapping[Table, float] | Sequence[float]) -> ResidualPlan:
    """The plan of least psi whose tables have at most these errors; `psi` of the plan says how much that is."""
    wanted = [errors[table] for table in marginals.tables] if isinstance(errors, Mapping) else list(errors)
    if not all(0.0 < error < inf for error in wanted):
        raise ValueError(f"errors (standard errors that are wanted) must be in (0, inf), got errors={wanted[:8]}.")
    variances, gap = _Problem.of(marginals).solved(np.square(wanted))
    return ResidualPlan(marginals, tuple(float(s) for s in np.sqrt(variances) * (1.0 - MARGIN)), gap)


@final
@dataclass(frozen=True, slots=True)
class _Problem:
    """Cost of each residual, and its factor in the mean squared error of each table as a sparse matrix."""

    costs: Floats
    table: NDArray[np.int64]
    residual: NDArray[np.int64]
    factor: Floats

    @classmethod
    def of(cls, marginals: Marginals) -> "_Problem":
        bases, place = marginals.bases, {part: i for i, part in enumerate(marginals.residuals)}
        errors, shares = [basis.errors for basis in bases], [float(basis.share) for basis in bases]
        costs = np.array([prod(shares[i] for i in part) for part in marginals.residuals])
        table, residual, factor = [], [], []
        for number, columns in enumerate(marginals.tables):
            parts: list[tuple[Table, float]] = [((), 1.0)]
            for i in columns:
                spread, mean = errors[i]
                grown = [((*part, i), f * spread) for part, f in parts] if bases[i].size > 1 else []
                parts = [(part, f * mean) for part, f in parts] + grown
            table += [number] * len(parts)
            residual += [place[part] for part, _ in parts]
            factor += [f for _, f in parts]
        return cls(costs, np.array(table), np.array(residual), np.array(factor))

    def variances(self, squares: Floats) -> Floats:
        """Mean squared error of each table for these sigma^2."""
        return np.asarray(np.bincount(self.table, weights=self.factor * squares[self.residual]), np.float64)

    def weigh(self, tables: Floats) -> Floats:
        """Weight of each residual's variance, for these weights of the tables."""
        counted = np.bincount(self.residual, weights=self.factor * tables[self.table], minlength=self.costs.size)
        return np.maximum(counted, np.finfo(float).tiny * 1e30)

    def best(self, tables: Floats) -> Floats:
        """sigma^2 of the least weighted error at psi = 1 (Cauchy and Schwarz)."""
        weights = self.weigh(tables)
        return np.asarray(np.sqrt(self.costs / weights) * np.sqrt(self.costs * weights).sum())

    def solved(self, wanted: Floats) -> tuple[Floats, float]:
        """sigma^2 of the least psi with mean squared errors at most these, and how far psi can be above the least.

        Every weighting of the tables gives a lower bound; the worst table at its best noise, an upper bound.
        """
        weights, least, found, most = np.ones(wanted.size) / wanted, 0.0, None, inf
        for _ in range(STEPS):
            needs = self.weigh(weights)
            roots = np.sqrt(self.costs * needs).sum()
            squares = np.sqrt(self.costs / needs) * roots
            ratios = self.variances(squares) / wanted
            least = max(least, roots**2 / float(weights @ wanted))
            if ratios.max() < most:
                most, found = float(ratios.max()), squares
            if most <= least * (1.0 + GAP):
                break
            weights = weights * ratios
            weights /= float(weights @ wanted)
        assert found is not None
        return found / most, sqrt(most / least) - 1.0


def _both(basis: Basis, questions: Floats, others: Floats) -> tuple[Floats, Floats]:
    """Covariances of pairs of questions at sigma = 1: through the differences of a column, and through its mean."""
    q, r = np.atleast_2d(questions).T, np.atleast_2d(others).T
    squares = np.array(basis.squares, np.float64)[:, None]
    differences = (squares * basis.weights(q) * basis.weights(r)).sum(axis=0)
    return differences, q.sum(axis=0) * r.sum(axis=0) / basis.size**2


def _alone(marginals: Marginals, table: Table) -> float:
    """The least error of one table that has psi = 1 by itself; 1 where no column of it is ordered."""
    found = 1.0
    for i in table:
        spread, mean = marginals.bases[i].errors
        found *= sqrt(spread * float(marginals.bases[i].share)) + sqrt(mean)
    return found


def _within(marginals: Marginals, costs: Floats, squares: Floats, psi: float, gap: float) -> ResidualPlan:
    """The plan of these relative variances that costs psi."""
    cost = float(np.sum(costs / squares))
    sigmas = np.sqrt(squares * cost) / psi * (1.0 + ULP)
    plan = ResidualPlan(marginals, tuple(float(s) for s in sigmas), gap)
    if not plan.squared <= Fraction(psi) ** 2:
        raise ArithmeticError(f"a plan must cost at most psi={psi}, and this one costs {plan.psi}.")
    return plan


def _positive(psi: float) -> float:
    value = symbol("psi").number(psi)
    if not value > 0.0:
        raise ValueError(f"psi ({symbol('psi').meaning}) must be above 0 for a plan, got psi={psi}.")
    return float(value)
