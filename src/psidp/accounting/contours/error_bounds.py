"""The survey: one coarse grid of g on which every tail of the contour integral is bounded before anything is summed.

It chooses the period Lambda = 2 pi/du, the end U of the contour and the steps h of the inner sums, and keeps the
bounds that prove them (docs/design/accounting.md, terms 1 to 4). With y a shift of g into the complex plane and
theta = y/sigma < pi, F_y = 1 - q + q e^t e^(i theta).
"""

from dataclasses import dataclass

import numpy as np

from psidp.accounting.composition import Array, Composition, loss
from psidp.accounting.contours.saddle import Saddle, dyadic
from psidp.accounting.contours.window import Window

__all__ = ["NotCertified", "Survey", "TooLong"]

FRACTIONS = np.array([0.07, 0.2, 0.42, 0.7, 1.0])
REACH = 13.0
LEVELS = 8
NODE_LIMIT = 250_000
INNER_LIMIT = 2.0e6
SLACK = 1e-12
"""Relative allowance for rounding inside a bound that needs no more than a few digits."""


class NotCertified(Exception):
    """The contour has no useful bound here; another method must be taken."""


class TooLong(NotCertified):
    """The contour has more nodes than are affordable."""


@dataclass(frozen=True)
class Bounds:
    """What the survey proved: see the fields' comments; arrays have one row per group."""

    du: float  # step of the contour; the period is Lambda = 2 pi/du
    nodes: int  # the contour runs over u = 0, du, ..., nodes*du
    c2: float  # tilt used for the alias beyond epsilon + Lambda
    log_m2: float  # upper bound of log M(c2)
    log_tail: float  # log of the truncated tail, without e^(-c epsilon)
    h: Array  # step of g, dyadic
    first: Array  # g starts at first*h
    count: int  # nodes in g
    omitted: Array  # sum of the g-nodes left out, over A
    levels: Array  # values of u where the quadrature error of A is bounded; it increases with u
    quadrature: Array  # that bound, over A, [group, level]
    log_a: Array  # log of the A that both are over: that of the coarse grid


