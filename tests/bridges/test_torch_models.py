"""The step's one pass against a loop over single examples, on the kinds of models that people train."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, gelu, scaled_dot_product_attention
from torch.nn.utils.parametrizations import weight_norm

from psidp.bridges.torch import PrivateStep
from psidp.bridges.torch.step.clipping import ClippedTotals
from psidp.bridges.torch.step.contribution import UNFOLDED, Contribution, Factors

QUIET = 2.0**-90


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Small tensors, for which threads only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class Block(nn.Module):
    """Attention and two layers; eager, or by torch's fused attention."""

    def __init__(self, width=16, fused=False):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(2)])
        self.mixed, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.fused = fused

    def forward(self, x):
        q, k, v = (y.unflatten(-1, (2, -1)).transpose(1, 2) for y in self.mixed(self.norms[0](x)).chunk(3, -1))
        if self.fused:
            seen = scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
            seen = (q @ k.transpose(-1, -2)).masked_fill(later, float("-inf")).softmax(-1) @ v
        x = x + self.out(seen.transpose(1, 2).flatten(2))
        return x + self.down(gelu(self.up(self.norms[1](x))))


class Language(nn.Module):
    """Words, places, blocks, and a head that may be the table of words again."""

    def __init__(self, tied, fused=False, turned=False):
        super().__init__()
        self.words, self.places = nn.Embedding(30, 16), nn.Embedding(9, 16)
        self.blocks = nn.Sequential(Block(fused=fused), Block(fused=fused))
        self.head = nn.Linear(16, 30, bias=False)
        if tied:
            self.head.weight = self.words.weight

    def forward(self, x):
        y = self.words(x) + self.places(torch.arange(x.shape[1]))
        return self.head(self.blocks(y)).transpose(1, 2)


class Recurrent(nn.Module):
    """An LSTM or a GRU, and a head."""

    def __init__(self, kind, **settings):
        super().__init__()
        self.inner = kind(6, 5, batch_first=True, **settings)
        self.head = nn.Linear(10 if settings.get("bidirectional") else 5, 3)

    def forward(self, x):
        return self.head(self.inner(x)[0][:, -1])


class Twice(nn.Module):
    """One layer used three times, and one convolution used twice."""

    def __init__(self):
        super().__init__()
        self.conv, self.line, self.head = nn.Conv2d(2, 2, 3, padding=1), nn.Linear(72, 72), nn.Linear(72, 3)

    def forward(self, x):
        y = self.conv(torch.relu(self.conv(x))).flatten(1)
        for _ in range(3):
            y = torch.tanh(self.line(y))
        return self.head(y)


class Bag(nn.Module):
    """Means of word vectors."""

    def __init__(self, mode):
        super().__init__()
        self.words, self.head = nn.EmbeddingBag(200, 8, mode=mode, padding_idx=3), nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.words(x))


class Bare(nn.Module):
    """Parameters of its own: a class token, places, a scale, a matrix used from both sides."""

    def __init__(self):
        super().__init__()
        self.token, self.places = nn.Parameter(torch.randn(1, 1, 6)), nn.Parameter(torch.randn(1, 5, 6))
        self.scale, self.matrix = nn.Parameter(torch.tensor(0.7)), nn.Parameter(torch.randn(6, 6) / 3)
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        y = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.places
        return self.head(((y @ self.matrix) @ self.matrix.T * self.scale).mean(1))


class Adapted(nn.Module):
    """A frozen layer with an adapter of low rank beside it."""

    def __init__(self):
        super().__init__()
        self.base = nn.Linear(40, 30).requires_grad_(False)
        self.down, self.up = nn.Linear(40, 2, bias=False), nn.Linear(2, 30, bias=False)
        self.head = nn.Linear(30, 3).requires_grad_(False)

    def forward(self, x):
        return self.head(torch.relu(self.base(x) + self.up(self.down(x))))


