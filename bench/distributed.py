"""A private step on two processes beside Opacus' DPDDP: time and traffic, gloo on one machine, one thread each.

Both have one draw of the expected size, half of it on each process for Opacus; ours has its own places (some are empty)
and, beside it, as many as were drawn. CPU time is that of both processes together; traffic is what the loopback
interface counts, headers and all, so that the least of many rounds has nobody else's in it. Times are medians of rounds
in turns: how many micro-batches ours needs goes by its lot.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

from bench.opacus_step import opacus_step
from bench.timing import Report

CLIP, NOISE, RANKS = 1.0, 1.0, 2
TIMES, TRAFFIC = 1.3, 1.3
NAMES = ("MLP, 19k", "CNN, 21k", "transformer, 115k", "MLP, 1.9 M", "small GPT-2")
KINDS = ("hooks", "ghost", "ours", "as drawn")


def run(full: bool, seed: int) -> list[Report]:
    """Time and traffic of every model."""
    told = _ranks(30 if full else 8, seed)
    report = Report("A step on two gloo processes beside Opacus' DPDDP: CPU ms of both | wall ms | traffic, kB")
    for name, found in told.items():
        for what, scale, unit in (("cpu", 1e3, "ms"), ("wall", 1e3, "ms"), ("bytes", 1e-3, "kB")):
            words = "  ".join(f"{kind} {scale * found[kind][what]:.4g}" for kind in KINDS)
            report.say(f"{name}: {what}, {unit}", words)
        for peer in ("hooks", "ghost"):
            for kind in ("ours", "as drawn"):
                for what, most in (("cpu", TIMES), ("bytes", TRAFFIC)):
                    target = most if peer == "hooks" else None
                    report.add(f"  {what}: {kind} over {peer}", found[kind][what] / found[peer][what], "x", target)
    return [report]


def _ranks(rounds: int, seed: int) -> dict[str, dict[str, dict[str, float]]]:
    """What rank 0 of two processes measured."""
    with TemporaryDirectory() as folder:
        own = {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
        code = "from bench.distributed import worker; worker({}, {}, {!r}, {})"
        started = [
            subprocess.Popen(
                [sys.executable, "-c", code.format(rank, rounds, f"file://{folder}/store", seed)],
                env=os.environ | own, stdout=subprocess.PIPE, text=True,
            )
            for rank in range(RANKS)
        ]  # fmt: skip
        answers = [process.communicate()[0] for process in started]
    if any(process.returncode for process in started):
        raise RuntimeError("a process of the benchmark failed.")
    found: dict[str, dict[str, dict[str, float]]] = json.loads(answers[0].splitlines()[-1])
    return found


def worker(rank: int, rounds: int, store: str, seed: int) -> None:
    """One of the processes: every contender in turns; rank 0 prints what each took."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=RANKS)
    found = {}
    for name in NAMES:
        contenders = {kind: contender(name, kind, seed) for kind in KINDS}
        for call in contenders.values():
            call()
        seen: dict[str, list[dict[str, float]]] = {kind: [] for kind in KINDS}
        for _ in range(rounds):
            for kind, call in contenders.items():
                seen[kind].append(_measured(call))
        taken = {"cpu": median, "wall": median, "bytes": min}
        found[name] = {
            kind: {what: take([one[what] for one in all_]) for what, take in taken.items()}
            for kind, all_ in seen.items()
        }
    if rank == 0:
        print(json.dumps(found))
    dist.destroy_process_group()


def _measured(call: Callable[[], Any]) -> dict[str, float]:
    """CPU seconds of all ranks, wall seconds of this one, and bytes, of one call."""
    import torch
    import torch.distributed as dist

    dist.barrier()
    before = _loopback()
    dist.barrier()
    middle = _loopback()
    start, cpu = perf_counter(), process_time()
    call()
    cpu, wall = process_time() - cpu, perf_counter() - start
    dist.barrier()
    bytes_ = _loopback() - middle - (middle - before)  # less what one barrier takes
    total = torch.tensor([cpu], dtype=torch.float64)
    dist.all_reduce(total)
    return {"cpu": float(total), "wall": wall, "bytes": float(max(bytes_, 1))}


def _loopback() -> int:
    """Bytes that this machine has sent to itself so far: Linux."""
    line = next(x for x in Path("/proc/net/dev").read_text().splitlines() if x.strip().startswith("lo:"))
    return int(line.split(":")[1].split()[8])


def contender(name: str, kind: str, seed: int) -> Callable[[], Any]:
    """One step of this kind on this rank, ready to be called."""
    import torch
    import torch.distributed as dist

    from bench.training_models import made

    torch.manual_seed(seed)
    model, loss, inputs, targets = made(name)
    if kind in ("hooks", "ghost"):
        some, wanted = (whole.chunk(RANKS)[dist.get_rank()] for whole in (inputs, targets))
        step = opacus_step(kind, model, len(some), len(some), CLIP, NOISE, distributed=True)
        return partial(step, some, wanted)
    return _ours(model, loss, inputs, targets, kind == "as drawn")


def _ours(model: Any, loss: Any, inputs: Any, targets: Any, full: bool) -> Callable[[], Any]:
    """Draws dealt, records read, gradients summed and noised, and applied: what PrivateTrainer does in a step."""
    from itertools import count

    import numpy as np
    import torch

    from psidp.bridges.torch import PrivateStep
    from psidp.bridges.torch.step.ranks import Ranks
    from psidp.bridges.torch.training.deals import Deals
    from psidp.bridges.torch.training.records import Records

    class All:
        def of(self, step: int) -> Any:
            return np.arange(len(inputs))

    step = PrivateStep(
        model, loss, clip=CLIP, noise_multiplier=NOISE, expected_batch=len(inputs),
        slots=len(inputs) if full else None, ranks=Ranks.joined(),
    )  # fmt: skip
    step.gradients(inputs[:1], targets[:1])
    step.places.settle()
    deals = Deals(Ranks.joined(), All(), step.slots, step.micro_batch)
    records, draws = Records((inputs, targets), torch.device("cpu")), deals.draws(count())  # type: ignore[arg-type]
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.0)

    def call() -> None:
        optimizer.zero_grad()
        step(*records.batch(next(draws)), places=deals.places())
        optimizer.step()

    return call
