"""Brute force: the largest |C v|^2 over every pattern of columns that a unit may be in. Shares no code with psidp."""

from itertools import chain, combinations, pairwise, product


def image(coefficients, periods, pattern, signs=None):
    """C v, row by row, for a unit with 1 (or a sign) in each period of the pattern."""
    signs = signs or (1,) * len(pattern)
    rows = []
    for t in range(periods):
        row = 0
        for period, sign in zip(pattern, signs, strict=True):
            age = t - period
            if 0 <= age < len(coefficients):
                row += sign * coefficients[age]
        rows.append(row)
    return rows


def patterns(periods, at_most=None, apart=1, buckets=None):
    """All sets of periods that keep the promise; `buckets` names the bucket of each period."""
    most = periods if at_most is None else min(at_most, periods)
    for pattern in chain.from_iterable(combinations(range(periods), size) for size in range(1, most + 1)):
        if any(later - earlier < apart for earlier, later in pairwise(pattern)):
            continue
        if buckets and len({buckets[period] for period in pattern}) < len(pattern):
            continue
        yield pattern


def largest(coefficients, periods, **promise):
    """The largest squared norm of an image, as a whole number."""
    return max(
        sum(row * row for row in image(coefficients, periods, pattern)) for pattern in patterns(periods, **promise)
    )


def largest_of_either_sign(coefficients, periods, **promise):
    """The same where a unit may add 1 or take 1 away in each of its periods."""
    return max(
        sum(row * row for row in image(coefficients, periods, pattern, signs))
        for pattern in patterns(periods, **promise)
        for signs in product((1, -1), repeat=len(pattern))
    )
