"""What many floors are tested on: the command line, SQLite files, a PostgreSQL server, a Spark session."""

import itertools
import sys

import pytest

import sparks
from postgres import Server, why_no_server
from psidp import Ledger
from psidp.cli import main, tables

_count = itertools.count()


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    reason = why_no_server()
    if reason:
        pytest.skip(f"PostgreSQL: {reason}")
    with Server() as running:
        yield running


@pytest.fixture
def sqlite_url(tmp_path):
    return str(tmp_path / "ledger.db")


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request):
    if request.param == "sqlite":
        return request.getfixturevalue("sqlite_url")
    return request.getfixturevalue("server").place(f"ledger_{next(_count)}")


@pytest.fixture
def ledger(url):
    made = Ledger(url, patience=20.0)
    yield made
    made.dispose()


@pytest.fixture
def survey(ledger):
    """A ledger with one budget of psi = 1."""
    ledger.open("survey", psi=1.0, kappa=1e-6, actor="Ann", purpose="the 2026 survey")
    return ledger


@pytest.fixture(scope="module")
def postgres(server):
    """A psycopg connection to a schema of its own, each statement a transaction."""
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(server.place(f"tables_{next(_count)}"), autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="session")
def spark():
    """A Spark session in this process."""
    reason = sparks.why_no_spark()
    if reason:
        pytest.skip(f"Spark: {reason}")
    session = sparks.session()
    yield session
    session.stop()


@pytest.fixture
def run(capsys, monkeypatch):
    """The command as a user would type it: exit code, standard output, standard error."""

    monkeypatch.setattr(tables.console, "_width", None)  # it keeps what COLUMNS was when it was made, in another test

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["psidp", *map(str, words)])
        try:
            main.main()
            code = 0
        except SystemExit as stop:
            code = stop.code or 0
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return call


@pytest.fixture
def psidp(run):
    """The same, by the command's name."""
    return run
