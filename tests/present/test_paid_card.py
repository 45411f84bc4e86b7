"""A card with a ledger is of what the ledger paid for: no card of a release that never happened."""

import json

import pyarrow as pa
import pytest

import psidp
from psidp import DPSGD, Guarantee, ask, card
from psidp.present.card.front import front
from psidp.present.evaluation import evaluation

G = {"unit": "patient"}
RUN = DPSGD(noise_multiplier=1.0, sampling_rate=0.01, steps=1000, unit="patient")


@pytest.fixture
def clinic(tmp_path):
    """A budget with a release by hand (2), a Gaussian one (3), one that was withheld (4, 5) and a training (6)."""
    with psidp.Ledger(tmp_path / "clinic.db", actor="bob") as ledger:
        ledger.open("clinic", psi=2.0, kappa=1e-9, unit="patient", actor="Ann", purpose="a survey")
        with ledger.spend("clinic", Guarantee(0.6, **G), purpose="mean age", table="visits.csv"):
            pass
        mechanism = psidp.GaussianMechanism(1.0, 4.0, unit="patient", ledger=ledger, budget="clinic")
        mechanism.release(1.0, purpose="a number")
        with pytest.raises(KeyError), ledger.spend("clinic", Guarantee(0.3, **G), purpose="failed"):
            raise KeyError
        with ledger.spend("clinic", RUN, kappa=1e-10, purpose="a model"):
            pass
        yield ledger


@pytest.mark.parametrize("psi", [0.95, 0.55, 0.3, 0.7])
def test_what_no_spend_paid_for_has_no_card_with_that_ledger(clinic, psi):
    with pytest.raises(ValueError, match=rf"got Guarantee\(psi={psi}.*entry 2 \(psi 0.6\), entry 3 .*--entry NUMBER"):
        card(Guarantee(psi, **G), ledger=clinic, budget="clinic")


def test_what_was_paid_for_has_one(clinic):
    for promise in (Guarantee(0.6, **G), Guarantee(0.25, **G), RUN, clinic.report("clinic").lifetime):
        assert card(promise, ledger=clinic, budget="clinic").ledger_check == "passed"
    other = DPSGD(noise_multiplier=2.0, sampling_rate=0.01, steps=1000, unit="patient")
    with pytest.raises(ValueError, match="that budget 'clinic' paid for, got DPSGD"):
        card(other, ledger=clinic, budget="clinic")


def test_a_card_protects_whom_the_budget_protects(clinic):
    with pytest.raises(ValueError, match="unit of the card must be that of budget 'clinic', 'patient', got 'record'"):
        card(Guarantee(0.6), ledger=clinic, budget="clinic")
    with pytest.raises(ValueError, match="adjacency of the card must be that of budget"):
        card(Guarantee(0.6, adjacency="replace-one", **G), ledger=clinic, budget="clinic")


def test_the_card_of_an_entry_has_its_numbers_and_says_which_it_is(clinic):
    made = card(clinic.spent(2), ledger=clinic, budget="clinic", date="2026-01-31")
    assert (made.guarantee, made.title, made.total.budget) == (Guarantee(0.6, **G), "mean age", "clinic")
    assert made.scope.covered[0].startswith("what entry 2 of the ledger paid for on ")
    assert made.scope.covered[0].endswith(": mean age, of the table visits.csv")
    assert made.mechanism.name == "not said, as somebody declared it"
    made = card(clinic.spent(3), ledger=clinic, budget="clinic")
    assert (made.mechanism.sensitivity, made.mechanism.sigma) == (1.0, 4.0)
    made = card(clinic.spent(6), ledger=clinic, budget="clinic")
    assert (made.guarantee.kappa, made.mechanism.steps) == (1e-10, 1000)
    assert psidp.Card.from_json(made.to_json()) == made


def test_an_entry_that_released_nothing_or_is_another_ledgers_has_no_card(clinic, tmp_path):
    with pytest.raises(ValueError, match="entry 4 paid for nothing that was released"):
        card(clinic.spent(4), ledger=clinic, budget="clinic")
    with pytest.raises(ValueError, match="must be a spend, got withheld"):
        clinic.spent(5)
    with pytest.raises(ValueError, match="needs the ledger that holds it"):
        card(clinic.spent(2))
    with psidp.Ledger(tmp_path / "other.db") as other:
        other.open("other", psi=2.0, **G, purpose="a survey")
        for psi in (0.6, 0.5):
            with other.spend("other", Guarantee(psi, **G), purpose="mean age"):
                pass
        with pytest.raises(ValueError, match="must be the spend that the card is of"):
            card(clinic.spent(2), ledger=other, budget="other")
        with pytest.raises(ValueError, match="must be the one that paid, 'clinic', got budget='other'"):
            card(clinic.report("clinic"), ledger=other, budget="other")


