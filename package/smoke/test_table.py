"""Private statistics from files and frames, on DuckDB."""

import csv
import json

import pytest

import psidp
from psidp import ask
from psidp.cli.demo_data import WARDS, visits

COLUMNS = ("patient_id", "ward", "diagnosis", "age", "cost", "loaded_at")
ROWS = visits()


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "visits.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([COLUMNS, *ROWS])
    return path


def truth(ward):
    return sum(row[1] == ward for row in ROWS)


def counts(curator):
    """By ward, with noise far below one half and nobody clipped."""
    answer = curator.ask(ask.count(), by="ward", groups=list(WARDS), contribution=10_000).release(psi=1e6)
    return {row["ward"]: round(row["value"]) for row in answer}


@pytest.mark.parametrize("source", ["file", "pandas", "arrow", "parquet"])
def test_counts_are_those_of_the_table(table, source, tmp_path):
    import pandas
    import pyarrow
    from pyarrow import parquet

    frame = pandas.read_csv(table)
    arrow = pyarrow.Table.from_pandas(frame, preserve_index=False)
    parquet.write_table(arrow, tmp_path / "visits.parquet")
    given = {"file": table, "pandas": frame, "arrow": arrow, "parquet": tmp_path / "visits.parquet"}[source]
    assert counts(psidp.Curator(given, unit="patient_id")) == {ward: truth(ward) for ward in WARDS}


def test_every_aggregate_answers(table):
    curator = psidp.Curator(table, unit="patient_id")
    asked = [ask.count(), ask.units(), ask.sum("cost", 0, 5000), ask.mean("cost", 0, 5000), ask.variance("age", 0, 110),
             ask.histogram("age", range(0, 111, 10)), ask.quantiles("age", range(0, 111, 2)),
             ask.mean("age", bounds="auto")]  # fmt: skip
    question = curator.ask(*asked, contribution="auto", where="age >= 18 AND ward <> 'surgery'")
    answer = question.release(psi=5.0)
    assert len(answer.frame()) >= 8
    assert "psi = 5" in answer.summary()


def test_many_tables_agree(table):
    columns = {"ward": list(WARDS), "age": ask.ordered([0, 18, 65, 110])}
    cube = psidp.Curator(table, unit="patient_id").cube(columns, ask.up_to(2), contribution=8).release(psi=1.0)
    assert psidp.Cube.from_dict(json.loads(cube.to_json())).guarantee.psi == 1.0


def test_a_series_goes_on_and_a_budget_pays(table, tmp_path):
    ledger = psidp.Ledger(tmp_path / "ledger.db")
    ledger.open("survey", psi=1.0, unit="patient", actor="the clinic", purpose="a try")
    curator = psidp.Curator(table, unit="patient_id", ledger=ledger, budget="survey")
    question = curator.stream("new patients", ask.units(), every="month", since="2025-01-01", periods=12,
                              cap=ask.cap(at_most=1), arrived="loaded_at")  # fmt: skip
    stream = question.open(psi=0.3, purpose="new patients by month")
    assert len(stream.publish()) == 12
    assert ledger.report("survey").spent.psi == 0.3
    ledger.verify()
    ledger.dispose()
