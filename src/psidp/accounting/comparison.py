"""The paper's method and its neighbours, labelled: CLT formulas approximate, RDP bounds, neither is a default."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from psidp.accounting.composition import Array
from psidp.accounting.correlated import BandMF, FixedOrder, priced
from psidp.accounting.curve import account
from psidp.accounting.events import DPSGD, RandomAllocation
from psidp.maths.normal import tail
from psidp.maths.profile_inverse import epsilon_from_psi
from psidp.maths.renyi import epsilon_from_rdp
from psidp.symbols import symbol

__all__ = ["Estimate", "clt_psi", "clt_psi_poisson", "compare", "rdp_epsilon", "rdp_of_sampled_gaussian"]

ORDERS = np.unique(np.concatenate((np.arange(2, 65), np.geomspace(64, 1024, 40).astype(int))))
Verdict = Literal["certified", "safe here", "understates the loss here", "cannot be told from the certified interval"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """One method's epsilon, what kind of statement it is, and how it stands to the certified interval."""

    method: str
    kind: Literal["certified", "approximation", "bound"]
    epsilon: float
    verdict: Verdict


def clt_psi(noise_multiplier: float, sampling_rate: float, steps: int) -> float:
    r"""psi of the paper's central limit formula for batches drawn without replacement; an approximation.

    .. math:: \psi = q\sqrt{2T}\,\sqrt{e^{1/\sigma^2}\Phi(3/(2\sigma)) + 3\Phi(-1/(2\sigma)) - 2}

    Examples:
        >>> round(clt_psi(1.0, 0.01, 1000), 3)
        0.541

    References:
        Dong, Roth and Su 2022, Corollary 5.4.
    """
    run = DPSGD(noise_multiplier, sampling_rate, steps)
    s = 1.0 / run.noise_multiplier
    below, above, half = (float(tail(np.float64(x))) for x in (-1.5 * s, 1.5 * s, 0.5 * s))
    inner = np.expm1(s * s) * below - above + 3.0 * half - 1.0
    return float(run.sampling_rate * np.sqrt(2.0 * run.steps * max(float(inner), 0.0)))


def clt_psi_poisson(noise_multiplier: float, sampling_rate: float, steps: int) -> float:
    r"""psi of the central limit formula for Poisson sampling; an approximation that understates the loss.

    .. math:: \psi = q\sqrt{T (e^{1/\sigma^2} - 1)}

    Examples:
        >>> round(clt_psi_poisson(1.0, 0.01, 1000), 4)
        0.4145

    References:
        Bu, Dong, Long and Su 2020, Section 3.
    """
    run = DPSGD(noise_multiplier, sampling_rate, steps)
    return float(run.sampling_rate * np.sqrt(run.steps * np.expm1(run.noise_multiplier**-2.0)))


def rdp_of_sampled_gaussian(noise_multiplier: float, sampling_rate: float, alpha: float) -> float:
    r"""Renyi divergence of real order alpha > 1 of one Poisson-sampled Gaussian step, the larger direction.

    .. math:: \rho = \frac{1}{\alpha - 1} \log \mathrm{E}\,(1 - q + q e^{g/\sigma - 1/(2\sigma^2)})^\alpha,
              \quad g \sim \mathcal{N}(0, 1)

    Examples:
        >>> round(rdp_of_sampled_gaussian(1.0, 0.01, 8), 6)
        0.000894
        >>> round(rdp_of_sampled_gaussian(1.0, 0.01, 2.5), 6)
        0.000218

    References:
        Mironov, Talwar and Zhang 2019, Section 3.3; Zhu and Wang 2019, Theorem 6.
    """
    run = DPSGD(noise_multiplier, sampling_rate, 1)
    order = symbol("alpha").number(alpha)
    if not 1.0 < order < np.inf:
        raise ValueError(f"alpha (order of the Renyi divergence) must be in (1, inf) here, got alpha={alpha}.")
    return float(_log_moments_real(run, np.array([order]))[0] / (order - 1.0))


