"""Who asked what, of which table, when: lists choose and page, statements add up exactly."""

import getpass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import product

import pyarrow as pa
import pytest

import psidp
from psidp import Curator, GaussianMechanism, Guarantee, Ledger, Partitions, ask
from psidp.ledger.listing import Selection

BUDGETS, ACTORS, TABLES = ("a", "b"), ("ann", "bob", "O'Brien ß"), ("visits.csv", "")
START = datetime(2025, 12, 30, tzinfo=UTC)


@pytest.fixture
def year(url):
    """Spends of every budget, actor and table, a day apart, around the end of a year."""
    now = [START]
    ledger = Ledger(url, clock=lambda: now[0])
    for name in BUDGETS:
        ledger.open(name, psi=9.0, unit="patient", purpose="a test", actor="ann")
    for number, (budget, actor, table) in enumerate(product(BUDGETS, ACTORS, TABLES)):
        now[0] += timedelta(hours=12)
        price = Guarantee(0.1 + 0.01 * number, unit="patient")
        with ledger.spend(budget, price, purpose=f"spend {number}", actor=actor, table=table):
            pass
    yield ledger
    ledger.dispose()


def said(entry, name):
    return entry.details().get({"actor": "by"}.get(name, name), "")


CHOICES = [
    {"budget": budget, "actor": actor, "table": table, "since": since, "until": until}
    for budget in ("", "a")
    for actor in ("", "bob", "O'Brien ß", "nobody")
    for table in ("", "visits.csv")
    for since, until in (("", ""), ("2026", "2026"), ("2026-01-02", ""), ("", "2026-01-03T12:00"))
]


def chosen(entries, which):
    """The numbers of the spends that are meant, the newest first, by a look at each."""
    first, last = which.times
    return [
        entry.id
        for entry in entries
        if entry.state == "spent"
        and which.budget in ("", entry.budget)
        and which.actor in ("", said(entry, "actor"))
        and which.table in ("", said(entry, "table"))
        and entry.time >= first
        and (not last or entry.time < last)
    ][::-1]


def test_a_list_is_what_a_look_at_every_entry_finds_and_so_are_its_pages(year):
    entries = list(year.entries())
    for choice in CHOICES:
        which = Selection(**choice)
        expected = chosen(entries, which)
        assert [entry.id for entry in year.list(which, size=100)] == expected, choice
        pages, before = [], None
        while found := year.list(which, size=2, before=before):
            pages += [entry.id for entry in found]
            before = pages[-1]
        assert pages == expected, choice


def test_a_statement_adds_up_exactly_by_unit_budget_table_and_actor(year):
    made = year.statement(Selection(since="2026", until="2026"))
    spends = [e for e in year.entries() if e.state == "spent" and e.time.startswith("2026")]
    total = sum(Fraction(e.psi) ** 2 for e in spends)
    (unit,) = made.units.values()
    assert unit["spends"] == len(spends)
    assert Fraction(unit["psi"]) ** 2 >= total > Fraction(unit["psi"] * (1 - 3e-16)) ** 2
    for name, totals in (("actor", made.actors), ("table", made.tables)):
        for key, found in totals.items():
            mine = [Fraction(e.psi) ** 2 for e in spends if (said(e, name) or "(not said)") == key]
            assert found["spends"] == len(mine)
            assert found["psi"] == pytest.approx(float(sum(mine)) ** 0.5)
    assert [line.psi for line in made.largest] == sorted((e.psi for e in spends), reverse=True)[:10]
    assert {entry.state for entry in year.statement().changes} == {"opened"}
    assert made.to_dict()["head"] == str(year.head())


def test_disjoint_partitions_cost_what_the_largest_costs_in_a_statement_too(ledger):
    parts = Partitions("region", ("north", "south"), "Ann")
    ledger.open("regions", psi=5.0, purpose="q", partitions=parts)
    for region, psi in (("north", 3.0), ("south", 4.0)):
        with ledger.spend("regions", Guarantee(psi), purpose="q", partition=region):
            pass
    made = ledger.statement()
    assert made.budgets["regions"]["psi"] == 4.0 == made.units["record", "add-remove"]["psi"]
    assert made.tables["(not said)"]["psi"] == 5.0, "where nobody says that parts are disjoint, everything adds up"


def test_the_actor_is_the_systems_user_unless_told(ledger, url):
    ledger.open("survey", psi=1.0, purpose="q")
    with ledger.spend("survey", Guarantee(0.1), purpose="q"):
        pass
    with Ledger(url, actor="bob") as other, other.spend("survey", Guarantee(0.1), purpose="q"):
        pass
    assert [said(entry, "actor") for entry in ledger.entries()] == [getpass.getuser()] * 2 + ["bob"]
    for wrong in (" ", "nul\0", "x" * 2000):
        with pytest.raises(ValueError, match="actor must"):
            ledger.spend("survey", Guarantee(0.1), purpose="q", actor=wrong)


def test_releases_of_curators_mechanisms_and_streams_say_their_table_and_unit_column(ledger, tmp_path):
    (tmp_path / "visits.csv").write_text("patient,day\n1,2026-01-01\n2,2026-01-05\n")
    ledger.open("survey", psi=9.0, unit="patient", purpose="q")
    with Curator(tmp_path / "visits.csv", "patient", ledger=ledger, budget="survey") as curator:
        curator.ask(ask.count()).release(psi=0.5)
        curator.ask(ask.count()).release(psi=0.5, retry_key="k")
    with Curator(pa.table({"patient": [1, 2]}), "patient", ledger=ledger, budget="survey") as curator:
        curator.ask(ask.count()).release(psi=0.5)
    GaussianMechanism(1.0, 4.0, unit="patient", ledger=ledger, budget="survey").release(1.0, purpose="a number")
    spends = [e for e in ledger.entries() if e.state == "spent"]
    assert [(said(e, "table"), said(e, "table_unit")) for e in spends] == [
        ("visits.csv", "patient"), ("visits.csv", "patient"), ("", "patient"), ("", ""),
    ]  # fmt: skip
    assert [e.id for e in ledger.list(Selection(table="visits.csv"))] == [spends[1].id, spends[0].id]
    ledger.verify()


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"since": "last year"}, "since must be a year"),
        ({"until": "2026-13"}, "until must be a year"),
        ({"since": "2027", "until": "2026"}, "since must lie before until"),
        ({"state": "refunded"}, "state must be one of"),
    ],
)
def test_a_choice_that_cannot_be_is_refused(wrong, why):
    with pytest.raises(ValueError, match=why):
        Selection(**wrong)


@pytest.mark.parametrize("size", [0, -1, 10_001])
def test_a_page_has_a_sensible_size(year, size):
    with pytest.raises(ValueError, match="size"):
        year.list(size=size)


def test_a_name_in_a_copy_that_the_event_does_not_say_is_found(year):
    guards = {
        "sqlite": "DROP TRIGGER psidp_entries_keep",
        "postgresql": "ALTER TABLE psidp_entries DISABLE TRIGGER ALL",
    }

    def forge(connection):
        connection.exec_driver_sql(guards[connection.dialect.name])
        connection.exec_driver_sql("UPDATE psidp_entries SET actor = 'eve' WHERE id = 4")

    year._store.write(forge)
    with pytest.raises(psidp.errors.TamperedLedgerError, match=r"entry 4 .* copy of the actor"):
        year.verify()
