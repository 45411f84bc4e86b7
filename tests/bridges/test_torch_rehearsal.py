"""What a step learns before the first draw: from examples that are made up, so that no draw tells it."""

import os
import random
import weakref

import numpy as np
import pytest
import torch
from torch import nn
from torch.func import grad, jvp, vmap
from torch.nn.functional import cross_entropy, mse_loss
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from psidp.bridges.torch import PrivateStep
from psidp.bridges.torch.step.batch_dependence import dependence
from psidp.bridges.torch.step.recording import Recording
from psidp.bridges.torch.step.rehearsal import varies
from psidp.bridges.torch.step.rng import Watch, share_dropped

TOLD = {"clip": 1.0, "noise_multiplier": 1.0}


class With(nn.Module):
    """A linear layer, and something else done to its output."""

    def __init__(self, what, width=4):
        super().__init__()
        self.inner, self.frozen = nn.Linear(width, width), nn.Linear(width, width).requires_grad_(False)
        self.what = what

    def forward(self, x):
        return self.what(self, self.inner(x))


def step_of(what, expected=8.0, loss=mse_loss, **more):
    torch.manual_seed(3)
    return PrivateStep(With(what), loss, expected_batch=expected, **TOLD, **more)


def forked(_, y):
    with torch.random.fork_rng(devices=[]):
        return y * torch.rand(y.shape)


def restored(_, y):
    before = random.getstate()
    y = y * random.random()
    random.setstate(before)
    return y


def restored_by_numpy(_, y):
    before = np.random.get_state()  # noqa: NPY002
    y = y * float(np.random.random())  # noqa: NPY002
    np.random.set_state(before)  # noqa: NPY002
    return y


UNTOLD = None  # a seed that the operating system makes
UNSEEDED = {
    "a new generator of NumPy": lambda _, y: y * float(np.random.default_rng(UNTOLD).random()),
    "the operating system": lambda _, y: y * os.urandom(1)[0],
    "the operating system through Python": lambda _, y: y * random.SystemRandom().random(),
}
FRESH = {
    "a fork of torch's generator": forked,
    "a state of Python's that is put back": restored,
    "a state of NumPy's that is put back": restored_by_numpy,
}


@pytest.mark.parametrize("name", UNSEEDED)
def test_random_numbers_that_no_seed_repeats_are_refused(name):
    with pytest.raises(ValueError, match=r"the same gradient in every pass .* draw with torch.rand"):
        step_of(UNSEEDED[name])(torch.randn(0, 4), torch.randn(0, 4))


@pytest.mark.parametrize("name", FRESH)
def test_random_numbers_that_leave_generators_as_they_were_keep_examples_where_they_are(name):
    step = step_of(FRESH[name])
    step(torch.randn(0, 4), torch.randn(0, 4))
    assert step.places.by_lot


@pytest.mark.parametrize("without", [0.0, 0.5])
def test_they_do_so_too_where_a_loss_has_no_gradient_at_one_of_the_targets(without):
    step = step_of(FRESH["a fork of torch's generator"], loss=lambda out, target: (out * (target - without)).sum())
    step(torch.randn(0, 4), torch.randn(0, 4))
    assert step.places.by_lot


ASKED = {
    "gradients": lambda step, x, y: step.gradients(x, y),
    "contributions": lambda step, x, y: step.contributions(x, y),
    "dependence": dependence,
}


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("fresh", [False, True])
def test_what_is_asked_before_the_first_step_decides_nothing(asked, fresh, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)

    def what(self, y):  # a product of weights alone, which is one for all examples
        y = y * self.frozen.weight.matmul(self.frozen.weight).sum()
        return FRESH["a fork of torch's generator"](self, y) if fresh else y

    found = []
    for first in (False, True):
        step = step_of(what, expected=16.0)
        if first:
            ASKED[asked](step, torch.randn(step.micro_batch, 4), torch.randn(step.micro_batch, 4))
        step(torch.randn(0, 4), torch.randn(0, 4))
        found.append((step.micro_batch, step.slots, step.places.work, step.places.by_lot))
    assert found[0] == found[1]
    assert step.places.by_lot == fresh


