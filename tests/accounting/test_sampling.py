"""Random allocation, groups, replacements and truncated batches, judged by integrals and dice of their own."""

from fractions import Fraction
from itertools import pairwise, product
from math import comb, exp, log, sqrt

import mpmath
import numpy as np
import pytest

from psidp import DPSGD, Guarantee, RandomAllocation, account
from psidp.accounting.composition import Composition
from psidp.accounting.methods import delta_bounds
from psidp.accounting.pld.allocation import Allocation
from psidp.accounting.pld.mixture import Mixture
from psidp.accounting.truncation import any_of, overflow
from psidp.errors import MismatchError

DIRECTIONS = (False, True)
PUSH = (0.15, 1.75)
"""Share of the batches whose noise is pushed up, and how far."""
mpmath.mp.dps = 20


def log_deltas(pair, epsilon):
    low, high, _ = delta_bounds(Composition.merge([], 0.0, [pair]), np.array([epsilon]))
    return float(low[0]), float(high[0])


def encloses(bounds, truth, width):
    low, high = bounds
    assert low <= mpmath.log(truth) <= high
    assert high - low <= width


def option(psi, strike):
    """E(l - K)_+ for l = e^(psi g - psi^2/2)."""
    if strike <= 0:
        return 1 - strike
    d = (-mpmath.log(strike) + psi**2 / mpmath.mpf(2)) / psi
    return mpmath.ncdf(d) - strike * mpmath.ncdf(d - psi)


def integral(f, low=-14, high=16):
    return mpmath.quad(f, list(range(low, high + 1, 2)))


def two_batches(sigma, epsilon, added):
    """delta of one epoch of two batches, by one integral over the first of them."""
    psi, a = mpmath.mpf(1) / sigma, mpmath.exp(epsilon)

    def inner(g):
        first = mpmath.exp(psi * g - psi**2 / 2)
        if not added:
            return mpmath.npdf(g) * option(psi, 2 * a - first) / 2
        room = 2 / a - first  # (1 - a (l1 + l2)/2)_+ = (a/2) (room - l2)_+
        return mpmath.npdf(g) * a / 2 * (option(psi, room) - 1 + room) if room > 0 else mpmath.mpf(0)

    return integral(inner)


@pytest.mark.parametrize("added", DIRECTIONS)
@pytest.mark.parametrize(("sigma", "epsilon"), [(1.5, 0.1), (1.5, 1.0), (0.7, 2.0), (4.0, 0.3), (0.4, 3.0)])
def test_two_batches_agree_with_direct_integration(sigma, epsilon, added):
    truth = two_batches(sigma, epsilon, added)
    if truth > 1e-30:
        encloses(log_deltas(Allocation(sigma, 2, 1.0, added), epsilon), truth, 0.02)


@pytest.mark.parametrize("added", DIRECTIONS)
@pytest.mark.parametrize(("sigma", "epochs", "delta"), [(1.5, 4, 1e-6), (0.5, 1, 1e-5), (20.0, 30, 1e-3)])
def test_one_batch_is_the_gaussian_mechanism(sigma, epochs, delta, added):
    epsilon = Guarantee(sqrt(epochs) / sigma).epsilon(delta)
    low, high = log_deltas(Allocation(sigma, 1, float(epochs), added), epsilon)
    assert low <= log(delta) <= high
    assert high - low < 0.02
    assert account(RandomAllocation(sigma, 1, epochs)).epsilon(delta).upper == pytest.approx(epsilon, rel=1e-9)


def allocation_by_dice(sigma, batches, epochs, epsilon, added, count, seed):
    """Mean and standard error of delta; noise is pushed up at random places, and draws are weighed for it.

    Where the record is added, the noise is drawn as it is.
    """
    dice, psi, (share, push) = np.random.default_rng(seed), 1.0 / sigma, (0.0, 0.0) if added else PUSH
    log_f, log_w = np.zeros(count), np.zeros(count)
    for _ in range(epochs):
        y = dice.standard_normal((count, batches))
        y += push * (dice.random((count, batches)) < share)
        log_f += np.log(np.exp(psi * y - 0.5 * psi**2).mean(1))
        log_w -= np.log1p(share * np.expm1(push * y - 0.5 * push**2)).sum(1)
    gain = np.maximum(1.0 - np.exp(epsilon + log_f), 0.0) if added else np.maximum(np.exp(log_f) - np.exp(epsilon), 0.0)
    worth = gain * np.exp(log_w)
    return worth.mean(), worth.std() / sqrt(count)


