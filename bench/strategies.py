"""Strategies for streams: error at equal psi beside what others do, time to plan, and intervals with exact noise."""

from importlib.util import find_spec
from itertools import accumulate
from math import sqrt
from time import process_time

import numpy as np

from bench import strategy_peers as peers
from bench.timing import Report
from psidp import Guarantee
from psidp.noise.gaussian import RoundedGaussian
from psidp.strategies.choice import chosen
from psidp.strategies.optimise import banded, optimised
from psidp.strategies.participation import Participation
from psidp.strategies.toeplitz import Toeplitz
from psidp.strategies.workload import Question, Workload

PERIODS = (12, 52, 365, 3650)
TARGETS = {(365, 1): 2.74, (365, 4): 9.25, (365, 12): 23.5, (3650, 1): 3.47, (3650, 4): 12.2, (3650, 12): 32.4}
BANDS = {2: 22.4551, 4: 16.0325, 8: 11.58, 16: 8.5346, 32: 6.4826, 64: 5.1252, 128: 4.2533}
MONTHS = (0, *accumulate([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30]))
JAX = find_spec("jax_privacy") is not None


def run(full: bool, seed: int) -> list[Report]:
    """Errors of totals to date by peer, of all questions together, of bands; sensitivities; coverage."""
    report = [_totals(n, full) for n in PERIODS]
    return [*report, _together(), _trainings(), _sensitivities(), _coverage(20_000 if full else 4_000, seed)]


def _totals(n: int, full: bool) -> Report:
    """All contenders for one number of periods."""
    report = Report(f"Totals to date over {n:,} periods at psi = 1: root mean squared error")
    factor, source = peers.branching(n)
    for k in (1, 4, 12):
        began = process_time()
        workload = Workload((Question.total(n),))
        ours = _errors(optimised(workload, Participation(k)), k)
        _add(report, k, "ours", ours, process_time() - began, TARGETS.get((n, k)))
        _add(report, k, "square root", _errors(Toeplitz.square_root(n), k))
        _add(report, k, "each period, summed", peers.each_period(n, k))
        _add(report, k, "each total", peers.each_total(n, k))
        _add(report, k, "binary tree, Honaker", peers.honaker_tree(n, k))
        _add(report, k, f"{factor}-ary tree", peers.b_ary_tree(n, k, factor), note=f"{source}; reads later periods")
        if JAX:
            _jax(report, n, k, full)
    if not JAX:
        report.say("jax-privacy", "not installed; its closed form for one period is the square root above")
    return report


def _jax(report: Report, n: int, k: int, full: bool) -> None:
    """jax-privacy's optimised strategies; compilation is part of their time."""
    if n <= 365 or full:
        began = process_time()
        c = peers.jax_banded(n)
        seconds, note = (process_time() - began, "compiled") if k == 1 else (None, "the one made for at most 1")
        _add(report, k, "jax-privacy, Toeplitz", peers.jax_errors(c, n, k), seconds, note=note)
    if full:
        began = process_time()
        c = peers.jax_buffered(n, k)
        _add(report, k, "jax-privacy, buffers", peers.jax_errors(c, n, k), process_time() - began, note="compiled")


def _add(
    report: Report,
    k: int,
    what: str,
    errors: np.ndarray,
    seconds: float | None = None,
    at_most: float | None = None,
    note: str = "",
) -> None:
    """One line: root mean square, largest, CPU seconds."""
    time = "" if seconds is None else f", {seconds:.2f} s CPU"
    said = f"largest {errors.max():.4g}{time}{', ' if note else ''}{note}"
    report.add(f"at most {k}: {what}", sqrt(np.mean(errors**2)), "", at_most, said)


def _errors(strategy: Toeplitz, k: int) -> np.ndarray:
    """Standard deviations of all totals at psi = 1."""
    sigma = strategy.sensitivity(Participation(k))
    return strategy.window_deviations(range(1, strategy.periods + 1), sigma)


def _together() -> Report:
    """Days, weeks, months and the year from one strategy."""
    report = Report("All questions together, 365 periods, psi = 1: root mean squared error")
    kinds = (Question.period(365), Question.window(365, 7), Question.window(365, 28))
    workload = Workload((*kinds, Question.since(365, MONTHS, "month to date"), Question.total(365)))
    for k, targets in ((1, (1.13, 2.02, 2.88, 2.41, 4.84)), (12, (None,) * 5)):
        choice = chosen(workload, Participation(k))
        for row, target in zip(choice.expected(), targets, strict=True):
            note = f"independent noise {row.independent:.3g}"
            report.add(f"at most {k}: {row.question}", row.rmse, "", target and 1.02 * target, note)
    return report


def _trainings() -> Report:
    """Banded strategies for 2,000 and 100,000 steps."""
    report = Report("Bands for a training, totals to date, a record in one step: root mean squared error")
    for n, b in [*((2000, b) for b in BANDS), (100_000, 128)]:
        began = process_time()
        strategy = banded(n, b)
        seconds = process_time() - began
        target = 20.83 if n > 2000 else BANDS[b] * (1 + 1e-4)
        report.add(
            f"{n:,} steps, {b} bands", sqrt(np.mean(_errors(strategy, 1) ** 2)), "", target, f"{seconds:.2f} s CPU"
        )
    return report


def _sensitivities() -> Report:
    """Squared sensitivities beside jax-privacy's."""
    report = Report("Squared sensitivity of the square root beside jax-privacy's, relative difference")
    for n, k, apart in [(10, 1, 1), (52, 4, 1), (52, 4, 13), (365, 12, 30), (365, 13, 1)] if JAX else []:
        strategy = Toeplitz.square_root(n)
        c = np.array(strategy.coefficients, np.float64)
        ours = strategy.squared(Participation(k, apart=apart))
        difference = abs(peers.jax_squared(c, n, k, apart) / ours - 1.0)
        report.add(f"{n} periods, at most {k}, {apart} apart", difference, "", 1e-14)
    if not JAX:
        report.say("jax-privacy", "not installed; the suite has its stored values")
    return report


def _coverage(replicates: int, seed: int) -> Report:
    """Intervals of five questions on streams of 365 periods with exact noise."""
    report = Report(f"95 % intervals of {replicates:,} streams, 365 periods, at most 4, psi = 0.5, exact noise")
    participation = Participation(4)
    strategy = optimised(Workload((Question.total(365),)), participation)
    sigma = Guarantee(0.5).sigma(strategy.sensitivity(participation))
    totals = np.random.default_rng(seed).integers(0, 1000, 365)
    windows = {"last day": (364, 365), "last 7 days": (358, 365), "last 28 days": (337, 365), "total": (0, 365)}
    windows["days 1 to 180"] = (0, 180)
    questions = np.array([[float(first <= t < last) for t in range(365)] for first, last in windows.values()])
    noise = RoundedGaussian(sigma).noise(365 * replicates).reshape(365, replicates)
    decoded = strategy.decode(np.array(strategy.encode(totals.tolist()), float)[:, None] + noise)
    errors, deviations = questions @ decoded - (questions @ totals)[:, None], strategy.deviation(questions, sigma)
    for name, error, deviation in zip(windows, errors, deviations, strict=True):
        share = float((np.abs(error) <= 1.959964 * deviation).mean())
        note = f"covered {share:.2%}; deviation in theory {deviation:.4g}, measured {error.std():.4g}"
        report.add(f"{name}: |coverage - 95 %|", abs(share - 0.95) * 100, "points", 1.0, note)
    return report
