"""What one row holds decides about no refusal, failure, plan or note, and moves totals by that row alone.

Files and frames with a column of every type, with ordinary values alone and with odd values beside them.
`./dev fuzz --only row_outcomes` draws other questions.
"""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from psidp import Curator, ask
from psidp.cli.number_files import read_column
from reference.odd_rows import KINDS, Asked, apart, beside, column, file_of
from released import released

AT_RISK = {
    "string": "unit", "text in a short dictionary": "by 'abc'", "timestamp[ms]": "by month", "time64[us]": "unit",
    "timestamp[ms, tz=UTC]": "where x >= '2021-01-01'", "json": "bystander of units", "map": "bystander of units",
    "struct of text": "bystander of units", "decimal(76, 0)": "sum", "timestamp[us]": "private groups",
}  # fmt: skip
"""Types with values that some reader fails on, and a role for each besides."""
OPTIONS = {"timestamp[us]": {"use_deprecated_int96_timestamps": True}}


def same(usual, full, questions, odd, name):
    """Every question has one outcome on both tables."""
    for question in questions:
        (words, before), (others, after) = (asked.outcome(question) for asked in (usual, full))
        assert words == others, (name, question)
        assert before, (name, question, words)
        assert apart(before, after) <= odd + 0.001, (name, question)


def test_no_value_in_a_parquet_file_makes_a_release_fail(tmp_path):
    for i, (kind, role) in enumerate(AT_RISK.items()):
        odd = KINDS[kind][1]
        files = [
            file_of(column(kind, cells), tmp_path / f"{i}{name}.parquet", **OPTIONS.get(kind, {}))
            for name, cells in (("usual", None), ("full", odd))
        ]
        same(*map(Asked, files), ["bystander of a count", "where x is null", role], len(odd), kind)


def test_no_value_in_a_frame_of_arrow_makes_a_release_fail():
    for kind in ("map", "struct", "text in a short dictionary", "float16", "decimal(76, 0)"):
        odd = KINDS[kind][1]
        tables = (Asked(pa.table(beside(column(kind, cells)))) for cells in (None, odd))
        same(*tables, ["where x is null"], len(odd), kind)


@pytest.mark.parametrize("kind", ["string", "timestamp[ms]"])
def test_other_rows_count_the_same_whichever_reader_reads_them(kind, tmp_path):
    """One value makes DuckDB's own reader fail, so that the file is read through Arrow."""
    n = 300_000
    usual, odd = KINDS[kind]
    values = pa.concat_arrays([usual.take(pa.array(np.arange(n) % 2)), odd[:0]])
    answers = []
    for name, cells in (("plain", [values]), ("broken", [values, odd])):
        whole = pa.chunked_array(cells)
        table = pa.table({"who": np.arange(len(whole)) % 1000, "n": np.arange(len(whole)) % 7, "x": whole})
        pa.parquet.write_table(table, tmp_path / f"{name}.parquet")
        curator = Curator(tmp_path / f"{name}.parquet", None)
        where = "x = 'abc'" if kind == "string" else "year(x) = 2023"
        answers.append(released(curator, ask.count(), ask.sum("n", 0, 7), where=where))
        assert ("through Arrow" in definition(curator.source.engine.connection)) is (name == "broken")
    assert [row["value"] for row in answers[0]] == pytest.approx([row["value"] for row in answers[1]], abs=1e-2)
    assert answers[0].value("count") == pytest.approx(n / 2, abs=1e-2)


def definition(connection):
    """How the table's view is defined."""
    ((text,),) = connection.execute("SELECT string_agg(sql) FROM duckdb_views() WHERE NOT internal").fetchall()
    return text


