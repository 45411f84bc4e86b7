"""Guarantee: its formulas at many digits, its constructors, composition, the true Blackwell order, and its refusals."""

import copy
import json
import operator
import pickle
from fractions import Fraction
from itertools import permutations
from math import inf, log, nan, nextafter, sqrt

import numpy as np
import pytest
from scipy.integrate import quad

import psidp
from psidp import Guarantee, compose
from psidp.errors import IncomparableError, MismatchError
from reference import twins
from reference.twins import real

RNG = np.random.default_rng(0)
PAIRS = [
    (float(p), float(k))
    for p, k in zip(
        10 ** RNG.uniform(-3, 1.2, 60), np.where(RNG.random(60) < 0.2, 0, 10 ** RNG.uniform(-9, -0.05, 60)), strict=True
    )
] + [(0.0, 0.1), (0.0, 0.0), (1.0, 0.0), (1.0, 1e-300), (3.0, 0.999)]
EPSILONS = [0.0, 1e-6, 0.3, 1.0, 4.0, 20.0]
RATES = [1e-12, 1e-3, 0.1, 0.5, 0.9]


def stretched(kappa, fpr):
    return real(fpr) / (1 - real(kappa))


def test_delta_and_epsilon_are_the_mixture_and_never_promise_too_much():
    for psi, kappa in PAIRS:
        g = Guarantee(psi, kappa)
        for e in EPSILONS:
            exact = twins.mixed(kappa, twins.delta(psi, e) if psi else real(0))
            assert real(g.delta(e)) >= exact
            assert real(g.delta(e)) <= exact * (1 + 1e-14) + 1e-323
        for d in (kappa + (1 - kappa) * x for x in (1e-9, 1e-3, 0.2, 0.7)):
            found = g.epsilon(d)
            assert kappa + (1 - kappa) * float(psidp.delta_from_psi(psi, found)) <= d * (1 + 1e-15)
            if psi and found < 600 and psi > 0.01:
                assert twins.mixed(kappa, twins.delta(psi, found)) <= real(d)
        assert g.epsilon(kappa) == (inf if kappa or psi else 0.0)
        assert g.epsilon(kappa / 2) == (inf if kappa or psi else 0.0)
        assert g.epsilon(1.0) == 0.0


def test_roc_and_tradeoff_are_the_mixture_and_never_promise_too_much():
    for psi, kappa in PAIRS:
        g = Guarantee(psi, kappa)
        for x in RATES:
            if x >= 1 - kappa:
                assert g.roc(x) == 1.0
                assert g.tradeoff(x) == 0.0
                continue
            z = real(psi) + twins.quantile(stretched(kappa, x))
            inner = twins.phi(z) if psi else stretched(kappa, x)
            high, low = twins.mixed(kappa, inner), (1 - real(kappa)) * (1 - inner)
            room = 1e-12 + 4e-16 / (1 - kappa - x)  # near the end the curve falls off a cliff
            assert real(g.roc(x)) >= high
            assert real(g.roc(x)) <= high * (1 + room)
            assert real(g.tradeoff(x)) <= low
            assert real(g.tradeoff(x)) >= low * (1 - 10 * room * (1 + psi) ** 2) - 1e-15 * kappa
        assert g.roc(0.0) == pytest.approx(kappa, rel=1e-15)
        assert g.roc(1.0) == 1.0
        assert g.tradeoff(1.0) == 0.0


def test_auc_and_advantage_follow_their_formulas_and_never_promise_too_much():
    for psi, kappa in PAIRS:
        g = Guarantee(psi, kappa)
        area = 1 - (1 - real(kappa)) ** 2 * twins.phi(-real(psi) / real(2).sqrt())
        height = 1 - 2 * (1 - real(kappa)) * twins.phi(-real(psi) / 2)
        for value, exact in ((g.auc, area), (g.advantage, height)):
            assert real(value) >= exact
            assert real(value) <= exact + 3e-15


