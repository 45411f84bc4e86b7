"""Flags in pictures: what noise hides is not drawn, and what clipping may have moved can still be read."""

import json

import pytest

from psidp import Guarantee
from psidp.tables.answer import Answer
from psidp.tables.estimate import Estimate

pytest.importorskip("altair")
FLAGS = ["", "clipping", "noise", "noise, clipping"]


def drawn(by):
    """The picture of four groups with one flag each."""
    keys = [(f"group {i}", "all") for i in range(4)]
    found = [Estimate("count", 100.0 * (4 - i), 9.0, 82.0, 118.0, flag) for i, flag in enumerate(FLAGS)]
    rows = tuple((key[: len(by)], e) for key, e in zip(keys, found, strict=True))
    return json.loads(Answer(by, rows, Guarantee(1.0, unit="plane"), 0.95, ()).figure().to_json())


@pytest.mark.parametrize(("by", "blank"), [(("origin",), "grey, without a bar"), (("origin", "carrier"), "empty")])
def test_clipping_is_dashed_and_what_noise_hides_is_blank_and_the_legend_says_so(by, blank):
    picture = drawn(by)
    cells = picture["data"]["values"]
    assert [(row["blank"], row["clipped"]) for row in cells] == [
        (False, False), (False, True), (True, False), (True, False),
    ]  # fmt: skip
    said = picture["title"]["subtitle"]
    assert said[-2:] == [
        "dashed: clipping may have moved it further than its interval says", f"{blank}: cannot be told from noise",
    ]  # fmt: skip
    shown = [layer for layer in picture["layer"] if layer["mark"]["type"] in ("bar", "text")]
    assert all({"filter": "!datum.blank"} in layer["transform"] for layer in shown)
    (dashed,) = (layer for layer in picture["layer"] if "strokeDash" in layer["mark"])
    assert {"filter": "datum.clipped"} in dashed["transform"]


def test_a_picture_of_numbers_without_flags_has_no_legend_of_flags():
    rows = ((("a",), Estimate("count", 100.0, 9.0, 82.0, 118.0)),)
    picture = json.loads(Answer(("by",), rows, Guarantee(1.0), 0.95, ()).figure().to_json())
    assert len(picture["title"]["subtitle"]) == 1


def test_a_heat_map_fades_what_is_hardly_known_so_that_the_eye_goes_to_what_is():
    """By value alone, the darkest cell was often the noisiest: of few rows, far off."""
    ends = [(0.0, 1.0), (10.0, 10.0), (50.0, 30.0), (60.0, 1.0), (70.0, 300.0)]
    found = [Estimate("mean of x", value, half / 2.0, value - half, value + half) for value, half in ends]
    rows = tuple(((f"g{i}", "all"), e) for i, e in enumerate(found))
    picture = json.loads(Answer(("origin", "carrier"), rows, Guarantee(1.0), 0.95, ()).figure().to_json())
    known = [cell["known"] for cell in picture["data"]["values"]]
    assert known == pytest.approx([1 - 2 / 70, 1 - 20 / 70, 1 - 60 / 70, 1 - 2 / 70, 0.12])
    (squares,) = (layer for layer in picture["layer"] if "fillOpacity" in layer["encoding"])
    assert squares["encoding"]["fillOpacity"] == {"field": "known", "scale": None, "type": "quantitative"}
    assert squares["mark"]["type"] == "rect"
    assert any("the paler a cell, the wider its interval" in line for line in picture["title"]["subtitle"])
    ink = [
        layer["encoding"]["color"]["condition"]["test"] for layer in picture["layer"] if layer["mark"]["type"] == "text"
    ]
    assert all("datum.known *" in test for test in ink)  # white letters on a pale cell could not be read
    alone = json.loads(Answer(("origin", "carrier"), rows[4:], Guarantee(1.0), 0.95, ()).figure().to_json())
    assert [cell["known"] for cell in alone["data"]["values"]] == [1.0]
    assert len(alone["title"]["subtitle"]) == 1
