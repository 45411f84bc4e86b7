"""Every rounding is the true one: word by word, scale by scale, against exact rationals, without chance."""

from fractions import Fraction
from math import floor

import numpy as np
import pytest

from psidp.noise import doubledouble, rejection, table
from psidp.noise import rounding as rounding_module
from psidp.noise.normal import LazyNormal
from psidp.noise.normal_source import SMALL, NormalSource
from psidp.noise.rounding import FARTHEST, NEAR, Rounding, error_bound

FINE = 1.7 * 2.0**40  # all 53 bits in use: with 1.5 * 2^40 the products would be exact and the test weak
SCALES = [2.0**10, 1.3 * 2.0**24, 1.9 * 2.0**30, FINE, 1.1 * 2.0**43, 2.0**44]
WORDS = 25_000
HALF = Fraction(1, 2)


def hostile_offsets(words, scale, rng):
    """Offsets of which every second puts offset + scale X next to a half, up to two error bounds away."""
    slot = words & (table.SLOTS - 1)
    with np.errstate(invalid="ignore"):
        value = table.CENTRE[slot] * scale + table.REACH[slot] * scale * (words * 2.0**-63)
    near = 0.5 - (value - np.floor(value)) + rng.uniform(-2, 2, words.size) * error_bound(scale, NEAR)
    near = np.where(np.isnan(near), 0.25, near - np.rint(near))
    return np.where(np.arange(words.size) % 2, rng.uniform(-0.5, 0.5, words.size), near)


def drawn(script, scale, n, seed):
    """Rounding.many in its large-vector form on scripted words: results, final slots and words, offsets."""
    rng = np.random.default_rng(seed)
    words = rng.integers(-(2**63), 2**63, n, np.int64)
    offset = hostile_offsets(words, scale, rng)
    dice = NormalSource(script(words.view(np.uint64).tolist(), seed))
    with np.errstate(invalid="ignore"):
        result = Rounding(scale).many(dice, n, SMALL + 1, offset, lambda i: Fraction(offset[i]))
    return result.tolist(), dice.slot[:n].tolist(), dice.word[:n].tolist(), offset.tolist()


@pytest.mark.parametrize("scale", SCALES)
def test_no_rounding_of_25000_words_is_wrong(script, both_roundings, scale):
    wrong = open_ends = 0
    for z, slot, word, f in zip(*drawn(script, scale, WORDS, seed=4), strict=True):
        low, high = both_roundings(slot, word, Fraction(scale), Fraction(f))
        open_ends += low != high
        wrong += not low <= z <= high
    assert wrong == 0
    assert open_ends <= WORDS / 4 if scale < 2**44 else True  # else the test would have proved little


def test_the_25000_words_would_convict_a_bound_of_zero(script, both_roundings, monkeypatch):
    monkeypatch.setattr(rounding_module, "error_bound", lambda scale, farthest: 0.0)
    wrong = 0
    for z, slot, word, f in zip(*drawn(script, FINE, WORDS, seed=4), strict=True):
        low, high = both_roundings(slot, word, Fraction(FINE), Fraction(f))
        wrong += not low <= z <= high
    assert wrong >= 5


@pytest.mark.parametrize("scale", SCALES)
def test_no_rounding_from_the_pool_is_wrong(script, both_roundings, scale):
    """Small vectors and single values: finished normals, the left-over ones among them."""
    rng = np.random.default_rng(5)
    dice, rounding = NormalSource(script(seed=5)), Rounding(scale)
    ready, one, seen = dice.ready, dice.one, []

    def watched(n):
        slot, word = ready(n)
        seen.append((slot.copy(), word.copy()))  # as handed out: nothing may be redrawn afterwards
        return slot, word

    dice.ready = watched
    for _ in range(4):
        f = rng.uniform(-0.5, 0.5, SMALL)
        result = rounding.many(dice, SMALL, SMALL, f, lambda i, f=f: Fraction(f[i])).tolist()
        slots, words = (part.tolist() for part in seen[-1])
        for i in range(SMALL):
            low, high = both_roundings(slots[i], words[i], Fraction(scale), Fraction(f[i]))
            assert low <= result[i] <= high
    singles = []

    def watched_one():
        value, place = one()
        singles.append(dice.single(place))
        return value, place

    dice.one = watched_one
    for f in rng.uniform(-0.5, 0.5, 3000).tolist():
        z = rounding.one(dice, f, lambda f=f: Fraction(f))
        low, high = both_roundings(*singles[-1], Fraction(scale), Fraction(f))
        assert low <= z <= high


@pytest.mark.parametrize("scale", SCALES)
def test_the_error_of_a_double_stays_inside_its_bound(interval, scale):
    """The bound counts roundings at their worst; the worst seen must stay below it, and not absurdly far."""
    rng = np.random.default_rng(6)
    words = rng.integers(-(2**63), 2**63, WORDS, np.int64)
    for bound, slots in (
        (error_bound(scale, NEAR), rng.integers(0, table.LEFT_OVER, WORDS)),
        (error_bound(scale, FARTHEST), rng.integers(table.SLOTS, table.CENTRE.size, WORDS)),
    ):
        offset = rng.uniform(-0.5, 0.5, WORDS)
        vector = (table.REACH * scale * 2.0**-63)[slots] * words + (table.CENTRE * scale)[slots] + offset
        single = (table.CENTRE[slots] + table.REACH[slots] * (words * 2.0**-63)) * scale + offset
        worst = 0.0
        for i in range(0, WORDS, 5):
            low, high = interval(int(slots[i]), int(words[i]))
            low, high = (Fraction(scale) * end + Fraction(offset[i]) for end in (low, high))
            for computed in (Fraction(vector[i]), Fraction(single[i])):
                worst = max(worst, float(max(abs(computed - low), abs(computed - high)) / Fraction(bound)))
        assert 0.02 < worst < 1.0


