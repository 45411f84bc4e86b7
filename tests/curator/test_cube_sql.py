"""A cube's totals: the integers of plain Python on every engine, and no unit moves its image beyond the bound."""

import datetime
import random
from decimal import Decimal
from fractions import Fraction

import ibis
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from psidp.curator.cube_columns import CubeColumn
from psidp.curator.cube_sql import CubeTotals, ImageBound, Layer, RowBound
from psidp.curator.engine import Engine, open_source
from psidp.errors import EngineError
from reference.cube_tables import COLUMNS, DAYS, LAYERS, SCHEMA, TABLES, WIDER, random_row, random_rows
from reference.cube_totals import (
    at_psi_one,
    cube_totals,
    gram_of,
    image_square,
    image_weight,
    in_key_order,
    random_sigmas,
    row_weight,
)


def gram(columns, seed=1):
    sizes = [column.size for column in columns]
    return gram_of(sizes, random_sigmas(random.Random(seed), len(sizes)))


def bounds(columns):
    """What is tried: rows that are units, and units under each bound."""
    whole = at_psi_one(gram(columns))
    return (None, RowBound(1.0), RowBound(2.7), ImageBound(1.0, whole, block=4), ImageBound(1.9, whole))


def weigher(bound, columns):
    if isinstance(bound, RowBound):
        return lambda codes: row_weight(len(codes), bound.contribution)
    sizes = [column.size for column in columns]
    return lambda codes: image_weight(in_key_order(codes, sizes), bound.contribution, bound.gram, bound.block)


def expected(rows, cube):
    plain = [(c.name, c.keys, c.edges) for c in cube.columns]
    layers = [(x.kind, x.column, x.lower, x.upper) for x in cube.layers]
    weigh = None if cube.bound is None else weigher(cube.bound, cube.columns)
    return cube_totals(rows, cube.unit, plain, cube.tables, layers, weigh)


def cube_of(table, columns, bound, tables=TABLES, layers=LAYERS):
    return CubeTotals(table, None if bound is None else "u", columns, tables, layers, bound)


def check(table, rows, cube):
    """Engine and plain Python have the same totals; gives them back."""
    found = cube.exact(Engine(table))
    for numbers, arrays, right in zip(cube.tables, found, expected(rows, cube), strict=True):
        for layer, array, cells in zip(cube.layers, arrays, right, strict=True):
            assert array.shape == tuple(cube.columns[i].size for i in numbers)
            there = {place: int(x) for place, x in np.ndenumerate(array) if x}
            assert there == {place: x for place, x in cells.items() if x}, (numbers, layer)
            assert array.dtype == np.int64
    return found


@pytest.fixture(scope="module")
def duck():
    connection = ibis.duckdb.connect(threads=1)
    yield connection
    connection.disconnect()


def in_duckdb(duck, rows, schema=SCHEMA):
    duck.con.register("rows_now", pa.Table.from_pylist(rows, schema))
    return duck.table("rows_now")


@settings(max_examples=12)
@given(seed=st.integers(0, 2**32), which=st.sampled_from([COLUMNS, WIDER]), number=st.integers(0, 4))
def test_duckdb_gives_the_integers_of_plain_python(duck, seed, which, number):
    rows = random_rows(random.Random(seed))
    check(in_duckdb(duck, rows), rows, cube_of(duck.table("rows_now"), which, bounds(which)[number]))


@pytest.fixture(scope="module")
def nasty():
    """Every unit has other habits: few rows or many, in few cells or many."""
    dice, rows = random.Random(17), []
    for unit in range(12):
        likely = [random_row(dice, 1) | {"a": "a", "c": False, "b": dice.choice([3, 7])} for _ in range(8)]
        rows += [
            (dice.choice(likely) if dice.random() < 0.9 else random_row(dice, 1)) | {"u": unit}
            for _ in range(dice.choice([1, 2, 9, 70, 130]))
        ]
    return rows + [row | {"u": None} for row in rows[:20]]


