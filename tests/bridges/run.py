"""One small private training for a process of its own, which logs each gradient it releases and may die on cue."""

import os
import signal
import time
from pathlib import Path

STEPS, RATE, EVERY = 30, 0.25, 7


def trainer(folder, **more):
    """The trainer that every process makes anew; a run in `folder` goes on."""
    import torch
    from torch import nn

    from psidp import Ledger
    from psidp.bridges.torch import PrivateTrainer

    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = nn.Linear(4, 2)
    asked = {"sampling_rate": RATE, "clip": 1.0, "steps": STEPS, "noise_multiplier": 2.0, "every": EVERY}
    if (folder / "ledger.db").exists():
        asked |= {"ledger": Ledger(folder / "ledger.db"), "budget": "models", "purpose": "a test"}
    if (folder / "bands").exists():
        asked |= {"bands": int((folder / "bands").read_text()), "ids": range(32)}
    features = torch.randn(32, 4)
    return PrivateTrainer(
        model,
        torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9),
        nn.functional.cross_entropy,
        (features, (features.sum(dim=1) > 0).long()),
        **(asked | {"checkpoint": folder / "run.pt"} | more),
    )


def train(folder, dies=None, pause=0.0):
    """Train to the end, or die by SIGKILL right before or after a place is reached for the n-th time."""
    folder = Path(folder)
    _count_releases(folder / "released.log", pause)
    if dies is not None:
        _die(*dies)
    trainer(folder).fit()


def _count_releases(path, pause):
    """A byte in a log for every noisy gradient, written at once; then a pause in which to be killed."""
    from psidp.bridges.torch.step.private_step import PrivateStep

    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    real = PrivateStep.__call__

    def called(self, *batch, **more):
        real(self, *batch, **more)
        os.write(log, b".")
        time.sleep(pause)

    PrivateStep.__call__ = called


def _die(place, when, n):
    """Kill this process at the n-th call of a place, such as Update.apply, before it or after it."""
    owner, name = _place(place)
    real, calls = getattr(owner, name), iter(range(1, 10**9))

    def called(*args, **kwargs):
        now = next(calls) == n
        if now and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = real(*args, **kwargs)
        if now:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, name, called)


def _place(place):
    from psidp.bridges.torch.step.private_step import PrivateStep
    from psidp.bridges.torch.step.ranks import Ranks
    from psidp.bridges.torch.training import checkpoint, journal
    from psidp.bridges.torch.training.correlated import CorrelatedNoise
    from psidp.bridges.torch.training.payment import Payment
    from psidp.bridges.torch.training.update import Update

    owners = {"Payment": Payment, "Step": PrivateStep, "Update": Update, "Journal": journal.Journal}
    owners |= {"Noise": CorrelatedNoise, "Ranks": Ranks}
    owners |= {"checkpoint": checkpoint, "journal": journal}
    owner, name = place.split(".")
    return owners[owner], name
