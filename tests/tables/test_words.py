"""Questions and answers in words: summaries that say what was asked, what was done and what it is worth."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from psidp import Curator, PrivateGroups, ask
from released import NO_NOISE, released


@pytest.fixture
def curator():
    rows = {"patient": [1, 1, 2, 3], "age": [50, 51, 52, 20], "cost": [1.0, 2.0, 3.0, 4.0]}
    return Curator(pa.table(rows), "patient")


def test_summaries_say_which_rows_and_what_one_row_means(curator):
    asks = ask.count(), ask.histogram("cost", [1e6, 1e6 + 1, 2e6])
    text = released(curator, *asks, psi=0.25, where="age >= 50 and age in (50, 51) and cost > 1").summary()
    assert "Asked: count, histogram of cost where" in text
    assert "age in (50, 51) and cost > 1" in text
    assert "at most one row's worth" in text
    assert "four rows of one patient in one group count as one row" in text
    assert "No ledger keeps count" in text
    assert "four rows" not in curator.ask(ask.count(), contribution=4).release(psi=0.25).summary()


@pytest.mark.parametrize(
    ("asked", "known", "form", "of"),
    [
        (ask.mean("cost", bounds="auto"), ask.mean("cost", 0, 100), "a mean over 10,000 rows is off by about {}; ", 2),
        (
            ask.deviation("cost", bounds="auto"),
            ask.deviation("cost", 0, 100),
            "over 10,000 rows is off by about {}; ",
            2,
        ),
        (ask.variance("cost", bounds="auto"), ask.variance("cost", 0, 100), "over 10,000 rows is off by about {}; ", 2),
        (
            ask.sum("cost", bounds="auto"),
            ask.sum("cost", 0, 100),
            "from 0 to 100{also} a sum is off by about {}; ",
            None,
        ),
        (
            ask.histogram("cost", "auto"),
            ask.histogram("cost", range(9)),
            "standard error of a bin's count is {}.",
            None,
        ),
        (ask.median("cost", "auto"), ask.median("cost", range(33)), "a median's rank is off by {} or so", "ranks"),
    ],
)
@pytest.mark.parametrize("contribution", [3, "auto"])
def test_a_plan_with_bounds_to_be_chosen_has_an_example_that_comes_true(curator, asked, known, form, of, contribution):
    """The example's number is what the plan says once bounds 100 apart, 32 bins or a contribution of 64 are given."""
    (plan,) = curator.ask(asked, contribution=contribution).plan(psi=200.0).expected
    (given,) = curator.ask(known, contribution=64 if contribution == "auto" else contribution).plan(psi=200.0).expected
    error = given.by_rows[2][1] if of == 2 else given.ranks if of == "ranks" else given.standard_error
    error *= given.psi / plan.psi
    also = " and a contribution of 64" if contribution == "auto" else ""
    said = [form.format(f"{float(f'{error:.{digits}g}'):,.15g}", also=also) for digits in (2, 3)]
    assert any(words in plan.sentence() for words in said), plan.sentence()
    assert ("contribution of 64" in plan.sentence()) is (contribution == "auto")
    assert "e+" not in plan.sentence()


def test_bins_have_names_of_their_own(curator):
    edges = [0.1, 1000000, 1000001, 1000002.5]
    names = [row["statistic"] for row in curator.ask(ask.histogram("cost", edges)).release(psi=0.25)]
    assert [name.partition(": ")[2] for name in names] == [
        "[0.1, 1000000)",
        "[1000000, 1000001)",
        "[1000001, 1000002.5]",
    ]


def test_numbers_and_keys_may_be_numpys_and_arrows(curator):
    asks = [ask.sum("cost", np.float32(0), np.int64(5), weight=np.int64(2)), ask.quantiles("age", np.arange(9), at=0.5)]
    json.dumps([a.to_dict() for a in asks])
    assert curator.ask(*asks, contribution=np.int64(4)).release(psi=NO_NOISE).value("sum of cost") == pytest.approx(
        10.0, abs=0.1
    )
    for keys in (np.array([50, 20]), pa.array([50, 20]), pd.Index([50, 20])):
        answer = released(curator, ask.count(), by="age", groups=keys, contribution=4)
        assert sorted((row["age"], round(row["value"])) for row in answer) == [(20, 1), (50, 1)]
    assert curator.ask(ask.count(), by=None).release(psi=1.0).by == ()


