"""What a private step cannot take is refused with a sentence, before anything is drawn or written."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss
from torch.nn.utils.parametrizations import spectral_norm

from psidp.bridges.torch import PrivateStep

GOOD = {"clip": 1.0, "noise_multiplier": 1.0, "expected_batch": 8.0}


def overlapping():
    model = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Linear(3, 2, bias=False))
    model[1].weight = nn.Parameter(model[0].weight.data[:2])
    return model


def on_two_devices():
    return nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3, device="meta").requires_grad_(False))


@pytest.mark.parametrize(
    ("model", "error", "sentence"),
    [
        (nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)), ValueError, r"1 \(BatchNorm1d\) mixes .* Use GroupNorm"),
        (nn.SyncBatchNorm(3), ValueError, r"model \(SyncBatchNorm\) mixes"),
        (nn.BatchNorm2d(3).eval(), ValueError, r"model \(BatchNorm2d\) mixes"),
        (nn.LazyBatchNorm2d(), ValueError, "mixes"),
        (
            nn.InstanceNorm2d(3, affine=True, track_running_stats=True),
            ValueError,
            "keeps statistics .* Use track_running_stats=False",
        ),
        (nn.Sequential(nn.Linear(3, 3), nn.RReLU()), ValueError, r"1 \(RReLU\) draws .* Use nn.LeakyReLU"),
        (nn.Embedding(5, 3, max_norm=1.0), ValueError, "shrinks the rows .* Use max_norm=None"),
        (nn.Embedding(5, 3, sparse=True), ValueError, r"model \(Embedding\) gives sparse .* Use sparse=False"),
        (nn.ReLU(), ValueError, "no parameter that requires grad"),
        (nn.Linear(3, 3).requires_grad_(False), ValueError, "nothing to train"),
        (nn.ParameterList([torch.zeros(0)]), ValueError, r"between 1 and 2\^40 trainable numbers, got 0"),
        (nn.LazyLinear(3), ValueError, "weight has no shape yet. Run the model once"),
        (
            nn.Linear(3, 3).half(),
            TypeError,
            r"weight must be a dense tensor .* got torch.float16, .* Use model.float\(\)",
        ),
        (nn.Linear(3, 3, dtype=torch.complex64), TypeError, "got torch.complex64"),
        (nn.Linear(3, 3, device="meta"), TypeError, "on meta"),
        (on_two_devices(), ValueError, "must be on one device, got cpu, meta"),
        (overlapping(), ValueError, "share memory .* Assign one Parameter to both"),
        (lambda x: x, TypeError, "model must be a torch.nn.Module, got function"),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_a_model_that_no_step_can_train_is_refused(model, error, sentence):
    with pytest.raises(error, match=sentence):
        PrivateStep(model, cross_entropy, **GOOD)


@pytest.mark.parametrize(
    "model",
    [
        nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.0)),
        nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5)),
        nn.Sequential(nn.Conv2d(3, 3, 1), nn.InstanceNorm2d(3, affine=True)),
        nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3).half().requires_grad_(False)),
    ],
)
def test_what_only_looks_like_these_is_taken(model):
    assert PrivateStep(model, cross_entropy, slots=0, **GOOD).micro_batch == 16


@pytest.mark.parametrize(
    ("changed", "error", "sentence"),
    [
        ({"clip": 0.0}, ValueError, r"clip \(largest L2 norm .* must be in \(0, inf\), got clip=0.0"),
        ({"clip": 1e-40}, ValueError, r"clip .* must be in \[2\^-100, 2\^101\), got clip=1e-40"),
        ({"clip": -1.0}, ValueError, "clip .* must be in"),
        ({"clip": float("nan")}, ValueError, r"clip \(largest L2 norm .* got clip=nan"),
        ({"clip": float("inf")}, ValueError, "clip .* must be in"),
        ({"clip": "1"}, TypeError, "clip .* must be a real number"),
        ({"noise_multiplier": 0.0}, ValueError, r"noise_multiplier .* must be in \(0, inf\)"),
        ({"noise_multiplier": float("nan")}, ValueError, "noise_multiplier .* must be in"),
        ({"noise_multiplier": 1e-40}, ValueError, r"noise_multiplier .* must be in \[2\^-100, 2\^100\]"),
        ({"noise_multiplier": [1.0, 2.0]}, TypeError, "noise_multiplier .* must be one number"),
        ({"expected_batch": 0}, ValueError, r"expected_batch .* must be in \(0, inf\), got expected_batch=0"),
        ({"expected_batch": float("nan")}, ValueError, "expected_batch .* must be in"),
        ({"expected_batch": float("inf")}, ValueError, "expected_batch .* must be in"),
        ({"micro_batch": 0}, ValueError, "micro_batch must be a whole number of at least 1, got micro_batch=0"),
        ({"micro_batch": 2.0}, ValueError, "micro_batch must be a whole number"),
        ({"memory": 10}, ValueError, "memory .* must be at least 48, what one example takes, got memory=10"),
        ({"slots": -1}, ValueError, "slots must be a whole number of at least 1"),
        ({"loss": None}, TypeError, "loss must be callable"),
        ({"loss": nn.MSELoss}, TypeError, r"got a class. Make one: MSELoss\(\)"),
    ],
    ids=str,
)
def test_settings_outside_their_bounds_are_refused(changed, error, sentence):
    settings = {"loss": mse_loss, **GOOD, **changed}
    with pytest.raises(error, match=sentence):
        PrivateStep(nn.Linear(3, 3), **settings)


class Chance(nn.Module):
    """Draws random numbers as `draw` says."""

    def __init__(self, draw):
        super().__init__()
        self.line, self.draw = nn.Linear(3, 3), draw

    def forward(self, x):
        return self.line(x) + self.draw(x)


POISSON, IN_PLACE = Chance(lambda x: torch.poisson(x.abs())), Chance(lambda x: torch.empty(x.shape).uniform_())
HELD = torch.Generator().manual_seed(0)
OWN, OWN_IN_PLACE = (
    Chance(lambda x: torch.rand(x.shape, generator=HELD)),
    Chance(lambda x: torch.empty_like(x).bernoulli_(0.5, generator=HELD)),
)


@pytest.mark.parametrize(
    ("model", "loss", "x", "y", "error", "sentence"),
    [
        (POISSON, mse_loss, torch.ones(5, 3), torch.ones(5, 3), ValueError, "must not use poisson: how many random"),
        (IN_PLACE, mse_loss, torch.ones(5, 3), torch.ones(5, 3), ValueError, "for each example, into new tensors"),
        (OWN, mse_loss, torch.ones(5, 3), torch.ones(5, 3), ValueError, r"a torch.Generator of their own \(rand\)"),
        (OWN_IN_PLACE, mse_loss, torch.ones(5, 3), torch.ones(5, 3), ValueError, r"of their own \(bernoulli"),
        (nn.Linear(3, 3), mse_loss, torch.ones(5, 3), torch.ones(4, 3), ValueError, "one and the same number"),
        (nn.Linear(3, 3), mse_loss, torch.ones(()), torch.ones(4, 3), ValueError, "a first dimension that counts"),
        (nn.Linear(3, 3), mse_loss, np.ones((5, 3)), torch.ones(5, 3), TypeError, "must be tensors, .* got ndarray"),
        (
            nn.Linear(3, 3),
            lambda a, b: (a - b) ** 2,
            torch.ones(5, 3),
            torch.ones(5, 3),
            ValueError,
            r"loss must give one number for a batch of one, got \(1, 3\). Take its mean",
        ),
        (nn.Linear(3, 3), lambda a, b: 1.0, torch.ones(5, 3), torch.ones(5, 3), ValueError, "got float"),
    ],
)
def test_a_refused_call_leaves_everything_as_it_was(model, loss, x, y, error, sentence):
    step = PrivateStep(model, loss, **GOOD)
    with pytest.raises(error, match=sentence):
        step(x, y)
    assert all(p.grad is None for p in model.parameters())
    assert step.undefined == 0


class Counts(nn.Module):
    """Counts its calls in a parameter or in a buffer, a new tensor each time: an old one torch itself refuses."""

    def __init__(self, where):
        super().__init__()
        self.line, self.where = nn.Linear(3, 3), where
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        with torch.no_grad():
            if self.where == "buffer":
                self.calls = self.calls + 1
            else:
                self.line.bias.add_(1)
        return self.line(x)


@pytest.mark.parametrize("where", ["buffer", "parameter", "spectral_norm"])
@pytest.mark.parametrize("micro_batch", [1, 8])
def test_a_model_that_changes_itself_as_it_runs_is_refused(where, micro_batch):
    model = spectral_norm(nn.Linear(3, 3)) if where == "spectral_norm" else Counts(where)
    step = PrivateStep(model, mse_loss, micro_batch=micro_batch, **GOOD)
    with pytest.raises(
        ValueError, match=r"(must stay the same|must not change parameters and buffers) .* how many examples"
    ):
        step(torch.ones(5, 3), torch.ones(5, 3))
    assert all(p.grad is None for p in model.parameters())


def test_buffers_that_stay_as_they_are_are_taken():
    model = spectral_norm(nn.Linear(3, 3)).eval()
    before = [buffer.clone() for buffer in model.buffers()]
    PrivateStep(model, mse_loss, **GOOD)(torch.ones(5, 3), torch.ones(5, 3))
    assert all(map(torch.equal, before, model.buffers()))


@pytest.mark.parametrize("change", ["replaced", "frozen", "added"])
def test_a_model_whose_parameters_changed_after_the_step_was_made_is_refused(change):
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    step = PrivateStep(model, mse_loss, **GOOD)
    if change == "replaced":
        model[1] = nn.Linear(3, 3)
    elif change == "frozen":
        model[1].requires_grad_(False)
    else:
        model.append(nn.Linear(3, 3))
    with pytest.raises(ValueError, match=r"other trainable parameters .* Make a new PrivateStep"):
        step(torch.ones(5, 3), torch.ones(5, 3))


def test_random_numbers_that_go_by_the_data_are_refused_when_they_are_switched_on_later_too():
    model = Chance(lambda x: torch.poisson(x.abs()) if model.training else 0.0).eval()
    step = PrivateStep(model, mse_loss, **GOOD)
    step(torch.ones(5, 3), torch.ones(5, 3))
    model.train()
    with pytest.raises(ValueError, match="must not use poisson"):
        step(torch.ones(5, 3), torch.ones(5, 3))
