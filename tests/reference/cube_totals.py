"""What a cube's queries must compute, in plain Python: codes, weights and totals, one row after the other."""

from collections import defaultdict
from fractions import Fraction
from itertools import combinations, product
from math import ceil, floor, frexp, isnan, isqrt, trunc


def missing(value):
    return value is None or (isinstance(value, float) and isnan(value)) or (value != value)


def code_of(value, keys, edges):
    """The number of a value's key or bin, or None."""
    if edges:
        return None if missing(value) else sum(float(value) >= edge for edge in edges[1:-1])
    places = [i for i, key in enumerate(keys) if key == value and (key is None) == (value is None)]
    return places[0] if places else None


def value_of(row, kind, column, lower, upper):
    """What a row adds to a layer."""
    if kind == "rows":
        return 1
    if missing(row[column]):
        return 0
    if kind == "present":
        return 1
    value = min(max(float(row[column]), lower), upper)
    if kind == "amount":
        unit = frexp(max(abs(lower), abs(upper)))[1] - 1 - 20
        return trunc(Fraction(value) / Fraction(2) ** unit)
    middle, half = (lower + upper) / 2.0, (upper - lower) / 2.0
    if value in (lower, upper):
        return -(2**20) if value == lower else 2**20
    apart = value - middle
    t = 0.0 if abs(apart) < half * 2.0**-40 else apart / half
    return trunc(max(-1.0, min(1.0, t)) * 2.0**20)


def row_weight(count, contribution):
    return min(2**20, floor(Fraction(contribution) * 2**20 / count))


def image_weight(codes, contribution, gram, block):
    """min(2^20, floor(C 2^32 / R)); R adds up the roots of strided blocks in the order of the keys' packed numbers."""
    parts = -(-len(codes) // block)
    roots = 0
    for part in range(parts):
        dealt = codes[part::parts]
        square = sum(gram[agreement(x, y)] for x in dealt for y in dealt)
        root = isqrt(max(square, 0))
        roots += root + (root * root < square) if square > 0 else 1
    return min(2**20, floor(Fraction(contribution) * 2**32 / roots))


def agreement(x, y):
    return sum((a == b) << i for i, (a, b) in enumerate(zip(x, y, strict=True)))


def in_key_order(codes, sizes):
    """Rows in the order of words of at most 62 bits, the first column in the lowest bits."""

    def words(code):
        made, used, word = [], 0, 0
        for c, size in zip(code, sizes, strict=True):
            bits = max(1, (size - 1).bit_length())
            if used + bits > 62:
                made.append(word)
                used, word = 0, 0
            word += c << used
            used += bits
        return [*made, word]

    return sorted(codes, key=words)


def cube_totals(rows, unit, columns, tables, layers, weigh):
    """[[{codes: total}]] by table and layer. columns: (name, keys, edges). weigh: a unit's weight."""
    kept = []
    for row in rows:
        codes = tuple(code_of(row[name], keys, edges) for name, keys, edges in columns)
        if None not in codes and (unit is None or row[unit] is not None):
            kept.append((None if unit is None else row[unit], codes, [value_of(row, *layer) for layer in layers]))
    units = defaultdict(list)
    for owner, codes, _ in kept:
        units[owner].append(codes)
    weights = {owner: 1 if unit is None else weigh(codes) for owner, codes in units.items()}
    found = [[defaultdict(int) for _ in layers] for _ in tables]
    for owner, codes, values in kept:
        for table, totals in zip(tables, found, strict=True):
            for total, value in zip(totals, values, strict=True):
                total[tuple(codes[i] for i in table)] += weights[owner] * value
    return found


def gram_of(sizes, sigmas):
    """For each pattern g as a Fraction: sum over S of prod over S of (1[agree] - 1/n) / sigma_S^2."""
    found = []
    for pattern in range(1 << len(sizes)):
        g = Fraction(0)
        for subset, sigma in sigmas.items():
            term = Fraction(1) / sigma**2
            for i in subset:
                term *= (pattern >> i & 1) - Fraction(1, sizes[i])
            g += term
        found.append(g)
    return found


def random_sigmas(dice, columns):
    """A rational sigma for every subset of columns."""
    every = [subset for n in range(columns + 1) for subset in combinations(range(columns), n)]
    return {subset: Fraction(dice.randint(50, 400), 100) for subset in every}


def at_psi_one(gram):
    """Integers of at least 2^24 g, where a row with itself has 1."""
    return tuple(ceil(g / gram[-1] * 2**24) for g in gram)


def image_square(vector, gram):
    """u^T G u of a table over all columns, in fractions."""
    cells = [(place, int(vector[place])) for place in product(*map(range, vector.shape)) if int(vector[place])]
    return sum(a * b * gram[agreement(x, y)] for x, a in cells for y, b in cells)
