"""What the examples of a micro-batch add to one parameter: gradients as rows, or factors of which they are products.

A row for each example where that is the smaller; otherwise two factors (activations and output gradients, or the
numbers of rows in a table and what goes there), of which no product is formed before all examples are added up.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from psidp.bridges.torch.step.layers import unfolded

__all__ = ["UNFOLDED", "Contribution", "Factors"]

SCRATCH = {"cpu": 2**22, "cuda": 2**24}
"""Numbers that are unfolded or widened at a time."""

UNFOLDED = {"cpu": 2**22, "cuda": 2**28}
"""Numbers that are unfolded at a time where gradients of single examples are formed, which take more."""

FEW_TOKENS = 4
"""Up to so many tokens a norm from inner products is cheaper than a gradient."""

ROOM = 8
"""How many times the factors' room gradients of single examples may take on a CPU, where they are faster.

Measured there, in nanoseconds: a multiplication 0.01 in floats and 0.025 in doubles, 0.8 to round and add an entry of a
gradient, 1.5 to round an entry of a factor.
"""


class Factors:
    """Matrices a (examples, tokens, columns) and b (examples, tokens, rows), whose gradient is the sum of b^T a.

    Of a convolution the input is kept, and its patches are made when they are asked for.
    """

    def __init__(self, a: torch.Tensor, b: torch.Tensor, patch: tuple[Any, Any] | None = None) -> None:
        self.a, self.b, self.patch = a, b, patch
        self.scales: tuple[torch.Tensor, torch.Tensor] = (a, b)  # what a is rounded with, once its weight is known
        self.tokens, self.rows = b.shape[1], b.shape[2]
        self.columns = a.shape[2] * _volume(patch[0]) if patch else a.shape[2]

    @property
    def smaller_as_rows(self) -> bool:
        """Whether gradients of single examples take less room than the factors; on a CPU, less time."""
        factors, gradient = self.tokens * (self.rows + self.columns), self.rows * self.columns
        if self.b.device.type != "cpu":
            return bool(factors >= gradient)
        as_rows = gradient * (0.02 * self.tokens + 0.8)
        as_factors = factors * (0.06 * self.tokens + 3.0) + 0.05 * self.tokens * gradient
        return bool(ROOM * factors >= gradient and as_rows <= as_factors)

    def laid(self, a: torch.Tensor) -> torch.Tensor:
        """Some examples of a, or what was made of it, as matrices."""
        if self.patch is None:
            return a
        return unfolded(a.flatten(0, 1), *self.patch).reshape(len(a), self.tokens, self.columns)

    @property
    def twice(self) -> bool:
        """Whether gradients are formed a few at a time, once for their norms and once more to be added up."""
        return bool(self.b.device.type == "cuda" and self.tokens > FEW_TOKENS)

    def formed(self) -> Iterator[tuple[slice, torch.Tensor]]:
        """Gradients as rows, of a few examples at a time: the same calls in the same order each time."""
        return self._formed(1, self.columns * max(self.tokens, self.rows))

    def gradients(self, groups: int = 1) -> torch.Tensor:
        """A row for each example."""
        parts = [rows for _, rows in self._formed(groups, self.tokens * self.columns)]
        return torch.cat(parts) if len(parts) > 1 else parts[0]

    def _formed(self, groups: int, width: int) -> Iterator[tuple[slice, torch.Tensor]]:
        step = max(1, UNFOLDED[self.b.device.type] // max(1, width))
        for k in range(0, len(self.b), step):
            part = slice(k, k + step)
            yield part, _batched(self.laid(self.a[part]), self.b[part], groups)


class Contribution:
    """What each of n examples adds to one parameter, use by use; as rows where told, or where that is better.

    With `each` above 1 what comes is of n times so many examples, and every `each` in a row are those of one user:
    their rows are added up, their tokens put together, and all that follows takes the user for one example.
    """

    def __init__(self, parameter: nn.Parameter, examples: int, *, as_rows: bool = False, each: int = 1) -> None:
        self.parameter, self.examples, self.as_rows, self.each = parameter, examples, as_rows, each
        self.leaf: torch.Tensor | None = None
        self.copied = False
        self.rows: torch.Tensor | None = None
        self.factors: list[Factors] = []
        self.gathers: list[tuple[torch.Tensor, torch.Tensor]] = []

    def add_rows(self, g: torch.Tensor) -> None:
        """Gradients of single examples."""
        g = g.reshape(self.examples, -1) if len(g) == self.examples else self._together(g[:, None]).flatten(2).sum(1)
        self.rows = g if self.rows is None else self.rows + g

    def add_product(self, a: torch.Tensor, b: torch.Tensor) -> None:
        """The sum over tokens of b^T a, (examples, tokens, columns) and (examples, tokens, rows)."""
        self._add(Factors(self._together(a), self._together(b)))

    def add_conv(self, x: torch.Tensor, g: torch.Tensor, kernel: tuple[int, ...], setting: Any) -> None:
        """A convolution's input and its output's gradient, (examples, images, channels, ...)."""
        groups, x, g = setting[3], self._together(x), self._together(g)
        b = g.flatten(3).transpose(2, 3)
        b = b[:, 0] if b.shape[1] == 1 else b.flatten(1, 2)
        factors = Factors(x, b, (kernel, setting))
        if x.device.type == "cpu" and (groups > 1 or factors.smaller_as_rows):
            self.add_rows(_convolved(x, g, self.parameter.shape, setting))
        elif groups > 1:
            self.add_rows(factors.gradients(groups))
        else:
            self._add(factors)

    def add_gather(self, ids: torch.Tensor, g: torch.Tensor) -> None:
        """What goes to the rows with these numbers: (examples, tokens) and (examples, tokens, columns)."""
        ids, g = self._together(ids), self._together(g)
        if self.parameter.dtype == torch.float64 or ids.shape[1] >= self.parameter.shape[0]:
            self.add_rows(self._scattered(ids, g))
        else:
            self.gathers.append((ids, g))

    def finish(self) -> None:
        """All of one kind: rows, where there are some or where they are smaller, or factors and gathers."""
        factors = self._joined()
        simple = len(factors) <= 1 and not (self.gathers and any(f.patch for f in factors))
        if self.rows is None and simple and not any(f.smaller_as_rows for f in factors):
            self.factors = factors
            if len(self.gathers) > 1:
                ids, g = zip(*self.gathers, strict=True)
                self.gathers = [(torch.cat(ids, 1), torch.cat(g, 1))]
            return
        for f in factors:
            self.add_rows(f.gradients())
        for ids, g in self.gathers:
            self.add_rows(self._scattered(ids, g))
        self.factors, self.gathers = [], []

    def clear(self) -> None:
        """Let go of everything."""
        self.leaf = self.rows = None
        self.factors, self.gathers = [], []

    @property
    def reached(self) -> bool:
        """Whether anything was added."""
        return self.rows is not None or bool(self.factors or self.gathers)

    @property
    def twice(self) -> bool:
        """Whether all of it is one product whose gradients are formed twice, a few at a time."""
        return len(self.factors) == 1 and not self.gathers and self.factors[0].twice

    def gradients(self) -> torch.Tensor:
        """A row for each example, whatever it takes."""
        self.finish()
        total = self.rows
        some = [f.gradients() for f in self.factors] + [self._scattered(*pair) for pair in self.gathers]
        for g in some:
            total = g if total is None else total + g
        if total is None:
            total = self.parameter.new_zeros(self.examples, self.parameter.numel())
        return total.view(self.examples, *self.parameter.shape).to(self.parameter.dtype)

    def _together(self, x: torch.Tensor) -> torch.Tensor:
        """(examples, tokens, ...) with the tokens of all examples of a user as those of one."""
        return x if self.each == 1 else x.reshape(self.examples, self.each * x.shape[1], *x.shape[2:])

    def _add(self, factors: Factors) -> None:
        if self.as_rows or self.parameter.dtype == torch.float64 or factors.smaller_as_rows:
            self.add_rows(factors.gradients())
        else:
            self.factors.append(factors)

    def _joined(self) -> list[Factors]:
        """Uses of one matrix with plain factors as one use with all their tokens; convolutions as they are."""
        plain = [f for f in self.factors if f.patch is None]
        if len(plain) > 1:
            whole = Factors(torch.cat([f.a for f in plain], 1), torch.cat([f.b for f in plain], 1))
            plain = [whole]
        return plain + [f for f in self.factors if f.patch is not None]

    def _scattered(self, ids: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
        """A row for each example: g added up where the numbers say, by a product with ones and zeros.

        To scatter floats on a GPU would add them up in an order of its own each time.
        """
        wide = g.float() if g.dtype == torch.bfloat16 else g
        numbers = torch.arange(self.parameter.shape[0], device=ids.device)
        step = max(1, SCRATCH[g.device.type] // max(1, ids.shape[1] * len(numbers)))
        parts = []
        for k in range(0, len(ids), step):
            ones = (ids[k : k + step, None, :] == numbers[:, None]).to(wide.dtype)
            parts.append(torch.bmm(ones, wide[k : k + step]).flatten(1))
        return torch.cat(parts) if len(parts) > 1 else parts[0]


def _batched(a: torch.Tensor, b: torch.Tensor, groups: int) -> torch.Tensor:
    """b^T a for each example, as rows; with groups, of each group's columns and rows alone."""
    if a.dtype != torch.float64 and b.dtype != torch.float64:
        a, b = (a.float(), b.float()) if a.device.type == "cpu" or a.dtype != b.dtype else (a, b)
    if groups == 1:
        return torch.bmm(b.transpose(1, 2), a).flatten(1)
    a, b = (x.unflatten(2, (groups, -1)).transpose(1, 2) for x in (a, b))
    return torch.matmul(b.transpose(2, 3), a).flatten(1)


def _convolved(x: torch.Tensor, g: torch.Tensor, shape: torch.Size, setting: Any) -> torch.Tensor:
    """Weight gradients of a convolution, a row for each example: each image is a group of its own."""
    n, images = x.shape[:2]
    stride, padding, dilation, groups = setting
    wide = g.float() if g.dtype == torch.bfloat16 else g
    found = torch.ops.aten.convolution_backward(
        wide.reshape(1, -1, *g.shape[3:]), x.to(wide.dtype).reshape(1, -1, *x.shape[3:]),
        wide.new_empty(n * images * shape[0], *shape[1:]), None,
        stride, padding, dilation, False, [0] * len(stride), n * images * groups, [False, True, False],
    )[1]  # fmt: skip
    return found.view(n, images, -1).sum(1) if images > 1 else found.view(n, -1)


def _volume(kernel: tuple[int, ...]) -> int:
    """Places of a kernel."""
    return int(torch.Size(kernel).numel())
