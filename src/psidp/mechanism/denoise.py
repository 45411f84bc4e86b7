"""Post-processing of a release: smaller errors at no cost in privacy, only where it is called."""

from typing import Any, Protocol, Self, TypeVar, overload

import numpy as np

from psidp.mechanism.release import Release

__all__ = ["non_negative"]


class HasCounts(Protocol):
    """What can set its own counts below 0 to 0, as the answer of a table can."""

    def non_negative(self) -> Self:
        """The same with no count below 0."""


Counts = TypeVar("Counts", bound=HasCounts)


@overload
def non_negative(release: Release) -> Release: ...


@overload
def non_negative(release: Counts) -> Counts: ...


def non_negative(release: Any) -> Any:
    """Entries below 0 set to 0: the nearest vector without negative entries, never further from such a truth.

    It costs nothing and keeps the guarantee; `steps` of the release names it. Of an Answer: its counts, units and
    histograms, and the ends of their intervals, which still cover, since the truth is not below 0; standard errors
    become upper bounds. Sums, means and quantiles stay as they are.
    """
    if isinstance(release, Release):
        value = np.maximum(np.asarray(release.value), 0)
        return release.after("non_negative", value if value.ndim else value[()])
    if hasattr(release, "non_negative"):
        return release.non_negative()
    raise TypeError(
        "release must be a Release, what GaussianMechanism.release gave back, or an Answer, got "
        f"{type(release).__name__}. Its sigma and its guarantee are needed, not its numbers alone."
    )