class Residual(nn.Module):
    """Two convolutions with group norms, past which the input goes by a convolution of its own."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Conv2d(3, 6, 3, 2, 1, bias=False), nn.Conv2d(6, 6, 3, 1, 1, bias=False)
        self.norms, self.past = nn.ModuleList([nn.GroupNorm(3, 6) for _ in range(2)]), nn.Conv2d(3, 6, 1, 2, bias=False)
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        inner = torch.relu(self.norms[0](self.one(x)))
        return self.head(torch.relu(self.norms[1](self.two(inner)) + self.past(x)).mean((2, 3)))


class Patches(nn.Module):
    """A small ViT: patches of an image, a class token, places, attention."""

    def __init__(self):
        super().__init__()
        self.patch, self.token = nn.Conv2d(3, 12, 4, 4), nn.Parameter(torch.randn(1, 1, 12) / 4)
        self.places, self.body = nn.Parameter(torch.randn(1, 5, 12) / 4), encoder()[0]
        self.norm, self.head = nn.LayerNorm(12), nn.Linear(12, 3)

    def forward(self, x):
        y = self.patch(x).flatten(2).transpose(1, 2)
        y = torch.cat([self.token.expand(len(x), -1, -1), y], 1) + self.places
        return self.head(self.norm(self.body(y)[:, 0]))


def images():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, 2, 1), nn.GroupNorm(2, 8), nn.ReLU(), nn.Conv2d(8, 8, 3, padding="same", groups=2),
        nn.ReLU(), nn.Conv2d(8, 40, 3, 2, dilation=1, bias=False), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(40, 3),
    )  # fmt: skip


def line():
    return nn.Sequential(
        nn.Conv1d(3, 5, 3, 2, 1, 2), nn.ReLU(), nn.ConvTranspose1d(5, 4, 3), nn.Flatten(), nn.Linear(24, 3)
    )


def encoder():
    layer = nn.TransformerEncoderLayer(12, 2, 24, dropout=0.0, batch_first=True)
    return nn.Sequential(layer, nn.Flatten(), nn.Linear(60, 3))


def floats(*shape):
    return lambda n: (torch.randn(n, *shape), torch.randint(0, 3, (n,)))


def words(n):
    return torch.randint(0, 30, (n, 9)), torch.randint(0, 30, (n, 9))


MODELS = {
    "MLP": (lambda: nn.Sequential(nn.Linear(50, 40), nn.ReLU(), nn.Linear(40, 3)), floats(50)),
    "CNN and GroupNorm": (images, floats(3, 12, 12)),
    "ResNet": (Residual, floats(3, 8, 8)),
    "ViT": (Patches, floats(3, 8, 8)),
    "1-d": (line, floats(3, 9)),
    "LSTM": (lambda: Recurrent(nn.LSTM, num_layers=2), floats(4, 6)),
    "GRU": (lambda: Recurrent(nn.GRU, bidirectional=True), floats(4, 6)),
    "encoder": (encoder, floats(5, 12)),
    "GPT, tied": (lambda: Language(True), words),
    "GPT, untied": (lambda: Language(False), words),
    "GPT, fused": (lambda: Language(True, fused=True), words),
    "used several times": (Twice, floats(2, 6, 6)),
    "bag, mean": (lambda: Bag("mean"), lambda n: (torch.randint(0, 200, (n, 7)), torch.randint(0, 3, (n,)))),
    "bag, sum": (lambda: Bag("sum"), lambda n: (torch.randint(0, 200, (n, 7)), torch.randint(0, 3, (n,)))),
    "bare parameters": (Bare, floats(4, 6)),
    "adapters": (Adapted, floats(40)),
    "weight_norm": (lambda: nn.Sequential(weight_norm(nn.Linear(20, 10)), nn.Linear(10, 3)), floats(20)),
    "3-d": (lambda: nn.Sequential(nn.Conv3d(2, 3, 2), nn.Flatten(), nn.Linear(24, 3)), floats(2, 3, 3, 3)),
}


def one_by_one(model, x, y, clip):
    """The clipped mean, from a loop."""
    trained = [p for p in model.parameters() if p.requires_grad]
    total = [torch.zeros_like(p, dtype=torch.float64) for p in trained]
    for i in range(len(x)):
        found = torch.autograd.grad(cross_entropy(model(x[i : i + 1]), y[i : i + 1]), trained, allow_unused=True)
        found = [torch.zeros_like(p) if g is None else g for g, p in zip(found, trained, strict=True)]
        norm = float(sum(g.double().square().sum() for g in found) ** 0.5)
        total = [t + g.double() * min(1.0, clip / norm) / len(x) for t, g in zip(total, found, strict=True)]
    return total


def agree(model, x, y, clip, within, settings=None):
    step = PrivateStep(
        model, cross_entropy, clip=clip, noise_multiplier=QUIET, expected_batch=len(x), slots=0, **(settings or {})
    )
    step(x, y)
    expected = one_by_one(model, x, y, clip)
    got = [p.grad.double() for p in step.parameters.values()]
    gap = sum((a - b).square().sum() for a, b in zip(got, expected, strict=True)) ** 0.5
    size = sum(b.square().sum() for b in expected) ** 0.5
    assert float(gap / size) < within
    return step


WAYS = ["as is", "factors", "formed twice"]


def take(way, monkeypatch):
    """A way that a GPU takes where factors are smaller than gradients, for every layer."""
    if way != "as is":
        monkeypatch.setattr("psidp.bridges.torch.step.contribution.Factors.smaller_as_rows", False)
    if way == "formed twice":
        monkeypatch.setattr("psidp.bridges.torch.step.contribution.Factors.twice", True)
        monkeypatch.setitem(UNFOLDED, "cpu", 64)  # a few examples at a time


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("clip", [0.1, 50.0])
@pytest.mark.parametrize("way", WAYS)
def test_the_gradient_is_that_of_a_loop_over_examples(name, clip, way, monkeypatch):
    take(way, monkeypatch)
    torch.manual_seed(7)
    make, examples = MODELS[name]
    agree(make(), *examples(6), clip, 3e-4 if clip > 1 else 5e-5, {"micro_batch": 3})


@pytest.mark.parametrize("name", ["MLP", "GPT, tied", "GRU", "CNN and GroupNorm"])
def test_gradients_that_a_gpu_keeps_are_those_of_a_loop_too(name):
    torch.manual_seed(10)
    make, examples = MODELS[name]
    model, (x, y) = make(), examples(6)
    step = PrivateStep(model, cross_entropy, clip=0.1, noise_multiplier=QUIET, expected_batch=6, slots=0)
    step._as_rows = True
    step(x, y)
    expected = one_by_one(model, x, y, 0.1)
    for p, e in zip(step.parameters.values(), expected, strict=True):
        assert torch.allclose(p.grad.double(), e, atol=1e-5)


@pytest.mark.parametrize("name", ["MLP", "GPT, tied", "CNN and GroupNorm", "LSTM"])
def test_under_autocast_the_gradient_is_that_of_a_loop_to_the_precision_of_bfloat16(name):
    torch.manual_seed(8)
    make, examples = MODELS[name]
    model, (x, y) = make(), examples(6)
    with torch.autocast("cpu", torch.bfloat16):
        agree(model, x, y, 0.1, 0.1)


def test_a_gradient_that_grows_when_it_is_formed_again_is_never_released(monkeypatch):
    """Its norm was taken the first time: nothing is known of another."""
    take("formed twice", monkeypatch)
    torch.manual_seed(15)
    model, (x, y) = MODELS["CNN and GroupNorm"][0](), MODELS["CNN and GroupNorm"][1](6)
    step = PrivateStep(model, cross_entropy, clip=0.1, noise_multiplier=1.0, expected_batch=6, slots=0)
    step(x, y)
    before = [p.grad.clone() for p in step.parameters.values()]
    formed, calls = Factors.formed, []

    def grown(self):
        calls.append(self)
        growth = 1.0 + 1e-6 * (calls.count(self) > 1)
        return ((part, rows * growth) for part, rows in formed(self))

    monkeypatch.setattr(Factors, "formed", grown)
    with pytest.raises(ArithmeticError, match="another gradient when it was formed again"):
        step(x, y)
    assert all(torch.equal(p.grad, g) for p, g in zip(step.parameters.values(), before, strict=True))


def test_a_compiled_model_is_trained_as_it_is():
    torch.manual_seed(9)
    model, (x, y) = MODELS["MLP"][0](), MODELS["MLP"][1](6)
    agree(torch.compile(model, backend="eager"), x, y, 0.1, 5e-5)


def hostile(model, x, rng):
    """The same examples, and some of them huge, tiny, NaN or infinite, also as the model's own layers see them."""
    values = [1e38, 3e-42, float("nan"), float("inf"), 1e19, 0.0, -1e-30, 1e5]
    if x.is_floating_point():
        x = x.clone()
        for i, value in enumerate(values[: len(x)]):
            x[i].view(-1)[int(rng.integers(x[i].numel()))] = value
    return x


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("clip", [1e-7, 1.0, 1e9])
def test_no_example_adds_more_than_the_clip_in_integers(name, way, clip, monkeypatch):
    take(way, monkeypatch)
    torch.manual_seed(11)
    make, examples = MODELS[name]
    model, (x, y) = make(), examples(8)
    rng = np.random.default_rng(12)
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(10.0 ** rng.integers(-3, 3))
    step = PrivateStep(model, cross_entropy, clip=clip, noise_multiplier=1.0, expected_batch=8, micro_batch=8)
    found, bound = step.contributions(hostile(model, x, rng), y).tolist(), step._totals().bound
    assert Fraction(bound) * Fraction(2) ** step._totals().unit <= Fraction(clip)
    for row in found:
        assert sum(k * k for k in row) <= bound**2
    together = step._totals()
    seed = bytes(24)
    recorded = step._recorded(hostile(model, x, np.random.default_rng(1)), y, seed)
    together.add_contributions(list(recorded.contributions.values()), torch.ones(8, dtype=torch.bool))
    apart = step.contributions(hostile(model, x, np.random.default_rng(1)), y, seed=seed)
    assert torch.equal(together.units, apart.sum(0))


