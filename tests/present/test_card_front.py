"""The card's first page: read by people, filled in by what it is made of, and honest about what nobody checked."""

import json
import re
import shlex

import pyarrow as pa
import pytest

import psidp
from psidp.present.card import card, to_html, to_markdown
from psidp.present.card.front import front
from psidp.present.card.parts import Audited, ErrorRange, Total
from psidp.present.card.record import Card

PLAIN = card(psidp.Guarantee(0.5, unit="patient"), title="Mean age", date="2026-01-31")
ROWS = {"who": [1, 1, 2, 3] * 50, "ward": ["A", "B", "A", "A"] * 50, "age": [30.0, 31.0, 50.0, 60.0] * 50}


def curator(**more):
    return psidp.Curator(pa.table(ROWS), "who", protects="patient", **more)


def first_page(made):
    return to_markdown(made).split("# For specialists")[0]


def test_the_first_page_says_in_natural_frequencies_what_people_ask():
    page = first_page(PLAIN)
    for words in (
        "It protects one patient",
        "Smaller is safer",
        "500 times in 1,000 by tossing a coin, is right at most 599 times in 1,000",
        "34 of 1,000 that are in the data, instead of 10 by guessing",
        "all that the data holds of them",
        "Limit on what one patient adds: none was enforced here.",
        "the two together have psi 0.71, not 1",
        "500 (nothing can be learnt) ... 599 (this release) ... 1,000 (no protection)",
        "Insiders",
        "The 1 in 100",
        "Ledger: none given. A ledger is the record of what each release cost.",
        "Audit: none",
    ):
        assert words in page, words


def test_no_adjective_judges_and_no_symbol_of_specialists_is_on_the_first_page():
    said = first_page(PLAIN).lower()
    for word in (
        "strong",
        "weak",
        "high",
        "low ",
        "tpr",
        "fpr",
        "auc",
        "regret",
        "kappa",
        "reconstruction",
        "made again",
    ):
        assert word not in said, word


def test_every_number_of_the_second_page_is_explained_in_half_a_line():
    back = to_markdown(card(psidp.DPSGD(1.0, 0.01, 100), date="2026-01-31")).split("# For specialists")[1]
    rows = [
        re.split(r"(?<!\\)\|", line)[1:-1] for line in back.splitlines() if line.startswith("| ") and "---" not in line
    ]
    rows = [row for row in rows if any(cell.strip() for cell in row)]
    assert len(rows) > 25
    assert all(len(row) == 3 and 0 < len(row[2].strip()) <= 90 for row in rows)


def test_page_one_has_the_promise_and_the_check_in_one_size():
    page = to_html(PLAIN)
    size = re.search(r"\.headline \{ font-size: ([\d.]+pt)", page)[1]
    assert re.search(r"\.check \{[^}]*font-size: " + re.escape(size), page)


@pytest.mark.parametrize(
    ("more", "states", "words"),
    [
        ({}, ("open", "open"), "none given"),
        ({"ledger_head": "3:ab"}, ("open", "open"), "not checked"),
        (
            {"ledger_head": "3:ab", "ledger_check": "passed"},
            ("good", "open"),
            "entries agree (this checks the bookkeeping",
        ),
        ({"ledger_head": "3:ab", "ledger_check": "failed"}, ("bad", "open"), "entries do not agree"),
        ({"audit": Audited(0.1, n_in=300, n_out=200)}, ("open", "good"), "Audit: passed"),
        ({"audit": Audited(1.4)}, ("open", "bad"), "Audit: failed"),
    ],
    ids=["none", "head", "verified", "tampered", "passed", "broken"],
)
def test_it_says_what_was_checked(more, states, words):
    made = card(psidp.Guarantee(0.5), date="2026-01-31", **more)
    assert tuple(check.state for check in front(made).checks) == states
    assert words in first_page(made)


