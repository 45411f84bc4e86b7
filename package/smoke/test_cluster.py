"""A standalone cluster of two workers: the demo's question has DuckDB's integers; a thousand files are one table."""

import sys
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

import psidp
from psidp import ask
from psidp.cli.demo_data import WARDS, visits

sys.path.append(str(Path(__file__).resolve().parents[2]))

from package.cluster import Cluster

COLUMNS = ("patient_id", "ward", "diagnosis", "age", "cost", "loaded_at")
FILES = 1000
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "700m",
    "spark.sql.shuffle.partitions": "4",
    "spark.log.level": "ERROR",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Its session, which psidp finds by itself, is set up as an administrator would: in spark-defaults.conf."""
    from pyspark.sql import SparkSession

    folder = tmp_path_factory.mktemp("conf")
    (folder / "spark-defaults.conf").write_text("".join(f"{name} {value}\n" for name, value in SETTINGS.items()))
    with Cluster(workers=2) as running, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_CONF_DIR", str(folder))
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        yield running
        session = SparkSession.getActiveSession()
        if session is not None:
            session.stop()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The demo's visits as one file."""
    path = tmp_path_factory.mktemp("whole") / "visits.parquet"
    parquet.write_table(arrow(), path)
    return path


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """The same as a thousand files in a folder for each month and ward."""
    folder, table = tmp_path_factory.mktemp("parts"), arrow()
    for number in range(FILES):
        ward = folder / f"month={number % 12 + 1}" / f"part={number % 7}"
        ward.mkdir(parents=True, exist_ok=True)
        parquet.write_table(table.take(list(range(number, table.num_rows, FILES))), ward / f"part-{number:04d}.parquet")
    return folder


def arrow():
    rows = visits()
    return pyarrow.table({name: [row[i] for row in rows] for i, name in enumerate(COLUMNS)})


def totals(table):
    """The demo's first question as exact integers: count and clipped costs by ward, at most 4 visits' worth each."""
    asks = (ask.count(), ask.sum("cost", 0, 5000))
    priced = table.ask(*asks, by="ward", groups=list(WARDS), contribution=4).at(1.0)
    exact = priced.totals.exact(priced.source, priced.dialect)
    return [cells.tolist() for tables in exact.cells for cells in tables.values()]


def test_two_workers_answer_with_the_integers_of_duckdb(cluster, whole):
    from pyspark.sql import SparkSession

    there = psidp.Curator(whole, unit="patient_id", engine=cluster.address)
    context = SparkSession.active().sparkContext
    assert context.master == cluster.address
    assert totals(there) == totals(psidp.Curator(whole, unit="patient_id"))
    known = context._jsc.sc().getExecutorMemoryStatus().size()
    assert known == 3  # the driver and an executor on each worker


def test_a_thousand_files_are_one_table(cluster, whole, parts):
    assert sum(1 for _ in parts.rglob("*.parquet")) == FILES
    there = psidp.Curator(parts, unit="patient_id", engine=cluster.address)
    here = [psidp.Curator(table, unit="patient_id") for table in (parts, whole)]
    assert totals(there) == totals(here[0]) == totals(here[1])


def test_a_release_from_the_cluster_is_near_the_truth(cluster, parts):
    curator = psidp.Curator(parts, unit="patient_id", engine=cluster.address)
    answer = curator.ask(ask.count(), by="ward", groups=list(WARDS), contribution=10_000).release(psi=1e6)
    for row in answer:
        assert round(row["value"]) == sum(r[1] == row["ward"] for r in visits())


def test_a_session_of_ones_own_is_taken_too(cluster, parts):
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master(cluster.address).getOrCreate()
    session.read.option("recursiveFileLookup", "true").parquet(str(parts)).createOrReplaceTempView("visits")
    answer = psidp.Curator(session, unit="patient_id", name="visits").ask(ask.units()).release(psi=1e6)
    assert round(answer.value("units")) == len({row[0] for row in visits()})