def in_postgres(connection, rows):
    kinds = "u bigint, a text, b bigint, c boolean, d date, e numeric(9, 2), v double precision, n bigint"
    with connection.con.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS nasty")
        cursor.execute(f"CREATE TABLE nasty ({kinds})")
        places = ", ".join(["%s"] * len(SCHEMA))
        cursor.executemany(
            f"INSERT INTO nasty VALUES ({places})", [tuple(row[n] for n in SCHEMA.names) for row in rows]
        )
    connection.con.commit()
    return connection.table("nasty")


def in_spark(connection, rows):
    kinds = "u bigint, a string, b bigint, c boolean, d date, e decimal(9, 2), v double, n bigint"
    frame = connection._session.createDataFrame([tuple(row[n] for n in SCHEMA.names) for row in rows], kinds)
    frame.createOrReplaceTempView("nasty")
    return connection.table("nasty")


def left_behind(connection):
    """Temporary tables and cached frames."""
    if connection.name == "duckdb":
        return connection.con.execute("SELECT table_name FROM duckdb_tables() WHERE temporary").fetchall()
    if connection.name == "postgres":
        with connection.con.cursor() as cursor:
            cursor.execute("SELECT relname FROM pg_class WHERE relnamespace = pg_my_temp_schema() AND relkind = 'r'")
            return cursor.fetchall()
    session = connection._session
    cached = session.sparkContext._jsc.getPersistentRDDs().size()
    return [t.name for t in session.catalog.listTables() if "psidp" in t.name] + ["a frame"] * cached


@pytest.fixture(scope="module", params=["duckdb", "postgres", "spark"])
def place(request, nasty):
    if request.param == "duckdb":
        connection = ibis.duckdb.connect(threads=1)
        connection.con.register("nasty", pa.Table.from_pylist(nasty, SCHEMA))
        return connection.table("nasty")
    connection = request.getfixturevalue(request.param)
    return {"postgres": in_postgres, "spark": in_spark}[request.param](connection, nasty)


@pytest.mark.parametrize("number", range(5), ids=["rows", "one", "some", "image in blocks", "image"])
def test_every_engine_gives_the_same_integers(place, nasty, number):
    """Both sets of columns; on Spark, which is slow to start a query, they take turns."""
    both = (COLUMNS, WIDER)
    for columns in both if place.get_backend().name != "pyspark" else both[number % 2 :][:1]:
        found = check(place, nasty, cube_of(place, columns, bounds(columns)[number], tables=((), (1, 3), (0, 1, 2, 3))))
        assert np.count_nonzero(found[-1][0]) >= 4
    assert left_behind(place.get_backend()) == []


def test_numbers_beyond_doubles_are_no_error_as_keys_bins_and_amounts(postgres):
    values = ["1e400", "-1e400", "1e-400", "NaN", "7.50", "-0.25", "3", None]
    with postgres.con.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS huge")
        cursor.execute("CREATE TABLE huge (u bigint, k numeric, t varchar(9))")
        cursor.executemany("INSERT INTO huge VALUES (%s, %s, 'a')", list(enumerate(values)))
    postgres.con.commit()
    table = postgres.table("huge")
    layers = (Layer("rows"), Layer("present", "k"), Layer("amount", "k", -4.0, 8.0), Layer("centred", "k", 0.0, 1e200))
    rows = [{"u": u, "k": None if v is None else Decimal(v), "t": "a"} for u, v in enumerate(values)]
    text = CubeColumn("t", ("b", "a"))
    keys = (CubeColumn("k", (Decimal("7.5"), 3, None, Decimal("-0.25"))), text)
    check(table, rows, CubeTotals(table, "u", keys, ((0, 1),), layers, RowBound(1.0)))
    found = check(
        table,
        rows,
        CubeTotals(table, "u", (CubeColumn("k", edges=(-1.0, 0.0, 5.0)), text), ((0,),), layers, RowBound(1.0)),
    )
    assert found[0][0].tolist() == [2 * 2**20, 4 * 2**20]