@pytest.mark.parametrize(("psi", "kappa"), [(1.0, 0.1), (0.5, 0.3), (2.0, 0.01)])
def test_auc_is_the_area_and_advantage_the_height_of_its_own_roc(psi, kappa):
    g = Guarantee(psi, kappa)
    assert g.auc == pytest.approx(quad(g.roc, 0, 1 - kappa, epsabs=1e-11)[0] + kappa, abs=1e-8)
    x = np.linspace(0, 1, 100_001)
    assert g.advantage == pytest.approx((g.roc(x) - x).max(), abs=1e-8)
    np.testing.assert_allclose(g.roc(x) + g.tradeoff(x), 1.0, atol=1e-12)


@pytest.mark.parametrize("kappa", [0.0, 0.1])
def test_methods_take_arrays_and_give_floats_for_floats(kappa):
    g = Guarantee(1.0, kappa)
    for method, value in ((g.delta, 1.0), (g.epsilon, 0.3), (g.roc, 0.2), (g.tradeoff, 0.2), (g.rdp, 2.0)):
        assert type(method(value)) is float
        got = method(np.full((2, 3), value))
        assert got.shape == (2, 3)
        np.testing.assert_allclose(got, method(value), rtol=1e-14)
        assert method([]).shape == (0,)
        with pytest.raises(ValueError, match="must be in"):
            method(nan)


def test_rdp_is_infinite_while_there_is_failure():
    assert Guarantee(1.0).rdp(3.0) == psidp.rho_from_psi(1.0, 3.0)
    for alpha in (1.0, 2.0, inf):
        assert Guarantee(0.0, 1e-9).rdp(alpha) == inf
        assert Guarantee(1.0, 0.1).rdp(alpha) == inf
    assert Guarantee(0.0).rdp(inf) == 0.0


@pytest.mark.parametrize(
    ("notion", "psi"),
    [
        ({"psi": 0.7}, 0.7),
        ({"sensitivity": 1.0, "sigma": 2.0}, 0.5),
        ({"sensitivity": 0.0, "sigma": 2.0}, 0.0),
        ({"epsilon": 1.0, "delta": 1e-5}, 0.26805112),
        ({"delta": 1e-5, "epsilon": 1.0}, 0.26805112),
        ({"epsilon": 1.0, "delta": 0.0}, 0.0),
        ({"auc": 0.75}, 0.9538726),
        ({"auc": 0.5}, 0.0),
        ({"advantage": 0.3829249225480262}, 1.0),
        ({"tpr": 0.5, "fpr": 0.01}, 2.3263479),
        ({"fpr": 0.01, "tpr": 0.5}, 2.3263479),
        ({"alpha": 2.0, "rho": 1.0}, 1.0),
        ({"rho": 1.0, "alpha": 2.0}, 1.0),
        ({"zcdp": 0.5}, 1.0),
    ],
    ids=str,
)
def test_a_gaussian_mechanism_is_named_by_any_of_its_properties(notion, psi):
    g = Guarantee.gaussian(**notion, adjacency="replace-one", unit="patient")
    assert g.psi == pytest.approx(psi, rel=1e-6)
    assert (g.kappa, g.adjacency, g.unit) == (0.0, "replace-one", "patient")


def test_a_gaussian_reading_meets_its_target_from_the_private_side():
    for e, d in ((1.0, 1e-5), (0.1, 1e-9), (8.0, 0.2)):
        assert Guarantee.gaussian(epsilon=e, delta=d).delta(e) <= d
        assert Guarantee.gaussian(epsilon=e, delta=d).epsilon(d) <= e * (1 + 1e-13)
    for sensitivity, sigma in RNG.lognormal(0, 20, (300, 2)):
        psi = Guarantee.gaussian(sensitivity=sensitivity, sigma=sigma).psi
        assert Fraction(psi) * Fraction(sigma) >= Fraction(sensitivity)
        assert Fraction(np.nextafter(psi, 0.0)) * Fraction(sigma) < Fraction(sensitivity)


