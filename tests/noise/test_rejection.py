"""What the rectangles leave over: acceptance in doubles inside its band, exact acceptance, the far tail."""

from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

from psidp.noise import rejection, table
from psidp.noise.normal import LazyNormal
from psidp.noise.normal_source import NormalSource

CELLS = table.WIDTH.size


@pytest.fixture(autouse=True)
def _precision():
    before, ctx.prec = ctx.prec, 200
    yield
    ctx.prec = before


def phi(x):
    return (-x * x / 2).exp() / (2 * arb.pi()).sqrt()


def ball(fraction):
    return arb(fraction.numerator) / arb(fraction.denominator)


def chance(cell, x):
    """Acceptance at x, as a ball."""
    mass = arb(2) ** -13 if cell < table.RECTANGLES else arb(0)
    width = arb(int(table.WIDTH[cell])) / table.UNIT
    return table.ENVELOPE * (width * phi(ball(x)) - mass) / int(table.WEIGHT[cell])


def test_acceptance_in_doubles_stays_inside_its_band(interval):
    """All cells, five words each, both ends of what a word leaves open."""
    rng = np.random.default_rng(2)
    cells = np.repeat(np.arange(CELLS), 5)
    negative = rng.integers(0, 2, cells.size)
    place = rng.integers(-(2**63), 2**63, cells.size, np.int64)
    place[::5], place[1::5] = -(2**63), 2**63 - 1
    computed = rejection.acceptance(cells, negative, place)
    slots = table.slot_of(cells, negative)
    worst = 0.0
    for i, cell in enumerate(cells.tolist()):
        for x in interval(int(slots[i]), int(place[i])):
            off = abs(chance(cell, x) - float(computed[i])) / (rejection.BAND * float(table.HEIGHT[cell]))
            worst = max(worst, float(off.upper()))
    assert 0.001 < worst < 0.5  # half the band is kept for the error of V, which is 2^-53


def test_exact_acceptance_follows_the_ball(script):
    """V is put a hair below and above the true chance: 2^-70, where doubles have long given up."""
    rng = np.random.default_rng(3)
    for cell in [0, 1, 57, 2000, 4090, 4091, 4200, CELLS - 1, *rng.integers(0, CELLS, 60).tolist()]:
        slot = int(table.slot_of(np.array([cell]), np.array([int(rng.integers(2))]))[0])
        place = int(rng.integers(-(2**63), 2**63))
        for tilt, expected in ((-1, True), (1, False)):
            normal = LazyNormal.in_slot(slot, place)
            normal.extend(0)
            normal.extend(0)
            low, _, shift = normal.bounds()
            level = chance(cell, Fraction(low, 2**shift)) + arb(tilt) * arb(2) ** -70
            digits = int((level * arb(2) ** 128).floor().mid().fmpz()) if float(level) > 0 else 0
            numbers = rejection._in_cell(cell, slot, place)[1:]
            source = script([0, digits % 2**64, 0, 0, 0, 0])
            assert rejection.accepts(normal, *numbers, digits >> 64, source) is expected


def test_undecided_proposals_are_decided_exactly_and_keep_their_bits(script, monkeypatch):
    """With a band that covers everything, every proposal takes the exact road; the law must not change."""
    plain_slots, plain_words, none = rejection.drawn(script(seed=8), 1500)
    assert none == []
    monkeypatch.setattr(rejection, "BAND", 1e9)
    slots, words, rare = rejection.drawn(script(seed=8), 1500)
    assert slots.size == plain_slots.size == len(rare)
    assert (slots == rejection.RARE).all()
    for i, normal in enumerate(rare):
        low, high, shift = normal.bounds()
        value = table.CENTRE[plain_slots[i]] + table.REACH[plain_slots[i]] * (plain_words[i] * 2.0**-63)
        assert low / 2**shift <= value + 1e-14
        assert value - 1e-14 <= high / 2**shift
    assert words.tolist() == list(range(len(rare)))


def far_words(sign, place, level, *rest):
    """The three words of a proposal beyond the last cell, and what follows."""
    choice = (sum(table.WEIGHT.tolist()) + 3) * 2 + sign
    return [choice, place % 2**64, level, *rest]


@pytest.mark.parametrize("sign", [0, 1])
@pytest.mark.parametrize(("coins", "k"), [([1], 0), ([0b1000], 3), ([0, 0b10], 65)])
def test_the_far_tail_goes_on_for_ever(script, sign, coins, k):
    slots, _, rare = rejection.drawn(script(far_words(sign, -(2**63), 0, *coins, *[0] * 12)), 1)
    assert slots.tolist() == [rejection.RARE]
    low, high, shift = rare[0].bounds()
    start = Fraction(table.LIMIT, table.UNIT) + Fraction(k, 8)
    low, high = sorted((abs(Fraction(low, 2**shift)), abs(Fraction(high, 2**shift))))
    assert start <= low < high <= start + Fraction(1, 8)
    if sign == 0:
        assert low == start


def test_the_far_tail_is_accepted_with_its_exact_chance(script):
    """Cell k, place x: ENVELOPE 2^k phi(x) / (4 BEYOND)."""
    for k, place in ((0, -(2**63)), (0, 2**62), (1, -(2**62)), (2, 12345)):
        x = arb(table.LIMIT) / table.UNIT + (k + arb(0.5)) / 8 + arb(place >> 13) / arb(2) ** 54
        true = table.ENVELOPE * arb(2) ** k * phi(x) / (4 * table.BEYOND)
        assert 0 < true < 1
        for tilt, taken in ((-1, 1), (1, 0)):
            level = int(((true + arb(tilt) * arb(2) ** -40) * arb(2) ** 64).floor().mid().fmpz())
            slots, _, _ = rejection.drawn(script(far_words(0, place, level, 1 << k)), 1)
            assert slots.size == taken


def test_proposals_above_the_last_weight_are_refused(script):
    assert rejection.drawn(script([2**64 - 1, 0, 0]), 1)[0].size == 0


def test_dice_hand_out_a_rare_normal_once(script):
    """A far-tail normal travels from the proposal through the pool to the rounding."""
    dice = NormalSource(script())
    words = np.array([[w] for w in far_words(0, 0, 0, 1)[:3]], np.uint64)
    dice.words = script([*words[:, 0].tolist(), 1])
    slots, places, rare = rejection.drawn(dice.words, 1)
    dice._special_slot, dice._special_word, dice._rare = slots, places + 7, {7: rare[0]}
    slot, word = np.array([8185]), np.array([99])
    dice.replace(slot, word, np.array([0]))
    assert (slot[0], word[0]) == (rejection.RARE, 7)
    normal = dice.lazy(int(slot[0]), int(word[0]))
    assert normal.rounded(Fraction(2**10), Fraction(0), dice.words) == pytest.approx((9.514 + 0.0625) * 1024, rel=1e-4)
    assert dice._rare == {}