def test_on_the_command_line_a_card_of_an_entry_needs_its_number_alone(clinic, tmp_path, run):
    paid = ("card", "--ledger", tmp_path / "clinic.db")
    code, out, err = run(*paid, "--entry", 2, "--format", "json")
    assert (code, err) == (0, "")
    made = psidp.Card.from_json(out)
    assert (made.guarantee, made.ledger_check) == (Guarantee(0.6, **G), "passed")
    words = psidp.present.card.reproduce.command_of(made)
    assert json.loads(out)["made"]["command"] == words
    code, out, err = run(*paid, "--budget", "clinic", "--psi", 0.6)
    assert (code, err) == (0, ""), "the unit is the budget's unless told"
    assert "per patient" in out
    for more, refusal in (
        (("--budget", "clinic", "--psi", 0.95), "--entry NUMBER"),
        (("--budget", "clinic", "--psi", 0.6, "--unit", "record"), "unit of the card must be"),
        (("--entry", 2, "--psi", 0.6), "leave out those of a mechanism"),
        (("--entry", 2, "--budget", "other"), "no budget 'other' was opened"),
    ):
        code, _, err = run(*paid, *more)
        assert code == 2
        assert refusal in err
    assert "goes with --ledger" in run("card", "--entry", 2)[2]


def test_a_spend_without_a_publication_has_no_card_and_is_named_on_the_card_of_its_budget(tmp_path):
    """Failed before its noise was drawn or after, or killed between the payment and the stored answer."""
    with psidp.Ledger(tmp_path / "ledger.db") as ledger:
        ledger.open("clinic", psi=2.0, unit="patient", actor="Ann", purpose="a survey")
        spend = {"purpose": "a count"}
        with pytest.raises(KeyError), ledger.spend("clinic", Guarantee(0.3, **G), **spend):
            raise KeyError
        with pytest.raises(KeyError), ledger.spend("clinic", Guarantee(0.3, **G), **spend) as paid:
            paid.answer(lambda: {}["nothing"])
        ledger.spend("clinic", Guarantee(0.3, **G), **spend, retry_key="k", request="a").__enter__()
        with ledger.spend("clinic", Guarantee(0.4, **G), **spend, retry_key="good", request="b") as paid:
            paid.answer(lambda: 1)
        with ledger.spend("clinic", Guarantee(0.5, **G), **spend):
            pass
        numbers = {e.id: e.psi for e in ledger.entries("clinic") if e.state == "spent"}
        for number, psi in numbers.items():
            if psi == 0.3:
                with pytest.raises(ValueError, match=f"entry {number} paid for nothing that was released: "):
                    card(ledger.spent(number), ledger=ledger, budget="clinic")
            else:
                assert card(ledger.spent(number), ledger=ledger, budget="clinic").guarantee.psi == psi
        with pytest.raises(ValueError, match="that budget 'clinic' paid for"):
            card(Guarantee(0.3, **G), ledger=ledger, budget="clinic")
        made = card(ledger.report("clinic"), ledger=ledger, budget="clinic")
    failed = [number for number, psi in numbers.items() if psi == 0.3]
    assert made.scope.covered[-1].startswith("3 paid without a publication, which count in the total (entry ")
    reasons = ("it failed before", "it was interrupted", "no answer is stored under its")
    for number, why in zip(failed, reasons, strict=True):
        assert f"entry {number}: " in made.scope.covered[-1]
        assert why in made.scope.covered[-1]


HAND = "none was enforced here. The promise holds only where no patient moves the numbers further"


@pytest.fixture
def released(tmp_path):
    """A budget from which a curator released with a stored answer (2, 3), without one (4), and a cube (5, 6)."""
    rows = pa.table({"patient": [1, 1, 2, 3], "ward": ["A", "B", "A", "A"]})
    with psidp.Ledger(tmp_path / "released.db", actor="bob") as ledger:
        ledger.open("clinic", psi=2.0, unit="patient", actor="Ann", purpose="a survey")
        curator = psidp.Curator(rows, "patient", ledger=ledger, budget="clinic")
        count = curator.ask(ask.count(), by="ward", groups=["A", "B"], contribution=4)
        count.release(psi=0.5, retry_key="k", purpose="c")
        clipped = {"kind": "guarantee", "clipped": True}  # as releases without a retry key were written up to 0.2
        with ledger.spend("clinic", Guarantee(0.4, **G), purpose="once more", event=clipped):
            pass
        cube = curator.cube({"ward": ["A", "B"]}, ask.up_to(1))
        cube.release(psi=0.3, retry_key="cube", purpose="a cube")
        yield ledger


