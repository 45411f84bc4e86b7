"""Ledgers to test on: a SQLite file each, and one PostgreSQL server for the session with a schema each."""

import itertools
import os

import pytest

from psidp import Ledger
from release.server import Server, why_no_server

_count = itertools.count()


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    reason = why_no_server()
    if reason and os.environ.get("CI") == "true":
        pytest.fail(f"PostgreSQL is needed: {reason}")
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
    ledger.open("survey", psi=1.0, kappa=1e-6, by="Ann", purpose="the 2026 survey")
    return ledger
