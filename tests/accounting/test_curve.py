"""The privacy curve: rates, areas and the one number, each against another method to the same value."""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from psidp import Guarantee
from psidp.accounting import DPSGD, Interval, account
from psidp.accounting.comparison import clt_psi, clt_psi_poisson, compare, rdp_epsilon
from psidp.errors import MismatchError

RUN = DPSGD(1.0, 0.01, 1000)
CURVE = account(RUN)


def test_low_false_positive_rates_keep_their_digits_where_two_published_tools_lose_them():
    rate = CURVE.roc(1e-5)
    assert rate.lower == pytest.approx(7.207e-5, rel=1e-4)  # they say 2.5e-7
    assert rate.width <= 1e-7 * rate.lower
    for fpr, tpr in ((1e-3, 4.068e-3), (1e-4, 5.474e-4), (1e-6, 9.368e-6)):
        assert CURVE.roc(fpr).upper == pytest.approx(tpr, rel=2e-4)


def test_rates_stay_between_fpr_and_one_and_agree_with_the_tradeoff():
    for fpr in (0.0, 1e-9, 0.1, 0.5, 0.9, 1.0):
        rate, miss = CURVE.roc(fpr), CURVE.tradeoff(fpr)
        assert fpr <= rate.lower <= rate.upper <= 1.0
        assert miss.lower - 1e-12 <= 1.0 - rate.lower
        assert 1.0 - rate.upper <= miss.upper + 1e-12


def test_no_attack_beats_the_profile_line():
    for fpr in (1e-6, 1e-3, 0.2):
        for epsilon in (0.0, 0.5, 2.0):
            assert CURVE.roc(fpr).lower <= CURVE.delta(epsilon).upper + np.exp(epsilon) * fpr


def test_plain_gaussians_stay_in_closed_form():
    curve = account([Guarantee(0.6), Guarantee(0.8)])
    plain = Guarantee(1.0)
    assert plain.epsilon(1e-5) == pytest.approx(curve.epsilon(1e-5).upper, rel=1e-12)
    assert plain.auc in Interval(curve.auc.lower - 1e-12, curve.auc.upper + 1e-12)
    assert curve.advantage.upper == pytest.approx(plain.advantage, rel=1e-11)
    assert curve.roc(0.01).upper == pytest.approx(plain.roc(0.01), rel=1e-6)
    assert curve.guarantee(0.0).psi == pytest.approx(1.0, rel=1e-12)
    assert account(DPSGD(2.0, 1.0, 16)).epsilon(1e-6).upper == pytest.approx(Guarantee(2.0).epsilon(1e-6), rel=1e-12)


@pytest.mark.parametrize("psi", [0.05, 1.0, 4.0, 6.0, 20.0])
def test_rates_of_weak_and_of_strong_series_are_those_of_the_gaussian_mechanism(psi):
    fpr = np.array([1e-12, 1e-5, 0.01, 0.3, 0.5, 0.9, 0.99])
    curve = account(Guarantee(psi))
    missed, found = ndtr(-ndtri(fpr) - psi), ndtr(ndtri(fpr) + psi)
    for interval, exact in ((curve.tradeoff(fpr), missed), (curve.roc(fpr), found)):
        assert np.all((interval.lower <= exact * (1 + 1e-9)) & (exact <= interval.upper * (1 + 1e-9)))
        assert np.all(interval.upper - interval.lower <= 0.01 * exact + 1e-13)


def test_a_strong_sampled_run_has_rates_next_to_those_of_the_run_without_sampling():
    fpr = np.array([1e-5, 0.01, 0.3, 0.9])
    found = account(DPSGD(1.0, 0.999, 36)).roc(fpr)
    whole = ndtr(ndtri(fpr) + 6.0)
    assert np.all((found.lower <= whole) & (found.lower >= whole - 1e-3))
    assert np.all(found.upper - found.lower <= 1e-10)


@pytest.mark.parametrize("run", [DPSGD(1.0, 1.0, 1000), DPSGD(1.0, 0.5, 1), DPSGD(1.0, 0.01, 1000)])
def test_no_loss_is_infinite(run):
    nothing = account(run).delta(np.array([1.0, np.inf]))
    assert nothing.lower[1] == nothing.upper[1] == 0.0
    assert 0.0 <= account(run).regret(1e-10).upper < 0.5


def test_one_step_has_the_closed_form_of_amplification():
    interval = account(DPSGD(0.8, 0.02, 1)).epsilon(1e-4)
    inner = float(Guarantee(1 / 0.8).epsilon(1e-4 / 0.02))
    assert interval.upper == pytest.approx(np.log1p(0.02 * np.expm1(inner)), rel=1e-10)
    assert interval.method == "closed form"


