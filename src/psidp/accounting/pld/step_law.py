"""The law of the loss of one step, cut into cells of the noise and laid on a lattice of losses, upwards or downwards.

A cell [g1, g2] holds the noise's mass G, and the mean of F over it lies between proved bounds e^low and e^high.
Downwards, the cells near one lattice point are merged into one outcome (post-processing loses nothing but power), whose
loss is then moved down to the lattice. Upwards, a cell's mass moves to the two lattice points around it so that the
mean of F stays (connecting the dots). Both err by the square of the lattice's step, not by the step.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from psidp.accounting.composition import Array, cut, loss
from psidp.accounting.contours.mgf_table import LIBM, ULP
from psidp.maths.mills import mills
from psidp.maths.normal import SQRT_2PI, TINY, tail

__all__ = ["ADD", "Law", "Masses", "centered", "gathered", "log_mass", "log_tail", "lowest"]

REMOVE, ADD, SYMMETRIC = 1, -1, 2
POINTS, WEIGHTS = np.polynomial.legendre.leggauss(5)
POINTS, WEIGHTS = 0.5 * (POINTS + 1.0), 0.5 * WEIGHTS
FINEST, SHARE = 0.05, 0.125
"""The widest cell of the noise, and its share of sigma: five points of Gauss then integrate to 1e-13."""
SAFE = 1e-12
WIDEST = 0.25
"""Beyond this width five points of Gauss no longer give the noise's mass to SAFE."""
STEEP, TALL = 0.6, 0.2
"""Cells in which the density, or e^(g/sigma), changes by more than e to this are too wide for a mean by Gauss."""
MOST = 12_000
"""Cells of the noise, beyond those of the lattice; where that makes them too wide, both ends bound the mean."""
PASSES, COARSE, LEAST = 3, 100.0, 1e-300


@dataclass(frozen=True)
class Masses:
    """Masses of the numerator on lattice points first, first + 1, ...; the losses are (index * eta + base) each."""

    first: int
    mass: Array
    base: float
    off: float


