"""Correlated noise: what it costs in time and memory, and what it is worth in accuracy, at equal certified epsilon.

Also a script of its own: python bench/correlated.py [overhead] [gpu] [training], wherever torch is.
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "src")]

import numpy as np

from bench.correlated_training import CLIP, training
from bench.device import milliseconds, named
from bench.timing import Report, interleave

NANOSECONDS, BYTES, SLOWER = 60.0, 28.0, 1.1
PARAMETERS, BANDS = 10**6, 8


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


if __name__ == "__main__":
    named({"overhead": overhead, "gpu": gpu, "training": training})
