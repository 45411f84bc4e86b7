"""A budget knows the column that names its units: another one, or every row, needs words, and the words stay."""

import json
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pyarrow as pa
import pytest

import psidp
from psidp import Curator, Guarantee, Ledger, ask
from psidp.errors import MismatchError, TamperedLedgerError
from psidp.ledger.actor import WHO
from psidp.ledger.entry import ENTRIES, Entry

FLIGHTS = pa.table({"tailnum": ["N1"] * 575 + ["N2"], "flight": list(range(576)), "delay": [1.0] * 576})


@pytest.fixture
def kept(ledger):
    """A budget per aircraft, as in the report that called 575 flights of one aircraft 575 aircraft."""
    ledger.open("fleet", psi=10.0, unit="aircraft", actor="Ann", purpose="delays")
    return ledger


def curator(ledger, unit, budget="fleet", **more):
    return Curator(FLIGHTS, unit, ledger=ledger, budget=budget, **more)


def spent(ledger, unit, **more):
    """The event of a release's entry, which always says that psidp clipped."""
    curator(ledger, unit, **more).ask(ask.count()).release(psi=0.1)
    event = json.loads(next(e.event for e in reversed(list(ledger.entries())) if e.state == "spent"))
    assert event.pop("clipped") is True
    return {name: value for name, value in event.items() if name not in WHO}


def test_rows_are_no_aircraft_from_the_first_release_on(kept):
    with pytest.raises(MismatchError, match=r"which is per aircraft, got unit=None: every row would count as one"):
        curator(kept, None)
    assert kept.head().id == 1


def test_the_first_release_says_the_unit_column_and_another_one_is_refused(kept, url):
    assert spent(kept, "tailnum") == {"kind": "guarantee", "unit_column": "tailnum"}
    assert spent(kept, "tailnum") == {"kind": "guarantee"}
    for ledger in (kept, Ledger(url)):
        for unit in ("flight", None):
            with pytest.raises(
                MismatchError, match=f"must be 'tailnum' for budget 'fleet', as entry 2 says, got unit={unit!r}"
            ):
                curator(ledger, unit)
    assert kept.verify().id == 5


def test_words_that_it_is_the_same_unit_are_in_the_entry_and_in_the_report(kept):
    spent(kept, "tailnum")
    words = "one row per aircraft: the fleet list"
    said = spent(kept, None, same_unit=words)
    assert said == {"kind": "guarantee", "unit_column": None, "budget_unit_column": "tailnum", "same_unit": words}
    assert spent(kept, "tailnum") == {"kind": "guarantee"}
    with pytest.raises(MismatchError, match="must be 'tailnum'"):
        curator(kept, None)
    assert kept.report("fleet").to_dict()["units"] == [
        {"id": 2, "unit_column": "tailnum"},
        {"id": 4, "unit_column": None, "budget_unit_column": "tailnum", "same_unit": words},
    ]
    spent(kept, "flight", same_unit="a test")
    assert [e.id for e in kept.report("fleet").units] == [2, 4, 8]
    assert kept.verify().id == 9


def test_a_first_release_by_rows_with_words_makes_rows_the_unit(kept):
    words = "one row per aircraft"
    assert spent(kept, None, same_unit=words) == {"kind": "guarantee", "unit_column": None, "same_unit": words}
    assert spent(kept, None) == {"kind": "guarantee"}
    with pytest.raises(MismatchError, match="must be None"):
        curator(kept, "tailnum")
    kept.verify()


def test_rows_are_records_without_words(survey):
    assert spent(survey, None, budget="survey") == {"kind": "guarantee", "unit_column": None}
    with pytest.raises(MismatchError, match="must be None"):
        curator(survey, "tailnum", budget="survey")