def test_a_failure_leaves_nothing_behind_and_says_nothing(place, monkeypatch):
    """The second query fails: the first temporary tables are gone, and so are the engine's words."""
    cube = cube_of(place, COLUMNS, bounds(COLUMNS)[3])
    engine = Engine(place)
    monkeypatch.setattr(CubeTotals, "_summed", lambda self, engine, stage, table: place.select(q=ibis.literal(None)))
    monkeypatch.setattr(engine, "_integers", lambda expression: engine.backend.raw_sql("SELECT secret FROM nowhere"))
    with pytest.raises(EngineError) as caught:
        cube.exact(engine)
    assert "secret" not in str(caught.value)
    assert left_behind(place.get_backend()) == []


def test_a_failure_to_store_leaves_nothing_behind(place, monkeypatch):
    cube = cube_of(place, COLUMNS, bounds(COLUMNS)[3])
    stages = cube._stages("_here", Engine(place))
    broken = ibis.table({"k0": "int32"}, name="psidp_nowhere")
    monkeypatch.setattr(CubeTotals, "_stages", lambda self, end, engine: [stages[0], ("psidp_cube_here", broken)])
    with pytest.raises(EngineError):
        cube.exact(Engine(place))
    assert left_behind(place.get_backend()) == []


def test_a_file_that_is_only_read_is_left_as_it_was(tmp_path, nasty):
    path = tmp_path / "clinic.duckdb"
    connection = ibis.duckdb.connect(path)
    connection.con.register("given", pa.Table.from_pylist(nasty, SCHEMA))
    connection.con.execute("CREATE TABLE nasty AS FROM given")
    connection.disconnect()
    before = path.read_bytes()
    table = open_source(path, name="nasty").table
    check(table, nasty, cube_of(table, COLUMNS, bounds(COLUMNS)[4]))
    assert left_behind(table.get_backend()) == []
    Engine(table).dispose()
    assert path.read_bytes() == before


def without(rows, unit):
    return [row for row in rows if row["u"] != unit]


@pytest.mark.parametrize("contribution", [1.0, 2.7, 40.0])
def test_no_unit_moves_the_totals_by_more_rows_than_the_bound(duck, nasty, contribution):
    """Every unit of the table taken out; whole numbers, no tolerance, every layer."""
    full = tuple(range(len(COLUMNS)))
    largest = Fraction(0)

    def exact(rows):
        return cube_of(in_duckdb(duck, rows), COLUMNS, RowBound(contribution), (full,)).exact(
            Engine(duck.table("rows_now"))
        )

    (here,) = exact(nasty)
    for unit in range(12):
        (there,) = exact(without(nasty, unit))
        for layer, one, other in zip(LAYERS, here, there, strict=True):
            moved = Fraction(int(np.abs(one - other).sum()), 2**20 * layer.steps)
            assert moved <= Fraction(contribution), (unit, layer)
            largest = max(largest, moved)
    assert largest > Fraction(contribution) * Fraction(999, 1000)


@pytest.mark.parametrize(("contribution", "block"), [(1.0, 64), (2.7, 64), (2.7, 5)])
def test_no_unit_moves_the_image_by_more_than_the_bound(duck, nasty, contribution, block):
    """u^T G u <= C^2 2^40 psi^2 in fractions, for every unit of the table."""
    exact_gram, full = gram(COLUMNS), tuple(range(len(COLUMNS)))
    psi_squared, largest = exact_gram[-1], 0.0
    bound = ImageBound(contribution, at_psi_one(exact_gram), block)

    def exact(rows):
        cube = cube_of(in_duckdb(duck, rows), COLUMNS, bound, (full,), (Layer("rows"),))
        return cube.exact(Engine(duck.table("rows_now")))[0][0]

    here = exact(nasty)
    for unit in range(12):
        moved = image_square(here - exact(without(nasty, unit)), exact_gram)
        most = Fraction(contribution) ** 2 * 2**40 * psi_squared
        assert 0 <= moved <= most, unit
        largest = max(largest, moved / most)
    assert largest > 0.99


