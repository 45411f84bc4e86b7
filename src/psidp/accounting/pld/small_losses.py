"""Small losses: the sum of many steps that each lose next to nothing, on a grid as fine as that sum.

A grid that holds the sum is far too coarse for one step: every step would be moved by more than it loses. So a long run
is composed twice. Some sqrt(T) steps make a block on a fine grid; blocks move to a coarse one and are composed there,
with the few steps that are left (docs/design/accounting.md, "Jumps"). Several tilts bound the same sum, each closely
near its own mean.
"""

from dataclasses import dataclass

import numpy as np

from psidp.accounting.composition import Array, loss
from psidp.accounting.contours.mgf_table import LIBM, ULP
from psidp.accounting.pld.balanced import balanced
from psidp.accounting.pld.convolution import Part, Side, composed, outside, powers
from psidp.accounting.pld.step_law import Law, Masses, gathered

__all__ = ["LONG", "SPARE", "SmallLosses", "on_grid"]

POINTS = 1 << 16
LONG = 1 << 13
"""Steps from which on blocks are made."""
VERY_LONG = 10**7
SPARE = 1 << 4
"""Steps that are left for jumps: so many at most are taken away from the last block."""
NODES = 2048
OUTSIDE = 1e-19
"""What may wrap around a grid, as a share."""
APART = 8.0
"""The factor between tilts, at most."""
SAFE = 1e-12
FINER = 0.25
"""Cells that are merged, beside the step of the grid."""


