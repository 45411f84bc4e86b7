"""A model or loss that carries values between examples is refused before the first step; no other moves a sum too far.

Needs PyTorch: where it is not installed, this campaign is left out.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from random import Random
from typing import Any

EXAMPLES, PLACES, STEPS, CLIP = 6, 8, 3, 1.0


def explore(random: Random) -> None:
    """Three steps on a draw and on its neighbour, in the same places; then on a draw with one example replaced."""
    import torch

    from reference.hazards import made

    what, make = made(random)
    torch.manual_seed(random.randrange(2**32))
    x = torch.randn(EXAMPLES, 3, dtype=torch.float64) * 10.0 ** random.randint(-2, 2)
    y, other = torch.randn(EXAMPLES, 2, dtype=torch.float64), random.randrange(EXAMPLES)
    size = random.choice([2, 4, 8])
    places = random.sample([*range(EXAMPLES), *[-1] * (PLACES - EXAMPLES)], PLACES)
    without = [-1 if example == other else example for example in places]
    replaced = x.clone()
    replaced[other] = torch.randn(3, dtype=torch.float64) * 10.0 ** random.randint(0, 4)
    sums = [_sums(make, size, draw, some, y) for draw, some in ((places, x), (without, x), (places, replaced))]
    refused = [found is None for found in sums]
    assert not what.startswith("none") or not any(refused), f"a model with hazard {what} is refused"
    assert all(refused) or not any(refused), f"{what} is refused for some data only"
    for bound, neighbour in ((CLIP, sums[1]), (2 * CLIP, sums[2])):
        for one, two in zip(sums[0] or [], neighbour or [], strict=True):
            moved = float((one - two).norm())
            assert moved <= bound * (1 + 1e-9), f"{what}: one example moves the sum by {moved / CLIP:.3g} clips"


def _sums(make: Callable[[], Any], size: int, places: list[int], x: Any, y: Any) -> list[Any] | None:
    """The clipped sum of every step, flat; None where the model is refused before the first one."""
    import numpy as np
    import torch

    from psidp.bridges.torch import PrivateStep

    model, loss = make()
    step = PrivateStep(
        model, loss, clip=CLIP, noise_multiplier=2.0**-90, expected_batch=1.0, micro_batch=size, slots=PLACES
    )
    found: list[Any] = []
    for _ in range(STEPS):
        model.zero_grad()
        try:
            step(x, y, places=np.array(places))
        except ValueError:
            if found:
                raise
            return None
        found.append(torch.cat([p.grad.reshape(-1) for p in model.parameters()]))
    return found


RELAPSES: dict[str, Callable[[], AbstractContextManager[object]]] = {}