def test_allocation_meets_what_was_asked_of_it():
    curve = account(RandomAllocation(noise_multiplier=1.5, batches=25, epochs=4))
    epsilon = curve.epsilon(1e-6)
    assert 1.330 < epsilon.lower < epsilon.upper <= 1.331
    mean, error = allocation_by_dice(1.5, 25, 4, epsilon.upper, False, 200_000, 14)
    assert error < 0.03 * mean
    assert abs(mean - 1e-6) < 4.0 * error


@pytest.mark.parametrize("added", DIRECTIONS)
@pytest.mark.parametrize(
    ("sigma", "batches", "epochs", "epsilon"), [(1.5, 25, 1, 0.3), (0.6, 7, 2, 2.0), (1.0, 60, 3, 0.5)]
)
def test_allocation_agrees_with_dice_in_both_directions(sigma, batches, epochs, epsilon, added):
    low, high = log_deltas(Allocation(sigma, batches, float(epochs), added), epsilon)
    mean, error = allocation_by_dice(sigma, batches, epochs, epsilon, added, 200_000, batches)
    assert exp(low) - 4.0 * error <= mean <= exp(high) + 4.0 * error
    assert high - low < 0.02


def test_allocation_costs_less_than_poisson_and_less_than_no_sampling():
    """Figures of one epoch and of many, next to Poisson sampling at the rate of one batch per epoch."""
    for sigma, batches, epochs in ((0.8, 100, 1), (3.0, 4, 4), (4.0, 10, 20)):
        ours = account(RandomAllocation(sigma, batches, epochs)).epsilon(1e-6)
        poisson = account(DPSGD(sigma, 1.0 / batches, batches * epochs)).epsilon(1e-6)
        assert ours.upper < poisson.lower < Guarantee(sqrt(epochs) / sigma).epsilon(1e-6)
        assert ours.upper - ours.lower < 2e-3 * ours.upper


def binomial(size, rate):
    return [comb(size, j) * mpmath.mpf(rate) ** j * (1 - mpmath.mpf(rate)) ** (size - j) for j in range(size + 1)]


def ratio(laws, g):
    return mpmath.fdiv(*(mpmath.fsum(w * mpmath.exp(m * g - m * m / 2) for w, m in law) for law in laws))


def one_step(laws, a):
    """delta of one step of P against Q at a = e^epsilon, by the threshold where dP/dQ = a; laws are mixtures."""
    low, high = mpmath.mpf(-60), mpmath.mpf(60)
    if not ratio(laws, low) < a < ratio(laws, high):
        return max(1 - a, 0) if a <= ratio(laws, low) else mpmath.mpf(0)
    for _ in range(70):
        middle = (low + high) / 2
        low, high = (middle, high) if ratio(laws, middle) < a else (low, middle)
    masses = [mpmath.fsum(w * mpmath.ncdf(m - low) for w, m in law) for law in laws]
    return masses[0] - a * masses[1]


def two_steps(laws, epsilon):
    """delta of two steps: the second one's at e^epsilon over the first one's ratio, averaged over Q."""
    a = mpmath.exp(epsilon)

    def inner(g):
        density = mpmath.fsum(w * mpmath.npdf(g - m) for w, m in laws[1])
        seen = ratio(laws, g)
        return density * seen * one_step(laws, a / seen)

    return mpmath.quad(inner, list(range(-10, 13)), maxdegree=3)


def group_laws(sigma, rate, size):
    shifts = [mpmath.mpf(j) / sigma for j in range(size + 1)]
    return list(zip(binomial(size, rate), shifts, strict=True)), [(mpmath.mpf(1), mpmath.mpf(0))]


def replaced_laws(sigma, rate):
    half = mpmath.mpf(1) / (2 * mpmath.mpf(sigma))
    return [(1 - mpmath.mpf(rate), mpmath.mpf(0)), (mpmath.mpf(rate), half)], [
        (1 - mpmath.mpf(rate), mpmath.mpf(0)),
        (mpmath.mpf(rate), -half),
    ]


