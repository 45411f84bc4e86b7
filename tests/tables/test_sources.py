"""Sources: a path means one file from wherever it is opened, types are never guessed, and spilled rows are private."""

import gc
import sqlite3
import stat
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import psycopg
import pyarrow as pa
import pyarrow.parquet
import pytest

import psidp
from psidp import Curator, ask
from psidp.cli.number_files import read_column
from psidp.errors import EngineError, KeyConflictError
from psidp.tables.engines.duckdb import DuckDB
from psidp.tables.sources import open_source
from released import released


def write(path, n):
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({"who": list(range(n)), "x": [1.0] * n})
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, path)
    elif path.suffix == ".csv":
        table.to_pandas().to_csv(path, index=False)
    else:
        with duckdb.connect(str(path)) as database:
            database.execute(f"CREATE TABLE visits AS SELECT range AS who, 1.0 AS x FROM range({n})")
    return path


def counted(source, **terms):
    curator = Curator(source, "who", **terms)
    count = round(released(curator, ask.count(), contribution=4).value("count"), 3)
    curator.dispose()
    return count


ODD = [
    "visits[1].parquet", "visits*.parquet", "visits?.parquet", "visits[!a].parquet", "v'i\"s.parquet", "{a,b}.parquet",
    "~.parquet", "$HOME.parquet", "a b%20.parquet", "visits[1].csv", "visits*.csv", "[2026]/visits.parquet",
    "*/visits.csv", "visits[1].duckdb", "v'i\"s.csv",
]  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_a_path_means_that_file_alone(tmp_path, name):
    """visits[1].parquet once opened visits1.parquet."""
    for i, other in enumerate(("visits1", "visitsa", "visits", "visits[1", "2/visits", "0/visits", "x/visits")):
        write((tmp_path / other).with_suffix(Path(name).suffix), 10 + i)
    path = write(tmp_path / name, 5)
    terms = {"name": "visits"} if path.suffix == ".duckdb" else {}
    assert counted(path, **terms) == 5
    if path.suffix == ".parquet":
        assert read_column(str(path), "x").tolist() == [1.0] * 5


def test_stars_mean_many_parquet_files_where_none_has_that_name(tmp_path):
    for i in range(3):
        write(tmp_path / "[2026]" / f"visits-{i}.parquet", 10)
    assert counted(tmp_path / "[2026]" / "visits-*.parquet") == 30
    with pytest.raises(ValueError, match="a file that exists"):
        Curator(tmp_path / "visits[1].parquet", "who")


def test_a_backslash_beside_a_star_is_refused_by_name(tmp_path):
    path = write(tmp_path / "v\\[1].parquet", 5)
    with pytest.raises(ValueError, match="must not have a backslash beside"):
        Curator(path, "who")


@pytest.mark.parametrize("name", ["v[1].parquet", "v{1}.parquet", "v1.parquet"])
def test_spark_opens_that_file_alone_and_no_csv(spark, tmp_path, name):
    write(tmp_path / "v1.parquet", 9)
    path = write(tmp_path / name, 5)
    assert counted(str(path), engine="spark://local") == 5
    with pytest.raises(ValueError, match=r"a \.csv file is not read on Spark"):
        Curator(str(tmp_path / "v.csv"), "who", engine="spark://local")


@pytest.fixture
def ledger(tmp_path):
    made = psidp.Ledger(tmp_path / "ledger.db")
    made.open("survey", psi=1e12, unit="who", actor="Ann", purpose="test")
    yield made
    made.dispose()


