"""Sums of per-example gradients, clipped in L2 over all parameters together, as exact integers on their device.

Floats propose, and a bound on every rounding makes sure: docs/design/step.md, claims 1 to 4.
"""

from collections.abc import Iterator, Sequence
from math import ldexp
from types import ModuleType

import torch

from psidp.bridges.torch.noise.tensors import add_noise_, refuse_old_triton
from psidp.mechanism.clipping import IntegerGrid

__all__ = ["CHUNK", "EXPONENTS", "FINENESS", "LANES", "MOST", "ClippedTotals", "bound_of"]

FINENESS = 30
"""An example's norm bound is 2^30 to 2^31 units."""

EXPONENTS = (-100, 100)
"""Where the binary exponent of the norm bound may lie."""

MOST = 2**40
"""Parameters of a model at most."""

LANES, CHUNK = 4096, 65536
"""Squares are added in this order: chunks of a tensor, lane by lane, then lanes and then chunks by halves."""

FLUSHED = 2.0**-252
"""What a square may lose at most where a device takes subnormal numbers for zero."""

SLACK = 1.0 + 2.0**-45
"""By how much a computed sum of squares is raised, and its root again; the roundings need less than 2^-46."""

EXACT = 2**53
"""Totals end here: up to so many units a double is exact."""

ENTRIES = 2**22
"""Entries that the plain version holds as doubles at a time."""


def bound_of(clip: float, fineness: int = FINENESS) -> tuple[int, int]:
    """The norm bound in units, floor(clip 2^-unit) in [2^30, 2^31) unless told, and the unit's exponent."""
    low, high = EXPONENTS
    if not 2.0**low <= clip < 2.0 ** (high + 1):
        raise ValueError(
            f"clip (largest L2 norm of one example's gradient) must be in [2^{low}, 2^{high + 1}), got clip={clip}."
        )
    grid = IntegerGrid.fitting(clip)
    coarser = FINENESS - fineness
    return grid.bound >> coarser, grid.unit + coarser


class ClippedTotals:
    """Running totals, in units of 2^unit, of gradients clipped to `clip`; its text never shows them.

    Guarantees:
        What one example adds is an integer vector k with sum k_i^2 <= bound^2, and bound 2^unit <= clip: always, for
        any entries, on any device. It is zero where an entry is NaN or infinite. It depends on the example's own
        entries alone, and the totals on no order. In float64 a norm beyond 2^511 counts as infinite.
    """

    def __init__(self, parameters: Sequence[torch.Tensor], clip: float, fineness: int = FINENESS) -> None:
        self.bound, self.unit = bound_of(clip, fineness)
        self._sizes = [p.numel() for p in parameters]
        device = parameters[0].device
        self._units = torch.zeros(sum(self._sizes), dtype=torch.int64, device=device)
        self._columns = sum(-(-size // CHUNK) for size in self._sizes)

    def add(self, gradients: list[torch.Tensor], live: torch.Tensor) -> torch.Tensor:
        """Add the rows that are live; how many of these are undefined, as a tensor.

        A tensor for each parameter, a row for each example. Of the list nothing is left.
        """
        flat: list[torch.Tensor] = []
        while gradients:  # one copy at a time, where a copy is needed
            g = gradients.pop(0)
            flat.append(g.reshape(g.shape[0], -1).contiguous())
            del g
        factor, undefined = self._factors(self._squares(flat), live)
        start = 0
        for rows, size in zip(flat, self._sizes, strict=True):
            _add_units(self._units[start : start + size], rows, factor)
            start += size
        return undefined

    def taken(self) -> torch.Tensor:
        """The totals themselves, which are private, as one flat tensor of integers; none are left."""
        units, self._units = self._units, torch.empty(0, dtype=torch.int64)
        return units

    def noisy(self, sigma: float) -> torch.Tensor:
        """The totals plus noise of standard deviation sigma, in units, as one flat tensor of doubles; none are left."""
        units = self.taken()
        doubles = units.view(torch.float64)
        for part in _parts(units.numel(), ENTRIES):
            doubles[part] = units[part].clamp(-EXACT, EXACT).to(torch.float64)
        return add_noise_(doubles, sigma)

    def _squares(self, flat: list[torch.Tensor]) -> torch.Tensor:
        """The sum of squares of each row, in doubles, in the one order."""
        rows = flat[0].shape[0]
        width = 1 << (self._columns - 1).bit_length()
        partial = torch.zeros((rows, width), dtype=torch.float64, device=flat[0].device)
        column = 0
        for g in flat:
            chunks = -(-g.shape[1] // CHUNK)
            _squares_of_chunks(g, partial, column)
            column += chunks
        return _halved(partial)

    def _factors(self, squares: torch.Tensor, live: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """What to multiply each row by, zero where it is undefined or not live; and the number of undefined ones."""
        defined = torch.isfinite(squares)
        norm = torch.sqrt((squares + sum(self._sizes) * FLUSHED) * SLACK) * SLACK
        factor = torch.clamp(self.bound / norm, max=ldexp(1.0, -self.unit))
        return torch.where(defined & live, factor, 0.0), (live & ~defined).sum()


def _squares_of_chunks(g: torch.Tensor, partial: torch.Tensor, column: int) -> None:
    """Sums of squares of each chunk of each row, written from `column` on."""
    kernels = _kernels(g)
    chunks = -(-g.shape[1] // CHUNK)
    if kernels is not None:
        kernels.write_squares(g, partial, column, LANES, CHUNK)
        return
    for k in range(chunks):
        part = g[:, k * CHUNK : (k + 1) * CHUNK].to(torch.float64)
        part = torch.nn.functional.pad(part * part, (0, -part.shape[1] % LANES)).unflatten(1, (-1, LANES))
        lanes = part[:, 0]
        for tile in range(1, part.shape[1]):
            lanes = lanes + part[:, tile]
        partial[:, column + k] = _halved(lanes)


def _halved(values: torch.Tensor) -> torch.Tensor:
    """Sums of the rows, whose length is a power of two: the second half added to the first until one is left."""
    while values.shape[1] > 1:
        half = values.shape[1] // 2
        values = values[:, :half] + values[:, half:]
    return values[:, 0]


def _add_units(totals: torch.Tensor, g: torch.Tensor, factor: torch.Tensor) -> None:
    """Add to the totals each row times its factor, cut toward zero."""
    kernels = _kernels(g)
    if kernels is not None:
        kernels.add_units(totals, g, factor)
        return
    scale = factor[:, None]
    for part in _parts(g.shape[1], max(1, ENTRIES // g.shape[0])):
        rows = torch.where(scale > 0, g[:, part].to(torch.float64), 0.0)
        totals[part] += (rows * scale).to(torch.int64).sum(0)


def _kernels(g: torch.Tensor) -> ModuleType | None:
    """The module with the kernels, for floats on an NVIDIA GPU; doubles, whose squares round, do without."""
    if g.device.type != "cuda" or torch.version.cuda is None or g.dtype == torch.float64:
        return None
    refuse_old_triton()
    from psidp.bridges.torch.step import kernel_clipping

    return kernel_clipping


def _parts(n: int, length: int) -> Iterator[slice]:
    """0 to n in slices."""
    return (slice(start, min(start + length, n)) for start in range(0, n, length))
