"""Sums of what examples add, clipped in L2 over all parameters together, as exact whole numbers on their device.

Floats propose, and a bound on every rounding makes sure: docs/design/step.md, claims 1 to 4 and 10.
"""

from collections.abc import Sequence
from itertools import accumulate
from math import ldexp

import torch
from torch import nn

from psidp.bridges.torch.noise.tensors import add_noise_
from psidp.bridges.torch.step.bounds import Weights, parts, weights_of
from psidp.bridges.torch.step.contribution import Contribution, Factors
from psidp.bridges.torch.step.squares import Squares, kernels_for, parts_of
from psidp.mechanism.clipping import IntegerGrid

__all__ = ["EXPONENTS", "MOST", "ClippedTotals", "bound_of", "fineness_for", "noisy"]

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

FLUSHED = 2.0**-252
"""What a square may lose at most where a device takes subnormal numbers for zero."""

SLACK = 1.0 + 2.0**-45
"""By how much a sum of squares in doubles is raised, and its root again; the roundings need less than 2^-46."""

NARROW = 4096
"""Parameters of so many entries at most, such as biases, are squared and added up together: a call costs as much."""

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


def noisy(totals: torch.Tensor, sigma: float) -> torch.Tensor:
    """Totals (64-bit integers, flat) plus noise of standard deviation sigma, in units, as doubles."""
    return add_noise_(totals.clamp(-EXACT, EXACT).to(torch.float64), sigma)


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
        self._most = 2 ** max(0, 50 - fineness)  # so many clips that no sum reaches 2^53
        self._fineness, self._places = fineness, min(places, self._most)
        self._as_floats = MODEST[0] <= clip <= MODEST[1]
        self._parameters = list(parameters)
        self._sizes = [p.numel() for p in parameters]
        self._sums = torch.zeros(sum(self._sizes), dtype=torch.float64, device=parameters[0].device)
        self._narrow = dict.fromkeys(k for k, size in enumerate(self._sizes) if size <= NARROW)  # a set in order
        self._beside = self._sums.new_zeros(sum(self._sizes[k] for k in self._narrow))  # what is added to these
        self._carried: torch.Tensor | None = None
        self._grown: torch.Tensor | None = None  # whether a gradient was larger when it was formed again
        self._since = 0
        self.factors: list[torch.Tensor] = []  # what each example was multiplied with, zero for none: private

    @property
    def units(self) -> torch.Tensor:
        """The totals as integers."""
        self._refuse_grown()
        self._settle()
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

    def add_contributions(self, contributions: list[Contribution], live: torch.Tensor) -> torch.Tensor:
        """Add what the live examples contribute to each parameter; how many of these are undefined, as a tensor."""
        return self.add_weighed(contributions, self.weigh(contributions), live)

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def add_weighed(self, contributions: list[Contribution], weights: Weights, live: torch.Tensor) -> torch.Tensor:
        """The same, of examples whose weights are known."""
        self._make_room(len(live))
        factor, undefined = self._factors(weights, live)
        self.factors.append(factor)
        together = weights.together
        if together is not None:
            _add_rows(self._beside, together, factor, max(0, self._fineness - FINENESS), self._as_floats)
        start = 0
        for k, (c, size) in enumerate(zip(contributions, self._sizes, strict=True)):
            if together is None or k not in self._narrow:
                self._add_one(self._sums[start : start + size], c, factor, weights.of)
            start += size
        grown = None if weights.of is None else weights.of.grown(factor > 0)
        if grown is not None:
            self._grown = grown if self._grown is None else self._grown | grown
        return undefined

    def _together(self, contributions: list[Contribution]) -> torch.Tensor | None:
        """The rows of all narrow parameters side by side; None where they are not of one kind."""
        rows = [contributions[k].rows for k in self._narrow]
        if len(rows) < 2 or any(g is None for g in rows) or len({g.dtype for g in rows if g is not None}) > 1:
            return None
        return torch.cat([g for g in rows if g is not None], 1)

    def _settle(self) -> None:
        """Put what was added beside the totals where it belongs."""
        ends, at = list(accumulate(self._sizes)), 0
        for k in self._narrow if self._sums.numel() else ():
            size = self._sizes[k]
            self._sums[ends[k] - size : ends[k]] += self._beside[at : at + size]
            at += size
        self._beside.zero_()

    def taken(self) -> torch.Tensor:
        """The totals themselves, which are private, as one flat tensor of integers; none are left."""
        units, self._sums, self._carried = self.units, self._sums[:0], None
        return units

    def noisy(self, sigma: float) -> torch.Tensor:
        """The totals plus noise of standard deviation sigma, in units, as one flat tensor of doubles; none are left."""
        self._refuse_grown()
        self._settle()
        sums, self._sums = self._sums, self._sums[:0]
        if self._carried is not None:
            for part in parts_of(sums.numel(), ENTRIES):
                whole = sums[part].to(torch.int64) + self._carried[part]
                sums[part] = whole.clamp(-EXACT, EXACT).to(torch.float64)
            self._carried = None
        return add_noise_(sums, sigma)

    def _refuse_grown(self) -> None:
        """Refuse totals of a device that formed a larger gradient the second time, whose norm nobody has bounded."""
        if self._grown is not None and bool(self._grown):
            raise ArithmeticError(
                "this device gave an example another gradient when it was formed again from the same numbers, so that "
                "no bound holds for it. Nothing of this step was released. Give the step more memory, in which all "
                "gradients fit at once."
            )

    def _make_room(self, examples: int) -> None:
        """Put the doubles away as integers where more examples could take them beyond 2^53."""
        if not examples <= self._most:
            raise ValueError(
                f"micro_batch (examples at a time) must be at most {self._most}, got {examples}: sums must be exact."
            )
        if self._since and self._since + examples > self._places:
            self._carried = self.units
            self._sums.zero_()
            self._since = 0
        self._since += examples

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def weigh(self, contributions: list[Contribution]) -> Weights:
        """The weights of all parameters together; what is a row is charged for its flushed entries."""
        device, n = self._sums.device, contributions[0].examples
        flushed = sum(self._sizes) * FLUSHED
        total = Weights(*(torch.full((n,), x, dtype=torch.float64, device=device) for x in (flushed, 0.0, torch.inf)))
        for c in contributions:
            c.finish()
        together = self._together(contributions)
        items: list[torch.Tensor | Factors] = [] if together is None else [together]
        for k, c in enumerate(contributions):
            if together is not None and k in self._narrow:
                continue
            if c.rows is not None and c.rows.numel():
                items.append(c.rows)
            elif c.twice:
                items.append(c.factors[0])
            elif c.factors or c.gathers:
                total.join(weights_of(c, self._fineness, self._places))
        total.of, total.together = Squares(items, n, device), together
        total.squares += total.of.total
        return total

    def _factors(self, weights: Weights, live: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """What to multiply each example with, zero where it is undefined or not live; and how many are undefined."""
        defined = torch.isfinite(weights.squares)
        norm = torch.sqrt(weights.squares * SLACK) * SLACK
        left = self.bound - torch.sqrt(weights.rounding) * SLACK
        factor = torch.minimum(left.clamp(min=0.0) / norm, weights.most).clamp(max=ldexp(1.0, -self.unit))
        return torch.where(defined & live, factor, 0.0), (live & ~defined).sum()

    def _add_one(self, sums: torch.Tensor, c: Contribution, factor: torch.Tensor, squares: Squares | None) -> None:
        """Add what one parameter is given."""
        shift = max(0, self._fineness - FINENESS)
        if c.rows is not None and c.rows.numel():
            _add_rows(sums, c.rows, factor, shift, self._as_floats)
        if c.twice and squares is not None:
            for part, rows in squares.once_more(c.factors[0]):
                _add_rows(sums, rows, factor[part], shift, self._as_floats)
            return
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


def _add_rows(sums: torch.Tensor, g: torch.Tensor, factor: torch.Tensor, shift: int, as_floats: bool) -> None:
    """Add to the sums each row times its factor, cut toward zero to a multiple of 2^shift."""
    kernels = kernels_for(g)
    if kernels is not None:
        kernels.add_units(sums, g.contiguous(), factor * 2.0**-shift, 2.0**shift)
        return
    floats = as_floats and g.dtype != torch.float64
    scale = (factor * 2.0**-shift)[:, None].to(torch.float32 if floats else torch.float64)
    whole = bool((factor > 0).all())
    for part in parts_of(g.shape[1], max(1, ENTRIES // len(g))):
        rows = g[:, part] if whole else torch.where(scale > 0, g[:, part], 0)
        sums[part] += (rows * scale).to(torch.int32 if floats else torch.int64).sum(0).double().mul_(2.0**shift)
