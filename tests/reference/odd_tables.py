"""Tables on which engines and plain Python have to agree, and what is asked of them."""

from itertools import product
from math import nan

import numpy as np
import pyarrow as pa

from psidp import ask
from psidp.mechanism.clipping import IntegerGrid
from psidp.tables.axes import Keys
from psidp.tables.totals import Totals
from psidp.tables.unit_bounds import NormBound, RowBound

SCHEMA = pa.schema([("u", pa.int64()), ("g", pa.string()), ("h", pa.int64()), ("v", pa.float64()), ("n", pa.int64())])
EDGES = (-50.0, -1.0, 0.0, 0.1, 7.0, 100.0)
SIZES = (*(-(2.0**k) for k in range(300, -300, -25)), 0.0, *(2.0**k for k in range(-300, 300, 25)))
ASKS = [
    ask.count(),
    ask.units(),
    ask.sum("v", -10.0, 100.0),
    ask.sum("v", 0.0, 0.1),
    ask.sum("v", -1e200, 1e-3),
    ask.sum("v", -3e-200, 1e-201),
    ask.sum("n", -4.0, 1e6),
    ask.mean("v", -7.5, 30.0),
    ask.variance("v", 0.0, 1e100),
    ask.mean("n", 0.0, 3.0),
    ask.deviation("v", -1e-100, 1e-100),
    ask.histogram("v", EDGES),
    ask.histogram("n", EDGES),
    ask.histogram("v", SIZES),
    ask.weighted_sum("v", -10.0, 100.0, weights="n", most=3.0),
    ask.weighted_sum("n", 0.5, 4.0, weights="v", most=0.1),
    ask.ratio(ask.sum("v", -7.5, 30.0), ask.sum("n", 0.0, 3.0)),
    ask.ratio(ask.weighted_sum("v", 1.0, 9.0, weights="n", most=5.0), ask.count()),
]
VALUES = {"g": ("a", "b", "c", None), "h": tuple(range(9))}


def grid_of(asked, contribution, groups=20):
    """The steps of a question at a contribution."""
    vector = asked.measure.vector
    return IntegerGrid.fitting(contribution * vector.reach, groups * vector.parts * vector.bins)


def totals_of(unit, by, pairs, values=VALUES, measured=()):
    """The query for questions, each on its grid, by columns of these values."""
    keys = tuple(product(*(values[name] for name in by)))
    axes = (Keys(tuple(by), keys),) if by else ()
    bounds = tuple(RowBound(grid) if isinstance(grid, float) else NormBound(grid) for _, grid in pairs)
    units = () if unit is None else (unit,) if isinstance(unit, str) else tuple(unit)
    vectors = tuple(asked.measure.vector for asked, _ in pairs)
    return Totals(units, axes, (tuple(range(len(axes))),), vectors, bounds, measured=tuple(measured))


def engine_totals(source, unit, by, pairs, values=VALUES):
    """For each question {group: [totals]}, as the engine of a source gives them; groups without any are left out."""
    query = totals_of(unit, by, pairs, values)
    exact, found = query.exact(source, source.dialect), {}
    keys = query.axes[0].keys if by else ((),)
    for (asked, _), cells in zip(pairs, exact.cells, strict=True):
        (array,), vector = cells.values(), asked.measure.vector
        array = array.reshape(len(keys), vector.bins, vector.parts)
        places = np.argwhere((array != 0).any(axis=2)).tolist()
        binned = bool(vector.edges)
        found[asked] = {(*keys[i], *([j] if binned else [])): list(map(int, array[i, j])) for i, j in places}
    return found


def without_zeros(result):
    return {group: total for group, total in result.items() if any(total)}


def random_table(dice):
    """A small table whose units may be in every group, own everything or hold nothing but oddities."""
    odd = [None, nan, float("inf"), -1e308, 5e-324, 1e308]
    units, spread = dice.randint(1, 5), dice.choice([1, 2, 8])
    return [
        {
            "u": dice.choice([*range(units), None]),
            "g": dice.choice(["a", "b", "c", None][: 1 + spread % 4]),
            "h": dice.randint(0, spread),
            "v": dice.choice(odd) if dice.random() < 0.2 else dice.gauss(20, 60),
            "n": dice.randint(-(10 ** dice.randint(1, 18)), 10 ** dice.randint(1, 18)),
        }
        for _ in range(dice.choice([0, 1, 5, 40]))
    ]


def own(unit, table):
    """The unit's name in a batch of tables."""
    return None if unit is None else unit + 10 * table
