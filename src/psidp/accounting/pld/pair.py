"""Pairs: steps that are known as two laws, P with the record and Q without it, cut into outcomes from both sides.

One pair dominates another if a random map takes both its laws to those of the other; nobody can then tell the other two
apart better (Blackwell). Merging outcomes gives a pair that is dominated: a lower end. Splitting an outcome into two
with the same masses in sum gives one that dominates: an upper end. docs/design/sampling.md has the proofs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from psidp.accounting.composition import Array
from psidp.accounting.contours.mgf_table import ULP
from psidp.accounting.pld.step_law import ADD, Masses, centered, gathered, lowest

__all__ = ["Atoms", "PairLaw", "split"]

SAFE = 1e-12


@dataclass(frozen=True)
class Atoms:
    """Outcomes: the mass that the numerator gives to each, its loss, and how far losses may be off."""

    mass: Array
    loss: Array
    off: float

    def up_to(self, most: float) -> "Atoms":
        """Those with losses up to `most`: without some outcomes a pair tells less."""
        some = self.loss <= most
        return Atoms(self.mass[some], self.loss[some], self.off)


class Outcomes(Protocol):
    """Outcomes for a lattice of step eta: from above, with a pair that dominates, or from below."""

    def __call__(self, eta: float, above: bool) -> Atoms:
        """The outcomes."""
        ...


@dataclass(frozen=True)
class PairLaw:
    """A pair as the lattice reads it: `count` steps, losses between two ends, and the log of the mass at infinity."""

    count: float
    outcomes: Outcomes | Callable[[float, bool], Atoms]
    losses: tuple[float, float]
    log_infinite: float
    kind: int = ADD
    q: float = 0.5

    @property
    def beyond(self) -> tuple[float, float]:
        """log of the numerator's mass above the grid; the lower end has none, so the denominator's is not needed."""
        return self.log_infinite, -np.inf

    @property
    def beyond_error(self) -> float:
        """By how much log_infinite may be off, which was rounded up already."""
        return 1e-11

    def upwards(self, eta: float) -> Masses:
        """Every outcome split between the lattice points around it, so that both laws keep their masses."""
        atoms = self.outcomes(eta, True)
        floor = np.floor(atoms.loss / eta)
        share = split(atoms.loss, floor * eta, (floor + 1.0) * eta)
        pieces = [(floor, atoms.mass * (1.0 - share)), (floor + 1.0, atoms.mass * share)]
        return gathered(pieces, 0.0, atoms.off + 8.0 * ULP * float(np.abs(atoms.loss).max()), 1.0 + SAFE)

    def downwards(self, eta: float) -> Masses:
        """Outcomes around every lattice point merged, and moved down to the lattice."""
        atoms = self.outcomes(eta, False)
        weight, losses = centered(atoms.mass, atoms.loss, eta)
        base = lowest(losses, weight, eta)
        return gathered([(np.floor((losses - base) / eta), weight)], base, atoms.off, 1.0 - SAFE)


def split(loss: Array, low: Array, high: Array) -> Array:
    """The numerator's share that goes to loss `high`, the rest to `low`, so that the denominator keeps its mass too.

    m e^-loss = m (1 - t) e^-low + m t e^-high.
    """
    way = np.clip(loss - low, 0.0, high - low)
    share = np.expm1(-way) / np.expm1(-np.maximum(high - low, 5e-324))
    return np.asarray(np.clip(np.where(high > low, share, 1.0), 0.0, 1.0))
