"""clip_sum: no record can add more than the norm, whatever it holds; the sum is exact and in no order."""

from math import isqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import psidp
from psidp.mechanism import clipping
from psidp.mechanism.clipping import clip_sum

NORMS = [1.0, 0.1, 3.7, 1e-200, 7e250, np.nextafter(1.0, 0.0), 2.0**31 - 1]


def square(total):
    """The squared norm in units, in Python's integers."""
    return sum(int(k) ** 2 for k in np.atleast_1d(total.totals))


def bound(total):
    return int(np.floor(np.ldexp(total.norm, -total.unit)))


@given(
    arrays(np.float64, st.integers(1, 9), elements=st.floats(allow_nan=True, allow_infinity=True)),
    st.sampled_from(NORMS),
)
@settings(max_examples=400)
def test_no_record_whatever_it_holds_adds_more_than_the_norm(row, norm):
    total = clip_sum(row[None, :], norm)
    assert square(total) <= bound(total) ** 2
    assert bound(total) * 2.0**total.unit <= norm


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("d", [1, 2, 3, 10, 1000])
def test_no_record_on_the_rim_adds_more_than_the_norm(norm, d):
    """Rows whose clipped norm is the bound to the last bit, where doubles alone go wrong."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, d)) * norm * rng.choice([0.5, 1.0, 1 + 1e-12, 30.0], (300, 1))
    for row in rows:
        total = clip_sum(row[None, :], norm)
        assert square(total) <= bound(total) ** 2


def test_doubles_alone_would_exceed_the_norm():
    """Why integers: clipped in doubles and cut toward zero at norm 2^-52, one row in twenty is too long."""
    rows = np.random.default_rng(1).normal(size=(2000, 3)) * 10
    clipped = rows / np.sqrt((rows**2).sum(axis=1, keepdims=True))
    units = np.trunc(clipped * 2.0**52).astype(np.int64).tolist()
    assert sum(sum(k * k for k in row) > 2**104 for row in units) > 100


@given(st.lists(st.integers(-(2**31) + 1, 2**31 - 1), min_size=1, max_size=2))
@settings(max_examples=300)
def test_integers_shrink_below_the_bound_even_when_doubles_have_failed(row):
    """_shrunk by itself, on rows that no clipping has seen: up to twice the bound per coordinate."""
    limit = 2**30
    shrunk = clipping._shrunk(np.array([row], np.int64), limit)[0].tolist()
    length = isqrt(sum(k * k for k in row))
    assert sum(k * k for k in shrunk) <= limit * limit
    for before, after in zip(row, shrunk, strict=True):
        assert after == before if length < limit else abs(after) <= abs(before)
        assert before * after >= 0


@given(st.integers(1, 2**62))
@settings(max_examples=300)
def test_the_root_is_never_too_small(target):
    """r^2 >= S, also for S = k^2, k^2 - 2 k + 2 and k^2 + 1, where the root of a double may round down."""
    k = isqrt(target)
    rows = np.array([[k, 0], [max(k - 1, 0), 1], [k, 1]], np.int64)
    for row in clipping._shrunk(rows, 1000).tolist():
        assert sum(v * v for v in row) <= 1000**2


def test_records_within_the_norm_lose_less_than_a_unit_per_coordinate():
    rows = np.random.default_rng(2).uniform(-0.5, 0.5, (5000, 3))
    total = clip_sum(rows, norm=1.0)
    lost = rows - np.trunc(np.ldexp(rows, -total.unit)) * 2.0**total.unit
    assert (abs(lost) < 2.0**total.unit).all()
    assert total.totals.tolist() == np.trunc(np.ldexp(rows, -total.unit)).astype(np.int64).sum(axis=0).tolist()


def test_clipped_records_keep_their_direction():
    rows = np.random.default_rng(3).normal(size=(200, 4)) * 1e6
    for row in rows:
        total = clip_sum(row[None, :], norm=2.5)
        expected = row / np.linalg.norm(row) * 2.5
        assert np.ldexp(total.totals.astype(float), total.unit) == pytest.approx(expected, abs=1e-8)


def test_the_order_of_records_does_not_matter():
    rows = np.random.default_rng(4).normal(size=(100_001, 2)) * 10.0 ** np.arange(2)
    total = clip_sum(rows, norm=1.0).totals
    assert (clip_sum(rows[::-1], norm=1.0).totals == total).all()
    assert (clip_sum(rows[50_000:], 1.0).totals + clip_sum(rows[:50_000], 1.0).totals == total).all()


def test_nan_counts_as_nothing_and_infinity_as_very_large():
    total = clip_sum([[np.nan, 0.5], [np.inf, 0.0], [-np.inf, np.inf]], norm=1.0)
    values = np.ldexp(total.totals.astype(float), total.unit)
    assert values == pytest.approx([1 - np.sqrt(0.5), 0.5 + np.sqrt(0.5)], abs=1e-8)


def test_numbers_in_one_dimension_give_one_total():
    total = clip_sum([1, 2, -30], norm=10.0)
    assert total.totals.shape == ()
    assert int(total.totals) * 2.0**total.unit == -7.0


def test_an_empty_table_has_the_sum_nought():
    assert clip_sum(np.zeros((0, 3)), norm=1.0).totals.tolist() == [0, 0, 0]
    assert clip_sum(np.zeros((2, 0)), norm=1.0).totals.size == 0


def test_the_totals_are_not_shown():
    assert "totals" not in repr(clip_sum([12345.0], norm=1e9))


def test_one_record_moves_the_sum_by_the_norm_or_twice_it():
    total = clip_sum([1.0], norm=3.0)
    assert total.sensitivity("add-remove") == 3.0
    assert total.sensitivity("replace-one") == 6.0


@pytest.mark.parametrize("norm", [0.0, -1.0, np.nan, np.inf, 1e300, 1e-300])
def test_a_norm_outside_its_range_is_refused(norm):
    with pytest.raises(ValueError, match=r"norm \(largest L2 norm of one record\) must be in"):
        clip_sum([1.0], norm)


@pytest.mark.parametrize("rows", [["a"], [1j], [[[1.0]]], 5.0, [None], [True]])
def test_rows_that_are_no_matrix_of_numbers_are_refused(rows):
    with pytest.raises(TypeError, match="rows must be numbers"):
        clip_sum(rows, 1.0)


def test_records_of_different_lengths_are_refused_in_a_sentence():
    with pytest.raises(TypeError, match="each record as long as the others"):
        clip_sum([[1.0, 2.0], [3.0]], norm=1.0)


def test_sums_are_compared_by_what_they_are_and_never_by_half():
    made = clip_sum([[3.0, 4.0]], norm=1.0)
    assert made == made
    assert made != clip_sum([[3.0, 4.0]], norm=1.0)


def hiding():
    """The same two rows as arrays that have a place for what is missing, with and without something missing."""
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    for entries in ([1, 2], [1, None]):
        yield from (pd.array(entries, dtype="Int64"), pd.Series(entries, dtype="Float64"), pa.array(entries))
        yield from (pl.Series(entries), pd.DataFrame({"a": pd.array(entries, dtype="Int64")}))
    for mask in ([False, False], [False, True]):
        yield from (np.ma.array([1.0, 2.0], mask=mask), [np.ma.array([1.0, 2.0], mask=mask)])


def test_what_may_be_missing_is_refused_by_its_type_whether_something_is_or_not():
    for rows in hiding():
        with pytest.raises(TypeError, match=r"rows must be an array of numbers without a mask.* NaN counts as 0\."):
            clip_sum(rows, norm=1.0)
        with pytest.raises(TypeError, match=r"x \(.*\) must be a number or an array without .* Fill it first"):
            psidp.GaussianMechanism(1.0, 1.0).release(rows)


def test_a_filled_mask_counts_as_nothing():
    rows = np.ma.array([[3.0, 0.0], [0.5, 0.25]], mask=[[True, False], [False, False]])
    assert clip_sum(rows.filled(np.nan), norm=1.0).totals.tolist() == clip_sum([[0.5, 0.25]], norm=1.0).totals.tolist()
