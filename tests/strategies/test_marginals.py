"""Marginals: residuals split every table, exactly; tables read from them agree; scales never lie below norms."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from psidp.strategies.haar import Haar
from psidp.strategies.marginals import Marginals
from psidp.strategies.ordered import ordered
from psidp.strategies.residual_plan import ResidualPlan
from reference.dense_cube import reading, residual_rows, scale_fractions, summing

BASES = {
    "unordered": (Haar(3), Haar(4), Haar(2)),
    "with one ordered": (Haar(3), ordered(5), Haar(2)),
    "two ordered": (ordered(4), ordered(3, "ranges"), Haar(3)),
    "with a single value": (Haar(3), Haar(1), ordered(1), Haar(4)),
}
EVERY = pytest.mark.parametrize("bases", BASES.values(), ids=BASES)


def of_all(bases):
    d = len(bases)
    return Marginals(bases, tuple(t for k in range(d + 1) for t in combinations(range(d), k)))


def random_counts(bases, seed=0, most=1000):
    return np.random.default_rng(seed).integers(0, most, tuple(basis.size for basis in bases))


def rolled(counts, table):
    return counts.sum(axis=tuple(i for i in range(counts.ndim) if i not in table))


def noisy(marginals, seed=0):
    rng = np.random.default_rng(seed)
    shapes = {part: tuple(n - 1 for n in marginals.shape(part)) for part in marginals.residuals}
    return {part: rng.normal(0, 10, shape) for part, shape in shapes.items()}


@EVERY
def test_every_table_is_the_sum_of_its_residuals(bases):
    marginals, counts = of_all(bases), random_counts(bases)
    full = tuple(range(len(bases)))
    released = {part: marginals.encode(part, full, counts).astype(float) for part in marginals.residuals}
    for table in marginals.tables:
        assert marginals.decode(table, released) == pytest.approx(rolled(counts, table), rel=1e-10, abs=1e-8)


@EVERY
def test_coefficients_are_products_of_bases_in_whole_numbers(bases):
    marginals, counts = of_all(bases), random_counts(bases)
    for part in marginals.residuals:
        expected = residual_rows(bases, part) @ counts.reshape(-1)
        for table in marginals.tables:
            if set(part) <= set(table):
                found = marginals.encode(part, table, rolled(counts, table))
                assert found.dtype == np.int64
                assert (found.reshape(-1) == expected).all()


@EVERY
def test_residuals_of_different_sets_of_columns_stand_at_right_angles(bases):
    marginals = of_all(bases)
    for one, other in combinations(marginals.residuals, 2):
        assert not (residual_rows(bases, one) @ residual_rows(bases, other).T).any()


@EVERY
def test_decoding_is_least_squares_on_everything_released(bases):
    marginals = of_all(bases)
    released = noisy(marginals)
    flat = np.concatenate([released[part].reshape(-1) for part in marginals.residuals])
    plan = ResidualPlan(marginals, (1.0,) * len(marginals.residuals))
    for table in marginals.tables:
        matrix, _ = reading(plan, table)
        assert marginals.decode(table, released).reshape(-1) == pytest.approx(matrix @ flat, rel=1e-8, abs=1e-8)


@EVERY
def test_tables_agree_with_each_other_whatever_the_noise(bases):
    marginals = of_all(bases)
    released = {part: 1e6 * values for part, values in noisy(marginals).items()}
    full = tuple(range(len(bases)))
    cells = marginals.decode(full, released)
    for table in marginals.tables:
        summed, own = rolled(cells, table), marginals.decode(table, released)
        assert abs(summed - own).max() <= 1e-12 * abs(cells).sum()


@EVERY
def test_weights_are_the_other_side_of_decode(bases):
    marginals, rng = of_all(bases), np.random.default_rng(5)
    released = noisy(marginals)
    for table in marginals.tables:
        q = rng.normal(size=marginals.shape(table))
        asked = marginals.weights(table, q)
        assert set(asked) == set(marginals.parts(table))
        assert all(asked[part].shape == released[part].shape for part in asked)
        found = sum((asked[part] * released[part]).sum() for part in asked)
        assert found == pytest.approx((q * marginals.decode(table, released)).sum(), rel=1e-9, abs=1e-9)


@EVERY
@pytest.mark.parametrize("steps", [1, 3, 2**20, 2**41, 10**15])
def test_scales_are_never_below_norms_and_hardly_above(bases, steps):
    marginals = of_all(bases)
    for part in marginals.residuals:
        norms = np.ones(1, object)
        for i in part:
            norms = np.multiply.outer(norms, np.array(bases[i].squares, object)).reshape(-1)
        scales = marginals.scales(part, steps)
        assert scales.multiple.shape == scales.shift.shape == tuple(n - 1 for n in marginals.shape(part))
        assert scales.multiple.min() >= 2**30
        assert scales.multiple.max() <= 2**31
        assert scales.value.reshape(-1).tolist() == [float(m) for m in scale_fractions(marginals, part, steps)]
        for m, square in zip(scale_fractions(marginals, part, steps), norms, strict=True):
            exact = Fraction(int(square)) * steps**2
            assert exact <= m**2 <= exact * (1 + Fraction(1, 2**28))


@pytest.mark.parametrize("square", [1, 2, 3, 4, 2**60 - 1, 2**60, 2**60 + 1, 2**61 - 1, 2**123, 2**124 - 1, 10**60])
def test_the_scale_of_a_square_is_its_root_rounded_up(square):
    """Beside powers of four, where the shift changes, and far above 64 bits."""
    from psidp.strategies.marginals import _scale

    multiple, shift = _scale(square)
    assert 2**30 <= multiple <= 2**31
    root = Fraction(multiple) / Fraction(2) ** shift
    assert square <= root**2 <= square * (1 + Fraction(1, 2**28))


def test_totals_near_64_bits_are_added_up_in_pythons_integers():
    """Each cell fits, their sum does not: it must not wrap around, in any residual."""
    bases = (Haar(2), Haar(5), ordered(3))
    counts = np.random.default_rng(1).integers(-(2**62), 2**62, (2, 5, 3))
    counts[0] = 2**62 - 1
    marginals = of_all(bases)
    for part in marginals.residuals:
        expected = residual_rows(bases, part).astype(object) @ counts.astype(object).reshape(-1)
        for totals in (counts, counts.astype(object)):
            found = marginals.encode(part, (0, 1, 2), totals)
            assert found.dtype == object
            assert found.reshape(-1).tolist() == expected.tolist()


def test_totals_of_any_size_have_residuals():
    bases = (Haar(3), ordered(4))
    counts = random_counts(bases)
    marginals = of_all(bases)
    for part in marginals.residuals:
        small = marginals.encode(part, (0, 1), counts).astype(object)
        large = marginals.encode(part, (0, 1), counts.astype(object) * 10**40)
        assert (large == small * 10**40).all()


def test_64_bits_are_kept_wherever_every_sum_fits():
    """Ten million rows of weight 2^20 in a three-way table of Adult: Python's integers would take minutes."""
    bases = (Haar(100), Haar(100), Haar(100))
    marginals = Marginals(bases, ((0, 1, 2),))
    counts = np.full((100, 100, 100), 10 * 2**20)
    assert marginals.encode((0, 1, 2), (0, 1, 2), counts).dtype == np.int64


