"""Small groups: mixtures answered by the groups that matter, against balls, quadrature and contours for all groups."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from psidp.accounting import DPSGD, account
from psidp.accounting.composition import Composition, cut
from psidp.accounting.methods import _Rest, _small_groups_apart, delta_bounds, epsilon_bounds
from psidp.accounting.search import Found
from psidp.accounting.small_groups import SHARE, groups, largest_loss, set_apart

flint = pytest.importorskip("flint", reason="pip install 'psidp[certify]'")
from flint import arb, ctx  # noqa: E402


def mixture(*rows):
    return Composition.merge([(*row, 1) for row in rows])


MIXTURES = [
    (mixture((1.0, 0.01, 500), (300.0, 0.01, 300)), 1e-6),
    (mixture((1.0, 0.02, 2000), (800.0, 0.2, 40), (500.0, 1e-3, 10**4)), 1e-9),
    (mixture((2.0, 0.05, 300), (1e3, 0.3, 20)), 1e-20),
]


@pytest.mark.parametrize(
    ("sigma", "q", "log_kappa"), [(487.0, 8.9e-6, -711.0), (350.0, 0.25, -22.0), (2.0, 1e-3, -40.0), (0.3, 1e-4, -12.0)]
)
def test_a_loss_exceeds_its_bound_as_rarely_as_is_said(sigma, q, log_kappa):
    old, ctx.prec = ctx.prec, 2000
    try:
        most = largest_loss(mixture((sigma, q, 1)), log_kappa)
        g = arb(sigma) * (1 + (arb(most).exp() - 1) / arb(q)).log() + 1 / (2 * arb(sigma))
        plain, shifted = (((x / arb(2).sqrt()).erfc() / 2) for x in (g, g - 1 / arb(sigma)))
        assert ((1 - arb(q)) * plain + arb(q) * shifted).log() <= arb(log_kappa)
    finally:
        ctx.prec = old


@pytest.mark.parametrize(("sigma", "q"), [(5.0, 0.01), (50.0, 0.3)])
def test_two_losses_exceed_their_bound_rarely_and_the_bound_is_close(sigma, q):
    log_kappa = float(np.log(1e-7))
    most = largest_loss(mixture((sigma, q, 2)), log_kappa)

    def exceeded(x):
        """P(l1 + l2 > x), by integrating over the first of them."""

        def given(g):
            other = float(cut(sigma, q, np.array(x - np.log1p(q * np.expm1(g / sigma - 0.5 / sigma**2)))))
            density = (1.0 - q) * norm.pdf(g) + q * norm.pdf(g - 1.0 / sigma)
            return density * ((1.0 - q) * norm.sf(other) + q * norm.sf(other - 1.0 / sigma))

        return quad(given, -9.0, 12.0, limit=400, epsabs=1e-16)[0]

    with np.errstate(divide="ignore"):
        assert exceeded(most) <= 1e-7
        assert exceeded(0.75 * most) > 1e-7


@pytest.mark.parametrize(("steps", "delta"), MIXTURES)
def test_the_groups_that_matter_enclose_what_a_contour_for_all_of_them_says(steps, delta):
    log_delta = float(np.log(delta))
    low, high, method = epsilon_bounds(steps, log_delta)
    assert "contour" in method
    found = Found(steps, log_delta, high=1.5 * high)
    with np.errstate(all="ignore"):
        _small_groups_apart(found, None)
        apart = set_apart(steps, high, log_delta)
        below, above = _Rest(apart).log_delta(np.array([low, high]))
    assert found.low <= high
    assert found.high >= low
    assert found.high - found.low <= 0.02 * low
    exact = delta_bounds(steps, np.array([low, high]))
    assert (below <= exact[1]).all()
    assert (above >= exact[0]).all()
    assert apart.log_kappa == pytest.approx(log_delta + np.log(SHARE))


def test_the_shift_is_needed():
    """Without it the upper end is below the truth: the small groups do add to the loss."""
    steps, delta = MIXTURES[0]
    log_delta = float(np.log(delta))
    rest = groups(steps, [0], steps.plain)
    assert epsilon_bounds(rest, log_delta)[1] < epsilon_bounds(steps, log_delta)[0]


def test_unsampled_gaussians_cost_no_less_than_the_groups_they_stand_for():
    for steps, delta in MIXTURES:
        log_delta = float(np.log(delta))
        apart = set_apart(steps, epsilon_bounds(steps, log_delta)[1], log_delta)
        assert epsilon_bounds(apart.unsampled, log_delta)[1] >= epsilon_bounds(steps, log_delta)[0]


@pytest.mark.parametrize(
    ("runs", "delta"),
    [
        (
            [(486.97577449669143, 8.912896548639198e-06, 29), (8.143258211542962, 1.814099958223648e-06, 1349921)],
            2.8e-300,
        ),
        ([(0.08412804128017098, 4.3595802584146225e-06, 69427), (351.93282955434825, 0.24546550377400675, 27)], 0.2607),
        (
            [(0.39260689251056347, 7.399466066493912e-05, 17), (20.760402354691923, 1.6544578884485399e-06, 153526)],
            1.678e-10,
        ),
    ],
)
def test_mixtures_in_which_one_group_matters_are_narrow(runs, delta):
    """Their epsilons were a factor, a half and three hundredths wide."""
    found = account([DPSGD(*run) for run in runs]).epsilon(delta)
    assert found.width <= 1e-3 * found.lower


def test_one_bad_point_does_not_spoil_the_one_number_of_a_mixture():
    """psi was 0.28 when a point with a wide delta stood for all others."""
    assert account([DPSGD(1.0, 1e-4, 50), DPSGD(20.0, 1e-5, 1000)]).guarantee(1e-9).psi <= 0.0041
