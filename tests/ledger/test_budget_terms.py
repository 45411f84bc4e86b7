"""Disjoint parts of the data cost what the largest costs; a renewal is never a forgetting."""

import sqlite3
from datetime import UTC, datetime, timedelta

import pytest

import psidp
from psidp import Guarantee, Ledger, Partitions
from psidp.ledger.entry import INSERT, Entry

REGIONS = Partitions("region", ("north", "south", "east"), declared_by="Ann, data steward")


def spend(ledger, psi, partition="", budget="survey"):
    with ledger.spend(budget, Guarantee(psi), purpose="a test", partition=partition):
        pass


@pytest.fixture
def parts(ledger):
    ledger.open("survey", psi=5.0, actor="Ann", purpose="a test", partitions=REGIONS)
    return ledger


def test_partitions_cost_what_the_largest_costs(parts):
    spend(parts, 3.0, "north")
    spend(parts, 4.0, "south")
    assert parts.report("survey").spent.psi == 4.0
    assert parts.remaining("survey").psi == 3.0
    assert [parts.remaining("survey", p).psi for p in REGIONS.values] == [4.0, 3.0, 5.0]
    spend(parts, 3.0)
    assert parts.report("survey").spent.psi == 5.0
    assert [parts.remaining("survey", p).psi for p in REGIONS.values[::2]] == [psidp.maths.rounding.root_below(7), 4.0]
    with pytest.raises(psidp.errors.BudgetExceededError):
        spend(parts, 0.1, "south")
    with pytest.raises(psidp.errors.BudgetExceededError):
        spend(parts, 0.1)
    spend(parts, 4.0, "east")
    assert parts.report("survey").remaining.psi == 0.0
    parts.verify()


def test_a_reset_begins_partitions_anew_and_the_lifetime_goes_on(parts):
    spend(parts, 3.0, "north")
    spend(parts, 4.0, "south")
    parts.reset("survey", actor="Ann", purpose="a test")
    assert parts.remaining("survey", "south").psi == 5.0
    spend(parts, 4.0, "north")
    assert (parts.report("survey").spent.psi, parts.report("survey").lifetime.psi) == (4.0, 5.0)
    parts.verify()


def test_who_declared_the_partitions_is_on_record(parts):
    assert parts.report("survey").to_dict()["partitions"]["declared_by"] == "Ann, data steward"


def test_partitions_are_refused_under_replace_one(ledger):
    with pytest.raises(psidp.errors.MismatchError, match="add-remove"):
        ledger.open("s", psi=1.0, actor="Ann", purpose="a test", adjacency="replace-one", partitions=REGIONS)


@pytest.mark.parametrize("partition", ["west", "North", "north "])
def test_a_partition_that_was_not_declared_is_refused(parts, partition):
    with pytest.raises(ValueError, match="one of those declared"):
        spend(parts, 0.1, partition)
    with pytest.raises(ValueError, match="one of those declared"):
        parts.remaining("survey", partition)


def test_a_partition_of_a_budget_without_any_is_refused(survey):
    with pytest.raises(ValueError, match="one of those declared: none"):
        spend(survey, 0.1, "north")


@pytest.mark.parametrize(("values", "by"), [((), "Ann"), (("a", "a"), "Ann"), (("a", ""), "Ann"), (("a",), " ")])
def test_partitions_say_what_they_are_and_who_says_so(values, by):
    with pytest.raises(ValueError):
        Partitions("region", values, by)


class Clock:
    def __init__(self, *moment):
        self.now = datetime(*moment, tzinfo=UTC)

    def __call__(self):
        return self.now


def test_a_renewing_budget_renews_and_shows_its_running_total(url):
    clock = Clock(2026, 1, 30)
    ledger = Ledger(url, clock=clock)
    ledger.open("monthly", psi=4.0, actor="Ann", purpose="a test", renews="month")
    spend(ledger, 4.0, budget="monthly")
    with pytest.raises(psidp.errors.BudgetExceededError):
        spend(ledger, 0.1, budget="monthly")
    clock.now += timedelta(days=3)
    assert ledger.remaining("monthly").psi == 4.0
    assert ledger.report("monthly").lifetime.psi == 4.0
    spend(ledger, 3.0, budget="monthly")
    report = ledger.report("monthly")
    assert (report.period, report.era, report.spent.psi, report.lifetime.psi) == ("2026-02", 2, 3.0, 5.0)
    assert [e.state for e in ledger.entries()] == ["opened", "spent", "renewed", "spent"]
    assert report.to_dict()["changes"][-1]["event"] == {
        "kind": "renewed", "period": "2026-02", "by": ledger.actor,
    }  # fmt: skip
    ledger.verify()
    with pytest.raises(ValueError, match="renews"):
        ledger.split("monthly", {"a": 1}, actor="Ann", purpose="a test")
    ledger.dispose()