@pytest.mark.parametrize("name", [name for name in MODELS if name != "GPT, fused"])
def test_an_example_adds_the_same_integers_in_any_company(name, monkeypatch):
    monkeypatch.setattr("psidp.bridges.torch.step.contribution.Factors.smaller_as_rows", False)
    torch.manual_seed(13)
    make, examples = MODELS[name]
    model, (x, y), (other, label) = make(), examples(5), examples(5)
    step = PrivateStep(model, cross_entropy, clip=0.1, noise_multiplier=1.0, expected_batch=5, micro_batch=5)
    other = hostile(model, other, np.random.default_rng(3))
    other[2], label[2] = x[2], y[2]
    one, two = (step.contributions(*pair, seed=bytes(24))[2] for pair in ((x, y), (other, label)))
    assert torch.equal(one, two)
    assert bool(one.any())


@pytest.mark.parametrize("tokens", [1, 2, 7])
@pytest.mark.parametrize("seed", range(12))
def test_factors_of_any_size_stay_inside_the_bound_and_fill_it(tokens, seed):
    rng = np.random.default_rng([tokens, seed])
    n, columns, rows, clip = 6, int(rng.integers(1, 40)), int(rng.integers(1, 40)), float(10.0 ** rng.integers(-6, 6))
    parameter = nn.Parameter(torch.zeros(rows, columns))
    c = Contribution(parameter, n)
    a, b = (rng.normal(size=(n, tokens, k)) * 10.0 ** rng.integers(-20, 18, (n, 1, 1)) for k in (columns, rows))
    a, b = torch.from_numpy(a).float(), torch.from_numpy(b).float()
    b[0, 0, 0], a[1, 0, 0], b[2], a[3] = float("nan"), float("inf"), b[2] * 1e-30, a[3].abs().max()
    if tokens > 1:
        b[4, 1], a[4, 1] = -b[4, 0], a[4, 0] * (1 + 2.0**-20)  # all but a little cancels
    c.factors = [Factors(a, b)]
    c.finish = lambda: None
    for i in range(n):
        totals = ClippedTotals([parameter], clip, fineness=40, places=1000)
        totals.add_contributions([c], torch.arange(n) == i)
        weight = sum(k * k for k in totals.units.tolist())
        assert weight <= totals.bound**2
        norm = float((b[i].double().T @ a[i].double()).norm())
        assert i > 1 or weight == 0
        if norm > clip and i in (2, 3, 5):
            assert weight > 0.98 * totals.bound**2


