"""Together: the ranks of a run agree on what it is, begin in one state, and stop if one of them does."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
import torch
from torch import nn

from psidp.bridges.torch.step.examples import mapped
from psidp.bridges.torch.step.ranks import Ranks
from psidp.bridges.torch.training.journal import Terms
from psidp.bridges.torch.training.records import Records
from psidp.bridges.torch.training.run_state import RunState
from psidp.bridges.torch.training.trained import Trained

__all__ = ["join", "refuse_other_model", "refuse_users_of_ranks", "together"]

LOOKED = 64
"""Records that are compared."""

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")


def together(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """A method that all ranks call, and none returns from before all have; if one stops with an error, all do."""

    @wraps(method)
    def called(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        ranks: Ranks = self.__dict__.setdefault("_ranks", None) or Ranks.joined()
        self.__dict__["_ranks"] = ranks
        try:
            result = method(self, *args, **kwargs)
            ranks.meet()
        except BaseException as error:
            ranks.stop(error)
            raise
        return result

    return called


def join(ranks: Ranks, terms: Terms, data: tuple[Records, Any], keep: RunState, trained: Trained) -> None:
    """All ranks in rank 0's state of run and model; refused where they were told another run or have other records."""
    if ranks.size == 1:
        return
    _agree(ranks, terms)
    _refuse_other_data(ranks, *data)
    begun, started, state = ranks.told((keep.begun, keep.started, trained.state()))
    if not ranks.first:
        keep.begun, keep.started = begun, started
        trained.load(state)
    refuse_other_model(ranks, trained.model)


def _agree(ranks: Ranks, terms: Terms) -> None:
    """Refuse a rank that was told another run than rank 0."""
    first = ranks.told(terms)
    for name in terms | first:
        mine, theirs = terms.get(name), first.get(name)
        if mine != theirs:
            raise ValueError(
                f"{name} must be the same on all ranks, got {mine} on rank {ranks.rank} and {theirs} on rank 0."
            )


def _refuse_other_data(ranks: Ranks, records: Records, data: Any) -> None:
    """Refuse a rank whose records are others than those of rank 0: their number, and, of tensors, a sample of them."""
    looked: list[torch.Tensor] = [torch.tensor([records.size])]
    if isinstance(data, tuple | torch.utils.data.TensorDataset):
        some = np.unique(np.linspace(0, records.size - 1, LOOKED).astype(np.int64))
        mapped(looked.append, list(records.batch(some)))
    if ranks.unlike({str(number): tensor for number, tensor in enumerate(looked)}) is not None:
        raise ValueError(
            "data must be the same records under the same numbers on all ranks, got others. Give every rank the whole "
            "data, and no DistributedSampler: each rank reads no more than its own part of a draw."
        )


def refuse_users_of_ranks(ranks: Ranks, users: Any) -> None:
    """Refuse users on several ranks: a user's examples would have to meet on one of them."""
    if ranks.size > 1 and users is not None:
        raise ValueError(
            f"users (whose the records are) must be left out on several ranks, got users on {ranks.size} of them: the "
            "promise would be one for users, and several processes keep one for records alone. Run one process."
        )


def refuse_other_model(ranks: Ranks, model: nn.Module) -> None:
    """Refuse a model that is not the same, bit for bit, on all ranks."""
    other = ranks.unlike(dict([*model.named_parameters(), *model.named_buffers()]))
    if other is not None:
        raise RuntimeError(
            f"{other} is not the same on all ranks. The promise stands, but they train apart: make model and optimizer "
            "in the same way on every rank, on devices of one kind, and begin again from the last checkpoint."
        )
