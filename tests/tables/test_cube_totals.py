"""A cube's totals: the integers of plain Python on every engine, and no unit moves its image beyond the bound."""

import datetime
import random
from decimal import Decimal
from fractions import Fraction

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from psidp.errors import EngineError
from psidp.tables.sources import open_source
from psidp.tables.strategies.image import ImageBound
from psidp.tables.strategies.residual import Column
from psidp.tables.totals import Totals
from psidp.tables.unit_bounds import RowBound
from psidp.tables.vector import Amount, Centred, Present, Rows, Vector
from reference.cube_tables import COLUMNS, DAYS, SCHEMA, TABLES, VECTORS, WIDER, layers_of, random_row, random_rows
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

FULL = 2**20
COUNT = (Vector((Rows(),)),)


def gram(columns, seed=1):
    sizes = [column.size for column in columns]
    return gram_of(sizes, random_sigmas(random.Random(seed), len(sizes)))


def bounds(columns):
    """What is tried: rows that are units, and units under each bound."""
    whole = at_psi_one(gram(columns))
    return (None, RowBound(1.0), RowBound(2.7), ImageBound(1.0, whole, bits=2), ImageBound(1.9, whole))


def weigher(bound, columns):
    if bound is None or not isinstance(bound, ImageBound):
        return lambda codes: row_weight(len(codes), bound.contribution)
    sizes = [column.size for column in columns]
    return lambda codes: image_weight(in_key_order(codes, sizes), bound.contribution, bound.gram, 1 << bound.bits)


def totals_of(columns, bound, tables=TABLES, vectors=VECTORS):
    unit = () if bound is None else ("u",)
    axes = tuple(column.axis for column in columns)
    return Totals(unit, axes, tables, vectors, (bound or RowBound(1.0),) * len(vectors))


def exact(source, columns, bound, tables=TABLES, vectors=VECTORS):
    """For each table the totals of each number that a row adds."""
    cells = totals_of(columns, bound, tables, vectors).exact(source, source.dialect).cells
    return [
        [cells[j][table][..., 0, i] for j, vector in enumerate(vectors) for i in range(vector.parts)]
        for table in tables
    ]


def check(source, rows, columns, bound, tables=TABLES, vectors=VECTORS):
    """Engine and plain Python have the same totals; gives them back."""
    plain = [(c.name, c.keys, c.edges) for c in columns]
    weigh = None if bound is None else weigher(bound, columns)
    right = cube_totals(rows, None if bound is None else "u", plain, tables, layers_of(vectors), weigh)
    found = exact(source, columns, bound, tables, vectors)
    for numbers, arrays, expected in zip(tables, found, right, strict=True):
        for layer, array, cells in zip(layers_of(vectors), arrays, expected, strict=True):
            assert array.shape == tuple(columns[i].size for i in numbers)
            there = {place: int(x) for place, x in np.ndenumerate(array) if x}
            assert there == {place: x for place, x in cells.items() if x}, (numbers, layer)
            assert array.dtype == np.int64
    return found


def in_duckdb(rows, schema=SCHEMA):
    return open_source(pa.Table.from_pylist(rows, schema))


@settings(max_examples=12)
@given(seed=st.integers(0, 2**32), which=st.sampled_from([COLUMNS, WIDER]), number=st.integers(0, 4))
def test_duckdb_gives_the_integers_of_plain_python(seed, which, number):
    rows = random_rows(random.Random(seed))
    check(in_duckdb(rows), rows, which, bounds(which)[number])


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
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS nasty")
        cursor.execute(f"CREATE TABLE nasty ({kinds})")
        places = ", ".join(["%s"] * len(SCHEMA))
        cursor.executemany(
            f"INSERT INTO nasty VALUES ({places})", [tuple(row[n] for n in SCHEMA.names) for row in rows]
        )
    return open_source(connection, name="nasty")


def in_spark(session, rows):
    kinds = "u bigint, a string, b bigint, c boolean, d date, e decimal(9, 2), v double, n bigint"
    frame = session.createDataFrame([tuple(row[n] for n in SCHEMA.names) for row in rows], kinds)
    frame.createOrReplaceTempView("nasty")
    return open_source(session, name="nasty")


@pytest.fixture(scope="module", params=["duckdb", "postgres", "spark"])
def place(request, nasty):
    """The rows in an engine, and a user's connection to it."""
    if request.param == "duckdb":
        connection = duckdb.connect()
        connection.register("given", pa.Table.from_pylist(nasty, SCHEMA))
        connection.execute("CREATE TABLE nasty AS FROM given")
        return open_source(connection, name="nasty"), connection
    connection = request.getfixturevalue(request.param)
    if request.param == "spark":
        connection.catalog.clearCache()  # frames that tests of other files keep in this session
    return {"postgres": in_postgres, "spark": in_spark}[request.param](connection, nasty), connection


