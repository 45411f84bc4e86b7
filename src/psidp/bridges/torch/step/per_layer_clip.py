"""Per-layer clipping: each layer's part of a gradient has a bound of its own, and the squares of all bounds add up.

docs/design/step.md, claim 11.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import frexp, inf, nextafter, sqrt
from typing import Any, final

import torch

from psidp.bridges.torch.step.clipping import ClippedTotals
from psidp.bridges.torch.step.contribution import Contribution
from psidp.symbols import Symbol

__all__ = ["LayeredTotals", "PerLayerClip"]

BOUND = Symbol("clip", "C", "largest L2 norm of a layer's part of one example's gradient", "(0,inf)", "1")

SMALLEST = 2.0**-12
"""A layer's bound at least, of that of all together: the noise on it goes by all together."""


@final
@dataclass(frozen=True)
class PerLayerClip:
    """A bound for each layer's part of one example's gradient; together their norm is `norm`, and the noise goes by it.

    Args:
        bounds: a number: the norm of all together, split evenly over the modules that have trainable parameters. Or a
            number for each layer, by the name of a module or parameter: the longest name counts, and "" is all others.

    Examples:
        >>> PerLayerClip({"body": 0.75, "head": 1.0}).norm
        1.25
        >>> from torch import nn
        >>> model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
        >>> PerLayerClip(1.0).layers(dict(model.named_parameters()))
        {'0': 0.7071067811865475, '1': 0.7071067811865475}
    """

    bounds: float | Mapping[str, float]

    def __post_init__(self) -> None:
        if isinstance(self.bounds, Mapping):
            if not self.bounds:
                raise ValueError("bounds of PerLayerClip must name a layer, got none.")
            for name in self.bounds:
                if not isinstance(name, str):
                    raise TypeError(f"bounds of PerLayerClip must be by names, got {type(name).__name__}.")
            object.__setattr__(self, "bounds", {name: BOUND.number(c) for name, c in self.bounds.items()})
        else:
            object.__setattr__(self, "bounds", BOUND.number(self.bounds))

    @property
    def norm(self) -> float:
        """Of all bounds together, never rounded down."""
        return self.bounds if isinstance(self.bounds, float) else _root_up(self.bounds.values())

    @property
    def words(self) -> str:
        """What is done to a gradient."""
        return f"clipped layer by layer, all layers together to norm {self.norm:.6g}"

    @property
    def terms(self) -> dict[str, Any]:
        """The same as plain values."""
        return {"per_layer": self.bounds if isinstance(self.bounds, float) else dict(self.bounds)}

    def layer_of(self, name: str) -> str:
        """Which layer a parameter belongs to, or a refusal."""
        if isinstance(self.bounds, float):
            return name.rpartition(".")[0]
        fitting = [layer for layer in self.bounds if layer in ("", name) or name.startswith(layer + ".")]
        if not fitting:
            raise ValueError(
                f"bounds of PerLayerClip must cover every trainable parameter, and none covers {name}. "
                'Name its layer, or say "" for all others.'
            )
        return max(fitting, key=len)

    def layers(self, parameters: Iterable[str]) -> dict[str, float]:
        """The bound of each layer of these parameters; their squares add up to at most norm^2, in true numbers."""
        found = dict.fromkeys(map(self.layer_of, parameters))
        if isinstance(self.bounds, float):
            each = self.bounds / sqrt(len(found))
            while not len(found) * Fraction(each) ** 2 <= Fraction(self.bounds) ** 2:
                each = nextafter(each, 0.0)
            return dict.fromkeys(found, each)
        for layer, bound in self.bounds.items():
            if layer not in found:
                raise ValueError(f'bounds of PerLayerClip must be of trainable layers, and "{layer}" has no parameter.')
            if not bound >= SMALLEST * self.norm:
                raise ValueError(
                    f"bounds of PerLayerClip must be at least {SMALLEST:.2g} of all together, got {bound} for layer "
                    f'"{layer}" of {self.norm:.6g}: noise goes by that, and nothing of this layer would be left.'
                )
        return {layer: self.bounds[layer] for layer in found}


class LayeredTotals:
    """Totals of several layers, each clipped by itself, in one unit; like ClippedTotals otherwise.

    Guarantees:
        What one example adds to a layer has norm at most the layer's bound in units, and all of it together at most
        norm 2^-unit. Where anything of it is NaN or infinite, it is zero in every layer.
    """

    def __init__(self, parameters: dict[str, torch.Tensor], clip: PerLayerClip, *, fineness: int, places: int) -> None:
        top = frexp(clip.norm)[1]
        bounds = clip.layers(parameters)
        self._names = list(parameters)
        self._of = {layer: [name for name in parameters if clip.layer_of(name) == layer] for layer in bounds}
        self._sizes = {name: p.numel() for name, p in parameters.items()}
        self._totals = {
            layer: ClippedTotals(
                [parameters[name] for name in self._of[layer]],
                bound,
                fineness=fineness
                - (top - frexp(bound)[1]),  # as much coarser as the bound is smaller: one unit for all
                places=places,
            )
            for layer, bound in bounds.items()
        }
        (self.unit,) = {totals.unit for totals in self._totals.values()}

    @property
    def bounds(self) -> dict[str, int]:
        """The bound of each layer, in units."""
        return {layer: totals.bound for layer, totals in self._totals.items()}

    @property
    def units(self) -> torch.Tensor:
        """The totals as integers, in the order of the parameters."""
        return self._together([totals.units for totals in self._totals.values()])

    def add_contributions(self, contributions: Sequence[Contribution], live: torch.Tensor) -> torch.Tensor:
        """Add what the live examples contribute to each parameter; how many of these are undefined, as a tensor."""
        by_name = dict(zip(self._names, contributions, strict=True))
        parts = {layer: [by_name[name] for name in names] for layer, names in self._of.items()}
        weights = {layer: self._totals[layer].weigh(part) for layer, part in parts.items()}
        defined = torch.stack([torch.isfinite(w.squares) for w in weights.values()]).all(0)
        for layer, part in parts.items():
            self._totals[layer].add_weighed(part, weights[layer], live & defined)
        return (live & ~defined).sum()

    def taken(self) -> torch.Tensor:
        """The totals themselves, which are private, as one flat tensor of integers; none are left."""
        return self._together([totals.taken() for totals in self._totals.values()])

    def noisy(self, sigma: float) -> torch.Tensor:
        """The totals plus noise of standard deviation sigma, in units, as one flat tensor of doubles; none are left."""
        return self._together([totals.noisy(sigma) for totals in self._totals.values()])

    def _together(self, flat: list[torch.Tensor]) -> torch.Tensor:
        """One tensor for each layer as one for all, in the order of the parameters."""
        found: dict[str, torch.Tensor] = {}
        for names, values in zip(self._of.values(), flat, strict=True):
            found |= zip(names, values.split([self._sizes[name] for name in names]), strict=True)
        return torch.cat([found[name] for name in self._names])


def _root_up(bounds: Iterable[float]) -> float:
    """The root of the sum of squares, never rounded down."""
    square = sum((Fraction(c) ** 2 for c in bounds), Fraction(0))
    root = sqrt(square)
    while not Fraction(root) ** 2 >= square:
        root = nextafter(root, inf)
    return root
