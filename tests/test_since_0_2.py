"""The questions of ./dev compare 0.2 are 400, and this version understands them; a difference does not pass unseen."""

import pytest

from bench.since_0_2 import tables
from bench.since_0_2.calls_now import Calls
from bench.since_0_2.compare import judged
from bench.since_0_2.lines import dumps, loads
from bench.since_0_2.questions import QUESTIONS

ROW = {"of": "", "key": ["A"], "statistic": "count", "value": 10.0, "standard_error": 1.0, "lower": 8.0, "upper": 12.0}
ANSWER = {"totals": {"noise": [2**60 + 1]}, "psi": {"psi": 1.0}, "plan": {}, "rows": [ROW | {"flag": ""}]}


def changed(**values):
    return loads(dumps(ANSWER)) | {"rows": [ROW | {"flag": ""} | values]}


def test_there_are_400_questions_with_names_of_their_own():
    assert len(QUESTIONS) == len({question["name"] for question in QUESTIONS}) == 400


def test_this_version_plans_a_question_of_each_kind(tmp_path):
    tables.write(tmp_path)
    calls = Calls({"folder": str(tmp_path)})
    asked = [q for q in QUESTIONS if q["source"] not in ("postgres", "spark")]
    for question in asked[::37]:
        assert calls.plan(loads(dumps(question)))["psi"] > 0.0, question["name"]


@pytest.mark.parametrize(
    "other",
    [
        changed(value=10.000001),
        changed(lower=7.9),
        changed(flag="noise"),
        changed(key=[None]),
        ANSWER | {"totals": {"noise": [2**60]}},
        ANSWER | {"psi": {"psi": 1.0 + 2**-52}},
        ANSWER | {"rows": []},
        {"error": "ValueError: no"},
    ],
)
def test_a_difference_is_found_unless_it_is_listed(other):
    fields = ["error", "totals", "psi", "plan", "rows", "values", "errors", "intervals", "flags"]
    listed = [{"questions": "table/*", "fields": fields, "reason": "for this test"}]
    assert judged("table/a", ANSWER, loads(dumps(ANSWER)), []) == (set(), [])
    assert judged("table/a", ANSWER, other, [])[1]
    assert judged("cube/a", ANSWER, other, listed)[1]
    assert judged("table/a", ANSWER, other, listed) == ({0}, [])


def test_a_listed_difference_may_be_bounded():
    listed = [{"questions": "*", "fields": ["intervals"], "within": 0.1, "reason": "for this test"}]
    assert judged("table/a", ANSWER, changed(lower=7.9), listed) == ({0}, [])
    assert judged("table/a", ANSWER, changed(lower=7.0), listed)[1]
