"""Rounded factors and what their products can weigh: bounds in proof for each example, docs/design/step.md, claim 10.

Activations a are whole numbers before anything else is computed, so that they have no error at all; the norm of
b^T a is computed in doubles, with every rounding charged, and so is what the later rounding of b can add to it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import log2

import torch

from psidp.bridges.torch.step.contribution import SCRATCH, Contribution, Factors
from psidp.bridges.torch.step.squares import Squares

__all__ = ["Weights", "bits_for", "parts", "weights_of"]

WHOLE = 51
"""Sums of one kind stay below 2^51.6, so that doubles add whole numbers exactly, in any order and split."""

BITS = (8, 16)
"""Activations are whole numbers of so many bits, at least and at most."""

LOWEST = -100
"""Activations below 2^-100 count as if their largest were 2^-100."""

COARSE = 2.0**-39
"""Part of |a|^2 |b|^2 that pays for the roundings of b itself, and for factors that a device takes for zero."""

FLUSHED = 2.0**-210
"""What a squared entry of b that a device took for zero can add, with 2^40 that `COARSE` makes of it."""


@dataclass
class Weights:
    """For each example: the squared norm of its gradient, of what rounding adds in units, and the largest factor."""

    squares: torch.Tensor
    rounding: torch.Tensor
    most: torch.Tensor
    of: Squares | None = None  # the squares of rows, for those that are formed again
    together: torch.Tensor | None = None  # the rows of all narrow parameters side by side

    def join(self, other: "Weights") -> None:
        """The same for both together."""
        self.squares += other.squares
        self.rounding += other.rounding
        self.most = torch.minimum(self.most, other.most)


def bits_for(tokens: int, columns: int, rows: int, fineness: int) -> int:
    """Bits of the activations of a layer: so many that rounding b adds about 2^-16 of the clip, between 8 and 16.

    Examples:
        >>> bits_for(1, 1024, 1024, 42), bits_for(128, 768, 3072, 42)
        (16, 13)
    """
    spread = 0.5 * log2(tokens * columns * rows) + 0.25 * log2(tokens)
    return max(BITS[0], min(BITS[1], int(fineness - 13 - spread)))


def rounded(a: torch.Tensor, bits: int) -> tuple[torch.Tensor, torch.Tensor]:
    """For each example, what a is multiplied with and what the whole numbers then stand for: 2^-e and 2^e.

    NaN or infinity among the activations make both NaN.
    """
    largest = torch.linalg.vector_norm(a.flatten(1), torch.inf, dim=1).double()
    exponent = torch.frexp(largest)[1].clamp(min=LOWEST).double() - bits
    exponent = torch.where(torch.isfinite(largest), exponent, torch.nan)
    return torch.exp2(-exponent), torch.exp2(exponent)


def parts(factors: Factors) -> Iterator[slice]:
    """Some examples at a time."""
    width = factors.tokens * max(factors.rows, factors.columns)
    step = max(1, SCRATCH[factors.b.device.type] // max(1, width))
    return (slice(k, k + step) for k in range(0, len(factors.b), step))


def weights_of(c: Contribution, fineness: int, places: int) -> Weights:
    """The weights of one parameter's factors and gathers, for sums over this many places at most."""
    zero = torch.zeros(c.examples, dtype=torch.float64, device=c.parameter.device)
    total = Weights(zero.clone(), zero.clone(), zero + torch.inf)
    for f in c.factors:
        total.join(_of_factors(f, fineness, places))
    for ids, g in c.gathers:
        total.join(_of_gather(ids, g, places))
    if c.factors and c.gathers:  # a table that is read and multiplied with: (x + y)^2 = x^2 + y^2 + 2 x y
        total.squares = (total.squares + _crossed(c.factors[0], *c.gathers[0])).clamp(min=0.0)
        total.rounding *= 2.0
    return total


