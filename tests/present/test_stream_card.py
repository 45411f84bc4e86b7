"""The card of a stream says what is published, how often, for which psi, and whose promise the cap is."""

import datetime

import pytest

import psidp
from psidp import Counter, Ledger, ask


def words(card):
    scope = card.scope
    return " | ".join([card.title, card.mechanism.name, scope.contribution_bound, *scope.covered, *scope.not_covered])


def test_a_counters_card_says_that_the_cap_is_the_callers_promise():
    counter = Counter(psi=0.5, periods=52, at_most=2, bound=3, unit="user")
    made = psidp.card(counter, date="2026-01-31")
    assert made.guarantee == counter.plan().guarantee
    assert (
        "one user adds at most 3 to a period and is in at most 2 periods. This is the promise of whoever counts"
        in words(made)
    )
    assert "a total published in each of 52 periods" in made.title
    assert "one psi, paid once" in words(made)
    assert psidp.Card.from_json(made.to_json()) == made


def test_the_card_of_a_tables_stream_says_what_the_engine_enforces_and_what_is_not_covered(tmp_path):
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"u": [1], "g": ["a"], "a": [datetime.date(2026, 1, 5)]})
    with Ledger(tmp_path / "ledger.db") as ledger:
        ledger.open("clinic", psi=1.0, unit="patient", actor="Ann", purpose="a test")
        curator = psidp.Curator(table, unit="u", ledger=ledger, budget="clinic")
        terms = {"every": "week", "since": "2026-01-05", "periods": 12, "cap": ask.cap(at_most=2), "arrived": "a"}
        stream = curator.stream("visits", ask.count(contribution=3), by="g", groups=["a"], **terms).priced(psi=0.5)
        made = psidp.card(stream)
    said = words(made)
    assert made.title == "visits: count by g, every week since 2026-01-05"
    assert (
        "Numbers are of what counts, not of all rows: one patient counts in the first 2 weeks in which it has" in said
    )
    assert "with at most 3 rows' worth (L2 norm, over all groups) in each." in said
    assert "How much this takes away is not measured, and no interval holds it." in said
    assert "The engine enforces it" in said
    assert "erasing a whole patient is covered" in said
    assert made.guarantee.psi <= 0.5
    assert made.guarantee.unit == "patient"


def test_the_card_of_a_streams_entry_says_that_psidp_clipped_and_a_counters_that_nothing_did(tmp_path):
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"u": [1], "a": [datetime.date(2026, 1, 5)]})
    with Ledger(tmp_path / "ledger.db") as ledger:
        ledger.open("clinic", psi=1.0, unit="patient", actor="Ann", purpose="a test")
        curator = psidp.Curator(table, unit="u", ledger=ledger, budget="clinic")
        curator.ask(ask.count()).release(psi=0.1)
        terms = {"every": "week", "since": "2026-01-05", "periods": 12, "cap": ask.cap(at_most=2), "arrived": "a"}
        curator.stream("visits", ask.count(contribution=3), **terms).open(psi=0.5)
        Counter(psi=0.5, periods=52, at_most=2, unit="patient", ledger=ledger, budget="clinic", name="hits").open()
        streamed, counted = (psidp.card(ledger.spent(n), ledger=ledger, budget="clinic") for n in (4, 5))
    assert streamed.scope.contribution_bound.startswith("psidp clipped it before noise was drawn")
    assert counted.scope.contribution_bound == ""
