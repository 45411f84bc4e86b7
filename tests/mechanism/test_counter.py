"""Counter: numbers published period after period, paid for once, the same whoever asks again."""

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import combinations
from threading import Barrier

import numpy as np
import pytest

import psidp
from psidp import Counter, Ledger
from psidp.ledger.event import price
from psidp.mechanism import stream_plan, stream_series
from scripts import script

TOTALS = [123456789, 222222223, 98765432]


def counter(ledger, name="visits", **terms):
    terms = {"psi": 0.5, "periods": 12, "at_most": 2, "windows": [3]} | terms
    return Counter(**terms, ledger=ledger, budget="survey", name=name)


def published(made, totals=TOTALS):
    return [made.publish(period, total) for period, total in enumerate(totals, 1)]


@pytest.fixture
def without_noise(monkeypatch):
    """What is released is the encoding itself; a list of (sigma, encoding)."""
    seen = []
    monkeypatch.setattr(stream_plan, "chosen", cache(stream_plan.chosen))
    monkeypatch.setattr(stream_series, "noisy_integer", lambda g, n: seen.append((g.sigma, n)) or n)
    return seen


def test_psi_is_paid_once_and_every_number_is_drawn_once(survey):
    made = counter(survey).open("weekly visits")
    left = survey.remaining("survey")
    assert 0.866 < left.psi < 0.86603
    first = published(made)
    assert published(made) == first == [made.value(period) for period in (1, 2, 3)]
    assert made.publish(2, 5) == first[1]
    assert survey.remaining("survey") == left
    assert made.open().published == 3
    spent = [e for e in survey.entries() if e.state == "spent" and e.psi > 0]
    assert [(e.purpose, e.details()["kind"]) for e in spent] == [("weekly visits", "strategy")]
    survey.verify()


def test_a_restart_finds_strategy_and_numbers_in_the_ledger_and_optimises_nothing(survey, url, monkeypatch):
    made = counter(survey).open()
    first = published(made)
    monkeypatch.setattr(stream_plan, "chosen", lambda *_: pytest.fail("optimised again"))
    with Ledger(url) as other:
        again = counter(other)
        assert again.plan().strategy == made.plan().strategy
        assert again.published == 3
        assert again.series("single period") == first
        with pytest.raises(ValueError, match="after a restart earlier ones are given again"):
            again.publish(4, 1)
        assert published(again) == first
        fourth = again.publish(4, 1000)
    assert made.value(4) == fourth
    assert abs(fourth.value - 1000) < 8 * fourth.standard_error


def test_nothing_that_was_given_is_written_down(survey):
    made = counter(survey, psi=1e-3).open()
    published(made)
    encoded = [made.plan().strategy.newest(TOTALS[:t]) for t in (1, 2, 3)]
    text = "".join(survey.export())
    assert not any(str(secret) in text for secret in (*TOTALS, *encoded))


def test_a_name_is_opened_for_one_set_of_terms(survey):
    counter(survey).open()
    head = survey.head()
    with pytest.raises(psidp.errors.KeyConflictError, match=r"at_most was 2, got at_most=3.*Use a new name"):
        counter(survey, at_most=3).open()
    assert survey.head() == head
    counter(survey, name="others", psi=0.3).open()


def test_two_openers_at_once_pay_once_and_two_publishers_publish_once(survey, url):
    barrier = Barrier(6)

    def run(_):
        with Ledger(url) as own:
            barrier.wait()
            return published(counter(own).open())

    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(run, range(6)))
    assert all(numbers == found[0] for numbers in found)
    entries = list(survey.entries())
    assert sum(e.psi > 0 for e in entries if e.state == "spent") == 1
    assert sum(e.state == "answered" for e in entries) == 3
    survey.verify()


def test_killed_at_lines_and_resumed_it_publishes_the_same_numbers_at_one_price(sqlite_url):
    outcome = script("mechanism/stream_kills.py", sqlite_url, 5, 1)
    assert outcome["kills"] > 18
    assert (outcome["changed"], outcome["twice"]) == (0, 0)


