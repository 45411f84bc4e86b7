"""What an engine says of a failure may quote a row or a password: nothing of it reaches a user."""

import duckdb
import pytest

from psidp import Curator, ask
from psidp.errors import EngineError


def test_an_error_of_the_engine_is_reachable_from_nowhere(tmp_path):
    """Neither by its sentence nor as cause, context or local name of a frame."""
    connection = duckdb.connect()
    connection.execute("create table notes as select 1 as who, 'Bob, HIV positive' as note")
    connection.execute("create view costs as select who, cast(note as bigint) as cost from notes")
    path = tmp_path / "visits.parquet"
    path.write_text("Bob, HIV positive")
    attempts = [
        lambda: Curator(connection, "who", name="costs").ask(ask.sum("cost", 0, 1)).release(psi=1.0),
        lambda: Curator(path, "who"),
        lambda: Curator("visits", "who", engine="postgresql://ann:Bob@127.0.0.1:1/nowhere"),
    ]
    for attempt in attempts:
        with pytest.raises((EngineError, ValueError)) as refusal:
            attempt()
        error = refusal.value
        assert "Bob" not in str(error)
        assert error.__context__ is None
        assert error.__cause__ is None
        frame = error.__traceback__
        while frame is not None:
            held = [value for value in frame.tb_frame.f_locals.values() if isinstance(value, BaseException)]
            assert all(value is error for value in held)
            frame = frame.tb_next
