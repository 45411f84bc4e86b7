"""Sums of what examples add, clipped in L2 over all parameters together, as exact whole numbers on their device.

Floats propose, and a bound on every rounding makes sure: docs/design/step.md, claims 1 to 4 and 10.
"""

from collections.abc import Iterator, Sequence
from math import ldexp
from types import ModuleType

import torch
from torch import nn

from psidp.bridges.torch.noise.tensors import add_noise_, refuse_old_triton
from psidp.bridges.torch.step.bounds import Weights, parts, weights_of
from psidp.bridges.torch.step.contribution import Contribution, Factors
from psidp.mechanism.clipping import IntegerGrid

__all__ = ["CHUNK", "EXPONENTS", "LANES", "MOST", "ClippedTotals", "bound_of", "fineness_for"]

FINENESS = 30
"""A row's norm bound is 2^30 to 2^31 of its units."""

FINEST = 42
"""An example's norm bound is at most 2^42 to 2^43 units."""

EXPONENTS = (-100, 100)
"""Where the binary exponent of the norm bound may lie."""

MODEST = (2.0**-60, 2.0**60)
"""Clips for which rows on a CPU are multiplied as floats."""

MOST = 2**40
"""Parameters of a model at most."""

LANES, CHUNK = 4096, 65536
"""Kernels add squares in this order: chunks of a tensor, lane by lane, then lanes and then chunks by halves."""

FLUSHED = 2.0**-252
"""What a square may lose at most where a device takes subnormal numbers for zero."""

SLACK = 1.0 + 2.0**-45
"""By how much a sum of squares in doubles is raised, and its root again; the roundings need less than 2^-46."""

SHORT, SHORT_SLACK = 64, 1.0 + 2.0**-17
"""Squares of floats are added as floats so many at a time, and their sum is raised by this."""

FEW = 2**14
"""So few entries are squared in doubles at once."""

FLOATS = 1.0 + 2.0**-21
"""What a product of floats may add to a row's square."""

EXACT = 2**53
"""Totals end here: up to so many units a double is exact."""

ENTRIES = 2**19
"""Entries that are scaled at a time on a CPU."""


def bound_of(clip: float, fineness: int = FINENESS) -> tuple[int, int]:
    """The norm bound in units, floor(clip 2^-unit) in [2^fineness, 2^(fineness + 1)), and the unit's exponent."""
    low, high = EXPONENTS
    if not 2.0**low <= clip < 2.0 ** (high + 1):
        raise ValueError(
            f"clip (largest L2 norm of one example's gradient) must be in [2^{low}, 2^{high + 1}), got clip={clip}."
        )
    unit = IntegerGrid.fitting(clip).unit + FINENESS - fineness
    return int(ldexp(clip, -unit)), unit


def fineness_for(places: int) -> int:
    """How fine the units are, for sums over so many places: 2^42 to a clip, and fewer from 256 places on."""
    return max(FINENESS, min(FINEST, 50 - (max(1, places) - 1).bit_length()))


