"""Every failure has a name; nothing is lost, and nothing is released."""

import json
import re
import sqlite3
import stat
import subprocess
import sys
import tempfile
import textwrap
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import event

import psidp
from ledger.proxy import CutWire
from psidp import Guarantee, Ledger
from psidp.ledger import schema

G = Guarantee(0.1)


def refused(ledger, error, match=""):
    """A spend that is refused by name, before its block."""
    drawn = []
    with pytest.raises(error, match=match) as caught, ledger.spend("survey", G, purpose="a test"):
        drawn.append("noise")
    assert not drawn
    return caught.value


def in_a_process(code, *arguments):
    """Lines of JSON that a process printed."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def until(happened):
    """Wait for what the server does in its own time; ten minutes of it mean never."""
    for _ in range(12_000):
        if happened():
            return
        time.sleep(0.05)


FULL_DISK = """
    import json, resource, sys, psidp
    path, room = sys.argv[1], int(sys.argv[2])
    ledger = psidp.Ledger(path)
    ledger.open("survey", psi=100.0, actor="Ann", purpose="a test")
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
    for number in range(200):
        try:
            with ledger.spend("survey", psidp.Guarantee(0.1), purpose="x" * 1000) as entry:
                print(json.dumps(["noise", entry.id]))
        except psidp.errors.LedgerError as error:
            print(json.dumps([type(error).__name__, str(error)]))
            break
"""


@pytest.mark.parametrize("room", [130_000, 200_000, 262_144])
def test_a_full_disk_is_refused_and_loses_nothing(sqlite_url, room):
    *noises, (name, sentence) = in_a_process(FULL_DISK, sqlite_url, room)
    assert name == "LedgerUnavailableError"
    assert re.search("disk", sentence)
    assert "nothing was released" in sentence
    ledger = Ledger(sqlite_url)
    spent = {e.id for e in ledger.entries() if e.state == "spent"}
    assert {number for _, number in noises} <= spent
    assert len(noises) > 1
    ledger.verify()
    with ledger.spend("survey", G, purpose="room again"):
        pass
    ledger.dispose()


READ_ONLY = """
    import json, os, sys, psidp
    elsewhere = psidp.Ledger(sys.argv[1] + "-elsewhere")  # so that everything is imported
    elsewhere.open("survey", psi=1.0, actor="Ann", purpose="a test")
    elsewhere.dispose()
    if os.geteuid() == 0:
        os.setgroups([]); os.setgid(65534); os.setuid(65534)
    ledger = psidp.Ledger(sys.argv[1], patience=1.0)
    try:
        with ledger.spend("survey", psidp.Guarantee(0.1), purpose="a test"):
            print(json.dumps(["noise", ""]))
    except psidp.errors.LedgerError as error:
        print(json.dumps([type(error).__name__, str(error)]))