def left_behind(source, connection):
    """Temporary tables and cached frames."""
    if source.engine.name == "duckdb":
        return connection.execute("SELECT table_name FROM duckdb_tables() WHERE temporary").fetchall()
    if source.engine.name == "postgres":
        temporary = "SELECT relname FROM pg_class WHERE relnamespace = pg_my_temp_schema() AND relkind = 'r'"
        return connection.execute(temporary).fetchall()
    cached = connection.sparkContext._jsc.getPersistentRDDs().size()
    return [t.name for t in connection.catalog.listTables() if "psidp" in t.name] + ["a frame"] * cached


@pytest.mark.parametrize("number", range(5), ids=["rows", "one", "some", "image in blocks", "image"])
def test_every_engine_gives_the_same_integers(place, nasty, number):
    """Both sets of columns; on Spark, which is slow to start a query, they take turns."""
    both, (source, connection) = (COLUMNS, WIDER), place
    for columns in both if source.engine.name != "spark" else both[number % 2 :][:1]:
        found = check(source, nasty, columns, bounds(columns)[number], tables=((), (1, 3), (0, 1, 2, 3)))
        assert np.count_nonzero(found[-1][0]) >= 4
    assert left_behind(source, connection) == []


def test_a_failure_leaves_nothing_behind_and_says_nothing(place, monkeypatch):
    """The second query fails: temporary tables are gone, and so are the engine's words."""
    source, connection = place
    real, asked = source.engine.columns, []

    def columns(text):
        asked.append(text)
        return real(text if len(asked) < 2 else "SELECT secret FROM nowhere")

    monkeypatch.setattr(source.engine, "columns", columns, raising=False)
    with pytest.raises(EngineError) as caught:
        exact(source, COLUMNS, bounds(COLUMNS)[3])
    assert len(asked) == 2
    assert "secret" not in str(caught.value)
    assert left_behind(source, connection) == []


def test_numbers_beyond_doubles_are_no_error_as_keys_bins_and_amounts(postgres):
    values = ["1e400", "-1e400", "1e-400", "NaN", "7.50", "-0.25", "3", None]
    with postgres.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS huge")
        cursor.execute("CREATE TABLE huge (u bigint, k numeric, t varchar(9))")
        cursor.executemany("INSERT INTO huge VALUES (%s, %s, 'a')", list(enumerate(values)))
    source = open_source(postgres, name="huge")
    vectors = (*COUNT, Vector((Present("k"), Centred("k", 0.0, 1e200))), Vector((Amount("k", -4.0, 8.0),)))
    rows = [{"u": u, "k": None if v is None else Decimal(v), "t": "a"} for u, v in enumerate(values)]
    text = Column("t", ("b", "a"))
    keys = (Column("k", (Decimal("7.5"), Decimal("3"), None, Decimal("-0.25"))), text)
    check(source, rows, keys, RowBound(1.0), ((0, 1),), vectors)
    found = check(source, rows, (Column("k", edges=(-1.0, 0.0, 5.0)), text), RowBound(1.0), ((0,),), vectors)
    assert found[0][0].tolist() == [2 * FULL, 4 * FULL]


def test_a_file_that_is_only_read_is_left_as_it_was(tmp_path, nasty):
    path = tmp_path / "clinic.duckdb"
    with duckdb.connect(path) as connection:
        given = pa.Table.from_pylist(nasty, SCHEMA)
        connection.register("given", given)
        connection.execute("CREATE TABLE nasty AS FROM given")
    before = path.read_bytes()
    source = open_source(path, name="nasty")
    check(source, nasty, COLUMNS, bounds(COLUMNS)[4])
    source.close()
    assert path.read_bytes() == before


def without(rows, unit):
    return [row for row in rows if row["u"] != unit]


@pytest.mark.parametrize("contribution", [1.0, 2.7, 40.0])
def test_no_unit_moves_the_totals_by_more_rows_than_the_bound(nasty, contribution):
    """Every unit of the table taken out; whole numbers, no tolerance, every number that a row adds."""
    full, bound = (tuple(range(len(COLUMNS))),), RowBound(contribution)
    steps = [bound.steps(vector, c).row for vector in VECTORS for c in vector.coordinates]
    largest = Fraction(0)
    (here,) = exact(in_duckdb(nasty), COLUMNS, bound, full)
    for unit in range(12):
        (there,) = exact(in_duckdb(without(nasty, unit)), COLUMNS, bound, full)
        for step, one, other in zip(steps, here, there, strict=True):
            moved = Fraction(int(np.abs(one - other).sum()), FULL * step)
            assert moved <= Fraction(contribution), unit
            largest = max(largest, moved)
    assert largest > Fraction(contribution) * Fraction(999, 1000)


