"""Correlated noise: what it costs in time and memory, and what it is worth in accuracy, at equal certified epsilon.

Also a script of its own: python bench/correlated.py [overhead] [gpu] [training], wherever torch is.
"""

import sys
from collections.abc import Callable
from math import sqrt
from pathlib import Path
from typing import Any, NamedTuple

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "src")]

import numpy as np

from bench.device import milliseconds, named
from bench.timing import Report, interleave

NANOSECONDS, BYTES, SLOWER = 60.0, 28.0, 1.1
PARAMETERS, BANDS, CLIP, DELTA = 10**6, 8, 1.0, 1e-5
SEEDS = 5
RATES = (0.03, 0.1, 0.3, 1.0, 3.0)
ADAM = (0.001, 0.003, 0.01, 0.03, 0.1)


def run(full: bool, seed: int) -> list[Report]:
    """Time and memory; with --full the trainings too, some minutes each."""
    import torch

    reports = [overhead(seed)]
    if torch.cuda.is_available():
        reports.append(gpu(seed))
    return [*reports, training(seed)] if full else reports


def overhead(seed: int) -> Report:
    """Noise of 8 bands beside independent noise on a million totals, one thread."""
    import torch

    from psidp.bridges.torch.noise.tensors import add_noise_
    from psidp.bridges.torch.training.correlated import CorrelatedNoise
    from psidp.strategies import ModelError

    torch.set_num_threads(1)
    report = Report(f"Correlated noise of {BANDS} bands on {PARAMETERS:,} totals, one core")
    totals = torch.from_numpy(np.random.default_rng(seed).integers(-(2**30), 2**30, PARAMETERS))
    noise = CorrelatedNoise(ModelError().strategy(2000, BANDS), PARAMETERS, torch.device("cpu"), 1.0)
    steps = iter(range(2000))

    def correlated() -> None:
        noise.at(next(steps))
        noise(totals.clone(), 2.0**24)

    def independent() -> None:
        add_noise_(totals.to(torch.float64), 2.0**24)

    for _ in range(BANDS):
        correlated()
    best = interleave({"correlated": correlated, "independent": independent}, rounds=20)
    each = {name: seconds / PARAMETERS * 1e9 for name, seconds in best.items()}
    report.add("independent", each["independent"], "ns a parameter")
    report.add("correlated", each["correlated"], "ns a parameter")
    report.add("overhead", each["correlated"] - each["independent"], "ns a parameter", at_most=NANOSECONDS)
    report.add("memory", noise._ring.numel() * 4 / PARAMETERS, "bytes a parameter", at_most=BYTES)
    return report


def gpu(seed: int) -> Report:
    """Whole steps of a transformer of 100 M parameters, with and without 8 bands."""
    import torch

    from bench.gpu_step import settings
    from psidp.bridges.torch import PrivateStep
    from psidp.bridges.torch.training.correlated import CorrelatedNoise
    from psidp.strategies import ModelError

    torch.manual_seed(seed)
    report = Report(f"A step with {BANDS} bands beside a plain one ({torch.cuda.get_device_name()})")
    name, (model, examples, micro, draw) = list(settings(torch).items())[-1]
    size = sum(p.numel() for p in model.parameters())
    inputs, targets = examples(draw)
    loss, some = torch.nn.functional.cross_entropy, {"clip": CLIP, "noise_multiplier": 1.1, "expected_batch": draw}
    noise = CorrelatedNoise(ModelError().strategy(2000, BANDS), size, torch.device("cuda"), 1.1)
    plain = PrivateStep(model, loss, micro_batch=micro, slots=0, **some)  # type: ignore[arg-type]
    banded = PrivateStep(model, loss, micro_batch=micro, slots=0, noise=noise, **some)  # type: ignore[arg-type]
    steps = iter(range(2000))

    def correlated() -> None:
        noise.at(next(steps))
        banded(inputs, targets)

    def independent() -> None:
        plain(inputs, targets)

    times: dict[str, list[float]] = {"correlated": [], "independent": []}
    for turn in range(BANDS + 8):
        for kind, call in (("independent", independent), ("correlated", correlated)):
            took = milliseconds(torch, call)
            times[kind] += [took] if turn >= BANDS else []
    found = {kind: float(np.median(values)) for kind, values in times.items()}
    report.say(name, f"{size / 1e6:.1f} M parameters, draw of {draw} in micro-batches of {micro}")
    report.add("independent", found["independent"], "ms")
    report.add("correlated", found["correlated"], "ms")
    report.add("correlated over independent", found["correlated"] / found["independent"], "x", at_most=SLOWER)
    return report


