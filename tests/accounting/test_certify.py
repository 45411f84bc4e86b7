"""certify=True: answers proved once more in ball arithmetic, which agrees with floats or corrects them."""

import sys
from functools import cache

import pytest
from flint import arb

from psidp import Guarantee
from psidp.accounting import DPSGD, RandomAllocation, account, methods
from psidp.accounting.certificates.ball_grid import BallLattice
from psidp.accounting.composition import Composition
from psidp.accounting.contours.contour import NotCertified
from psidp.accounting.curve import PrivacyCurve
from psidp.errors import ContradictionError, MissingExtraError
from reference import corners

SERIES = {  # the events, a delta and an epsilon to ask for, and how wide epsilon may be at most
    "one step, far out": (DPSGD(0.02, 1e-5, 1), 1e-6, 705.0, 1e-9),
    "a long run": (DPSGD(1.0, 0.9, 10**7), 1e-3, 4081754.1653990657, 1e-9),
    "plain Gaussians": ([DPSGD(10.0, 1.0, 1)] * 10**5, 1e-5, 600.0, 1e-9),
    "next to nothing": (Guarantee(1e-170), 1e-5, 0.0, 0.0),
    "kappa": ([Guarantee(1.0, kappa=k) for k in (1e-3, 2e-3, 3e-3)], 0.1, 0.5, 1e-9),
    "tiny noise, nearly every record": (DPSGD(0.11, 0.99996, 37), 1.7e-12, 1900.0, 1e-9),
    "tiny noise beside an ordinary run": ([DPSGD(0.05, 0.3, 100), DPSGD(1.0, 0.01, 10)], 1e-5, 10_047.0, 1e-9),
    "nearly unsampled": (DPSGD(2.9, 0.9999999, 2), 1e-6, 2.0, 1e-6),
    "two steps": (DPSGD(1.0, 0.1, 2), 1e-5, 1.0, 1e-5),
    "an ordinary run": (DPSGD(1.0, 0.01, 1000), 1e-5, 2.0, 1e-9),
    "a run beside a guarantee": ([DPSGD(1.0, 0.01, 1000), Guarantee(0.3, kappa=1e-6)], 1e-5, 1.0, 1e-9),
}


@pytest.fixture(params=["with the extended contour", "without it"])
def platform(request, monkeypatch):
    """A platform with and without x87 long doubles."""
    if request.param == "without it":

        def refuse(*_):
            raise NotCertified

        monkeypatch.setattr("psidp.accounting.methods._extended", refuse)
        others = tuple(method for method in methods.CONTOURS_AT if method[0] != "extended contour")
        monkeypatch.setattr("psidp.accounting.methods.CONTOURS_AT", others)


@cache
def in_balls(name, *_candidates):
    """epsilon and delta of a series, certified; once where both platforms have the same candidates to prove."""
    events, delta, epsilon, _ = SERIES[name]
    curve = account(events, certify=True)
    return curve.epsilon(delta), curve.delta(epsilon)


@pytest.mark.parametrize("name", SERIES)
@pytest.mark.usefixtures("platform")
def test_balls_agree_with_floats(name):
    events, delta, epsilon, width = SERIES[name]
    fast = account(events)
    first = fast.epsilon(delta), fast.delta(epsilon)
    second = in_balls(name, *first)
    for floats, balls, most in zip(first, second, (width, 1e-6), strict=True):
        assert max(floats.lower, balls.lower) <= min(floats.upper, balls.upper)
        assert balls.width <= most * balls.upper
    assert second[0].method.endswith(", certified")


@pytest.mark.parametrize("name", ["an ordinary run", "kappa", "a run beside a guarantee"])
def test_the_advantage_and_the_area_are_certified_too(name):
    fast, curve = account(SERIES[name][0]), account(SERIES[name][0], certify=True)
    for first, second in ((fast.advantage, curve.advantage), (fast.auc, curve.auc)):
        assert max(first.lower, second.lower) <= min(first.upper, second.upper)
        assert second.width <= 1e-8
        assert second.method.endswith("certified")