def mirrored(laws):
    """The same seen from the other side: g to -g, P and Q exchanged, so that the ratio increases again."""
    return tuple([(w, -m) for w, m in law] for law in laws[::-1])


CASES = [(1.0, 0.1, 3, 0.5), (0.6, 0.02, 2, 3.0), (2.0, 0.5, 5, 0.2)]


@pytest.mark.parametrize("added", DIRECTIONS)
@pytest.mark.parametrize(("sigma", "rate", "size", "epsilon"), CASES)
def test_groups_agree_with_direct_integration(sigma, rate, size, epsilon, added):
    laws = group_laws(sigma, rate, size)
    laws = mirrored(laws) if added else laws
    pair = Mixture.group(sigma, rate, size, 1.0)
    pair = pair.mirrored if added else pair
    truth = one_step(laws, mpmath.exp(epsilon))
    if truth > 1e-20:
        encloses(log_deltas(pair, epsilon), truth, 2e-3)


@pytest.mark.parametrize(("sigma", "rate", "epsilon"), [(0.5, 0.1, 0.5), (0.3, 0.02, 1.0), (1.0, 0.7, 0.2)])
def test_replacements_agree_with_direct_integration(sigma, rate, epsilon):
    truth = one_step(replaced_laws(sigma, rate), mpmath.exp(epsilon))
    pair = Mixture.replaced(sigma, rate, 1.0)
    assert pair.mirrored == pair
    encloses(log_deltas(pair, epsilon), truth, 2e-3)


@pytest.mark.parametrize("added", DIRECTIONS)
def test_two_steps_of_a_group_agree_with_direct_integration(added):
    pair, laws = Mixture.group(1.2, 0.1, 2, 2.0), group_laws(1.2, 0.1, 2)
    pair, laws = (pair.mirrored, mirrored(laws)) if added else (pair, laws)
    encloses(log_deltas(pair, 0.4), two_steps(laws, 0.4), 0.01)


def test_two_replacements_agree_with_direct_integration():
    encloses(log_deltas(Mixture.replaced(0.5, 0.1, 2.0), 0.4), two_steps(replaced_laws(0.5, 0.1), 0.4), 2e-3)


def mixture_by_dice(laws, steps, epsilon, count, seed):
    """Mean and standard error of delta from draws of the numerator."""
    dice, loss = np.random.default_rng(seed), np.zeros(count)
    p, q = (np.array(law, dtype=float) for law in laws)
    for _ in range(steps):
        g = dice.standard_normal(count) + dice.choice(p[:, 1], count, p=p[:, 0] / p[:, 0].sum())
        top, bottom = ((law[:, 0] * np.exp(np.outer(g, law[:, 1]) - 0.5 * law[:, 1] ** 2)).sum(1) for law in (p, q))
        loss += np.log(top / bottom)
    gain = np.maximum(-np.expm1(epsilon - loss), 0.0)
    return gain.mean(), gain.std() / sqrt(count)


def test_long_runs_of_groups_and_replacements_agree_with_dice():
    group, replaced = group_laws(1.0, 0.05, 3), replaced_laws(0.5, 0.05)
    cases = [
        (Mixture.group(1.0, 0.05, 3, 60.0), group),
        (Mixture.group(1.0, 0.05, 3, 60.0).mirrored, mirrored(group)),
        (Mixture.replaced(0.5, 0.05, 60.0), replaced),
    ]
    for pair, laws in cases:
        low, high = log_deltas(pair, 1.5)
        mean, error = mixture_by_dice(laws, 60, 1.5, 200_000, 3)
        assert exp(low) - 4.0 * error <= mean <= exp(high) + 4.0 * error
        assert high - low < 0.01


def peer_library():
    """dp-accounting, an extra of its own."""
    pytest.importorskip("dp_accounting", reason="dp-accounting is an extra of its own")
    from dp_accounting import dp_event, pld

    return dp_event, pld