class SmallLosses:
    """Steps of one law, cut above, and plain Gaussians, for sums up to epsilon and the tilt c above all.

    Blocks are made on a grid that is so many times `finer`.
    """

    def __init__(self, laws: list[Law], c: float, epsilon: float, finer: int = 1) -> None:
        self.laws, (self.law, *self.plain) = laws, laws
        count = self.law.count
        self.guides = [_guide(law) for law in laws]
        spread = float(np.sqrt(sum(_variance(part, 0.0) * part.count for part in self.guides)))
        self.tilts = _tilts(1.0 / spread if spread > 0.0 else c, c, _farthest(self.guides, c, epsilon))
        self.block = float(1 << int(0.5 * np.log2(count))) if count >= LONG else 1.0
        self.blocks = float((count - SPARE) // self.block) if self.block > 1.0 else 0.0
        self.eta = self._span(self.guides) / POINTS
        alone = Part(self.guides[0].index, self.guides[0].log_mass, self.block, 1.0)
        self.points = POINTS * finer
        self.fine = self._span([alone]) / self.points
        self.further: dict[float, float] = {}
        self.made: dict[bool, list[_Made]] = {up: self._make(up) for up in (False, True)}

    def sides(self, up: bool, count: float) -> list[Side]:
        """Grids of `count` steps and the plain Gaussians, one for each tilt."""
        found = []
        for c, made in zip(self.tilts, self.made[up], strict=True):
            made.step.count = count - self.blocks * self.block
            parts = made.parts if made.step.count > 0.0 else made.parts[1:]
            if c not in self.further:
                self.further[c] = _scale(parts, c)
            found.append(composed(parts, c, POINTS, self.eta, self._center(parts, c), self.further[c]))
        return found

    def log_mgf(self, c: float) -> float:
        """Upper bound of log E[e^(c loss)] of one step, as a share of the whole of its noise."""
        return self.made[True][0].step.log_mgf(c)

    @property
    def off(self) -> float:
        """How far a loss of one step, and the logarithm of its mass, may be off in that bound."""
        return self.made[True][0].step.off

    def log_mgf_plain(self, c: float) -> float:
        """Upper bound of the same of all plain Gaussians."""
        return sum(part.log_mgf(c) for part in self.made[True][0].plain)

    def _make(self, up: bool) -> "list[_Made]":
        """The masses of one step, of a block for each tilt, and of the plain Gaussians."""
        coarse = [on_grid(law, self.eta, up) for law in self.laws]
        fine = on_grid(self.law, self.fine, up) if self.blocks else None
        made = []
        for c in self.tilts:
            step, *plain = (Part.of(masses, 1.0, self.eta) for masses in coarse)
            blocks = [self._block(Part.of(fine, self.block, self.fine), c, up)] if fine else []
            made.append(_Made(step, blocks, plain))
        return made

    def _block(self, part: Part, c: float, up: bool) -> Part:
        """One block of steps, composed on the fine grid and moved to the coarse one."""
        points = self.points
        product, high, scale = powers([part], c, points)
        start = np.floor(part.count * _mean(part, c) / self.fine - 0.5 * points)
        turn = np.exp(2j * np.pi * np.mod(np.arange(points // 2 + 1) * start, points) / points)
        mass = np.maximum(np.fft.irfft(product * turn, points), 0.0)
        at = (start + np.arange(points)) * self.fine
        wrapped = outside([part], c, float(at[0]), float(at[-1]), _scale([part], c))
        error, inverse = high - np.abs(product), ULP * LIBM * np.log2(points) * 2.0 * float(high.sum())
        off = self.block * (part.off + 8.0 * ULP * abs(part.base)) + 8.0 * ULP * float(np.abs(at).max())
        slack = SAFE + 8.0 * ULP * (abs(scale) + c * float(np.abs(at).max()))
        if up:
            missed = 1.01 * (float(np.sqrt(2.0 * (error * error).sum())) + inverse + wrapped)
            return self._upwards(mass, at, c, scale + slack, missed, off)
        each = 1.01 * ((2.0 * float(error.sum()) + inverse) / points + wrapped)
        log_mass = np.log(np.maximum(mass - each, 0.0)) - c * at + scale - slack
        return self._downwards(log_mass, at + self.block * part.base, off)

    def _upwards(self, mass: Array, at: Array, c: float, scale: float, missed: float, off: float) -> Part:
        """Tilted masses split between the points of the coarse grid around them: the mean of e^-loss stays."""
        floor = np.floor(at / self.eta)
        way = np.clip(at - floor * self.eta, 0.0, self.eta)
        share = np.minimum(np.expm1(-way) / np.expm1(-self.eta), 1.0)
        pieces = [(floor, mass * (1.0 - share) * np.exp(-c * way))]
        pieces.append((floor + 1.0, mass * share * np.exp(c * (self.eta - way))))
        masses = gathered(pieces, 0.0, off, 1.0 + SAFE)
        part = Part.of(masses, self.blocks, self.eta)
        part.log_mass = part.log_mass - c * part.value + scale
        part.missed = missed * float(np.exp(c * self.eta))
        return part

    def _downwards(self, log_mass: Array, at: Array, off: float) -> Part:
        """Masses merged around the points of the coarse grid and moved down to them, as in a step's law."""
        top = float(log_mass.max())
        masses = balanced(np.exp(log_mass - top), at, self.eta, off)
        part = Part.of(masses, self.blocks, self.eta)
        part.log_mass = part.log_mass + top
        return part

    def _center(self, parts: list[Part], c: float) -> float:
        """The mean of the tilted sum."""
        return sum(part.count * (_mean(part, c) + part.base) for part in parts)

    def _span(self, guides: list[Part]) -> float:
        """A window around the mean outside which, at every tilt, there is next to nothing; a guess."""
        span = 4.0 * max(float(part.value[-1] - part.value[0]) for part in guides)
        for _ in range(60):
            ends = [(c, self._center(guides, c) - 0.5 * span) for c in self.tilts]
            if all(outside(guides, c, low, low + span, _scale(guides, c)) <= OUTSIDE for c, low in ends):
                break
            span *= 1.3
        return span


@dataclass
class _Made:
    """What is composed at one tilt: single steps, blocks of them, plain Gaussians."""

    step: Part
    blocks: list[Part]
    plain: list[Part]

    @property
    def parts(self) -> list[Part]:
        """All of them."""
        return [self.step, *self.blocks, *self.plain]


def on_grid(law: Law, eta: float, up: bool) -> Masses:
    """The law of one step on a grid, from above or from below."""
    if up:
        return law.upwards(eta)
    mass, losses, off = law.outcomes(eta * FINER)
    return balanced(mass, losses, eta, off)


def _guide(law: Law) -> Part:
    """The law of one step on some nodes of the noise, without proof."""
    shift = 1.0 / law.sigma if law.q == 1.0 else 0.0
    g = np.linspace(law.low, law.high, NODES)
    value = g / law.sigma - 0.5 / law.sigma**2 if shift else loss(np.array(law.sigma), np.array(law.q), g)[0]
    log_mass = -0.5 * g * g + value
    log_mass -= float(np.logaddexp.reduce(-0.5 * g * g))
    return Part(value, log_mass, law.count, 1.0)


def _tilts(low: float, c: float, high: float) -> list[float]:
    """Tilts from low to high, c among them, no two further than `APART` from each other."""
    found = [c]
    for end in (min(low, c), max(high, c)):
        many = int(np.ceil(abs(np.log(end / c)) / np.log(APART)))
        found += np.geomspace(c, end, many + 1)[1:].tolist()
    return sorted(found)


def _farthest(guides: list[Part], c: float, epsilon: float) -> float:
    """The tilt at which Chernoff's bound of a sum of epsilon is least, somewhat less in very long runs; a guess."""
    tried = c * np.geomspace(1.0, 1e3, 40)
    cost = [sum(part.count * part.log_mgf(x) for part in guides) - x * epsilon for x in tried.tolist()]
    return max(c, (0.7 if guides[0].count >= VERY_LONG else 1.0) * float(tried[int(np.argmin(cost))]))


def _scale(parts: list[Part], c: float) -> float:
    """How much further to tilt, about, to bound what is outside: by c, or by a few over the spread."""
    return max(c, 4.0 / max(float(np.sqrt(sum(part.count * _variance(part, c) for part in parts))), 1e-300))


def _mean(part: Part, c: float) -> float:
    x = part.log_mass + c * part.value
    weight = np.exp(x - x.max())
    return float(weight @ part.value / weight.sum())


def _variance(part: Part, c: float) -> float:
    x = part.log_mass + c * part.value
    weight = np.exp(x - x.max())
    mean = float(weight @ part.value / weight.sum())
    return float(weight @ (part.value - mean) ** 2 / weight.sum())