class ClippedTotals:
    """Running totals, in units of 2^unit, of what examples add, clipped to `clip`; its text never shows them.

    Guarantees:
        What one example adds is an integer vector k with sum k_i^2 <= bound^2, and bound 2^unit <= clip: always, for
        any entries, on any device. It is zero where an entry is NaN or infinite. It depends on the example's own
        entries alone, and the totals on no order. In float64 a norm beyond 2^511 counts as infinite.

    Args:
        places: examples at most that are added up before totals go from doubles, in which the sums are exact, to
            integers of 64 bits.
    """

    def __init__(
        self, parameters: Sequence[torch.Tensor], clip: float, *, fineness: int = FINENESS, places: int = 2**20
    ) -> None:
        self.bound, self.unit = bound_of(clip, fineness)
        self._fineness, self._places = fineness, places
        self._as_floats = MODEST[0] <= clip <= MODEST[1]
        self._parameters = list(parameters)
        self._sizes = [p.numel() for p in parameters]
        self._sums = torch.zeros(sum(self._sizes), dtype=torch.float64, device=parameters[0].device)
        self._carried: torch.Tensor | None = None
        self._since = 0

    @property
    def units(self) -> torch.Tensor:
        """The totals as integers."""
        now = self._sums.to(torch.int64)
        return now if self._carried is None else now + self._carried

    def add(self, gradients: list[torch.Tensor], live: torch.Tensor) -> torch.Tensor:
        """Add the rows that are live; how many of these are undefined, as a tensor.

        A tensor for each parameter, a row for each example. Of the list nothing is left.
        """
        contributions = []
        for p in self._parameters:
            c = Contribution(nn.Parameter(p, requires_grad=False), len(live))
            c.add_rows(gradients.pop(0))
            contributions.append(c)
        return self.add_contributions(contributions, live)

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def add_contributions(self, contributions: list[Contribution], live: torch.Tensor) -> torch.Tensor:
        """Add what the live examples contribute to each parameter; how many of these are undefined, as a tensor."""
        self._make_room(len(live))
        factor, undefined = self._factors(self._weights(contributions), live)
        start = 0
        for c, size in zip(contributions, self._sizes, strict=True):
            self._add_one(self._sums[start : start + size], c, factor)
            start += size
        return undefined

    def taken(self) -> torch.Tensor:
        """The totals themselves, which are private, as one flat tensor of integers; none are left."""
        units, self._sums, self._carried = self.units, self._sums[:0], None
        return units

    def noisy(self, sigma: float) -> torch.Tensor:
        """The totals plus noise of standard deviation sigma, in units, as one flat tensor of doubles; none are left."""
        sums, self._sums = self._sums, self._sums[:0]
        if self._carried is not None:
            for part in _parts(sums.numel(), ENTRIES):
                whole = sums[part].to(torch.int64) + self._carried[part]
                sums[part] = whole.clamp(-EXACT, EXACT).to(torch.float64)
            self._carried = None
        return add_noise_(sums, sigma)

    def _make_room(self, examples: int) -> None:
        """Put the doubles away as integers where more examples could take them beyond 2^53."""
        if self._since and self._since + examples > self._places:
            self._carried = self.units
            self._sums.zero_()
            self._since = 0
        self._since += examples

    def _weights(self, contributions: list[Contribution]) -> Weights:
        """Those of all parameters together; what is a row is charged for its flushed entries."""
        device, n = self._sums.device, contributions[0].examples
        flushed = sum(self._sizes) * FLUSHED
        total = Weights(*(torch.full((n,), x, dtype=torch.float64, device=device) for x in (flushed, 0.0, torch.inf)))
        rows: list[torch.Tensor] = []
        for c in contributions:
            c.finish()
            if c.rows is not None and c.rows.numel():
                rows.append(c.rows)
            elif c.factors or c.gathers:
                total.join(weights_of(c, self._fineness, self._places))
        total.squares += _squares_of_rows(rows)
        return total

    def _factors(self, weights: Weights, live: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """What to multiply each example with, zero where it is undefined or not live; and how many are undefined."""
        defined = torch.isfinite(weights.squares)
        norm = torch.sqrt(weights.squares * SLACK) * SLACK
        left = self.bound - torch.sqrt(weights.rounding) * SLACK
        factor = torch.minimum(left.clamp(min=0.0) / norm, weights.most).clamp(max=ldexp(1.0, -self.unit))
        return torch.where(defined & live, factor, 0.0), (live & ~defined).sum()

    def _add_one(self, sums: torch.Tensor, c: Contribution, factor: torch.Tensor) -> None:
        """Add what one parameter is given."""
        if c.rows is not None and c.rows.numel():
            _add_rows(sums, c.rows, factor, max(0, self._fineness - FINENESS), self._as_floats)
        table = sums.view(c.parameter.shape) if c.factors or c.gathers else sums
        for f in c.factors:
            _add_product(table.flatten(1), f, factor)
        for ids, g in c.gathers:
            whole = _whole(g, factor)
            table += torch.ops.aten.embedding_dense_backward(whole, ids, len(table), -1, False)


def _add_product(table: torch.Tensor, f: Factors, factor: torch.Tensor) -> None:
    """Add the sum over all examples of b^T a, both of whole numbers, so that doubles add it up exactly."""
    shrink, grow = f.scales
    used = factor > 0
    shrink, grow = torch.where(used, shrink, 0.0), torch.where(used, factor * grow, 0.0)
    for part in parts(f):
        a, b = f.laid(_whole(f.a[part], shrink[part])), _whole(f.b[part], grow[part])
        table.addmm_(b.flatten(0, 1).t(), a.flatten(0, 1))


def _whole(x: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
    """Each example times its factor, rounded to whole numbers, in doubles; zero where the factor is."""
    scale = factor.view(-1, *[1] * (x.ndim - 1))
    if x.device.type == "cpu" and bool((factor > 0).all()):
        return (x * scale).round_()
    return torch.where(scale > 0, x * scale, 0.0).round_()


def _squares_of_rows(rows: list[torch.Tensor]) -> torch.Tensor | float:
    """Upper bounds on the squares of each example's rows, up to the slack that all sums of doubles are given."""
    kernels = _kernels(rows[0]) if rows else None
    if kernels is None:
        return sum(map(_squares_of_one, rows))
    chunks = [-(-g.shape[1] // CHUNK) for g in rows]
    width = 1 << (sum(chunks) - 1).bit_length()
    partial = torch.zeros((len(rows[0]), width), dtype=torch.float64, device=rows[0].device)
    for k, g in enumerate(rows):
        kernels.write_squares(g.contiguous(), partial, sum(chunks[:k]), LANES, CHUNK)
    return _halved(partial)


def _squares_of_one(g: torch.Tensor) -> torch.Tensor:
    """The same for the rows of one parameter, without kernels."""
    if g.device.type != "cpu" or g.dtype == torch.float64 or g.numel() <= FEW:
        return _squares_in_doubles(g)
    squares = _squares_in_floats(g)
    doubtful = ~(squares.isfinite() & (squares > g.shape[1] * 2.0**-100))
    for row in doubtful.nonzero().flatten().tolist():  # each alone: torch adds up in another order beside others
        squares[row] = _squares_in_doubles(g[row : row + 1])[0]
    return squares


def _squares_in_floats(g: torch.Tensor) -> torch.Tensor:
    """Sums of squares, added as floats 64 at a time."""
    body = g.shape[1] // SHORT * SHORT
    whole = [g[:, :body].unflatten(1, (-1, SHORT)), g[:, None, body:]]
    norms = [torch.linalg.vector_norm(x.float(), dim=2).double() for x in whole if x.numel()]
    return sum((x * x).sum(1) for x in norms) * (SHORT_SLACK * FLOATS)


def _squares_in_doubles(g: torch.Tensor) -> torch.Tensor:
    """Sums of squares in doubles, in any order, raised by what that can lose."""
    total = torch.zeros(len(g), dtype=torch.float64, device=g.device)
    for part in _parts(g.shape[1], CHUNK):
        x = g[:, part].to(torch.float64)
        total += (x * x).sum(1)
    slack = 1.0 + (g.shape[1] + 8) * 2.0**-52
    return total * (slack if g.dtype == torch.float64 else slack * FLOATS)


def _halved(values: torch.Tensor) -> torch.Tensor:
    """Sums of the rows, whose length is a power of two: the second half added to the first until one is left."""
    while values.shape[1] > 1:
        half = values.shape[1] // 2
        values = values[:, :half] + values[:, half:]
    return values[:, 0]


def _add_rows(sums: torch.Tensor, g: torch.Tensor, factor: torch.Tensor, shift: int, as_floats: bool) -> None:
    """Add to the sums each row times its factor, cut toward zero to a multiple of 2^shift."""
    kernels = _kernels(g)
    if kernels is not None:
        kernels.add_units(sums, g.contiguous(), factor * 2.0**-shift, 2.0**shift)
        return
    floats = as_floats and g.dtype != torch.float64
    scale = (factor * 2.0**-shift)[:, None].to(torch.float32 if floats else torch.float64)
    whole = bool((factor > 0).all())
    for part in _parts(g.shape[1], max(1, ENTRIES // len(g))):
        rows = g[:, part] if whole else torch.where(scale > 0, g[:, part], 0)
        sums[part] += (rows * scale).to(torch.int32 if floats else torch.int64).sum(0).double().mul_(2.0**shift)


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
