"""The price of a cube: noise of every layer for one psi, or the least psi for wanted errors; exact in fractions."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import prod, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psidp.curator.ask import Aggregate
from psidp.curator.cube_sql import Layer
from psidp.curator.unit import Unit
from psidp.maths.sensitivity import Adjacency
from psidp.strategies.haar import Haar
from psidp.strategies.marginals import Marginals, Table
from psidp.strategies.residual_plan import Balance, ResidualPlan, least_psi, least_total, least_worst

__all__ = ["LEAST_PSI", "MOST_PSI", "SAFETY", "Errors", "gram", "layers_of", "priced", "wanted_errors"]

Errors = Mapping[Any, float]

LEAST_PSI, MOST_PSI = 2.0**-30, 2.0**10
ERRORS = (2.0**-40, 2.0**80)
MOST_PATTERNS = 16
"""Columns up to which the products of all pairs of rows are computed: 2^16 numbers."""

SAFETY = 1.0 - 2.0**-40


def layers_of(measure: Aggregate) -> tuple[Layer, ...]:
    """What a row adds for one measure: a mean is a number of rows with a value and a sum about the middle."""
    if measure.kind == "count":
        return (Layer("rows"),)
    if measure.kind == "sum":
        return (Layer("amount", measure.column, measure.lower, measure.upper),)
    return Layer("present", measure.column), Layer("centred", measure.column, measure.lower, measure.upper)


def priced(
    marginals: Marginals,
    names: Sequence[str],
    measures: Sequence[Aggregate],
    *,
    psi: float | None,
    errors: Errors | None,
    balance: Balance,
    contribution: float,
    unit: Unit,
    adjacency: Adjacency,
) -> tuple[tuple[ResidualPlan, ...], float]:
    """The noise of every layer, in rows, and what all tables cost together."""
    plan = _plan(marginals, psi, errors, balance, names, measures)
    pure = all(layer.kind == "rows" for a in measures for layer in layers_of(a))
    times = Fraction(contribution) * Fraction(_times(plan, unit, adjacency, pure))
    counted = [layer.kind for a in measures for layer in layers_of(a)].index("rows") if errors is not None else 0
    return _shared(plan, _shares(measures), times, psi, counted)


def _plan(
    marginals: Marginals, psi: float | None, errors: Errors | None, balance: Balance, names: Sequence[str],
    measures: Sequence[Aggregate],
) -> ResidualPlan:  # fmt: skip
    """The noise of a count, in rows, if it had all of psi; or such that it has the wanted errors."""
    if errors is None:
        assert psi is not None
        return (least_worst if balance == "worst" else least_total)(marginals, psi)
    if not any(a.kind == "count" for a in measures):
        raise ValueError("errors (standard errors that are wanted) must be those of a count: ask for ask.count() too.")
    return least_psi(marginals, wanted_errors(marginals, errors, names))


def wanted_errors(marginals: Marginals, errors: Errors, names: Sequence[str]) -> dict[Table, float]:
    """The wanted error of every table: its own, or that of its number of columns."""
    if not isinstance(errors, Mapping):
        raise TypeError(
            'errors must map tables or numbers of columns to standard errors, such as {("ward",): 2, 2: 5}.'
        )
    known: dict[Any, float] = {}
    for key, error in errors.items():
        columns = (key,) if isinstance(key, str) else key
        if isinstance(columns, tuple):
            strange = [name for name in columns if name not in names]
            if strange:
                raise ValueError(f"errors must name columns of the cube, got {strange[0]!r}.")
            columns = tuple(sorted(names.index(name) for name in columns))
            if columns not in marginals.tables:
                raise ValueError(f"errors must name tables that are asked for, got {key!r}.")
        if not ERRORS[0] <= error <= ERRORS[1]:
            raise ValueError(f"errors (standard errors that are wanted) must be in [2^-40, 2^80], got {error}.")
        known[columns] = error
    found = {}
    for table in marginals.tables:
        if table not in known and len(table) not in known:
            asked = ", ".join(names[i] for i in table)
            raise ValueError(
                f"errors must say one for every table, got none for ({asked}) or for {len(table)} columns."
            )
        found[table] = known.get(table, known.get(len(table), 0.0))
    return found


def _shares(measures: Sequence[Aggregate]) -> list[Fraction]:
    """Parts of psi^2 that the layers get."""
    weights = [Fraction(float(a.weight)) / len(layers_of(a)) for a in measures for _ in layers_of(a)]
    return [weight / sum(weights) for weight in weights]


def _shared(
    plan: ResidualPlan, shares: Sequence[Fraction], times: Fraction, psi: float | None, counted: int
) -> tuple[tuple[ResidualPlan, ...], float]:
    """The plan of each layer and the price of all: the wanted psi, or what the wanted errors of the count cost.

    `times` is how much further than one row that joins a unit can move the image of all layers.
    """
    if psi is not None:
        raised = plan.scaled(float(times) / SAFETY)
        plans = tuple(raised.scaled(1.0 / (sqrt(share) * SAFETY)) for share in shares)
    else:
        first = float(shares[counted])
        plans = tuple(plan if i == counted else plan.scaled(sqrt(first / share)) for i, share in enumerate(shares))
    square = times**2 * sum((p.squared for p in plans), Fraction(0))
    if psi is None:
        cost = sqrt(square) * (1.0 + 2.0**-40)
        if not LEAST_PSI <= cost <= MOST_PSI:
            raise ValueError(f"errors must be within reach of psi in [2^-30, 2^10], got errors that need {cost:.3g}.")
    else:
        cost = float(psi)
    if not square <= Fraction(cost) ** 2:
        raise ArithmeticError(f"a cube must cost at most psi={cost}, and this plan costs {float(square) ** 0.5}.")
    return plans, cost


def _times(plan: ResidualPlan, unit: Unit, adjacency: Adjacency, pure: bool) -> float:
    """How much further than one row that joins a unit can move, for each row's worth that it may add.

    Replacing a unit: twice, in general. Replacing one row of a count: sqrt(2 (psi^2 - g))/psi, g the least product of
    two rows' images; or once, where the row replaced lies outside.
    """
    if adjacency == "add-remove":
        return 1.0
    if unit is not None or not pure or any(not isinstance(basis, Haar) for basis in plan.marginals.bases):
        return 2.0
    if not len(plan.marginals.bases) <= MOST_PATTERNS:
        return 2.0
    products = _products(plan)
    whole = float(products[-1])
    return min(2.0, max(1.0, sqrt(2.0 * max(0.0, 1.0 - float(products[:-1].min(initial=0.0)) / whole)) / SAFETY))


def _products(plan: ResidualPlan) -> NDArray[np.float64]:
    """Products of two rows' images by the columns in which the rows agree: 2^d numbers, all columns last."""
    marginals = plan.marginals
    d = len(marginals.bases)
    patterns = np.arange(2**d)
    agree = [((patterns >> i) & 1) - 1.0 / basis.size for i, basis in enumerate(marginals.bases)]
    found = np.zeros(2**d)
    for part, sigma in zip(marginals.residuals, plan.sigmas, strict=True):
        found += prod((agree[i] for i in part), start=np.ones(2**d)) / sigma**2
    return np.asarray(found)


def gram(plans: Sequence[ResidualPlan], layers: Sequence[Layer]) -> tuple[int, ...]:
    """2^24 times the product of two rows' images, where a row's own is 1, rounded up: for the image norm.

    Where a layer adds values, of either sign or missing, products that are negative for rows may be positive for
    values: their sizes count.
    """
    products = _products(plans[0]) / float(plans[0].squared)  # of all layers together the same up to a factor
    if any(layer.kind != "rows" for layer in layers):
        products = np.abs(products)
    raised = 2.0**24 * (products + 1e-9 * np.abs(products)) + 1e-3
    return tuple(int(value) for value in np.ceil(raised))