@dataclass(frozen=True)
class Law:
    """The loss of one step of one group, for noise between `low` and `high`; beyond, the lattice counts in closed form.

    `kind` is the sign of the composition's column: 1 remove, -1 add, 2 the symmetric C_gamma of batches drawn without
    replacement (the loss of "remove" where it is positive, its mirror image where it is negative, the rest at 0).
    A plain Gaussian is kind 1 with q = 1.
    """

    sigma: float
    q: float
    count: float
    kind: int
    low: float
    high: float

    @property
    def losses(self) -> tuple[float, float]:
        """The least and the largest loss on the grid."""
        low, high = self._loss(np.array([self.low, self.high]))[0].tolist()
        if self.kind == ADD:
            return -high, -low
        return (-high, high) if self.kind == SYMMETRIC else (low, high)

    @cached_property
    def beyond(self) -> tuple[float, float]:
        """log of the mass with losses above the grid, under the numerator and under the denominator.

        Where the record is added that is the noise below `low`; what the denominator says of it is not needed.
        """
        if self.kind == ADD:
            return float(log_tail(np.array(-self.low))), -np.inf
        plain, shifted = (float(log_tail(np.array(x))) for x in (self.high, self.high - 1.0 / self.sigma))
        if self.q == 1.0:
            return shifted, plain
        return float(np.logaddexp(np.log1p(-self.q) + plain, np.log(self.q) + shifted)), plain

    @property
    def beyond_error(self) -> float:
        """Bound of the error of `beyond`, and of sums and differences of a few such logarithms.

        A tail at x moves by (|x| + 1) dx; x is known to a rounding of |high| + 1/sigma.
        """
        reach = max(abs(self.low), abs(self.high)) + 1.0 / self.sigma
        return 1e-11 + 16.0 * ULP * (reach + 1.0) * (reach + 1.0)

    def upwards(self, eta: float, below: Literal["moved up", "left out"] = "moved up") -> Masses:
        """The law with every cell split between the lattice points around it.

        Noise below the cells is moved up to them; it is left out where the law is one of large losses alone.
        """
        g, floor, (least, most), low, high, off = self._cells(eta, 1.0)
        pieces = self._edges(g, eta) if below == "moved up" else []
        if self.kind != ADD:
            log_share = _log_share(high, floor, eta, SAFE)
            pieces += [(floor, np.exp(most + floor * eta + np.log(-np.expm1(log_share))) + TINY)]
            pieces += [(floor + 1.0, np.exp(most + (floor + 1.0) * eta + log_share) + TINY)]
        if self.kind != REMOVE:
            share = np.exp(_log_share(low, floor, eta, -SAFE))
            pieces += [(-floor, np.exp(most) * (1.0 - share) + TINY), (-floor - 1.0, np.exp(most) * share + TINY)]
        if self.kind == SYMMETRIC:
            inside = sum(float(m.sum()) for m, _ in self._merged(least, low, high, floor, eta))
            pieces.append((np.zeros(1), np.array([max(1.0 - inside * (1.0 - SAFE), 0.0)])))
        return gathered(pieces, 0.0, off, 1.0 + SAFE)

    def downwards(self, eta: float) -> Masses:
        """The law with the cells around every lattice point merged and moved down to the lattice."""
        g, half, (least, _), low, high, off = self._cells(eta, 2.0)
        atoms = self._merged(least, low, high, np.floor(0.5 * (half + 1.0)), eta)
        if self.kind == SYMMETRIC:
            plain, shifted = (float(np.exp(log_tail(x)[0])) for x in (g[:1], g[:1] - 1.0 / self.sigma))
            above = plain + (1.0 - self.q) * plain + self.q * shifted
            atoms.append((np.array([max(1.0 - above * (1.0 + SAFE), 0.0)]), np.zeros(1)))
        weights, values = zip(*atoms, strict=True)
        weight, losses = centered(np.concatenate(weights), np.concatenate(values), eta)
        base = lowest(losses, weight, eta)
        return gathered([(np.floor((losses - base) / eta), weight)], base, off, 1.0 - SAFE)

    def outcomes(self, eta: float) -> tuple[Array, Array, float]:
        """For a removed record: masses of cells of eta, rounded down, lower bounds of their losses, and `off`."""
        _, place, (least, _), low, high, off = self._cells(eta, 1.0)
        ((mass, losses),) = self._merged(least, low, high, place, eta)
        return mass * (1.0 - SAFE), losses, off

    def log_moment_below(self, order: float) -> float:
        """Upper bound of log E[F^-order] under the noise alone, order > 0: it bounds how low a sum of losses can be."""
        if self.q == 1.0:
            return 0.5 * order * (order + 1.0) / self.sigma**2 * (1.0 + 1e-12)
        g = np.linspace(self.low, max(self.high, self.low + 1.0), 600)
        value = self._loss(g)[0]
        cells = np.exp(log_mass(g[:-1], g[1:])[1] - order * value[:-1]).sum() * (1.0 + SAFE)
        least = float(np.log1p(-self.q))
        ends = np.exp(log_tail(np.array([-g[0], g[-1]])) - order * np.array([least, value[-1]])).sum()
        return float(np.log(cells + ends)) + 1e-12 * order * float(np.abs(value[0]))

    def _merged(self, mass: Array, low: Array, high: Array, place: Array, eta: float) -> list[tuple[Array, Array]]:
        """Outcomes made of all cells of one place: numerator masses, rounded down, and a lower bound of each loss."""
        start = np.flatnonzero(np.diff(place, prepend=np.nan) != 0)
        top = np.maximum.reduceat(mass, start)
        weight = np.exp(mass - np.repeat(top, np.diff(start, append=mass.size)))
        total, center, atoms = np.add.reduceat(weight, start), place[start] * eta, []
        for kind, y, sign in ((REMOVE, low, 1.0), (ADD, high, -1.0)):
            if self.kind in (kind, SYMMETRIC):
                if eta < COARSE:
                    gain = np.add.reduceat(weight * np.expm1(y - place * eta), start) / total
                    value = sign * (center + np.log1p(gain)) - 16.0 * ULP * np.abs(center) - SAFE * eta
                else:
                    value = np.minimum.reduceat(sign * y, start)
                atoms.append((np.exp(top + np.log(total) + (value if kind == REMOVE else 0.0)), value))
        return atoms

    def _edges(self, g: Array, eta: float) -> list[tuple[Array, Array]]:
        """Noise beyond the grid on the side of small losses: moved up to the grid."""
        below, above = (np.exp(log_tail(x)) * (1.0 + SAFE) + TINY for x in (-g[:1], g[-1:]))
        ends = self._loss(np.array([g[0], g[-1]]))[0] / eta
        pieces = []
        if self.kind == REMOVE:
            pieces.append((np.ceil(ends[:1] + 1e-9), below * np.exp(ends[:1] * eta)))
        if self.kind != REMOVE:
            pieces.append((1.0 - np.floor(ends[1:]), above))
        return pieces

    def _cells(self, eta: float, parts: float) -> tuple[Array, Array, tuple[Array, Array], Array, Array, float]:
        """Cuts, the lattice cell of each cell, its mass and log mean of F from both sides, and how far cuts are off."""
        reach = max(abs(self.low), abs(self.high), 1.0)
        step = min(FINEST, SHARE * self.sigma, 0.5 / reach, 0.1 / float(self.count) ** (1.0 / 6.0))
        first = 0.5 / self.sigma if self.kind == SYMMETRIC else self.low
        ends = self._loss(np.array([first, self.high]))[0] * parts / eta
        marks = np.arange(np.ceil(ends[0]), np.floor(ends[1]) + 1.0)
        at = cut(self.sigma, self.q, marks * (eta / parts)) if self.q < 1.0 else self._plain(marks * (eta / parts))
        count = min(int(np.ceil((self.high - first) / step)), MOST)
        even = first + (self.high - first) * np.linspace(0.0, 1.0, count + 1)
        g = np.unique(np.concatenate((even, at[(at > first) & (at < self.high)])))
        g[0], g[-1] = first, self.high
        value, error = self._loss(g)
        off = 0.0
        if marks.size:
            place = np.clip(np.searchsorted(g, at), 0, g.size - 1)
            near = g[place] == at
            off = float(np.max(np.abs(value[place] - marks * (eta / parts)) + error[place], where=near, initial=0.0))
        left, right = g[:-1], g[1:]
        place = np.floor(self._loss(0.5 * (left + right))[0] * (parts / eta))
        width = right - left
        wide = (np.maximum(np.abs(left), np.abs(right)) * width > STEEP) | (width > TALL * self.sigma)
        low, high = (self._mean(left, right, slope, value) for slope in (right, left))
        low, high = np.where(wide, value[:-1], low), np.where(wide, value[1:], high)
        wrong = error[1:] + error[:-1] + 16.0 * ULP * np.abs(value[1:]) + SAFE * np.diff(value)
        return g, place, log_mass(left, right), low - wrong, high + wrong, off

    def _plain(self, x: Array) -> Array:
        """The g where the loss of a plain Gaussian is x."""
        return np.asarray(self.sigma * x + 0.5 / self.sigma)

    def _loss(self, g: Array) -> tuple[Array, Array]:
        """l at g, and a bound of its rounding."""
        t = np.abs(g) / self.sigma + 0.5 / self.sigma**2
        if self.q == 1.0:
            value, v = g / self.sigma - 0.5 / self.sigma**2, np.ones_like(g)
        else:
            value, v = loss(np.array(self.sigma), np.array(self.q), g)
        return value, LIBM * ULP * (v * t + np.abs(value))

    def _mean(self, left: Array, right: Array, slope: Array, value: Array) -> Array:
        """log of the mean of F where the noise's density falls at the rate `slope` throughout the cell.

        The density's logarithm has slopes from -right to -left, so that the two ends bound the mean. The position of
        the mean of e^(g/sigma) in its range comes from five points of Gauss.
        """
        width = right - left
        tau = width / self.sigma
        density = WEIGHTS * np.exp(-(slope * width)[:, None] * POINTS)
        share = (density * np.expm1(tau[:, None] * POINTS)).sum(1) / density.sum(1) / np.expm1(tau)
        return np.asarray(value[:-1] + np.log1p(share * np.expm1(value[1:] - value[:-1])))