def test_a_gram_that_is_too_small_would_be_seen(duck, nasty):
    """The test above can fail: with a gram of half the size some unit moves the image too far."""
    exact_gram, full = gram(COLUMNS), tuple(range(len(COLUMNS)))
    bound = ImageBound(1.0, tuple(g // 2 for g in at_psi_one(exact_gram)))
    cube = cube_of(in_duckdb(duck, nasty), COLUMNS, bound, (full,), (Layer("rows"),))
    here = cube.exact(Engine(duck.table("rows_now")))[0][0]
    cube = cube_of(in_duckdb(duck, without(nasty, 0)), COLUMNS, bound, (full,), (Layer("rows"),))
    moved = image_square(here - cube.exact(Engine(duck.table("rows_now")))[0][0], exact_gram)
    assert moved > 2**40 * exact_gram[-1]


@pytest.mark.parametrize("block", [1, 7, 64, 4096])
def test_a_unit_of_thousands_of_rows_is_weighed_in_blocks(duck, block):
    dice = random.Random(3)
    rows = [random_row(dice, 1) | {"u": 1, "b": dice.choice([3, 4, 5])} for _ in range(3000)]
    bound = ImageBound(3.0, at_psi_one(gram(WIDER)), block)
    table = in_duckdb(duck, rows)
    found = check(
        table, rows, cube_of(table, WIDER, bound, ((0, 1),), (Layer("rows"), Layer("amount", "v", -1.0, 5.0)))
    )
    assert found[0][0].sum() > 0


def test_keys_that_fill_two_words_are_told_apart(duck):
    """Seven columns of 2^9 keys have 63 bits."""
    dice, names = random.Random(5), "pqrstxy"
    columns = tuple(CubeColumn(name, tuple(range(512))) for name in names)
    schema = pa.schema([("u", pa.int64()), *((name, pa.int64()) for name in names)])
    pool = [0, 1, 256, 511, 512, 1, 0]
    rows = [{"u": dice.randrange(6)} | {name: dice.choice(pool) for name in names} for _ in range(300)]
    table = in_duckdb(duck, rows, schema)
    tables = ((), (0,), (3,), (6,))
    check(table, rows, cube_of(table, columns, ImageBound(1.3, at_psi_one(gram(columns)), 16), tables, LAYERS[:1]))


@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize(
    "rows", [[], [random_row(random.Random(1), 1) | {"c": None, "u": 1}] * 3], ids=["none", "outside"]
)
def test_a_table_without_rows_that_count_has_zeros(duck, rows, number):
    found = check(in_duckdb(duck, rows), rows, cube_of(duck.table("rows_now"), COLUMNS, bounds(COLUMNS)[number]))
    assert not any(array.any() for arrays in found for array in arrays)


def test_rows_outside_the_keys_take_nothing_from_a_unit(duck):
    """A unit's weight comes from the rows that count, in every column, also in those that a table does not show."""
    row = random_row(random.Random(2), 1) | {"u": 1, "a": "a", "b": 7, "c": True, "v": 1.0}
    rows = [row, row] + [row | {"b": 8}] * 5 + [row | {"v": None}] * 5 + [row | {"u": None}] * 5
    cube = cube_of(in_duckdb(duck, rows), COLUMNS, RowBound(2.0), ((0,),), (Layer("rows"),))
    assert cube.exact(Engine(duck.table("rows_now")))[0][0].tolist() == [0, 2 * cube.scale, 0, 0]


def test_totals_beyond_64_bits_are_whole_numbers_of_python(duck):
    """2^22 rows at 2^41 each."""
    duck.con.execute("CREATE OR REPLACE TABLE many AS SELECT i AS u, 1 AS k, 1e9::DOUBLE AS v FROM range(4194304) t(i)")
    layers = (Layer("rows"), Layer("amount", "v", 0.0, 2.0**21 - 1.0))
    cube = CubeTotals(duck.table("many"), "u", (CubeColumn("k", (1,)),), ((0,),), layers, RowBound(1.0))
    count, amount = cube.exact(Engine(duck.table("many")))[0]
    duck.con.execute("DROP TABLE many")
    assert count.dtype == np.int64
    assert count.tolist() == [2**42]
    assert amount.dtype == object
    assert amount.tolist() == [2**42 * layers[1].steps]


@pytest.mark.parametrize(
    "kind", ["TINYINT", "UTINYINT", "UBIGINT", "HUGEINT", "DECIMAL(38, 0)", "DECIMAL(3, 0)", "DATE", "TIMESTAMPTZ"]
)
def test_a_value_that_no_key_has_is_no_error_in_any_type(duck, kind):
    """Ends of the type's range beside the keys; sums and bins of them as well where they are numbers."""
    keys, ends = ((-100, 5, 100), ("-128", "127"))
    keys, ends = {
        "UTINYINT": ((0, 5, 250), ("1", "255")),
        "UBIGINT": ((0, 2**64 - 2, 7), ("18446744073709551615", "1")),
        "HUGEINT": ((0, 5), ("-170141183460469231731687303715884105728", "170141183460469231731687303715884105727")),
        "DECIMAL(38, 0)": ((0, 5), ("9" * 38, "-" + "9" * 38)),
        "DECIMAL(3, 0)": ((0, 5), ("999", "-999")),
        "DATE": (DAYS, ("infinity", "-infinity")),
        "TIMESTAMPTZ": (tuple(datetime.datetime(d.year, d.month, d.day) for d in DAYS), ("infinity", "-infinity")),
    }.get(kind, (keys, ends))
    values = [
        *(f"'{key}{'+00' if kind == 'TIMESTAMPTZ' else ''}'" for key in keys),
        *(f"'{end}'" for end in ends),
        "NULL",
    ]
    lines = ", ".join(f"({i}, CAST({value} AS {kind}))" for i, value in enumerate(values))
    duck.con.execute(f"CREATE OR REPLACE TABLE typed AS SELECT * FROM (VALUES {lines}) t(u, k)")
    table = duck.table("typed")
    cube = CubeTotals(table, "u", (CubeColumn("k", keys),), ((0,),), (Layer("rows"),), RowBound(1.0))
    assert cube.exact(Engine(table))[0][0].tolist() == [2**20] * len(keys)
    if table.k.type().is_numeric():
        bins = (CubeColumn("k", edges=(-2.0, 3.0, 50.0)),)
        cube = CubeTotals(table, "u", bins, ((0,),), (Layer("rows"), Layer("amount", "k", -3.0, 9.0)), RowBound(1.0))
        rows = [{"u": i, "k": None if v == "NULL" else int(v.strip("'"))} for i, v in enumerate(values)]
        check(table, rows, cube)


def test_the_texts_are_those_that_run_and_read_no_row(duck):
    """Each is a query of this engine; the temporary tables have a fixed name in them."""
    cube = cube_of(in_duckdb(duck, []), COLUMNS, bounds(COLUMNS)[3])
    texts = cube.sql(Engine(duck.table("rows_now")))
    assert len(texts) == 2 + len(TABLES)
    for text in texts:
        duck.con.execute(text)
    assert len(left_behind(duck)) == 2
    for (name,) in left_behind(duck):
        duck.con.execute(f"DROP TABLE temp.{name}")


def test_layers_say_what_a_step_is():
    assert Layer("rows").steps == Layer("present", "v").steps == 1
    assert Layer("centred", "v", -60.0, 180.0).steps == 2**20
    assert Layer("centred", "v", -60.0, 180.0).step == 120.0 / 2**20
    for upper in (1.0, 1.5, 100.0, 2.0**-800, 1e200):
        layer = Layer("amount", "v", -upper / 2, upper)
        assert 2**20 <= layer.steps < 2**21
        assert (
            Fraction(layer.steps) * Fraction(layer.step) <= Fraction(upper) < (layer.steps + 1) * Fraction(layer.step)
        )
