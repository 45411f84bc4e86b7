"""Trainings with correlated noise killed at a sample of the lines of a step; `./dev fuzz` takes all lines."""

import pytest

from scripts import script


@pytest.mark.parametrize(("order", "stride", "kills"), [("sampled", 211, 2), ("fixed", 307, 1)])
def test_killed_at_lines_of_a_step_the_price_is_as_planned_and_no_file_holds_a_secret(tmp_path, order, stride, kills):
    outcome = script("bridges/training_kills.py", tmp_path, order, stride, 1)
    assert outcome["kills"] >= kills
    assert (outcome["leaks"], outcome["unpaid"]) == (0, 0)
    assert outcome["lost"] <= outcome["kills"]  # a kill loses one step at most
    assert 0.9 < outcome["most"] <= 1.0  # of the bound, in exact integers, between neighbours
    assert outcome["apart"] > kills