def _of_factors(f: Factors, fineness: int, places: int) -> Weights:
    """|b^T a|^2 from the matrices of inner products, and its charges."""
    f.scales = rounded(f.a, bits_for(f.tokens, f.columns, f.rows, fineness))
    shrink, grow = f.scales
    found = []
    for part in parts(f):
        a = f.laid((f.a[part] * _as(shrink[part], f.a)).round_())
        found.append(_squares(a, f.b[part].double()))
    squares, reach, largest = (torch.cat(some) for some in zip(*found, strict=True))
    return Weights(squares * grow * grow, reach * (f.tokens * f.rows / 4.0), _limit(places) / (largest * grow))


def _limit(places: int) -> float:
    """What each of so many places may add to a sum at most."""
    return float(2.0**WHOLE / places)


def _as(scale: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """A number for each example, to multiply all that it has."""
    return scale.view(-1, *[1] * (like.ndim - 1))


def _squares(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Upper bounds on |b^T a|^2, on the squared spectral norm of a, and on an entry of any part of b^T a."""
    tokens, columns, rows = a.shape[1], a.shape[2], b.shape[2]
    gamma = (columns + rows + tokens * tokens + 64) * 2.0**-52
    if tokens == 1:
        of_a, of_b = ((x[:, 0] * x[:, 0]).sum(1) for x in (a, b))
        inner, reach, largest = of_a * of_b, of_a, torch.zeros_like(of_a)  # no entry is more than the norm
    else:
        grams = [_gram(x) for x in (a, b)]
        of_a, of_b = (g.diagonal(dim1=1, dim2=2).sum(1) for g in grams)
        reach = torch.minimum(of_a, grams[0].abs().sum(2).amax(1))
        inner = (grams[0] * grams[1]).sum((1, 2))
        tops = [torch.linalg.vector_norm(x, torch.inf, dim=2) for x in (a, b)]
        largest = (tops[0] * tops[1]).sum(1)
    charge = of_a * (of_b * (gamma + COARSE) + tokens * rows * FLUSHED)
    return inner.clamp(min=0.0) + charge * 1.01, reach * (1.0 + gamma), largest


def _gram(x: torch.Tensor) -> torch.Tensor:
    """x x^T for each example; on a GPU in pieces of the sum, so that few examples keep all of it busy."""
    pieces = 1
    while x.device.type == "cuda" and len(x) * pieces < 128 and x.shape[2] % (2 * pieces) == 0 and pieces < 16:
        pieces *= 2
    if pieces == 1:
        return torch.bmm(x, x.transpose(1, 2))
    y = x.unflatten(2, (pieces, -1)).transpose(1, 2).flatten(0, 1)
    return torch.bmm(y, y.transpose(1, 2)).unflatten(0, (-1, pieces)).sum(1)


def _of_gather(ids: torch.Tensor, g: torch.Tensor, places: int) -> Weights:
    """The same for an embedding, whose first factor is the numbers of rows: ones and zeros."""
    tokens, columns = g.shape[1:]
    wide = g.double()
    same = (ids[:, :, None] == ids[:, None, :]).double()
    inner = (same * _gram(wide)).sum((1, 2))
    own = (wide * wide).sum((1, 2))
    gamma = (columns + tokens * tokens + 64) * 2.0**-52
    charge = tokens * (own * (gamma + COARSE) + tokens * columns * FLUSHED)
    largest = torch.linalg.vector_norm(wide, torch.inf, dim=2).sum(1)
    rounding = same.sum((1, 2)) * (columns / 4.0)
    return Weights(inner.clamp(min=0.0) + charge * 1.01, rounding, _limit(places) / largest)


def _crossed(f: Factors, ids: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    """Upper bounds on twice the inner product of what a layer and a gather add to the same table."""
    shrink, grow = f.scales
    a = (f.a * _as(shrink, f.a)).round_()
    wide = g.double()
    at = f.b.gather(2, ids[:, None, :].expand(-1, f.tokens, -1)).double()
    inner = (torch.bmm(a, wide.transpose(1, 2)) * at).sum((1, 2))
    gamma = (f.columns + f.tokens * ids.shape[1] + 64) * 2.0**-52
    own = [(x * x).sum((1, 2)) for x in (a, at, wide)]
    charge = (gamma + COARSE) * torch.sqrt(own[0] * own[1]) * torch.sqrt(own[2])
    return 2.0 * (inner + charge) * grow
