"""Scores: what an attack gave to runs with the person (in) and to runs without (out), checked and sorted."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from psidp.symbols import Symbol, masked

__all__ = ["CONFIDENCE", "Scores", "checked", "checked_seed"]

CONFIDENCE = Symbol("confidence", "1 - α", "chance that the bound holds", "(0,1)", "0.9 to 0.999")
BLOCK = 1 << 20
Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Scores:
    """In-scores and out-scores, each sorted; a high score says "in". Ties between the two count for "out"."""

    ins: Array
    outs: Array

    @classmethod
    def of(cls, in_scores: Any, out_scores: Any) -> "Scores":
        """The scores, refused by name unless they are two rows of numbers that can be ranked."""
        return cls(np.sort(checked("in_scores", in_scores)), np.sort(checked("out_scores", out_scores)))

    @property
    def n_in(self) -> int:
        """How many in-scores there are."""
        return int(self.ins.size)

    @property
    def n_out(self) -> int:
        """How many out-scores there are."""
        return int(self.outs.size)

    @property
    def wins(self) -> int:
        """Pairs (in, out) in which the in-score is strictly larger: the Mann-Whitney count, ties lost."""
        return self._ranked[0]

    @cached_property
    def wins_and_ties(self) -> int:
        """Pairs (in, out) in which the in-score is not smaller."""
        return sum(int(places.sum()) for places in self._places("right"))

    def dice(self, seed: int, purpose: int) -> np.random.Generator:
        """The audit's own dice, keyed by the seed and by these scores' ranks.

        A seed alone would match the same ranks in every audit of one size, and be lucky or unlucky in all of them.
        """
        return np.random.default_rng([self._ranked[1], seed, purpose])

    @cached_property
    def _ranked(self) -> tuple[int, int]:
        """The Mann-Whitney count, and a fingerprint of all ranks."""
        wins, ranks = 0, blake2b(f"{self.n_in} {self.n_out}".encode(), digest_size=16)
        for places in self._places("left"):
            wins += int(places.sum())
            ranks.update(places.astype("<i8", copy=False).data)
        return wins, int.from_bytes(ranks.digest(), "little")

    @property
    def lost(self) -> float:
        """Share of pairs that the in-score does not win."""
        pairs = self.n_in * self.n_out
        return (pairs - self.wins) / pairs

    @property
    def auc(self) -> float:
        """Area under the empirical ROC curve; ties count one half."""
        return (self.wins + self.wins_and_ties) / (2 * self.n_in * self.n_out)

    def above(self, thresholds: Any) -> NDArray[np.int64]:
        """How many in-scores lie strictly above each threshold."""
        return np.asarray(self.n_in - np.searchsorted(self.ins, thresholds, side="right"), dtype=np.int64)

    def outs_above(self, thresholds: Any) -> NDArray[np.int64]:
        """How many out-scores lie strictly above each threshold."""
        return np.asarray(self.n_out - np.searchsorted(self.outs, thresholds, side="right"), dtype=np.int64)

    def _places(self, side: Literal["left", "right"]) -> Iterator[NDArray[np.int64]]:
        """For each in-score the out-scores below it, a block at a time."""
        for start in range(0, self.n_in, BLOCK):
            yield np.searchsorted(self.outs, self.ins[start : start + BLOCK], side=side).astype(np.int64, copy=False)


def checked(name: str, values: Any) -> Array:
    """One row of scores as float64; infinite ones are fine, they rank."""
    if masked(values):
        raise TypeError(
            f"{name} (scores of the attack) must be plain numbers, got a masked array. Drop what is masked."
        )
    try:
        raw = np.asarray(values)
    except ValueError:
        raise TypeError(
            f"{name} (scores of the attack) must be one row of numbers, got rows of unequal length."
        ) from None
    if raw.dtype.kind not in "iufb":
        raise TypeError(f"{name} (scores of the attack) must be numbers, got {raw.dtype} values.")
    if raw.ndim != 1:
        raise ValueError(f"{name} (scores of the attack) must be one row of numbers, got shape {raw.shape}.")
    if not raw.size > 0:
        raise ValueError(f"{name} (scores of the attack) must have at least one score, got none.")
    scores = raw.astype(np.float64, copy=False)
    missing = np.isnan(scores)
    if missing.any():
        raise ValueError(
            f"{name} (scores of the attack) must not hold NaN, got NaN at index {int(np.argmax(missing))}."
        )
    return scores


def checked_seed(seed: object) -> int:
    """A seed for the audit's own dice."""
    if isinstance(seed, bool) or not (isinstance(seed, int | np.integer) and seed >= 0):
        raise ValueError(f"seed (of the audit's own dice) must be a whole number of at least 0, got seed={seed}.")
    return int(seed)
