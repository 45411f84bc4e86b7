"""What carries one example's values to another, or would train otherwise than PyTorch, is refused before a step."""

import gc
import warnings
import weakref
from contextlib import nullcontext
from functools import lru_cache, partial
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks
from torch.nn.functional import mse_loss
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

from psidp.bridges.torch import PrivateStep, PrivateTrainer

X, Y = torch.randn(5, 4), torch.randn(5, 4)
QUIET = 2.0**-90


class With(nn.Module):
    """A linear layer, and something else done to its output."""

    def __init__(self, what=lambda self, y: y):
        super().__init__()
        self.inner, self.what = nn.Linear(4, 4), what
        self.kept, self.history, self.calls = None, [], 0

    def forward(self, x):
        return self.what(self, self.inner(x))


class Loss(nn.Module):
    """A squared error, and something done with it."""

    def __init__(self, what=lambda self, value: value):
        super().__init__()
        self.what = what
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, output, target):
        return self.what(self, mse_loss(output, target))


def step_of(model, loss=mse_loss, **more):
    return PrivateStep(model, loss, **({"clip": 1.0, "noise_multiplier": QUIET, "expected_batch": 8} | more))


def assert_refused(sentence, model, loss=mse_loss, **more):
    with pytest.raises(ValueError, match=sentence):
        step_of(model, loss, **more)(X, Y)
    assert all(p.grad is None for p in model.parameters())


# State outside the example


def compressed(self, y):
    with saved_tensors_hooks(lambda x: x.mean(0, keepdim=True).expand_as(x), lambda x: x):
        return y.tanh() * y


def offloaded(self, y):
    with save_on_cpu():
        return y.tanh()


@pytest.mark.parametrize("what", [compressed, offloaded, lambda _, y: checkpoint(torch.tanh, y, use_reentrant=False)])
@pytest.mark.parametrize("micro_batch", [1, 5])
def test_saved_tensor_hooks_are_refused_in_model_and_loss_and_around_the_step(what, micro_batch):
    assert_refused("uses saved-tensor hooks", With(what), micro_batch=micro_batch)
    assert_refused("uses saved-tensor hooks", With(), lambda y, target: what(None, y).sum(), micro_batch=micro_batch)
    with saved_tensors_hooks(lambda x: x, lambda x: x):
        assert_refused("also around the step", With(), micro_batch=micro_batch)


def last(self, y):
    before, self.kept = self.kept, y.detach()
    return y if before is None else y + before


def listed(self, y):
    self.history.append(y.detach())
    return y + sum(self.history[:-1])


def grown(self, y):
    self.history.append(None)
    return y / len(self.history)


def buffered(self, value):
    self.seen = self.seen + value.detach()
    return value + self.seen


@pytest.mark.parametrize("what", [last, listed, grown])
def test_what_a_model_or_a_loss_keeps_in_an_attribute_is_refused_by_name(what):
    name = "kept" if what is last else "history"
    assert_refused(f"{name} of With must stay the same", With(what))
    loss = Loss(what)
    loss.kept, loss.history = None, []
    for each in (loss, partial(loss), lambda y, target: loss(y, target), loss.forward):
        assert_refused(f"{name} of Loss must stay the same", With(), each)


def test_a_buffer_of_a_loss_is_guarded_like_one_of_the_model():
    assert_refused("seen of Loss must stay the same", With(), Loss(buffered))


class Callable:
    """A loss that is neither a function nor a module."""

    seen = 0.0

    def __call__(self, y, target):
        value = mse_loss(y, target)
        self.seen = self.seen + value.detach()
        return value + self.seen


KEPT, CALLS = [], [0]


def in_a_global(self, y):
    KEPT.append(y.detach())
    return y + KEPT[0]


def in_a_default(self, y, kept={}):  # noqa: B006  the hazard itself
    kept["last"] = y.detach()
    return y + kept["last"]


def in_a_closure():
    kept = None

    def what(self, y):
        nonlocal kept
        before, kept = kept, y.detach()
        return y if before is None else y + before

    return what


def in_a_class(self, y):
    With.shared = y.detach()
    return y


def in_the_function(self, y):
    in_the_function.last = y.detach()
    return y