def test_killed_at_many_lines_on_postgresql(server):
    outcome = script("mechanism/stream_kills.py", server.place("counter_killed"), 9, 2)
    assert outcome["kills"] > 8
    assert (outcome["changed"], outcome["twice"]) == (0, 0)


@pytest.mark.parametrize(
    "terms", [{"at_most": 1}, {"at_most": 2}, {"apart": 3}, {"each": 3}, {"at_most": 2, "each": 2}]
)
@pytest.mark.parametrize("bound", [1, 7])
def test_no_unit_moves_the_released_numbers_further_than_was_paid_for(without_noise, terms, bound):
    made = Counter(psi=0.5, periods=6, bound=bound, **terms).open()
    base = [made.plan().strategy.newest([10 * t for t in range(1, s + 1)]) for s in range(1, 7)]
    worst = 0.0
    for size in range(1, 7):
        for places in combinations(range(6), size):
            if not keeps(places, **terms):
                continue
            other = Counter(psi=0.5, periods=6, bound=bound, **terms).open()
            del without_noise[:]
            published(other, [10 * (t + 1) + bound * (t in places) for t in range(6)])
            moved = sum((n - b) ** 2 / sigma**2 for (sigma, n), b in zip(without_noise, base, strict=True)) ** 0.5
            worst = max(worst, moved)
    assert worst <= made.plan().guarantee.psi <= 0.5
    assert worst > (0.3 if "each" in terms else 0.4999)


def keeps(places, at_most=6, apart=1, each=None):
    """Whether a set of periods keeps the promise."""
    buckets = [p // each for p in places] if each else []
    close = any(b - a < apart for a, b in combinations(places, 2))
    return len(places) <= at_most and not close and len(set(buckets)) == len(buckets)


def test_a_stream_whose_noise_is_too_small_or_whose_bucket_is_priced_as_a_separation_is_refused(survey):
    made = counter(survey, at_most=None, each=4)
    event = made.plan().event({})
    right = price(event, unit="record")
    cheap = event | {"parts": [event["parts"][0] | {"sigma": 0.9 * event["parts"][0]["sigma"]}]}
    apart = event | {"participation": {"apart": 4}}
    assert price(cheap).psi > 1.1 * right.psi
    assert price(apart).psi < 0.998 * right.psi
    for wrong in (cheap, apart):
        with pytest.raises(psidp.errors.MismatchError, match="must be spent at its price"):
            survey.spend("survey", right, purpose="a test", event=wrong)


def test_intervals_of_five_questions_cover_as_promised(monkeypatch):
    dice = np.random.default_rng(20261116)
    monkeypatch.setattr(stream_series, "noisy_integer", lambda g, n: round(n + g.sigma * dice.standard_normal()))
    totals, hits = [100 + 3 * t for t in range(12)], np.zeros(5)
    plan = Counter(psi=0.5, periods=12, at_most=2, windows=[3]).plan()
    monkeypatch.setattr(stream_plan.StreamPlan, "made", classmethod(lambda *_: plan))
    for _ in range(1000):
        made = Counter(psi=0.5, periods=12, at_most=2, windows=[3]).open()
        for period in range(1, 13):
            made._record.release(period, lambda counter=made, t=period: counter._drawn(totals[:t]))
        found = [
            (made.value(12), totals[-1]),
            (made.window(3)[-1], sum(totals[-3:])),
            (made.value(12, "total to date"), sum(totals)),
            (made.value(6, "total to date"), sum(totals[:6])),
            (made.between(4, 9), sum(totals[3:9])),
        ]
        hits += [point.lower <= truth <= point.upper for point, truth in found]
    assert all(0.935 < share < 0.965 for share in hits / 1000)


def test_a_year_of_weeks_has_little_more_than_half_the_error_of_independent_noise():
    made = Counter(psi=0.5, periods=52, at_most=1).open()
    rows = {row.question: row for row in made.plan().expected()}
    assert rows["total to date"].rmse < 0.6 * rows["total to date"].independent
    assert rows["single period"].rmse < 1.2 * rows["single period"].independent
    for period in range(1, 53):
        made.publish(period, 1000)
    last = made.value(52, "total to date")
    assert abs(last.value - 52_000) < 6 * last.standard_error
    assert last.standard_error == pytest.approx(rows["total to date"].last)
    assert "Correlated noise" in str(made.plan())


def test_a_number_once_shown_never_changes():
    made = Counter(psi=0.5, periods=40, at_most=1).open()
    shown = {}
    for period in range(1, 41):
        made.publish(period, 50)
        for question in ("single period", "total to date", 4):
            points = made.window(4) if question == 4 else made.series(question)
            for point in points:
                assert shown.setdefault((question, point.period), point) == point


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({"at_most": None}, r"at_most \(periods that one unit can be in\) must be a whole number"),
        ({"at_most": 0}, "at_most must be a whole number of at least 1"),
        ({"bound": 0.5}, "bound must be a whole number of at least 1, got bound=0.5"),
        ({"psi": float("nan")}, r"psi \(sensitivity index Delta/sigma\) must be"),
        ({"psi": 0.0}, r"psi \(sensitivity index Delta/sigma\) must be above 0"),
        ({"confidence": 1.0}, r"confidence \(chance that an interval covers\) must be in \(0, 1\)"),
        ({"periods": 0}, "periods must be a whole number of at least 1"),
    ],
)
def test_nonsense_is_refused_by_name(terms, words):
    with pytest.raises(ValueError, match=words):
        Counter(**{"psi": 0.5, "periods": 12, "at_most": 1} | terms).plan()