def test_an_audit_above_a_psi_that_may_fail_is_undecided():
    made = card(psidp.Guarantee(0.5, 1e-9), audit=Audited(1.4), date="2026-01-31")
    assert front(made).checks[1].state == "open"
    assert "undecided" in first_page(made)


def test_a_ledger_that_was_not_stated_cannot_be_verified():
    with pytest.raises(ValueError, match="ledger_check goes with ledger_head"):
        card(psidp.Guarantee(0.5), ledger_check="passed")
    with pytest.raises(ValueError, match="ledger_check must be passed, failed or empty"):
        card(psidp.Guarantee(0.5), ledger_head="a", ledger_check="perhaps")
    with pytest.raises(ValueError, match="ledger and budget go together"):
        card(psidp.Guarantee(0.5), budget="survey")


def test_an_answer_tells_its_error_in_its_own_unit_and_what_the_engine_enforced():
    asked = [psidp.ask.count(contribution=4), psidp.ask.mean("age", 0, 100, contribution=4)]
    answer = curator().ask(*asked, by="ward", groups=["A", "B"]).release(psi=0.5)
    made = card(answer, date="2026-01-31")
    errors = {error.statistic: error for error in made.errors}
    mine = [e for _, e in answer.rows if e.statistic == "count"]
    found = errors["count of a group"]
    assert found.below == (min(e.value - e.lower for e in mine), max(e.value - e.lower for e in mine))
    assert found.above == (min(e.upper - e.value for e in mine), max(e.upper - e.value for e in mine))
    rows, age = front(made).errors
    assert re.match(r"count of a group: with a chance of 95 in 100 the truth is within [\d.]+( to|$| below)", rows)
    assert age.startswith("mean of age of a group: with a chance of 95 in 100 the truth is within ")
    assert made.scope.contribution_bound.startswith(
        "count, mean of age: one patient adds at most the worth of 4 rows, over"
    )
    assert front(made).bound.startswith("Limit on what one patient adds: count, mean of age: one patient adds at most ")
    assert "L2" not in first_page(made)
    assert Card.from_json(made.to_json()) == made


def test_a_release_tells_its_noise_and_states_no_bound():
    made = card(psidp.GaussianMechanism(1.0, 2.0).release([0.0] * 5), date="2026-01-31")
    assert (made.title, made.guarantee.psi, made.mechanism.sigma) == ("5 numbers", 0.5, 2.0)
    assert made.errors[0].above == pytest.approx((2.0 * 1.959964,) * 2, rel=1e-6)
    assert "none stated: nothing here enforced one" in to_markdown(made)


def test_a_cube_and_a_counter_tell_their_errors():
    cube = curator().cube({"ward": ["A", "B"]}, ["ward"], contribution=4).release(psi=0.5)
    assert card(cube).errors[0].statistic == "count in a cell of ward"
    first = cube.table("ward").rows[0][1]
    assert card(cube).errors[0].below[0] <= first.value - first.lower <= card(cube).errors[0].below[1]
    counter = psidp.Counter(psi=0.5, periods=4, at_most=1, bound=1, unit="user")
    expected = counter.plan().expected()[0]
    assert card(counter).errors[0].above[1] >= 1.959 * expected.rmse >= card(counter).errors[0].above[0] > 0.0