@lru_cache(maxsize=8)
def remembered(key):
    return []


def in_a_cache(self, y):
    remembered(0).append(y.detach())
    return y


def by_a_count(self, y):
    CALLS[0] += 1
    return y * CALLS[0]


ELSEWHERE = [in_a_global, in_a_default, in_a_closure(), in_a_class, in_the_function, in_a_cache, by_a_count]


@pytest.mark.parametrize("what", ELSEWHERE, ids=lambda f: f.__name__)
def test_what_is_kept_elsewhere_is_refused(what):
    sentence = "must keep no tensor|must stay the same|the same gradient in every pass"
    try:
        assert_refused(sentence, With(what))
        assert_refused(sentence, With(), lambda y, target: mse_loss(what(None, y), target))
    finally:
        KEPT.clear()
        remembered.cache_clear()
    assert_refused(sentence, With(), Callable())


def test_a_tensor_that_is_only_put_aside_is_found_after_the_pass():
    class Box:
        pass

    box = Box()
    box.inner = Box()

    def what(self, y):
        box.inner.last = y.detach()
        return y

    assert_refused("last of Box must stay the same", With(what))
    try:
        assert_refused(r"there still is one of shape \(1, 4\), kept outside of both", With(in_a_cache))
    finally:
        remembered.cache_clear()


def odd(number):
    """A sign that turns long after a rehearsal: no gradient of it tells."""
    return -1.0 if number > 1000 else 1.0


class Box:
    """An object that is neither a module nor a loss."""

    def __init__(self):
        self.calls, self.last = 0, None

    def next(self):
        self.calls += 1
        return odd(self.calls)

    def loss(self, y, target):
        return mse_loss(y, target) * self.next()


def in_an_object():
    box = Box()
    return lambda self, y: y * box.next()


def in_an_item():
    calls = [[0]]

    def what(self, y):
        calls[0][0] += 1
        return y * odd(calls[0][0])

    return what


def in_a_keyword():
    def what(self, y, *, calls=[0]):  # noqa: B006  the hazard itself
        calls[0] += 1
        return y * odd(calls[0])

    return what


def in_an_attribute():
    def what(self, y):
        self.called = getattr(self, "called", 0) + 1
        return y * odd(self.called)

    return what


def in_a_number_of_numpy():
    def what(self, y):
        self.called = np.int64(getattr(self, "called", 0) + 1)
        return y * odd(self.called)

    return what


def in_a_nonlocal():
    calls = 0

    def what(self, y):
        nonlocal calls
        calls += 1
        return y * odd(calls)

    return what


def on_a_parameter():
    def what(self, y):
        self.inner.weight.calls = getattr(self.inner.weight, "calls", 0) + 1
        return y * odd(self.inner.weight.calls)

    return what


def in_a_generator():
    def numbers():
        n = 0
        while True:
            n += 1
            yield odd(n)

    signs = numbers()
    return lambda self, y: y * next(signs)


COUNTS = [
    in_an_attribute, in_an_object, in_an_item, in_a_keyword, in_a_nonlocal, on_a_parameter, in_a_generator,
    in_a_number_of_numpy,
]  # fmt: skip


@pytest.mark.parametrize("make", COUNTS, ids=lambda f: f.__name__)
def test_a_count_of_passes_is_taken_where_it_does_not_depend_on_the_draw(make):
    passes = []
    for examples in (0, 1, 5):
        model, calls = With(make()), []
        step = step_of(model, micro_batch=4)
        step(X, Y)
        model.zero_grad()
        model.register_forward_pre_hook(lambda *_, calls=calls: calls.append(0))
        step(X[:examples], Y[:examples])
        passes.append(len(calls))
        assert step.places.counts
    assert passes == [passes[0]] * 3
    assert passes[0] > 1


@pytest.mark.parametrize("more", [{"slots": 0}, {"micro_batch": 1}])
def test_a_count_of_passes_is_refused_where_it_tells_how_many_examples_are_drawn(more):
    assert_refused("called of With must stay the same from pass to pass where", With(in_an_attribute()), **more)
    assert_refused("calls of Box must stay the same from pass to pass where", With(), Box().loss, **more)


