"""The training bar: how far a private training is, with what it costs so far, on the terminal."""

from types import TracebackType
from typing import Any, Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from psidp.present.formatting import up

__all__ = ["TrainingBar", "training_bar"]


class Seen(Protocol):
    """What a trainer tells after each step; nothing of it depends on the data but a score on public data."""

    @property
    def started(self) -> int: ...
    @property
    def steps(self) -> int: ...
    @property
    def epoch(self) -> int: ...
    @property
    def epochs(self) -> int: ...
    @property
    def ended(self) -> bool: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def delta(self) -> float: ...
    @property
    def psi(self) -> float: ...
    @property
    def kappa(self) -> float: ...
    @property
    def score(self) -> float | None: ...


class TrainingBar:
    """A bar for `trainer.fit(watch=...)`, and one line above it for every epoch. Made by training_bar()."""

    def __init__(self, console: Console) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._progress = Progress(*columns, console=console)
        self._task: Any = None

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._progress.stop()

    def __call__(self, seen: Seen) -> None:
        """One step further."""
        if self._task is None:
            self._task = self._progress.add_task("training", total=seen.steps)
        self._progress.update(self._task, completed=seen.started)
        if seen.ended:
            self._progress.console.print(line(seen), highlight=False, markup=False)


def training_bar(console: Console | None = None) -> TrainingBar:
    """A progress bar on standard error: `with training_bar() as bar: trainer.fit(watch=bar)`.

    After each epoch it says the certified epsilon and psi of the steps so far, rounded up, and the caller's public
    score, if there is one; never a loss on the data, which is private.
    """
    return TrainingBar(Console(stderr=True) if console is None else console)


def line(seen: Seen) -> str:
    """What is said after an epoch.

    Examples:
        >>> from types import SimpleNamespace
        >>> cost = {"epsilon": 0.5211, "delta": 1e-5, "psi": 0.1499, "kappa": 1e-10}
        >>> print(line(SimpleNamespace(epoch=1, epochs=4, score=0.5, **cost)))
        epoch 1 of 4: epsilon 0.5211 (delta 1e-5), psi 0.1499 (kappa 1e-10), score 0.5
    """
    cost = f"epsilon {up(seen.epsilon)} (delta {up(seen.delta)}), psi {up(seen.psi)} (kappa {up(seen.kappa)})"
    return f"epoch {seen.epoch} of {seen.epochs}: {cost}" + ("" if seen.score is None else f", score {seen.score:.3g}")