@pytest.mark.parametrize("scale", SCALES)
def test_pairs_of_doubles_are_never_certain_and_wrong(both_roundings, interval, scale):
    rng = np.random.default_rng(7)
    n = 6000
    slots = np.where(np.arange(n) % 3, rng.integers(0, table.LEFT_OVER, n), rng.integers(8192, 8576, n))
    words, more = (rng.integers(-(2**63), 2**63, n, np.int64) for _ in range(2))
    offset = rng.uniform(-0.5, 0.5, n)
    for i in range(0, n, 2):  # half of them put as near to a half as a double can
        low, _ = interval(int(slots[i]), int(words[i]), int(more[i]))
        away = HALF - Fraction(scale) * low
        offset[i] = float(away - floor(away + HALF)) + (i % 7 - 3) * 2.0**-52
    nearest, certain = doubledouble.rounded(slots, words, more, scale, offset)
    for i in np.flatnonzero(certain).tolist():
        low, high = both_roundings(int(slots[i]), int(words[i]), Fraction(scale), Fraction(offset[i]), int(more[i]))
        assert low == high == nearest[i]
    assert certain[1::2].mean() > 0.999
    assert not certain[::2].any()


def test_integers_decide_what_pairs_cannot(script, interval):
    """offset + scale X is one part in 2^200 below and above a half: only drawing on decides, and rightly."""
    scale = Fraction(1.5 * 2.0**40)
    for tilt, expected in ((-1, 0), (0, 1), (1, 1)):
        extension = [2**63 + 12345, 2**40 + 1, 77]
        normal = LazyNormal.in_slot(4000, 2**62 + 8191)
        low, high = interval(4000, 2**62 + 8191)
        fraction = Fraction(0)
        for k, word in enumerate(extension):
            fraction += Fraction(word, 2 ** (64 * (k + 1)))
        x = low + (high - low) * fraction
        offset = HALF - scale * x + Fraction(tilt, 2**400)
        source = script([*extension, 0, 0, 0, 0, 0, 0])
        assert normal.rounded(scale, offset, source) == expected
        assert source.drawn >= 3


def test_a_lazy_normal_only_ever_narrows(script):
    normal = LazyNormal.in_slot(17, -(2**62) - 5)
    low, high, shift = normal.bounds()
    for word in (0, 2**64 - 1, -1, 12345678901234567):
        normal.extend(word)
        new_low, new_high, new_shift = normal.bounds()
        assert low << (new_shift - shift) <= new_low < new_high <= high << (new_shift - shift)
        low, high, shift = new_low, new_high, new_shift


def test_finished_normals_are_never_drawn_again(script, both_roundings):
    """From the pool, in doubt, and in a cell beyond the rectangles: a new draw would bend the law of the tail."""
    n = 500
    slots = np.random.default_rng(8).integers(table.SLOTS, table.CENTRE.size, n)
    words = np.random.default_rng(9).integers(-(2**63), 2**63, n, np.int64)
    rare = LazyNormal(2 * table.LIMIT + 2**37, 2**37, 12345)
    slots[0], words[0] = rejection.RARE, 77
    dice = NormalSource(script(seed=10))
    dice._rare = {77: rare}
    dice.ready = lambda n: (slots.copy(), words.copy())
    result = Rounding(2.0**44).many(dice, n, n, np.zeros(n), lambda i: Fraction(0)).tolist()
    for i in range(1, n):
        low, high = both_roundings(int(slots[i]), int(words[i]), Fraction(2**44), Fraction(0))
        assert low <= result[i] <= high
    low, high, shift = rare.bounds()
    assert low / 2**shift - 1e-12 <= result[0] / 2.0**44 <= high / 2**shift + 1e-12


def test_an_undecided_rounding_goes_on_with_the_word_the_pairs_have_seen(script, monkeypatch):
    """The bits that pairs of doubles looked at belong to the normal; fresh ones would bend its law."""
    seen = []
    extend = LazyNormal.extend
    monkeypatch.setattr(LazyNormal, "extend", lambda self, word: seen.append(word) or extend(self, word))
    monkeypatch.setattr(doubledouble, "DOUBT", 0.6)
    word = 2**60 + 4000
    centre, reach = table.CENTRE[4000], table.REACH[4000]
    value = (centre + reach * (word * 2.0**-63)) * 2.0**40
    offset = np.array([0.5 - (value - np.floor(value))])
    source = script([word, 424242])
    Rounding(2.0**40).many(NormalSource(source), 1, SMALL + 1, offset, lambda i: Fraction(offset[i]))
    assert seen[0] == 424242