def test_a_count_that_begins_after_the_rehearsal_is_refused():
    def what(self, y):
        self.calls += len(self.begun)
        return y * odd(self.calls)

    model = With(what)
    model.begun = ()
    step = step_of(model)
    step(X, Y)
    model.zero_grad()
    model.begun = (1,)
    with pytest.raises(ValueError, match="calls of With must stay the same"):
        step(X, Y)


def test_a_count_that_moves_gradients_at_once_is_refused():
    def what(self, y):
        self.calls += 1
        return y / self.calls

    assert_refused("the same gradient in every pass", With(what))


def test_text_of_a_tensor_which_has_the_whole_micro_batch_is_refused():
    for text in (repr, str, "{}".format):
        assert_refused("must not print their tensors", With(lambda _, y, text=text: y * len(text(y))))


def in_an_iterator():
    numbers = count()
    return lambda self, y: y * odd(next(numbers))


def past_the_version():
    def what(self, y):
        if not hasattr(self, "called"):
            self.register_buffer("called", torch.zeros(()))
        self.called.data.add_(1)
        return y * odd(int(self.called))

    return what


def in_a_state_that_is_replaced():
    def what(self, y):
        self.state = SimpleNamespace(calls=getattr(self, "state", SimpleNamespace(calls=0)).calls + 1)
        return y * odd(self.state.calls)

    return what


def by_a_weak_reference():
    box = Box()

    def what(self, y):
        cycle = Box()
        cycle.itself, cycle.last = cycle, y.detach()
        box.last = weakref.ref(cycle)
        return y

    return what


def in_an_older_generation():
    box = Box()

    def what(self, y):
        box.last = y.detach()
        gc.collect()
        return y

    return what


SLOW = [
    in_an_iterator, past_the_version, in_a_state_that_is_replaced, by_a_weak_reference,
    in_an_older_generation,
]  # fmt: skip


@pytest.mark.parametrize("make", SLOW, ids=lambda f: f.__name__)
def test_what_no_gradient_of_the_rehearsal_shows_is_refused_where_it_may_hold_a_value(make):
    assert_refused("must stay the same", With(make()))
    assert_refused("must stay the same", With(), Loss(make()))


class Sometimes(nn.Module):
    """Counts its calls for long inputs, or when it is switched on."""

    def __init__(self):
        super().__init__()
        self.inner, self.calls, self.on = nn.Linear(1, 1), [], False

    def forward(self, x):
        if self.on or x.shape[1] > 3:
            self.calls.append(None)
        return self.inner(x) * odd(len(self.calls))


def test_new_shapes_and_switches_are_rehearsed_before_anybodys_examples():
    for switched in (False, True):
        model = Sometimes()
        step = step_of(model)
        step(torch.randn(5, 2, 1), torch.randn(5, 2, 1))
        model.zero_grad()
        model.on, length = switched, 2 if switched else 5
        with pytest.raises(ValueError, match="calls of Sometimes must stay the same"):
            step(torch.randn(5, length, 1), torch.randn(5, length, 1))
        assert model.inner.weight.grad is None


def test_a_script_is_refused_since_nobody_can_read_what_it_keeps():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        script = torch.jit.script(nn.Tanh())
    for model, loss in ((With(lambda _, y: script(y)), mse_loss), (With(), lambda y, t: script(mse_loss(y, t)))):
        assert_refused("must not be scripts of torch.jit", model, loss)
    assert_refused("must not be scripts of torch.jit", nn.Sequential(nn.Linear(4, 4), script))


class Guard(torch.autograd.Function):
    """Turns the sign of all examples where one of them is large, which no made-up example is."""

    @staticmethod
    def forward(x):
        return x.clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, g):
        return g

    @staticmethod
    def vmap(info, dims, x):
        return (-x if x.abs().max() > 1e3 else x.clone()).movedim(dims[0], 0), 0


@torch.library.custom_op("psidp_tests::kept", mutates_args=())
def kept(x: torch.Tensor) -> torch.Tensor:
    """An operator whose code sees each example as a plain tensor."""
    return x.clone()


kept.register_autograd(lambda ctx, g: g)


