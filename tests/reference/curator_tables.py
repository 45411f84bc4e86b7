"""Tables on which engines and plain Python have to agree, and what is asked of them."""

from math import nan

import pyarrow as pa

from psidp.curator import ask
from psidp.curator.bounds import SIZE_EDGES
from psidp.curator.contribution_sql import Totals
from psidp.curator.engine import Engine
from psidp.mechanism.clipping import IntegerGrid

SCHEMA = pa.schema([("u", pa.int64()), ("g", pa.string()), ("h", pa.int64()), ("v", pa.float64()), ("n", pa.int64())])
EDGES = (-50.0, -1.0, 0.0, 0.1, 7.0, 100.0)
AGGREGATES = [
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
    ask.histogram("v", SIZE_EDGES),
    ask.weighted_sum("v", -10.0, 100.0, weights="n", most=3.0),
    ask.weighted_sum("n", 0.5, 4.0, weights="v", most=0.1),
    ask.ratio(ask.sum("v", -7.5, 30.0), ask.sum("n", 0.0, 3.0)),
    ask.ratio(ask.weighted_sum("v", 1.0, 9.0, weights="n", most=5.0), ask.count()),
]


def lattice(aggregate, contribution, groups=20):
    return IntegerGrid.fitting(contribution * aggregate.reach, groups * aggregate.parts * aggregate.bins)


KNOWN = {}


def compiled(table, unit, by, parts):
    """The query and its SQL, which DuckDB can run again when the rows behind the name have changed."""
    asked = (table.get_name(), unit, by, parts)
    if asked not in KNOWN:
        made = Totals(table, unit, by, parts)
        KNOWN[asked] = made, Engine(table).sql(made.expression())
    return KNOWN[asked]


def answered(table, unit, by, parts):
    """The query and its rows."""
    engine = Engine(table)
    if engine.name == "duckdb":
        made, sql = compiled(table, unit, by, parts)
        return made, engine.backend.con.execute(sql).fetchall()
    made = Totals(table, unit, by, parts, engine.narrow)
    return made, engine.rows(made.expression())


def engine_totals(table, unit, by, parts):
    """For each aggregate {group: [totals]}, as the engine gives them; those without bins in one query."""
    plain = [part for part in parts if not part[0].edges]
    found = {}
    for together in [plain, *([part] for part in parts if part[0].edges)]:
        if not together:
            continue
        made, rows = answered(table, unit, by, tuple(together))
        names = [*made.groups, *(f"c{i}" for i in range(sum(map(len, made.coordinates))))]
        rows = [dict(zip(names, row, strict=True)) for row in rows]
        start = 0
        for (aggregate, _), steps in zip(together, made.coordinates, strict=True):
            found[aggregate] = {}
            for row in rows:
                total = [int(row[f"c{start + i}"] or 0) for i in range(len(steps))]
                total = total if unit else [c.in_steps(x) for c, x in zip(steps, total, strict=True)]
                if any(total):
                    found[aggregate][tuple(row[name] for name in made.groups)] = total
            start += len(steps)
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
