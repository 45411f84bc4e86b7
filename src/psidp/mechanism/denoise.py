"""Post-processing of a release: smaller errors at no cost in privacy, only where it is called.

Each function takes a Release and gives back a Release with the same guarantee, whose `steps` name what was
done; `non_negative` also takes a curator's Answer. They look at what was released and at public numbers only.
"""

from math import log, sqrt
from typing import Any, Protocol, Self, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from psidp.mechanism.release import Release

__all__ = ["james_stein", "non_negative", "soft_threshold", "to_simplex", "to_sum"]

Floats = NDArray[np.float64]


class HasCounts(Protocol):
    """What can set its own counts below 0 to 0, as a curator's Answer can."""

    def non_negative(self) -> Self:
        """The same with no count below 0."""


Counts = TypeVar("Counts", bound=HasCounts)


def james_stein(release: Release) -> Release:
    r"""The vector shrunk toward the origin: y max(0, 1 - (d - 2) sigma^2 / |y|^2), for d >= 3 entries.

    Guarantees:
        Its expected squared error is below that of y for every true vector (James and Stein 1961; the part
        below 0 is cut off, Baranchik 1964), most of all where the truth is small beside sigma sqrt(d).

    References:
        Balle and Wang, "Improving the Gaussian mechanism for differential privacy", ICML 2018, section 4.
    """
    y = _vector(release, 3)
    square = float(np.dot(y.reshape(-1), y.reshape(-1)))
    shrink = max(0.0, 1.0 - (y.size - 2) * release.sigma**2 / square) if square > 0.0 else 0.0
    return release.after("james_stein", y * shrink)


def soft_threshold(release: Release) -> Release:
    r"""Each entry moved toward 0 by sigma sqrt(2 log d), and to 0 if it is closer: for sparse vectors.

    Guarantees:
        The error of Donoho and Johnstone: within a factor of 2 log d + 1 of knowing which entries are large.

    References:
        Balle and Wang, "Improving the Gaussian mechanism for differential privacy", ICML 2018, section 4.
    """
    y = _vector(release, 2)
    threshold = release.sigma * sqrt(2.0 * log(y.size))
    return release.after("soft_threshold", np.sign(y) * np.maximum(np.abs(y) - threshold, 0.0))


@overload
def non_negative(release: Release) -> Release: ...


@overload
def non_negative(release: Counts) -> Counts: ...


def non_negative(release: Any) -> Any:
    """Entries below 0 set to 0: the nearest vector without negative entries, never further from such a truth.

    Of an Answer: its counts, units and histograms, and the ends of their intervals, which still cover, since the truth
    is not below 0; standard errors become upper bounds. Sums, means and quantiles stay as they are.
    """
    if not isinstance(release, Release) and hasattr(release, "non_negative"):
        return release.non_negative()
    _refuse_unless_release(release)
    value = np.maximum(np.asarray(release.value), 0)
    return release.after("non_negative", value if value.ndim else value[()])


def to_sum(release: Release, total: float) -> Release:
    """The nearest vector whose entries add up to a total that is public or was itself released."""
    y = _vector(release, 1)
    return release.after("to_sum", y + (_finite(total) - y.sum()) / y.size)


def to_simplex(release: Release, total: float) -> Release:
    """The nearest vector without negative entries whose entries add up to a total above 0.

    References:
        Held, Wolfe and Crowder 1974: max(y - t, 0) with the one t that fits, found by sorting.
    """
    y = _vector(release, 1)
    if not _finite(total) > 0.0:
        raise ValueError(f"total (sum of the entries) must be above 0, got total={total}.")
    descending = np.sort(y.reshape(-1))[::-1]
    excess = (np.cumsum(descending) - total) / np.arange(1, y.size + 1)
    t = excess[np.flatnonzero(descending > excess)[-1]]
    return release.after("to_simplex", np.maximum(y - t, 0.0))


def _vector(release: Release, least: int) -> Floats:
    """The released values as doubles, if there are enough of them."""
    _refuse_unless_release(release)
    y = np.asarray(release.value, dtype=np.float64)
    if not y.size >= least:
        raise ValueError(f"This needs a release of at least {least} entries, got {y.size}.")
    return y


def _refuse_unless_release(release: object) -> None:
    """Refuse what is no Release; for an Answer, say what can be done."""
    if not isinstance(release, Release):
        todo = (
            " Of a curator's answer, denoise.non_negative takes the counts." if hasattr(release, "non_negative") else ""
        )
        raise TypeError(
            "release must be a Release, what GaussianMechanism.release gave back, got "
            f"{type(release).__name__}.{todo} Its sigma and its guarantee are needed, not its numbers alone."
        )


def _finite(total: Any) -> float:
    """The total as a float, or a refusal."""
    if not abs(float(total)) < np.inf:
        raise ValueError(f"total (sum of the entries) must be finite, got total={total}.")
    return float(total)
