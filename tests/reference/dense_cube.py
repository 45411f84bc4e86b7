"""Cubes by dense matrices: sums over cells, products of bases, least squares. Slow and plain."""

from fractions import Fraction
from itertools import product
from math import prod

import numpy as np


def summing(sizes, table):
    """Q: the cells of a table from all cells, 0 and 1."""
    found = np.ones((1, 1))
    for i, n in enumerate(sizes):
        found = np.kron(found, np.eye(n) if i in table else np.ones((1, n)))
    return found


def matrix_of(basis):
    """U, as the basis applies it to unit vectors; whole numbers."""
    return basis.encode(np.eye(basis.size, dtype=np.int64))


def residual_rows(bases, part):
    """The rows of a residual's coefficients over all cells, whole numbers."""
    found = np.ones((1, 1), np.int64)
    for i, basis in enumerate(bases):
        found = np.kron(found, matrix_of(basis) if i in part else np.ones((1, basis.size), np.int64))
    return found


def scale_fractions(marginals, part, steps=1):
    """m of each coefficient, exactly."""
    scales = marginals.scales(part, steps)
    return [
        Fraction(int(m)) / Fraction(2) ** int(s)
        for m, s in zip(scales.multiple.reshape(-1), scales.shift.reshape(-1), strict=True)
    ]


def moved(plan, cell, steps=1):
    """psi^2 of one row in a cell: the sum of squares of what it moves over sigma, in fractions."""
    total = Fraction(0)
    for part, sigma in zip(plan.marginals.residuals, plan.sigmas, strict=True):
        rows = residual_rows(plan.marginals.bases, part)
        for row, m in zip(rows, scale_fractions(plan.marginals, part, steps), strict=True):
            total += (Fraction(int(row[cell]) * steps) / m) ** 2 / Fraction(sigma) ** 2
    return total


def reading(plan, table):
    """B and variances: cells of a table are B times all coefficients, by least squares over everything released."""
    bases = plan.marginals.bases
    rows = [residual_rows(bases, part) for part in plan.marginals.residuals]
    scales = np.array([float(m) for part in plan.marginals.residuals for m in scale_fractions(plan.marginals, part)])
    sigmas = np.repeat(plan.sigmas, [len(r) for r in rows])
    inverse = np.linalg.pinv(np.vstack(rows) / scales[:, None]) / scales
    return summing([basis.size for basis in bases], table) @ inverse, (sigmas * scales) ** 2


def table_variances(sizes, tables, parts):
    """For each table and residual what sigma^2 = 1 there adds to the variance of a cell, by projections."""
    everything = prod(sizes)
    found = np.zeros((len(tables), len(parts)))
    for p, part in enumerate(parts):
        projection = np.ones((1, 1))
        for i, n in enumerate(sizes):
            mean = np.ones((n, n)) / n
            projection = np.kron(projection, np.eye(n) - mean if i in part else mean)
        others = prod(n for i, n in enumerate(sizes) if i not in part)
        for t, table in enumerate(tables):
            q = summing(sizes, table)
            found[t, p] = (q @ projection @ q.T)[0, 0] / others
    assert everything == projection.shape[0]
    return found


def cells_of(sizes):
    """All cells, by their place and their keys."""
    return list(enumerate(product(*(range(n) for n in sizes))))