def test_two_steps_agree_with_direct_integration():
    from scipy import integrate, stats  # a second method, in the tests only

    sigma, q, epsilon = 1.1, 0.05, 0.3

    def one(e):  # profile of one removed step at any real e
        g = sigma * np.log((np.exp(e) - 1 + q) / q) + 0.5 / sigma if np.exp(e) > 1 - q else -np.inf
        mixed = (1 - q) * stats.norm.sf(g) + q * stats.norm.sf(g - 1 / sigma)
        return mixed - np.exp(e) * stats.norm.sf(g)

    def integrand(g):
        f = 1 - q + q * np.exp(g / sigma - 0.5 / sigma**2)
        return stats.norm.pdf(g) * f * one(epsilon - np.log(f))

    kink = sigma * np.log((np.exp(epsilon) / (1 - q) - 1 + q) / q) + 0.5 / sigma
    value = integrate.quad(integrand, -10, kink, epsabs=1e-15)[0] + integrate.quad(integrand, kink, 14, epsabs=1e-15)[0]
    interval = account(DPSGD(sigma, q, 2)).delta(epsilon)
    assert interval.lower - 1e-12 <= value <= interval.upper + 1e-12


@pytest.mark.parametrize("kappa", [1e-6, 1e-10])
def test_the_one_number_covers_the_curve_everywhere_and_no_smaller_one_does(kappa):
    guarantee = CURVE.guarantee(kappa)
    epsilon = np.linspace(0.0, 6.0, 61)
    assert (CURVE.delta(epsilon).lower <= guarantee.delta(epsilon)).all()
    smaller = Guarantee(guarantee.psi * (1 - 1e-6), kappa)
    end = CURVE.epsilon(kappa).upper
    near = np.linspace(0.8 * end, end, 400)
    assert (CURVE.delta(near).lower > smaller.delta(near)).any()


def test_few_steps_have_their_number_between_those_of_fewer_and_more():
    one, two, three = (account(DPSGD(2.0, 0.25, steps)) for steps in (1, 2, 3))
    guarantee = two.guarantee(1e-10)
    assert one.guarantee(1e-10).psi < guarantee.psi < three.guarantee(1e-10).psi
    epsilon = np.linspace(0.0, 2.0, 21)
    assert (two.delta(epsilon).lower <= guarantee.delta(epsilon)).all()


def test_a_run_weaker_than_kappa_has_psi_zero_and_a_weak_one_a_delta_below_its_steps_together():
    assert account(DPSGD(1.0, 1e-6, 10)).guarantee(1e-4).psi == 0.0
    weak = account(DPSGD(100.0, 0.01, 2))
    assert weak.delta(0.0).upper <= 2 * 0.01 * Guarantee(0.01).delta(0.0) * (1 + 1e-9)


def test_the_number_is_never_above_that_without_sampling():
    """Where e^epsilon is no float any more, sampling is all that is left out."""
    guarantee = account(DPSGD(0.3, 0.5, 10**6)).guarantee(1e-10)
    assert guarantee.psi == pytest.approx(1000.0 / 0.3, rel=1e-12)


def test_the_one_number_is_below_the_stricter_published_bound():
    assert CURVE.guarantee(1e-10).psi < 0.528873721
    assert CURVE.guarantee(1e-10).psi > clt_psi_poisson(1.0, 0.01, 1000)


def test_regret_is_what_the_one_number_gives_away():
    interval = CURVE.regret(1e-6)
    assert 0.0 < interval.lower <= interval.upper <= 1.03 * interval.lower + 1e-12
    guarantee = CURVE.guarantee(1e-6)
    assert interval.upper >= (guarantee.delta(0.0) - CURVE.delta(0.0).upper) / 2


def test_failure_probability_travels_with_the_curve():
    curve = account([RUN, Guarantee(0.1, kappa=1e-6)])
    assert curve.epsilon(1e-6).upper == np.inf
    assert curve.delta(50.0).upper >= 1e-6
    assert curve.epsilon(1e-5).upper > account([RUN, Guarantee(0.1)]).epsilon(1e-5).upper
    assert curve.guarantee(1e-5).kappa == 1e-5
    with pytest.raises(ValueError, match=r"kappa .* must exceed"):
        curve.guarantee(1e-6)


def test_a_sampled_run_has_no_number_without_failure_probability():
    with pytest.raises(ValueError, match="A sampled run has no finite psi"):
        CURVE.guarantee(0.0)


