"""High-precision twins of the secondary functions, as the textbook has them. No cleverness, only digits."""

import mpmath as mp
import numpy as np
from flint import arb, ctx
from scipy.special import ndtri

BITS = 400  # an upper tail at 40 loses none of them; 1 - p at p = 1e-300 would lose 1000, so nothing subtracts there


def real(x: float) -> arb:
    """A float as the exact ball."""
    ctx.prec = BITS
    return arb(float(x))


def phi(x: arb) -> arb:
    """Phi(x), relatively exact on both sides."""
    ctx.prec = BITS
    return (-x / arb(2).sqrt()).erfc() / 2


def density(x: arb) -> arb:
    """Density of the standard normal."""
    ctx.prec = BITS
    return (-x * x / 2).exp() / (2 * arb.pi()).sqrt()


def quantile(p: arb) -> arb:
    """Phi^-1(p) for a ball p in (0, 1): Newton on log Phi from SciPy's value, until the residual is below 1e-60."""
    ctx.prec = BITS
    upper = bool(p > 0.5)
    tail = 1 - p if upper else p
    x = arb(float(ndtri(max(float(tail.mid()), 5e-324))))
    for _ in range(8):
        mass = phi(x)
        x = (x - (mass / tail).log() * mass / density(x)).mid()
    assert abs(phi(x) / tail - 1) < 1e-60
    return -x if upper else x


def tpr(psi: float, fpr: float) -> arb:
    """Phi(psi + Phi^-1(fpr))."""
    return phi(real(psi) + quantile(real(fpr)))


def fnr(psi: float, fpr: float) -> arb:
    """Phi(-psi - Phi^-1(fpr))."""
    return phi(-real(psi) - quantile(real(fpr)))


def delta(psi: float, epsilon: float) -> arb:
    """Phi(psi/2 - epsilon/psi) - e^epsilon Phi(-psi/2 - epsilon/psi) for psi in [1e-8, 60], to 200 bits or more."""
    p, e = real(psi), real(epsilon)
    return phi(p / 2 - e / p) - e.exp() * phi(-p / 2 - e / p)


def mixed(kappa: float, rate: arb) -> arb:
    """kappa + (1 - kappa) rate."""
    return real(kappa) + (1 - real(kappa)) * rate


def bayes_error(psi: float, prior: float) -> arb:
    """(1 - prior) Phi(-psi/2 - L/psi) + prior Phi(-psi/2 + L/psi), L = log((1 - prior)/prior)."""
    p, q = real(psi), real(prior)
    odds = ((1 - q) / q).log()
    return (1 - q) * phi(-p / 2 - odds / p) + q * phi(-p / 2 + odds / p)


def rdp_epsilon(rho: float, alpha: float, delta: float, conversion: str) -> arb:
    """The conversion of (alpha, rho)-RDP at delta, before it is cut at 0."""
    r, a, d = real(rho), real(alpha), real(delta)
    if conversion == "standard":
        return r - d.log() / (a - 1)
    return r + ((a - 1) / a).log() - (d.log() + a.log()) / (a - 1)


def renyi(alpha: float, distance: float, sigma_i: float, sigma_j: float, dimension: int) -> arb:
    """The textbook formula, in balls; alpha > 1 and s > 0."""
    a, vi, vj = real(alpha), real(sigma_i) ** 2, real(sigma_j) ** 2
    s = a * vj + (1 - a) * vi
    spread = (vj / vi).log() / 2 + (vj / s).log() / (2 * (a - 1))
    return dimension * spread + a * real(distance) ** 2 / (2 * s)


def renyi_by_quadrature(alpha: float, distance: float, sigma_i: float, sigma_j: float) -> float:
    """log E_j[(p_i/p_j)^alpha]/(alpha - 1) in one dimension, or E_i[log p_i/p_j] for alpha = 1, as an integral."""

    def log_density(x, mean, sigma):
        return -((x - mean) ** 2) / (2 * sigma**2) - mp.log(sigma * mp.sqrt(2 * mp.pi))

    def integrand(x):
        i, j = log_density(x, 0, sigma_i), log_density(x, distance, sigma_j)
        return mp.exp(i) * (i - j) if alpha == 1 else mp.exp(alpha * i + (1 - alpha) * j)

    with mp.workdps(20):
        s = alpha * sigma_j**2 + (1 - alpha) * sigma_i**2  # the integrand is a Gaussian about mean, of this width
        mean, width = distance * (1 - alpha) * sigma_i**2 / s, sigma_i * sigma_j / mp.sqrt(s)
        total = mp.quad(integrand, mp.linspace(mean - 20 * width, mean + 20 * width, 15))
        return float(total if alpha == 1 else mp.log(total) / (alpha - 1))


def spread(seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """psi in [1e-8, 1e3] and fpr in [1e-300, 1), many of them where the curve bends."""
    rng = np.random.default_rng(seed)
    psi = 10 ** rng.uniform(-8, 3, count)
    psi = np.where(rng.random(count) < 0.5, 10 ** rng.uniform(-2, 1.5, count), psi)
    fpr = np.choose(
        rng.integers(0, 4, count),
        [
            10 ** rng.uniform(-300, 0, count),
            10 ** rng.uniform(-16, -0.1, count),
            rng.uniform(0.0, 1.0, count),
            1 - 10 ** rng.uniform(-15.5, -0.1, count),
        ],
    )
    return psi, fpr