@pytest.mark.parametrize("name", ["v.parquet", "v.csv", "v.duckdb"])
def test_the_same_path_in_another_folder_is_another_question(tmp_path, monkeypatch, ledger, name):
    """A relative path once got the stored answer of another file."""
    for folder, n in (("one", 5), ("two", 7)):
        write(tmp_path / folder / name, n)
    terms = {"ledger": ledger, "budget": "survey"} | ({"name": "visits"} if name == "v.duckdb" else {})
    monkeypatch.chdir(tmp_path / "one")
    ask_it = lambda path: released(Curator(path, "who", **terms), ask.count(), retry_key="k")  # noqa: E731
    assert round(ask_it(name).value("count"), 3) == 5
    again = [ask_it(path) for path in (name, f"./{name}", f"../one/{name}", tmp_path / "one" / name)]
    assert all(answer.stored for answer in again)
    (tmp_path / "link").symlink_to(tmp_path / "one")
    assert ask_it(tmp_path / "link" / name).stored
    monkeypatch.chdir(tmp_path / "two")
    with pytest.raises(KeyConflictError):
        ask_it(name)


def test_a_table_on_another_server_is_another_question(server, ledger):
    here, there = server.place("here"), server.place("there")
    for url, n in ((here, 5), (there, 7)):
        with psycopg.connect(url) as connection:
            connection.execute(f"CREATE TABLE visits AS SELECT n AS who FROM generate_series(1, {n}) n")
    terms = {"ledger": ledger, "budget": "survey"}
    for _ in range(2):
        curator = Curator("visits", "who", engine=here, **terms)
        answer = released(curator, ask.count(), retry_key="k")
        curator.dispose()
    assert answer.stored
    curator = Curator("visits", "who", engine=there, **terms)
    with pytest.raises(KeyConflictError):
        released(curator, ask.count(), retry_key="k")
    curator.dispose()


def test_keys_are_not_read_from_the_file_itself_by_another_path(tmp_path, monkeypatch):
    write(tmp_path / "v.csv", 5)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="must not come from the table itself"):
        released(Curator("v.csv", "who"), ask.count(), by="x", groups="./v.csv", psi=1.0)


def guessing(tmp_path):
    """Views and tables of a connection whose types DuckDB takes from rows."""
    (tmp_path / "v.csv").write_text("who,x\n1,2\n")
    (tmp_path / "v.json").write_text('{"who": 1, "x": 2}\n')
    connection = duckdb.connect()
    connection.register("objects", pd.DataFrame({"who": [1, "x"]}))
    connection.execute(f"CREATE VIEW read AS FROM read_csv('{tmp_path / 'v.csv'}')")
    connection.execute(f"CREATE VIEW json AS FROM read_json('{tmp_path / 'v.json'}')")
    connection.execute("CREATE VIEW nested AS SELECT who + 1 AS who FROM read WHERE x > 0")
    return connection


def test_tables_whose_types_are_guessed_from_rows_are_refused(tmp_path):
    connection = guessing(tmp_path)
    for name in ("objects", "read", "json", "nested", str(tmp_path / "v.csv")):
        with pytest.raises(ValueError, match=r"guesses types from some rows.* Give the path"):
            Curator(connection, "who", name=name)
    with duckdb.connect(str(tmp_path / "v.duckdb")) as database:
        database.execute(f"CREATE VIEW visits AS FROM read_csv('{tmp_path / 'v.csv'}')")
        database.execute(f"CREATE TABLE kept AS FROM read_csv('{tmp_path / 'v.csv'}')")
    with pytest.raises(ValueError, match="guesses types"):
        Curator(tmp_path / "v.duckdb", "who", name="visits")
    assert counted(tmp_path / "v.duckdb", name="kept") == 1


def test_a_connection_of_ones_own_stays_open_and_needs_a_name():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE visits AS SELECT range AS who FROM range(5)")
    assert counted(connection, name="visits") == 5
    assert connection.execute("SELECT count(*) FROM visits").fetchall() == [(5,)]
    with pytest.raises(ValueError, match=r"name \(which table of the connection\) must be given"):
        Curator(connection, "who")
    with pytest.raises(ValueError, match=r"one the engine has, table or schema\.table, got 'no\.thing'"):
        Curator(connection, "who", name="no.thing")