def centered(mass: Array, losses: Array, eta: float) -> tuple[Array, Array]:
    """Outcomes between lattice points moved closer to them: each takes a share of its neighbour's mass.

    Every outcome passes a share of its mass to the outcome before or behind it: a random map, so post-processing. d is
    the way of a loss from its lattice point; a share |d|/eta of a neighbour on the other side brings the mean there.
    """
    losses, mass = losses[mass > LEAST], mass[mass > LEAST]
    for _ in range(PASSES if eta < COARSE else 0):
        place = np.rint(losses / eta)
        order = np.argsort(place, kind="stable")
        start = np.flatnonzero(np.diff(place[order], prepend=np.nan) != 0)
        place, mass, losses = place[order], mass[order], losses[order]
        top = np.add.reduceat(mass, start)
        gain = np.add.reduceat(mass * np.expm1(place * eta - losses), start) / top
        place, mass = place[start], top
        d = -np.log1p(gain)
        near = np.append(np.diff(place) == 1.0, False)
        ask = np.minimum(np.abs(d) / eta, 0.4)
        behind, before = np.append(mass[1:], 0.0), np.append(0.0, mass[:-1])
        up = np.where(near & (d < 0.0), np.minimum(ask * mass, 0.4 * behind), 0.0)
        down = np.where(np.append(False, near[:-1]) & (d > 0.0), np.minimum(ask * mass, 0.4 * before), 0.0)
        kept = mass - np.append(0.0, up[:-1]) - np.append(down[1:], 0.0)
        d_behind, d_before = np.append(d[1:], 0.0), np.append(0.0, d[:-1])
        total = kept + up + down
        inverse = kept * np.expm1(-d) + up * np.expm1(-eta - d_behind) + down * np.expm1(eta - d_before)
        some = total > 0.0
        mass, losses = total[some], (place * eta - np.log1p(inverse / total))[some]
        losses = losses - 16.0 * ULP * (eta + np.abs(losses))
    return mass * (1.0 - 16.0 * PASSES * ULP), losses


