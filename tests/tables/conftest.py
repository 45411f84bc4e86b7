"""Connections of a user's own to the engines, as `Curator(connection, ..., name=...)` takes them."""

import itertools

import pytest

import sparks

_count = itertools.count()


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
