"""Trainings on several gloo processes, forks of one that has only imported. Run as a script: scenario, folder.

A rank says what it found as a line of JSON in a pipe; the script prints what all of them said.
"""

import json
import os
import signal
import sys
from contextlib import contextmanager
from datetime import timedelta
from hashlib import sha256
from itertools import count
from pathlib import Path

import run
import torch
import torch.distributed as dist
from torch import nn

import psidp
from psidp.bridges.torch import AdaptiveClip, PerLayerClip, PrivateTrainer
from psidp.bridges.torch.step import adaptive_clip, clipping, places
from psidp.bridges.torch.step.per_layer_clip import LayeredTotals
from psidp.bridges.torch.step.private_step import PrivateStep
from psidp.bridges.torch.step.ranks import Ranks
from psidp.bridges.torch.step.rehearsal import REHEARSED
from psidp.bridges.torch.training import batches, correlated, deals, journal, run_state
from psidp.noise.normal_source import forget

URANDOM, REAL = os.urandom, clipping.add_noise_
RECORDS, SIZE = 60, 24
worlds = count()


def ranks(size, work, *args, seconds=60.0):
    """What each of `size` forks said, and how it ended: 0, 3 for an error that it told, or the signal it died of."""
    store, children = f"{sys.argv[2]}/store{next(worlds)}", []
    for rank in range(size):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            os._exit(_child(size, rank, store, seconds, writer, work, args))
        os.close(writer)
        children.append((child, reader))
    ended = []
    for child, reader in children:
        with os.fdopen(reader) as lines:
            said = lines.read()
        ended.append({"code": os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])} | json.loads(said or "{}"))
    return ended


def _child(size, rank, store, seconds, pipe, work, args):
    torch.set_num_threads(1)
    try:
        if size > 1:
            patience = timedelta(seconds=seconds)
            dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=size, timeout=patience)
        said, code = {"said": work(rank, *args)}, 0
    except BaseException as error:
        said, code = {"error": f"{type(error).__name__}: {error}", "notes": getattr(error, "__notes__", [])}, 3
    os.write(pipe, json.dumps(said).encode())
    return code


# Same coins, places and keys