def test_different_terms_are_refused():
    with pytest.raises(MismatchError, match="events must share one unit"):
        account([RUN, Guarantee(1.0, unit="patient")])
    with pytest.raises(MismatchError, match="adjacency"):
        account([RUN, DPSGD(1.0, 0.01, 10, sampling="without-replacement")])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"noise_multiplier": 0.0}, "noise_multiplier .* must be in"),
        ({"noise_multiplier": float("nan")}, "noise_multiplier .* must be in"),
        ({"sampling_rate": 1.5}, "sampling_rate .* must be in"),
        ({"sampling_rate": -0.1}, "sampling_rate .* must be in"),
        ({"steps": 0}, "steps .* must be in"),
        ({"steps": 2.5}, "steps .* must be a whole number"),
        ({"steps": float("nan")}, "steps .* must be in"),
        ({"sampling": "shuffle"}, "A shuffled loader is neither"),
        ({"sampling": "other"}, "sampling must be"),
        ({"sampling": "without-replacement", "adjacency": "add-remove"}, "is accounted for adjacency"),
        ({"unit": " "}, "unit must say"),
    ],
)
def test_bad_runs_are_refused_by_name(arguments, sentence):
    good = {"noise_multiplier": 1.0, "sampling_rate": 0.01, "steps": 10}
    with pytest.raises(ValueError, match=sentence):
        DPSGD(**(good | arguments))


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, float("nan"), 1.5])
def test_bad_delta_is_refused_by_name(delta):
    with pytest.raises(ValueError, match=r"delta .* must be in"):
        CURVE.epsilon(delta)


@pytest.mark.parametrize("events", [[], "run", [1]])
def test_what_is_no_event_is_refused(events):
    with pytest.raises((TypeError, ValueError)):
        account(events)


@pytest.mark.parametrize("run", [(1e3, 0.01, 1000), (1.0, 0.01, 10**9), (1e-3, 0.01, 1000), (1e3, 1e-4, 10**9)])
def test_extreme_runs_are_answered(run):
    interval = account(DPSGD(*run)).epsilon(1e-5)
    assert 0.0 < interval.lower <= interval.upper < np.inf


def test_nothing_sampled_costs_nothing():
    assert account(DPSGD(1.0, 0.0, 10)).epsilon(1e-5) == Interval(0.0, 0.0, "closed form")


def test_without_replacement_is_an_interval_from_an_attained_pair_to_c_gamma():
    interval = account(DPSGD(2.0, 0.05, 2000, sampling="without-replacement")).epsilon(1e-5)
    assert interval.lower == pytest.approx(5.47173846, abs=1e-7)
    assert 6.38488 <= interval.upper <= 6.3850  # C_gamma, research value 6.38489
    assert account(DPSGD(0.8, 0.02, 1, sampling="without-replacement")).epsilon(1e-4).upper == pytest.approx(
        account(DPSGD(0.8, 0.02, 1)).epsilon(1e-4).upper, rel=1e-9
    )


def test_a_curve_shows_what_it_is_of_and_is_equal_to_itself_alone():
    runs = [DPSGD(1.0, 0.01, 1000), DPSGD(2.0, 0.02, 500)]
    assert repr(account(runs)) == "PrivacyCurve(1,500 sampled steps, add-remove, per record)"
    assert repr(account(Guarantee(0.5, 1e-9))) == "PrivacyCurve(psi=0.5 unsampled, kappa=1e-09, add-remove, per record)"
    curve = account(runs)
    assert curve == curve
    assert curve != account(runs)


def test_what_is_no_series_of_events_is_refused_in_a_sentence():
    for nonsense in (1, None, "run"):
        with pytest.raises(
            TypeError, match="events must be DPSGD, BandMF, FixedOrder or RandomAllocation runs, or Guarantees, got"
        ):
            account(nonsense)


def test_without_replacement_the_advantage_is_bounded_as_well_as_delta_a_little_further_on():
    curve = account(DPSGD(2.0, 0.1, 100, sampling="without-replacement"))
    near, further = curve.delta(0.0), curve.delta(0.01)
    assert further.upper < near.upper <= further.upper + np.expm1(0.01)  # no profile is steeper
    assert curve.advantage.upper <= curve.guarantee(kappa=1e-8).advantage


def test_comparisons_are_labelled_and_say_which_understate_the_loss():
    rows = {row.method: row for row in compare(RUN, 1e-5)}
    assert rows["CLT for Poisson sampling"].verdict == "understates the loss here"
    assert rows["CLT, the paper's formula"].kind == "approximation"
    assert clt_psi(1.0, 0.01, 1000) == pytest.approx(0.541, abs=5e-4)
    bound = rows["RDP composed, then converted (improved)"]
    assert (bound.kind, bound.verdict) == ("bound", "safe here")
    assert rdp_epsilon(RUN, 1e-5) < rdp_epsilon(RUN, 1e-5, "standard")
    assert rows["certified"].epsilon == CURVE.epsilon(1e-5).upper


def test_an_interval_holds_lower_and_upper_in_order():
    with pytest.raises(ValueError, match="lower must be <= upper"):
        Interval(2.0, 1.0)
    low, high = Interval(1.0, 2.0)
    assert (low, high) == (1.0, 2.0)
