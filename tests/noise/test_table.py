"""The certificate: every cell of the table is what the proof in docs/design/noise.md needs it to be."""

import importlib.util
from pathlib import Path

import mpmath
import numpy as np
import pytest
from flint import arb, ctx

from psidp.noise import table

CELLS = table.WIDTH.size
EDGES = [*table.EDGE.tolist(), table.LIMIT]
WIDTHS = table.WIDTH.tolist()
WEIGHTS = table.WEIGHT.tolist()
MASS = 2.0**-13


@pytest.fixture(autouse=True)
def _precision():
    before, ctx.prec = ctx.prec, 200
    yield
    ctx.prec = before


def phi(x):
    return (-x * x / 2).exp() / (2 * arb.pi()).sqrt()


def excess(i):
    """Mass by which phi at the left end exceeds the rectangle, over the whole cell."""
    return arb(WIDTHS[i]) / table.UNIT * phi(arb(EDGES[i]) / table.UNIT) - (MASS if i < table.RECTANGLES else 0)


def test_every_rectangle_lies_under_the_curve():
    """phi falls on x > 0, so its right end decides; mass 2^-13 over the width is the height."""
    for i in range(table.RECTANGLES):
        assert arb(WIDTHS[i]) / table.UNIT * phi(arb(EDGES[i + 1]) / table.UNIT) >= MASS


def test_every_rectangle_lies_under_the_curve_by_a_second_road():
    interval = mpmath.iv
    before, interval.prec = interval.prec, 120
    root = interval.sqrt(2 * interval.pi)
    for i in range(table.RECTANGLES):
        right = interval.mpf(EDGES[i + 1]) / table.UNIT
        assert (interval.mpf(WIDTHS[i]) / table.UNIT * interval.exp(-right * right / 2) / root).a >= MASS
    interval.prec = before


def test_no_acceptance_exceeds_one():
    """Acceptance is largest at the left end, where it is ENVELOPE * excess / weight."""
    for i in range(CELLS):
        assert table.ENVELOPE * excess(i) <= WEIGHTS[i]


def test_the_stored_heights_are_right_to_the_last_bit():
    for i in range(CELLS):
        true = table.ENVELOPE * arb(WIDTHS[i]) / table.UNIT * phi(arb(EDGES[i]) / table.UNIT) / WEIGHTS[i]
        assert abs(true - float(table.HEIGHT[i])) <= true * 2.0**-53
        floor = arb(table.ENVELOPE) * MASS / WEIGHTS[i] if i < table.RECTANGLES else arb(0)
        assert abs(floor - float(table.FLOOR[i])) <= floor * 2.0**-51
        assert table.HEIGHT[i] > 0.8


def test_the_tail_beyond_the_last_cell_is_covered_by_a_geometric_envelope():
    """Cell k has width 1/8 and chance 2^-(k+1); 2^k exp(-(x^2 - LIMIT^2)/2) stays at most 1 there."""
    limit = arb(table.LIMIT) / table.UNIT
    assert limit / 8 >= arb(2).log()
    assert table.ENVELOPE * 2 * phi(limit) / 8 <= table.BEYOND


def test_the_proposals_fit_into_a_word():
    assert sum(WEIGHTS) + table.BEYOND <= 2**63
    assert table.CHOICE[-1] == sum(WEIGHTS) + table.BEYOND
    assert table.CHOICE.dtype == np.uint64


def test_easy_slots_and_left_over_slots_carry_exactly_the_whole_mass():
    limit = arb(table.LIMIT) / table.UNIT
    left_over = sum(_under(i) - MASS for i in range(table.RECTANGLES))
    left_over += sum(_under(i) for i in range(table.RECTANGLES, CELLS)) + (limit / arb(2).sqrt()).erfc() / 2
    difference = 2 * left_over - arb(table.SLOTS - table.LEFT_OVER) / table.SLOTS
    assert difference.contains(0)
    assert abs(difference) < 1e-50


def _under(i):
    """Mass of the normal on cell i."""
    root = arb(2).sqrt()
    return ((arb(EDGES[i]) / table.UNIT / root).erfc() - (arb(EDGES[i + 1]) / table.UNIT / root).erfc()) / 2


def test_centres_and_reaches_are_the_cells_exactly():
    for slot in [*range(table.LEFT_OVER), *range(table.SLOTS, table.CENTRE.size)]:
        i, sign = table.cell_of(slot), -1 if slot % 2 else 1
        assert table.CENTRE[slot] * 2 * table.UNIT == sign * (2 * EDGES[i] + WIDTHS[i])
        assert table.REACH[slot] * 2 * table.UNIT == WIDTHS[i]
    assert np.isnan(table.CENTRE[table.LEFT_OVER : table.SLOTS]).all()
    assert np.isnan(table.REACH[table.LEFT_OVER : table.SLOTS]).all()


def test_a_cell_and_a_sign_name_one_slot():
    cells = np.arange(CELLS)
    for sign in (0, 1):
        slots = table.slot_of(cells, np.full_like(cells, sign))
        assert [table.cell_of(s) for s in slots.tolist()] == cells.tolist()
        assert (slots % 2 == sign).all()


def test_the_script_makes_the_table_again():
    path = Path(__file__).parents[1] / "reference" / "rectangles.py"
    spec = importlib.util.spec_from_file_location("rectangles", path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    rows, envelope, rectangles, beyond = script.build()
    assert (envelope, rectangles, beyond) == (table.ENVELOPE, table.RECTANGLES, table.BEYOND)
    assert rows.tobytes() == np.load(script.TARGET).tobytes()