class Survey:
    """The coarse grid for one contour Re z = c."""

    def __init__(
        self, steps: Composition, saddle: Saddle, window: Window | None, tolerance: float, finer: float = 1.0
    ) -> None:
        self.steps, self.saddle, self.window = steps, saddle, window
        self.stretch = np.ones_like(steps.sigma[:, None]) if window is None else window.stretch
        self.sigma, self.q = steps.sigma[:, None], steps.q[:, None]
        self.c, self.s = saddle.c, steps.order(saddle.c)[:, None]
        self.need = np.log(tolerance) + saddle.log_delta
        self.period, self.c2 = self._period()
        self.s2 = steps.order(self.c2)[:, None]
        self._known_ends: list[tuple[Array, tuple[Array, Array, Array]]] = []
        self._grid(finer)
        self._sums()
        self._shifted()

    def bounds(self, share: float = 1.0) -> Bounds:
        """Everything chosen and proved, or NotCertified; TooLong where it needs more than a share of the limits."""
        du = float(dyadic(np.array(2 * np.pi / self.period)))
        top, log_tail = self._end(du, share)
        nodes = int(np.ceil(top / du))
        levels = np.concatenate(([0.0], top * 0.5 ** np.arange(LEVELS - 2, -1, -1.0)))
        levels[-1] = max(levels[-1], nodes * du)
        log_i = self._quadrature(levels)
        h = self._steps(levels, log_i)
        first, last, omitted = self._range(h)
        count = int((last - first).max()) + 1
        if not (nodes <= share * NODE_LIMIT and 0.0 < float(count) * len(h) <= share * INNER_LIMIT):
            raise TooLong("the contour is too long")
        exponent = 2 * np.pi * self.y / h[:, None]
        error = np.exp(np.minimum(log_i - exponent[:, :, None], 0.0)) / -np.expm1(-exponent[:, :, None])
        quadrature = 2.001 * error.min(1) + 4.0 * np.exp(-2.0 * np.pi**2 / (h * h))[:, None]
        return Bounds(
            du, nodes, self.c2, self.log_m2, log_tail, h, first, count, omitted + 1e-240, levels, quadrature, self.log_a
        )

    def _period(self) -> tuple[float, float]:
        """Lambda and the second tilt c2 > c that keep both aliases below the tolerance (term 1)."""
        saddle = self.saddle
        left = -self.need / self.c
        right = (saddle.beyond_k - saddle.beyond_c * saddle.epsilon - self.need) / (saddle.beyond_c - self.c)
        if not right.size:
            raise NotCertified("the tail is too heavy")
        period = 1.05 * max(left, float(right.min()))
        if not period > 0:
            raise NotCertified("the saddle is no saddle")
        return period, float(saddle.beyond_c[right <= period / 1.01].min())

    def _grid(self, finer: float) -> None:
        """Nodes g = k h0 wide enough for both tilts, with l, v and log(phi h0)."""
        sigma, q, sign = self.sigma, self.q, self.steps.sign[:, None]
        theta = np.where(sign > 0, np.pi, 0.5 * np.pi)
        self.y_cap = np.minimum(0.96 * theta * sigma, 10.0 / np.sqrt(self.stretch))
        half = 0.7 * self.y_cap
        log_t = np.log(self.steps.count[:, None])
        self.h0 = h0 = dyadic(
            np.minimum(2 * np.pi * half / (0.5 * self.stretch * half * half + log_t + 14.0), 0.55) / finer
        )
        grown = np.log1p(q / (1.0 - q) * np.exp(-REACH / sigma - 0.5 / (sigma * sigma)))
        low = np.where(sign > 0, REACH, np.sqrt(REACH**2 + 2.0 * self.c2 * grown))
        high = REACH + np.where(sign > 0, self.s2 / sigma, 0.0)
        if self.window is not None:
            cut, b = self.window.cut, self.window.b
            high = cut + REACH * b
            far = cut + np.maximum(REACH * b, b * b * (np.maximum(self.s2, 0.0) / sigma - cut) + 6.0 * b)
            high = np.where(self._falls(high, np.maximum(self.s2, 0.0)) > 1.0, high, far)
        count = int(np.ceil(((low + high) / h0).max())) + 1
        if not count <= 20_000:
            raise NotCertified("the noise is too small for the strip of analyticity")
        self.g = (np.arange(count) - np.ceil(low / h0)) * h0
        self.loss, self.v = loss(sigma, q, self.g)
        self.log_w = np.log(h0 / np.sqrt(2 * np.pi)) - 0.5 * self.g * self.g
        self.w = np.exp(self.log_w)
        self.chi, self.lost = np.ones_like(self.g), np.zeros_like(self.g)
        self.log_chi = self.log_sup = self.lost
        if self.window is not None:
            self.chi, self.lost = self.window.keep(self.g)
            self.log_chi = self.window.log_keep(self.g)
            self.log_sup = self.window.log_keep(self.g - 0.5 * h0)
        self.odds = np.minimum(
            1.0, q / (1.0 - q) * np.exp(np.minimum((self.g + 0.5 * h0) / sigma - 0.5 / sigma**2, 700.0))
        )

    def _edges(self, s: Array) -> Array:
        """Bound of w |F_y|^s summed over finer nodes, or integrated, beyond the grid, for every y (term 4).

        s >= 0: |F_y| <= F; upwards w F^s falls geometrically (`_falls`), downwards with rate |g|.
        s < 0 (where cos theta >= 0): |F_y| >= max(1 - q, F/sqrt 2), and both bounds only grow away from the edge.
        """
        up, down, rate = self._ends(s)
        return np.asarray(
            np.exp(up) * (1.0 + 1.0 / (self.h0 * rate)) + np.exp(down) * (1.0 - 1.0 / (self.h0 * self.g[:, :1]))
        )

    def _ends(self, s: Array) -> tuple[Array, Array, Array]:
        """log of a bound of w |F_y|^s at both ends of the grid, and the rate at which it falls upwards."""
        for known, found in self._known_ends:
            if known is s:
                return found
        g, log_w, rest = self.g, self.log_w, np.log1p(-self.q)
        rate = self._falls(g[:, -1:], np.maximum(s, 0.0))
        if not (rate > 0).all():
            raise NotCertified("the grid ends before the far peak")
        top, bottom = self.loss[:, -1:], self.loss[:, :1]
        up = log_w[:, -1:] + self.log_sup[:, -1:] + s * np.where(s < 0, np.maximum(rest, top - 0.5 * np.log(2.0)), top)
        self._known_ends.append((s, (up, log_w[:, :1] + s * np.where(s < 0, rest, bottom), rate)))
        return self._known_ends[-1][1]

    def _turned(self, s: Array, u: Array, enough: Array | float = -np.inf) -> Array:
        """log of a bound of w |F_y|^s e^(u arg F_y) beyond the grid; [group, y, level].

        arg F_y grows with g: below the grid it is at most what it is at the first node. Above, like the loss, it grows
        by at most min(1, q e^t/(1-q)) k/sigma, so u k counts beside s, up to a place beyond which it is called theta.
        Where calling it theta everywhere is below `enough`, that will do.
        """
        up, down, rate = (x[:, :, None] for x in self._ends(s))
        sigma, q, h0, g = (x[:, :, None] for x in (self.sigma, self.q, self.h0, self.g[:, -1:]))
        u3, s3, theta = u[None, None, :], s[:, :, None], (self.y / self.sigma)[:, :, None]
        crude = up + u3 * theta + np.log1p(1.0 / (h0 * rate))
        below = down + u3 * self.arg[:, :, :1] + np.log1p(-1.0 / (h0 * self.g[:, :1, None]))
        if (crude <= enough).all():
            return np.asarray(np.logaddexp(crude, below) + SLACK * (np.abs(crude) + np.abs(below)))
        tilt = np.maximum(s3, 0.0) + u3 * self.steep[:, :, None]
        place = self._full - sigma * np.log(np.maximum(2.0 * tilt / (sigma * g), 1.0))
        place = np.clip(place, g, np.maximum(self._full, g))
        both = np.minimum(self._rate(g, tilt), self._rate(place, tilt))
        near = up + u3 * self.arg[:, :, -1:] + np.log1p(1.0 / (h0 * np.maximum(both, 1e-300)))
        top = loss(sigma, q, place)[0]
        far = np.log(h0 / np.sqrt(2 * np.pi)) - 0.5 * place * place + u3 * theta + np.log1p(1.0 / (h0 * rate))
        far = far + s3 * np.where(s3 < 0, np.maximum(np.log1p(-q), top - 0.5 * np.log(2.0)), top)
        if self.window is not None:
            far = far + self.window.log_keep((place - 0.5 * h0).reshape(len(g), -1)).reshape(place.shape)
        above = np.where(both > 0.0, np.minimum(crude, np.logaddexp(near, far)), crude)
        return np.asarray(np.logaddexp(above, below) + SLACK * (np.abs(above) + np.abs(below)))

    @property
    def _full(self) -> Array:
        """The g where q e^t = 1 - q; [group, 1, 1]."""
        return np.asarray(self.sigma * (np.log1p(-self.q) - np.log(self.q)) + 0.5 / self.sigma)[:, :, None]

    def _falls(self, g: Array, s: Array) -> Array:
        """Lower bound of the rate at which phi chi F^s falls from g on, s >= 0; [group, 1].

        `_rate` is concave up to where q e^t = 1 - q and rises from there on, so that it is nowhere below both its
        values at g and at that place.
        """
        if self.window is None:
            return np.asarray(g - s / self.sigma)
        g, s = g[:, :, None], s[:, :, None]
        return np.asarray(np.minimum(self._rate(g, s), self._rate(np.maximum(g, self._full), s))[:, :, 0])

    def _rate(self, g: Array, s: Array) -> Array:
        """Lower bound of the rate of fall of phi chi F^s at g: g + (g - cut)/b^2 - (s/sigma) min(1, q e^t/(1-q))."""
        sigma = self.sigma[:, :, None]
        rate = g - s / sigma * np.exp(np.minimum((g - self._full) / sigma, 0.0)) * (1.0 + SLACK)
        if self.window is not None:
            rate = rate + (g - self.window.cut[:, :, None]) / self.window.b[:, :, None] ** 2
        return np.asarray(rate)

    def _sums(self) -> None:
        """A(s) on the line and an upper bound of log A at c2, by the same trapezoid and its own error bound."""
        self.a1 = self._less_one(self.s * self.loss)
        self.log_a = np.log1p(self.a1)
        self.log_f = self.log_w + self.log_chi + self.s * self.loss
        self.p = np.exp(self.log_f - self.log_a)
        self.edge = self._edges(self.s)

    def _less_one(self, x: Array) -> Array:
        """sum w (chi e^x - 1) over the last axis, without overflow where w is tiny."""
        shape = self.g.shape[:1] + (1,) * (x.ndim - 2) + self.g.shape[1:]
        w, log_w = self.w.reshape(shape), (self.log_w + self.log_chi).reshape(shape)
        small = np.expm1(np.minimum(x, 1.0))
        if self.window is not None:
            small = self.chi.reshape(shape) * small - self.lost.reshape(shape)
        terms = np.where(x < 1.0, w * small, np.exp(log_w + x) - w)
        total = terms.sum(-1, keepdims=True)
        return np.asarray(total + SLACK * np.abs(terms).sum(-1, keepdims=True))

    def _shifted(self) -> None:
        """log|F_y|, arg F_y and the Lipschitz factor kappa(theta) for each y of the ladder; [group, y, node]."""
        self.y = self.y_cap * FRACTIONS
        self.log_abs, self.arg = self._polar(self.y)
        theta = self.y / self.sigma
        self.steep = np.where(theta <= 0.5 * np.pi, 1.0, 1.0 / np.sin(np.minimum(theta, 3.1)))
        self.log_j = self._twice()
        if (self.s < 0).any():
            self.log_j = np.where(self.s < 0, self._cells(self.s, np.zeros(1), 0.0)[:, :, 0], self.log_j)
        exponent = 2 * np.pi * self.y / self.h0
        error = 2.0 * np.exp(self._cells(self.s2, np.zeros(1), 1.0)[:, :, 0] - exponent) / -np.expm1(-exponent)
        x = self.s2 * self.loss
        a2 = self._less_one(x) + self._edges(self.s2) + error.min(1, keepdims=True) + self._ones
        gauss = 0.5 * self.steps.gauss * self.c2 * (self.c2 + 1.0) * (1.0 + SLACK)
        log_a2 = self.steps.count[:, None] * np.log1p(a2)
        self.log_m2 = float(log_a2.sum()) + gauss + SLACK * 0.01 * float(np.abs(log_a2).sum())

    def _twice(self) -> Array:
        """log of a bound of A(s) for s >= 0, where the quadrature error is at most half of A itself."""
        error = (np.log(4.0) + 0.5 * self.stretch * self.y * self.y - 2 * np.pi * self.y / self.h0).min(
            1, keepdims=True
        )
        if (self.s >= 0).any() and not (error[self.s >= 0] < 0.0).all():
            raise NotCertified("the strip of analyticity is too narrow")
        return np.asarray(np.log(2.0 * (1.0 + self.a1 + self.edge + self._ones)))

    @property
    def _ones(self) -> Array:
        """Bound of |sum of all weights - 1|: the trapezoid of phi alone."""
        return np.asarray(3.0 * np.exp(-2.0 * np.pi**2 / (self.h0 * self.h0)))

    def _polar(self, y: Array) -> tuple[Array, Array]:
        """log|F_y| and arg F_y on the grid for y of shape [group, any]."""
        theta = (y / self.sigma)[:, :, None]
        v = self.v[:, None, :]
        half = np.sin(0.5 * theta)
        log_abs = self.loss[:, None, :] + 0.5 * np.log1p(-np.minimum(4.0 * v * (1.0 - v) * half * half, 1.0 - 1e-15))
        return log_abs, np.arctan2(v * np.sin(theta), 1.0 - 2.0 * v * half * half)

    def _cells(self, s: Array, u: Array, gaussian: float) -> Array:
        """log of a bound of e^(y^2/2) int phi |F_y|^s e^(u arg F_y), cell by cell; [group, y, level].

        In a cell the logarithm of the integrand moves by at most h0/2 times its Lipschitz bound. `gaussian` = 0
        leaves the factor e^(y^2/2) out.
        """
        s3, u3 = s[:, :, None, None], u[None, None, :, None]
        lip = self.steep[:, :, None, None] * (self.odds / self.sigma)[:, None, None, :]
        inner = (self.log_w + self.log_sup + 0.5 * self.h0 * np.abs(self.g))[:, None, None, :]
        log_cell = (
            inner
            + s3 * self.log_abs[:, :, None, :]
            + u3 * self.arg[:, :, None, :]
            + 0.5 * self.h0[:, :, None, None] * (np.abs(s3) + u3) * lip
        )
        top = log_cell.max(3, keepdims=True)
        total = np.log(np.exp(log_cell - top).sum(3)) + top[:, :, :, 0]
        grown = gaussian * 0.5 * (self.stretch * self.y * self.y)[:, :, None]
        return np.asarray(np.logaddexp(total, self._turned(s, u, total - 40.0)) + grown + SLACK)

    def _end(self, du: float, share: float) -> tuple[float, float]:
        """U where the rest of the contour is below the tolerance, and the bound of that rest (term 2)."""
        steps, count = self.steps, self.steps.count[:, None]
        low = (self.p * self.loss).sum(1, keepdims=True)
        k2 = float((count * ((self.p * self.loss**2).sum(1, keepdims=True) - low * low)).sum()) + steps.gauss
        shift = self.c * self.saddle.epsilon
        log_m = float((count * self.log_a).sum()) + 0.5 * steps.gauss * self.c * (self.c + 1.0)
        deep = max(log_m - shift - self.need, 1.0)
        u = np.sqrt(2.0 * deep / max(k2, 1e-300)) * 1.25 ** np.arange(10.0)
        for _ in range(12):
            if not u[0] / du <= share * NODE_LIMIT:
                raise TooLong("the integrand does not decay")
            log_b = self._envelope(u)
            gauss = 0.5 * steps.gauss * (self.c * (self.c + 1.0) - u * u)
            rest = (count * log_b).sum(0) + gauss - np.log(np.pi * u)
            size = (count * np.abs(log_b)).sum(0) + 0.5 * steps.gauss * (self.c * (self.c + 1.0) + u * u) + 1.0
            rest = rest + SLACK * 0.01 * size
            enough = rest - shift <= self.need
            if enough.any():
                first = int(np.argmax(enough))
                return float(u[first]), float(rest[first])
            u = u * 1.25**10
        raise NotCertified("the integrand does not decay")

    def _envelope(self, u: Array) -> Array:
        """log of a bound of |A(s + iu')| for every u' >= u; [group, u]. The shifts y are near the best ones."""
        mean = (self.p * self.v).sum(1, keepdims=True)
        spread = (self.p * self.v * self.v).sum(1, keepdims=True) - mean * mean
        y = u * mean / (self.sigma * self.stretch) / (1.0 + u * u * spread / (self.sigma * self.sigma))
        wide = 1.2 * self.sigma
        bulk = u * self.q / (self.sigma * self.stretch)
        pair = np.minimum(np.concatenate((y, wide * bulk / (wide + bulk)), axis=1), 0.6 * self.y_cap)
        log_b = self._decay(pair, np.concatenate((u, u)))
        best = np.minimum(log_b[:, : u.size], log_b[:, u.size :])
        return np.asarray(np.minimum(best, np.maximum(self.log_a, best[:, :1])))

    def _decay(self, y: Array, u: Array) -> Array:
        """log of B_y(u) >= |A(s + iu')| for every u' >= u, one y per u; [group, u]. Infinite where it has no proof."""
        log_abs, arg = self._polar(y)
        x = self.s[:, :, None] * log_abs - u[None, :, None] * arg
        trapezoid = self._less_one(x)[:, :, 0] + self.edge
        room = np.minimum(self.y[:, None, :] - y[:, :, None], 0.5 * np.pi * self.sigma[:, :, None])
        exponent = 2 * np.pi * room / self.h0[:, :, None]
        with np.errstate(invalid="ignore", over="ignore"):
            error = (
                2.0
                * np.exp(0.5 * self.stretch[:, :, None] * room * room + self.log_j[:, None, :] - exponent)
                / -np.expm1(-exponent)
            )
        error = np.where(room > 0, error, np.inf).min(2)
        return np.asarray(0.5 * self.stretch * y * y + np.log1p(trapezoid + error + self._ones))

    def _quadrature(self, levels: Array) -> Array:
        """log of the bound of |A_h - A| e^(2 pi y/h), over A, without the factor 2; [group, y, level] (term 3)."""
        return np.asarray(self._cells(self.s, levels, 1.0) - self.log_a[:, :, None])

    def _steps(self, levels: Array, log_i: Array) -> Array:
        """The largest steps h for which the quadrature error stays below the tolerance at every level."""
        count = self.steps.count
        decay = (count[:, None] * (self._envelope(levels) - self.log_a)).sum(0) - 0.5 * self.steps.gauss * levels**2
        log_m = float((count * self.log_a[:, 0]).sum()) + 0.5 * self.steps.gauss * self.c * (self.c + 1.0)
        size = log_m - self.c * self.saddle.epsilon + decay - np.log(np.pi * np.maximum(levels, self.c))
        size = np.concatenate((size[:1], size[:-1]))
        self.headroom = float(size.max()) - self.need
        exponent = (
            log_i + np.maximum(size - self.need, 1.0)[None, None, :] + np.log(4.0 * count * len(count))[:, None, None]
        )
        h = (2 * np.pi * self.y[:, :, None] / np.maximum(exponent, 1.0)).max(1).min(1)
        return dyadic(np.minimum(h, self.h0[:, 0]))

    def _range(self, h: Array) -> tuple[Array, Array, Array]:
        """First and last node for each group, and the bound of what lies beyond them, over A (term 4)."""
        h0, g = self.h0, self.g
        lip = np.abs(self.s) * np.minimum(1.0, self.v * np.exp(0.5 * h0 / self.sigma)) / self.sigma
        log_sup = self.log_w + self.log_sup + self.s * self.loss
        cell = np.exp(log_sup - self.log_a + 0.5 * h0 * (np.abs(g) + lip)) + np.exp(self.log_w + 0.5 * h0 * np.abs(g))
        edge = self.edge * np.exp(-self.log_a) + self._edges(0.0 * self.s)
        allowed = np.exp(-np.maximum(self.headroom, 0.0)) / (8.0 * self.steps.count[:, None])
        below, above = np.cumsum(cell, 1), np.cumsum(cell[:, ::-1], 1)[:, ::-1]
        start = np.maximum((below <= allowed).sum(1) - 1, 0)
        stop = np.minimum((above > allowed).sum(1), g.shape[1] - 1)
        rows = np.arange(len(h))
        omitted = 2.0 * (np.where(start > 0, below[rows, start], 0.0) + above[rows, stop] + edge[:, 0])
        first = np.floor(g[rows, start] / h)
        last = np.ceil(g[rows, stop] / h)
        return first, last, omitted * 1.01
