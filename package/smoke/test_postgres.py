"""A server of PostgreSQL: a ledger on it, and the same integers as DuckDB."""

import sys
from pathlib import Path

import pytest

import psidp
from psidp import ask
from psidp.cli.demo_data import WARDS, visits

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests"))

from postgres import Server


@pytest.fixture(scope="module")
def server():
    with Server() as running:
        yield running


def test_a_ledger_lives_there(server):
    ledger = psidp.Ledger(server.place("ledger"))
    ledger.open("survey", psi=1.0, actor="Ann", purpose="a try")
    with ledger.spend("survey", psidp.Guarantee(0.5), purpose="a count"):
        pass
    ledger.verify()
    assert ledger.report("survey").spent.psi == 0.5
    ledger.dispose()


def test_counts_are_those_of_the_table(server):
    import psycopg

    url = server.place("clinic")
    with psycopg.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE visits (patient_id text, ward text, age bigint)")
        cursor.executemany("INSERT INTO visits VALUES (%s, %s, %s)", [(r[0], r[1], r[3]) for r in visits()])
    curator = psidp.Curator("visits", unit="patient_id", engine=url)
    answer = curator.ask(ask.count(), by="ward", groups=list(WARDS), contribution=10_000).release(psi=1e6)
    for row in answer:
        assert round(row["value"]) == sum(r[1] == row["ward"] for r in visits())