def test_the_closure_has_every_subset_once_and_every_residual_a_home():
    marginals = Marginals((Haar(2), Haar(3), Haar(1), Haar(4)), ((0,), (0, 1), (1, 3), (2, 3)))
    assert marginals.residuals == ((), (0,), (1,), (3,), (0, 1), (1, 3))
    assert marginals.maximal == ((0, 1), (1, 3), (2, 3))
    for part in marginals.residuals:
        assert set(part) <= set(marginals.home(part))
        assert marginals.home(part) in marginals.maximal
    assert marginals.home((2,)) == (2, 3)
    assert marginals.coefficients == 1 + 1 + 2 + 3 + 2 + 6
    assert marginals.parts((2, 3)) == [(), (3,)]
    assert marginals.cells((1, 3)) == 12
    with pytest.raises(KeyError, match="no table of this cube holds the columns 0, 3"):
        marginals.home((0, 3))


def test_random_closures_follow_their_definition():
    rng = np.random.default_rng(8)
    for _ in range(100):
        sizes = rng.integers(1, 4, rng.integers(1, 5)).tolist()
        every = [t for k in range(len(sizes) + 1) for t in combinations(range(len(sizes)), k)]
        chosen = [every[i] for i in rng.choice(len(every), rng.integers(1, len(every) + 1), replace=False)]
        marginals = Marginals(tuple(map(Haar, sizes)), tuple(chosen))
        varied = {i for i, n in enumerate(sizes) if n > 1}
        closure = {t for t in every if set(t) <= varied and any(set(t) <= set(c) for c in chosen)}
        assert set(marginals.residuals) == closure
        assert len(marginals.residuals) == len(closure)
        largest = {c for c in chosen if not any(set(c) < set(other) for other in chosen)}
        assert set(marginals.maximal) == largest
        rows = sum(residual_rows(marginals.bases, part).shape[0] for part in closure)
        assert marginals.coefficients == rows


def test_the_total_alone_is_a_table():
    marginals = Marginals((Haar(3),), ((),))
    assert marginals.residuals == marginals.maximal == ((),)
    assert marginals.encode((), (), np.array(7)).tolist() == 7
    assert marginals.decode((), {(): np.array(7.5)}).tolist() == 7.5


@EVERY
def test_marginals_are_stored_as_whole_numbers(bases):
    marginals = of_all(bases)
    assert Marginals.from_dict(marginals.to_dict()) == marginals


@pytest.mark.parametrize("tables", [((1, 0),), ((0, 0),), ((2,),), ((-1,),)])
def test_a_table_that_is_none_is_refused(tables):
    with pytest.raises(ValueError, match="ascending numbers of columns below 2"):
        Marginals((Haar(2), Haar(3)), tables)


def test_no_tables_are_refused():
    with pytest.raises(ValueError, match="one table at least"):
        Marginals((Haar(2),), ())


def test_summing_matrices_of_the_oracle_are_what_they_are_said_to_be():
    counts = random_counts((Haar(2), Haar(3), Haar(2)))
    for table in [(), (1,), (0, 2), (0, 1, 2)]:
        assert (summing((2, 3, 2), table) @ counts.reshape(-1) == rolled(counts, table).reshape(-1)).all()
