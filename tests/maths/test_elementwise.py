"""Arrays in, arrays out, floats for floats: every elementwise function of the shop window, on every shape and kind."""

import inspect
from fractions import Fraction

import numpy as np
import pytest

import psidp
from psidp.maths.elementwise import BLOCK, elementwise
from psidp.symbols import SYMBOLS

ALIASES = {"other": "psi"}
SCALAR_ONLY = {
    "binormal_auc",
    "failed_roc",
    "binormal_roc",
    "renyi_divergence",
    "rates_at_threshold",
    "tangent",
    "compose",
}
TYPICAL = {"psi": 0.75, "epsilon": 1.5, "delta": 0.125, "log_delta": -3.0, "alpha": 2.5, "rho": 0.5, "zcdp": 0.5,
           "fpr": 0.25, "tpr": 0.5, "auc": 0.75, "advantage": 0.25, "prior": 0.25, "probability": 0.125}  # fmt: skip


def public():
    """Every public function of the maths floor whose required arguments are all quantities, with their names."""
    for name in sorted({*psidp.__all__, *psidp.theory.__all__}):
        f = getattr(psidp if name in psidp.__all__ else psidp.theory, name)
        if not inspect.isfunction(f) or name in SCALAR_ONLY or not f.__module__.startswith("psidp.maths."):
            continue
        parameters = [p.name for p in inspect.signature(f).parameters.values() if p.default is p.empty]
        yield pytest.param(f, [ALIASES.get(p, p) for p in parameters], id=name)


FUNCTIONS = list(public())
everywhere = pytest.mark.parametrize(("f", "names"), FUNCTIONS)


def typical(names):
    return [TYPICAL[n] for n in names]


def ends(names):
    """Every combination of the ends of the domains, typical values, and the smallest and largest floats."""
    axes = []
    for n in names:
        s = SYMBOLS[n]
        points = [
            s.lower,
            s.upper,
            TYPICAL[n],
            5e-324,
            1e-310,
            1e-200,
            1e-8,
            1 - 2**-53,
            1.0,
            38.0,
            1e3,
            1e8,
            1e200,
            1.7e308,
        ]
        points += [-p for p in points]
        axes.append([p for p in dict.fromkeys(points) if s.least <= p <= s.most])
    grid = np.array(np.meshgrid(*axes)).reshape(len(names), -1)
    if names == ["tpr", "fpr"]:
        grid = grid[:, (grid[0] >= grid[1]) & ~((grid[0] == grid[1]) & np.isin(grid[0], [0.0, 1.0]))]
    return grid


def test_every_function_of_the_window_is_here_or_is_tested_by_itself():
    assert len(FUNCTIONS) >= 25
    assert all(n in TYPICAL for f in FUNCTIONS for n in f.values[1])


@everywhere
def test_a_float_for_floats(f, names):
    value = f(*typical(names))
    assert type(value) is float
    for kind in (np.float16, np.float32, np.float64, np.array):
        assert f(*[kind(v) for v in typical(names)]) == value  # every typical value is a small dyadic number
        assert type(f(*[kind(v) for v in typical(names)])) is float
    assert f(**dict(zip(inspect.signature(f).parameters, typical(names), strict=False))) == value


@everywhere
@pytest.mark.parametrize("shape", [(1,), (3,), (2, 3), (1, 1), (2, 1, 2), (0,), (3, 0)])
def test_an_array_for_arrays_with_the_same_numbers(f, names, shape):
    value = f(*typical(names))
    result = f(*[np.full(shape, v) for v in typical(names)])
    assert isinstance(result, np.ndarray)
    assert result.dtype == np.float64
    assert result.shape == shape
    np.testing.assert_allclose(
        result, value, rtol=1e-14
    )  # exp and log of a scalar and of a vector may differ by an ulp
    for k in range(len(names)):  # one argument with a shape is enough
        mixed = typical(names)
        mixed[k] = np.full(shape, mixed[k]).tolist() if 0 not in shape else np.zeros(shape)
        assert f(*mixed).shape == shape


@everywhere
def test_arguments_broadcast(f, names):
    if len(names) > 1:
        value = f(*[np.full((3, 1) if k else (4,), v) for k, v in enumerate(typical(names))])
        assert value.shape == (3, 4)


@everywhere
def test_shapes_that_do_not_fit_are_refused(f, names):
    if len(names) > 1:
        with pytest.raises(ValueError, match=r"shape|broadcast"):
            f(*[np.full(2 + (k > 0), v) for k, v in enumerate(typical(names))])


@everywhere
def test_more_than_one_block_and_strides_give_the_same_numbers(f, names):
    size = 2 * BLOCK + 17
    arguments = [v * np.linspace(0.9, 1.0, 2 * size)[::2] for v in typical(names)]
    kept = [a.copy() for a in arguments]
    whole = f(*arguments)
    assert whole.shape == (size,)
    picked = [0, 1, BLOCK - 1, BLOCK, 2 * BLOCK, size - 1]
    np.testing.assert_allclose(whole[picked], [f(*[a[i] for a in arguments]) for i in picked], rtol=1e-13)
    for before, after in zip(kept, arguments, strict=True):
        np.testing.assert_array_equal(before, after)
    read_only = [a.copy() for a in arguments]
    for a in read_only:
        a.flags.writeable = False
    f(*read_only)[0] = 0.5  # the answer is the caller's own


@everywhere
def test_integers_are_numbers(f, names):
    ones = [3 if n == "alpha" else 0 if n == "log_delta" else 1 for n in names]
    ones = [0 if n == "fpr" else v for n, v in zip(names, ones, strict=True)]
    assert f(*ones) == f(*map(float, ones)) == f(*map(np.int8, ones))


@everywhere
def test_no_corner_of_the_domain_gives_nan_or_a_warning(f, names):
    points = ends(names)
    with np.errstate(all="warn", under="ignore"):
        result = f(*points)
        assert not np.isnan(result).any(), points[:, np.isnan(result)][:, :5]
        for point in points.T[:: max(1, points.shape[1] // 60)]:
            assert not np.isnan(f(*point))


@everywhere
@pytest.mark.parametrize(
    "bad",
    [np.nan, "0.5", None, True, 0.5j, np.ma.array([0.5], mask=[True]), [0.5, np.nan], [0.5, None], [True, 0.5],
     [[1.0], [1.0, 1.0]], -(10**400), Fraction(1, 3), np.longdouble(0.5), np.array(["a"]), -1e300, {}],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_nonsense_is_refused_by_the_name_of_its_quantity(f, names, bad):
    for k, name in enumerate(names):
        if name == "log_delta" and isinstance(bad, float | int) and bad < 0:
            continue  # a negative number is no nonsense there
        arguments = typical(names)
        arguments[k] = bad
        with pytest.raises((ValueError, TypeError), match=rf"^{name} \("):
            f(*arguments)


@everywhere
def test_too_many_or_too_few_arguments_are_a_type_error(f, names):
    with pytest.raises(TypeError):
        f(*typical(names), 1.0, 1.0, 1.0)
    with pytest.raises(TypeError, match=r"missing"):
        f(*typical(names)[:-1])


def test_a_kernel_sees_floats_inside_their_domains_and_silence():
    @elementwise
    def kernel(psi, epsilon):
        assert psi.dtype == epsilon.dtype == np.float64
        return epsilon / psi

    assert kernel(0, 1) == np.inf
    np.testing.assert_array_equal(kernel([0.0, 2.0], 1), [np.inf, 0.5])