@pytest.mark.parametrize(("noise", "rate", "steps", "size"), [(1.0, 0.01, 300, 2), (2.0, 0.05, 40, 5)])
def test_groups_agree_with_a_peer(noise, rate, steps, size):
    """dp_accounting's mixture of Gaussians: its upper bound lies at or a little above ours."""
    dp_event, pld = peer_library()
    chances = [float(c) for c in binomial(size, rate)]
    step = dp_event.MixtureOfGaussiansDpEvent(noise, list(range(size + 1)), chances)
    peer = (
        pld.PLDAccountant(value_discretization_interval=1e-3)
        .compose(dp_event.SelfComposedDpEvent(step, steps))
        .get_epsilon(1e-5)
    )
    ours = account(DPSGD(noise, rate, steps, group=size)).epsilon(1e-5)
    assert ours.lower <= peer * (1.0 + 1e-9)
    assert peer <= ours.upper * 1.01
    assert ours.width < 1e-3 * ours.upper


def test_a_group_of_one_and_one_that_is_always_sampled_are_known():
    assert Mixture.group(1.0, 0.1, 1, 50.0).p[1][1] == 1.0
    low, high = log_deltas(Mixture.group(1.0, 0.1, 1, 50.0), 2.0)
    known = account(DPSGD(1.0, 0.1, 50)).delta(2.0)
    assert low <= log(known.upper)
    assert log(known.lower) <= high
    whole = account(DPSGD(4.0, 1.0, 3, group=2))
    assert whole.guarantee(0.0).psi == pytest.approx(2.0 * sqrt(3.0) / 4.0, rel=1e-15)
    assert account(DPSGD(4.0, 0.0, 3, group=2)).epsilon(1e-5).upper == 0.0


def test_more_records_cost_more_and_never_more_than_the_unsampled_group():
    epsilons = [account(DPSGD(2.0, 0.02, 200, group=k)).epsilon(1e-6) for k in (1, 2, 4)]
    assert all(one.upper < two.lower for one, two in pairwise(epsilons))
    assert epsilons[2].upper < Guarantee(4.0 * sqrt(200.0) / 2.0).epsilon(1e-6)


def test_replacing_costs_less_than_removing_and_adding_with_twice_the_noise_multiplier():
    """With noise z C: replace-one has noise_multiplier z/2, and costs at most a group of two: remove one, add one."""
    replaced = account(DPSGD(0.5, 0.01, 1000, adjacency="replace-one")).epsilon(1e-5)
    alone = account(DPSGD(1.0, 0.01, 1000)).epsilon(1e-5)
    without = account(DPSGD(0.5, 0.01, 1000, sampling="without-replacement")).epsilon(1e-5)
    assert alone.upper < replaced.lower < replaced.upper < without.upper
    assert replaced.upper - replaced.lower < 1e-3 * replaced.upper


@pytest.mark.parametrize(
    ("records", "rate", "size"), [(20, 0.3, 9), (300, 0.05, 30), (200, 0.01, 7), (3, 0.9, 3), (5, 0.5, 6)]
)
def test_the_chance_of_an_overflow_is_bounded_closely(records, rate, size):
    q = Fraction(rate)
    truth = sum(comb(records, j) * q**j * (1 - q) ** (records - j) for j in range(size, records + 1))
    found = Fraction(overflow(records, rate, size))
    assert truth <= found <= truth * (1 + Fraction(1, 10**8))


def test_the_chance_of_a_large_overflow_is_bounded_closely():
    for records, rate, size in ((60_000, 0.01, 800), (10**9, 1e-5, 10_500), (10**6, 0.3, 302_000)):
        term = mpmath.binomial(records, size) * mpmath.mpf(rate) ** size * (1 - mpmath.mpf(rate)) ** (records - size)
        total, j = term, size
        while term > total * mpmath.mpf(10) ** -20:
            term *= mpmath.mpf(records - j) / (j + 1) * mpmath.mpf(rate) / (1 - mpmath.mpf(rate))
            total, j = total + term, j + 1
        assert total <= overflow(records, rate, size) <= total * (1 + mpmath.mpf(10) ** -8)
    assert overflow(10, 0.5, 5) == 1.0
    assert any_of(1.0, 3) == 1.0
    assert 3e-6 - 3e-12 < any_of(1e-6, 3) <= 3e-6 * (1 + 1e-8)


