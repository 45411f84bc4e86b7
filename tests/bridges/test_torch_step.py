"""The private step on the CPU: neighbours, places, noise, divisor and refusals."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss

from psidp.bridges.torch import PrivateStep
from psidp.bridges.torch.step import places
from psidp.bridges.torch.step.batch_dependence import dependence
from psidp.bridges.torch.step.clipping import ClippedTotals
from psidp.bridges.torch.step.slots import order

QUIET = 2.0**-90
"""A noise multiplier that leaves nothing to see, for the deterministic part."""


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Small tensors, for which threads only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class Words(nn.Module):
    """Words, attention and a head."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(20, 12)
        self.mixed, self.head = nn.Linear(12, 36), nn.Linear(12, 4)

    def forward(self, x):
        q, k, v = self.mixed(self.words(x)).chunk(3, -1)
        return self.head(((q @ k.transpose(-1, -2)).softmax(-1) @ v).mean(1))


def images(model_type=torch.float32):
    parts = [nn.Conv2d(3, 6, 3), nn.GroupNorm(2, 6), nn.ReLU(), nn.Flatten(), nn.Linear(6 * 16, 4)]
    return nn.Sequential(*parts).to(model_type)


MODELS = {
    "images": (images, lambda n: torch.randn(n, 3, 6, 6)),
    "rows": (lambda: nn.Sequential(nn.Linear(50, 16), nn.ReLU(), nn.Linear(16, 4)), lambda n: torch.randn(n, 50)),
    "linear": (lambda: nn.Linear(50, 4), lambda n: torch.randn(n, 50)),
    "words": (Words, lambda n: torch.randint(0, 20, (n, 7))),
}


def made(model, **changed):
    settings = {"clip": 1.0, "noise_multiplier": QUIET, "expected_batch": 8.0, "micro_batch": 4, **changed}
    return PrivateStep(model, changed.pop("loss", cross_entropy), **{k: v for k, v in settings.items() if k != "loss"})


@pytest.fixture
def seen(monkeypatch):
    """The integer totals of every step, before the noise."""
    kept = []

    def noisy(self, sigma):
        kept.append(self.units.tolist())
        return original(self, sigma)

    original = ClippedTotals.noisy
    monkeypatch.setattr(ClippedTotals, "noisy", noisy)
    return kept


def hostile(x):
    """The same examples, some of them huge, tiny, infinite or NaN."""
    if x.is_floating_point():
        x = x.clone()
        strange = [1e38, 1e-40, float("nan"), float("inf"), 1e20, 0.0, -1e30]
        for i, value in enumerate(strange[: len(x)]):
            x[i].view(-1)[i] = value
    return x


def moved(one, other):
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("clip", [1.0, 0.3, 1e-5, 1e6])
def test_neighbouring_draws_differ_by_at_most_the_clip_one_example_at_a_time(name, clip, seen):
    torch.manual_seed(len(name))
    model, examples = MODELS[name][0](), MODELS[name][1]
    x, y = hostile(examples(8)), torch.randint(0, 4, (8,))
    step = made(model, clip=clip, micro_batch=1)
    step(x, y)
    for i in range(8):
        others = torch.arange(8) != i
        step(x[others], y[others])
        assert moved(seen[0], seen[-1]) <= step._totals().bound ** 2
        assert Fraction(step._totals().bound) * Fraction(2) ** step._totals().unit <= Fraction(clip)
    assert any(map(any, seen))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("micro_batch", [2, 5, 8])
def test_neighbouring_draws_in_the_same_places_differ_by_at_most_the_clip(name, micro_batch, seen, monkeypatch):
    torch.manual_seed(micro_batch)
    model, examples = MODELS[name][0](), MODELS[name][1]
    x, y = hostile(examples(8)), torch.randint(0, 4, (8,))
    who = np.random.default_rng(micro_batch).permutation(11)
    who[who >= 8] = -1
    monkeypatch.setattr(places, "order", lambda total, slots: who)
    step = made(model, micro_batch=micro_batch)
    step(x, y)
    everyone = who.copy()
    for i in range(8):
        who[:] = np.where(everyone == i, -1, everyone)
        step(x, y)
        assert moved(seen[0], seen[-1]) + step.undefined > 0
        assert moved(seen[0], seen[-1]) <= step._totals().bound ** 2


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("size", [2, 5, 8])
def test_examples_that_are_packed_add_the_same_integers(name, size, seen):
    torch.manual_seed(size)
    model, examples = MODELS[name][0](), MODELS[name][1]
    x, y = examples(9), torch.randint(0, 4, (9,))
    for _ in range(5):
        who = order(9, 40)
        for empty in ("computed", "skipped"):
            made(model, micro_batch=size, empty=empty)(x, y, places=who)
    assert seen[0::2] == seen[1::2]
    assert all(map(any, seen))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("size", [3, 5, 8, 16])
