"""Squares of gradients: upper bounds, example by example, for rows and for products that are formed a few at a time.

docs/design/step.md, claims 1 to 4 and 13.
"""

from collections.abc import Iterator
from types import ModuleType

import torch

from psidp.bridges.torch.noise.tensors import refuse_old_triton
from psidp.bridges.torch.step.contribution import Factors

__all__ = ["CHUNK", "LANES", "Squares", "kernels_for", "parts_of"]

LANES, CHUNK = 4096, 65536
"""Kernels add squares in this order: chunks of a tensor, lane by lane, then lanes and then chunks by halves."""

MANY = 1.0 + 2.0**-36
"""By how much squares are raised that are added up parameter by parameter: enough for 2^16 of them."""

SHORT, SHORT_SLACK = 64, 1.0 + 2.0**-17
"""Squares of floats are added as floats so many at a time, and their sum is raised by this."""

FEW = 2**14
"""So few entries are squared in doubles at once."""

FLOATS = 1.0 + 2.0**-21
"""What a product of floats may add to a row's square."""


class Squares:
    """Sums of squares of each example's gradients, stretch by stretch; `total` bounds them from above.

    Guarantees:
        No total is below the true sum of the squares, up to the slack that all sums of doubles are given. Each depends
        on the example's own entries alone.
    """

    def __init__(self, items: list[torch.Tensor | Factors], examples: int, device: torch.device) -> None:
        self._starts, width = [], 0
        for item in items:
            self._starts.append(width)
            width += _stretches(item)
        self._items = items
        self._partial = torch.zeros((examples, 1 << max(0, width - 1).bit_length()), dtype=torch.float64, device=device)
        self._again: torch.Tensor | None = None
        for item, start in zip(items, self._starts, strict=True):
            for part, rows in [(slice(None), item)] if isinstance(item, torch.Tensor) else item.formed():
                _write(rows, self._partial[part], start)

    @property
    def total(self) -> torch.Tensor:
        """Of all items together."""
        return _halved(self._partial) * MANY

    def once_more(self, f: Factors) -> Iterator[tuple[slice, torch.Tensor]]:
        """Gradients formed again, whose squares are taken again too."""
        start = next(start for item, start in zip(self._items, self._starts, strict=True) if item is f)
        if self._again is None:
            self._again = self._partial.clone()
        for part, rows in f.formed():
            _write(rows, self._again[part], start)
            yield part, rows

    def grown(self, used: torch.Tensor) -> torch.Tensor | None:
        """Whether one that is used was larger, in any stretch, when it was formed again; None where none was."""
        return None if self._again is None else (~(self._again <= self._partial).all(1) & used).any()


def _stretches(item: torch.Tensor | Factors) -> int:
    """Sums of squares that an item has for each example: kernels add up chunks."""
    like, columns = (item, item.shape[1]) if isinstance(item, torch.Tensor) else (item.b, item.rows * item.columns)
    return 1 if kernels_for(like) is None else -(-columns // CHUNK)


def _write(g: torch.Tensor, partial: torch.Tensor, column: int) -> None:
    """The squares of some rows into the columns of `partial` from `column` on."""
    kernels = kernels_for(g)
    if kernels is None:
        partial[:, column] = _squares_of_one(g)
    else:
        kernels.write_squares(g.contiguous(), partial, column, LANES, CHUNK)


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
    for part in parts_of(g.shape[1], CHUNK):
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


def kernels_for(g: torch.Tensor) -> ModuleType | None:
    """The module with the kernels, for floats on an NVIDIA GPU; doubles, whose squares round, do without."""
    if g.device.type != "cuda" or torch.version.cuda is None or g.dtype == torch.float64:
        return None
    refuse_old_triton()
    from psidp.bridges.torch.step import kernel_clipping

    return kernel_clipping


def parts_of(n: int, length: int) -> Iterator[slice]:
    """0 to n in slices."""
    return (slice(start, min(start + length, n)) for start in range(0, n, length))
