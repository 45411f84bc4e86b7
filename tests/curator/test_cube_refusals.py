"""What a cube's queries refuse: by schema and parameters, before anything is read."""

from math import nan

import ibis
import pytest

from psidp.curator.cube_columns import CubeColumn
from psidp.curator.cube_sql import CubeTotals, ImageBound, Layer, RowBound
from reference.cube_tables import COLUMNS, LAYERS, TABLES

ORDERED = (CubeColumn("a", ("a",)), CubeColumn("b", (1, 2), ordered=True))
REFUSED = {
    "without an order, got 'b'": {"columns": ORDERED, "bound": ImageBound(1.0, (1,) * 4), "tables": ((0,),)},
    "1 to 10 columns, got 11": {
        "columns": tuple(CubeColumn(f"i{i}", (1,)) for i in range(11)),
        "bound": ImageBound(1.0, (1,) * 2048),
        "tables": ((0,),),
    },
    "16 entries": {"bound": ImageBound(1.0, (1,) * 15)},
    "different columns, got a, a": {"columns": (COLUMNS[0], COLUMNS[0])},
    "ascending numbers": {"tables": ((1, 0),)},
    "none of them twice": {"tables": ((0,), (0,))},
    "one layer or more": {"layers": ()},
    "where a column names its units": {"bound": None},
    "columns of the table, got 'zz'": {"columns": (CubeColumn("zz", (1,)),), "tables": ((0,),)},
    "measure must be a column": {"layers": (Layer("present", "zz"),)},
    "at most 50,000,000 cells": {
        "columns": tuple(CubeColumn(f"i{i}", tuple(range(1000))) for i in range(3)),
        "tables": ((0, 1, 2),),
    },
    "must be different from each other": {"columns": (CubeColumn("b", (1, 1)),), "tables": ((0,),)},
}


@pytest.mark.parametrize("sentence", list(REFUSED))
def test_a_cube_that_cannot_be_is_refused_by_schema_and_parameters(sentence):
    columns = {"u": "int64", "a": "string", "b": "int64", "c": "boolean", "v": "float64", "n": "int64"}
    table = ibis.table(columns | {f"i{i}": "int64" for i in range(11)}, name="t")
    asked = {"columns": COLUMNS, "tables": TABLES, "layers": LAYERS, "bound": RowBound(1.0)} | REFUSED[sentence]
    with pytest.raises(ValueError, match=sentence):
        CubeTotals(table, "u", **asked)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: RowBound(nan), "contribution"),
        (lambda: RowBound(0.5), "contribution"),
        (lambda: ImageBound(2.0**21, (1,)), "contribution"),
        (lambda: ImageBound(1.0, (1,), 0), "block"),
        (lambda: ImageBound(1.0, (2**31,)), "gram"),
        (lambda: ImageBound(1.0, (0.5,)), "gram"),
        (lambda: CubeColumn("a"), "keys or edges"),
        (lambda: CubeColumn("a", (1,), (1.0, 2.0)), "keys or edges"),
        (lambda: CubeColumn("a", edges=(1.0, nan)), "increasing order"),
        (lambda: CubeColumn("a", edges=(2.0, 1.0)), "increasing order"),
        (lambda: CubeColumn("a", edges=(1.0,)), "increasing order"),
        (lambda: Layer("amount", "v", 1.0, nan), "bounds"),
        (lambda: Layer("centred", "v", 1.0, float("inf")), "bounds"),
        (lambda: Layer("rows", "v"), "name a column"),
        (lambda: Layer("present"), "name a column"),
    ],
)
def test_nonsense_is_refused_at_birth(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


@pytest.mark.parametrize(("column", "keys", "edges"), [("v", (1,), ()), ("a", (1,), ()), ("a", (), (0.0, 1.0))])
def test_a_column_of_the_wrong_type_is_refused(column, keys, edges):
    table = ibis.table({"u": "int64", "a": "string", "v": "float64"}, name="t")
    with pytest.raises(TypeError, match=column):
        CubeTotals(table, "u", (CubeColumn(column, keys, edges),), ((0,),), (Layer("rows"),), RowBound(1.0))
