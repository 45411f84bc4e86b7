"""The private step on a GPU: time and memory beside the same step in floats with torch's own noise, on real models.

Also a script of its own where there is a CUDA device: bench/gpu_step.py [same] [places] [step] [draws] [parts] [large].
"""

import gc
import sys
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "src")]

from bench.device import every, milliseconds, named
from bench.opacus_step import opacus_step
from bench.timing import Report

CONTENDERS = ("non-private", "hooks", "ghost", "as drawn", "private", "factors")
CLIP, NOISE, DEVICE = 1.0, 1.1, "cuda"
ROUNDS = 7
TIME, MEMORY = 1.25, 1.5
SMALL = False


def run(full: bool, seed: int) -> list[Report]:
    """All parts, or one line where there is no GPU."""
    return every("The private step on a GPU", PARTS if full else SHORT, seed)


def settings(torch: Any) -> dict[str, tuple[Any, Any, int, int]]:
    """Model, a function that makes n examples, micro-batch and draw, by name."""

    def images(n: int) -> tuple[Any, Any]:
        return torch.randn(n, 3, 32, 32, device=DEVICE), torch.randint(0, 10, (n,), device=DEVICE)

    def sentences(n: int) -> tuple[Any, Any]:
        length = 8 if SMALL else 128
        return tuple(torch.randint(0, 1024, (n, length), device=DEVICE) for _ in range(2))

    width, depth = (64, 2) if SMALL else (768, 14)
    return {
        "ResNet-18 with GroupNorm, 3x32x32": (
            _resnet(torch, 8 if SMALL else 64),
            images,
            4 if SMALL else 256,
            8 if SMALL else 1024,
        ),
        f"{depth} transformer blocks, 128 tokens": (_transformer(torch, width, depth), sentences, 16, 64),
    }


def _resnet(torch: Any, width: int) -> Any:
    """ResNet-18 for small images, GroupNorm in place of BatchNorm."""
    nn = torch.nn

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self, before: int, after: int, stride: int) -> None:
            super().__init__()
            self.one = nn.Conv2d(before, after, 3, stride, 1, bias=False)
            self.two = nn.Conv2d(after, after, 3, 1, 1, bias=False)
            self.norms = nn.ModuleList([nn.GroupNorm(min(32, after), after) for _ in range(2)])
            self.skip = nn.Identity() if before == after else nn.Conv2d(before, after, 1, stride, bias=False)

        def forward(self, x: Any) -> Any:
            inner = torch.relu(self.norms[0](self.one(x)))
            return torch.relu(self.norms[1](self.two(inner)) + self.skip(x))

    widths = [width, width, width, 2 * width, 2 * width, 4 * width, 4 * width, 8 * width, 8 * width]
    blocks = [Block(a, b, 1 if a == b else 2) for a, b in pairwise(widths)]
    stem = [nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.GroupNorm(min(32, width), width), nn.ReLU()]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8 * width, 10)).to(DEVICE)