class Spy(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class Overheard(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def spied(self, y):
    with Spy():
        return y.tanh()


class Own(torch.Tensor):
    """A tensor with code of its own."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs)


@pytest.mark.parametrize("micro_batch", [1, 5])
def test_code_that_sees_a_whole_micro_batch_is_refused_whatever_it_does(micro_batch):
    for called, name in ((Guard.apply, "Guard"), (kept, "psidp_tests::kept")):
        sentence = f"must keep the examples of a micro-batch apart, but {name}"
        assert_refused(sentence, With(lambda _, y, called=called: called(y)), micro_batch=micro_batch)
    assert_refused("must be active in a private step or its model, got Spy", With(spied), micro_batch=micro_batch)
    for mode in (Spy, Overheard):
        with mode():
            assert_refused(f"must be active in a private step or its model, got {mode.__name__}", With())
    with torch.device("cpu"):
        step_of(With())(X, Y)


def test_tensors_with_code_of_their_own_are_refused():
    for change in ("trained", "frozen", "buffer"):
        model = With()
        own = torch.ones(4).as_subclass(Own)
        model.own = nn.Parameter(own, requires_grad=change == "trained") if change != "buffer" else None
        if change == "buffer":
            del model.own
            model.register_buffer("own", own)
        with pytest.raises(TypeError, match="own of With must be a plain tensor or Parameter, got Own"):
            step_of(model)
    with pytest.raises(TypeError, match="inputs and targets must be plain tensors, got Own"):
        step_of(With())(X.as_subclass(Own), Y)


class OfAll(torch.autograd.Function):
    """The same numbers, with a gradient that goes by the whole micro-batch."""

    @staticmethod
    def forward(x):
        return x.clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0].mean()

    @staticmethod
    def vmap(info, dims, x):
        return OfAll.apply(x), 0


class OfEach(OfAll):
    """The same, by the rule that torch makes."""

    generate_vmap_rule = True
    vmap = torch.autograd.Function.vmap

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0].mean()


def test_functions_that_mix_the_examples_of_a_micro_batch_are_refused_and_others_are_taken():
    with pytest.raises(ValueError, match="must keep the examples of a micro-batch apart"):
        step_of(With(lambda _, y: OfAll.apply(y)), micro_batch=5)(X, Y)
    step_of(With(lambda _, y: OfEach.apply(y)), micro_batch=5)(X, Y)
    words = nn.Sequential(nn.Embedding(9, 4), With(lambda _, y: OfAll.apply(y)))
    with pytest.raises(ValueError, match="must keep the examples of a micro-batch apart"):
        step_of(words, micro_batch=5)(torch.zeros(5, 3, dtype=torch.long), torch.zeros(5, 3, 4))


def test_what_is_built_in_the_first_pass_and_stays_is_taken():
    def lazy(self, y):
        if self.kept is None:
            self.kept = torch.arange(y.shape[-1]).cos()
            self.history = [y.shape]
        return y * self.kept

    model = With(lazy)
    step = step_of(model, Loss())
    step(X, Y)
    model.temperature = 3.0  # between steps anything may change
    model.zero_grad()
    step(X, Y)


# Training as PyTorch does it, or a refusal


def hooked(kind):
    model = With()
    owner = model.inner if kind.startswith("register_full") else model.inner.weight
    getattr(owner, kind)(lambda *_: None)
    return model


HOOKS = [
    "register_full_backward_hook", "register_full_backward_pre_hook", "register_hook",
    "register_post_accumulate_grad_hook",
]  # fmt: skip


def test_hooks_of_all_modules_and_parameters_inside_transforms_are_refused_by_name():
    handle = nn.modules.module.register_module_full_backward_hook(lambda *_: None)
    try:
        with pytest.raises(ValueError, match="torch must have no backward hook for all modules"):
            step_of(With())
    finally:
        handle.remove()
    assert_refused("inside vmap, grad or another transform", With(lambda self, y: torch.vmap(self.inner)(y)))
    energy = With(lambda self, y: torch.func.grad(lambda z: self.inner(z).square().sum())(y))
    assert_refused("inside vmap, grad or another transform", energy)
    with torch.inference_mode():
        assert_refused("must not run in torch.inference_mode", With())


@pytest.mark.parametrize("kind", HOOKS)
def test_hooks_that_a_step_would_not_call_are_refused(kind):
    with pytest.raises(ValueError, match=r"must have no .*hook.*: a private step does not call it"):
        step_of(hooked(kind))
    loss = Loss()
    loss.inner = hooked(kind).requires_grad_(True)
    with pytest.raises(ValueError, match=r"must have no .*hook"):
        step_of(With(), loss)
    model = With()
    step = step_of(model)
    step(X, Y)
    model.inner.weight.register_hook(lambda g: None)
    with pytest.raises(ValueError, match=r"must have no .*hook"):
        step(X, Y)


def test_hooks_on_tensors_inside_a_pass_are_refused():
    def hooked(self, y):
        y.register_hook(lambda g: g)
        return y

    assert_refused("registers a hook on a tensor", With(hooked))


def test_a_loss_without_a_gradient_is_refused():
    for loss in (
        lambda y, target: mse_loss(y.detach(), target),
        lambda y, target: target.sum(),
        lambda y, target: (y.argmax(1) == 0).float().mean(),
    ):
        assert_refused("loss must have a gradient", With(), loss)
    with torch.no_grad():
        step_of(With())(X, Y)


def test_parameters_that_no_gradient_comes_to_are_refused_by_name():
    model = nn.Sequential(nn.Linear(4, 4), With(lambda self, y: y))
    model[1].unused = nn.Linear(2, 2)
    assert_refused(r"no gradient comes to 1.unused.weight, 1.unused.bias, so that noise alone would move them", model)
    model[1].unused.requires_grad_(False)
    step_of(model)(X, Y)


class Learned(nn.Module):
    """A loss with a parameter."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, y, target):
        return mse_loss(y * self.scale, target)


def test_parameters_that_are_not_the_models_are_refused():
    loss, free = Learned(), torch.ones(4, requires_grad=True)
    for each in (loss, lambda y, target: loss(y, target)):
        assert_refused("scale of Learned must be a parameter of the model", With(), each)
    assert_refused(r"a tensor of shape \(4,\) must be", With(), lambda y, target: mse_loss(y * free, target))
    hidden = [nn.Linear(4, 4)]
    assert_refused(r"a tensor of shape \(4, 4\) must be", With(lambda _, y: hidden[0](y)))
    step_of(With(), loss.requires_grad_(False))(X, Y)
    step_of(With())(X.requires_grad_(True), Y)
    X.requires_grad_(False)
    model = With()
    step_of(model, lambda y, t: mse_loss(y, t) + 0.1 * model.inner.weight.square().sum())(X, Y)


def test_a_second_step_adds_to_the_gradient_as_backward_does():
    model = With()
    step = step_of(model)
    step(X, Y)
    once = model.inner.weight.grad.clone()
    step(X, Y)
    torch.testing.assert_close(model.inner.weight.grad, 2 * once)
    model.zero_grad(set_to_none=False)
    step_of(model)(X, Y)  # another step of the same model
    torch.testing.assert_close(model.inner.weight.grad, once)


def test_a_gradient_without_noise_is_never_added_to():
    model = With()
    mse_loss(model(X), Y).backward()
    before = model.inner.weight.grad.clone()
    with pytest.raises(ValueError, match=r"inner.weight.grad must be None before a step, .*zero_grad"):
        step_of(model)(X, Y)
    assert torch.equal(model.inner.weight.grad, before)


def test_the_trainer_refuses_before_it_is_paid(tmp_path):
    model = With(last)
    trainer = PrivateTrainer(
        model, torch.optim.SGD(model.parameters(), lr=0.1), mse_loss, (X, Y), sampling_rate=0.5, clip=1.0, steps=4,
        noise_multiplier=1.0, checkpoint=tmp_path / "run.pt",
    )  # fmt: skip
    with pytest.raises(ValueError, match="kept of With must stay the same"):
        trainer.fit()
    assert not list(tmp_path.iterdir())


def test_a_double_precision_model_under_autocast_and_a_scaler_trains():
    for around in (nullcontext(), torch.autocast("cpu", torch.bfloat16)):
        model = With().double() if isinstance(around, nullcontext) else With()
        with around:
            step_of(model)(X.to(model.inner.weight.dtype), Y.to(model.inner.weight.dtype))
        assert model.inner.weight.grad.isfinite().all()
