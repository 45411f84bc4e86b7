"""Runs: any callable run many times on the same data, in processes when that pays, its outputs as rows of numbers."""

import os
import pickle
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psidp.symbols import masked

__all__ = ["Mechanism", "Progress", "outputs"]

Mechanism = Callable[[Any], Any]
Progress = Callable[[int, int], None]
"""Called with the runs done and the runs wanted."""
TRIAL = 16
"""Runs made here first, to see what they give and how long they take."""
WORTH_PROCESSES = 4.0
"""Seconds of work below which starting processes does not pay."""
Array = NDArray[np.float64]


def outputs(
    mechanism: Mechanism, datasets: list[Any], runs: int, processes: int | None = None, progress: Progress | None = None
) -> list[Array]:
    """For each dataset the outputs of so many runs, one row a run.

    Args:
        mechanism: any callable; to be run in several processes it must be importable there (a function of a module).
        datasets: what it is called with, one dataset at a time.
        runs: runs on each dataset.
        processes: how many; unless told, one for each core when there is more than a few seconds of work.
        progress: called now and then with the runs done and wanted; unless told, a line on a terminal.

    Refused: outputs that are not numbers, hold NaN, or change their shape from run to run.
    """
    show = _line() if progress is None else progress
    wanted = runs * len(datasets)
    start = perf_counter()
    trial = min(TRIAL, runs)
    first = [many(mechanism, data, trial) for data in datasets]
    rest = runs - trial
    seconds = (perf_counter() - start) / trial * rest
    workers = _workers(processes, mechanism, datasets, seconds)
    done = trial * len(datasets)
    show(done, wanted)
    parts: list[list[Array]] = [[rows] for rows in first]
    for which, rows in _batches(mechanism, datasets, rest, workers):
        parts[which].append(rows)
        done += len(rows)
        show(done, wanted)
    return [_stacked(rows) for rows in parts]


def many(mechanism: Mechanism, data: Any, runs: int) -> Array:
    """The outputs of so many runs here, one row a run."""
    return _stacked([_row(mechanism(data))[None, :] for _ in range(runs)])


def _batches(mechanism: Mechanism, datasets: list[Any], runs: int, workers: int) -> Iterator[tuple[int, Array]]:
    """(dataset, outputs) a batch at a time, from here or from processes started afresh, as they come."""
    size = max(runs // (16 * workers), 1)
    jobs = [(w, min(size, runs - begin)) for begin in range(0, runs, size) for w in range(len(datasets))]
    if workers == 1:
        for which, count in jobs:
            yield which, many(mechanism, datasets[which], count)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        futures = [(which, pool.submit(many, mechanism, datasets[which], count)) for which, count in jobs]
        for which, future in futures:
            yield which, future.result()


def _workers(processes: int | None, mechanism: Mechanism, datasets: list[Any], seconds: float) -> int:
    """How many processes to use; fresh ones, so that no generator's state is shared between them."""
    if processes is None:
        worth = seconds > WORTH_PROCESSES and _picklable(mechanism, datasets)
        return os.cpu_count() or 1 if worth else 1
    if isinstance(processes, bool) or not (isinstance(processes, int) and processes >= 1):
        raise ValueError(f"processes must be a whole number of at least 1, got processes={processes}.")
    if processes > 1 and not _picklable(mechanism, datasets):
        raise ValueError(
            "mechanism must be a function of a module to run in several processes, so that they can import it. "
            "Define it with def in a file, or use processes=1."
        )
    return processes


def _picklable(mechanism: Mechanism, datasets: list[Any]) -> bool:
    try:
        pickle.dumps((mechanism, datasets))
    except (pickle.PicklingError, AttributeError, TypeError):
        return False
    return getattr(mechanism, "__module__", "") != "__main__"


def _row(output: Any) -> Array:
    """One output as a row of numbers."""
    row = np.asarray(output)
    if row.dtype.kind not in "iufb" or masked(output):
        raise TypeError(f"mechanism must return numbers or arrays of them, got {type(output).__name__}.")
    row = row.astype(np.float64).reshape(-1)
    if np.isnan(row).any():
        raise ValueError("mechanism must return numbers, got NaN.")
    return row


def _stacked(rows: list[Array]) -> Array:
    if len({r.shape[1:] for r in rows}) > 1:
        raise ValueError("mechanism must return as many numbers in every run.")
    return np.concatenate(rows)


def _line() -> Progress:
    """A progress bar on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        return lambda done, wanted: None

    def show(done: int, wanted: int) -> None:
        bar = "#" * (30 * done // wanted)
        sys.stderr.write(f"\r[{bar:<30}] {done}/{wanted} runs" + ("\n" if done >= wanted else ""))
        sys.stderr.flush()

    return show
