"""Bands: how much correlated noise is worth for a training, and how many bands are best at a target."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, final

from psidp.accounting import calibrate
from psidp.strategies.toeplitz import Toeplitz
from psidp.strategies.training import ModelError
from psidp.symbols import symbol, whole

__all__ = ["Band", "BandChoice", "best_bands"]

MOST_BANDS = 128
"""Bands that are tried at most: each takes four bytes of memory for every parameter."""

WORTHWHILE = 0.99
"""Correlated noise is taken where its error is below so much of DP-SGD's."""


class Band(NamedTuple):
    """One number of bands at the target: its noise, and its error in the model relative to DP-SGD's."""

    bands: int
    noise_multiplier: float
    relative: float


@final
@dataclass(frozen=True, slots=True)
class BandChoice:
    """What was compared, and the number of bands of least error; 1, plain DP-SGD, where nothing is gained."""

    rows: tuple[Band, ...]
    workload: ModelError

    @property
    def best(self) -> Band:
        """The row of least error, or DP-SGD's."""
        least = min(self.rows, key=lambda row: row.relative)
        return least if least.relative < WORTHWHILE else self.rows[0]

    def __str__(self) -> str:
        lines = ["bands  noise_multiplier  error, DP-SGD = 1"]
        for row in self.rows:
            mark = "  <- best" if row == self.best else ""
            lines.append(f"{row.bands:>5}  {row.noise_multiplier:>16.4f}  {row.relative:>17.3f}{mark}")
        if self.best.bands == 1:
            lines.append("Correlated noise gains nothing here: independent noise, bands=1, is as good.")
        return "\n".join(lines)


def best_bands(
    *,
    sampling_rate: float,
    steps: int,
    workload: ModelError | None = None,
    noise: Callable[[float, int], float] | None = None,
    **target: Any,
) -> BandChoice:
    """Errors in the model of b = 1, 2, 4, ... bands at one target, each with the noise that meets it.

    Args:
        sampling_rate: chance q of a record to be in a batch, averaged over the steps; b q is at most 1.
        steps: number of noisy steps.
        workload: which error counts; that of sums of gradients unless told.
        noise: the noise_multiplier of DP-SGD at a rate for so many steps; `psidp.calibrate` at the target unless told.
        target: epsilon and delta, or psi and kappa, or advantage, as `psidp.calibrate` takes them.

    Examples:
        >>> print(best_bands(sampling_rate=1 / 100, steps=100, epsilon=2.0, delta=1e-5))
        bands  noise_multiplier  error, DP-SGD = 1
            1            0.7367              1.000
            2            0.8252              0.817
            4            0.9473              0.709
            8            1.1284              0.674  <- best
           16            1.3994              0.712
           32            1.7963              0.831
           64            2.1502              0.957
    """
    error = ModelError() if workload is None else workload
    rate, n = symbol("sampling_rate").number(sampling_rate), whole("steps", steps)

    def calibrated(class_rate: float, blocks: int) -> float:
        return calibrate(sampling_rate=class_rate, steps=blocks, **target)

    found, plain, bands = [], 0.0, 1
    while bands <= min(n, MOST_BANDS) and (bands == 1 or bands * rate <= 1.0):
        multiplier = (noise or calibrated)(bands * rate, -(-n // bands))
        strategy = Toeplitz.independent(n) if bands == 1 else error.strategy(n, bands)
        size = multiplier * error.of(strategy)
        plain = plain or size
        found.append(Band(bands, multiplier, size / plain))
        bands *= 2
    return BandChoice(tuple(found), error)