def rdp_epsilon(run: DPSGD, delta: float, conversion: Literal["improved", "standard"] = "improved") -> float:
    """epsilon by composing the RDP of the steps and converting once, at the best real order; a valid bound.

    Whole orders find the neighbourhood, a fine grid of real ones the answer.

    Examples:
        >>> round(rdp_epsilon(DPSGD(1.0, 0.01, 1000), 1e-5), 3)
        2.101
    """

    def converted(orders: Array, log_moments: Array) -> Array:
        rho = run.steps * log_moments / (orders - 1.0)
        return np.asarray(epsilon_from_rdp(rho, orders, delta, conversion))

    whole = converted(ORDERS.astype(float), _log_moments(run, ORDERS))
    best = int(np.argmin(whole))
    low = float(ORDERS[best - 1]) if best else 1.0 + 1e-3
    near = np.geomspace(low - 1.0, float(ORDERS[min(best + 1, ORDERS.size - 1)]) - 1.0, 129) + 1.0
    return float(min(whole.min(), converted(near, _log_moments_real(run, near)).min()))


def compare(run: DPSGD | BandMF | FixedOrder | RandomAllocation, delta: float) -> list[Estimate]:
    """The certified epsilon beside every other method, each with its label and with what is true of it here.

    A run with bands, or in a fixed order, is compared as the DPSGD whose price it has.
    """
    run = run if isinstance(run, RandomAllocation) else priced(run)
    usual = isinstance(run, DPSGD) and (run.sampling == "poisson") == (run.adjacency != "replace-one")
    if not (usual and isinstance(run, DPSGD) and run.group == 1 and run.truncated_batch_size is None):
        raise ValueError(
            "compare must be asked of a DPSGD run, Poisson with add-remove or without replacement with replace-one, of "
            f"single records and whole batches, got {run!r}. The other methods have no formula for it."
        )
    interval = account(run).epsilon(delta)
    formulas = {"CLT, the paper's formula": clt_psi, "CLT for Poisson sampling": clt_psi_poisson}
    rows = [Estimate("certified", "certified", float(interval.upper), "certified")]
    for name, formula in formulas.items():
        psi = formula(run.noise_multiplier, run.sampling_rate, run.steps)
        epsilon = float(epsilon_from_psi(psi, delta))
        rows.append(Estimate(name, "approximation", epsilon, _verdict(epsilon, interval.lower, interval.upper)))
    if run.sampling == "poisson":
        for conversion in ("improved", "standard"):
            epsilon = rdp_epsilon(run, delta, conversion)
            verdict = _verdict(epsilon, interval.lower, interval.upper)
            rows.append(Estimate(f"RDP composed, then converted ({conversion})", "bound", epsilon, verdict))
    return rows


def _verdict(epsilon: float, lower: float, upper: float) -> Verdict:
    if epsilon >= upper:
        return "safe here"
    return "understates the loss here" if epsilon < lower else "cannot be told from the certified interval"


def _log_moments(run: DPSGD, orders: Array) -> Array:
    """log A(alpha) for whole alpha, by the binomial theorem."""
    q, precision = run.sampling_rate, run.noise_multiplier**-2.0
    top = int(orders.max())
    log_factorial = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1.0, top + 1.0)))))
    out = np.empty(orders.size)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_q, log_rest = np.log(q), np.log1p(-q)
        for i, n in enumerate(orders.tolist()):
            k = np.arange(n + 1.0)
            choose = log_factorial[n] - log_factorial[: n + 1] - log_factorial[: n + 1][::-1]
            powers = np.where(k > 0, k * log_q, 0.0) + np.where(k < n, (n - k) * log_rest, 0.0)
            out[i] = np.logaddexp.reduce(choose + powers + 0.5 * k * (k - 1.0) * precision)
    return np.maximum(out, 0.0)


def _log_moments_real(run: DPSGD, orders: Array) -> Array:
    """log A(alpha) for real alpha by the trapezoid rule, raised by more than its error.

    The integrand is analytic for |Im g| < pi sigma, so that the rule errs by less than e^(-2 pi (3 sigma)/h) times its
    size on that strip; with h = sigma/8, and at most 1/8, that is below e^-100. The tails beyond 13 weigh e^-84.
    """
    q, s = run.sampling_rate, 1.0 / run.noise_multiplier
    h = min(run.noise_multiplier, 1.0) / 8.0
    out = np.empty(orders.size)
    with np.errstate(divide="ignore"):
        for i, alpha in enumerate(orders.tolist()):
            g = np.arange(-13.0, 13.0 + alpha * s, h)
            log_f = np.logaddexp(np.log1p(-q), np.log(q) + g * s - 0.5 * s * s)
            terms = alpha * log_f - 0.5 * g * g
            top = float(terms.max())
            out[i] = top + np.log(np.exp(terms - top).sum() * h / np.sqrt(2.0 * np.pi))
    return np.maximum(out, 0.0) + 1e-13 * (1.0 + np.abs(out))
