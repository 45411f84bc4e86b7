"""What the benchmarks on a GPU share: parts by name, one line where there is no GPU, and times by device events."""

import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

from bench.timing import Report

__all__ = ["every", "milliseconds", "named"]

Parts = dict[str, Callable[[int], Report]]


def every(title: str, parts: Parts, seed: int) -> list[Report]:
    """All parts, or one line where there is no GPU."""
    try:
        import torch

        there = torch.cuda.is_available()
    except ImportError:
        there = False
    if not there:
        report = Report(title)
        report.say("not measured", "no CUDA device here")
        return [report]
    return [part(seed) for part in parts.values()]


def named(parts: Parts) -> None:
    """The parts named on the command line, all when none is; one that fails does not lose the others."""
    from rich.console import Console

    console = Console(highlight=False, width=150)
    for name in sys.argv[1:] or parts:
        began = time.perf_counter()
        try:
            parts[name](1).show(console)
        except Exception:
            console.print(traceback.format_exc()[-3000:])
        console.print(f"{name}: {time.perf_counter() - began:.0f} s\n")


def milliseconds(torch: Any, call: Callable[[], Any], behind: bool = False) -> float:
    """Milliseconds of one call by device events; behind other work, as in a step, its launches are made meanwhile."""
    torch.cuda.synchronize()
    if behind:
        torch.cuda._sleep(2_000_000)
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    call()
    end.record()
    torch.cuda.synchronize()
    return float(begin.elapsed_time(end))
