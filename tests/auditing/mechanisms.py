"""Three mechanisms that keep their word and five that do not; each claims psi = 1 between 0.0 and 1.0."""

import numpy as np

from psidp import GaussianMechanism

EXACT = GaussianMechanism(sensitivity=1.0, sigma=1.0)
FINE = GaussianMechanism(sensitivity=1.0, sigma=1.0, grid=2.0**-44)
RNG = np.random.default_rng(0)


def seed(value):
    """Make the broken mechanisms' noise the same in every test run."""
    global RNG
    RNG = np.random.default_rng(value)


def exact(x):
    """Our own mechanism, as it is."""
    return EXACT.release(x).value


def fine(x):
    """Our own mechanism on a grid so fine that no value comes twice by chance."""
    return FINE.release(x).value


def repeatable(x):
    """A Gaussian mechanism whose noise a test can repeat, on a grid so that floats do not tell."""
    return round((x + RNG.standard_normal()) * 2**20) / 2**20


def plain(x):
    """Noise drawn and added in float64, as everybody writes it: the last bits tell."""
    return x + RNG.standard_normal()


def shouting(x):
    """A word instead of a number."""
    return "in" if x else "out"


def growing(x, seen=[]):  # noqa: B006
    """One number more in every run."""
    seen.append(x)
    return seen


def not_a_number(x):
    """NaN."""
    return float("nan")


def too_little_noise(x):
    """sigma is too small by 10 %."""
    return round((x + 0.9 * RNG.standard_normal()) * 2**20) / 2**20


def seeded(x):
    """The same noise in every run."""
    return x + np.random.default_rng(7).standard_normal()


def single_precision(x):
    """Noise drawn and added in float32."""
    return np.float32(x) + RNG.standard_normal(dtype=np.float32)


def sensitivity_too_small(x):
    """The sum of two records of one person, with noise for one."""
    return round((2.0 * x + RNG.standard_normal()) * 2**20) / 2**20
