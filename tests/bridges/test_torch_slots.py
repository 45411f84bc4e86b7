"""Places of examples: all arrangements alike, none that depends on who else was drawn, enough of them for any draw."""

from collections import Counter
from itertools import permutations
from math import comb

import mpmath
import numpy as np
import pytest
import torch
from scipy.stats import binom, chi2, poisson
from torch import nn

from psidp.bridges.torch import PrivateStep
from psidp.bridges.torch.step.examples import micro_batches
from psidp.bridges.torch.step.slots import RARE, cheapest, enough, even, inhabited, order, overflow, packed

CPU = torch.device("cpu")


@pytest.mark.parametrize(("total", "slots"), [(2, 4), (3, 4), (4, 4), (3, 0)])
def test_all_arrangements_are_equally_likely(total, slots):
    used = max(total, slots)
    possible = {tuple(i if i < total else -1 for i in p) for p in permutations(range(used))}
    counts = Counter(tuple(order(total, slots).tolist()) for _ in range(6000))
    assert set(counts) == possible
    mean = 6000 / len(possible)
    statistic = sum((seen - mean) ** 2 / mean for seen in counts.values())
    assert chi2.sf(statistic, len(possible) - 1) > 1e-6  # one false alarm in a million


@pytest.mark.parametrize("total", [1, 2, 4, 5])
def test_to_leave_one_out_leaves_the_law_of_the_others_places(total):
    slots = 5
    with_it = Counter(p.index(0) for p in permutations(range(slots)))  # one example's place, whatever the total
    assert len(set(with_it.values())) == 1
    arrangements = Counter()
    for p in permutations(range(slots)):
        who = [i if i < total else -1 for i in p]
        arrangements[tuple(-1 if i == total - 1 else i for i in who)] += 1  # the last one left out
    fewer = Counter(tuple(i if i < total - 1 else -1 for i in p) for p in permutations(range(slots)))
    assert arrangements == fewer


def test_without_empty_places_at_most_one_other_example_changes_its_own():
    total = 5
    swapped = Counter()
    for p in permutations(range(total)):
        who = list(p)
        gone = who.index(total - 1)
        last = who.pop()
        if gone < total - 1:
            who[gone] = last  # the one in the last place takes the place left
        swapped[tuple(who)] += 1
    assert set(swapped) == set(permutations(range(total - 1)))
    assert len(set(swapped.values())) == 1  # again all arrangements alike


@pytest.mark.parametrize("expected", [0.5, 3.0, 64.0, 256.0, 1000.0, 65536.0])
def test_a_draw_exceeds_the_places_no_more_often_than_said(expected):
    for slots in (enough(expected), enough(expected, 1e-19), int(2 * expected) + 1, int(expected)):
        said = overflow(expected, slots)
        assert poisson.sf(slots, expected + 1) <= said
        for n in (int(expected) * 3 + 5, 10**6):
            assert binom.sf(slots, n, expected / n) + binom.sf(slots, n + 1, expected / n) <= 2 * said
    for chance in (RARE, 1e-3, 1e-19):
        assert overflow(expected, enough(expected, chance)) <= chance < overflow(expected, enough(expected, chance) - 1)


