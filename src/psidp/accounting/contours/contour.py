"""The contour: delta(epsilon) as a finite sum on the line Re z = c, with every error term bounded.

delta(epsilon) = (1/2 pi i) int M(z) e^(-z epsilon)/(z (z+1)) dz over Re z = c > 0, M the moment generating function of
the privacy loss. The trapezoid rule with step du gives, exactly, delta(epsilon) + sum_k e^(c k Lambda)
delta(epsilon + k Lambda) over k != 0, Lambda = 2 pi/du. docs/design/accounting.md proves the five error terms.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from psidp.accounting.composition import Array, Composition
from psidp.accounting.contours.error_bounds import Bounds, NotCertified, Survey, TooLong
from psidp.accounting.contours.mgf_table import LIBM, ULP, Table, total
from psidp.accounting.contours.saddle import Saddle, saddle_at_epsilon
from psidp.accounting.contours.window import Window

__all__ = ["Contour", "NotCertified", "TooLong"]

BLOCK = 1 << 20
"""Entries of a table of nodes by epsilons at once: 1e5 points take megabytes, not gigabytes."""


class Contour:
    """A table of M(z)/(z (z+1)) on one line, good for every epsilon near the one it was made for."""

    def __init__(
        self,
        steps: Composition,
        saddle: Saddle,
        tolerance: float = 1e-12,
        window: Window | None = None,
        extended: bool = False,
        share: float = 1.0,
    ) -> None:
        if extended and not np.finfo(np.longdouble).nmant == 63:
            raise NotCertified("no fast extended precision here")
        if not (1.0 + saddle.c) - 1.0 == saddle.c > 0.0:
            raise NotCertified("1 + c is no float")
        self.steps, self.c, self.saddle, self.window = steps, saddle.c, saddle, window
        self.tolerance, self.extended, self.share = tolerance, extended, share
        self.real_type: Any = np.longdouble if extended else np.float64
        self.ulp = float(np.finfo(self.real_type).eps) / 2.0
        self.method = "extended contour" if extended else ("contour" if window is None else "windowed contour")
        with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
            self.bounds = self._surveyed(tolerance)
            self._fill()

    def _surveyed(self, tolerance: float) -> Bounds:
        try:
            return Survey(self.steps, self.saddle, self.window, tolerance).bounds(self.share)
        except NotCertified:
            return Survey(self.steps, self.saddle, self.window, tolerance, finer=2.0).bounds(self.share)

    def moved(self, epsilon: float, log_delta: float) -> "Contour":
        """The same kind of contour, made for another epsilon and its log delta."""
        saddle = saddle_at_epsilon(self.steps, epsilon, self.window)
        saddle = replace(saddle, log_delta=log_delta)
        return Contour(self.steps, saddle, self.tolerance, self.window, self.extended, self.share)

    def _fill(self) -> None:
        """log M on the nodes of the contour and a bound of its error at each node."""
        bounds, steps = self.bounds, self.steps
        table = Table(steps, bounds, self.window, self.c, self.real_type)
        self.u = np.arange(bounds.nodes + 1).astype(self.real_type) * bounds.du
        change, error = table.change(self.u)
        gauss = 0.5 * (self.real_type(steps.plain.value) + self.real_type(steps.plain.rest))
        c, u = self.real_type(self.c), self.u
        self.log_m = table.log_a + gauss * c * (c + 1.0)
        self.real = change.real - gauss * u * u
        self.phase = change.imag + gauss * (2.0 * c + 1.0) * u
        size = table.size + gauss * (np.abs(c * (c + 1.0)) + u * u + (2.0 * c + 1.0) * u)
        self.error = error + LIBM * self.ulp * (len(steps.count) + 2.0) * (size + 1.0)
        self.kernel = 1.0 / ((c + 1j * u) * (c + 1.0 + 1j * u))
        self.weight = np.where(u > 0, 2.0, 1.0) * (bounds.du / (8 * np.arctan(self.real_type(1.0))))

    def log_delta(self, epsilon: Array) -> tuple[Array, Array]:
        """Proved lower and upper bounds of log delta at each epsilon; -inf below where nothing is proved."""
        epsilon = np.atleast_1d(np.asarray(epsilon, dtype=np.float64))
        rows = max(BLOCK // self.u.size, 1)
        if epsilon.size > rows:
            parts = [self.log_delta(epsilon[i : i + rows]) for i in range(0, epsilon.size, rows)]
            return np.concatenate([low for low, _ in parts]), np.concatenate([high for _, high in parts])
        with np.errstate(all="ignore"):
            value, error, alias, log_scale = self._sum(epsilon)
            low, high = (0.0, 0.0) if self.window is None else np.array(self.window.aside(epsilon)) * np.exp(-log_scale)
            upper = np.log(value + error + high) + log_scale
            lower = np.log(np.maximum(value - error - alias + low, 0.0)) + log_scale
        slack = 4.0 * ULP * (np.abs(lower) + 1.0)
        upper = np.where(np.isnan(upper), 0.0, np.minimum(upper + 4.0 * ULP * (np.abs(upper) + 1.0), 0.0))
        return np.where(np.isnan(lower), -np.inf, lower - slack).astype(np.float64), upper.astype(np.float64)

    def solve(self, epsilon: float, log_delta: float) -> float:
        """epsilon where the sum is delta, as computed: Newton's step kept inside a bracket; a guess without proof."""
        u = self.u.astype(np.float64)
        z = self.c + 1j * u
        table = (self.weight * np.exp(self.real + 1j * self.phase) * self.kernel).astype(np.complex128)
        low, high = 0.0, np.inf
        for _ in range(60):
            terms = table * np.exp(-1j * (u * epsilon))
            aside = 0.0 if self.window is None else float(self.window.aside(np.array([epsilon]))[0][0])
            scale = float(self.log_m) - self.c * epsilon
            value, slope = terms.real.sum() + aside * np.exp(-scale), -(z * terms).real.sum()
            gap = np.log(value) + scale - log_delta if value > 0 else -np.inf
            low, high = (epsilon, high) if gap > 0 else (low, epsilon)
            step = gap * value / slope if slope < 0 else np.nan
            ahead = epsilon - float(step)
            if abs(step) <= 1e-12 * epsilon + 1e-13 / self.c:
                return max(ahead, 0.0)
            epsilon = ahead if low < ahead < high else (0.5 * (low + high) if high < np.inf else 2.0 * epsilon + 1e-9)
            if epsilon < 1e-14:
                return 0.0
        return epsilon

    def _sum(self, epsilon: Array) -> tuple[Array, Array, Array, Array]:
        """The trapezoid sum, its error, its alias, all divided by e^(log_scale)."""
        c, u, bounds = self.c, self.u, self.bounds
        slack = 8.0 * ULP * (np.abs(bounds.log_tail) + np.abs(bounds.log_m2) + np.abs(self.log_m) + bounds.c2 * epsilon)
        log_scale = self.log_m - c * epsilon.astype(self.real_type)
        modulus = self.weight * np.exp(self.real) * np.abs(self.kernel)
        angle = self.phase + np.angle(self.kernel)
        turn = angle - u * epsilon[:, None].astype(self.real_type)
        terms = modulus * np.cos(turn)
        value = total(terms)
        rows = 4.0 * np.sqrt(u.size)
        common = LIBM * self.ulp * (abs(self.log_m) + 1.0)
        relative = self.error + self.ulp * (LIBM * (np.abs(angle) + u * epsilon[:, None] + 4.0) + rows + 4.0)
        relative = relative + common + LIBM * self.ulp * c * epsilon[:, None]
        error = (modulus * np.expm1(np.minimum(relative, 1.0))).sum(1)
        if (relative > 1.0).any():  # where a factor is nearly 0: e^real and e^relative may be no floats
            grown = self.weight * np.abs(self.kernel) * np.exp(self.real + relative)
            error = error + np.where(relative > 1.0, grown, 0.0).sum(1)
        tail = np.exp(bounds.log_tail - self.log_m + slack)
        period = 2 * np.pi / bounds.du
        left = -log_scale - c * period - np.log(-np.expm1(-c * period))
        reach = (bounds.c2 - c) * (epsilon + period)
        right = bounds.log_m2 - self.log_m - reach - np.log(-np.expm1(-(bounds.c2 - c) * period))
        generous = 1.0 + 1e-9
        return value, (error + tail) * generous, (np.exp(left + slack) + np.exp(right + slack)) * generous, log_scale