def test_a_gradient_does_not_depend_on_the_company_in_its_micro_batch(name, size):
    torch.manual_seed(size)
    step = made(MODELS[name][0](), micro_batch=size, slots=0)
    found = dependence(step, MODELS[name][1](size), torch.randint(0, 4, (size,)))
    assert found.compared > 4 * size
    assert found.by_company == 0


def test_dependence_on_company_and_on_place_would_be_seen(monkeypatch):
    step = made(nn.Linear(50, 4), micro_batch=6, slots=0)
    x, y = torch.randn(6, 50), torch.randint(0, 4, (6,))
    monkeypatch.setattr(step, "gradients", lambda x, y, seed: [x + 1e-6 * x.sum(0)])
    assert dependence(step, x, y).by_company > 10
    monkeypatch.setattr(step, "gradients", lambda x, y, seed: [torch.eye(6) @ x])  # NaN times zero
    assert dependence(step, x, y).by_company == 11  # all that were compared among NaN
    monkeypatch.setattr(step, "gradients", lambda x, y, seed: [x * (1 + 1e-6 * torch.arange(6.0)[:, None])])
    found = dependence(step, x, y)
    assert found.by_company == 0
    assert found.by_place > 10
    assert 1e-7 < found.farthest < 1e-4
    with pytest.raises(ValueError, match="needs a full micro-batch of 6, got 3"):
        dependence(step, x[:3], y[:3])


def test_the_gradient_is_the_exact_sum_of_what_each_example_adds_over_a_public_number(seen):
    torch.manual_seed(1)
    model = images()
    x, y = torch.randn(10, 3, 6, 6), torch.randint(0, 4, (10,))
    step = made(model, micro_batch=1, expected_batch=7.0)
    step(x, y)
    expected = [0] * len(seen[0])
    for i in range(10):
        alone = step.contributions(x[i : i + 1], y[i : i + 1])[0].tolist()
        assert sum(k * k for k in alone) <= step._totals().bound ** 2
        expected = [a + b for a, b in zip(expected, alone, strict=True)]
    assert seen[0] == expected
    scale = Fraction(2.0 ** step._totals().unit / 7.0)
    got = torch.cat([p.grad.reshape(-1) for p in model.parameters()]).tolist()
    assert got == [float(np.float32(float(Fraction(k) * scale))) for k in expected]


def test_the_gradient_is_that_of_autograd_clipped_and_averaged():
    torch.manual_seed(2)
    model = images(torch.float64)
    x, y = torch.randn(11, 3, 6, 6, dtype=torch.float64), torch.randint(0, 4, (11,))
    made(model, expected_batch=11.0)(x, y)
    mean = 0.0
    for i in range(11):
        alone = torch.autograd.grad(cross_entropy(model(x[i : i + 1]), y[i : i + 1]), list(model.parameters()))
        flat = torch.cat([g.reshape(-1) for g in alone])
        mean = mean + flat / max(1.0, float(flat.norm())) / 11
    got = torch.cat([p.grad.reshape(-1) for p in model.parameters()])
    assert float((got - mean).abs().max()) < 2.0**-29  # the grid, and nothing that doubles would show


def test_what_is_divided_by_does_not_depend_on_the_draw():
    model = nn.Linear(3, 1, bias=False)
    x, y = torch.ones(1, 3), torch.full((1, 1), 1e9)
    step = made(model, loss=mse_loss)
    step(x, y)
    once, model.weight.grad = model.weight.grad, None
    step(x.repeat(5, 1), y.repeat(5, 1))
    assert torch.allclose(model.weight.grad, 5 * once, rtol=1e-6)  # float32
    assert float(once.norm()) == pytest.approx(1 / 8, rel=1e-5)


@pytest.mark.parametrize("slots", [0, None])
def test_an_empty_draw_gives_noise_alone_of_the_right_size(slots):
    model = nn.Linear(200, 200, bias=False)
    step = made(model, clip=3.0, noise_multiplier=0.7, expected_batch=5.0, slots=slots, loss=mse_loss)
    step(torch.zeros(0, 200), torch.zeros(0, 200))
    deviation = float(model.weight.grad.std()) / (3.0 * 0.7 / 5.0)
    assert abs(deviation - 1) < 5 / np.sqrt(2 * 40000)  # one false alarm in two million; 2 % off would be seen


def test_the_noise_is_never_less_than_asked_for():
    for multiplier in (0.1, 0.7, 1.1, 1 / 3, 123.456):
        for clip in (0.1, 1 / 3, 5.7):
            step = made(nn.Linear(2, 2), noise_multiplier=multiplier, clip=clip)
            unit = step._totals().unit
            sigma = Fraction(step._sigma) * Fraction(2) ** unit
            assert (
                Fraction(multiplier) * Fraction(clip)
                <= sigma
                <= Fraction(multiplier) * Fraction(clip) * (1 + Fraction(1, 2**51))
            )


