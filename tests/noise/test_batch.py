"""A Poisson batch: the chance is exact to the word, the words are the stream's, and nothing seeds them."""

import random
from fractions import Fraction
from multiprocessing import get_context

import numpy as np
import pytest

from psidp.maths.binomial import binomial_tail
from psidp.noise.batch import poisson_batch, threshold


class Script:
    def __init__(self, words):
        self.words, self.asked = list(words), 0

    def fill(self, words):
        self.asked += words.size
        for at in range(words.size):
            words[at] = np.uint64(self.words.pop(0)).view(np.int64)

    def rekey(self):
        raise AssertionError("a batch has one key")


@pytest.mark.parametrize("rate", [0.0, 2.0**-64, 1e-30, 0.1, 1 / 3, 0.5, 1 - 2.0**-53, 1.0])
def test_a_record_is_in_for_as_many_words_as_the_rate_allows_and_not_one_more(rate):
    limit = threshold(rate)
    assert Fraction(limit, 2**64) <= Fraction(rate) < Fraction(limit + 1, 2**64)
    if rate >= 2.0**-11:
        assert Fraction(limit, 2**64) == Fraction(rate)


def test_the_words_on_either_side_of_the_threshold_decide_as_they_should():
    limit = threshold(0.1)
    script = Script([limit - 1, limit, 0, 2**64 - 1, limit + 1, 2**63])
    assert poisson_batch(6, 0.1, script).tolist() == [0, 2]
    assert script.asked == 6


def test_records_beyond_one_block_get_words_of_their_own():
    batch = poisson_batch(200_000, 0.5)
    assert (np.diff(batch) > 0).all()
    assert batch.max() > 131_072
    parts = np.histogram(batch, bins=[0, 65_536, 131_072, 200_000])[0]
    for found, size in zip(parts, (65_536, 65_536, 68_928), strict=True):
        assert abs(found - size / 2) < 7 * (size / 4) ** 0.5  # false alarm 3e-12


def test_the_share_of_records_is_the_rate_and_a_wrong_rate_is_caught():
    """False alarms: 1e-9 a side. At q = 0.053 the lower tail is below 1e-9 but once in 1e30 times."""
    draws = 2_000_000
    found = sum(len(poisson_batch(200_000, 0.05)) for _ in range(10))
    assert binomial_tail(found, draws, 0.05) > 1e-9
    assert binomial_tail(draws - found, draws, 0.95) > 1e-9
    assert binomial_tail(draws - found, draws, 1 - 0.053) < 1e-9


@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan"), "0.1", True, None])
def test_a_rate_that_is_none_is_refused(rate):
    with pytest.raises((ValueError, TypeError), match="sampling_rate"):
        poisson_batch(10, rate)


def test_no_seed_brings_a_batch_back():
    seen = set()
    for _ in range(5):
        random.seed(1)
        np.random.seed(1)  # noqa: NPY002
        seen.add(poisson_batch(1000, 0.5).tobytes())
    assert len(seen) == 5


def test_two_processes_never_share_a_batch():
    with get_context("fork").Pool(4) as pool:
        batches = pool.map(_batch, range(16), chunksize=1)
    assert len(set(batches) | {_batch(0)}) == 17


def _batch(_):
    return poisson_batch(1000, 0.5).tobytes()
