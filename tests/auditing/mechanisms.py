"""One mechanism that keeps its word and four that do not; each claims psi = 1 between 0.0 and 1.0."""

import numpy as np

from psidp import GaussianMechanism

EXACT = GaussianMechanism(sensitivity=1.0, sigma=1.0)
RNG = np.random.default_rng()


def seed(value):
    """Make the broken mechanisms' noise the same in every test run."""
    global RNG
    RNG = np.random.default_rng(value)


def exact(x):
    """Our own mechanism, as it is."""
    return EXACT.release(x).value


def plain(x):
    """A Gaussian mechanism whose noise a test can repeat."""
    return x + RNG.standard_normal()


def too_little_noise(x):
    """sigma is too small by 10 %."""
    return x + 0.9 * RNG.standard_normal()


def seeded(x):
    """The same noise in every run."""
    return x + np.random.default_rng(7).standard_normal()


def single_precision(x):
    """Noise drawn and added in float32."""
    return np.float32(x) + RNG.standard_normal(dtype=np.float32)


def sensitivity_too_small(x):
    """The sum of two records of one person, with noise for one."""
    return 2.0 * x + RNG.standard_normal()