def test_undefined_gradients_are_counted_and_never_shown():
    step = made(nn.Linear(3, 4))
    x, y = torch.randn(6, 3), torch.zeros(6, dtype=torch.int64)
    x[1, 0], x[4, 2] = float("nan"), float("inf")
    step(x, y)
    step(x, y)
    assert step.undefined == 4
    assert repr(step) == (
        f"PrivateStep(clip=1.0, noise_multiplier={QUIET}, expected_batch=8.0, micro_batch=4, slots=40)"
    )
    assert all(torch.isfinite(p.grad).all() for p in step.parameters.values())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_gradients_have_the_type_and_shape_of_their_parameters(dtype):
    model = images(dtype)
    made(model)(torch.randn(5, 3, 6, 6, dtype=dtype), torch.randint(0, 4, (5,)))
    for p in model.parameters():
        assert (p.grad.dtype, p.grad.shape) == (p.dtype, p.shape)


def test_frozen_parameters_stay_without_a_gradient_and_shared_ones_get_one():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.head = nn.Embedding(20, 12), nn.Linear(12, 20, bias=False)
            self.frozen = nn.Linear(12, 12).requires_grad_(False)
            self.head.weight = self.words.weight

        def forward(self, x):
            return self.head(self.frozen(self.words(x).mean(1)))

    torch.manual_seed(3)
    model = Tied()
    x, y = torch.randint(0, 20, (5, 6)), torch.randint(0, 20, (5,))
    step = made(model, clip=100.0, expected_batch=5.0)
    step(x, y)
    assert list(step.parameters) == ["words.weight"]
    assert model.frozen.weight.grad is None
    expected = torch.autograd.grad(cross_entropy(model(x), y), model.words.weight)[0]
    assert torch.allclose(model.words.weight.grad, expected, atol=1e-5)  # floats


def test_a_parameter_may_be_a_single_number_or_empty():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale, self.nothing = nn.Parameter(torch.tensor(2.0)), nn.Parameter(torch.zeros(0, 3))

        def forward(self, x):
            return self.scale * x + self.nothing.sum()

    model = Scaled()
    step = made(model, loss=mse_loss)
    step(torch.ones(4, 1), torch.zeros(4, 1))
    assert float(model.scale.grad) == pytest.approx(4 / 8, rel=1e-5)  # clipped: what roundings can do is charged
    assert model.nothing.grad.shape == (0, 3)
    assert dependence(step, torch.ones(4, 1), torch.zeros(4, 1)).by_company == 0


def test_inputs_may_be_several_tensors_by_place_or_by_name():
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.line = nn.Linear(3, 1)

        def forward(self, left, right):
            return self.line(left * right)

    torch.manual_seed(4)
    model, left, right, y = Both(), torch.randn(5, 3), torch.randn(5, 3), torch.randn(5, 1)
    step = made(model, loss=lambda output, target: mse_loss(output, target["y"]), micro_batch=1)
    step((left, right), {"y": y})
    by_place = model.line.weight.grad
    model.zero_grad()
    step({"right": right, "left": left}, {"y": y})
    assert torch.equal(model.line.weight.grad, by_place)


def test_a_step_can_be_taken_after_the_model_has_changed_its_type():
    model = nn.Linear(3, 4)
    step = made(model)
    model.double()
    step(torch.randn(5, 3, dtype=torch.float64), torch.zeros(5, dtype=torch.int64))
    assert model.weight.grad.dtype == torch.float64


def test_cudnn_is_left_as_it_was_found():
    torch.backends.cudnn.benchmark = True
    try:
        made(nn.Linear(3, 4))(torch.randn(2, 3), torch.zeros(2, dtype=torch.int64))
        assert torch.backends.cudnn.benchmark
        assert not torch.backends.cudnn.deterministic
    finally:
        torch.backends.cudnn.benchmark = False


@pytest.mark.parametrize(
    ("settings", "size"),
    [({"memory": 16 * 100}, 100), ({"memory": 16 * 100 + 15}, 100), ({"memory": 16}, 1), ({}, 256)],
)
def test_a_bound_on_memory_sets_the_micro_batch(settings, size):
    step = made(nn.Linear(3, 1), loss=mse_loss, micro_batch=None, expected_batch=1000.0, slots=0, **settings)
    assert step.micro_batch == size
    even = made(nn.Linear(3, 1), loss=mse_loss, micro_batch=None, expected_batch=1000.0, **settings)
    assert 0.95 * size <= even.micro_batch <= size