"""


@pytest.mark.parametrize("folder_mode", [0o755, 0o777])
def test_a_read_only_file_is_refused(folder_mode):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        ledger = Ledger(path)
        ledger.open("survey", psi=1.0, actor="Ann", purpose="a test")
        ledger.dispose()
        path.chmod(stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH)
        Path(folder).chmod(folder_mode)
        [(name, sentence)] = in_a_process(READ_ONLY, path)
        Path(folder).chmod(0o755)
        assert name == "LedgerUnavailableError"
        assert re.search("read-only|readonly|no access", sentence)
        assert Ledger(path).verify().id == 1


def test_a_locked_file_is_refused_after_a_bounded_wait(sqlite_url):
    impatient = Ledger(sqlite_url, patience=0.3)
    impatient.open("survey", psi=1.0, actor="Ann", purpose="a test")
    other = sqlite3.connect(sqlite_url, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    refused(impatient, psidp.errors.LedgerBusyError, "Others have held the ledger .* for 0.3 s; nothing was spent")
    assert impatient.remaining("survey").psi == 1.0
    other.execute("ROLLBACK")
    other.close()
    with impatient.spend("survey", G, purpose="free again"):
        pass


def test_a_locked_server_is_refused_after_a_bounded_wait(server):
    import psycopg

    from psidp.ledger.store import LOCK

    url = server.place("locked")
    ledger = Ledger(url, patience=0.3)
    ledger.open("survey", psi=1.0, actor="Ann", purpose="a test")
    with psycopg.connect(url) as other:
        other.execute(f"SELECT pg_advisory_xact_lock({LOCK})")
        refused(ledger, psidp.errors.LedgerBusyError, "Others have held the ledger")
        assert ledger.remaining("survey").psi == 1.0
    with ledger.spend("survey", G, purpose="free again"):
        pass
    ledger.dispose()


@pytest.mark.parametrize("word", ["SELECT pg_advisory", "SELECT psidp_entries", "INSERT INTO", "COMMIT"])
def test_a_connection_lost_before_any_statement_of_a_spend_loses_nothing(server, word):
    url = server.place(f"lost_{abs(hash(word))}")
    ledger = Ledger(url)
    ledger.open("survey", psi=1.0, actor="Ann", purpose="a test")
    head = ledger.head()
    told = []

    def kill(connection, cursor, statement, *_):
        if statement.startswith(word) and not told:
            told.append(statement)
            server.execute(f"SELECT pg_terminate_backend({connection.connection.driver_connection.info.backend_pid})")

    event.listen(ledger._store.engine, "before_cursor_execute", kill)
    refused(ledger, psidp.errors.LedgerUnavailableError, "nothing was released")
    assert told
    assert ledger.verify(head) == head
    with ledger.spend("survey", G, purpose="connected again"):
        pass
    ledger.dispose()


def test_a_connection_lost_while_committing_releases_nothing_whether_written_or_not(server):
    url = server.place("wire")
    ledger = Ledger(url)
    ledger.open("survey", psi=1.0, actor="Ann", purpose="a test")
    wire = CutWire(server.port, b"COMMIT\0")
    far = Ledger(url.replace(f":{server.port}/", f":{wire.port}/"))
    assert far.remaining("survey").psi == 1.0
    wire.armed = True
    error = refused(far, psidp.errors.LedgerUnavailableError, "it is not known whether the entry was written")
    assert "not-a-secret-42" not in str(error)
    until(lambda: ledger.head().id == 2)
    assert ledger.verify().id == 2, "the server had heard the COMMIT: the spend stays, and nothing was released for it"
    wire.close()
    ledger.dispose()


def test_a_server_that_is_not_there_is_refused_without_its_password():
    ledger = Ledger("postgresql://ann:s3cret-pass@127.0.0.1:9/privacy?sslpassword=s3cret-pass", patience=1.0)
    with pytest.raises(psidp.errors.LedgerUnavailableError) as caught:
        ledger.remaining("survey")
    text = f"{caught.value!s} {caught.value!r} {ledger!r} {ledger._store.address!r}"
    assert "s3cret-pass" not in text
    assert caught.value.__suppress_context__


def test_a_clock_that_runs_backwards_is_refused(ledger, url):
    now = [datetime(2026, 6, 1, 12, tzinfo=UTC)]
    ledger = Ledger(url, clock=lambda: now[0])
    ledger.open("survey", psi=1.0, actor="Ann", purpose="a test")
    now[0] -= timedelta(hours=2)
    refused(ledger, psidp.errors.ClockError, r"the clock is 2:00:00 behind; nothing was spent")
    assert ledger.verify().id == 1
    ledger.dispose()


@pytest.mark.parametrize(
    "content", [b"hello, this is a text file and no database" * 100, b"\0" * 8192, b"SQLite format 3\0junk"]
)
def test_a_file_that_is_not_a_database_is_refused_and_left_alone(tmp_path, content):
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    for attempt in (lambda x: x.budgets(), lambda x: x.open("survey", psi=1.0, actor="Ann", purpose="a test")):
        with pytest.raises((psidp.errors.NotALedgerError, psidp.errors.TamperedLedgerError), match=r"notes.txt"):
            attempt(Ledger(path))
    assert path.read_bytes() == content


def test_somebody_elses_database_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE patients (name TEXT)")
    other.close()
    with pytest.raises(psidp.errors.NotALedgerError, match="tables of others"):
        Ledger(path).open("survey", psi=1.0, actor="Ann", purpose="a test")


def test_where_there_is_nothing_reading_creates_nothing(tmp_path):
    path = tmp_path / "typo.db"
    with pytest.raises(psidp.errors.NotALedgerError, match="there is no ledger at"):
        Ledger(path).remaining("survey")
    assert not path.exists()


def test_a_ledger_from_a_newer_version_is_refused(survey, url, monkeypatch):
    survey._store.write(lambda c: c.exec_driver_sql("INSERT INTO psidp_ledger VALUES (7, 'x', 'tomorrow')"))
    with pytest.raises(psidp.errors.NewerLedgerError, match="has version 7; this psidp knows versions up to 3"):
        Ledger(url).remaining("survey")


def test_an_older_ledger_is_brought_forward_in_one_transaction(survey, url, monkeypatch):
    head = survey.head()
    survey.dispose()
    original, newest = schema.statements, schema.VERSION + 1

    def steps(version, dialect):
        added = ["CREATE TABLE psidp_more (x INTEGER)", second[0]]
        yield from original(version, dialect) if version < newest else added

    second = ["SELECT no_such_function_at_all()"]
    monkeypatch.setattr(schema, "VERSION", newest)
    monkeypatch.setattr(schema, "statements", steps)
    older = Ledger(url)
    assert older.remaining("survey").psi == 1.0, "reading needs no new version"
    with pytest.raises(psidp.errors.LedgerUnavailableError, match="owns the database brings it forward once"):
        older.open("second", psi=1.0, purpose="a test")
    older.dispose()
    second[0] = "CREATE INDEX psidp_more_x ON psidp_more (x)"
    newer = Ledger(url)
    assert newer.verify(head) == head
    newer.open("second", psi=1.0, purpose="a test")
    assert newer.verify(head).id == 2
    assert newer._store.read(lambda c: schema.version_of(c, "")) == newest
    newer.dispose()


@pytest.mark.parametrize(
    "url", ["", ":memory:", "sqlite://", "sqlite:///", "sqlite:///:memory:", "mysql://u:pw-pw@h/d", "://pw-pw"]
)
def test_an_address_that_cannot_be_is_refused_without_repeating_a_secret(url):
    with pytest.raises(ValueError, match="ledger") as caught:
        Ledger(url)
    assert "pw-pw" not in str(caught.value)


def test_a_missing_driver_names_the_line_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(psidp.errors.MissingExtraError, match=r"pip install 'psidp\[postgres\]'"):
        Ledger("postgresql://ann@127.0.0.1/privacy")


def test_a_server_that_does_not_sync_is_refused(server):
    url = server.place("unsafe")
    server.execute("ALTER SYSTEM SET fsync = off")
    server.execute("SELECT pg_reload_conf()")
    try:
        until(lambda: server.execute("SHOW fsync") == [("off",)])
        with pytest.raises(psidp.errors.LedgerUnavailableError, match="fsync = on"):
            Ledger(url).open("survey", psi=1.0, actor="Ann", purpose="a test")
    finally:
        server.execute("ALTER SYSTEM RESET fsync")
        server.execute("SELECT pg_reload_conf()")
        until(lambda: server.execute("SHOW fsync") == [("on",)])


def test_a_failure_to_note_a_failure_does_not_hide_the_error(survey, monkeypatch):
    def trouble(_):
        raise psidp.errors.LedgerUnavailableError("the disk is full")

    with pytest.raises(KeyError) as caught, survey.spend("survey", G, purpose="a test") as entry:
        raise KeyError(monkeypatch.setattr(entry.access, "write", trouble))
    assert "stays spent" in caught.value.__notes__[0]


@pytest.mark.parametrize("patience", [-1.0, float("nan"), float("inf")])
def test_patience_ends(sqlite_url, patience):
    with pytest.raises(ValueError, match="patience"):
        Ledger(sqlite_url, patience=patience)


def test_a_role_that_may_read_and_insert_is_enough_to_spend(server):
    url = server.place("roles")
    Ledger(url).open("survey", psi=1.0, actor="Ann", purpose="a test")
    server.execute("CREATE ROLE spender LOGIN")
    server.execute("GRANT USAGE ON SCHEMA roles TO spender")
    server.execute("GRANT SELECT, INSERT ON roles.psidp_entries TO spender")
    server.execute("GRANT SELECT ON roles.psidp_ledger TO spender")
    ledger = Ledger(url.replace("psidp:not-a-secret-42@", "spender@"))
    with ledger.spend("survey", G, purpose="a test"):
        pass
    with pytest.raises(psidp.errors.LedgerUnavailableError, match="no access"):
        ledger._store.write(lambda c: c.exec_driver_sql("DELETE FROM psidp_entries"))
    server.execute("REVOKE INSERT ON roles.psidp_entries FROM spender")
    refused(ledger, psidp.errors.LedgerUnavailableError, "no access")
    assert ledger.verify().id == 2
    ledger.dispose()