def test_a_table_over_duckdbs_reader_of_parquet_is_refused_whatever_its_values(tmp_path):
    for name, cells in (("usual", None), ("full", KINDS["timestamp[ms]"][1])):
        file_of(column("timestamp[ms]", cells), tmp_path / f"{name}.parquet")
        connection = duckdb.connect()
        connection.execute(f"CREATE VIEW visits AS FROM read_parquet('{tmp_path / f'{name}.parquet'}')")
        with pytest.raises(ValueError, match=r"fails at a value .* Give the path of the \.parquet file itself"):
            Curator(connection, "who", name="visits")


def test_units_that_are_no_utf8_stay_apart(tmp_path):
    path = file_of(KINDS["string"][1].slice(0, 4), tmp_path / "v.parquet")
    assert released(Curator(path, "x"), ask.units()).value("units") == pytest.approx(4, abs=1e-3)


def test_a_column_of_numbers_in_a_parquet_file_is_read_whatever_its_values(tmp_path):
    path = file_of(_words([b"7", b"\xff", b"2.5"]), tmp_path / "v.parquet")
    assert np.array_equal(read_column(str(path), "x"), [7, np.nan, 2.5], equal_nan=True)


def _words(cells):
    return pa.Array.from_buffers(pa.string(), len(cells), pa.array(cells, pa.binary()).buffers())


def test_one_cell_of_a_pandas_frame_decides_nothing_about_the_others():
    for values, questions in (
        ([1, 2, 3, 4], ["unit", "sum", "where x >= 1", "by 1"]),
        (["abc", "x", "1", "2"], ["unit", "histogram", "by 'abc'"]),
        ([True, False, True], ["sum", "where x = true"]),
        ([pd.Timestamp("2023-11-14 12:00:01.5"), pd.Timestamp("2020-09-13")], ["unit", "sum", "by month"]),
        ([pd.Timestamp("2023-11-14", tz="UTC"), pd.Timestamp("2020-09-13", tz="UTC")], ["unit", "where hour(x) >= 1"]),
    ):
        usual = Asked(pd.DataFrame(beside(values)))
        for cell in (None, "abc", 2**70, 0.5):
            same(usual, Asked(pd.DataFrame(beside([*values, cell]))), questions, 1, (values, cell))


def test_whole_numbers_that_pandas_stores_as_fractions_are_units():
    frame = pd.DataFrame({"u": [1, 2, 2, 3, None], "v": [1, 2, 3, 4, "abc"]})
    curator = Curator(frame, "u")
    assert released(curator, ask.units()).value("units") == pytest.approx(3, abs=1e-3)
    assert released(Curator(frame, "v"), ask.units()).value("units") == pytest.approx(5, abs=1e-3)


def test_a_column_of_polars_that_is_all_missing_is_answered():
    usual, full = (Asked(pl.DataFrame(beside(values))) for values in ([None, None], [None, 1]))
    for name in ("unit", "sum", "where x >= 1", "by 1"):
        (_, before), (_, after) = usual.outcome(name), full.outcome(name)
        assert before.keys() == after.keys() != set(), name
    wide = pl.DataFrame({"x": pl.Series([1, 2**100], dtype=pl.Int128)})
    assert released(Curator(wide, None), ask.sum("x", 0, 5)).value("sum of x") == pytest.approx(6, abs=1e-2)


def test_broken_text_in_one_column_moves_no_row_of_a_column_that_arrow_has_no_type_for(tmp_path):
    """DuckDB reads spans of time from Parquet, and Arrow bytes: then they are missing or not, as before."""
    path = tmp_path / "v.parquet"
    rows = "SELECT 'a~' || i AS who, CASE WHEN i > 2 THEN to_days(i::INT) END AS x FROM range(10) AS r(i)"
    duckdb.sql(f"COPY ({rows}) TO '{path}' (FORMAT parquet, COMPRESSION uncompressed)")
    answers = []
    for _ in range(2):
        answers.append(released(Curator(path, "who"), ask.count(), where="x is null").value("count"))
        path.write_bytes(path.read_bytes().replace(b"a~", b"a\xff"))
    assert answers == pytest.approx([3, 3], abs=1e-3)