def truncated_output(gradients, rate, cap):
    """One step's output as {sum of gradients: chance}: a Poisson batch, or a random part of it if it is too large."""
    law: dict[float, float] = {}
    for chosen in product((0, 1), repeat=len(gradients)):
        members = [g for g, c in zip(gradients, chosen, strict=True) if c]
        chance = rate ** len(members) * (1 - rate) ** (len(gradients) - len(members))
        parts = [members]
        if len(members) > cap:
            masks = [m for m in product((0, 1), repeat=len(members)) if sum(m) == cap]
            parts = [[g for g, c in zip(members, mask, strict=True) if c] for mask in masks]
        for part in parts:
            law[sum(part)] = law.get(sum(part), 0.0) + chance / len(parts)
    return law


def delta_of(one, other, sigma, epsilon):
    """The hockey stick of two mixtures in one dimension, by a fine sum."""
    y = np.linspace(-12.0, 12.0, 200_001)
    top, bottom = (
        sum(c * np.exp(-0.5 * ((y - m) / sigma) ** 2) for m, c in law.items()) / (sigma * sqrt(2.0 * np.pi))
        for law in (one, other)
    )
    return float(np.maximum(top - exp(epsilon) * bottom, 0.0).sum() * (y[1] - y[0]))


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_truncation_is_a_failure_probability_that_no_data_exceed(adjacency):
    sigma, rate, cap = 1.0, 0.15, 3
    noise = sigma if adjacency == "add-remove" else 0.5 * sigma
    run = DPSGD(noise, rate, 1, adjacency=adjacency, truncated_batch_size=cap, dataset_size=5)
    curve = account(run)
    assert 0.0 < run.truncation < 0.02
    for epsilon in (0.2, 0.8):
        interval, worst = curve.delta(epsilon), 0.0
        for others in ((0.0,) * 4, (1.0,) * 4, (-1.0,) * 4, (1.0, -1.0, 1.0, -1.0)):
            with_one = truncated_output([*others, 1.0], rate, cap)
            without = truncated_output(list(others) if adjacency == "add-remove" else [*others, -1.0], rate, cap)
            worst = max(
                worst, *(delta_of(*pair, sigma, epsilon) for pair in ((with_one, without), (without, with_one)))
            )
        assert interval.lower - 1e-9 <= worst <= interval.upper + 1e-9
        assert interval.upper < worst + 2.0 * run.truncation


def test_truncation_costs_its_chance_and_no_more():
    run = DPSGD(1.0, 0.01, 1000, truncated_batch_size=800, dataset_size=60_000)
    plain, cut = account(DPSGD(1.0, 0.01, 1000)).epsilon(1e-5), account(run).epsilon(1e-5)
    assert plain.lower * (1.0 - 1e-6) < cut.lower <= plain.upper <= cut.upper < plain.upper * (1.0 + 1e-6)
    assert account(run).kappa == run.truncation
    assert account(run).epsilon(run.truncation / 2).upper == np.inf
    dp_event, pld = peer_library()
    peer = pld.PLDAccountant().compose(
        dp_event.SelfComposedDpEvent(dp_event.TruncatedSubsampledGaussianDpEvent(60_000, 0.01, 800, 1.0), 1000)
    )
    assert cut.upper <= peer.get_epsilon(1e-5) * 1.001


