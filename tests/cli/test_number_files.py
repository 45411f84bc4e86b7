"""Files of numbers: read as they are, refused by name alone."""

import builtins
import io
import sys

import numpy as np
import pytest

from psidp.cli.number_files import column_names, read_column, write_column
from psidp.errors import MissingExtraError


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text('place,"visits, all"\nhere,3\nthere,\nnowhere,many\n"else,where",-2.5e3\nshort\n')
    return str(path)


def test_a_csv_column_is_read_and_what_is_no_number_is_nan(table):
    numbers = read_column(table, "visits, all")
    assert np.array_equal(numbers, [3.0, np.nan, np.nan, -2500.0, np.nan], equal_nan=True)


def test_a_single_column_needs_no_name(tmp_path):
    (tmp_path / "one.csv").write_text("n\n1\n2\n")
    assert read_column(str(tmp_path / "one.csv")).tolist() == [1.0, 2.0]


def test_standard_input_is_csv(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("a,b\n1,2\n3,4\n"))
    assert read_column("-", "b").tolist() == [2.0, 4.0]


def test_arrays_are_read_whole_or_by_column(tmp_path):
    path = str(tmp_path / "array.npy")
    np.save(path, np.arange(6.0, dtype=np.float32).reshape(3, 2))
    assert read_column(path).shape == (3, 2)
    assert read_column(path).dtype == np.float32
    assert read_column(path, "1").tolist() == [1.0, 3.0, 5.0]
    np.save(path, np.array([(1, 2.5)], [("n", int), ("x", float)]))
    assert read_column(path, "x").tolist() == [2.5]


def test_parquet_is_read_by_duckdb(tmp_path):
    import duckdb

    path = str(tmp_path / "table.parquet")
    duckdb.sql(f"copy (select * from (values (1, 'x'), (2, '3'), (null, 'y')) t(n, \"odd \"\"name\"\"\")) to '{path}'")
    assert np.array_equal(read_column(path, "n"), [1.0, 2.0, np.nan], equal_nan=True)
    assert np.array_equal(read_column(path, 'odd "name"'), [np.nan, 3.0, np.nan], equal_nan=True)


def test_without_duckdb_the_refusal_says_what_to_install(tmp_path, monkeypatch):
    real = builtins.__import__

    def absent(name, *rest):
        if name == "duckdb":
            raise ImportError(name)
        return real(name, *rest)

    (tmp_path / "table.parquet").touch()
    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(MissingExtraError, match=r"pip install 'psidp\[db\]'"):
        read_column(str(tmp_path / "table.parquet"), "n")


@pytest.mark.parametrize(
    ("column", "sentence"), [("visit", "column must be one of place, visits, all, got"), (None, "got column=None")]
)
def test_a_column_that_is_not_there_is_refused_by_name(table, column, sentence):
    with pytest.raises(ValueError, match=sentence):
        read_column(table, column)


def test_other_files_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"the file must be .csv, .npy or .parquet"):
        read_column("table.xlsx", "a")
    with pytest.raises(FileNotFoundError):
        read_column(str(tmp_path / "none.csv"), "a")
    np.save(tmp_path / "cube.npy", np.zeros((2, 2, 2)))
    with pytest.raises(ValueError, match="column must be left out for an array of 3 dimensions"):
        read_column(str(tmp_path / "cube.npy"), "0")


def test_what_is_written_is_read_back_to_the_last_digit(tmp_path):
    values = np.array([0.1, -1e300, 5e-324, 1 / 3])
    for name in ("out.csv", "out.npy"):
        write_column(str(tmp_path / name), "x", values)
        assert read_column(str(tmp_path / name)).tolist() == values.tolist()


@pytest.mark.parametrize("name", ["visits, all", 'a "quoted" name'])
def test_a_written_column_keeps_its_name(name, tmp_path):
    target = str(tmp_path / "out.csv")
    write_column(target, name, np.array([1.5, 2.0]))
    assert column_names(target) == [name]
    assert read_column(target, name).tolist() == [1.5, 2.0]


@pytest.mark.parametrize("target", ["out.txt", "out.parquet", "nowhere/out.csv"])
def test_an_output_that_cannot_be_is_refused(target, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="the output must"):
        write_column(target, "x", np.zeros(2))


def test_a_matrix_goes_to_npy_only(tmp_path):
    with pytest.raises(ValueError, match=r"an array of 2 dimensions must go to an .npy file"):
        write_column(str(tmp_path / "out.csv"), "x", np.zeros((2, 2)))
