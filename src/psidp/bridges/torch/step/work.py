"""Work: how many operations the matrix products and convolutions of a pass take, read off their shapes."""

from typing import Any

import torch

__all__ = ["operations"]

ATEN = torch.ops.aten
INNER = {ATEN.mm: 0, ATEN.bmm: 0, ATEN.addmm: 1, ATEN.baddbmm: 1}
"""For each product, which argument's last dimension is summed over."""


def operations(operator: Any, args: tuple[Any, ...], out: Any) -> int:
    """Multiplications and additions of one call; 0 for operators that are neither a product nor a convolution.

    Examples:
        >>> a, b = torch.ones(2, 3), torch.ones(3, 5)
        >>> operations(torch.ops.aten.mm, (a, b), a @ b)
        60
    """
    if operator in INNER:
        return 2 * int(out.numel()) * int(args[INNER[operator]].shape[-1])
    if operator is ATEN.convolution:
        return 2 * int(out.numel()) * int(args[1][0].numel())
    if operator is ATEN.convolution_backward:
        inputs_and_weights = sum(map(bool, args[-1][:2]))
        return 2 * int(args[0].numel()) * int(args[2][0].numel()) * inputs_and_weights
    return 0
