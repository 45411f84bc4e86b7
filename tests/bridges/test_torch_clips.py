"""Clips by layer and clips that adapt: neighbours in exact integers, what is clipped, what is refused."""

from fractions import Fraction
from math import exp, inf, log

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy

import psidp
from psidp.bridges.torch import AdaptiveClip, PerLayerClip, PrivateStep, PrivateTrainer
from psidp.bridges.torch.step import adaptive_clip, places
from psidp.bridges.torch.step.adaptive_clip import shared
from psidp.bridges.torch.step.clipping import ClippedTotals

QUIET = 2.0**-90


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Small tensors, for which threads only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class Words(nn.Module):
    """A table that is read and multiplied with, a norm, two layers."""

    def __init__(self):
        super().__init__()
        self.words, self.norm = nn.Embedding(30, 12), nn.LayerNorm(12)
        self.body = nn.Sequential(nn.Linear(12, 20), nn.Tanh(), nn.Linear(20, 12))

    def forward(self, x):
        y = self.words(x)
        return ((y + self.body(self.norm(y))) @ self.words.weight.T).transpose(1, 2)


def images():
    return nn.Sequential(nn.Conv2d(3, 6, 3), nn.GroupNorm(2, 6), nn.ReLU(), nn.Flatten(), nn.Linear(6 * 16, 3))


def floats(*shape):
    return lambda n: (torch.randn(n, *shape), torch.randint(0, 3, (n,)))


MODELS = {
    "MLP": (lambda: nn.Sequential(nn.Linear(50, 40), nn.ReLU(), nn.Linear(40, 3)), floats(50)),
    "images": (images, floats(3, 6, 6)),
    "words": (Words, lambda n: (torch.randint(0, 30, (n, 7)), torch.randint(0, 30, (n, 7)))),
}


def hostile(x):
    """The same examples, some of them huge, tiny, infinite or NaN."""
    if x.is_floating_point():
        x = x.clone()
        for i, value in enumerate([1e38, 3e-42, float("nan"), float("inf"), 1e19, 0.0][: len(x)]):
            x[i].view(-1)[i] = value
    return x


# By layer


def bounds_for(model, how):
    layers = list(dict.fromkeys(name.rpartition(".")[0] for name, _ in model.named_parameters()))
    if how == "even":
        return PerLayerClip(1.0)
    return PerLayerClip({layer: 10.0 ** (1 - 3 * k / len(layers)) for k, layer in enumerate(layers)})


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("how", ["even", "uneven"])
@pytest.mark.parametrize("rows", [True, False], ids=["as is", "factors"])
def test_no_example_adds_more_to_a_layer_than_its_bound_nor_to_all_than_the_clip(name, how, rows, monkeypatch):
    if not rows:
        monkeypatch.setattr("psidp.bridges.torch.step.contribution.Factors.smaller_as_rows", False)
    torch.manual_seed(1)
    make, examples = MODELS[name]
    model, (x, y) = make(), examples(8)
    with torch.no_grad():
        for k, p in enumerate(model.parameters()):
            p.mul_(10.0 ** (k % 3 - 1))
    clip = bounds_for(model, how)
    step = PrivateStep(model, cross_entropy, clip=clip, noise_multiplier=1.0, expected_batch=8, micro_batch=8)
    totals, filled = step._totals(), 0
    unit, limits = Fraction(2) ** totals.unit, clip.layers(step.parameters)
    sizes = [p.numel() for p in step.parameters.values()]
    for given in (x, hostile(x)):
        for row in step.contributions(given, y):
            parts = dict(zip(step.parameters, row.split(sizes), strict=True))
            for layer, bound in totals.bounds.items():
                here = [k for p, part in parts.items() if clip.layer_of(p) == layer for k in part.tolist()]
                assert sum(k * k for k in here) <= bound**2
                assert bound * unit <= Fraction(limits[layer])
                filled += sum(k * k for k in here) > 0.98 * bound**2
            assert sum(k * k for k in row.tolist()) * unit**2 <= Fraction(step.clip) ** 2
    assert filled > 2  # bounds are reached, so that the test could fail