def test_a_ledger_whose_budget_renewed_verifies_though_time_goes_on_while_it_is_written(url):
    """Every look at the clock is later than the one before."""
    clock = Clock(2026, 1, 30)

    def ticking():
        clock.now += timedelta(microseconds=1)
        return clock.now

    with Ledger(url, clock=ticking) as ledger:
        ledger.open("monthly", psi=4.0, purpose="a test", renews="month")
        clock.now += timedelta(days=3)
        spend(ledger, 4.0, budget="monthly")
        times = [entry.time for entry in ledger.entries()]
        assert times == sorted(times)
        ledger.verify()


def test_a_spend_that_is_older_than_its_renewal_verifies_in_a_ledger_of_0_2(sqlite_url):
    clock = Clock(2026, 1, 30)
    with Ledger(sqlite_url, clock=clock) as ledger:
        ledger.open("monthly", psi=4.0, purpose="a test", renews="month")
        clock.now += timedelta(days=3)
        spend(ledger, 4.0, budget="monthly")
        *_, renewed, spent = ledger.entries()
    with sqlite3.connect(sqlite_url) as stranger:
        stranger.executescript("DROP TRIGGER psidp_entries_stay; DELETE FROM psidp_entries WHERE id > 1")
        columns = [entry.to_dict() for entry in (renewed, spent)]
        columns[0]["time"] = "2026-02-02T00:00:00.000002Z"
        first = Entry.sealed(**{name: value for name, value in columns[0].items() if name != "hash"})
        columns[1] |= {"time": "2026-02-02T00:00:00.000001Z", "previous": first.hash}
        second = Entry.sealed(**{name: value for name, value in columns[1].items() if name != "hash"})
        stranger.executemany(INSERT["sqlite"], [first.row(), second.row()])
    stranger.close()
    with Ledger(sqlite_url, clock=clock) as again:
        assert again.verify().id == 3


def test_a_refused_spend_renews_nothing(sqlite_url):
    clock = Clock(2026, 1, 30)
    ledger = Ledger(sqlite_url, clock=clock)
    ledger.open("monthly", psi=4.0, actor="Ann", purpose="a test", renews="month")
    clock.now += timedelta(days=3)
    with pytest.raises(psidp.errors.BudgetExceededError):
        spend(ledger, 5.0, budget="monthly")
    assert ledger.head().id == 1


def test_a_clock_turned_back_does_not_bring_last_months_budget_back(sqlite_url):
    clock = Clock(2026, 3, 2)
    ledger = Ledger(sqlite_url, clock=clock)
    ledger.open("monthly", psi=4.0, actor="Ann", purpose="a test", renews="month")
    spend(ledger, 4.0, budget="monthly")
    clock.now -= timedelta(days=20)
    with pytest.raises(psidp.errors.ClockError, match="the clock says 2026-02-10"):
        spend(ledger, 1.0, budget="monthly")
    clock.now = datetime(2026, 3, 1, 23, 58, tzinfo=UTC)
    with pytest.raises((psidp.errors.ClockError, psidp.errors.BudgetExceededError)):
        spend(ledger, 1.0, budget="monthly")
    assert ledger.head().id == 2


def test_clocks_of_several_machines_may_differ_a_little_and_time_never_runs_back(sqlite_url):
    clock = Clock(2026, 3, 2, 12)
    ledger = Ledger(sqlite_url, clock=clock)
    ledger.open("survey", psi=4.0, actor="Ann", purpose="a test")
    clock.now -= timedelta(minutes=4)
    spend(ledger, 1.0)
    assert [e.time for e in ledger.entries()] == ["2026-03-02T12:00:00.000000Z"] * 2
    ledger.verify()


def test_a_budget_without_kappa_says_how_to_get_some(sqlite_url):
    ledger = Ledger(sqlite_url)
    ledger.open("survey", psi=1.0, actor="Ann", purpose="a test")
    with pytest.raises(psidp.errors.BudgetExceededError, match="Raise the budget's kappa: psidp ledger raise"):
        ledger.spend("survey", Guarantee(0.1, 1e-9), purpose="x").__enter__()
