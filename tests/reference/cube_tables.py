"""Tables and cubes on which engines and plain Python have to agree: odd values, odd keys, every kind of layer."""

import datetime
from decimal import Decimal
from math import nan

import pyarrow as pa

from psidp.tables.strategies.residual import Column
from psidp.tables.vector import Amount, Centred, Present, Rows, Vector

SCHEMA = pa.schema(
    [
        ("u", pa.int64()),
        ("a", pa.string()),
        ("b", pa.int64()),
        ("c", pa.bool_()),
        ("d", pa.date32()),
        ("e", pa.decimal128(9, 2)),
        ("v", pa.float64()),
        ("n", pa.int64()),
    ]
)
DAYS = tuple(datetime.date(2026, 1, 31) + datetime.timedelta(days=i) for i in (0, 3, 1))
ODD = [None, nan, float("inf"), float("-inf"), -0.0, 5e-324, -5e-324, 1e308, -1e308, 2.0**-1022, 7.0, -7.5, 100.0]
COLUMNS = (
    Column("a", ("it's", "a", None, "\\é ")),
    Column("b", (-4, 2**62, 7)),
    Column("c", (True, False)),
    Column("v", edges=(-7.5, 0.0, 7.0)),
)
WIDER = (
    Column("b", (3, 4, 5, None)),
    Column("d", DAYS),
    Column("e", (Decimal("-1.50"), Decimal("7"), Decimal("0.01"))),
    Column("c", (None, False)),
    Column("a", ("a",)),
)
VECTORS = (
    Vector((Rows(),)),
    Vector((Present("v"), Centred("v", -7.5, 30.0))),
    Vector((Amount("v", -10.0, 100.0),)),
    Vector((Amount("v", -3e-200, 1e-201),)),
    Vector((Present("a"), Centred("v", -1e-100, 1e100))),
    Vector((Amount("n", -4.0, 1e6),)),
    Vector((Present("n"), Centred("n", 0.0, 3.0))),
    Vector((Amount("c", 0.0, 1.0),)),
)
NAMES = {Rows: "rows", Present: "present", Centred: "centred", Amount: "amount"}
TABLES = ((), (0,), (1, 3), (0, 1, 2), (0, 1, 2, 3))


def random_row(dice, units):
    return {
        "u": dice.choice([*range(units), None]),
        "a": dice.choice(["a", "a", "it's", "A", "\\é ", "", None]),
        "b": dice.choice([-4, 3, 4, 5, 7, 2**62, -(2**63), None]),
        "c": dice.choice([True, False, None]),
        "d": dice.choice([*DAYS, datetime.date(1999, 12, 31), None]),
        "e": dice.choice([Decimal("-1.50"), Decimal("7.00"), Decimal("0.01"), Decimal("0.02"), None]),
        "v": dice.choice(ODD) if dice.random() < 0.4 else dice.gauss(3, 20),
        "n": dice.choice([None, 0, 1, 2, 3, -(2**63), 2**63 - 1, 10 ** dice.randint(0, 18)]),
    }


def random_rows(dice, most=60):
    units = dice.choice([1, 2, 5])
    return [random_row(dice, units) for _ in range(dice.randint(0, most))]


def layers_of(vectors):
    """What a row adds, number by number, as the plain totals take it: (kind, column, lower, upper)."""
    return [
        (NAMES[type(c)], getattr(c, "column", None), getattr(c, "lower", 0.0), getattr(c, "upper", 0.0))
        for vector in vectors
        for c in vector.coordinates
    ]