def test_runs_of_tiny_noise_have_a_certified_area():
    assert account(DPSGD(0.05, 1e-3, 10**6), certify=True).auc.lower >= 1.0 - 1e-9


@pytest.mark.parametrize(("sigma", "q", "steps", "epsilon", "truth"), corners.LONG)
def test_certified_long_runs_enclose_the_reference(sigma, q, steps, epsilon, truth):
    interval = account(DPSGD(sigma, q, steps), certify=True).delta(epsilon)
    assert not corners.number(truth) < arb(interval.lower)
    assert not corners.number(truth) > arb(interval.upper)
    assert interval.width <= 1e-12 * interval.upper


@pytest.mark.parametrize("setting", corners.LATTICE)
def test_the_lattice_of_whole_numbers_encloses_the_reference(setting):
    sigma, q, steps, epsilon, sign, truth = setting
    lattice = BallLattice(Composition.merge([(sigma, q, steps, sign)]), epsilon, -25.0, 1 << 12)
    found, exact = lattice.delta(epsilon), corners.number(truth)
    assert found.lower() <= exact <= found.upper()
    assert found.upper() <= (1.2 if steps <= 30 else 20.0) * exact


def test_an_answer_that_balls_leave_open_is_widened_to_what_they_confirm(monkeypatch):
    run = DPSGD(1.0, 0.1, 3)
    fast = account(run).epsilon(1e-5)
    monkeypatch.setattr("psidp.accounting.certificates.certificate.ROADS", (BallLattice,))
    monkeypatch.setattr("psidp.accounting.certificates.ball_grid.SIZES", (1 << 11,))
    widened = account(run, certify=True).epsilon(1e-5)
    assert widened.lower < fast.lower < fast.upper < widened.upper
    assert widened.width <= 1e-3
    monkeypatch.setattr("psidp.accounting.certificates.certificate.ROADS", ())
    widened = account(run, certify=True).epsilon(1e-5)
    assert widened.method == "crude bounds, certified"
    assert 1.0 < widened.lower < fast.lower < fast.upper < widened.upper < 8.0


@pytest.mark.parametrize("shift", [1e-9, -1e-9])
def test_an_answer_that_balls_disprove_is_none(monkeypatch, shift):
    truth = account(DPSGD(1.0, 0.01, 1000)).epsilon(1e-5)
    moved = (truth.lower + shift, truth.upper + shift, "contour")
    monkeypatch.setattr(PrivacyCurve, "_fast_epsilon", lambda *_: moved)
    with pytest.raises(ContradictionError, match="epsilon would be"):
        account(DPSGD(1.0, 0.01, 1000), certify=True).epsilon(1e-5)


def test_what_balls_do_not_answer_is_refused():
    curve = account(DPSGD(1.0, 0.01, 1000), certify=True)
    for ask in (lambda: curve.guarantee(1e-9), lambda: curve.roc(0.1), lambda: curve.tradeoff(0.1)):
        with pytest.raises(
            ValueError, match=r"certify must be False for .* Ask account\(events\) without certify=True"
        ):
            ask()
    assert account(Guarantee(0.5), certify=True).guarantee(0.0).psi == 0.5


def test_without_python_flint_the_refusal_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "flint", None)
    with pytest.raises(MissingExtraError, match=r"This needs python-flint. .* pip install 'psidp\[certify\]'"):
        account(DPSGD(1.0, 0.01, 1000), certify=True)
    assert account(DPSGD(1.0, 0.01, 1000)).epsilon(1e-5).upper < 2.0


@pytest.mark.parametrize(
    "event", [RandomAllocation(1.0, 10, 2), DPSGD(1.0, 0.1, 5, group=3), DPSGD(1.0, 0.1, 5, adjacency="replace-one")]
)
def test_kinds_of_runs_without_a_ball_proof_are_refused(event):
    with pytest.raises(ValueError, match="certify must be False for random allocation, groups of records"):
        account(event, certify=True)