def test_epochs_and_batch_sizes_say_rate_and_steps():
    run = DPSGD(1.0, batch_size=256, dataset_size=60_000, epochs=3)
    assert run.steps == 3 * 235
    assert Fraction(run.sampling_rate) >= Fraction(256, 60_000)
    assert run == DPSGD(1.0, run.sampling_rate, run.steps)
    assert DPSGD(1.0, sampling_rate=0.01, epochs=2.5).steps == 250
    assert DPSGD(1.0, batch_size=10, dataset_size=10, steps=7).sampling_rate == 1.0


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"sampling_rate": 0.1}, "needs steps or epochs"),
        ({"steps": 3}, "needs sampling_rate, or batch_size and dataset_size"),
        ({"sampling_rate": 0.1, "steps": 3, "epochs": 1}, "steps or epochs, not both"),
        ({"sampling_rate": 0.1, "steps": 3, "batch_size": 10, "dataset_size": 100}, "sampling_rate or batch_size"),
        ({"batch_size": 10, "steps": 3}, "needs dataset_size"),
        ({"batch_size": 11, "dataset_size": 10, "steps": 3}, "must be at most dataset_size=10"),
        ({"sampling_rate": 0.1, "steps": 3, "dataset_size": 100}, "goes with batch_size or truncated_batch_size"),
        ({"sampling_rate": 0.0, "epochs": 3}, "must be above 0 for epochs"),
        ({"sampling_rate": 0.1, "epochs": float("nan")}, "epochs .* must be in"),
        ({"sampling_rate": 0.1, "steps": 3, "group": 0}, "group must be a whole number"),
        ({"sampling_rate": 0.1, "steps": 3, "group": 1001}, "at most 1000"),
        ({"sampling_rate": 0.1, "steps": 3, "group": 2, "adjacency": "replace-one"}, "group .* must be 1 unless"),
        ({"sampling_rate": 0.1, "steps": 3, "truncated_batch_size": 5}, "needs dataset_size"),
        (
            {"sampling_rate": 1e-9, "steps": 3, "truncated_batch_size": 99, "dataset_size": 10**11},
            "dataset_size must be",
        ),
        ({"sampling_rate": 0.1, "steps": 3, "truncated_batch_size": 5, "dataset_size": 60}, "seldom truncated"),
        (
            {
                "sampling_rate": 0.1,
                "steps": 3,
                "truncated_batch_size": 9,
                "dataset_size": 20,
                "sampling": "without-replacement",
            },
            "others have one size",
        ),
    ],
)
def test_what_contradicts_itself_is_refused(given, words):
    with pytest.raises((TypeError, ValueError), match=words):
        DPSGD(1.0, **given)


def test_allocation_refuses_what_it_cannot_account_for():
    with pytest.raises(ValueError, match='accounted for adjacency="add-remove"'):
        RandomAllocation(1.0, 10, 2, adjacency="replace-one")
    with pytest.raises(ValueError, match="batches must be a whole number"):
        RandomAllocation(1.0, 0)
    with pytest.raises(ValueError, match="epochs must be a whole number"):
        RandomAllocation(1.0, 10, 1.5)
    with pytest.raises(ValueError, match="unit must say"):
        RandomAllocation(1.0, 10, unit=" ")


def test_kinds_of_sampling_compose_and_units_do_not_mix():
    series = [DPSGD(1.0, 0.01, 100), RandomAllocation(1.5, 10, 2), Guarantee(0.1)]
    whole, parts = account(series), [account(event).epsilon(1e-6).upper for event in series]
    assert max(parts) < whole.epsilon(1e-6).lower <= whole.epsilon(1e-6).upper < sum(parts)
    assert "2 epochs of random allocation" in repr(whole)
    assert account(DPSGD(1.0, 0.1, 5, group=3)).unit == "group of 3 records"
    with pytest.raises(MismatchError, match="share one unit"):
        account([DPSGD(1.0, 0.1, 5, group=3), Guarantee(0.1)])
    user = [DPSGD(1.0, 0.1, 5, group=3, unit="user"), Guarantee(0.1, unit="user")]
    assert account(user).unit == "user"


def test_every_question_has_an_answer_for_every_kind():
    """AUC, advantage, rates and the covering psi agree with each other, as for a run that the contour answers."""
    for event in (
        RandomAllocation(1.5, 8, 2),
        DPSGD(1.0, 0.1, 20, group=2),
        DPSGD(0.5, 0.1, 20, adjacency="replace-one"),
    ):
        curve = account(event)
        advantage, auc, rate = curve.advantage, curve.auc, curve.roc(0.05)
        assert advantage.upper == pytest.approx(curve.delta(0.0).upper, rel=1e-3)
        assert (1 + advantage.lower) / 2 <= auc.upper
        assert auc.upper - auc.lower < 0.01
        assert 0.05 < rate.lower <= rate.upper <= 0.05 + advantage.upper
        assert rate.upper - rate.lower < 0.01
        promise = curve.guarantee(1e-8)
        assert promise.epsilon(1e-5) >= curve.epsilon(1e-5).lower
        assert promise.psi < 3.0