def lowest(losses: Array, weight: Array, eta: float) -> float:
    """The loss of lattice point 0: a little lower loses that little in every step, a little higher a whole eta."""
    part = np.mod(losses, eta)
    part = np.where(part > 0.5 * eta, part - eta, part)
    order = np.argsort(part)
    part, weight = part[order], weight[order]
    below = np.concatenate(([0.0], np.cumsum(weight)[:-1]))
    cost = eta * below - part * float(weight.sum())
    return float(part[int(np.argmin(cost))]) - 8.0 * ULP * eta


def _log_share(y: Array, floor: Array, eta: float, scale: float) -> Array:
    """log of how much of the noise's mass goes to the upper lattice point, so that the mean of F is e^y."""
    way = np.clip(y - floor * eta, 0.0, eta)
    return np.asarray(np.minimum(way - eta + np.log(np.expm1(-way) / np.expm1(-eta)) + scale, 0.0))


def log_tail(x: Array) -> Array:
    """log Phi(-x) for either sign of x."""
    far = np.log(mills(np.maximum(x, 0.0)) / SQRT_2PI) - 0.5 * x * x
    return np.asarray(np.where(x > 0, far, np.log1p(-tail(np.maximum(-x, 0.0)))))


def log_mass(left: Array, right: Array) -> tuple[Array, Array]:
    """log of the noise's mass in each cell, from below and from above, by five points of Gauss around the middle.

    Cells too wide for them are differences of tails; one with 0 inside is what both tails leave.
    """
    middle, width = 0.5 * (left + right), right - left
    x = width[:, None] * (POINTS - 0.5)
    mean = (WEIGHTS * np.exp(-middle[:, None] * x - 0.5 * x * x)).sum(1)
    value = np.log(width * mean / SQRT_2PI) - 0.5 * middle * middle
    wide = (np.abs(middle) * width > 0.7) | (width > WIDEST)
    if wide.any():
        both = wide & (left < 0.0) & (right > 0.0)
        value[both] = np.log1p(-tail(-left[both]) - tail(right[both]))
        wide &= ~both
        near, far = np.minimum(np.abs(left), np.abs(right))[wide], np.maximum(np.abs(left), np.abs(right))[wide]
        value[wide] = log_tail(near) + np.log(-np.expm1(log_tail(far) - log_tail(near)))
    noise = ULP * (256.0 + 4.0 * np.maximum(left * left, right * right)) + 2e-14
    return value - noise, value + noise


def gathered(pieces: list[tuple[Array, Array]], base: float, off: float, scale: float) -> Masses:
    """All pieces added up on one stretch of the lattice."""
    index, mass = (np.concatenate(column) for column in zip(*pieces, strict=True))
    some = mass > 0.0
    index, mass = index[some].astype(np.int64), mass[some] * scale
    first = int(index.min())
    return Masses(first, np.bincount(index - first, mass), base, off)