@pytest.mark.parametrize("name", MODELS)
def test_the_gradient_is_that_of_a_loop_that_clips_each_layer(name):
    torch.manual_seed(2)
    make, examples = MODELS[name]
    model, (x, y) = make(), examples(6)
    clip = bounds_for(model, "uneven")
    step = PrivateStep(model, cross_entropy, clip=clip, noise_multiplier=QUIET, expected_batch=6, micro_batch=3)
    step(x, y)
    limits = clip.layers(step.parameters)
    expected = {name: torch.zeros_like(p, dtype=torch.float64) for name, p in step.parameters.items()}
    for i in range(6):
        model_loss = cross_entropy(model(x[i : i + 1]), y[i : i + 1])
        found = dict(zip(step.parameters, torch.autograd.grad(model_loss, list(step.parameters.values())), strict=True))
        for layer, bound in limits.items():
            mine = [p for p in found if clip.layer_of(p) == layer]
            norm = float(sum(found[p].double().square().sum() for p in mine) ** 0.5)
            for p in mine:
                expected[p] += found[p].double() * min(1.0, bound / norm) / 6
    for p, value in step.parameters.items():
        assert torch.allclose(value.grad.double(), expected[p], atol=2e-4 * float(expected[p].norm()))


def test_what_is_undefined_in_one_layer_adds_nothing_to_any():
    class Half(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(2, 1), nn.Linear(2, 1)

        def forward(self, x):
            return self.one(x[:, :2]) + self.two(x[:, 2:])

    def loss(y, target):
        return (y * target).sum()

    step = PrivateStep(Half(), loss, clip=PerLayerClip(1.0), noise_multiplier=1.0, expected_batch=2, slots=0)
    x = torch.ones(3, 4)
    x[0, 3] = float("inf")
    found = step.contributions(x, torch.ones(3, 1))
    assert not found[0].any()
    assert found[1].all()
    step(x, torch.ones(3, 1))
    assert step.undefined == 1


class Kept:
    """The totals of a step as they come to correlated noise."""

    fineness = 20

    def __init__(self):
        self.totals = []

    def __call__(self, totals, sigma):
        self.totals.append((totals.clone(), sigma))
        return totals.double()


def test_totals_of_layers_meet_correlated_noise_in_one_unit_and_in_the_order_of_the_parameters():
    torch.manual_seed(3)
    make, examples = MODELS["MLP"]
    model, (x, y) = make(), examples(6)
    noise, clip = Kept(), PerLayerClip({"2.bias": 0.25, "0": 0.5, "": 2.0})
    step = PrivateStep(
        model, cross_entropy, clip=clip, noise_multiplier=3.0, expected_batch=6, slots=0, micro_batch=6, noise=noise
    )
    step(x, y)
    totals, sigma = noise.totals[0]
    assert totals.tolist() == step.contributions(x, y).sum(0).tolist()
    assert Fraction(sigma) * Fraction(2) ** step._totals().unit >= 3 * Fraction(step.clip)
    assert step._totals().bounds.keys() == {"0", "", "2.bias"}


def test_layers_are_found_by_their_longest_name():
    clip = PerLayerClip({"body": 3.0, "body.0": 4.0, "": 12.0})
    assert [clip.layer_of(name) for name in ("body.0.weight", "body.1.weight", "bodywork", "head.bias")] == [
        "body.0", "body", "", "",
    ]  # fmt: skip
    assert clip.norm == 13.0
    assert psidp.bridges.torch.PerLayerClip({"a": 0.1, "b": 0.1}).norm ** 2 >= 0.02


@pytest.mark.parametrize(
    ("bounds", "sentence"),
    [
        ({}, "must name a layer"),
        ({0: 1.0}, "must be by names, got int"),
        ({"0": float("nan")}, "clip .* must be in"),
        (-1.0, "clip .* must be in"),
        ({"0": 1.0}, "none covers 2.weight"),
        ({"": 1.0, "1": 1.0}, '"1" has no parameter'),
        ({"": 1.0, "0": 1e-6}, "nothing of this layer would be left"),
        (2.0**-100, r"clip .* must be in \[2\^-100"),
    ],
)
def test_bounds_that_no_model_can_have_are_refused(bounds, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        PrivateStep(
            MODELS["MLP"][0](), cross_entropy, clip=PerLayerClip(bounds), noise_multiplier=1.0, expected_batch=4
        )


# Adaptive


@pytest.fixture
def joint(monkeypatch):
    """What every step released, before the noise, and how much noise there was: totals and count."""
    kept = []

    def noisy(self, sigma):
        kept.append([self.units.tolist(), sigma])
        return original(self, sigma)

    def counted(tensor, sigma):
        kept[-1] += [int(tensor), sigma]
        return tensor

    original = ClippedTotals.noisy
    monkeypatch.setattr(ClippedTotals, "noisy", noisy)
    monkeypatch.setattr(adaptive_clip, "add_noise_", counted)
    return kept


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("clip", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("rows", [True, False], ids=["as is", "factors"])
def test_neighbouring_draws_move_totals_and_count_by_the_joint_bound_at_most(name, clip, rows, joint, monkeypatch):
    if not rows:
        monkeypatch.setattr("psidp.bridges.torch.step.contribution.Factors.smaller_as_rows", False)
    monkeypatch.setattr(places, "order", lambda total, slots: np.arange(total))
    torch.manual_seed(4)
    make, examples = MODELS[name]
    model, (x, y) = make(), examples(6)
    z, nearest = 1.3, Fraction(0)

    def released(x, y):
        step = PrivateStep(
            model, cross_entropy, clip=AdaptiveClip(initial=clip), noise_multiplier=z, expected_batch=6, micro_batch=1
        )
        step(x, y)
        return joint[-1]

    x = hostile(x) if rows else x
    everyone = released(x, y)
    for i in range(6):
        others = released(*(torch.cat([t[:i], t[i + 1 :]]) for t in (x, y)))
        assert others[1::2] == everyone[1::2]
        totals = sum((a - b) ** 2 for a, b in zip(everyone[0], others[0], strict=True))
        psi = (
            Fraction(totals) / Fraction(everyone[1]) ** 2
            + Fraction(everyone[2] - others[2]) ** 2 / Fraction(everyone[3]) ** 2
        )
        assert psi <= Fraction(z) ** -2
        nearest = max(nearest, psi)
    assert clip > 1 or nearest > 0.99 * Fraction(z) ** -2


@pytest.mark.parametrize("share", [1e-6, 0.02, 0.3, 0.999])
def test_noise_on_gradients_and_on_the_count_is_together_that_of_the_account(share):
    for z in (2.0**-100, 0.3, 1.0, 1.7, 50.0, 2.0**100):
        gradients, count = map(Fraction, shared(z, share))
        together = gradients**-2 + count**-2
        assert (1 - Fraction(2) ** -40) * Fraction(z) ** -2 <= together <= Fraction(z) ** -2


def test_gradients_have_the_larger_noise_and_the_account_the_joint_one():
    step = PrivateStep(
        nn.Linear(3, 2), cross_entropy, clip=AdaptiveClip(initial=2.0, share=0.19), noise_multiplier=1.0,
        expected_batch=8,
    )  # fmt: skip
    unit = step._totals().unit
    assert step.noise_multiplier == 1.0
    assert step._sigma * 2.0**unit == pytest.approx(2.0 / 0.9, rel=1e-12)


class Scaled(nn.Module):
    """One weight, whose gradient is the example itself."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))

    def forward(self, x):
        return self.weight * x


def product(output, target):
    return (output * target).sum()


def following(norms, clip, micro_batch=4, noise_multiplier=QUIET, slots=None):
    step = PrivateStep(
        Scaled(), product, clip=clip, noise_multiplier=noise_multiplier, expected_batch=len(norms),
        micro_batch=micro_batch, slots=slots,
    )  # fmt: skip
    return step, (torch.tensor(norms)[:, None], torch.ones(len(norms), 1))


def test_a_step_moves_the_clip_by_the_share_that_was_within_it():
    step, draw = following([0.1, 0.2, 0.3, 5.0], AdaptiveClip(quantile=0.5, initial=1.0, rate=0.2))
    step(*draw)
    assert step.clip == pytest.approx(exp(-0.2 * (0.75 - 0.5)), rel=1e-12)
    step, draw = following([2.0, 3.0, 4.0, 5.0], AdaptiveClip(quantile=0.5, initial=1.0, rate=0.2))
    step(*draw)
    assert step.clip == pytest.approx(exp(0.1), rel=1e-12)


def test_empty_places_and_undefined_examples_do_not_count(joint):
    for micro_batch, slots in ((1, 0), (4, None), (3, 40), (16, None)):
        step, draw = following([0.1, 0.2, 0.3, 5.0, 7.0], AdaptiveClip(), micro_batch, slots=slots)
        step(*draw)
        assert joint[-1][2] == 3 - 2
        draw[0][0], draw[0][4] = float("nan"), float("inf")
        step(*draw)
        assert joint[-1][2] == 2 - 1
        assert step.undefined == 2
        step(draw[0][:0], draw[1][:0])
        assert joint[-1][2] == 0


@pytest.mark.parametrize("quantile", [0.2, 0.5, 0.9])
def test_the_clip_comes_to_the_quantile_and_stays_there(quantile):
    """After 200 steps of noise: the logarithm's spread is about 0.03, the limit ten times that."""
    norms = np.exp(np.random.default_rng(5).normal(size=256)).astype(np.float32)
    step, draw = following(norms.tolist(), AdaptiveClip(quantile=quantile, initial=30.0), 256, 1.0, slots=0)
    clips = []
    for _ in range(200):
        step(*draw)
        clips.append(log(step.clip))
    assert abs(np.mean(clips[-40:]) - log(np.quantile(norms, quantile))) < 0.3
    step, draw = following(norms.tolist(), AdaptiveClip(quantile=quantile, rate=0.01, initial=30.0), 256, 1.0, slots=0)
    step(*draw)
    assert step.clip > 20.0  # a rate that is too small would be seen


def test_however_wild_the_count_a_step_moves_the_clip_little_and_never_out_of_range():
    step, draw = following([1.0], AdaptiveClip(initial=1.0, rate=1e9, share=1e-6), noise_multiplier=1e3)
    for _ in range(60):
        before = step.clip
        step(*draw)
        assert exp(-0.701) < step.clip / before < exp(0.701)
    step.clip = 1e300
    assert step.clip == 2.0**40
    step, _ = following([1.0], AdaptiveClip(initial=2.0**-99))
    step.clip = 1e-300
    assert step.clip == 2.0**-100
    assert len(step.contributions(torch.ones(1, 1), torch.ones(1, 1))) == 1


def trainer(clip, **more):
    torch.manual_seed(6)
    model, x = nn.Linear(3, 2), torch.randn(60, 3)
    return PrivateTrainer(
        model, torch.optim.SGD(model.parameters(), lr=0.1), cross_entropy, (x, (x[:, 0] > 0).long()),
        sampling_rate=0.25, clip=clip, **({"steps": 8, "epsilon": 3.0} | more),
    )  # fmt: skip


def test_an_adaptive_run_costs_what_it_would_and_its_card_says_what_was_clipped():
    clip = AdaptiveClip(initial=0.25)
    made, plain = trainer(clip), trainer(1.0)
    assert made.run == plain.run
    training = made.fit()
    assert training.epsilon == plain.training.epsilon
    assert training.clip == clip
    assert made.clip not in (0.25, training.clip)
    card = psidp.card(training, title="adaptive")
    assert "follows their 0.5-quantile, from 0.25 on" in card.scope.contribution_bound
    assert card.mechanism.sensitivity is None
    layered = psidp.card(trainer(PerLayerClip(2.0)).fit(), title="by layer")
    assert "layer by layer, all layers together to norm 2" in layered.scope.contribution_bound


def test_a_run_goes_on_with_the_clip_where_it_stopped_and_with_no_other_choice(tmp_path):
    path, clip = tmp_path / "run.pt", AdaptiveClip(initial=0.5)
    first = trainer(clip, checkpoint=path)
    first.fit(epochs=1)
    again = trainer(clip, checkpoint=path)
    assert again.clip == first.clip != 0.5
    for other in (1.0, 0.5, AdaptiveClip(initial=0.5, quantile=0.6), PerLayerClip(0.5)):
        with pytest.raises(ValueError, match=r"clip \(.*\) must be that of the run in run\.pt"):
            trainer(other, checkpoint=path)
    assert again.fit().finished
    path = tmp_path / "layers.pt"
    trainer(PerLayerClip({"weight": 1.0, "": 0.5}), checkpoint=path).fit(epochs=1)
    with pytest.raises(ValueError, match=r"clip \(.*\) must be that"):
        trainer(PerLayerClip({"weight": 0.5, "": 1.0}), checkpoint=path)
    assert trainer(PerLayerClip({"weight": 1.0, "": 0.5}), checkpoint=path).fit().finished


def test_layers_go_with_bands_and_a_fixed_order_and_adaptive_clips_do_not():
    assert trainer(PerLayerClip(1.0), bands=2).fit().finished
    fixed = {"order": "fixed", "epochs": 1, "steps": None, "epsilon": 3.0}
    assert trainer(PerLayerClip(1.0), **fixed).fit().finished
    for more in ({"bands": 2}, fixed):
        with pytest.raises(ValueError, match=r"got an AdaptiveClip: noise of one step is taken back in later ones"):
            trainer(AdaptiveClip(), **more)


@pytest.mark.parametrize(
    "settings",
    [{"quantile": 1.1}, {"initial": 0.0}, {"rate": inf}, {"share": 1.0}, {"share": float("nan")}, {"initial": 1e-40}],
)
def test_settings_that_make_no_sense_are_refused(settings):
    with pytest.raises(ValueError, match=r"must be in"):
        AdaptiveClip(**settings)


def test_a_clip_that_does_not_adapt_stays():
    step = PrivateStep(nn.Linear(2, 2), cross_entropy, clip=1.0, noise_multiplier=1.0, expected_batch=2)
    with pytest.raises(AttributeError, match="must stay as it is"):
        step.clip = 2.0


def test_gradients_have_the_noise_of_the_first_clip_wherever_the_clip_is():
    """Fails with chance below 1e-6: 40,000 draws have a deviation within 2.5 % of the truth."""
    model = nn.Linear(200, 200, bias=False)
    step = PrivateStep(
        model,
        nn.functional.mse_loss,
        clip=AdaptiveClip(initial=0.5, share=0.02),
        noise_multiplier=2.0,
        expected_batch=5,
    )
    for clip in (0.5, 7.0, 0.01):
        step.clip = clip
        model.zero_grad()
        step(torch.zeros(0, 200), torch.zeros(0, 200))
        assert float(model.weight.grad.std()) == pytest.approx(2.0 * 0.5 / 5 / 0.98**0.5, rel=0.025)


def test_an_adaptive_clip_with_its_defaults_trains_a_small_cnn_as_a_flat_clip_does():
    """Norms grow to ten before they fall: noise that grew with them left 10 % right here, and 47 and 68 % elsewhere."""
    x, y = load_digits(return_X_y=True)
    x, y = torch.tensor(x / 16.0, dtype=torch.float32).view(-1, 1, 8, 8), torch.tensor(y)
    torch.manual_seed(0)
    layers = [nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU()]
    model = nn.Sequential(*layers, nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128, 10))
    PrivateTrainer(
        model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), cross_entropy, (x[:1437], y[:1437]),
        sampling_rate=64 / 1437, clip=AdaptiveClip(), epochs=4, epsilon=4.0,
    ).fit()  # fmt: skip
    assert float((model(x[1437:]).argmax(1) == y[1437:]).float().mean()) > 0.7