@pytest.mark.parametrize(("contribution", "bits"), [(1.0, 6), (2.7, 6), (2.7, 2)])
def test_no_unit_moves_the_image_by_more_than_the_bound(nasty, contribution, bits):
    """u^T G u <= C^2 2^40 psi^2 in fractions, for every unit of the table."""
    exact_gram, full = gram(COLUMNS), (tuple(range(len(COLUMNS))),)
    psi_squared, largest = exact_gram[-1], 0.0
    bound = ImageBound(contribution, at_psi_one(exact_gram), bits)
    here = exact(in_duckdb(nasty), COLUMNS, bound, full, COUNT)[0][0]
    for unit in range(12):
        there = exact(in_duckdb(without(nasty, unit)), COLUMNS, bound, full, COUNT)[0][0]
        moved = image_square(here - there, exact_gram)
        most = Fraction(contribution) ** 2 * 2**40 * psi_squared
        assert 0 <= moved <= most, unit
        largest = max(largest, moved / most)
    assert largest > 0.99


def test_a_gram_that_is_too_small_would_be_seen(nasty):
    """The test above can fail: with a gram of half the size some unit moves the image too far."""
    exact_gram, full = gram(COLUMNS), (tuple(range(len(COLUMNS))),)
    bound = ImageBound(1.0, tuple(g // 2 for g in at_psi_one(exact_gram)))
    here, there = (exact(in_duckdb(rows), COLUMNS, bound, full, COUNT)[0][0] for rows in (nasty, without(nasty, 0)))
    assert image_square(here - there, exact_gram) > 2**40 * exact_gram[-1]


@pytest.mark.parametrize("bits", [0, 3, 6, 12])
def test_a_unit_of_thousands_of_rows_is_weighed_in_blocks(bits):
    dice = random.Random(3)
    rows = [random_row(dice, 1) | {"u": 1, "b": dice.choice([3, 4, 5])} for _ in range(3000)]
    bound = ImageBound(3.0, at_psi_one(gram(WIDER)), bits)
    found = check(in_duckdb(rows), rows, WIDER, bound, ((0, 1),), (*COUNT, Vector((Amount("v", -1.0, 5.0),))))
    assert found[0][0].sum() > 0


def test_keys_that_fill_two_words_are_told_apart():
    """Seven columns of 2^9 keys have 63 bits."""
    dice, names = random.Random(5), "pqrstxy"
    columns = tuple(Column(name, tuple(range(512))) for name in names)
    schema = pa.schema([("u", pa.int64()), *((name, pa.int64()) for name in names)])
    pool = [0, 1, 256, 511, 512, 1, 0]
    rows = [{"u": dice.randrange(6)} | {name: dice.choice(pool) for name in names} for _ in range(300)]
    bound = ImageBound(1.3, at_psi_one(gram(columns)), bits=4)
    check(in_duckdb(rows, schema), rows, columns, bound, ((), (0,), (3,), (6,)), COUNT)


@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize(
    "rows", [[], [random_row(random.Random(1), 1) | {"c": None, "u": 1}] * 3], ids=["none", "outside"]
)
def test_a_table_without_rows_that_count_has_zeros(rows, number):
    found = check(in_duckdb(rows), rows, COLUMNS, bounds(COLUMNS)[number])
    assert not any(array.any() for arrays in found for array in arrays)


def test_rows_outside_the_keys_take_nothing_from_a_unit():
    """A unit's weight comes from the rows that count, in every column, also in those that a table does not show."""
    row = random_row(random.Random(2), 1) | {"u": 1, "a": "a", "b": 7, "c": True, "v": 1.0}
    rows = [row, row] + [row | {"b": 8}] * 5 + [row | {"v": None}] * 5 + [row | {"u": None}] * 5
    found = exact(in_duckdb(rows), COLUMNS, RowBound(2.0), ((0,),), COUNT)
    assert found[0][0].tolist() == [0, 2 * FULL, 0, 0]


def test_totals_beyond_64_bits_are_whole_numbers_of_python(tmp_path):
    """2^22 rows at 2^41 each."""
    path = tmp_path / "many.parquet"
    duckdb.execute(
        f"COPY (SELECT i AS u, 1 AS k, 1e9::DOUBLE AS v FROM range(4194304) t(i)) TO '{path}' (FORMAT parquet)"
    )
    vectors, bound = (*COUNT, Vector((Amount("v", 0.0, 2.0**21 - 1.0),))), RowBound(1.0)
    ((count, amount),) = exact(open_source(path), (Column("k", (1,)),), bound, ((0,),), vectors)
    assert count.dtype == np.int64
    assert count.tolist() == [2**42]
    assert amount.dtype == object
    assert amount.tolist() == [2**42 * bound.steps(vectors[1], vectors[1].coordinates[0]).row]


@pytest.mark.parametrize(
    "kind", ["TINYINT", "UTINYINT", "UBIGINT", "HUGEINT", "DECIMAL(38, 0)", "DECIMAL(3, 0)", "DATE", "TIMESTAMPTZ"]
)
def test_a_value_that_no_key_has_is_no_error_in_any_type(kind):
    """Ends of the type's range beside the keys; sums and bins of them as well where they are numbers."""
    keys, ends = {
        "UTINYINT": ((0, 5, 250), ("1", "255")),
        "UBIGINT": ((0, 2**64 - 2, 7), ("18446744073709551615", "1")),
        "HUGEINT": ((0, 5), ("-170141183460469231731687303715884105728", "170141183460469231731687303715884105727")),
        "DECIMAL(38, 0)": ((0, 5), ("9" * 38, "-" + "9" * 38)),
        "DECIMAL(3, 0)": ((0, 5), ("999", "-999")),
        "DATE": (DAYS, ("infinity", "-infinity")),
        "TIMESTAMPTZ": (tuple(datetime.datetime(d.year, d.month, d.day) for d in DAYS), ("infinity", "-infinity")),
    }.get(kind, ((-100, 5, 100), ("-128", "127")))
    values = [
        *(f"'{key}{'+00' if kind == 'TIMESTAMPTZ' else ''}'" for key in keys),
        *(f"'{end}'" for end in ends),
        "NULL",
    ]
    lines = ", ".join(f"({i}, CAST({value} AS {kind}))" for i, value in enumerate(values))
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE typed AS SELECT * FROM (VALUES {lines}) t(u, k)")
        source = open_source(connection, name="typed")
        found = exact(source, (Column("k", keys),), RowBound(1.0), ((0,),), COUNT)
        assert found[0][0].tolist() == [FULL] * len(keys)
        if source.schema["k"].numeric:
            rows = [{"u": i, "k": None if v == "NULL" else int(v.strip("'"))} for i, v in enumerate(values)]
            bins = (Column("k", edges=(-2.0, 3.0, 50.0)),)
            check(source, rows, bins, RowBound(1.0), ((0,),), (*COUNT, Vector((Amount("k", -3.0, 9.0),))))


@pytest.mark.parametrize("number", range(5))
def test_the_texts_are_those_that_run_and_read_no_row(number):
    """Of one table a query of this engine; of several, queries over rows that are stored first."""
    source, bound = in_duckdb([]), bounds(COLUMNS)[number]
    (text,) = totals_of(COLUMNS, bound, TABLES[-1:]).sql(source, source.dialect)
    assert len(source.engine.columns(text)) == len(COLUMNS) + len(layers_of(VECTORS))
    texts = totals_of(COLUMNS, bound).sql(source, source.dialect)
    assert len(texts) > len(TABLES)
    assert sum(f"FROM {source.text} AS source" in text for text in texts) == 1, "the table is read once"


def test_a_row_is_2_to_the_20_steps_of_its_reach_or_one_where_it_counts():
    bound = RowBound(1.0)

    def steps(coordinate):
        return bound.steps(Vector((coordinate,)), coordinate)

    assert steps(Rows()).row == steps(Present("v")).row == 1
    assert steps(Centred("v", -60.0, 180.0)).row == FULL
    for upper in (1.0, 1.5, 100.0, 2.0**-800, 1e200):
        amount = Amount("v", -upper / 2, upper)
        row, step = steps(amount).row, Fraction(1) / Fraction(amount.one(steps(amount)))
        assert FULL <= row < 2 * FULL
        assert row * step <= Fraction(upper) < (row + 1) * step


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: ImageBound(2.0**21, (1,)), "contribution"),
        (lambda: ImageBound(1.0, (1,), -1), "bits"),
        (lambda: ImageBound(1.0, (2**31,)), "gram"),
        (lambda: ImageBound(1.0, (0.5,)), "gram"),
        (lambda: ImageBound(1.0, (1,) * 15), "gram"),
        (lambda: ImageBound(1.0, (1,) * 2048), "1 to 10 columns"),
        (lambda: Column("a"), "keys or edges"),
        (lambda: Column("a", (1,), (1.0, 2.0)), "keys or edges"),
        (lambda: Column("a", edges=(1.0, float("nan"))), "increasing order"),
        (lambda: Column("a", edges=(2.0, 1.0)), "increasing order"),
        (lambda: Column("a", edges=(1.0,)), "increasing order"),
    ],
)
def test_nonsense_is_refused_at_birth(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()
