"""Nine ways to turn the output of a Gaussian mechanism into a score; none can leak more than psi."""

import numpy as np

ATTACKS = {
    "identity": lambda x, rng: x,
    "tanh": lambda x, rng: np.tanh(x),
    "cube": lambda x, rng: x**3,
    "exp": lambda x, rng: np.exp(x),
    "sign": lambda x, rng: np.sign(x - 0.5),
    "five bins": lambda x, rng: np.clip(np.round(x), -2, 2),
    "added noise": lambda x, rng: x + rng.standard_normal(x.shape),
    "mixture": lambda x, rng: np.where(rng.random(x.shape) < 0.5, x, rng.standard_normal(x.shape)),
    "negative": lambda x, rng: -x,
}


def scores(psi, n_in, n_out, attack, rng):
    """In-scores and out-scores of one attack."""
    return ATTACKS[attack](rng.normal(psi, 1, n_in), rng), ATTACKS[attack](rng.normal(0, 1, n_out), rng)


def most(repetitions, alpha, false_alarm):
    """The largest number of violations that a valid test exceeds with probability `false_alarm` at most."""
    from scipy.stats import binom

    return int(binom.isf(false_alarm, repetitions, alpha))