def _transformer(torch: Any, width: int, depth: int) -> Any:
    """Causal transformer blocks between an embedding and a head for 1,024 words."""
    nn = torch.nn

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(2)])
            self.mixed, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.inner = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x: Any) -> Any:
            length = x.shape[1]
            q, k, v = (y.unflatten(-1, (-1, 64)).transpose(1, 2) for y in self.mixed(self.norms[0](x)).chunk(3, -1))
            later = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
            seen = (q @ k.transpose(-1, -2) / 8.0).masked_fill(later, float("-inf")).softmax(-1)
            x = x + self.out((seen @ v).transpose(1, 2).flatten(2))
            return x + self.inner(self.norms[1](x))

    class Stack(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(1024, width)
            self.blocks = nn.Sequential(*[Block() for _ in range(depth)])
            self.head = nn.Linear(width, 1024)

        def forward(self, x: Any) -> Any:
            return self.head(self.blocks(self.words(x))).transpose(1, 2)

    return Stack().to(DEVICE)


def _private(torch: Any, model: Any, micro: int, draw: int, slots: int | None = 0, memory: int | None = None) -> Any:
    """Ours, with as many places as examples unless told."""
    from psidp.bridges.torch import PrivateStep

    loss = torch.nn.functional.cross_entropy
    some = {"clip": CLIP, "noise_multiplier": NOISE, "expected_batch": draw}
    return PrivateStep(model, loss, micro_batch=micro, slots=slots, memory=memory, **some)


def _float_step(torch: Any, model: Any, micro: int, draw: int) -> Callable[[Any, Any], None]:
    """The same with torch.func, a sum in floats and torch.randn."""
    parameters = dict(model.named_parameters())
    cross_entropy = torch.nn.functional.cross_entropy

    def loss(values: Any, x: Any, y: Any) -> Any:
        return cross_entropy(torch.func.functional_call(model, values, (x[None],)), y[None])

    gradients = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))

    def call(inputs: Any, targets: Any) -> None:
        values = {name: p.detach() for name, p in parameters.items()}
        sums = {name: torch.zeros_like(p) for name, p in values.items()}
        for start in range(0, inputs.shape[0], micro):
            found = gradients(values, inputs[start : start + micro], targets[start : start + micro])
            norms = torch.stack([g.flatten(1).norm(dim=1) for g in found.values()]).norm(dim=0)
            factor = (CLIP / (norms + 1e-6)).clamp(max=1.0)
            for name, g in found.items():
                sums[name] += torch.tensordot(factor, g, dims=1)
            del found, g
        for name, p in parameters.items():
            p.grad = (sums[name] + NOISE * CLIP * torch.randn_like(p)) / draw

    return call


def step(seed: int) -> Report:
    """Whole steps, in turns: medians by device events, and peaks of allocated memory; in floats and with tf32."""
    import torch

    report = Report(f"Private step beside Opacus ({torch.cuda.get_device_name()})")
    for tf32 in (False, True):
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
        for name in settings(torch):
            _beside(report, name, "tf32" if tf32 else "float32", seed)
    torch.backends.cuda.matmul.allow_tf32 = False
    return report


def _beside(report: Report, name: str, kind: str, seed: int) -> None:
    """One model: every contender has a model of its own."""
    import torch

    found: dict[str, tuple[float, float]] = {}
    for who in CONTENDERS:
        torch.manual_seed(seed)
        model, examples, micro, draw = settings(torch)[name]
        inputs, targets = examples(draw)
        try:
            call = _contender(torch, who, model, micro, draw)
            peak = _peak(torch, call, model, inputs, targets) / 2**30
            times = sorted(milliseconds(torch, partial(call, inputs, targets)) for _ in range(5))
            found[who] = times[2], peak
            report.add(f"{name}, {kind}: {who}", times[2], "ms", note=f"peak {peak:.2f} GiB")
        except (ImportError, torch.cuda.OutOfMemoryError) as error:
            report.say(f"{name}, {kind}: {who}", type(error).__name__)
        call = model = inputs = targets = None
        gc.collect()
        torch.cuda.empty_cache()
    if "hooks" in found:
        report.add("  as drawn over hooks: time", found["as drawn"][0] / found["hooks"][0], "x", at_most=1.0)
        report.add("  default places over hooks: time", found["private"][0] / found["hooks"][0], "x", at_most=1.3)
    if "ghost" in found:
        report.add("  factors over ghost: peak memory", found["factors"][1] / found["ghost"][1], "x", at_most=1.1)


def _contender(torch: Any, who: str, model: Any, micro: int, draw: int) -> Callable[[Any, Any], Any]:
    """One kind of step."""
    if who == "non-private":
        return _plain_step(torch, model, micro)
    if who in ("hooks", "ghost"):
        return opacus_step(who, model, micro, draw, CLIP, NOISE)
    one = sum(p.numel() * p.element_size() for p in model.parameters())
    private: Callable[[Any, Any], Any] = _private(
        torch, model, micro, draw, slots=None if who == "private" else 0, memory=one if who == "factors" else None
    )
    return private