def test_the_watch_is_on_for_nobodys_examples(monkeypatch):
    passes, backward = [], Recording.backward

    def seen(self, losses, names):
        passes.append((len(losses), any(isinstance(mode, Watch) for mode in _get_current_dispatch_mode_stack())))
        backward(self, losses, names)

    monkeypatch.setattr(Recording, "backward", seen)
    step = step_of(lambda self, y: y)
    step.gradients(torch.randn(5, 4), torch.randn(5, 4))
    step(torch.randn(5, 4), torch.randn(5, 4))
    assert passes[0] == (1, True)
    assert [n for n, watched in passes if watched] == [1]
    assert {5, step.micro_batch} <= {n for n, _ in passes}


def test_to_compare_passes_no_more_than_one_whole_gradient_is_kept():
    live, most = [], []

    def passed(inputs, targets):
        for _ in range(10):
            made = torch.zeros(3)
            live.append(weakref.ref(made))
            most.append(sum(one() is not None for one in live))
            yield made
            del made

    assert not varies(passed, torch.zeros(0, 2), torch.zeros(0))
    assert len(most) == 80
    assert max(most) <= 12


class Attention(nn.Module):
    """Fused attention that drops this share."""

    def __init__(self, share):
        super().__init__()
        self.inner, self.share = nn.Linear(6, 18), share

    def forward(self, x):
        q, k, v = self.inner(x).unflatten(-1, (3, 1, 6)).permute(2, 0, 3, 1, 4)
        return nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=self.share).squeeze(1)


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_attention_that_drops_nothing_lets_examples_move(share):
    step = PrivateStep(Attention(share), mse_loss, expected_batch=8, **TOLD)
    step(torch.randn(0, 5, 6), torch.randn(0, 5, 6))
    assert step.places.by_lot == (share > 0)


def test_the_share_that_an_operator_drops_is_read_wherever_it_stands():
    aten, x = torch.ops.aten, torch.zeros(1)
    for operator in (
        aten._scaled_dot_product_flash_attention.default,
        aten._scaled_dot_product_flash_attention_for_cpu.default,
    ):
        assert share_dropped(operator, (x, x, x), {}) == 0.0
        assert share_dropped(operator, (x, x, x, 0.25), {}) == 0.25
        assert share_dropped(operator, (x, x, x), {"dropout_p": 0.25}) == 0.25
    assert share_dropped(aten._scaled_dot_product_efficient_attention.default, (x, x, x, None, True, 0.25), {}) == 0.25
    assert share_dropped(aten.native_dropout.default, (x, 0.25, True), {}) is None