class Script:
    """Key streams that are functions of their topic and of how often it came; totals are written down."""

    def __init__(self, parts=None):
        self.parts, self.calls = parts, {}
        self.totals, self.gradients, self.noised = [], [], 0

    @contextmanager
    def topic(self, name):
        """The operating system's entropy is a function of this name and of how often it was said."""
        self.calls[name] = self.calls.get(name, 0) + 1
        stream = (sha256(f"{name}/{self.calls[name]}/{i}".encode()).digest() for i in count())
        os.urandom = lambda size: b"".join(next(stream) for _ in range(-(-size // 32)))[:size]
        forget()
        try:
            yield
        finally:
            os.urandom = URANDOM
            forget()

    def put(self, rank):
        """In the place of what draws, in this process."""

        def drawn(name, real):
            def call(*args, **kwargs):
                with self.topic(name):
                    return real(*args, **kwargs)

            return call

        def noise(tensor, sigma, grid=None):
            self.totals.append([int(x) for x in tensor.tolist()])
            self.noised += tensor.numel()
            many = self.parts or 1
            part = 4 * -(-tensor.numel() // (4 * many)) if self.parts else tensor.numel()
            padded = torch.nn.functional.pad(tensor, (0, many * part - tensor.numel()))
            for k, piece in enumerate(padded.split(part)):
                with self.topic(f"noise of part {k if self.parts else rank}"):
                    REAL(piece, sigma, grid=grid)
            return tensor.copy_(padded[: tensor.numel()])

        clipping.add_noise_ = correlated.add_noise_ = noise
        adaptive_clip.add_noise_ = drawn("count", REAL)
        batches.poisson_batch = drawn("coins", batches.poisson_batch)
        places.order = deals.order = drawn("places", places.order)
        write = PrivateStep._write

        def written(step, noisy, scale):
            write(step, noisy, scale)
            self.gradients.append(
                sha256(b"".join(p.grad.numpy().tobytes() for p in step.parameters.values())).hexdigest()
            )

        PrivateStep._write = written


SETTINGS = {
    "plain": {},
    "by layer": {"clip": PerLayerClip(1.0)},
    "adaptive": {"clip": AdaptiveClip(initial=0.3)},
    "bands": {"bands": 3, "ids": range(RECORDS)},
    "fixed": {"order": "fixed", "bands": 2, "steps": None, "epochs": 1},
    "workers": {"workers": 1},
}


class Rows(torch.utils.data.Dataset):
    """The same records, read one by one."""

    def __init__(self, pair):
        self.pair = pair

    def __len__(self):
        return len(self.pair[0])

    def __getitem__(self, number):
        return self.pair[0][number], self.pair[1][number]


def trainer(rank, *, seed=7, mask=0.0, **more):
    """A small training; rank 0 and the others begin with different models."""
    torch.manual_seed(rank)
    model = nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 3))
    model.register_buffer("mask", torch.tensor(mask), persistent=False)
    chance = torch.Generator().manual_seed(seed)
    data = torch.randn(RECORDS, 6, generator=chance), torch.randint(0, 3, (RECORDS,), generator=chance)
    asked = {"sampling_rate": 0.2, "clip": 0.7, "noise_multiplier": 1.3, "steps": 5, "micro_batch": 6}
    return PrivateTrainer(
        model, torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9), nn.functional.cross_entropy,
        Rows(data) if more.get("workers") else data, **(asked | {"expected_batch": 12.0} | more),
    )  # fmt: skip


def scripted(rank, name, parts):
    """A whole training under a script: totals as the noise met them, hashes of gradients, the model in the end."""
    script = Script(parts)
    run_state.token_hex = lambda size: "ab" * size  # classes are salted with it
    made = trainer(rank, **SETTINGS[name])
    made._step.places.slots = SIZE  # the same micro-batches on any number of ranks
    made._step.places.micro_batch = 6
    script.put(rank)
    if parts:  # one noise for all layers, as ranks have it
        LayeredTotals.noisy = lambda totals, sigma: clipping.noisy(totals.taken(), sigma)
    made.fit()
    model = [p.tolist() for p in made.model.parameters()]
    return {"totals": script.totals, "gradients": script.gradients, "model": model, "noised": script.noised,
            "clip": made.clip}  # fmt: skip


def same():
    """For every setting, and 2 and 4 ranks: what one process found with noise by parts, and what the ranks did."""
    return {
        name: {size: [ranks(1, scripted, name, size)[0], *ranks(size, scripted, name, None)] for size in sizes}
        for name, sizes in ((name, (2, 4) if name == "plain" else (2,)) for name in SETTINGS)
    }


# Sums


def added(rank, size):
    """Sums of integers of all sizes over ranks, as bits of doubles, beside those of Python."""
    found, sizes = [], (1, 2, 5, 1000)
    together = Ranks.joined()
    for length in sizes:
        for largest in (2**20, 2**47 - 1, 2**47, 2**62 // size):
            chance = torch.Generator().manual_seed(length)
            rows = torch.randint(-largest, largest + 1, (size, length), generator=chance)
            rows[:, 0], rows[:, -1] = -largest, largest
            if length > 1 and largest == 2**47:
                rows[:, -1] = largest - 1  # the most that 48 bits hold, on both sides
            calls = []
            bits = together.released(
                rows[rank].clone(), lambda sums, calls=calls: calls.append(len(sums)) or sums.view(torch.float64),
                torch.float64,
            )  # fmt: skip
            wanted = [sum(column) for column in zip(*rows.tolist(), strict=True)]
            found.append(bits.view(torch.int64).tolist() == wanted and len(calls) == 1)
    return found


def sums():
    return {size: ranks(size, added, size) for size in (2, 3)} | {"empty": ranks(2, empty)}


# Neighbours


def apart(rank, micro_batch):
    """Totals of draws with all records and, in the same places, without one of them; the model stays as it is."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 1))
    features = torch.randn(24, 6)
    features[0], features[1], features[2], features[3] = float("nan"), 1e30, 1e-30, 0.0
    made = PrivateTrainer(
        model, torch.optim.SGD(model.parameters(), lr=0.0), nn.functional.mse_loss, (features, torch.ones(24, 1)),
        sampling_rate=1.0, clip=0.7, noise_multiplier=1.0, steps=48, micro_batch=micro_batch, expected_batch=24.0,
    )  # fmt: skip
    script, place, blank, calls = Script(), [], deals.Deals._dealt, count()
    script.put(rank)

    def dealt(self, numbers):
        step = next(calls)
        if step % 2 == 0:
            place[:] = [blank(self, numbers)]
        return place[0] if step % 2 == 0 else place[0] + (place[0] == step // 2) * (-1 - place[0])

    deals.Deals._dealt = dealt
    made.fit()
    return {"totals": script.totals, "bound": clipping.bound_of(0.7, made._step._fineness)[0]}


def empty(rank):
    """Draws of nobody, one example at a time; and rank 0 alone says for how many epochs."""
    made = trainer(rank, micro_batch=1, sampling_rate=0.01, expected_batch=1.0, steps=150)
    one = made.fit(epochs=1 if rank == 0 else None)
    return {"started": one.started, "model": [p.tolist() for p in made.model.parameters()]}


def neighbours():
    return {size: ranks(2, apart, size) for size in (6, 1)}


# Kills


KILLS = [
    (0, "Payment.pay", "after", 1), (0, "Journal.begin", "before", 9), (0, "Journal.begin", "after", 9),
    (0, "checkpoint.save", "before", 2), (0, "checkpoint.save", "after", 1), (1, "Ranks.told", "before", 2),
    (0, "Ranks.told", "before", 2), *[(rank, place, when, number) for rank in (0, 1) for place, when, number in (
        ("Ranks.told_numbers", "before", 9), ("Step._recorded", "after", REHEARSED + 8), ("Ranks._summed", "before", 9),
        ("Ranks._summed", "after", 9), ("Ranks._gathered", "before", 9), ("Update.apply", "before", 9),
    )],
]  # fmt: skip


def killed(rank, folder, dies):
    """A training in which one rank kills itself; every rank notes how many steps counted when it began one."""
    _watched(folder, rank)
    if dies is not None and dies[0] == rank:
        run._die(*dies[1:])
    return run.trainer(Path(folder), steps=12, every=3, empty="computed").fit().started


def _watched(folder, rank):
    real, path = PrivateStep.__call__, Path(folder) / "run.pt.steps"

    def called(step, *batch, **more):
        begun = journal.read(path)[1]
        real(step, *batch, **more)
        with Path(folder, f"rank{rank}.log").open("a") as log:
            log.write(f"{begun}\n")

    PrivateStep.__call__ = called


def kills():
    """Each kill, and the run that goes on on another number of ranks."""
    found = []
    for number, dies in enumerate(KILLS):
        folder = Path(sys.argv[2]) / f"kill{number}"
        folder.mkdir()
        with psidp.Ledger(folder / "ledger.db") as ledger:
            ledger.open("models", psi=30.0, kappa=1e-8, actor="Ann", purpose="tests")
        broken = ranks(2, killed, str(folder), dies)
        steps = journal.read(folder / "run.pt.steps")
        logs = [[int(x) for x in path.read_text().split()] for path in folder.glob("rank*.log")]
        again = ranks((1, 2, 3)[number % 3], killed, str(folder), None)
        with psidp.Ledger(folder / "ledger.db") as ledger:
            ledger.verify()
            entries = [(entry.state, entry.details().get("steps")) for entry in ledger.entries()]
        found.append({
            "dies": dies, "broken": broken, "counted": 0 if steps is None else steps[1], "logs": logs, "again": again,
            "spent": sum(state == "spent" for state, _ in entries), "last": entries[-1],
            "files": sorted(path.name for path in folder.iterdir()),
        })  # fmt: skip
    return found


def stopped(rank):
    """Rank 1 hangs in the middle of a step, and the others lose patience."""
    made, real = trainer(rank, steps=5, empty="computed"), PrivateStep._recorded
    if rank == 1:
        calls = count()

        def slow(step, *args, **kwargs):
            if next(calls) == REHEARSED + 6:
                signal.pause()
            return real(step, *args, **kwargs)

        PrivateStep._recorded = slow
        signal.alarm(4)
    return made.fit().started


def hangs():
    return ranks(2, stopped, seconds=2.0)


# Refusals


def refused(rank, case):
    """A training that one of two ranks makes impossible."""
    other, more = rank == 1, {}
    if case == "clip":
        more = {"clip": 0.8 if other else 0.7}
    elif case == "micro_batch":
        more = {"micro_batch": 5 if other else 6}
    elif case == "data":
        more = {"seed": 8 if other else 7}
    elif case == "mask":
        more = {"mask": float(other)}
    elif case == "users":
        more = {"users": [number // 2 for number in range(RECORDS)], "examples_per_user": 2}
    elif case == "budget":
        path = Path(sys.argv[2]) / f"poor{rank}.db"
        with psidp.Ledger(path) as ledger:
            ledger.open("models", psi=0.01, kappa=1e-8, actor="Ann", purpose="tests")
        more = {"ledger": psidp.Ledger(path), "budget": "models"}
    made = trainer(rank, **more)
    if case == "loss" and other:
        made._step._loss = None
    if case == "drift" and other:
        apply = made._update.apply
        made._update.apply = lambda: (apply(), made.model[2].bias.data.add_(1.0))
    return made.fit().started


def refusals():
    cases = ("clip", "micro_batch", "data", "mask", "users", "budget", "loss", "drift")
    return {case: ranks(2, refused, case) for case in cases}


if __name__ == "__main__":
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    print(json.dumps(globals()[sys.argv[1]]()))
