"""Flags in pictures: what noise hides is not drawn, and what clipping may have moved can still be read."""

import json

import pytest

from psidp import Guarantee
from psidp.curator.answer import Answer
from psidp.curator.estimate import Estimate

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
    assert said[1:] == [
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
