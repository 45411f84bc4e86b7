"""Spark in this process."""

import pyarrow
import pytest
from pyarrow import parquet

import psidp
from psidp import ask
from psidp.cli.demo_data import WARDS, visits


@pytest.fixture
def session(monkeypatch):
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--conf spark.ui.enabled=false pyspark-shell")
    yield
    from pyspark.sql import SparkSession

    SparkSession.getActiveSession().stop()


@pytest.mark.usefixtures("session")
def test_counts_are_those_of_the_table(tmp_path):
    rows = visits()
    table = pyarrow.table({"patient_id": [r[0] for r in rows], "ward": [r[1] for r in rows]})
    parquet.write_table(table, tmp_path / "visits.parquet")
    curator = psidp.Curator(tmp_path / "visits.parquet", unit="patient_id", engine="spark://local")
    answer = curator.ask(ask.count(), by="ward", groups=list(WARDS), contribution=10_000).release(psi=1e6)
    for row in answer:
        assert round(row["value"]) == sum(r[1] == row["ward"] for r in rows)
