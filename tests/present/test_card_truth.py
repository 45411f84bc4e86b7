"""What a card says of limits and errors is true of the release: it is made of values, and never read from sentences."""

import json

import numpy as np
import pyarrow as pa
import pytest

import psidp
from psidp import Curator, ask
from psidp.present.card.events import in_words
from psidp.present.card.front import front
from psidp.present.card.markdown import to_markdown
from psidp.tables.answer import Answer
from psidp.tables.choices.unit_sizes import UnitNorms
from psidp.tables.estimate import Estimate
from psidp.tables.notes import Note
from psidp.tables.words import clipping_words

ROWS = pa.table({"who": [n % 60 for n in range(600)], "ward": ["AB"[n % 2] for n in range(600)]})


def answered(protects="patient", **more):
    terms = {"by": "ward", "groups": ["A", "B"], "contribution": 4} | more
    psi = terms.pop("psi", 2.0)
    return Curator(ROWS, "who", protects=protects).ask(ask.count(), **terms).release(psi=psi)


def test_a_card_states_the_bound_that_was_enforced_whatever_the_unit_is_called():
    for unit in ("Patient", "patient", "PATIENT one row", "unit. one at most", "a: b", "one patient at most"):
        bound = psidp.card(answered(unit)).scope.contribution_bound
        assert bound == (
            f"count: one {unit} adds at most the worth of 4 rows, over all groups, combined as the square root of the "
            "sum of squares"
        )
    cube = Curator(ROWS, "who", protects="Unit").cube({"ward": ["A", "B"]}, ["ward"], contribution=4).release(psi=0.5)
    assert psidp.card(cube).scope.contribution_bound.startswith("one Unit counts 4 rows at most")
    rows = Curator(ROWS, None, protects="Row").ask(ask.count()).release(psi=0.5)
    assert psidp.card(rows).scope.contribution_bound == "every row is one Row"


def test_an_answer_that_version_0_2_stored_is_read_and_its_card_states_no_bound_that_nobody_knows():
    """Its notes were stored as sentences, and no program reads them."""
    values = answered().to_dict()
    values["notes"] = ["Asked: count by ward.", "count: one patient adds at most 9 rows' worth (L2, over all groups)."]
    old = Answer.from_dict(json.loads(json.dumps(values)))
    assert [(note.kind, str(note)) for note in old.notes] == [("text", words) for words in values["notes"]]
    assert Answer.from_dict(json.loads(json.dumps(old.to_dict()))) == old
    assert "adds at most 9 rows' worth" in old.summary()
    bound = psidp.card(old).scope.contribution_bound
    assert "psidp clipped it" in bound
    assert "every row" not in bound


def test_a_card_tells_how_far_the_intervals_of_the_release_reach_and_not_the_noise_alone():
    ends = [(80.0, 57.0, 131.0, ""), (10.0, -13.0, 61.0, ""), (7.0, 6.26, 117.0, "clipping")]
    found = [Estimate("count", value, 12.0, low, high, flag) for value, low, high, flag in ends]
    rows = tuple(((ward,), e) for ward, e in zip("ABC", found, strict=True))
    answer = Answer(("ward",), rows, psidp.Guarantee(1.0), 0.95, (Note("asked", "Asked.", {"unit_column": "u"}),))
    made = psidp.card(answer)
    (error,) = made.errors
    assert (error.below, error.above) == ((7.0 - 6.26, 23.0), (51.0, 110.0))
    assert front(made).errors == (
        "count of a group: with a chance of 95 in 100 the truth is within 0.74 to 23 below it and 51 to 110 above it. "
        "Clipping may have moved 1 of 3 numbers further than that.",
    )
    assert "off by about" not in to_markdown(made)
    assert psidp.Card.from_json(made.to_json()) == made


def test_where_clipping_was_not_measured_the_card_says_that_any_number_may_be_further_off():
    (error,) = psidp.card(answered(contribution=1, clipping_share=0.0)).errors
    assert error.clipped == error.numbers == 2


def test_every_interval_of_an_answer_lies_within_what_its_card_states():
    for contribution in (1, 3, "auto"):
        answer = answered(contribution=contribution)
        (error,) = psidp.card(answer).errors
        for _, e in answer.rows:
            assert error.below[0] <= e.value - e.lower <= error.below[1]
            assert error.above[0] <= e.upper - e.value <= error.above[1]


def test_a_heat_map_shows_the_intervals_of_the_answer():
    pytest.importorskip("altair")
    rows = tuple(((a, b), Estimate("count", 100.0, 9.0, 77.0, 151.0)) for a in ("x", "y") for b in ("one", "two"))
    picture = json.loads(Answer(("row", "column"), rows, psidp.Guarantee(1.0), 0.9, ()).figure().to_json())
    cell = picture["data"]["values"][0]
    assert (cell["below"], cell["lower"], cell["upper"]) == ("77.0 to 151.0", 77.0, 151.0)
    assert "interval (chance 0.9)" in picture["title"]["subtitle"][0]
    assert "error" not in json.dumps(picture)


def test_an_estimate_of_clipped_units_is_never_above_that_of_all_units():
    seen = 0
    for seed in range(300):
        random = np.random.default_rng(seed)
        shape = np.array([0.0] * 4 + [random.uniform(0.0, 300.0)] + [0.0] * 17)
        words = clipping_words(UnitNorms(random.normal(0.0, 60.0, 22) + shape, 60.0), 0.7)
        if words.startswith("About"):
            clipped, units = (int(words.split()[i].replace(",", "")) for i in (1, 3))
            assert 0 <= clipped <= units, words
            seen += 1
    assert seen > 30


def test_a_document_explains_the_flag_of_a_rank():
    e = Estimate("count", 100.0, 9.0, 82.0, 118.0, "rank")
    answer = Answer(("ward",), ((("A",), e),), psidp.Guarantee(1.0), 0.95, (Note("flag", 'Flag "rank" (1 of 1).'),))
    for text in (answer.markdown(), answer.latex()):
        assert "r: noise could have put another group in this one's place among the largest." in text
        assert "100 (82 to 118) r" in text.replace(".0", "")


def test_a_card_says_whose_records_a_run_counts_whatever_the_unit_is_called():
    for unit in ("user", "group of friends", "group of 2", "group of 3 records"):
        run = psidp.DPSGD(1.0, 0.5, 3, group=2, unit=unit)
        assert in_words(run).endswith(f"at most 2 records per {unit}")
    assert in_words(psidp.DPSGD(1.0, 0.5, 3, group=2)).endswith("at most 2 records together")
