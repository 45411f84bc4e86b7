"""The keep: where a run is kept so that it can go on after any kill, its journal and its checkpoint side by side."""

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryFile
from typing import Any

from psidp.bridges.torch.training import checkpoint
from psidp.bridges.torch.training.journal import Journal, Memory, Tally, Terms, read

__all__ = ["RunState"]

MEANINGS = {
    "noise_multiplier": "noise over sensitivity in DP-SGD",
    "sampling_rate": "chance of a record to be in a batch",
    "steps": "number of noisy steps",
    "unit": "whose data is protected",
    "clip": "largest norm of one example's gradient",
    "expected_batch": "what a sum of gradients is divided by",
    "records": "number of records in the data, or users and examples of each",
    "delta": "where epsilon is told",
    "kappa": "where psi is told",
    "model": "names and shapes of its state",
    "optimizer": "kind of optimizer and schedule",
    "slots": "places for the examples of a step",
    "failure": "chance that a draw exceeds them",
    "bands": "steps over which noise is correlated",
    "classes": "how a record finds its class",
    "coefficients": "whole numbers of the strategy",
    "adjacency": "which data sets are neighbours",
    "order": "how records come into batches",
}
"""What a run that goes on must have in common with the one that began."""


class RunState:
    """A run's terms, and the files it is kept in; without a path, it ends with its process.

    `begun` says whether there is a run already, of which `started` steps count; `state` is its last checkpoint, if any.
    Reading changes nothing.
    """

    def __init__(self, path: Path | None, described: Terms, paid: bool) -> None:
        self.path = path
        self.terms: Terms = {"identity": token_hex(16), "receipt": None} | described
        self.begun, self.started = False, 0
        self.state: dict[str, Any] | None = None
        self._memory = Memory()
        if path is not None:
            self._find(path, described, paid)

    def begin(self, receipt: dict[str, Any] | None) -> None:
        """The run begins, paid for as the receipt says."""
        self.terms["receipt"] = receipt
        self.begun = True

    def ready(self) -> None:
        """The journal can be written; refused before anything is paid."""
        if self.path is None:
            return
        try:
            with TemporaryFile(dir=self.path.parent):  # not the journal itself, which another process may be making
                pass
        except OSError as error:
            raise ValueError(f"checkpoint must be where files can be written, got {self.path}: {error}.") from error

    def tally(self) -> AbstractContextManager[Tally]:
        """The count of steps, for one process at a time."""
        if self.path is None:
            return nullcontext(self._memory)
        return Journal.held(_journal(self.path), self.terms)

    def save(self, state: dict[str, Any]) -> None:
        """A checkpoint, if there is a place for one."""
        if self.path is not None:
            checkpoint.save(self.path, {"identity": self.terms["identity"]} | state)

    def _find(self, path: Path, described: Terms, paid: bool) -> None:
        """The run that is kept there, if there is one; refused unless it is the one described."""
        if not path.name or path.is_dir():
            raise ValueError(f"checkpoint must be a file, got the folder {path}.")
        if not path.parent.is_dir():
            raise ValueError(f"checkpoint must be in a folder that is there, got {path}.")
        found = read(_journal(path))
        if found is None and path.exists():
            raise ValueError(
                f"{path.name} has no journal, {_journal(path).name}, beside it, or one without its first line: how "
                "many steps it took is not known, so it cannot go on. Give the run a checkpoint of its own."
            )
        if found is None:
            return
        terms, started = found
        _refuse_other(path, terms, described, paid)
        state = checkpoint.load(path) if path.exists() else None
        if state is not None and state["identity"] != terms["identity"]:
            raise ValueError(f"{path.name} and {_journal(path).name} are of two runs. Put the right one back.")
        if state is not None and not state["applied"] <= started:
            raise ValueError(
                f"{_journal(path).name} counts {started} steps, and {path.name} holds {state['applied']}: the journal "
                "is an old copy or was cut. Put the right one back."
            )
        self.terms, self.started, self.state, self.begun = terms, started, state, True


def _refuse_other(path: Path, terms: Terms, described: Terms, paid: bool) -> None:
    """Refuse to go on with a run that is not the one described."""
    for name, mine in described.items():
        if terms.get(name) != mine:
            raise ValueError(
                f"{name} ({MEANINGS[name]}) must be that of the run in {path.name}, {terms.get(name)}, got {mine}. "
                "A run goes on as it began; give another one a checkpoint of its own."
            )
    if (terms["receipt"] is not None) != paid:
        was = "without a ledger" if paid else "with a ledger"
        raise ValueError(f"the run in {path.name} began {was}, and must go on so.")


def _journal(path: Path) -> Path:
    """The journal beside a checkpoint."""
    return path.with_name(path.name + ".steps")