def test_the_step_names_the_parameters_that_no_faster_way_covers():
    torch.manual_seed(3)
    make, examples = MODELS["bare parameters"]
    step = PrivateStep(make(), cross_entropy, clip=1.0, noise_multiplier=1.0, expected_batch=5)
    assert step.copied == []
    step(*examples(5))
    assert step.copied == ["token", "places", "scale", "matrix"]
    make, examples = MODELS["GPT, tied"]
    step = PrivateStep(make(), cross_entropy, clip=1.0, noise_multiplier=1.0, expected_batch=5)
    step(*examples(5))
    assert step.copied == []


class Deciding(nn.Module):
    """Looks at its input before it decides."""

    def __init__(self, how):
        super().__init__()
        self.line, self.how = nn.Linear(3, 3), how

    def forward(self, x):
        return self.how(self.line(x))


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        (lambda y: y if y.sum() > 0 else -y, r"inner \(Deciding\) must not decide by the values of its input"),
        (lambda y: y * y.max().item(), r"inner \(Deciding\) must not read values out of its input"),
        (lambda y: y[y > 0].sum() + y, r"inner \(Deciding\) makes tensors whose size depends on the values"),
    ],
)
def test_what_vmap_cannot_split_is_refused_by_module(how, sentence):
    model = nn.Sequential()
    model.add_module("inner", Deciding(how))
    step = PrivateStep(model, cross_entropy, clip=1.0, noise_multiplier=1.0, expected_batch=5)
    with pytest.raises(ValueError, match=sentence):
        step(torch.randn(5, 3), torch.zeros(5, dtype=torch.long))


@pytest.mark.parametrize("name", ["GPT, tied", "CNN and GroupNorm"])
def test_without_torchs_inner_functions_the_gradient_is_the_same(name, monkeypatch):
    torch.manual_seed(14)
    make, examples = MODELS[name]
    model, (x, y) = make(), examples(4)
    step = PrivateStep(model, cross_entropy, clip=0.1, noise_multiplier=1.0, expected_batch=4)
    quick = step.contributions(x, y)
    monkeypatch.setattr("psidp.bridges.torch.step.recording.lowered", None)
    assert torch.equal(step.contributions(x, y), quick)