def limit(made):
    return front(made).bound


def test_a_curators_entry_tells_limit_and_errors_of_its_stored_answer(released):
    rows = pa.table({"patient": [1], "ward": ["A"]})
    curator = psidp.Curator(rows, "patient", protects="patient")
    answer = curator.ask(ask.count(), by="ward", groups=["A", "B"], contribution=4).release(psi=0.5)
    made, plain = card(released.spent(2), ledger=released, budget="clinic"), card(answer)
    assert made.scope.contribution_bound == plain.scope.contribution_bound
    assert "count: one patient adds at most the worth of 4 rows" in limit(made)
    assert made.mechanism == plain.mechanism
    assert [error.statistic for error in made.errors] == [error.statistic for error in plain.errors]
    cube = card(released.spent(5), ledger=released, budget="clinic")
    assert "one patient" in limit(cube)
    assert cube.errors[0].statistic == "count in a cell of ward"
    for one in (made, cube):
        assert psidp.Card.from_json(one.to_json()) == one


def test_a_curators_entry_without_a_stored_answer_says_that_psidp_clipped(released):
    made = card(released.spent(4), ledger=released, budget="clinic")
    assert limit(made).endswith(
        "adds: psidp clipped it before noise was drawn; the ledger holds no answer that says how far."
    )
    assert made.errors == ()
    assert made.mechanism.name == "Gaussian noise on clipped totals"
    again = card(Guarantee(0.4, **G), ledger=released, budget="clinic")
    assert limit(again) == limit(made), "the spend of that price"


def test_the_card_of_a_budget_says_in_which_releases_psidp_clipped(released):
    made = card(released.report("clinic"), ledger=released, budget="clinic")
    assert (
        "adds: psidp clipped it in every release: entry 2 (c), count: one patient adds at most the worth of 4 rows"
        in limit(made)
    )
    assert "entry 4 (once more), the ledger holds no answer that says how far; entry 5 (a cube), " in limit(made)
    assert made.errors[0].statistic == "count of a group (c)"
    with released.spend("clinic", Guarantee(0.1, **G), purpose="by hand"):
        pass
    made = card(released.report("clinic"), ledger=released, budget="clinic")
    assert "psidp clipped it in 3 of 4 releases: " in limit(made)
    assert "In the others none was enforced here, and the promise holds only where no patient moves" in limit(made)
    assert HAND in limit(card(released.spent(7), ledger=released, budget="clinic"))
    assert "a card that is made with the ledger says in which releases" in limit(card(released.report("clinic")))


def test_what_was_entered_by_hand_keeps_its_words(clinic):
    for promise in (clinic.spent(2), clinic.spent(3), clinic.spent(6), clinic.report("clinic"), Guarantee(0.6, **G)):
        assert HAND in limit(card(promise, ledger=clinic, budget="clinic"))


def test_an_evaluation_repeats_the_cards_limit(released, clinic):
    for ledger in (released, clinic):
        made = card(ledger.spent(2), ledger=ledger, budget="clinic")
        (point,) = [p for p in evaluation(made, ledger.report("clinic")) if p.heading == "Clipping and sensitivity"]
        assert point.answer.startswith(limit(made))
        assert ". ." not in point.answer


def test_an_aircraft_has_its_article(tmp_path):
    with psidp.Ledger(tmp_path / "flights.db") as ledger:
        ledger.open("flights", psi=1.0, unit="aircraft", actor="Ann", purpose="a survey")
        made = card(ledger.report("flights"), ledger=ledger, budget="flights")
        page = " ".join(point.answer for point in evaluation(made, ledger.report("flights")))
    assert "budgets that protect an aircraft" in page


def test_a_publisher_is_told_or_left_out(clinic, tmp_path, run):
    paid = ("card", "--ledger", tmp_path / "clinic.db", "--format", "json")
    for which in (("--entry", 2), ("--budget", "clinic"), ("--budget", "clinic", "--psi", 0.6)):
        assert json.loads(run(*paid, *which)[1])["publisher"] == ""
        assert json.loads(run(*paid, *which, "--publisher", "Ann")[1])["publisher"] == "Ann"
