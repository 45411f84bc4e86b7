"""What the curator's engines must compute, in plain Python: integers and fractions, one row after the other."""

from collections import defaultdict
from fractions import Fraction
from math import isnan, isqrt, trunc


def totals(rows, unit, by, aggregate, lattice):
    """{group: [total of each coordinate]} for one aggregate; rows are dicts; a histogram's groups end in the bin."""
    cells = defaultdict(lambda: defaultdict(lambda: [0] * max(1, aggregate.parts)))
    for index, row in enumerate(rows):
        owner = index if unit is None else row[unit]
        vector = row_vector(row, aggregate, lattice)
        if owner is None or vector is None:
            continue
        group = tuple(row[name] for name in by)
        if aggregate.edges:
            group += (bin_of(row[aggregate.column], aggregate.edges),)
        cell = cells[owner][group]
        for i, x in enumerate(vector):
            cell[i] += x
    result = defaultdict(lambda: [0] * max(1, aggregate.parts))
    for groups in cells.values():
        for group, vector in clipped(groups, aggregate, lattice).items():
            result[group] = [a + b for a, b in zip(result[group], vector, strict=True)]
    return dict(result)


def clipped(groups, aggregate, lattice):
    """One unit's vector: its exact sums times one integer weight over 2^30, cut toward zero."""
    bound = lattice.bound
    if aggregate.kind == "units":
        groups = {group: [min(lattice.truncated(1.0), bound)] for group in groups}
    most = bound << 30
    groups = {g: [max(-most, min(most, x)) for x in vector] for g, vector in groups.items()}
    square = sum(x * x for vector in groups.values() for x in vector)
    weight = isqrt(most**2 // max(square, bound**2))
    return {g: [(1 if x > 0 else -1) * ((abs(x) * weight) >> 30) for x in v] for g, v in groups.items()}


def row_vector(row, aggregate, lattice):
    """The integers of one row, or None where it does not count at all."""
    one = int(1 / Fraction(2) ** lattice.unit)
    if aggregate.kind in ("count", "units"):
        return [one]
    if aggregate.kind == "ratio":
        part = isqrt(one * one // 2)
        return [part if term.kind == "count" else ratio_part(row, term, part) for term in aggregate.terms]
    value = row[aggregate.column]
    missing = absent(value)
    if aggregate.weights:
        value = weighted(row, aggregate)
        return [0 if value is None else trunc(Fraction(value) / Fraction(2) ** lattice.unit)]
    if aggregate.edges:
        return None if missing else [one]
    if missing:
        return [0] * aggregate.parts
    value = min(max(float(value), aggregate.lower), aggregate.upper)
    if aggregate.kind == "sum":
        return [trunc(Fraction(value) / Fraction(2) ** lattice.unit)]
    return centred(value, aggregate, isqrt(one * one // aggregate.parts))


def absent(value):
    return value is None or (isinstance(value, float) and isnan(value))


def weighted(row, aggregate):
    """Clipped value times clipped weight, in doubles; None where either is missing."""
    (name, most), value = aggregate.weights, row[aggregate.column]
    if absent(value) or absent(row[name]):
        return None
    pair = [min(max(float(value), aggregate.lower), aggregate.upper), min(max(float(row[name]), 0.0), most)]
    return pair[0] * pair[1] if all(abs(x) >= 2.0**-400 for x in pair) else 0.0


def ratio_part(row, term, part):
    """One sum of a ratio: its value over the largest, in parts."""
    most = 1.0 if term.weights is None else term.weights[1]
    reach = max(abs(term.lower), abs(term.upper)) * most
    value = weighted(row, term) if term.weights else row[term.column]
    if absent(value):
        return 0
    value = value if term.weights else min(max(float(value), term.lower), term.upper)
    return 0 if abs(value) < reach * 2.0**-40 else trunc(value / reach * part)


def distinct(rows, unit, by, column, at_most):
    """{group: total}: a unit's pairs of group and value weigh 2^20 min(1, at_most/m) each, a pair at most 2^20."""
    pairs = defaultdict(set)
    for index, row in enumerate(rows):
        owner = index if unit is None else row[unit]
        if owner is not None and row[column] is not None:
            pairs[owner].add((tuple(row[name] for name in by), row[column]))
    weights = defaultdict(int)
    for owned in pairs.values():
        for pair in owned:
            weights[pair] += min(2**20, int(Fraction(at_most) * 2**20) // len(owned))
    result = defaultdict(int)
    for (group, _), weight in weights.items():
        result[group] += min(2**20, weight)
    return dict(result)


def centred(value, aggregate, part):
    """Row count, value and square about the middle of the bounds, in doubles as the engines have them."""
    middle, half = (aggregate.lower + aggregate.upper) / 2.0, (aggregate.upper - aggregate.lower) / 2.0
    apart = value - middle
    t = 0.0 if abs(apart) < half * 2.0**-40 else apart / half
    if value <= aggregate.lower or value >= aggregate.upper:
        t = -1.0 if value <= aggregate.lower else 1.0
    powers = [t, t * t * 2.0 - 1.0][: aggregate.parts - 1]
    return [part] + [trunc(max(-1.0, min(1.0, p)) * part) for p in powers]


def bin_of(value, edges):
    """Number of inner edges at or below the value."""
    return sum(float(value) >= edge for edge in edges[1:-1])