def test_a_frame_that_python_calls_so_is_no_table_of_a_file(tmp_path):
    visits = pd.DataFrame({"who": [1]})
    write(tmp_path / "v.duckdb", 5)
    for name in ("visits_", "visits.who", "frame"):
        with pytest.raises(ValueError, match="one the engine has"):
            Curator(tmp_path / "v.duckdb", "who", name=name)
    assert counted(tmp_path / "v.duckdb", name="visits") == 5
    assert len(visits) == 1


def test_what_does_not_fit_into_memory_goes_to_a_private_folder_that_ends(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "spill"))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "spill").mkdir()
    monkeypatch.chdir(tmp_path)
    engine = DuckDB.connect()
    (folder,) = (tmp_path / "spill").iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    engine.connection.execute("SET memory_limit = '60MB'; SET threads = 1")
    engine.connection.execute(
        "CREATE TEMP TABLE many AS SELECT hash(range) AS x, hash(range + 1) AS y FROM range(6000000)"
    )
    assert list(folder.iterdir())  # it did spill, and there
    engine.close()
    assert not folder.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["spill"]
    curator = Curator(pa.table({"who": np.arange(5)}), "who")
    assert len(list((tmp_path / "spill").iterdir())) == 1
    curator.dispose()
    assert not list((tmp_path / "spill").iterdir())