def test_a_share_has_the_unit_column_of_what_it_is_part_of(kept):
    spent(kept, "tailnum")
    kept.split("fleet", {"a": 1, "b": 1}, actor="Ann", purpose="two teams")
    with pytest.raises(MismatchError, match="must be 'tailnum' for budget 'a', as entry 2 says"):
        curator(kept, "flight", budget="a")
    spent(kept, "flight", budget="a", same_unit="a test")
    with pytest.raises(MismatchError, match="must be 'tailnum'"):
        curator(kept, "flight", budget="a")
    assert spent(kept, "tailnum", budget="b") == {"kind": "guarantee"}
    kept.verify()


def test_of_two_first_releases_at_once_one_column_stays(kept, url):
    """Both curators were made before either spent; the ledger looks again where it spends."""
    start = Barrier(2)
    curators = [curator(Ledger(url), unit) for unit in ("tailnum", "flight")]

    def attempt(made):
        start.wait()
        try:
            return [made.ask(ask.count()).release(psi=0.1)]
        except MismatchError:
            return []

    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(attempt, curators))
    assert sorted(map(len, answers)) == [0, 1]
    assert kept.verify().id == 3
    for made in curators:
        made.ledger.dispose()


def test_a_retry_needs_no_words_twice_over_and_words_are_no_other_request(kept):
    spent(kept, "tailnum")
    first = curator(kept, "flight", same_unit="one reason").ask(ask.count()).release(psi=0.1, retry_key="k")
    again = curator(kept, "flight", same_unit="in other words").ask(ask.count()).release(psi=0.1, retry_key="k")
    assert (list(first), again.stored) == (list(again), True)
    with pytest.raises(MismatchError):
        curator(kept, "flight").ask(ask.count()).release(psi=0.1, retry_key="k")


def test_an_answer_stored_by_an_earlier_version_still_comes_back(kept):
    """Its request was digested without a unit column."""
    made = curator(kept, "tailnum")
    spend = kept.spend("fleet", Guarantee(0.1, unit="aircraft"), purpose="q", retry_key="k", request=["q"])
    plain = spend.request
    said = kept.spend(
        "fleet", Guarantee(0.1, unit="aircraft"), purpose="q", retry_key="k", request=["q"],
        event={"kind": "guarantee", "unit_column": made.unit, "same_unit": ""},
    )  # fmt: skip
    assert said.request == plain


@pytest.mark.parametrize(
    "event",
    [
        {"kind": "guarantee", "unit_column": "flight"},
        {"kind": "guarantee", "unit_column": "flight", "budget_unit_column": "gate", "same_unit": "a test"},
        {"kind": "guarantee", "unit_column": "flight", "budget_unit_column": "tailnum"},
        {"kind": "guarantee", "unit_column": "tailnum"},
    ],
)
def test_verify_finds_a_unit_column_that_nobody_vouched_for(kept, event):
    event_of_first = {"kind": "guarantee", "unit_column": "tailnum", "same_unit": ""}
    with kept.spend("fleet", Guarantee(0.1, unit="aircraft"), purpose="q", event=event_of_first):
        pass

    def forged(connection):
        last = Entry.from_row(connection.execute(ENTRIES.select().order_by(ENTRIES.c.id.desc()).limit(1)).one())
        columns = last.to_dict() | {"id": 3, "previous": last.hash, "event": psidp.ledger.entry.canonical(event)}
        standing = psidp.ledger.balance.Balance.read(last.standing)
        after = standing.after_spend(psidp.ledger.cost.Cost.of(Guarantee(0.1)))
        del columns["hash"]
        connection.execute(ENTRIES.insert(), Entry.sealed(**columns | {"standing": after.text()}).to_dict())

    kept._store.write(forged)
    with pytest.raises(TamperedLedgerError, match="entry 3 is not what was written"):
        kept.verify()


@pytest.mark.parametrize("words", ["   ", "\0"])
def test_words_must_be_words(kept, words):
    with pytest.raises(ValueError, match="same_unit must be"):
        curator(kept, None, same_unit=words)