def test_with_its_ledger_a_card_is_verified_and_has_the_running_total(tmp_path, run):
    with psidp.Ledger(tmp_path / "ledger.db") as ledger:
        ledger.open("clinic", psi=2.0, unit="patient", actor="St. Mary's", purpose="a survey")
        paid = curator(ledger=ledger, budget="clinic")
        answers = [paid.ask(psidp.ask.count(), by="ward", groups=[name]).release(psi=0.5) for name in "AB"]
        made = card(answers[1], ledger=ledger, budget="clinic", date="2026-01-31")
        assert made.publisher == "", "who opened the budget is not thereby who publishes"
        assert "Publisher not stated. Card of 2026-01-31." in first_page(made)
        assert made.ledger_check == "passed"
        assert made.ledger_head == str(ledger.head())
        assert made.total.psi == pytest.approx(0.5 * 2**0.5)
        assert made.total.cap == 2.0
        assert (
            "clinic, so far: everything paid from this budget, this release included; psi 0.7072 of a limit of 2."
        ) in first_page(made)
        told = card(ledger.report("clinic"), date="2026-01-31")
        assert told.guarantee.psi == pytest.approx(0.5 * 2**0.5)
        assert (told.title, told.publisher) == ("Everything released from the budget clinic", "")
        code, out, _ = run("card", "--ledger", str(tmp_path / "ledger.db"), "--budget", "clinic", "--format", "json")
        assert code == 0
        assert Card.from_json(out).guarantee == told.guarantee
        assert "all budgets of the ledger for one patient, so far: everything paid until this card" in first_page(told)
        assert Card.from_json(out).ledger_check == "passed"
    command = shlex.split(json.loads(made.to_json())["made"]["command"])
    code, out, err = run(*command[1:], "--format", "json")
    assert (code, err) == (0, "")
    assert Card.from_json(out) == made


def test_a_tampered_ledger_is_said_on_the_card(tmp_path, monkeypatch):
    with psidp.Ledger(tmp_path / "ledger.db") as ledger:
        ledger.open("clinic", psi=2.0, unit="patient", actor="Ann", purpose="a survey")
        with ledger.spend("clinic", psidp.Guarantee(0.5, unit="patient"), purpose="a count"):
            pass

        def tampered(head=None):
            raise psidp.errors.TamperedLedgerError("entry 1 is not what was written.")

        monkeypatch.setattr(ledger, "verify", tampered)
        made = card(psidp.Guarantee(0.5, unit="patient"), ledger=ledger, budget="clinic", date="2026-01-31")
    assert made.ledger_check == "failed"
    assert front(made).checks[0].state == "bad"


def test_a_card_of_an_older_version_is_refused_with_what_to_do():
    values = json.loads(PLAIN.to_json()) | {"card": "psidp.card/2"}
    with pytest.raises(ValueError, match=r"the card must have the form 'psidp.card/3', got 'psidp.card/2'"):
        Card.from_json(json.dumps(values))
    values = json.loads(PLAIN.to_json()) | {"sentences": ["something else"]}
    with pytest.raises(ValueError, match="its sentences do not follow"):
        Card.from_json(json.dumps(values))


def test_parts_refuse_nonsense(run):
    with pytest.raises(ValueError, match="below"):
        ErrorRange("age", (float("nan"), 1.0), (1.0, 1.0))
    with pytest.raises(ValueError, match="above"):
        ErrorRange("age", (1.0, 1.0), (2.0, 1.0))
    with pytest.raises(ValueError, match="clipped"):
        ErrorRange("age", (1.0, 1.0), (1.0, 2.0), clipped=2)
    with pytest.raises(ValueError, match="psi"):
        Total("survey", -1.0)
    for flags, sentence in (
        (["--total", "3"], "--total must be JSON with budget, cap, kappa, psi, got '3'."),
        (["--errors", "{"], "--errors must be a JSON list, got '{'."),
        (
            ["--errors", '[{"statistic": "age"}]'],
            "--errors must be JSON with above, below, clipped, confidence, numbers, statistic",
        ),
        (["--ledger", "x.db"], "ledger and budget must be given together"),
    ):
        code, _, err = run("card", "--psi", "1", *flags)
        assert (code, sentence in err) == (2, True), err


def test_units_have_their_article():
    assert "whether an aircraft is in the data" in first_page(card(psidp.Guarantee(0.5, unit="aircraft")))
    replaced = first_page(card(psidp.Guarantee(0.5, adjacency="replace-one", unit="hour")))
    assert "That an hour is in the data is no secret." in replaced
