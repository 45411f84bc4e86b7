"""Whoever approves reads what is asked, in words that the spend is bound to."""

import json
import warnings

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import psidp
from psidp import Curator, Guarantee, ask
from psidp.errors import ApprovalNeededError
from psidp.ledger.approvals import Proposed, asked_after, terms_of
from psidp.ledger.cost import ZERO
from psidp.ledger.event_words import asked_in_words
from psidp.ledger.listing import Selection

VISITS = pa.table({"patient": [1, 1, 2, 3], "ward": ["A", "B", "A", "A"], "cost": [10.0, 20.0, 5.0, 7.0]})
LARGE = {"purpose": "how many", "table_unit": "patient", "actor": "bob"}


@pytest.fixture
def visits(ledger, tmp_path):
    """A budget with a limit, and a table in a file that has a second name."""
    ledger.open("visits", psi=2.0, unit="patient", purpose="a test", actor="ann", approval_above=0.3)
    pq.write_table(VISITS, tmp_path / "visits.parquet")
    (tmp_path / "other.parquet").symlink_to("visits.parquet")
    return tmp_path / "visits.parquet"


def question_of(ledger, table, *asks, **more):
    """What a refused release says that it would release."""
    book = psidp.Ledger(ledger._access.store.address.url.render_as_string(False), actor="bob")
    curator = Curator(table, unit="patient", ledger=book, budget="visits")
    with curator, pytest.raises(ApprovalNeededError) as caught:
        curator.ask(*asks, **more).release(psi=1.0, purpose="how many")
    book.dispose()
    return caught.value.event


def test_a_request_says_aggregates_columns_bounds_groups_condition_contribution_and_the_path(visits, ledger):
    event = question_of(
        ledger, visits.with_name("other.parquet"), ask.count(), ask.mean("cost", 0, 50), by="ward",
        groups=["A", "B"], where="cost > 6", contribution=2,
    )  # fmt: skip
    request = ledger.request("visits", Guarantee(1.0, unit="patient"), event=event, **LARGE)
    words = asked_in_words(request.details())
    told, _, digest = words.partition(" [sha256 ")
    assert told == (
        "count (contribution 2); mean of cost (lower 0, upper 50, contribution 2); by ward, 2 groups: A, B; of "
        f"{visits.resolve()}; where cost > 6"
    )
    assert len(digest) == 65
    ledger.verify()


def test_a_refusal_states_the_whole_condition_whatever_text_is_in_it(visits, ledger):
    book = psidp.Ledger(ledger._access.store.address.url.render_as_string(False), actor="bob")
    curator = Curator(visits, unit="patient", ledger=book, budget="visits")
    with curator, pytest.raises(ApprovalNeededError, match=r"or cost > 6"):
        curator.ask(ask.count(), where="ward = 'x [sha256 0]' or cost > 6").release(psi=1.0, purpose="why")
    book.dispose()


def test_an_approval_of_one_files_question_is_none_for_another_file_of_the_same_name(visits, ledger, tmp_path):
    event = question_of(ledger, visits, ask.count())
    elsewhere = tmp_path / "d"
    elsewhere.mkdir()
    pq.write_table(VISITS, elsewhere / "visits.parquet")
    request = ledger.request("visits", Guarantee(1.0, unit="patient"), event=event, table="visits.parquet", **LARGE)
    ledger.approve(request.id, purpose="agreed", actor="ann")
    assert question_of(ledger, elsewhere / "visits.parquet", ask.count()) != event
    assert question_of(ledger, visits, ask.units()) != event


def test_a_link_to_a_file_is_listed_under_the_files_own_name(visits, ledger):
    for name in ("visits.parquet", "other.parquet"):
        with Curator(visits.with_name(name), unit="patient", ledger=ledger, budget="visits") as curator:
            curator.ask(ask.count()).release(psi=0.1)
    assert len(ledger.list(Selection(table="visits.parquet"))) == 2


def test_every_kind_of_question_has_words(visits, ledger):
    price = ask.ratio(ask.sum("cost", 0, 50), ask.count())
    for asked, words in (
        (ask.quantiles("cost", range(100), at=(0.5,)), "0, 1, 2"),
        (ask.sum("cost", bounds="auto"), "bounds auto"),
        (price, "ratio of sum of cost to count (sum of cost (lower 0, upper 50); count; contribution 1)"),
    ):
        assert words in question_of(ledger, visits, asked)["question"]
    chosen = psidp.PrivateGroups(kappa=1e-9, at_most=3)
    ledger.raise_to("visits", 2.0, 1e-6, purpose="for groups", actor="ann")
    assert "each patient in at most 3" in question_of(ledger, visits, ask.count(), by="ward", groups=chosen)["question"]
    assert "of a table in memory" in question_of(ledger, VISITS, ask.count())["question"]
    many = question_of(ledger, visits, ask.count(), by="ward", groups=["x" * 60 + str(n) for n in range(900)])
    assert "(900 in all)" in many["question"]
    assert len(many["question"]) < 1_700


def test_keys_of_several_columns_are_told_together_and_text_that_is_no_word_in_quotes(visits, ledger):
    wards = [f"ward-{n}" for n in range(16)]
    keys = [(ward, room) for ward in wards for room in (1, 2, 20)]
    pq.write_table(VISITS.append_column("room", pa.array([1, 2, 20, 1])), visits)
    words = question_of(ledger, visits, ask.count(), by=("ward", "room"), groups=keys)["question"]
    assert "by ward, room, 48 groups: ward-0/1, ward-0/2, ward-0/20, ward-1/1, " in words
    assert "ward-15/20; of " in words, "all of them"
    odd = ["9E", "None", "1e5", "a b", "it's", "a/b", "x,y"]
    words = question_of(ledger, visits, ask.count(), by="ward", groups=odd)["question"]
    assert """7 groups: 9E, 'None', '1e5', 'a b', "it's", 'a/b', 'x,y'; of """ in words
    many = [f"a ward of a long name, number {n}" for n in range(900)]
    words = question_of(ledger, visits, ask.count(), by="ward", groups=many, where="cost > 6")["question"]
    assert "(900 in all); of " in words
    assert "; where cost > 6 [sha256 " in words, "place and condition are never cut off by groups"


