"""Chance: the random numbers that models and data sets draw for themselves, as dropout and augmentation do.

Fresh ones come for each micro-batch and for each record, so that nobody's depend on who else was drawn;
docs/design/step.md, claim 8.
"""

import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from psidp.bridges.torch.step.work import operations

__all__ = ["BY_VALUE", "Watch", "drawn_from", "renew", "set_aside", "share_dropped"]

BY_VALUE = ("_sample_dirichlet", "_standard_gamma", "binomial", "poisson", "rrelu")
"""How the names begin of torch's random operators that draw more numbers for some values than for others.

All others of torch 2.13, dropout, attention and recurrent layers among them, go by shape.
"""

ONE = RLock()
"""Held while the generators are set aside."""


@contextmanager
def set_aside(device: torch.device) -> Iterator[None]:
    """The generators of Python, NumPy and torch come back as they were; one thread at a time, for all share them."""
    with ONE:
        python, cpu = random.getstate(), torch.get_rng_state()
        numpy = np.random.get_state(legacy=False)  # noqa: NPY002  what data sets use is the point
        gpu = torch.cuda.get_rng_state(device) if device.type == "cuda" else None
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)  # noqa: NPY002
            torch.set_rng_state(cpu)
            if gpu is not None:
                torch.cuda.set_rng_state(gpu, device)


def renew(device: torch.device, seed: bytes | None = None) -> bytes:
    """Seed them all from the operating system, or from these 24 bytes; what they were seeded with."""
    seed = os.urandom(24) if seed is None else seed
    random.seed(seed)
    np.random.seed(np.frombuffer(seed[:16], np.uint32))  # noqa: NPY002
    number = int.from_bytes(seed[16:24], "little")
    torch.default_generator.manual_seed(number)
    if device.type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(number)
    return seed


def drawn_from(device: torch.device, seed: bytes) -> bool:
    """Whether one of them was drawn from since `renew` with this seed, but for once in 2^64; all of them are moved."""
    now = _next(device)
    renew(device, seed)
    return now != _next(device)


def _next(device: torch.device) -> tuple[object, ...]:
    """What comes next from each, or where it stands: whole states of Python's and NumPy's take ten times as long."""
    gpu = torch.cuda.get_rng_state(device).numpy().tobytes() if device.type == "cuda" else b""
    words = random.getrandbits(64), np.random.bytes(8)  # noqa: NPY002
    return *words, torch.get_rng_state().numpy().tobytes(), gpu


class Watch(TorchDispatchMode):  # type: ignore[misc]
    """Refuses random numbers that one example could move for the others.

    Those of operators that draw more for some data than for other, and those of generators that `renew` does not reach.
    It adds up what the products of the pass take, in `work`; `by_lot` is whether any operator draws.
    """

    work, by_lot = 0, False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run the operator, or refuse it."""
        name = func.overloadpacket.__name__
        given, seeded = kwargs or {}, torch.Tag.nondeterministic_seeded in func.tags
        if seeded and name.startswith(BY_VALUE):
            raise ValueError(
                f"model and loss must not use {name}: how many random numbers it takes depends on the data, and then "
                "one example changes those of the others. Dropout, rand, randn and the like are fine."
            )
        self.by_lot |= seeded and share_dropped(func, args, given) != 0.0
        if any(isinstance(value, torch.Generator) for value in (*args, *given.values())):
            raise ValueError(
                f"model and loss must not draw from a torch.Generator of their own ({name}): it is not seeded anew, so "
                "its numbers depend on how many examples came before. Leave it out, and torch's own is taken."
            )
        operator: Callable[..., Any] = func
        out = operator(*args, **given)
        self.work += operations(func.overloadpacket, args, out)
        return out


def share_dropped(operator: Any, args: tuple[Any, ...], given: dict[str, Any]) -> Any:
    """The share that an operator drops, as fused attention may; None where it has no such argument."""
    for place, argument in enumerate(operator._schema.arguments):
        if argument.name == "dropout_p":
            return given.get("dropout_p", args[place] if place < len(args) else argument.default_value)
    return None
