"""We audit ourselves: our mechanism passes at its nominal rate, each broken one is caught."""

import numpy as np
import pytest

from auditing import mechanisms
from auditing.attacks import most
from psidp import Guarantee, audit_mechanism
from psidp.auditing import runs
from psidp.auditing.black_box import runs_needed
from psidp.auditing.runs import outputs

ONE = Guarantee(psi=1.0)
FALSE_ALARM = 1e-6


def look(mechanism, runs, **options):
    """An audit in this process: unless told, one that is kept waiting would go on in others, which have no seed."""
    mechanisms.seed(11)
    return audit_mechanism(mechanism, 0.0, 1.0, runs=runs, claimed=ONE, seed=1, **({"processes": 1} | options))


def test_our_own_mechanism_passes_once_there_are_enough_runs():
    assert look(mechanisms.exact, 10_000, confidence=1 - 1e-6, tolerance=0.2).verdict == "PASS"


def test_our_own_mechanism_is_called_fail_no_more_often_than_the_confidence_allows():
    fails = sum(look(mechanisms.exact, 120, confidence=0.8).verdict == "FAIL" for _ in range(60))
    assert fails <= most(60, 0.2 / 2, FALSE_ALARM)  # the first look pays half


@pytest.mark.parametrize(
    ("mechanism", "runs", "score"),
    [
        (mechanisms.too_little_noise, 16_000, "linear"),
        (mechanisms.seeded, 200, None),
        (mechanisms.single_precision, 6000, "lowest bit"),
        (mechanisms.plain, 6000, "lowest bit"),
        (mechanisms.sensitivity_too_small, 1000, "linear"),
    ],
)
def test_each_broken_mechanism_is_caught(mechanism, runs, score):
    result = look(mechanism, runs)
    assert result.verdict == "FAIL"
    assert result.psi > 1.0
    assert score in (result.score, None)


def test_a_mechanism_whose_spread_follows_the_data_is_caught():
    rng = np.random.default_rng(2)
    result = audit_mechanism(lambda x: rng.normal(0, 1 + x), 0.0, 1.0, runs=1500, claimed=Guarantee(0.3), seed=1)
    assert result.verdict == "FAIL"
    assert result.score in ("quadratic", "histogram")


def test_many_coordinates_are_weighed_together():
    rng = np.random.default_rng(3)
    step = np.linspace(0, 1, 20) / np.linalg.norm(np.linspace(0, 1, 20))
    result = audit_mechanism(
        lambda x: np.round((x * step + rng.standard_normal(20)) * 2**20) / 2**20,
        0.0,
        2.0,
        runs=2000,
        claimed=Guarantee(2.0),
        seed=1,
    )
    assert result.verdict == "NOT ENOUGH RUNS"
    assert 1.7 < result.psi < 2.0


def test_too_few_runs_say_how_many_more_and_the_next_look_pays_half():
    first = look(mechanisms.repeatable, 400, tolerance=0.3)
    assert first.verdict == "NOT ENOUGH RUNS"
    assert first.result.confidence == pytest.approx(1 - 0.05 / 2)
    second = audit_mechanism(
        mechanisms.repeatable,
        0.0,
        1.0,
        runs=first.more,
        claimed=ONE,
        tolerance=0.3,
        processes=1,
        seed=2,
        previous=first,
    )
    assert (second.verdict, second.stage) == ("PASS", 2)
    assert second.result.confidence == pytest.approx(1 - 0.05 / 4)
    assert second.result.n_in == 300 + first.more
    with pytest.raises(ValueError, match="same claim"):
        audit_mechanism(mechanisms.repeatable, 0.0, 1.0, claimed=Guarantee(2.0), previous=first)


def test_with_the_runs_it_asks_for_a_mechanism_worse_by_the_tolerance_is_caught():
    needed = runs_needed(ONE, 0.3, 0.025)
    rng, caught = np.random.default_rng(4), 0
    for r in range(40):
        runs = int(needed / 0.75) + 1
        result = audit_mechanism(
            lambda x: round((1.3 * x + rng.standard_normal()) * 2**20) / 2**20,
            0.0, 1.0, runs=runs, claimed=ONE, tolerance=0.3, seed=r,
        )  # fmt: skip
        caught += result.verdict == "FAIL"
    assert caught >= 27  # fewer with probability 3e-5 if nine in ten are caught


def test_processes_make_the_same_kind_of_runs_and_report_progress():
    seen = []
    here = outputs(
        mechanisms.fine, [0.0, 5.0], 40, processes=2, progress=lambda done, wanted: seen.append((done, wanted))
    )
    assert [rows.shape for rows in here] == [(40, 1), (40, 1)]
    assert len(np.unique(np.concatenate(here))) == 80  # no process repeats another's noise; by chance with 3e-11
    assert seen[-1] == (80, 80)
    assert seen == sorted(seen)


@pytest.mark.parametrize(
    ("mechanism", "error", "sentence"),
    [
        (mechanisms.shouting, TypeError, "must return numbers"),
        (mechanisms.growing, ValueError, "as many numbers in every run"),
        (mechanisms.not_a_number, ValueError, "got NaN"),
    ],
)
def test_outputs_that_cannot_be_scored_are_refused(mechanism, error, sentence):
    with pytest.raises(error, match=sentence):
        look(mechanism, 100)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"runs": 5}, "runs .* at least 20"),
        ({"tolerance": 0.0}, "tolerance"),
        ({"tolerance": float("nan")}, "tolerance"),
        ({"confidence": 2.0}, "confidence"),
        ({"processes": 0}, "processes"),
    ],
)
def test_nonsense_is_refused_by_name(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        look(mechanisms.exact, **({"runs": 100} | options))


def test_unless_told_processes_are_used_only_when_that_pays(monkeypatch):
    used = []
    monkeypatch.setattr(runs, "_batches", lambda m, d, n, workers: used.append(workers) or iter(()))
    monkeypatch.setattr(runs.os, "cpu_count", lambda: 3)
    for seconds in (1e9, 0.0):
        monkeypatch.setattr(runs, "WORTH_PROCESSES", seconds)
        outputs(mechanisms.exact, [0.0], 100)
        outputs(lambda x: x, [0.0], 100)
    assert used == [1, 1, 3, 1]


def test_a_terminal_shows_a_bar(monkeypatch, capsys):
    monkeypatch.setattr(runs.sys.stderr, "isatty", lambda: True, raising=False)
    outputs(mechanisms.exact, [0.0], 20)
    assert capsys.readouterr().err.endswith(f"[{'#' * 30}] 20/20 runs\n")


def test_a_lambda_is_not_sent_to_processes():
    with pytest.raises(ValueError, match="must be a function of a module"):
        audit_mechanism(lambda x: x, 0.0, 1.0, runs=100, claimed=ONE, processes=2)


def test_a_verdict_can_be_written_down():
    said = look(mechanisms.seeded, 100).to_dict()
    assert said["verdict"] == "FAIL"
    assert said["result"]["claimed"]["psi"] == 1.0
