"""What a release gives back: the noisy value, how noisy it is, and what it cost; never the true value."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from psidp.guarantee import Guarantee
from psidp.maths.normal import quantile_error, two_sided

__all__ = ["Release"]


@dataclass(frozen=True, slots=True, eq=False)
class Release:
    """A value that may be published, with what is public about it.

    Args:
        value: the noisy number, integer or array. sigma: standard deviation of the noise on each entry.
        grid: the power of two whose multiples were drawn. rounding: how far rounding moved an entry at
        most: half a grid step, and a half more for whole numbers. guarantee: what the release costs, all
        entries together. steps: names of the post-processing steps that `value` went through since; they
        cost nothing. stored: whether this is the answer that the ledger kept under an idempotency key: it
        was drawn from what was given when the key was used first, not from what was given now.
    """

    value: Any
    sigma: float
    grid: float
    rounding: float
    guarantee: Guarantee
    steps: tuple[str, ...] = ()
    stored: bool = False

    @property
    def mean_squared_error(self) -> float:
        """Expected squared distance of an entry from the truth: sigma^2 plus what rounding adds."""
        self._refuse_after_steps("mean_squared_error")
        second = 2.0 * self.rounding - self.grid
        return self.sigma**2 + (self.grid**2 + second**2) / 12.0

    def confidence_interval(self, confidence: float = 0.95) -> tuple[Any, Any]:
        """Lower and upper end of an interval that holds the true value with this probability, entry by entry.

        Guarantees:
            value plus or minus (sigma z + rounding), z the normal quantile, each rounded outward. It speaks
            of each entry by itself, and of what was given to the mechanism: clamped values count as
            clamped. Where a value overflowed the array's type, the interval has no end on that side.
        """
        self._refuse_after_steps("confidence_interval")
        if not 0.0 < confidence < 1.0:
            raise ValueError(
                f"confidence (chance that the interval holds the truth) must be in (0, 1), got confidence={confidence}."
            )
        z = two_sided(1.0 - confidence)
        half = (self.sigma * (z + float(quantile_error(z))) + self.rounding) * (1.0 + 2.0**-50)
        value = np.asarray(self.value)
        within, room = value, half
        if value.dtype.kind == "f":
            most = np.finfo(value.dtype).max
            within = np.clip(value, -most, most)
            room = half + np.spacing(np.minimum(np.abs(within), np.nextafter(most, -most))).astype(np.float64)
        centre = within.astype(np.float64)
        lower = np.where(value == -np.inf, -np.inf, np.nextafter(centre - room, -np.inf))[()]
        upper = np.where(value == np.inf, np.inf, np.nextafter(centre + room, np.inf))[()]
        return (float(lower), float(upper)) if value.ndim == 0 else (lower, upper)

    def after(self, step: str, value: Any) -> Self:
        """The same release with `value` in place of its own, computed from it by a named step."""
        return replace(self, value=value, steps=(*self.steps, step))

    def to_dict(self) -> dict[str, Any]:
        """The release as plain values."""
        value = self.value.tolist() if isinstance(self.value, np.ndarray | np.generic) else self.value
        return {
            "value": value,
            "sigma": self.sigma,
            "grid": self.grid,
            "guarantee": self.guarantee.to_dict(),
            "steps": list(self.steps),
            "stored": self.stored,
        }

    def _refuse_after_steps(self, what: str) -> None:
        """Post-processing changes the error in ways that depend on the truth."""
        if self.steps:
            raise ValueError(
                f"{what} is known only for the noisy value itself, not after {' and '.join(self.steps)}. "
                "Ask the release that was post-processed."
            )