def test_what_is_not_open_publishes_nothing_and_what_does_not_fit_is_not_opened(survey):
    made = counter(survey, psi=2.0)
    with pytest.raises(
        ValueError, match=r"must be open before it publishes or reads anything. Open it first: open\(\)"
    ):
        made.publish(1, 5)
    with pytest.raises(psidp.errors.BudgetExceededError):
        made.open()
    with pytest.raises(ValueError, match="Open it first"):
        made.series()
    with pytest.raises(TypeError, match="ledger, budget and name must be given together"):
        Counter(psi=1.0, periods=2, at_most=1, ledger=survey, budget="survey")
    assert [e.state for e in survey.entries()] == ["opened"]


def test_a_budget_that_renews_cannot_carry_a_stream(survey):
    survey.open("yearly", psi=1.0, actor="Ann", purpose="a test", renews="year")
    with pytest.raises(ValueError, match="renews every year, and a stream is paid for once"):
        Counter(psi=0.5, periods=3, at_most=1, ledger=survey, budget="yearly", name="visits")


def test_periods_end_where_the_plan_ends():
    made = Counter(psi=0.5, periods=2, at_most=1).open()
    published(made, [1, 2])
    with pytest.raises(ValueError, match="period must be at most 2, got period=3"):
        made.publish(3, 1)
    with pytest.raises(TypeError):
        made.publish(2, 1.5)
    with pytest.raises(TypeError, match="truth value"):
        made.publish(2, True)
    with pytest.raises(ValueError, match="must be published ones, 1 to 2"):
        made.between(1, 3)
    with pytest.raises(ValueError, match="question must be one of"):
        made.series("weekly")


def test_cells_decoded_together_have_the_bits_of_each_alone():
    plan = psidp.Counter(psi=0.5, periods=30, at_most=4).plan()
    part, dice = plan.parts[0], np.random.default_rng(1)
    cells = dice.integers(-(10**12), 10**12, (5, 20)).tolist()
    for question in ("single period", "total to date", 7):
        asked = stream_series.named_question(question, 30)
        alone = [stream_series.points(plan, part, cell, asked, 0.9) for cell in cells]
        assert stream_series.cell_points(plan, part, cells, asked, 0.9) == alone
        later = [[point for point in points if point.period > 12] for points in alone]
        assert stream_series.cell_points(plan, part, cells, asked, 0.9, after=12) == later
        assert stream_series.cell_points(plan, part, cells, asked, 0.9, after=20) == [[]] * 5
