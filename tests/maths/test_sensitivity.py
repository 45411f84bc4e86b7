"""Sensitivities against brute force: no two neighbouring datasets move an answer further, and some move it as far."""

from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import dist, inf, isqrt, nan, sqrt

import numpy as np
import pytest

from psidp import sensitivity
from psidp.maths.sensitivity import check_adjacency, clipped_sum, clipped_vector, count, histogram, mean_of_known_size

ADJACENCIES = ["add-remove", "replace-one"]


def persons(values, contributions):
    """Every person: for one contribution exactly one record, for k at most k of them."""
    if contributions == 1:
        return [(v,) for v in values]
    sizes = range(contributions + 1)
    return [p for k in sizes for p in combinations_with_replacement(values, k)]


def neighbours(values, adjacency, contributions=1, others=1):
    """Pairs of neighbouring datasets, each a flat list of records, with some other people in both."""
    everybody = persons(values, contributions)
    for rest in product(everybody, repeat=others):
        base = [record for person in rest for record in person]
        if adjacency == "add-remove":
            yield from ((base, base + list(person)) for person in everybody)
        else:
            yield from ((base + list(a), base + list(b)) for a, b in product(everybody, repeat=2))


def brute(query, values, adjacency, contributions=1):
    """The largest distance of the answers over all neighbours."""
    return max(dist(query(a), query(b)) for a, b in neighbours(values, adjacency, contributions))


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("k", [1, 2, 3])
def test_count_of_the_records_that_fit_a_filter(adjacency, k):
    assert count(adjacency, k) == brute(lambda rows: [sum(rows)], [0, 1], adjacency, k)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize(
    ("lower", "upper"), [(0.0, 5.0), (-1.0, 5.0), (-4.0, 2.0), (2.0, 3.0), (-3.0, -1.0), (1.0, 1.0)]
)
def test_clipped_sum(adjacency, k, lower, upper):
    def query(rows):
        return [sum(min(max(r, lower), upper) for r in rows)]

    values = [lower - 7.0, lower, (lower + upper) / 2, upper, upper + 7.0]
    assert clipped_sum(lower, upper, adjacency, k) == pytest.approx(brute(query, values, adjacency, k), rel=1e-15)


@pytest.mark.parametrize(("lower", "upper", "size"), [(0.0, 100.0, 3), (-1.0, 2.0, 2), (4.0, 4.0, 2)])
def test_mean_of_known_size(lower, upper, size):
    def query(rows):
        return [sum(min(max(r, lower), upper) for r in rows) / size]

    pairs = neighbours([lower - 1, lower, upper, upper + 9], "replace-one", others=size - 1)
    assert mean_of_known_size(lower, upper, size) == pytest.approx(
        max(dist(query(a), query(b)) for a, b in pairs), rel=1e-15
    )


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("k", [1, 2, 3])
def test_histogram(adjacency, k):
    def query(rows):
        return [rows.count(b) for b in range(2 * k)]

    assert histogram(adjacency, k) == pytest.approx(brute(query, range(min(2 * k, 3)), adjacency, k), rel=1e-15)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("k", [1, 2, 3])
def test_histogram_with_each_person_once_in_a_bin(adjacency, k):
    bins = range(2 * k)  # enough for two people who share none
    people = [p for p in persons(bins, k) if len(set(p)) == len(p)]
    pairs = product(people, repeat=2) if adjacency == "replace-one" else (((), p) for p in people)
    furthest = max(dist([a.count(b) for b in bins], [c.count(b) for b in bins]) for a, c in pairs)
    assert histogram(adjacency, k, one_per_bin=True) == pytest.approx(furthest, rel=1e-15)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("k", [1, 2])
def test_clipped_vector(adjacency, k):
    norm = 1.5
    ball = [(1.5, 0.0), (-1.5, 0.0), (0.9, 1.2), (0.0, 0.0), (-0.9, -1.2)]

    def query(rows):
        return [sum(r[0] for r in rows), sum(r[1] for r in rows)]

    assert clipped_vector(norm, adjacency, k) == pytest.approx(brute(query, ball, adjacency, k), rel=1e-15)


