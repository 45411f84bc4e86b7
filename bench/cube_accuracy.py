"""Cubes of nycflights' schema: error and coverage by order beside the plan's, and an attack on 10,000 cubes."""

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from bench.timing import Report
from psidp import Guarantee, audit
from psidp.maths.normal import quantile
from psidp.mechanism.residual_release import noisy_residuals
from psidp.strategies.haar import Haar
from psidp.strategies.marginals import Marginals
from psidp.strategies.ordered import ordered
from psidp.strategies.residual_plan import ResidualPlan, least_total, least_worst

SIZES, ROWS, RUNS, ATTACKS = (3, 16, 12, 20), 328_521, 200, 10_000
TABLES = tuple(table for order in (1, 2, 3) for table in combinations(range(4), order))


def run(full: bool, seed: int) -> list[Report]:
    """200 cubes of each plan with exact noise, 2,000 where all of it is wanted; 10,000 on each of two neighbours."""
    counts = _counts(seed)
    marginals = Marginals(tuple(map(Haar, SIZES)), TABLES)
    plans = {"worst": least_worst(marginals, 1.0), "total": least_total(marginals, 1.0)}
    runs = 2_000 if full else RUNS
    return [*(_accuracy(name, plan, counts, runs, seed) for name, plan in plans.items()), _attack()]


def _counts(seed: int) -> NDArray[np.int64]:
    """Made-up flights: as many as there were, skewed in every column."""
    rng = np.random.default_rng(seed)
    chances = [rng.dirichlet(np.full(n, 0.7)) for n in SIZES]
    every = np.einsum("a,b,c,d->abcd", *chances).reshape(-1)
    return rng.multinomial(ROWS, every / every.sum()).reshape(SIZES)


def _accuracy(name: str, plan: ResidualPlan, counts: NDArray[np.int64], runs: int, seed: int) -> Report:
    """RMSE and coverage of 95 % intervals by order, and of random questions."""
    report = Report(f"{runs} cubes of {SIZES}, 1- to 3-way, psi 1, least {name}, exact noise")
    marginals, rng = plan.marginals, np.random.default_rng(seed)
    z = float(-quantile(0.025))
    truth = {table: _rolled(counts, table) for table in TABLES}
    exact = {table: truth[table] for table in marginals.maximal}
    squares, inside, cells = np.zeros(4), np.zeros(4), np.zeros(4)
    asked = hit = 0
    for _ in range(runs):
        released = noisy_residuals(plan, exact, 1)
        for table, error in zip(TABLES, plan.errors, strict=True):
            off = marginals.decode(table, released) - truth[table]
            squares[len(table)] += float((off**2).sum())
            inside[len(table)] += int((np.abs(off) <= z * error).sum())
            cells[len(table)] += off.size
            if len(table) == 3:
                q = rng.normal(size=off.shape)
                hit += abs(float((q * off).sum())) <= z * plan.deviation(table, q)
                asked += 1
    for order in (1, 2, 3):
        planned = [(marginals.cells(t), e) for t, e in zip(TABLES, plan.errors, strict=True) if len(t) == order]
        expected = np.sqrt(sum(n * e**2 for n, e in planned) / sum(n for n, _ in planned))
        covered = inside[order] / cells[order]
        report.add(
            f"{order}-way, RMSE", float(np.sqrt(squares[order] / cells[order])), "rows", note=f"plan {expected:.4g}"
        )
        report.add(
            f"{order}-way, coverage off 0.95", abs(covered - 0.95), "", 0.005, f"{covered:.4f} of {cells[order]:,.0f}"
        )
    report.say("random questions, coverage", f"{hit / asked:.4f} of {asked:,}")
    return report


def _rolled(counts: NDArray[np.int64], table: tuple[int, ...]) -> NDArray[np.int64]:
    return np.asarray(counts.sum(axis=tuple(i for i in range(4) if i not in table)))


def _attack() -> Report:
    """Likelihood ratios of cubes with and without one row: what an audit proves of them, and of too little noise."""
    report = Report(f"The best attack on {ATTACKS:,} cubes with a row and {ATTACKS:,} without, psi 1")
    honest = least_worst(Marginals((Haar(2), ordered(3)), ((0,), (0, 1))), 1.0)
    short = ResidualPlan(honest.marginals, tuple(0.9 * sigma for sigma in honest.sigmas))
    for name, plan in (("as planned", honest), ("sigma 10 % too small", short)):
        result = audit(*_scores(plan), claimed=Guarantee(1.0), seed=1)
        report.say(
            name, f"psi >= {result.psi:.4f} with 95 % confidence, {'REFUTED' if result.refuted else 'consistent'}"
        )
    return report


def _scores(plan: ResidualPlan) -> list[list[float]]:
    marginals, counts = plan.marginals, np.array([[5, 0, 2], [1, 7, 3]])
    unit = np.array([[0, 1, 0], [0, 0, 0]])
    ways = {
        s: marginals.encode(s, (0, 1), unit) / (marginals.scales(s).value * plan.sigma(s)) ** 2
        for s in marginals.residuals
    }
    return [
        [
            sum(float((ways[s] * values).sum()) for s, values in noisy_residuals(plan, {(0, 1): exact}, 1).items())
            for _ in range(ATTACKS)
        ]
        for exact in (counts + unit, counts)
    ]
