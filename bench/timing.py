"""CPU time of competing callables: interleaved, best of many, so that a noisy machine hurts all alike."""

from collections.abc import Callable
from dataclasses import dataclass, field
from time import process_time

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

__all__ = ["Report", "interleave"]


def interleave(
    contenders: dict[str, Callable[[], object]], rounds: int = 20, seconds: float = 20.0
) -> dict[str, float]:
    """Best CPU seconds of each contender, run in turns until the rounds or the seconds are used up."""
    best = dict.fromkeys(contenders, float("inf"))
    begin = process_time()
    for turn in range(rounds):
        for name, run in contenders.items():
            start = process_time()
            run()
            best[name] = min(best[name], process_time() - start)
        if turn >= 1 and process_time() - begin > seconds:
            break
    return best


@dataclass
class Report:
    """Lines of one table: what was measured, the figure, and the target where there is one."""

    title: str
    rows: list[tuple[str, str, str, str]] = field(default_factory=list)
    missed: int = 0

    def add(self, what: str, value: float, unit: str, at_most: float | None = None, note: str = "") -> None:
        """One figure; with a target, whether it was met."""
        target = ""
        if at_most is not None:
            met = value <= at_most
            self.missed += not met
            target = f"<= {at_most:g} {'met' if met else 'MISSED'}"
        self.rows.append((what, f"{value:.4g} {unit}", target, note))

    def say(self, what: str, text: str) -> None:
        """One line of text."""
        self.rows.append((what, text, "", ""))

    def show(self, console: Console) -> None:
        """The table on the console."""
        table = Table(title=self.title, box=SIMPLE_HEAD, title_justify="left")
        for heading in ("what", "measured", "target", "note"):
            table.add_column(heading, overflow="fold")
        for row in self.rows:
            table.add_row(*row)
        console.print(table)