def _plain_step(torch: Any, model: Any, micro: int) -> Callable[[Any, Any], None]:
    """Gradients without privacy."""

    def call(inputs: Any, targets: Any) -> None:
        model.zero_grad()
        for start in range(0, len(inputs), micro):
            some = slice(start, start + micro)
            torch.nn.functional.cross_entropy(model(inputs[some]), targets[some]).backward()

    return call


def large(seed: int) -> Report:
    """300 M parameters with bf16 autocast, at a micro-batch whose gradients no device holds."""
    import torch

    report = Report("24 transformer blocks of width 1,024, 128 tokens, bfloat16 by autocast")
    width, depth, micro, draw = (64, 2, 8, 8) if SMALL else (1024, 24, 128, 256)
    for who in ("as drawn", "non-private", "ghost", "hooks"):
        torch.manual_seed(seed)
        model = _transformer(torch, width, depth)
        size = sum(p.numel() for p in model.parameters())
        inputs, targets = (torch.randint(0, 1024, (draw, 8 if SMALL else 128), device=DEVICE) for _ in range(2))
        try:
            call = _contender(torch, who, model, micro, draw)

            def cast(inputs: Any, targets: Any, call: Any = call) -> None:
                with torch.autocast("cuda", torch.bfloat16):
                    call(inputs, targets)

            peak = _peak(torch, cast, model, inputs, targets) / 2**30
            time = min(milliseconds(torch, partial(cast, inputs, targets)) for _ in range(3))
            report.add(
                f"{size / 1e6:.0f} M, draw {draw}, micro-batch {micro}: {who}", time, "ms", note=f"{peak:.1f} GiB"
            )
        except Exception as error:
            report.say(f"{size / 1e6:.0f} M, micro-batch {micro}: {who}", f"{type(error).__name__}: {str(error)[:90]}")
        call = cast = model = inputs = targets = None
        gc.collect()
        torch.cuda.empty_cache()
    return report


def draws(seed: int) -> Report:
    """What empty places cost: a draw of the expected size with the places that a step has unless told."""
    import torch

    torch.manual_seed(seed)
    report = Report("Private step with empty places beside floats without: one draw of the expected size")
    model, examples, micro, _ = next(iter(settings(torch).values()))
    for draw in (16,) if SMALL else (1024, 2048, 4096):
        inputs, targets = examples(draw)
        private = _private(torch, model, micro, draw, slots=None)
        contenders = {"floats": _float_step(torch, model, micro, draw), "private": private}
        times = _in_turns(torch, contenders, inputs, targets, rounds=5)
        note = f"{times['floats']:.0f} ms against {times['private']:.0f} ms, {private.slots} places"
        report.add(f"draw of {draw}: private over floats", times["private"] / times["floats"], "x", TIME, note)
    return report


def _peak(torch: Any, call: Any, model: Any, inputs: Any, targets: Any) -> int:
    """Bytes allocated at most during a second call, the model included and its gradients not."""
    for _ in range(2):
        model.zero_grad()
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        call(inputs, targets)
        torch.cuda.synchronize()
    return int(torch.cuda.max_memory_allocated())


def _in_turns(
    torch: Any, contenders: dict[str, Any], inputs: Any, targets: Any, rounds: int = ROUNDS
) -> dict[str, float]:
    """Median milliseconds by device events."""
    times: dict[str, list[float]] = {kind: [] for kind in contenders}
    for _ in range(rounds):
        for kind, call in contenders.items():
            times[kind].append(milliseconds(torch, lambda call=call: call(inputs, targets)))
    return {kind: median(some) for kind, some in times.items()}