@pytest.mark.parametrize("drawn", [0, 1, 20])
@pytest.mark.parametrize("expected", [8, 64])
def test_the_first_draw_does_not_decide_what_a_step_settles_on(drawn, expected, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    found = set()
    for n in (0, drawn):
        step = step_of(lambda self, y: y, expected=float(expected))
        step(torch.full((n, 4), torch.nan), torch.randn(n, 4))
        found.add((step.micro_batch, step.slots, step.places.work, step.places.by_lot, step.places.settled))
    assert len(found) == 1
    assert found.pop()[2:] == (step.places.work, False, True)


def test_each_mode_of_the_model_is_rehearsed_before_its_first_draw():
    step = step_of(lambda self, y: nn.functional.dropout(y, 0.5, self.training))
    step._model.eval()
    step(torch.randn(3, 4), torch.randn(3, 4))
    assert not step.places.by_lot
    step._model.train()
    seen, arranged = [], step.places.arranged
    step.places.arranged = lambda who: seen.append(step.places.by_lot) or arranged(who)
    step(torch.randn(3, 4), torch.randn(3, 4))
    assert seen == [True]  # known before anybody was there, and so summed once


def test_users_rehearse_as_one_made_up_user():
    step = step_of(lambda self, y: y, examples_per_user=2)
    step(torch.randn(5, 4), torch.randn(5, 4), ["a", "a", "b", "c", "c"])
    assert step.places.work > 0


def test_words_are_made_up_as_zeros():
    model = nn.Sequential(nn.Embedding(5, 3), nn.Flatten(), nn.Linear(6, 4))
    step = PrivateStep(model, cross_entropy, expected_batch=4, **TOLD)
    step(torch.randint(0, 5, (3, 2)), torch.randint(0, 4, (3,)))
    assert step.places.settled


@pytest.mark.parametrize("what", ["prod", "cumprod"])
def test_products_whose_gradient_looks_at_all_examples_are_refused(what):
    step = step_of(lambda self, y: getattr(y, what)(-1, keepdim=True) if what == "prod" else y.cumprod(-1))
    with pytest.raises(ValueError, match=r"must not use prod or cumprod: .* Multiply step by step"):
        step(torch.randn(3, 4), torch.randn(3, 4))
    assert step._model.inner.weight.grad is None
    step_of(lambda self, y: y * torch.tensor(y.shape).prod())(torch.randn(3, 4), torch.randn(3, 4))  # of whole numbers


def product(y: torch.Tensor) -> torch.Tensor:
    return y.prod(-1, keepdim=True)


HIDDEN = {
    "a script": lambda: torch.jit.script(product),
    "a trace": lambda: torch.jit.trace(product, torch.ones(1, 4)),
    "an inner name": lambda: lambda y: torch.ops.aten.prod.dim_int(y, -1, True),
    "an inner name of cumprod": lambda: lambda y: torch.ops.aten.cumprod.default(y, -1),
    "a function that uses it": lambda: torch.linalg.vander,
}


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.parametrize("name", HIDDEN)
def test_products_are_refused_whatever_calls_them(name):
    called = HIDDEN[name]()
    step = step_of(lambda self, y: called(y), loss=lambda out, target: out.sum())
    with pytest.raises(ValueError, match=r"must not use prod or cumprod: .* Multiply step by step"):
        step(torch.randn(3, 4), torch.randn(3, 4))
    assert step._model.inner.weight.grad is None
    constant = step_of(lambda self, y: y * called(y.detach()).sum())
    constant(torch.randn(3, 4), torch.randn(3, 4))  # which has no gradient, and so asks nobody


def test_they_are_refused_whenever_they_are_switched_on():
    step = step_of(lambda self, y: y if self.inner.bias.grad is None else y + torch.ops.aten.prod.dim_int(y, -1, True))
    step(torch.randn(3, 4), torch.randn(3, 4))
    before = step._model.inner.weight.grad.clone()
    with pytest.raises(ValueError, match="must not use prod or cumprod"):
        step(torch.randn(3, 4), torch.randn(3, 4))
    assert torch.equal(step._model.inner.weight.grad, before)


class Prod(torch.autograd.Function):
    """A product of two numbers with a backward pass of its own, and a name like torch's."""

    generate_vmap_rule = True

    @staticmethod
    def forward(a, b):
        return a * b

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g * b, g * a


def test_a_product_of_ones_own_is_taken():
    step = step_of(lambda self, y: Prod.apply(y, y))
    x = torch.randn(3, 4)
    step(x, torch.zeros(3, 4))
    twin = PrivateStep(step._model, mse_loss, expected_batch=8.0, **TOLD)
    twin._model.what = lambda self, y: y * y
    found = step.gradients(x, x), twin.gradients(x, x)
    assert all(map(torch.equal, *found))


INSIDE = {
    "vmap": lambda self, y: vmap(self.frozen)(torch.stack([y, 2 * y])).sum(0),
    "jvp": lambda self, y: jvp(self.frozen, (y,), (torch.ones_like(y),))[0],
    "grad": lambda self, y: y + grad(lambda z: (self.frozen(z) ** 2).sum())(y),
}


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # torch's own, the first time
@pytest.mark.parametrize("name", INSIDE)
def test_a_model_may_use_transforms_of_its_own(name):
    step, x, y = step_of(INSIDE[name], micro_batch=5), torch.randn(5, 4), torch.randn(5, 4)
    parameters = list(step.parameters.values())
    wanted = [torch.autograd.grad(mse_loss(step._model(x[i : i + 1]), y[i : i + 1]), parameters) for i in range(5)]
    for k, found in enumerate(step.gradients(x, y)):
        torch.testing.assert_close(found, torch.stack([each[k] for each in wanted]))
