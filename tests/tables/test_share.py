"""Share: the part of rows for which a condition holds, with an interval that covers."""

from math import sqrt

import numpy as np
import pyarrow as pa
import pytest

from psidp import Curator, ask
from psidp.tables.estimate import Cells
from reference.repeated import repeated

NEVER = 1e8
LATE = "delay > 15"


@pytest.fixture(scope="module")
def flights():
    dice = np.random.default_rng(4)
    delay = [None if dice.random() < 0.1 else float(x) for x in dice.gamma(2.0, 10.0, 4000)]
    return pa.table({
        "plane": np.arange(4000) % 500, "origin": dice.choice(["EWR", "JFK"], 4000), "delay": delay,
        "night": dice.random(4000) < 0.2,
    })  # fmt: skip


def test_a_share_is_of_the_rows_for_which_the_condition_is_known(flights):
    frame = flights.to_pandas()
    asks = [ask.share(LATE), ask.share("night"), ask.share("delay is null"), ask.share(f"{LATE} and night as both")]
    answer = Curator(flights, "plane").ask(*asks, by="origin", groups=["JFK"], contribution=16).release(psi=NEVER)
    jfk = frame[frame.origin == "JFK"]
    known = jfk[jfk.delay.notna()]
    assert answer.value(f"share of {LATE}", "JFK") == pytest.approx((known.delay > 15).mean(), abs=1e-6)
    assert answer.value("share of night", "JFK") == pytest.approx(jfk.night.mean(), abs=1e-6)
    assert answer.value("share of delay is null", "JFK") == pytest.approx(jfk.delay.isna().mean(), abs=1e-6)
    both = jfk[jfk.delay.notna() | ~jfk.night]  # false and NULL is false
    assert answer.value("share of both", "JFK") == pytest.approx(((both.delay > 15) & both.night).mean(), abs=1e-6)


def test_a_share_of_a_csv_file_reads_its_columns_as_the_condition_does(tmp_path):
    path = tmp_path / "flights.csv"
    path.write_text("plane,delay\n" + "".join(f"{i},{'late' if i % 5 == 0 else i % 4}\n" for i in range(1000)))
    answer = Curator(path, "plane").ask(ask.share("delay >= 2")).release(psi=NEVER)
    assert answer.value("share of delay >= 2") == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize(
    ("unit", "adjacency", "sensitivity"),
    [
        ("plane", "add-remove", 1.0),
        ("plane", "replace-one", 2.0),
        (None, "add-remove", 1.0),
        (None, "replace-one", sqrt(2)),
    ],
)
def test_a_row_is_in_one_number_alone_so_that_replacing_it_costs_a_root_of_two(flights, unit, adjacency, sensitivity):
    plan = Curator(flights, unit, adjacency=adjacency).ask(ask.share(LATE), clipping_share=0.0).plan(psi=1.0)
    expected = plan.expected[0]
    assert expected.sensitivity == pytest.approx(sensitivity, rel=1e-12)
    assert expected.by_rows[1] == (1000, pytest.approx(sqrt(0.5) * sensitivity / 1000))


def test_its_intervals_cover_as_often_as_they_say(flights):
    frame = flights.to_pandas()
    truth = (frame.delay.dropna() > 15).mean()
    found = [a.rows[0][1] for a in repeated(Curator(flights, "plane").ask(ask.share(LATE), contribution=16), 0.5, 400)]
    errors = np.array([e.value - truth for e in found])
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(np.mean([e.standard_error for e in found]), rel=0.15)
    assert 0.92 <= np.mean([e.lower <= truth <= e.upper for e in found]) <= 0.98


def test_a_share_of_nobody_is_anything_between_0_and_1():
    share = ask.share(LATE).measure
    cells = Cells(np.array([[-1.0, 0.5], [0.0, 0.0], [60.0, 40.0]]), np.array([1.0, 1.0]), 0.0, 0.95)
    (none,), (nothing,), (some,) = share.estimates(cells)
    for e in (none, nothing):
        assert (e.value, e.lower, e.upper, e.flag) == (0.5, 0.0, 1.0, "noise")
    assert some.value == pytest.approx(0.6)
    assert 0.57 < some.lower < some.upper < 0.63
    assert some.flag == ""


def test_a_cube_reads_shares_of_its_cells(flights):
    frame = flights.to_pandas()
    cube = Curator(flights, None).cube(
        {"origin": ["EWR", "JFK"]}, ["origin"], measures=[ask.count(), ask.share("night")]
    )
    found = cube.release(psi=1000.0)
    values = {row["origin"]: row["value"] for row in found.table("origin") if row["statistic"] == "share of night"}
    assert values["EWR"] == pytest.approx(frame[frame.origin == "EWR"].night.mean(), abs=1e-2)


def test_what_is_neither_true_nor_false_is_refused(flights):
    curator = Curator(flights, "plane")
    with pytest.raises(TypeError, match=r"column 'origin' must be true or false to have a share.*such as \"origin = "):
        curator.ask(ask.share("origin"))
    with pytest.raises(ValueError, match="'nothing'"):
        curator.ask(ask.share("nothing"))
    with pytest.raises(TypeError, match="column must be the name of a column"):
        ask.share(15)
