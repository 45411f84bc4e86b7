"""A quantity refuses nonsense by a sentence that names it, and takes every honest number as it is."""

from decimal import Decimal
from fractions import Fraction
from math import inf, nan

import numpy as np
import pytest

from psidp.symbols import SYMBOLS, finite, masked, nullable, symbol, whole

ALL = list(SYMBOLS.values())
NAMES = [s.name for s in ALL]


NO_NUMBERS = [
    nan, "0.5", b"0.5", None, True, False, np.True_, 0.5 + 0j, np.complex64(1), np.datetime64("2026-01-01"), {},
    object(), [True, 0.5], [0.5, [True]], [np.True_, 1], np.array([True]), ["a"], [0.5, None], [0.5, "a"],
    [[1.0], [1.0, 2.0]], np.ma.array([0.5], mask=[True]), [np.ma.array([0.5], mask=[True])], np.array([0.5, nan]),
    Decimal("0.5"), (x for x in [0.5]), Fraction(1, 2), [Fraction(1, 2), 1], np.array([0.5, None]),
]  # fmt: skip


def inside(s):
    """A number inside the domain of s, and a whole one too where there is one."""
    return 1.0 if s.lower <= 1.0 < s.upper else max(s.lower, min(s.upper, 0.5))


def test_a_domain_is_tested_exactly_where_it_says():
    for s in ALL:
        for end, closed, beyond in ((s.lower, s.domain[0] == "[", -inf), (s.upper, s.domain[-1] == "]", inf)):
            if closed:
                assert s.number(end) == end
            else:
                with pytest.raises(ValueError, match=rf"^{s.name} \("):
                    s.number(end)
            if np.isfinite(end):
                with pytest.raises(ValueError, match="must be in"):
                    s.number(np.nextafter(end, beyond))
        assert s.number(inside(s)) == inside(s)


def test_what_is_no_number_is_refused_by_name():
    for value in NO_NUMBERS:
        for s in ALL:
            with pytest.raises((ValueError, TypeError), match=rf"^{s.name} \("):
                s.array(value)


def test_a_refusal_says_where_the_first_stranger_stands():
    for s in ALL:
        values = np.full((2, 3), inside(s))
        values[1, 2] = nan
        with pytest.raises(ValueError, match=rf"{s.name} \(.*\) must be in .*, got {s.name}=nan at index 1, 2\."):
            s.array(values)
        with pytest.raises(ValueError, match=rf"got {s.name}=nan\. It is not a number: look where it was computed\.$"):
            s.number(nan)


@pytest.mark.parametrize("kind", np.typecodes["AllInteger"] + "efd")
def test_numpy_numbers_of_every_kind_are_the_same_number(kind):
    one = np.dtype(kind).type(1)
    assert symbol("psi").number(one) == 1.0
    assert type(symbol("psi").number(one)) is float
    got = symbol("psi").array(np.array([0, 1], dtype=kind))
    assert got.dtype == np.float64
    assert got.tolist() == [0.0, 1.0]


def test_large_integers_become_the_float_on_the_private_side():
    assert symbol("psi").number(2**70) == 2.0**70
    assert symbol("psi").array([]).shape == (0,)
    assert symbol("psi").array(np.float64(3)).shape == ()
    assert symbol("psi").number(-0.0) == 0.0
    for odd in (2**53 + 1, 2**53 + 3, 2**60 + 1, 2**63 + 1, 2**64 - 1, 3**400):
        kinds = [odd, [odd, 0.5], [[odd], [1]], (odd, 2**80), np.array([odd, 1], dtype=object)]
        kinds += [np.uint64(odd), np.array([odd, 7], np.uint64)] if odd < 2**64 else []
        kinds += [np.int64(odd), np.array([odd, 7], np.int64), [np.int64(odd), 0.5]] if odd < 2**63 else []
        for value in kinds:
            above, below = (float(symbol(name).array(value).flat[0]) for name in ("psi", "epsilon"))
            assert below < odd < above == np.nextafter(below, inf)
            assert symbol("psi").array(value, up=False).flat[0] == below
    assert symbol("log_delta").number(-(2**53) - 1) == -(2.0**53) - 2.0
    assert symbol("epsilon").number(10**400) == np.finfo(float).max
    assert symbol("alpha").number(10**400) == inf
    for name, value in (("psi", 10**400), ("psi", -(10**400)), ("sigma", -1), ("steps", [1, 10**400])):
        with pytest.raises(ValueError, match=rf"^{name} \("):
            symbol(name).array(value)


