"""The private step on the CPU beside Opacus' hooks and ghost clipping: time and memory, on eight small models.

One draw of the expected size for all. Ours has its own places (some are empty), in an arrangement that needs as many
micro-batches as the median of a hundred, and, beside it, as many places as were drawn.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bench.opacus_step import opacus_step
from bench.timing import Report, interleave
from bench.training_models import MODELS, made

CLIP, NOISE = 1.0, 1.0
HOOKS, GHOST, MEMORY = 1.5, 3.0, 1.0
KINDS = ("non-private", "hooks", "ghost", "ours", "as drawn")


def run(full: bool, seed: int) -> list[Report]:
    """Time and memory of every model."""
    return [times(seed, 60.0 if full else 12.0), memory(seed)]


def times(seed: int, seconds: float, names: list[str] | None = None) -> Report:
    """CPU milliseconds of a step."""
    report = Report("Private step beside Opacus, one thread: hooks | ghost | ours | ours without empty places")
    for name in names or MODELS:
        contenders = {kind: contender(name, kind, seed) for kind in KINDS}
        for call in contenders.values():
            call()
        found = {kind: 1e3 * best for kind, best in interleave(contenders, rounds=60, seconds=seconds).items()}
        words = "  ".join(f"{kind} {found[kind]:.1f}" for kind in found)
        report.say(f"{name}: ms", words)
        report.add("  ours over hooks", found["ours"] / found["hooks"], "x", at_most=HOOKS)
        report.add("  ours over ghost", found["ours"] / found["ghost"], "x", at_most=GHOST)
        report.add("  ours without empty places over hooks", found["as drawn"] / found["hooks"], "x")
    return report


def memory(seed: int, names: list[str] | None = None) -> Report:
    """Peak resident memory that steps add, each in a process of its own."""
    report = Report("Memory of the same steps: resident memory at most, above that before the first, MiB")
    for name in names or MODELS:
        found = {}
        for kind in KINDS[:4]:
            command = [sys.executable, "-c", f"from bench.training import grown; grown({name!r}, {kind!r}, {seed})"]
            answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            found[kind] = json.loads(answer.splitlines()[-1])
        words = "  ".join(f"{kind} {value:.0f}" for kind, value in found.items())
        report.say(f"{name}: MiB", words)
        report.add("  ours over hooks", found["ours"] / found["hooks"], "x", at_most=MEMORY)
    return report


def grown(name: str, kind: str, seed: int) -> None:
    """Print by how many MiB three steps raise this process's resident memory at most."""
    call = contender(name, kind, seed)
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew: Linux
    before = _resident("VmRSS")
    for _ in range(3):
        call()
    print(json.dumps(max(1.0, (_resident("VmHWM") - before) / 1024)))


def _resident(what: str) -> int:
    """A line of this process's status, in KiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(what)))


def contender(name: str, kind: str, seed: int) -> Callable[[], Any]:
    """One step of this kind, ready to be called."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    model, loss, inputs, targets = made(name)
    if kind == "non-private":
        return partial(_plain, model, loss, inputs, targets)
    if kind in ("ours", "as drawn"):
        from psidp.bridges.torch import PrivateStep

        step = PrivateStep(
            model, loss, clip=CLIP, noise_multiplier=NOISE, expected_batch=len(inputs),
            slots=None if kind == "ours" else 0,
        )  # fmt: skip
        step.gradients(inputs[:1], targets[:1])
        step.places.settle()
        return partial(_private, model, partial(step, inputs, targets, places=typical(step, len(inputs))))
    step = opacus_step(kind, model, len(inputs), len(inputs), CLIP, NOISE)
    return partial(step, inputs, targets)


def typical(step: Any, drawn: int) -> Any:
    """Places for a draw of so many that take as many micro-batches as the median arrangement does."""
    from psidp.bridges.torch.step.slots import order, packed

    lots = [order(drawn, step.slots) for _ in range(101)]
    return sorted(lots, key=lambda who: packed(who, step.micro_batch).size)[50]


def _private(model: Any, step: Any) -> None:
    model.zero_grad()
    step()


def _plain(model: Any, loss: Any, inputs: Any, targets: Any) -> None:
    model.zero_grad()
    loss(model(inputs), targets).backward()