def test_an_answer_without_keys_says_why(curator):
    answer = curator.ask(ask.count(), by="age", groups=PrivateGroups(kappa=1e-9, at_most=3)).release(psi=0.1)
    assert list(answer) == []
    assert "noisy number of patients exceeds" in answer.summary()
    assert "No group came through." in answer.summary()
    with pytest.raises(KeyError, match="each with a key of age"):
        curator.ask(ask.count(), by="age", groups=[50]).release(psi=0.1).value("count")


def test_a_value_has_its_key_in_parts_or_as_a_tuple(curator):
    answer = curator.ask(ask.count(), by="age", groups=[50]).release(psi=0.1)
    assert answer.value("count", 50) == answer.value("count", (50,))
    with pytest.raises(KeyError, match="no 'count' for 50, 20; there are 'count', each with a key of age"):
        answer.value("count", (50, 20))


def test_rows_without_a_unit_are_left_out_and_plan_answer_and_documents_say_so(tmp_path):
    """How many there are is not said: nobody paid for that."""
    table = pa.table({"who": [1, None, 2, None, None], "ward": ["a", "a", "b", "b", "b"]})
    sentence = "Rows whose 'who' is missing belong to nobody and are left out of every number."
    curator = Curator(table, "who")
    question = curator.ask(ask.count())
    assert sentence in question.plan(psi=1.0).summary()
    answer = question.release(psi=NO_NOISE)
    assert answer.value("count") == pytest.approx(2.0, abs=0.01)
    assert sentence in answer.summary()
    assert sentence in answer.markdown().replace("\\", "")
    assert "belong to nobody" in answer.latex()
    assert sentence in curator.cube({"ward": ["a", "b"]}, ["ward"]).release(psi=1000).table("ward").summary()
    workbook = pytest.importorskip("openpyxl").load_workbook(answer.excel(tmp_path / "a.xlsx"))
    assert sentence in [row[0] for row in workbook["notes"].iter_rows(values_only=True)]
    assert "belong to nobody" not in released(Curator(table, None), ask.count()).summary()


@pytest.mark.parametrize(("psi", "warned"), [(10.0, False), (11.0, True), (1000.0, True)])
def test_a_psi_that_protects_next_to_nobody_is_warned_of_before_and_after(curator, psi, warned):
    question, warning = curator.ask(ask.count()), f"Warning: psi = {psi:g} is hardly any privacy."
    assert (warning in question.plan(psi=psi).summary()) is warned
    assert (warning in question.release(psi=psi).summary()) is warned
    assert (warning in curator.cube({"age": [50, 51]}, ["age"]).plan(psi=psi).summary()) is warned


FRAME = pd.DataFrame({"who": [1, 2, 3], "ward": ["a", "b", "a"], "n": [1, 2, 3]})


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "file"])
def test_groups_that_lie_in_the_table_are_refused_and_others_are_taken_as_public(kind, tmp_path):
    if kind == "file":
        path = tmp_path / "v.parquet"
        FRAME.to_parquet(path)
        source, own, public = path, [path, str(path), tmp_path / "." / "v.parquet"], [["a", "b"]]
    else:
        source = {"pandas": FRAME, "polars": pl.from_pandas(FRAME), "arrow": pa.Table.from_pandas(FRAME)}[kind]
        column = source[["ward"]] if kind == "pandas" else source.select(["ward"])
        own = [source, source["ward"], {"ward": source["ward"]}, column]
        other = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}[kind]({"ward": ["a", "b"]})
        public = [other, other["ward"], ["a", "b"], np.array(["a"])]
    curator = Curator(source, "who")
    for groups in own:
        with pytest.raises(ValueError, match="groups must not come from the table itself"):
            curator.ask(ask.count(), by="ward", groups=groups)
    for groups in public:
        summary = curator.ask(ask.count(), by="ward", groups=groups).plan(psi=1.0).summary()
        assert "groups are taken as public" in summary
    private = curator.ask(ask.count(), by="ward", groups=PrivateGroups(1e-9, 2)).plan(psi=1.0)
    assert "taken as public" not in private.summary()