def test_other_types_of_numbers_are_refused_with_the_way_to_convert_them():
    up, down = (
        "math.nextafter(float(x), inf) where that is below x.",
        "math.nextafter(float(x), -inf) where that is above",
    )
    half = Fraction(1, 2)
    for value in (half, Decimal("0.5"), np.longdouble(0.5), [half], [0.25, np.longdouble(0.5)], np.array([half, 1])):
        if np.finfo(np.longdouble).bits > 64 or not np.issubdtype(np.asarray(value).dtype, np.longdouble):
            for name, cure in (("psi", up), ("sigma", down), ("epsilon", down), ("kappa", up)):
                with pytest.raises(TypeError, match=rf"^{name} \(") as refusal:
                    symbol(name).array(value)
                assert cure in str(refusal.value)
    with pytest.raises(TypeError, match="Fill what is masked first"):
        symbol("psi").array(np.ma.array([1.0], mask=[True]))


def test_a_float_array_is_not_copied_and_never_changed():
    values = np.array([0.1, 0.2])
    assert symbol("psi").array(values) is values


def test_one_number_is_asked_for_where_one_is_needed():
    with pytest.raises(TypeError, match=r"psi \(sensitivity index Delta/sigma\) must be one number, got shape \(1,\)"):
        symbol("psi").number([1.0])


def test_a_long_value_is_not_printed_whole():
    with pytest.raises(TypeError) as refusal:
        symbol("psi").array("x" * 1000)
    assert len(str(refusal.value)) < 200


def test_finite_and_whole_name_what_they_refuse():
    assert finite("threshold", -1) == -1.0
    assert whole("size", np.int8(3)) == 3
    assert type(whole("size", np.int8(3))) is int
    with pytest.raises(ValueError, match=r"^threshold \(a finite number\) must be in .* got threshold=inf"):
        finite("threshold", inf)
    for bad in (0, -2, 1.0, True, np.True_, "1", None, nan):
        with pytest.raises(ValueError, match=r"^size must be a whole number of at least 1, got size="):
            whole("size", bad)


def test_each_quantity_is_declared_once_and_whole():
    assert len({s.name for s in ALL}) == len(ALL)
    for s in ALL:
        assert s.name.isidentifier()
        assert s.meaning
        assert s.letter
        assert s.typical
        assert s.lower < s.upper


HIDING = np.ma.array([0.5, 7.0], mask=[False, True])


@pytest.mark.parametrize("value", [HIDING, [HIDING], ([1.0], [[HIDING]]), np.ma.masked, [1.0, np.ma.masked]])
def test_masks_are_found_wherever_they_are(value):
    assert masked(value)
    assert nullable(value)


def test_types_with_places_for_what_is_missing_are_told_by_their_type_alone():
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    for entries in ([1, 2], [1, None]):
        some = [
            pd.array(entries, dtype="Int64"),
            pd.Series(entries, dtype="Float64"),
            pd.Series(entries, dtype="int64[pyarrow]"),
        ]
        some += [
            pd.DataFrame({"a": some[0], "b": [0.0, 1.0]}),
            pa.array(entries),
            pl.Series(entries),
            [some[0], [1, 2]],
        ]
        assert all(map(nullable, some))
    plain = [1, 1.0, [1.0, 2], [[1.0], (2.0,)], np.ones(3), pd.Series([1.0, float("nan")]), pd.DataFrame({"a": [1, 2]})]
    assert not any(map(nullable, [*plain, pd.Index([1, 2]), np.float32(1.0), "text", None]))