class Setting(NamedTuple):
    """Data, length and target of one comparison."""

    name: str
    data: Callable[[], Any]
    steps: int
    epochs: int
    epsilon: float
    optimizer: str = "SGD"


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


def training(seed: int, settings: list[Setting] = SETTINGS) -> Report:
    """Logistic regression: accuracy on the test part, the rate chosen on the validation part, by the same protocol."""
    import torch

    torch.set_num_threads(1)
    report = Report(f"Accuracy at equal certified epsilon, delta {DELTA:g}: mean of {SEEDS} runs (standard deviation)")
    for setting in settings:
        data = setting.data()
        rate = setting.epochs / setting.steps
        told = f"{setting.name}, {setting.steps} steps, {setting.epochs} epochs, epsilon {setting.epsilon:g}"
        report.say(f"{told}, {setting.optimizer}", "")
        print(f"{told}, {setting.optimizer}", file=sys.stderr, flush=True)
        for name, method in _methods(setting, rate).items():
            found = {}
            for pace in ADAM if setting.optimizer == "Adam" else RATES:
                runs = [_trained(data, setting, method, pace, seed + turn) for turn in range(SEEDS)]
                found[pace] = np.array(runs)
            pace = max(found, key=lambda lr: found[lr][:, 0].mean())
            test = found[pace][:, 1]
            edge = " (at the grid's edge)" if pace in (min(found), max(found)) else ""
            told = f"{test.mean():.3f} ({test.std(ddof=1):.3f})"
            report.rows.append((f"  {name}", told, "", f"learning rate {pace:g}{edge}"))
            print(f"{name}: {told}, learning rate {pace:g}{edge}", file=sys.stderr, flush=True)
    return report


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
    from psidp.bridges.torch.training.batches import CyclicBatches, FixedBatches, PoissonBatches
    from psidp.bridges.torch.training.correlated import CorrelatedNoise

    (x, y), (vx, vy), (tx, ty) = data
    multiplier, strategy, order = method
    records, rate, classes = len(x), setting.epochs / setting.steps, int(y.max()) + 1
    weights = torch.zeros(classes, x.shape[1] + 1, requires_grad=True)
    groups = np.random.default_rng(seed).permutation(records) % (strategy.bands if strategy else 1)
    batches: Any = FixedBatches(records, round(1 / rate))
    if order == "sampled" and strategy is None:
        batches = PoissonBatches(records, rate)
    elif order == "sampled":
        batches = CyclicBatches(groups, strategy.bands, min(1.0, strategy.bands * rate))
    noise = strategy and CorrelatedNoise(strategy, weights.numel(), weights.device, multiplier)
    optimizers: dict[str, Any] = {
        "SGD": lambda: torch.optim.SGD([weights], pace),
        "SGD, momentum 0.9": lambda: torch.optim.SGD([weights], 0.1 * pace, momentum=0.9),
        "Adam": lambda: torch.optim.Adam([weights], pace),
    }
    optimizer, hot = optimizers[setting.optimizer](), torch.eye(classes)[y]
    for step in range(setting.steps):
        some = torch.from_numpy(batches.of(step))
        wrong = torch.softmax(x[some] @ weights.detach()[:, :-1].T + weights.detach()[:, -1], dim=1) - hot[some]
        each = wrong[:, :, None] * torch.nn.functional.pad(x[some], (0, 1), value=1.0)[:, None, :]
        totals = ClippedTotals([weights], CLIP, *(() if noise is None else (noise.fineness,)))
        if len(some):
            totals.add([each], torch.ones(len(some), dtype=torch.bool))
        sigma = multiplier * CLIP * 2.0**-totals.unit
        if noise is None:
            noisy = totals.noisy(sigma)
        else:
            noise.at(step)
            noisy = noise(totals.taken(), sigma)
        weights.grad = (noisy * (2.0**totals.unit / (rate * records))).to(weights.dtype).view(weights.shape)
        optimizer.step()

    def accuracy(inputs: Any, labels: Any) -> float:
        scores = inputs @ weights.detach()[:, :-1].T + weights.detach()[:, -1]
        return float((scores.argmax(1) == labels).double().mean())

    return accuracy(vx, vy), accuracy(tx, ty)


def _parts(x: Any, y: Any, part: int) -> Any:
    """Training, validation and test part, each inputs and labels, by one fixed permutation."""
    import torch

    order = np.random.default_rng(0).permutation(len(x))
    x, y = torch.tensor(x[order], dtype=torch.float32), torch.tensor(y[order])
    cuts = (slice(2 * part, None), slice(0, part), slice(part, 2 * part))
    return [(x[cut], y[cut]) for cut in cuts]


if __name__ == "__main__":
    named({"overhead": overhead, "gpu": gpu, "training": training})