def test_nothing_is_ever_rounded_down():
    rng = np.random.default_rng(0)
    for _ in range(500):
        low, high = sorted((rng.normal(size=2) * 10.0 ** rng.integers(-12, 12, 2)).tolist())
        k, n = int(rng.integers(2, 9)), int(rng.integers(1, 1000))
        assert Fraction(clipped_sum(low, high, "replace-one")) >= Fraction(high) - Fraction(low)
        assert Fraction(clipped_sum(low, high, "add-remove", k)) >= k * max(abs(Fraction(low)), abs(Fraction(high)))
        assert Fraction(mean_of_known_size(low, high, n)) >= (Fraction(high) - Fraction(low)) / n
        assert Fraction(clipped_vector(abs(low), "replace-one", k)) >= 2 * k * Fraction(abs(low))


@pytest.mark.parametrize("k", [1, 2, 5, 49, 10**6 + 3, 2**27 + 1, 2**53 + 1, 3**40, 10**200])
def test_a_root_is_the_smallest_float_above_it_for_any_number_of_records(k):
    for one_per_bin, adjacency, square in (
        (True, "add-remove", k),
        (True, "replace-one", 2 * k),
        (False, "add-remove", k * k),
        (False, "replace-one", 2 * k * k),
    ):
        value = histogram(adjacency, k, one_per_bin)
        assert Fraction(value) ** 2 >= square
        assert Fraction(np.nextafter(value, 0.0)) ** 2 < square
    assert Fraction(count("add-remove", k)) >= k


def test_integers_and_numpy_numbers_are_taken_as_they_are():
    assert clipped_sum(-(2**53) - 1, 2**53 + 1, "replace-one") == 2.0**54 + 4.0
    assert clipped_sum(2**53 + 1, 2**53 + 2, "replace-one") == 1.0
    with pytest.raises(TypeError, match=r"^upper \("):
        clipped_sum(0, Fraction(1, 3), "add-remove")
    assert clipped_sum(np.float32(-0.5), np.int16(2), "replace-one", np.int64(1)) == 2.5
    assert clipped_vector(np.float32(1.5), "add-remove", np.uint8(2)) == 3.0
    assert type(clipped_sum(np.float64(0), np.float64(1), "add-remove")) is float
    assert histogram("replace-one") == pytest.approx(sqrt(2), rel=1e-15)
    assert isqrt(2) == 1


@pytest.mark.parametrize("query", [count, histogram])
@pytest.mark.parametrize("k", [0, -1, 1.0, 1.5, "1", None, True, nan, np.bool_(True)])
def test_contributions_must_be_a_whole_number(query, k):
    with pytest.raises(ValueError, match=r"contributions must be a whole number of at least 1, got contributions="):
        query("add-remove", k)


@pytest.mark.parametrize("bad", [nan, inf, -inf, "1", None, True, 1j, 10**400, [1.0, 2.0]])
@pytest.mark.parametrize("name", ["lower", "upper", "norm"])
def test_a_bound_that_is_no_finite_number_is_refused_by_name(name, bad):
    calls = {
        "lower": lambda: clipped_sum(bad, 1.0, "add-remove"),
        "upper": lambda: mean_of_known_size(0.0, bad, 10),
        "norm": lambda: clipped_vector(bad, "add-remove"),
    }
    with pytest.raises((ValueError, TypeError), match=rf"^{name} \("):
        calls[name]()


def test_what_makes_no_sense_is_refused_by_a_sentence():
    with pytest.raises(ValueError, match=r"bounds must have lower <= upper, got lower=2.0, upper=1.0"):
        clipped_sum(2.0, 1.0, "add-remove")
    with pytest.raises(ValueError, match=r"norm \(the clipping bound\) must be in \[0, inf\), got norm=-1.0"):
        clipped_vector(-1.0, "add-remove")
    with pytest.raises(ValueError, match="Release a noisy sum and a noisy count instead"):
        mean_of_known_size(0.0, 1.0, 10, "add-remove")
    with pytest.raises(ValueError, match="size must be a whole number of at least 1, got size=0"):
        mean_of_known_size(0.0, 1.0, 0)
    with pytest.raises(ValueError, match="too large for a float"):
        clipped_sum(-1e308, 1e308, "replace-one")
    for bad in ("add", "", None, "ADD-REMOVE"):
        with pytest.raises(
            ValueError, match='adjacency must be "add-remove", "replace-one" or "zero-out", got adjacency='
        ):
            check_adjacency(bad)


def test_every_query_has_its_brute_force_here():
    assert all(name in globals() or name == "Adjacency" for name in sensitivity.__all__)