def parts(seed: int) -> Report:
    """Where the time of one micro-batch goes."""
    import torch

    torch.manual_seed(seed)
    report = Report("Parts of the private step, one micro-batch")
    for name, memory in ((name, memory) for name in settings(torch) for memory in (None, 2**29)):
        model, examples, micro, draw = settings(torch)[name]
        private, (inputs, targets) = _private(torch, model, micro, draw, memory=memory), examples(micro)
        live = torch.ones(micro, dtype=torch.bool, device=DEVICE)
        totals, recorded = private._totals(), list(private._recorded(inputs, targets).contributions.values())
        totals.add_contributions(recorded, live)
        kinds = [sum(bool(x) for x in (getattr(c, kind) is not None and getattr(c, kind) != [] for c in recorded))
                 for kind in ("factors", "gathers")]  # fmt: skip
        report.say(name, f"{kinds[0]} of {len(recorded)} parameters as factors, {kinds[1]} as gathers")
        for what, call in {
            "pass": lambda p=private, x=inputs, y=targets: p._recorded(x, y),
            "norms": lambda t=totals, r=recorded: t.weigh(r),
            "norms and sums": lambda t=totals, r=recorded, live=live: t.add_contributions(r, live),
            "noise, once a step": lambda p=private: p._totals().noisy(1e9),
        }.items():
            milliseconds(torch, call)
            report.add(f"  {what}", median(milliseconds(torch, call) for _ in range(ROUNDS)), "ms")
        del model, private, totals, recorded
        torch.cuda.empty_cache()
    return report


def same(seed: int) -> Report:
    """Integers of the kernels against those of the plain version on the CPU, strange gradients included."""
    import torch

    from psidp.bridges.torch.step.clipping import ClippedTotals

    torch.manual_seed(seed)
    report = Report("Clipped sums of kernels and of the plain version on the CPU")
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        for scale in (1.0, 1e-39, 1e30):
            gradients = [torch.randn(9, n).to(dtype) * scale for n in (2_000_003, 70_000, 64, 1)]
            gradients[2][3, 5], gradients[1][4, 7] = float("nan"), float("inf")
            gradients[0][5] *= 1e-6
            live = torch.arange(9) != 6
            clip = min(max(scale, 2.0**-100), 2.0**100)
            here, there = (ClippedTotals([g[0].to(d) for g in gradients], clip) for d in ("cpu", DEVICE))
            here.add(list(gradients), live)
            there.add([g.to(DEVICE) for g in gradients], live.to(DEVICE))
            gap = (here.units - there.units.cpu()).abs()
            note = f"largest gap {int(gap.max())}, largest total {int(here.units.abs().max())}"
            slack = 2.0**-16 * 9 * 2**31  # the CPU adds squares of floats as floats, and charges for it
            report.add(f"{dtype}, entries about {scale:g}", int(gap.max()), "units", at_most=slack, note=note)
    return report


def places(seed: int) -> Report:
    """Whether gradients depend on an example's place in the micro-batch, or on its company."""
    import torch

    from psidp.bridges.torch.step.batch_dependence import dependence

    torch.manual_seed(seed)
    report = Report("Gradients with another bit in other company, or in another place of the micro-batch")
    for name, (model, examples, micro, draw) in settings(torch).items():
        for size in (micro, micro // 2 - 1):
            private = _private(torch, model, size, draw)
            made = examples(size)
            twice = zip(private.gradients(*made), private.gradients(*made), strict=True)
            again = [torch.equal(a, b) for a, b in twice]
            seen = dependence(private, *made)
            note = f"by place {seen.by_place}; at most {seen.farthest:.2g} of the norm; again the same: {all(again)}"
            what = f"{name}, micro-batch {size}, of {seen.compared}"
            report.add(what, seen.by_company, "by company", at_most=0, note=note)
            torch.cuda.empty_cache()
    return report


SHORT = {"same": same, "places": places, "step": step, "draws": draws}
PARTS = SHORT | {"parts": parts, "large": large}

if __name__ == "__main__":
    named(PARTS)