@pytest.mark.parametrize(
    ("notion", "sentence"),
    [
        ({}, "exactly one notion must be given.*got none"),
        ({"epsilon": 1.0}, "exactly one notion"),
        ({"epsilon": 1.0, "delta": 0.1, "auc": 0.6}, "exactly one notion"),
        ({"eps": 1.0}, "exactly one notion"),
        ({"auc": 1.0}, "auc=1.0 allows any psi: it promises no privacy"),
        ({"advantage": 1.0}, "allows any psi"),
        ({"epsilon": inf, "delta": 0.1}, "allows any psi"),
        ({"epsilon": 1.0, "delta": 1.0}, "allows any psi"),
        ({"alpha": 2.0, "rho": inf}, "alpha=2.0, rho=inf allows any psi"),
        ({"tpr": 1.0, "fpr": 0.1}, "allows any psi"),
        ({"tpr": 0.1, "fpr": 0.2}, "tpr must be at least fpr"),
        ({"sensitivity": 1.0, "sigma": 0.0}, r"^sigma \("),
        ({"sensitivity": 1e300, "sigma": 1e-300}, "too large for a float"),
        ({"auc": nan}, r"^auc \("),
        ({"psi": "1"}, r"^psi \("),
        ({"zcdp": [0.5]}, r"^zcdp \(.*must be one number"),
    ],
    ids=str,
)
def test_a_gaussian_reading_of_nonsense_is_refused(notion, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        Guarantee.gaussian(**notion)


def test_pure_dp_is_worth_the_psi_of_randomised_response():
    g = Guarantee.from_pure(1.0, unit="household")
    assert g.psi == pytest.approx(1.232, abs=5e-4)
    assert (g.kappa, g.unit) == (0.0, "household")
    chance = np.exp(1) / (1 + np.exp(1))
    assert g.roc(1 - chance) >= chance
    assert g.advantage >= np.tanh(0.5)
    with pytest.raises(ValueError, match="epsilon=inf allows any psi"):
        Guarantee.from_pure(inf)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 0.2), (3.0, 0.0)])
def test_approximate_dp_is_covered_with_kappa_for_its_delta(epsilon, delta):
    g = Guarantee.from_approximate(epsilon, delta)
    assert g.kappa == delta
    assert g.psi == Guarantee.from_pure(epsilon).psi
    at = np.linspace(0, epsilon, 200)
    worst = delta + (1 - delta) * (np.exp(epsilon) - np.exp(at)) / (1 + np.exp(epsilon))
    assert (g.delta(at) >= worst * (1 - 1e-14)).all()
    assert (g.roc(at / 10) >= psidp.theory.region_tpr(at / 10, epsilon, delta) * (1 - 1e-13)).all()


@pytest.mark.parametrize(("theirs", "ours"), [("mu", "psi"), ("eps", "epsilon"), ("std", "sigma")])
def test_a_name_from_elsewhere_is_told_its_name_here(theirs, ours):
    with pytest.raises(TypeError, match=f"got {theirs}. {theirs} is called {ours} here."):
        Guarantee.gaussian(**{theirs: 1.0})


@pytest.mark.parametrize("claim", [Guarantee.from_zcdp, lambda rho, kappa: Guarantee.from_rdp(2.0, rho, kappa)])
@pytest.mark.parametrize("kappa", [1e-12, 1e-6, 0.1])
def test_weak_claims_are_worth_a_large_psi_that_grows_with_rho_and_no_refusal(claim, kappa):
    found = [claim(rho, kappa=kappa).psi for rho in (30.0, 36.0, 38.0, 50.0, 1e3, 1e6, 1e12)]
    assert found == sorted(found)
    assert found[2] < 2.0 * found[1]
    assert found[-1] < inf


