"""What the totals of a table must be, in plain Python: integers and fractions, one row after the other.

A question is a dict of plain values, as `to_dict` of a measure writes it; a grid is its bound and the exponent of its
step.
"""

from collections import defaultdict
from fractions import Fraction
from math import isnan, isqrt, trunc

PARTS = {"mean": 2, "variance": 3, "deviation": 3, "ratio": 2}
BINNED = ("histogram", "quantiles")


def plain(asked):
    """A question as a dict: that of the groups, where the largest are asked for."""
    asked = asked if isinstance(asked, dict) else asked.to_dict()
    return plain(asked["of"]) if asked["kind"] == "top" else asked


def parts_of(asked):
    """How many numbers a row adds."""
    return PARTS.get(plain(asked)["kind"], 1)


def totals(rows, unit, by, asked, grid):
    """{group: [total of each coordinate]} for one question; rows are dicts; a histogram's groups end in the bin.

    unit: a column, several, or None where each row is its own.
    """
    asked = plain(asked)
    if asked["kind"] == "distinct":
        return {group: [total] for group, total in distinct(rows, unit, by, asked["column"], asked["at_most"]).items()}
    cells = defaultdict(lambda: defaultdict(lambda: [0] * parts_of(asked)))
    for index, row in enumerate(rows):
        owner, vector = owner_of(row, unit, index), row_vector(row, asked, grid)
        if owner is None or vector is None:
            continue
        group = tuple(row[name] for name in by)
        if asked["kind"] in BINNED:
            group += (bin_of(row[asked["column"]], asked["edges"]),)
        cell = cells[owner][group]
        for i, x in enumerate(vector):
            cell[i] += x
    result = defaultdict(lambda: [0] * parts_of(asked))
    for groups in cells.values():
        for group, vector in clipped(groups, asked, grid).items():
            result[group] = [a + b for a, b in zip(result[group], vector, strict=True)]
    return dict(result)


def owner_of(row, unit, index):
    """Whose row it is, or None for nobody's."""
    if unit is None:
        return index
    values = tuple(row[name] for name in ([unit] if isinstance(unit, str) else unit))
    return None if None in values else values


def clipped(groups, asked, grid):
    """One unit's vector: its exact sums times one integer weight over 2^30, cut toward zero."""
    bound = grid.bound
    if asked["kind"] == "units":
        groups = {group: [min(one_of(grid), bound)] for group in groups}
    most = bound << 30
    groups = {g: [max(-most, min(most, x)) for x in vector] for g, vector in groups.items()}
    weight = weight_of(sum(x * x for vector in groups.values() for x in vector), bound)
    return {g: [(1 if x > 0 else -1) * ((abs(x) * weight) >> 30) for x in v] for g, v in groups.items()}


def weight_of(square, bound):
    """floor(bound 2^30 / sqrt(square)), at most 2^30."""
    return isqrt((bound << 30) ** 2 // max(square, bound**2))


def one_of(grid):
    """One in steps."""
    return int(1 / Fraction(2) ** grid.unit)


def row_vector(row, asked, grid):
    """The integers of one row, or None where it does not count at all."""
    one, kind = one_of(grid), asked["kind"]
    if kind in ("count", "units"):
        return [one]
    if kind == "ratio":
        part = isqrt(one * one // 2)
        return [part if term["kind"] == "count" else ratio_part(row, term, part) for term in asked["terms"]]
    if kind == "weighted_sum":
        value = weighted(row, asked)
        return [0 if value is None else trunc(Fraction(value) / Fraction(2) ** grid.unit)]
    value = row[asked["column"]]
    if kind in BINNED:
        return None if absent(value) else [one]
    if absent(value):
        return [0] * parts_of(asked)
    value = min(max(float(value), asked["lower"]), asked["upper"])
    if kind == "sum":
        return [trunc(Fraction(value) / Fraction(2) ** grid.unit)]
    return centred(value, asked, isqrt(one * one // parts_of(asked)))


def absent(value):
    return value is None or (isinstance(value, float) and isnan(value))


def weighted(row, asked):
    """Clipped value times clipped weight, in doubles; None where either is missing."""
    value, weight = row[asked["column"]], row[asked["weights"]]
    if absent(value) or absent(weight):
        return None
    pair = [min(max(float(value), asked["lower"]), asked["upper"]), min(max(float(weight), 0.0), asked["most"])]
    return pair[0] * pair[1] if all(abs(x) >= 2.0**-400 for x in pair) else 0.0


def ratio_part(row, term, part):
    """One sum of a ratio: its value over the largest, in parts."""
    reach = max(abs(term["lower"]), abs(term["upper"])) * term.get("most", 1.0)
    value = weighted(row, term) if "weights" in term else row[term["column"]]
    if absent(value):
        return 0
    value = value if "weights" in term else min(max(float(value), term["lower"]), term["upper"])
    return 0 if abs(value) < reach * 2.0**-40 else trunc(value / reach * part)


def distinct(rows, unit, by, column, at_most):
    """{group: total}: a unit's pairs of group and value weigh 2^20 min(1, at_most/m) each, a pair at most 2^20."""
    pairs = defaultdict(set)
    for index, row in enumerate(rows):
        owner = owner_of(row, unit, index)
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


def centred(value, asked, part):
    """Row count, value and square about the middle of the bounds, in doubles as the engines have them."""
    lower, upper = asked["lower"], asked["upper"]
    middle, half = (lower + upper) / 2.0, (upper - lower) / 2.0
    apart = value - middle
    t = 0.0 if abs(apart) < half * 2.0**-40 else apart / half
    if value <= lower or value >= upper:
        t = -1.0 if value <= lower else 1.0
    powers = [t, t * t * 2.0 - 1.0][: parts_of(asked) - 1]
    return [part] + [trunc(max(-1.0, min(1.0, p)) * part) for p in powers]


def bin_of(value, edges):
    """Number of inner edges at or below the value."""
    return sum(float(value) >= edge for edge in edges[1:-1])
