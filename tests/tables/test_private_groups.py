"""Private groups beside test_curator: none at all, order, terms and plan."""

import pyarrow as pa
import pytest

from psidp import Curator, Guarantee, PrivateGroups, ask


def test_where_no_key_comes_through_the_answer_is_empty_and_says_so():
    rows = pa.table({"who": [1, 2], "ward": ["a", "b"], "x": [1.0, 2.0]})
    asks = [ask.count(), ask.mean("x", bounds="auto"), ask.top(1, ask.count(contribution="auto"))]
    answer = Curator(rows, "who").ask(*asks, by="ward", groups=PrivateGroups(1e-9, at_most=2)).release(psi=1.0)
    assert answer.rows == ()
    assert "No group came through." in answer.summary()


def test_groups_come_in_an_order_that_is_not_the_tables():
    wards = ["c", None, "a", "b"]
    rows = pa.table({"who": range(400), "ward": [wards[i // 100] for i in range(400)]})
    question = Curator(rows, "who").ask(ask.count(), by="ward", groups=PrivateGroups(1e-6, at_most=1))
    assert [row["ward"] for row in question.release(psi=10.0)] == ["a", "b", "c", None]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: PrivateGroups(0.0, 3), "kappa .* must be above 0"),
        (lambda: PrivateGroups(float("nan"), 3), "kappa"),
        (lambda: PrivateGroups(1e-9, 0), r"at_most .* must be a whole number in \[1, 4096\]"),
        (lambda: PrivateGroups(1e-9, True), "at_most"),
        (lambda: PrivateGroups(1e-9, 3, float("nan")), r"contribution of private groups must be in \[1, 64\]"),
        (lambda: PrivateGroups(1e-9, 3, 1.0, 0.0), "weight"),
    ],
)
def test_terms_that_make_no_sense_are_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        wrong()


def test_a_plan_names_the_threshold_and_the_answer_repeats_it():
    rows = pa.table({"who": range(300), "ward": ["a"] * 300})
    question = Curator(rows, "who").ask(ask.count(), by="ward", groups=PrivateGroups(1e-9, at_most=2))
    plan, answer = question.plan(psi=1.0), question.release(psi=1.0)
    assert plan.guarantee == answer.guarantee == Guarantee(1.0, 1e-9, unit="who")
    assert len(plan.sql) == 1
    words = next(str(note) for note in answer.notes if note.kind == "private groups")
    assert words in plan.groups