def test_a_weak_zcdp_claim_covers_the_approximate_dp_that_follows_from_it():
    rho, kappa = 60.0, 1e-6
    t = np.geomspace(1e-3, 1e3, 100_001)
    terms = np.log(1 / kappa) / t + (1.0 + t) * rho - np.log1p(1.0 / t) - np.log1p(t) / t
    follows = Guarantee.from_approximate(float(terms.min()), kappa)  # delta(epsilon) <= kappa, at the best order
    assert Guarantee.from_zcdp(rho, kappa).psi == pytest.approx(follows.psi, rel=1e-6)


def test_rdp_and_zcdp_of_any_mechanism_are_covered():
    for conversion_delta in (1e-5, 1e-3, 0.1):
        for alpha, rho in ((8.0, 0.5), (2.0, 2.0)):
            g = Guarantee.from_rdp(alpha, rho, kappa=1e-6)
            e = psidp.epsilon_from_rdp(rho, alpha, conversion_delta)
            assert g.delta(e) >= conversion_delta * (1 - 1e-12)
    g = Guarantee.from_zcdp(0.462, kappa=1e-9)
    assert g.psi > Guarantee.from_pure(1.0).psi > Guarantee.gaussian(zcdp=0.462).psi
    assert g.kappa == 1e-9


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Guarantee.from_zcdp(0.5, 0.0), "kappa .*must be above 0 here, got kappa=0.0"),
        (lambda: Guarantee.from_zcdp(-1.0, 0.1), r"^zcdp \("),
        (lambda: Guarantee.from_zcdp(1.7e308, 1e-6), "zcdp=1.7e.308 promises so little"),
        (lambda: Guarantee.from_rdp(1.0, 0.5, 1e-6), "RDP must have alpha > 1 and a finite rho"),
        (lambda: Guarantee.from_rdp(2.0, inf, 1e-6), "RDP must have alpha > 1 and a finite rho"),
        (lambda: Guarantee.from_rdp(2.0, 1.0, nan), r"^kappa \("),
        (lambda: Guarantee.from_approximate(1.0, 1.0), "epsilon=1.0, delta=1.0 allows any psi"),
        (lambda: Guarantee.from_approximate(1.0, 2.0), r"^delta \("),
        (lambda: Guarantee.from_approximate(1.0, "x"), r"^delta \("),
        (lambda: Guarantee.from_approximate(-1.0, 0.1), r"^epsilon \("),
        (lambda: Guarantee.from_pure(nan), r"^epsilon \("),
        (lambda: Guarantee.from_pure(1.0, adjacency="swap"), "adjacency must be"),
        (lambda: Guarantee(-1.0), r"^psi \("),
        (lambda: Guarantee(inf), r"^psi \("),
        (lambda: Guarantee(nan), r"^psi \("),
        (lambda: Guarantee(True), r"^psi \("),
        (lambda: Guarantee(10**400), r"^psi \("),
        (lambda: Guarantee([1.0]), r"^psi \(.*must be one number"),
        (lambda: Guarantee(1.0, 1.0), r"^kappa \("),
        (lambda: Guarantee(1.0, -1e-9), r"^kappa \("),
        (lambda: Guarantee(1.0, unit=" "), "unit must say whose data is protected"),
        (lambda: Guarantee(1.0, unit=None), "unit must say whose data is protected"),
        (lambda: Guarantee(1.0, adjacency=None), "adjacency must be"),
        (lambda: Guarantee(0.0).sigma(1.0), "psi must be above 0 to choose sigma"),
        (lambda: Guarantee(1.0).sigma(-1.0), r"^sensitivity \("),
        (lambda: Guarantee(1.0).odds_multiplier(1.5), r"^probability \("),
        (lambda: Guarantee(1.0).group(0), "k must be a whole number of at least 1, got k=0"),
        (lambda: Guarantee(1.0).group(1.5), "k must be a whole number"),
        (lambda: Guarantee(1.0).group(10**400), "too large for a float"),
        (lambda: Guarantee(1e300).group(10**300), "too large for a float"),
        (lambda: Guarantee(1.0, 0.1).group(2), "group privacy needs kappa = 0, got kappa=0.1"),
        (lambda: compose([]), "compose needs at least one Guarantee"),
        (lambda: compose([1.0]), "compose needs at least one Guarantee"),
        (lambda: compose(5), "compose needs at least one Guarantee"),
        (lambda: compose([Guarantee(1e300)] * 2 + [Guarantee(1.7e308)] * 2), "too large for a float"),
        (lambda: Guarantee.from_dict({"kappa": 0.1}), "a guarantee has psi, kappa, adjacency and unit"),
        (lambda: Guarantee.from_dict({"psi": 1.0, "mu": 1.0}), "a guarantee has psi, kappa, adjacency and unit"),
        (lambda: Guarantee.from_json("[1]"), "a guarantee in JSON is an object"),
        (lambda: Guarantee.from_json('{"psi": NaN}'), r"^psi \("),
        (lambda: Guarantee.from_json('{"psi": "1"}'), r"^psi \("),
    ],
)
def test_nonsense_is_refused_at_birth_by_a_sentence(make, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        make()


def test_composition_never_falls_below_the_exact_sum_of_squares():
    for _ in range(200):
        parts = [Guarantee(p, k) for p, k in zip(RNG.lognormal(0, 5, 7), RNG.choice([0.0, 1e-9, 0.01], 7), strict=True)]
        whole = compose(parts)
        square = sum(Fraction(g.psi) ** 2 for g in parts)
        assert Fraction(whole.psi) ** 2 >= square
        assert Fraction(np.nextafter(whole.psi, 0.0)) ** 2 < square
        fine = Fraction(1)
        for g in parts:
            fine *= 1 - Fraction(g.kappa)
        assert 1 - Fraction(whole.kappa) <= fine
        assert whole.kappa <= float(1 - fine) * (1 + 3e-15)


@pytest.mark.parametrize("kappa", [0.0, 1e-300, 1e-9, 0.01])
def test_n_at_once_are_one_n_times_and_order_is_free(kappa):
    g = Guarantee(0.3, kappa)
    step = g
    for _ in range(99):
        step = compose([step, g])
    at_once = compose([g] * 100)
    assert step.psi == pytest.approx(at_once.psi, rel=1e-14)  # one rounding a step
    assert step.kappa == pytest.approx(at_once.kappa, rel=1e-13)
    assert at_once.psi == pytest.approx(3.0, rel=1e-15)
    three = [g, Guarantee(1.7, 0.02), Guarantee(1e-5)]
    assert len({compose(order) for order in permutations(three)}) == 1
    assert compose([g]) == g
    assert compose(iter([g])) == compose(g) == g
    assert compose([g, Guarantee(0.0)]) == g


def test_what_is_composed_keeps_its_terms():
    g = compose(
        [
            Guarantee(3.0, adjacency="replace-one", unit="patient"),
            Guarantee(4.0, adjacency="replace-one", unit="patient"),
        ]
    )
    assert g == Guarantee(5.0, adjacency="replace-one", unit="patient")


def test_different_terms_are_never_mixed():
    g, other_unit, other_neighbours = (
        Guarantee(1.0),
        Guarantee(1.0, unit="patient"),
        Guarantee(1.0, adjacency="replace-one"),
    )
    for h, word in ((other_unit, "unit"), (other_neighbours, "adjacency")):
        for act in (
            lambda h=h: compose([g, h]),
            lambda h=h: g < h,
            lambda h=h: g <= h,
            lambda h=h: g > h,
            lambda h=h: g >= h,
        ):
            with pytest.raises(MismatchError, match=f"guarantees must share one {word}"):
                act()
        assert g != h
        with pytest.raises(ValueError, match=word):  # a plain ValueError too
            compose([g, h])


def test_group_privacy_multiplies_psi_and_never_rounds_down():
    for psi in RNG.lognormal(0, 5, 100):
        for k in (1, 2, 3, 7, np.int64(1000)):
            assert Fraction(Guarantee(psi).group(k).psi) >= int(k) * Fraction(psi)
            assert Guarantee(psi).group(k).psi == pytest.approx(k * psi, rel=3e-16)
    g = Guarantee(1.0, unit="patient", adjacency="replace-one")
    assert g.group(1) == g
    assert g.group(2).group(3) == g.group(6)


def test_sigma_is_the_noise_that_keeps_the_guarantee():
    for psi, sensitivity in RNG.lognormal(0, 10, (300, 2)):
        sigma = Guarantee(psi).sigma(sensitivity)
        assert Fraction(sigma) * Fraction(psi) >= Fraction(sensitivity)
        assert Guarantee.gaussian(sensitivity=sensitivity, sigma=sigma).psi <= psi
    assert Guarantee(2.0).sigma(0.0) == 0.0


def curves(g):
    """delta and ROC where they can differ: over epsilon far out, and over rates down to nothing."""
    epsilon = np.concatenate([[0.0], np.geomspace(1e-4, 200, 300), [inf]])
    fpr = np.concatenate([[0.0], np.geomspace(1e-30, 0.5, 300), 1 - np.geomspace(0.5, 1e-14, 300)])
    return np.concatenate([g.delta(epsilon), g.roc(fpr)])


def at_most(g, h):
    """g <= h, or None where the two are refused."""
    try:
        return g <= h
    except IncomparableError:
        return None


def test_the_order_is_the_true_order_of_the_curves_and_crossing_is_refused():
    rng, seen = np.random.default_rng(1), {"ordered": 0, "crossed": 0}
    for _ in range(400):
        kappas = rng.choice([0.0, 0.05, 0.1, rng.random()], 2)
        g, h = (Guarantee(p, k) for p, k in zip(rng.uniform(0, 3, 2), kappas, strict=True))
        if rng.random() < 0.3:
            h = Guarantee(g.psi * (1 - 0.3 * rng.random()), min(g.kappa + 0.3 * rng.random(), 0.99))
        mine, theirs, room = curves(g), curves(h), 1 + 1e-11  # what the curves are rounded up by
        below, above, answer = (mine <= theirs * room).all(), (theirs <= mine * room).all(), at_most(g, h)
        seen["crossed" if answer is None else "ordered"] += 1
        if answer is None:
            assert not below
            assert not above
            assert at_most(h, g) is None
            for compare in (operator.lt, operator.le, operator.gt, operator.ge):
                with pytest.raises(IncomparableError, match="cross: each is more private against some attack"):
                    compare(g, h)
        else:
            assert below if answer else above
            assert (g < h, g > h, g >= h) == (answer and g != h, not answer, not answer or g == h)
            assert at_most(h, g) == (not answer or g == h)
    assert min(seen.values()) > 50, seen


def test_the_order_of_two_that_share_psi_or_kappa_needs_no_digits():
    assert Guarantee(100.0) < Guarantee(100.0, 0.1)
    assert Guarantee(100.0, 0.1) > Guarantee(99.0)
    assert Guarantee(1.0) < Guarantee(np.nextafter(1.0, 2.0))
    assert sorted([Guarantee(2.0), Guarantee(1.0), Guarantee(1.5)])[0] == Guarantee(1.0)
    assert not Guarantee(1.0) < Guarantee(1.0)
    with pytest.raises(TypeError):
        _ = Guarantee(1.0) < 1.0
    assert Guarantee(1.0) != 1.0


@pytest.mark.parametrize(
    "g",
    [Guarantee(1.0), Guarantee(0.1 + 0.2, 1e-9), Guarantee(5e-324), Guarantee(1.0, adjacency="replace-one"),
     Guarantee(1.0, 0.25, unit="Pflege\"'<b>\n"), Guarantee(np.float32(0.1), np.float64(0)), Guarantee(-0.0, -0.0),
     Guarantee(3)],
    ids=repr,
)  # fmt: skip
def test_a_guarantee_survives_json_repr_pickle_and_copy(g):
    assert Guarantee.from_json(g.to_json()) == g
    assert Guarantee.from_dict(g.to_dict()) == g
    assert json.loads(g.to_json()) == g.to_dict()
    assert eval(repr(g), {"Guarantee": Guarantee}) == g
    assert pickle.loads(pickle.dumps(g)) == g
    assert copy.deepcopy(g) == g
    assert hash(Guarantee.from_json(g.to_json())) == hash(g)
    assert type(g.psi) is float
    assert type(g.kappa) is float
    assert "=-0" not in repr(g)


def test_html_escapes_the_unit_and_shows_the_numbers():
    html = Guarantee(1.0, unit="<script>alert('x')</script>")._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "4.377" in html
    assert "0.7602" in html
    assert "inf" in Guarantee(1.0, 0.1)._repr_html_()


def test_a_guarantee_cannot_be_changed():
    with pytest.raises(AttributeError):
        Guarantee(1.0).psi = 2.0


def test_odds_are_bounded_for_every_mechanism_with_the_guarantee():
    assert Guarantee(1.0).odds_multiplier(0.01) >= psidp.theory.odds_multiplier(1.0, 0.01)
    pure = Guarantee.from_pure(1.0)
    assert pure.odds_multiplier(0.5) >= np.e  # randomised response multiplies by e with chance 0.73
    assert Guarantee(1.0, 0.1).odds_multiplier(0.1) == inf
    assert Guarantee(0.0).odds_multiplier(0.0) == 1.0
    assert log(Guarantee(1.0).odds_multiplier(1e-5)) > 0.5 + sqrt(2 * log(10))


SHARES = [1, 2, 3, 5, 7, 12, 49, 52, 97, 365, 1000]


def test_n_shares_compose_to_no_more_and_one_ulp_larger_ones_would_not():
    for n in SHARES:
        for psi in [1.0, 0.1, 0.5, 2.0, 1 / 3, 4.37717, 0.001, 1e-160, 5e-324, 0.0]:
            share = Guarantee(psi).shares(n)
            assert n * Fraction(share.psi) ** 2 <= Fraction(psi) ** 2 < n * Fraction(nextafter(share.psi, inf)) ** 2
            assert compose([share] * n) <= Guarantee(psi)
            assert share.kappa == 0.0


def test_n_shares_fail_no_more_often_together():
    for n in SHARES:
        for kappa in [1e-06, 0.3, 0.999, 1e-16, 1e-300, 1.5e-323, 5e-324, 1.0 - 2.0 ** (-53)]:
            whole = Guarantee(1.0, kappa, "replace-one", "patient")
            share = whole.shares(n)
            together = compose([share] * n)
            assert together.kappa <= kappa
            assert (share.adjacency, share.unit) == ("replace-one", "patient")
            assert n * Fraction(share.kappa) <= Fraction(kappa)
            assert share.kappa >= kappa / n * (1 - 1e-14) - 5e-324


def test_floats_alone_would_exceed_the_whole():
    """Why shares exist: 1/sqrt(n) in floats is too large for these, and the last release would be refused."""
    assert [n for n in (3, 12, 52, 365) if n * Fraction(1 / sqrt(n)) ** 2 > 1]


@pytest.mark.parametrize("n", [0, -1, 1.5, True, nan, "2"])
def test_shares_are_a_whole_number(n):
    with pytest.raises(ValueError, match="n must be a whole number of at least 1, got n="):
        Guarantee(1.0).shares(n)