def test_a_folder_ends_also_without_close(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    table = open_source(pa.table({"who": [1]}))
    del table
    gc.collect()
    assert not list(tmp_path.iterdir())


def test_names_have_a_sensible_length(ledger):
    rows, long = pa.table({"who": [1, 2], **{f"column of long name {i}": [1, 2] for i in range(200)}}), "x" * 1001
    with pytest.raises(ValueError, match=r"protects must have at most 1,000 letters, got 1,001"):
        Curator(rows, "who", protects=long)
    curator = Curator(rows, "who", ledger=ledger, budget="survey")
    for name in ("purpose", "retry_key"):
        with pytest.raises(ValueError, match=f"{name} must have at most 1,000 letters, got 1,001"):
            released(curator, ask.count(), psi=1.0, **{name: long})
    for terms in ({"budget": long}, {"actor": long}, {"purpose": long}, {"unit": long}):
        with pytest.raises(ValueError, match="at most 1,000 letters"):
            ledger.open(**({"budget": "b", "psi": 1.0, "actor": "Ann", "purpose": "p"} | terms))
    with pytest.raises(ValueError, match=r"\(who, column of long name 0, .* and 161 more\), got 'nothing'") as refusal:
        released(curator, ask.sum("nothing", 0, 1), psi=1.0)
    assert len(str(refusal.value)) < 1100
    asks = [ask.sum(f"column of long name {i}", 0, 1) for i in range(40)]
    released(curator, *asks, psi=1.0)  # its words are long, and are cut
    spent = next(entry for entry in ledger.entries("survey") if entry.state == "spent")
    assert len(spent.purpose) == 1000
    ledger.verify()


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_several_files_are_one_table(tmp_path, kind):
    """A list, a pattern over folders and, of Parquet, a folder: the same rows whichever way they are named."""
    files = [write(tmp_path / "data" / f"year={2020 + i}" / f"v{i}.{kind}", 10 * (i + 1)) for i in range(3)]
    (tmp_path / "data" / "_SUCCESS").write_text("")
    assert counted(files) == 60
    assert counted(files[:2]) == 30
    assert counted([str(files[0])]) == 10
    assert counted(tmp_path / "data" / "*" / f"v*.{kind}") == 60
    assert counted(str(tmp_path / "data" / "**" / f"v1.{kind}")) == 20
    if kind == "parquet":
        assert counted(tmp_path / "data") == 60
        assert list(open_source(tmp_path / "data").schema) == ["who", "x"]  # names of folders are no columns


def test_several_files_that_are_no_table_are_refused_by_name(tmp_path):
    one, other = write(tmp_path / "a.parquet", 5), write(tmp_path / "b.csv", 5)
    (tmp_path / "c.csv").write_text("who,y\n1,2\n")
    (tmp_path / "empty").mkdir()
    pyarrow.parquet.write_table(pa.table({"who": ["x"], "x": [1.0]}), tmp_path / "d.parquet")
    cases = [
        ([one, other], "all .parquet or all .csv"),
        ([one, one], "different files"),
        ([one, tmp_path / "none.parquet"], "files that exist"),
        ([other, tmp_path / "c.csv"], "same first line"),
        ([one, tmp_path / "d.parquet"], "same columns of the same types"),
        (tmp_path / "empty", "folder or pattern with .parquet files"),
        (tmp_path / "no*.parquet", "a file that exists"),
    ]
    for source, words in cases:
        with pytest.raises(ValueError, match=words):
            Curator(source, "who")


def test_groups_that_lie_in_one_of_several_files_are_refused(tmp_path):
    files = [write(tmp_path / "data" / f"v{i}.parquet", 10) for i in range(2)]
    for source in (files, tmp_path / "data", tmp_path / "data" / "*.parquet"):
        with pytest.raises(ValueError, match="must not come from the table itself"):
            Curator(source, None).ask(ask.count(), by="who", groups=files[1])


def test_a_list_in_another_order_is_the_same_question_and_other_files_are_not(tmp_path, ledger):
    files = [write(tmp_path / f"v{i}.csv", 5) for i in range(3)]

    def ask_it(source):
        return released(Curator(source, "who", ledger=ledger, budget="survey"), ask.count(), retry_key="k")

    assert not ask_it(files[:2]).stored
    assert ask_it(files[:2]).stored
    for other in (files, files[1:]):
        with pytest.raises(KeyConflictError):
            ask_it(other)


def test_spark_reads_a_folder_without_columns_of_its_names(spark, tmp_path):
    for i in range(3):
        write(tmp_path / "data" / f"year={2020 + i}" / f"v{i}.parquet", 10 * (i + 1))
    curator = Curator(str(tmp_path / "data"), "who", engine="spark://local")
    assert list(curator.source.schema) == ["who", "x"]
    assert round(released(curator, ask.count(), contribution=4).value("count"), 3) == 60


def test_a_lazy_frame_of_polars_is_collected_and_tells_nothing_when_it_fails(tmp_path):
    pl = pytest.importorskip("polars")
    path = write(tmp_path / "v.parquet", 9)
    assert counted(pl.scan_parquet(path).filter(pl.col("who") < 7)) == 7
    failing = pl.LazyFrame({"who": ["Bob, HIV positive"]}).select(pl.col("who").cast(pl.Int64))
    with pytest.raises(EngineError) as refusal:
        Curator(failing, "who")
    assert "Bob" not in str(refusal.value)
    assert refusal.value.__context__ is None
    write(tmp_path / "v.csv", 9)
    with pytest.raises(ValueError, match="guess types from some rows"):
        Curator(pl.scan_csv(tmp_path / "v.csv").select("who"), "who")


def test_sqlite_and_mysql_are_refused_by_name(tmp_path):
    """SQLite's columns hold anything, and its sums overflow by row."""
    for name in ("v.db", "v.duckdb"):
        with sqlite3.connect(tmp_path / name) as file:
            file.execute("create table visits (who integer)")
        with pytest.raises(ValueError, match=r"got sqlite: .*Write the table as Parquet first"):
            Curator(tmp_path / name, "who", name="visits")
    for engine in ("mysql://x", "mysql+pymysql://x", "sqlite:///v.db"):
        with pytest.raises(ValueError, match=r"engine must be DuckDB, PostgreSQL or Spark, got (mysql|sqlite)"):
            Curator("visits", "who", engine=engine)
        with sqlite3.connect(tmp_path / name) as file, pytest.raises(ValueError, match="got sqlite"):
            Curator(file, "who", name="visits")