@pytest.mark.parametrize("most", [1, 2, 7, 64, 256, 10**6])
def test_micro_batches_are_as_few_as_can_be_and_all_of_the_least_size(most):
    for slots in (1, 2, 63, 64, 65, 1274, 4587):
        size = even(slots, most)
        assert size <= most
        assert -(-slots // size) == -(-slots // most)
        assert (size - 1) * -(-slots // most) < slots


def test_fewer_places_than_expected_promise_nothing():
    assert overflow(100.0, 50) == 1.0
    assert overflow(100.0, 100) == 1.0


@pytest.mark.parametrize(
    ("micro_batch", "slots", "kappa"), [(1, None, 0.0), (1, 100, 0.0), (8, 0, 1.0), (8, 1000, 0.0)]
)
def test_kappa_is_the_chance_that_a_place_changes(micro_batch, slots, kappa):
    step = PrivateStep(
        nn.Linear(2, 1),
        nn.functional.mse_loss,
        clip=1.0,
        noise_multiplier=1.0,
        expected_batch=64,
        micro_batch=micro_batch,
        slots=slots,
    )
    assert step.kappa == pytest.approx(kappa, abs=1e-300)
    assert step.slots == (1000 if slots == 1000 else 0)  # nothing is computed for nobody where all have one place


def test_unless_told_a_step_has_places_enough():
    step = PrivateStep(
        nn.Linear(2, 1), nn.functional.mse_loss, clip=1.0, noise_multiplier=1.0, expected_batch=64, micro_batch=8
    )
    assert (step.slots, step.micro_batch) == (136, 8)
    assert step.slots >= enough(64.0)
    assert 0 < step.kappa <= RARE


@pytest.mark.parametrize("kappa", [1e-3, 1e-6, 1e-19])
def test_places_follow_from_how_often_a_draw_may_exceed_them(kappa):
    common = {"clip": 1.0, "noise_multiplier": 1.0, "expected_batch": 64, "micro_batch": 8}
    step = PrivateStep(nn.Linear(2, 1), nn.functional.mse_loss, kappa=kappa, **common)
    assert 0 < step.kappa <= kappa
    assert step.slots - 8 < enough(64.0, kappa) <= step.slots
    with pytest.raises(TypeError, match=r"give slots .* or kappa .*, not both"):
        PrivateStep(nn.Linear(2, 1), nn.functional.mse_loss, kappa=kappa, slots=100, **common)
    with pytest.raises(ValueError, match=r"kappa .* must be in .*, got kappa=0.0"):
        PrivateStep(nn.Linear(2, 1), nn.functional.mse_loss, kappa=0.0, **common)


@pytest.mark.parametrize(("total", "slots", "size"), [(7, 0, 3), (7, 12, 4), (0, 4, 4), (0, 0, 4), (5, 5, 8)])
def test_every_example_is_in_one_place_and_empty_places_hold_zeros(total, slots, size):
    x = torch.arange(1.0, total + 1)[:, None].expand(total, 3)
    batches = list(micro_batches(x, {"y": x[:, 0].long()}, order(total, slots), size, CPU))
    assert len(batches) == -(-max(total, slots) // size)
    found = []
    for inputs, targets, live in batches:
        assert inputs.shape == (size, 3)
        assert torch.equal(inputs[:, 0].long(), targets["y"])
        assert torch.equal(live, inputs[:, 0] > 0)
        found += inputs[live, 0].tolist()
    assert sorted(found) == list(range(1, total + 1))


def counted(step):
    """How many micro-batches each call computes from now on."""
    step(torch.randn(0, 2), torch.randn(0, 1))  # which rehearses
    calls, recorded = [], step._recorded
    step._recorded = lambda *some, **more: calls.append(1) or recorded(*some, **more)

    def many(n):
        calls.clear()
        step(torch.randn(n, 2), torch.randn(n, 1))
        return len(calls)

    return many


SMALL = {"clip": 1.0, "noise_multiplier": 1.0, "expected_batch": 4, "micro_batch": 2}


def test_where_empty_places_are_computed_their_number_does_not_depend_on_the_draw():
    step = PrivateStep(nn.Linear(2, 1), nn.functional.mse_loss, empty="computed", **SMALL)
    many = counted(step)
    assert {many(n) for n in (0, 3, step.slots)} == {step.slots // 2}
    assert comb(step.slots, 3) > 1000  # places enough to be somewhere else each time
    with pytest.raises(ValueError, match=r'empty .* must be "skipped" or "computed", got None'):
        PrivateStep(nn.Linear(2, 1), nn.functional.mse_loss, empty=None, **SMALL)


def test_micro_batches_with_nobody_in_them_are_skipped():
    step = PrivateStep(nn.Linear(2, 1), nn.functional.mse_loss, **SMALL)
    many = counted(step)
    assert many(0) == 0
    assert {many(3) for _ in range(40)} == {2, 3}  # three examples in two places each: as the lot has it
    assert many(step.slots) == step.slots // 2


@pytest.mark.parametrize(
    ("total", "slots", "size"), [(0, 12, 4), (5, 12, 4), (12, 12, 4), (7, 30, 8), (9, 0, 4), (3, 7, 1)]
)
def test_packed_examples_keep_their_places_in_as_few_micro_batches_as_the_fullest_needs(total, slots, size):
    who = order(total, slots)
    found = packed(who, size)
    assert found.size % size == 0
    assert sorted(found[found >= 0]) == list(range(total))
    at, now = ({int(one): k % size for k, one in enumerate(where) if one >= 0} for where in (who, found))
    assert at == now
    loads = [list(at.values()).count(place) for place in range(size)]
    assert found.size == size * max(loads)


@pytest.mark.parametrize(
    ("total", "slots", "size"), [(0, 12, 4), (2, 30, 4), (12, 12, 4), (7, 30, 8), (9, 0, 4), (3, 7, 1)]
)
def test_inhabited_micro_batches_stay_as_they_are_whoever_is_left_out(total, slots, size):
    for _ in range(20):
        who = order(total, slots)
        rows = np.append(who, np.full(-who.size % size, -1)).reshape(-1, size)
        found = inhabited(who, size).reshape(-1, size)
        assert [row.tolist() for row in rows if row.max() >= 0] == found.tolist()
        for gone in range(total):
            left = inhabited(np.where(who == gone, -1, who), size).reshape(-1, size).tolist()
            fewer = np.where(found == gone, -1, found)
            assert left == [row.tolist() for row in fewer if row.max() >= 0]


def test_to_leave_one_out_leaves_the_places_of_the_others_packed_or_not():
    for _ in range(200):
        who = order(20, 41)
        gone = np.where(who == 7, -1, who)
        at, now = ({int(one): k % 6 for k, one in enumerate(packed(where, 6)) if one >= 0} for where in (who, gone))
        assert {one: place for one, place in at.items() if one != 7} == now


def test_work_is_that_of_the_products_and_convolutions_of_forward_and_backward_pass():
    model = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1, groups=1), nn.Flatten(), nn.Linear(4 * 36, 5))
    x, y = torch.randn(7, 3, 6, 6), torch.zeros(7, dtype=torch.long)
    found = set()
    for n in (1, 7):
        step = PrivateStep(
            model, nn.functional.cross_entropy, clip=1.0, noise_multiplier=1.0, expected_batch=7, micro_batch=7
        )
        step.gradients(x[:n], y[:n])
        found.add(step.places.work)
    convolution, product = 2 * 4 * 36 * 27, 2 * 144 * 5
    assert found == {2 * convolution + 2 * product}  # of an image nobody asks the gradient; that of rows comes later


def test_a_size_is_chosen_that_is_cheaper_by_simulation_and_only_where_it_is():
    rng = np.random.default_rng(5)
    for begin, each in ((8e-3, 5e-3), (2e-3, 1e-5), (6e-3, 1e-3), (1e-3, 1e-2)):
        for expected, size in ((64, 43), (256, 189), (64, 129)):
            slots = enough(float(expected))
            chosen = cheapest(slots, float(expected), size, begin=begin, each=each)
            times = {}
            for m in (chosen, size):
                rows = -(-slots // m)
                fullest = rng.multivariate_hypergeometric([rows] * m, expected, 400).max(axis=1).mean()
                times[m] = fullest * (begin + each * m)
            assert chosen == size or times[chosen] < 0.99 * times[size]
    assert 8 <= cheapest(129, 64.0, 43, begin=8e-3, each=5e-3) <= 13
    assert cheapest(129, 64.0, 43, begin=8e-3, each=1e-5) == 43
    assert cheapest(10**6, 9e5, 256, begin=1e-3, each=1.0) == 256  # hardly any place is empty there


class Slow(nn.Module):
    """A model that takes long for its three parameters."""

    def __init__(self):
        super().__init__()
        self.inner, self.frozen = nn.Linear(2, 900), nn.Linear(900, 900).requires_grad_(False)
        self.head = nn.Linear(900, 1)

    def forward(self, x):
        for _ in range(30):
            x = self.frozen(self.inner(x)).tanh() if x.shape[-1] == 2 else self.frozen(x).tanh()
        return self.head(x)


def test_a_step_settles_on_smaller_micro_batches_where_that_is_faster_and_places_never_get_fewer(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    told = {"clip": 1.0, "noise_multiplier": 1.0, "expected_batch": 64}
    step = PrivateStep(Slow(), nn.functional.mse_loss, **told)
    before = step.kappa, step.slots, step.micro_batch
    assert before[2] == 65
    assert step.places.settle() == 65  # nothing was seen yet
    step.gradients(torch.zeros(1, 2), torch.zeros(1, 1))
    assert 8 <= step.places.settle() == step.micro_batch <= 13
    assert step.slots == -(-129 // step.micro_batch) * step.micro_batch
    assert step.kappa <= overflow(64.0, 129)
    for fixed in ({"micro_batch": 40}, {"slots": 0}, {"memory": 10**9}, {"empty": "computed"}):
        other = PrivateStep(Slow(), nn.functional.mse_loss, **told, **fixed)
        size = other.micro_batch
        other.gradients(torch.zeros(1, 2), torch.zeros(1, 1))
        assert other.places.settle() == size


@pytest.mark.parametrize(("expected", "places", "size"), [(64, 130, 130), (256, 378, 378), (1024, 1260, 252)])
def test_all_places_of_a_small_model_are_one_micro_batch_unless_they_are_many(expected, places, size):
    quick = PrivateStep(
        nn.Linear(2, 1), nn.functional.mse_loss, clip=1.0, noise_multiplier=1.0, expected_batch=expected
    )
    quick.gradients(torch.zeros(1, 2), torch.zeros(1, 1))
    before = quick.kappa
    assert (quick.slots, quick.places.settle()) == (places, size)
    assert quick.slots == places
    assert quick.kappa == before


@pytest.mark.parametrize(("mean", "slots"), [(1e7, 10_225_000), (2.0**34, 2**34 + 5 * 2**17), (1.0, 40), (64.0, 130)])
def test_the_chance_to_exceed_the_places_is_never_rounded_down(mean, slots):
    with mpmath.workdps(60):
        m, s = mpmath.mpf(mean) + 1, mpmath.mpf(slots) + 1
        first = mpmath.exp(s * mpmath.log(m) - m - mpmath.loggamma(s + 1))
        tail, term, k = first, first, s
        while term > tail * mpmath.mpf(10) ** -20:
            k += 1
            term *= m / k
            tail += term
        assert overflow(mean, slots) >= tail > 0
        assert overflow(mean, slots) <= 1.1 * tail + 5e-324