def test_a_cube_has_words_too(visits, ledger):
    book = psidp.Ledger(ledger._access.store.address.url.render_as_string(False), actor="bob")
    curator = Curator(visits, unit="patient", ledger=book, budget="visits")
    with curator, pytest.raises(ApprovalNeededError) as caught:
        curator.cube({"ward": ["A", "B"]}, ask.up_to(1), where="cost > 6").release(psi=1.0)
    book.dispose()
    assert f"of ward; contribution 1; of {visits.resolve()}; where cost > 6" in caught.value.event["question"]


def test_what_another_mechanism_releases_is_told_by_its_event(visits, ledger):
    mechanism = psidp.GaussianMechanism(1.0, 2.0, unit="patient", ledger=ledger, budget="visits")
    with pytest.raises(ApprovalNeededError) as caught:
        mechanism.release(1.0, purpose="a number")
    assert caught.value.event == {"kind": "gaussian", "sensitivity": 1.0, "sigma": 2.0}
    request = ledger.request("visits", Guarantee(0.5, unit="patient"), event=caught.value.event, purpose="a number")
    assert asked_in_words(request.details()) == "gaussian, sensitivity 1.0, sigma 2.0"
    plain = ledger.request("visits", Guarantee(0.5, unit="patient"), purpose="by hand")
    assert "not said: psi alone was declared" in asked_in_words(plain.details())


def test_a_request_with_a_digest_alone_says_so(visits, ledger):
    request = ledger.request("visits", Guarantee(1.0, unit="patient"), what="5d87921f", **LARGE)
    assert asked_in_words(request.details()) == "not said: the request holds a digest alone, 5d87921f"


def test_words_of_another_question_than_the_digests_are_refused_and_never_shown():
    event = {"kind": "requested", "by": "bob", "psi": 1.0, "kappa": 0.0, "what": "5d87921f", "until": "2030"}
    event["event"] = {"kind": "guarantee", "question": "count; of /data/harmless.csv"}
    asked = Proposed("visits", "requested", event, ZERO)
    event["terms"] = terms_of(asked)
    with pytest.raises(ValueError, match="the one that its digest is of"):
        asked_after((), asked)
    assert "digest alone" in asked_in_words(event)


def test_a_question_is_bounded_in_length(visits, ledger):
    for question in ("x" * 8_001, "", 7):
        event = {"kind": "guarantee", "question": question}
        with pytest.raises(ValueError, match="question must"):
            ledger.request("visits", Guarantee(1.0, unit="patient"), event=event, **LARGE)
    long = {"kind": "guarantee", "mechanism": "x" * 3_000}
    request = ledger.request("visits", Guarantee(1.0, unit="patient"), event=long, **LARGE)
    assert asked_in_words(request.details()).endswith("(cut: it has 3,021 letters)")
    assert json.loads(request.event)["event"] == long


def test_an_event_too_long_to_print_is_named_by_its_digest(visits, ledger):
    event = {"kind": "guarantee", "mechanism": "x" * 9_000}
    spend = ledger.spend("visits", Guarantee(1.0, unit="patient"), event=event, purpose="long")
    with pytest.raises(ApprovalNeededError, match=r" --what [0-9a-f]{64}"), spend:
        pass


def test_a_request_for_more_than_is_left_is_warned_of_when_it_is_made_and_when_it_is_approved(ledger):
    ledger.open("survey", psi=1.0, unit="patient", purpose="a test", actor="ann", approval_above=0.3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fits = ledger.request("survey", Guarantee(0.9, unit="patient"), purpose="large", actor="bob")
    with ledger.spend("survey", Guarantee(0.3, unit="patient"), purpose="a count"):
        pass
    with ledger.spend("survey", Guarantee(0.3, unit="patient"), purpose="a sum"):
        pass
    what = (
        r"Budget 'survey' has psi 0\.905538 left, and psi 0\.95 is asked for: .* cannot be spent before the budget is "
    )
    with pytest.warns(UserWarning, match=what + "raised or reset") as seen:
        request = ledger.request("survey", Guarantee(0.95, unit="patient"), purpose="larger", actor="bob")
    assert seen[0].filename == __file__, "the line that asks"
    with pytest.warns(UserWarning, match=what):
        ledger.approve(request.id, purpose="agreed", actor="ann")
    with pytest.warns(UserWarning, match="before the budget is raised: it is more than the whole budget"):
        ledger.request("survey", Guarantee(1.5, unit="patient"), purpose="largest", actor="bob")
    ledger.approve(fits.id, purpose="it fits", actor="ann")


def test_a_request_that_waits_for_the_next_period_says_so(ledger):
    ledger.open("monthly", psi=1.0, purpose="a test", actor="ann", approval_above=0.3, renews="month")
    for n in range(3):
        with ledger.spend("monthly", Guarantee(0.3), purpose=f"count {n}"):
            pass
    with pytest.warns(UserWarning, match="it cannot be spent before the next month"):
        ledger.request("monthly", Guarantee(0.95), purpose="large", actor="bob")
    with pytest.warns(UserWarning, match="kappa 0 left, and kappa 1e-9 is asked for: .* is raised: it is more than"):
        ledger.request("monthly", Guarantee(0.5, 1e-9), purpose="may fail", actor="bob")
