"""The table: A(s + iu)/A(s) for every group and every node of the contour, with the error of each entry."""

from typing import Any

import numpy as np

from psidp.accounting.composition import Array, ComplexArray, Composition, loss
from psidp.accounting.contours.error_bounds import Bounds
from psidp.accounting.contours.window import Window

__all__ = ["LIBM", "ULP", "Table", "total"]

ULP = 2.0**-53
LIBM = 8.0
"""Units in the last place granted to one elementary function together with the arithmetic around it."""
DENSE_LIMIT = 4.0e5
"""Entries up to which a matrix product is faster than the FFT."""
ORDERS = 13
CHUNK = 64


class Table:
    """The inner sums: A(s + iu)/A(s) for every group and node, by baby and giant steps of e^(iul) - 1."""

    def __init__(
        self, steps: Composition, bounds: Bounds, window: Window | None, c: float, real_type: Any = np.float64
    ) -> None:
        self.steps, self.bounds, self.real_type = steps, bounds, real_type
        self.ulp = float(np.finfo(real_type).eps) / 2.0
        sigma, q, s = (x[:, None].astype(real_type) for x in (steps.sigma, steps.q, steps.order(c)))
        g = ((bounds.first[:, None] + np.arange(bounds.count)) * bounds.h[:, None]).astype(real_type)
        self.loss, v = loss(sigma, q, g)
        log_w = np.log(bounds.h.astype(real_type) / np.sqrt(8 * np.arctan(real_type(1.0))))[:, None] - 0.5 * g * g
        x = s * self.loss
        w = np.exp(log_w)
        small, far = np.expm1(np.minimum(x, 1.0)), 0.0 * g
        if window is not None:
            chi, lost = window.keep(g)
            small = chi * small - lost
            log_w = log_w + window.log_keep(g)
            far = 16.0 + ((g - window.cut) / window.b) ** 2 * LIBM
        terms = np.where(x < 1.0, w * small, np.exp(log_w + x) - w)
        a1 = total(terms)
        self.a = 1.0 + a1
        self.log_a_each = np.log1p(a1)
        self.log_a = (steps.count * self.log_a_each).sum()
        p = np.exp(log_w + x - self.log_a_each[:, None])
        self.p = np.where(p > 1e-250, p, 0.0)
        self._rounding(g * g + far, v, terms, np.abs(s), np.abs(g) / sigma + 0.5 / (sigma * sigma))

    def _rounding(self, square: Array, v: Array, terms: Array, s: Array, t: Array) -> None:
        """Term 5: bounds of the rounding error of A - 1 (over A) and, per unit of u, of A(s+iu)/A - 1."""
        n = 4.0 * np.sqrt(self.bounds.count) + 8.0
        size = np.abs(self.loss)
        d_loss = LIBM * (v * t + size)
        in_weight = square + 2.0 * LIBM + s * (d_loss + 2.0 * size)
        direct = (np.abs(terms) * (in_weight + n)).sum(1) + (self.p * s * d_loss).sum(1) * self.a
        self.base_error = self.ulp * direct / self.a
        in_p = in_weight + 2.0 * np.abs(self.log_a_each)[:, None]
        self.slope_error = self.ulp * (self.p * (size * in_p + d_loss + 4.0 * size)).sum(1)
        self.slope = (self.p * size).sum(1)

    def change(self, u: Array) -> tuple[ComplexArray, Array]:
        """sum_j T_j log(A_j(s + iu)/A_j(s)) at the nodes and the bound of the relative error of M there."""
        bounds, steps = self.bounds, self.steps
        ratio, summing = self._ratios(u.size)
        count = steps.count[:, None]
        level = np.searchsorted(bounds.levels, u)
        miss = bounds.quadrature[:, level] + bounds.quadrature[:, :1] + 2.0 * bounds.omitted[:, None]
        miss = miss * np.exp(bounds.log_a - self.log_a_each[:, None])  # over the A of this table, not of the survey
        error = miss + summing + u * self.slope_error[:, None] + 2.0 * self.base_error[:, None]
        modulus, relative = _modulus(ratio, error)
        angle = np.arctan2(ratio.imag, 1.0 + ratio.real) * steps.sign[:, None]
        self.size = (count * (np.abs(modulus) + np.abs(angle) + np.abs(self.log_a_each)[:, None])).sum(0)
        log_error = np.log1p(relative)
        return (count * modulus).sum(0) + 1j * (count * angle).sum(0), (count * log_error).sum(0)

    def _ratios(self, nodes: int) -> tuple[ComplexArray, Array]:
        """A(s + iu)/A(s) - 1 at u = k du, [group, k], and what its summation may have got wrong, [group, k]."""
        n = self.bounds.count
        u = np.arange(nodes).astype(self.real_type) * self.bounds.du
        if nodes * float(n) <= DENSE_LIMIT:
            return self._dense(nodes), self.ulp * (9.0 * n + 12.0 * LIBM) * u * self.slope[:, None]
        size = 1 << int(np.ceil(np.log2(8.0 * nodes)))
        pairs = [self._binned(p, loss, u, size) for p, loss in zip(self.p, self.loss, strict=True)]
        return np.stack([pair[0] for pair in pairs]), np.stack([pair[1] for pair in pairs])

    def _dense(self, nodes: int) -> ComplexArray:
        """By baby and giant steps: (1+a)(1+b) - 1 = a + b + ab keeps A(s+iu)/A(s) - 1 small where it is."""
        baby = 1 << max(int(np.ceil(np.log2(nodes))) // 2, 0)
        giants = -(-nodes // baby)
        du = self.bounds.du
        a = _turn(self.loss[:, None, :] * (np.arange(baby) * du)[:, None])
        b = _turn(self.loss[:, None, :] * (np.arange(giants) * (baby * du))[:, None])
        weighted = b * self.p[:, None, :]
        both = np.matmul(weighted, a.transpose(0, 2, 1))
        both += weighted.sum(2)[:, :, None]
        both += np.matmul(a, self.p[:, :, None])[:, None, :, 0]
        return np.asarray(both.reshape(len(self.steps.count), -1)[:, :nodes])

    def _binned(self, p: Array, loss: Array, u: Array, size: int) -> tuple[ComplexArray, Array]:
        """By FFT: losses move to a lattice of the contour's period, with a Taylor series for the way to it.

        Order 0 is summed by parts where the lattice does not wrap, sum_j m_j (e^(iujd) - 1) = (e^(iud) - 1) sum_i M_i
        e^(iuid) with M_i the mass beyond i, so that its rounding error too is in proportion to u E|l|.
        """
        spacing = 8 * np.arctan(self.real_type(1.0)) / (self.bounds.du * size)
        nearest = np.rint(loss / spacing)
        off = loss - nearest * spacing
        bins = np.flatnonzero(np.diff(nearest, prepend=np.nan) != 0)
        chunks = np.union1d(bins, np.arange(0, loss.size, CHUNK))
        inner = np.searchsorted(chunks, bins)
        place, wraps = np.mod(nearest[bins], size).astype(np.int64), _reach(nearest) >= size
        result = np.zeros(u.size, dtype=np.result_type(u.dtype, np.complex64))
        factor, weight, running = np.ones_like(result), p, 0.0
        for m in range(ORDERS):
            mass = np.add.reduceat(np.add.reduceat(weight, chunks), inner)
            if m == 0 and not wraps:
                beyond, running = _beyond(nearest[bins], mass, size)
                result += _turn(u * spacing) * np.conj(np.fft.rfft(beyond)[: u.size])
            else:
                filled = np.zeros(size, dtype=p.dtype)
                np.add.at(filled, place, mass)
                result += factor * np.conj(np.fft.rfft(filled)[: u.size])
            weight = weight * off
            factor = factor * (1j * u) / (m + 1.0)
        x = 0.5 * u * spacing
        longest = CHUNK + np.diff(inner, append=chunks.size).max() + (loss[-1] - loss[0]) / (spacing * size)
        each = LIBM * np.log2(size) + longest + 6.0 * LIBM
        far = float(p @ np.abs(off)) + (0.0 if wraps else float(p @ np.abs(nearest)) * spacing)
        rounding = self.ulp * (each * (1.6 * u * far + (2.1 if wraps else 0.0)) + 1.6 * u * spacing * running)
        cut = 1.1 * x**ORDERS / float(np.prod(np.arange(1.0, ORDERS + 1)))
        return np.asarray(result - result[0]), rounding + cut


def _reach(index: Array) -> float:
    """How many places lie between the outermost of the indices and 0."""
    return float(max(index[-1], 0.0) - min(index[0], 0.0))


def _beyond(index: Array, mass: Array, size: int) -> tuple[Array, float]:
    """M_i on the lattice, the mass above i for i >= 0 and minus the mass up to i for i < 0; and its error in units."""
    low, high = min(int(index[0]), 0), max(int(index[-1]), 0)
    dense, out = np.zeros(high - low + 1, dtype=mass.dtype), np.zeros(size, dtype=mass.dtype)
    dense[(index - low).astype(np.int64)] = mass
    above, error = _running(dense[-low + 1 :][::-1])
    out[:high] = above[::-1]
    if low < 0:
        below, more = _running(dense[:-low])
        out[low:], error = -below, error + more
    return out, error


def _running(x: Array) -> tuple[Array, float]:
    """Cumulative sums in two levels, and the sum of their error bounds in units of rounding: all partial sums."""
    rows = 1 << max(int(np.log2(max(x.size, 1))) // 2, 0)
    padded = np.zeros(-(-x.size // rows) * rows, dtype=x.dtype)
    padded[: x.size] = x
    within = np.cumsum(padded.reshape(-1, rows), axis=1)
    before = np.concatenate((np.zeros(1, dtype=x.dtype), np.cumsum(within[:-1, -1])))[: within.shape[0]]
    sums = within + before[:, None]
    error = np.cumsum(within, axis=1).sum() + rows * np.cumsum(before + within[:, -1]).sum() + 2.0 * sums.sum()
    return np.asarray(sums.reshape(-1)[: x.size]), 1.01 * float(error)


def total(x: Array) -> Array:
    """The sum over the last axis in two levels, so that its error grows with 2 sqrt(n), not n."""
    n = x.shape[-1]
    rows = 1 << max(int(np.log2(n)) // 2, 0)
    whole = n - n % rows
    head = x[..., :whole].reshape(*x.shape[:-1], -1, rows).sum(-1).sum(-1)
    return np.asarray(head + x[..., whole:].sum(-1))


def _modulus(ratio: ComplexArray, error: Array) -> tuple[Array, Array]:
    """log |1 + ratio|, at least log error, and how far the truth may lie from there, as a share of that modulus.

    Where 1 + ratio is smaller than its error, the modulus is taken to be the error, at most twice that from the truth.
    """
    whole = np.hypot(1.0 + ratio.real, ratio.imag)  # 1 + ratio.real is exact where that is below 1/2
    far = 0.5 * np.log1p(2.0 * ratio.real + ratio.real**2 + ratio.imag**2)
    near = np.maximum(whole, error)
    modulus = np.where(whole < 0.5, np.log(near), far)
    return modulus, np.where(whole < error, 2.0, 1.0) * error / np.exp(modulus)


def _turn(x: Array) -> ComplexArray:
    """e^(ix) - 1 with full relative accuracy."""
    half = 0.5 * x
    sine = np.sin(half)
    out = np.empty(x.shape, dtype=np.result_type(x.dtype, np.complex64))
    out.real = -2.0 * sine * sine
    out.imag = 2.0 * sine * np.cos(half)
    return out
