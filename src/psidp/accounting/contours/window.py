"""The window: a smooth cut of the noise where a single step already decides, so that the far tail cannot disturb.

A step keeps its outcome g with probability chi(g) = Phi((cut - g)/b) and is set aside otherwise. Paths that keep every
step are what the contour integrates; paths with a step set aside are known in closed form, because one such step
outweighs everything the others can do (docs/design/accounting.md, term 6). chi is entire and
|chi(x + iy)| <= e^(y^2/(2 b^2)) chi(x), so every bound of the survey stands with phi replaced by phi chi and e^(y^2/2)
by e^(stretch y^2/2), stretch = 1 + 1/b^2.
"""

from dataclasses import dataclass

import numpy as np

from psidp.accounting.composition import Array, Composition, cut, loss
from psidp.maths.mills import mills
from psidp.maths.normal import SQRT_2PI, TINY, UNIT, tail

__all__ = ["Window"]

SLACK = 1e-13
UNDERFLOW = 16.0 * TINY
"""What a tail is wrong by at most, where it is so small that floats have no digits left."""


@dataclass(frozen=True)
class Window:
    """Where each group is cut and how softly; columns have shape [group, 1]."""

    steps: Composition
    cut: Array
    b: Array

    @classmethod
    def around(cls, steps: Composition, c: float, epsilon: float, log_lost: float) -> "Window":
        """The window for questions near `epsilon` that leaves about e^log_lost undecided, soft enough for tilt c."""
        sigma, q = steps.sigma[:, None], steps.q[:, None]
        reach = np.sqrt(2.0 * max(np.log(steps.steps) - log_lost, 1.0))
        shift = np.where(steps.sign[:, None] > 0, 1.0 / sigma, 0.0)
        s = np.abs(steps.order(c)[:, None])
        v = loss(sigma, q, reach + shift)[1]
        room = np.maximum(-sigma * sigma * np.log(v), (reach + shift) * sigma)
        b = np.clip(np.sqrt(0.25 * room / s), 0.01, 0.7)
        simple = reach * np.sqrt(1.0 + b * b) + shift
        decided = _decided(steps, epsilon)
        return cls(steps, np.minimum(simple, np.maximum(decided, -4.0) + reach * b), b)

    @property
    def stretch(self) -> Array:
        """1 + 1/b^2."""
        return np.asarray(1.0 + 1.0 / (self.b * self.b))

    def keep(self, g: Array) -> tuple[Array, Array]:
        """chi and 1 - chi."""
        x = (g - self.cut) / self.b
        return np.asarray(tail(x)), np.asarray(tail(-x))

    def log_keep(self, g: Array) -> Array:
        """log chi, also where chi underflows."""
        x = (g - self.cut) / self.b
        far = np.log(mills(np.maximum(x, 0.0)) / SQRT_2PI) - 0.5 * x * x
        return np.asarray(np.where(x > 0, far, np.log1p(-tail(np.maximum(-x, 0.0)))))

    def aside(self, epsilon: Array) -> tuple[Array, Array]:
        """What the paths with a step set aside add to delta at each epsilon: proved lower and upper bounds."""
        steps, spread = self.steps, np.sqrt(1.0 + self.b * self.b)
        sigma, q, count, remove = steps.sigma[:, None], steps.q[:, None], steps.count[:, None], steps.sign[:, None] > 0
        plain = tail(self.cut / spread)
        mixed = np.where(remove, (1.0 - q) * plain + q * tail((self.cut - 1.0 / sigma) / spread), plain)
        lowest = UNDERFLOW * float(count.sum())  # what tails of 1e-308 and less are wrong by
        lost = (float((count * mixed).sum()) * (1.0 + 1e-9) + lowest) * np.ones_like(epsilon)
        if steps.gauss > 0 or not (remove.all() or not remove.any()):
            return np.zeros_like(epsilon), lost
        x = np.maximum(self.cut - _decided(steps, epsilon), 0.0) / self.b
        undecided = (count * tail(x)).sum(0) * (1.0 + 1e-9) + lowest
        if not remove.any():
            return np.zeros_like(epsilon), np.minimum(undecided, lost)
        numerator = -np.expm1((count * np.log1p(-mixed)).sum())
        denominator = -np.expm1((count * np.log1p(-plain)).sum())
        settled = numerator - np.exp(epsilon) * denominator
        reach = float(np.max(np.abs(self.cut) + 1.0 / sigma)) + 1.0
        slack = (SLACK + 16.0 * UNIT * reach * reach) * (numerator + np.exp(epsilon) * denominator)
        slack += lowest * (1.0 + np.exp(epsilon))
        lower = np.maximum(settled - slack, 0.0)
        return lower, np.minimum(np.maximum(settled, 0.0) + slack + np.exp(epsilon) * undecided, lost)


def _decided(steps: Composition, epsilon: Array | float) -> Array:
    """The g beyond which one step alone decides on which side of epsilon the total loss is; [group, epsilon]."""
    sigma, q = steps.sigma[:, None], steps.q[:, None]
    least = float(-(steps.count * np.log1p(-steps.q)).sum()) * (1.0 + 1e-12)
    x = np.where(steps.sign[:, None] > 0, least + epsilon, least - epsilon)
    g = cut(sigma, q, x, 8.0 * UNIT)
    return np.asarray(np.where(g > -np.inf, g + 1e-12 * (np.abs(g) + 1.0), -np.inf))
