"""Results on a terminal: the one console and its tables."""

from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from psidp.escaping import one_line, visible
from psidp.guarantee import Guarantee
from psidp.present import paper_experiment
from psidp.present.formatting import up
from psidp.present.ranking import Ranked
from psidp.present.words import OUTRIGHT, sentences, statements

__all__ = ["console", "show_comparison", "show_explanation", "show_paper", "show_readings", "table"]

WIDEST = 100_000
"""Letters of a line at most, where nobody watches."""


class Output(Console):
    """Standard output: folded to the width of a terminal; in a file or a pipe as wide as its content is."""

    def print(self, *objects: Any, **options: Any) -> None:
        """As Rich prints; without a terminal, sentences stay on one line and no cell is folded or cut.

        Text is shown as it is: no markup, and nothing that acts on the terminal.
        """
        objects = tuple(visible(one) if isinstance(one, str) else one for one in objects)
        if self.is_terminal:
            return super().print(*objects, **options)
        tables, before = [one for one in objects if isinstance(one, Table)], self._width
        room = self.options.update(width=WIDEST)
        try:
            self._width = max([self.width, *(Measurement.get(self, room, one).maximum for one in tables)])
            return super().print(*objects, **{"soft_wrap": not tables} | options)
        finally:
            self._width = before


class Rows(Table):
    """A table whose cells are text, and no markup; each is one line, whatever is in it."""

    def add_row(self, *cells: Any, **options: Any) -> None:
        """A row of text."""
        super().add_row(*(Text(one_line(str(cell))) for cell in cells), **options)


console = Output(highlight=False, emoji=False)


def table(title: str, text: list[str], numbers: list[str]) -> Table:
    """An empty table with columns of text on the left and of numbers on the right."""
    title = one_line(title)
    made = Rows(title=title, min_width=len(title) + 2, box=SIMPLE_HEAD, padding=(0, 0, 0, 1), pad_edge=False)
    for heading in text:
        made.add_column(Text(visible(heading)), overflow="fold")
    for heading in numbers:
        made.add_column(Text(visible(heading)), justify="right", overflow="fold")
    return made


def show_explanation(guarantee: Guarantee) -> None:
    """The table of equivalent statements, then the sentences."""
    title = f"One mechanism, said in every way ({guarantee.adjacency}, per {guarantee.unit})"
    rows = table(title, ["theory", "quantity"], ["value"])
    before = ""
    for row in statements(guarantee):
        rows.add_row(row.theory if row.theory != before else "", row.quantity, row.shown)
        before = row.theory
    console.print(rows)
    for sentence in sentences(guarantee):
        console.print(f"{sentence}\n")


def show_readings(gaussian: Guarantee | None, covering: Guarantee, which: str) -> None:
    """A claim read twice, side by side: as a Gaussian mechanism's and as any mechanism's; then which applies when."""
    title = f"One claim, read twice ({covering.adjacency}, per {covering.unit})"
    rows = table(title, ["theory", "quantity"], ["if it is\nGaussian", "any\nmechanism"])
    own = {} if gaussian is None else {(s.theory, s.quantity): s.shown for s in statements(gaussian)}
    other = {(s.theory, s.quantity): s.shown for s in statements(covering)}
    before = ""
    for theory, quantity in dict.fromkeys([*other, *own]):
        failing = "0" if gaussian is not None and quantity == OUTRIGHT else "none"
        rows.add_row(
            theory if theory != before else "",
            quantity,
            own.get((theory, quantity), failing),
            other.get((theory, quantity), "not implied"),
        )
        before = theory
    console.print(rows)
    console.print(f"{which}\n")
    for sentence in sentences(covering, gaussian=False):
        console.print(f"{sentence}\n")


def show_comparison(ranked: list[Ranked]) -> None:
    """The mechanisms in order and the divergence between neighbours."""
    numbers = ["psi", "epsilon at\ndelta = 1e-5", "AUC", "advantage", "divergence\nto the next"]
    named = any(r.name != r.mechanism for r in ranked)
    rows = table("The most private first", ["name", "mechanism"] if named else ["mechanism"], numbers)
    for r in ranked:
        g, step = r.guarantee, r.divergence_to_next
        shown = (up(g.psi), up(float(g.epsilon(1e-5))), up(g.auc), up(g.advantage))
        words = [Text(r.name), Text(r.mechanism)] if named else [Text(r.mechanism)]
        rows.add_row(*words, *shown, "" if step is None else up(step))
    console.print(rows)
    console.print(
        "Gaussian mechanisms are totally ordered by psi. The divergence is how much an attacker's chance of a right "
        "guess can grow, at most and at the worst prior, when a mechanism is replaced by the next one.\n"
    )


def show_paper(figure: int, columns: paper_experiment.Columns) -> None:
    """Every eleventh row of the experiment, and how well it agrees with the paper."""
    title = f"Figure {figure}: epsilon at delta = 1e-5, RDP at alpha = {paper_experiment.FIGURES[figure]:g}"
    roads = ["profile", "paper", "improved\nRDP", "paper", "standard\nRDP", "paper"]
    rows = table(title, [], ["psi", *roads, "best\nalpha", "improved\nthere"])
    order = [name for road in paper_experiment.ROADS for name in (road, f"published_{road}")]
    for i in range(0, 100, 11):
        row = [columns[name][i] for name in ("psi", *order, "alpha_improved", "improved_rdp_optimal")]
        rows.add_row(*(f"{value:.4g}" for value in row))
    console.print(rows)
    console.print(
        f"All 300 published numbers agree to a relative {paper_experiment.largest_gap(columns):.1e}. The profile is "
        "exact; both RDP roads lie above it at every order, the best order included.\n"
    )
