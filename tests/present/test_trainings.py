"""Accuracy against psi: what the picture holds, and what it refuses."""

import json

import pytest

import psidp


def values(chart):
    """The rows of all layers; Altair moves data that several layers share to the top."""
    drawn = chart.to_dict()
    inside = [layer["data"].get("values", []) for layer in drawn["layer"] if "data" in layer]
    return [row for rows in [*drawn.get("datasets", {}).values(), *inside] for row in rows]


def test_each_training_is_a_point_with_the_bar_of_its_audit():
    chart = psidp.figures.accuracy([(2.0, 0.9, 0.5), (0.5, 0.7, None)], without=0.95)
    rows = values(chart)
    points = [(row["psi"], row["accuracy"], row["text"]) for row in rows if row.get("kind") == "promised, psi at most"]
    assert set(points) == {(0.5, 0.7, "70.0%"), (2.0, 0.9, "90.0%")}
    assert {row["from"] for row in rows if row.get("kind") == "audited, psi at least"} == {0.5}
    assert "without privacy, 95.0%" in json.dumps(chart.to_dict())


def test_it_is_drawn_without_audits_and_as_a_file(tmp_path):
    path = psidp.figures.save(psidp.figures.accuracy([(1.0, 0.25, None)], title="One"), tmp_path / "one.svg")
    assert "25.0%" in path.read_text()
    assert "audited" not in path.read_text()


@pytest.mark.parametrize("wrong", [[], [(float("nan"), 0.5, None)], [(1.0, 1.5, None)], [(1.0, float("nan"), None)]])
def test_what_is_no_training_is_refused(wrong):
    with pytest.raises(ValueError, match="training"):
        psidp.figures.accuracy(wrong)
