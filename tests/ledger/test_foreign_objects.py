"""Nothing that others hang on the ledger's tables changes what is written: it is refused, and a spend is read back."""

import sqlite3
import stat

import psycopg
import pytest
from sqlalchemy.engine import make_url

import psidp
from psidp import Guarantee, Ledger

G = Guarantee(0.1)
CHEAPER = "UPDATE psidp_entries SET psi = 0 WHERE id = NEW.id"
ON_SQLITE = {
    "a trigger 'cheap'": f"CREATE TRIGGER cheap AFTER INSERT ON psidp_entries BEGIN {CHEAPER}; END",
    "a trigger 'quiet'": "CREATE TRIGGER quiet BEFORE INSERT ON psidp_entries BEGIN SELECT RAISE(IGNORE); END",
    "a trigger 'lies'": "CREATE TRIGGER lies AFTER INSERT ON psidp_ledger BEGIN SELECT 1; END",
    "a trigger 'psidp_entries_keep'": "DROP TRIGGER psidp_entries_keep; CREATE TRIGGER psidp_entries_keep "
    f"AFTER INSERT ON psidp_entries BEGIN {CHEAPER}; END",
    "other columns in psidp_entries": "ALTER TABLE psidp_entries ADD COLUMN more TEXT DEFAULT 'x'",
}
FUNCTION = "CREATE FUNCTION other() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.psi := 0; RETURN NEW; END $$;"
ON_SERVER = {
    "a trigger 'cheap'": f"{FUNCTION} CREATE TRIGGER cheap BEFORE INSERT ON psidp_entries FOR EACH ROW "
    "EXECUTE FUNCTION other()",
    "a trigger 'psidp_entries_keep'": "CREATE OR REPLACE FUNCTION psidp_entries_keep() RETURNS trigger "
    "LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$",
    "a rule 'quiet'": "CREATE RULE quiet AS ON INSERT TO psidp_entries DO INSTEAD NOTHING",
    "a policy 'few'": "CREATE POLICY few ON psidp_entries USING (id < 3)",
    "a default of column 'refers'": "ALTER TABLE psidp_entries ALTER refers SET DEFAULT 7",
    "a table that inherits 'more'": "CREATE TABLE more () INHERITS (psidp_entries)",
    "a table of another kind 'psidp_entries'": "ALTER TABLE psidp_entries RENAME TO kept; "
    "CREATE VIEW psidp_entries AS SELECT * FROM kept",
}


def spend(ledger):
    with ledger.spend("survey", G, purpose="q"):
        pass


@pytest.mark.parametrize("found", ON_SQLITE)
def test_a_file_with_a_foreign_trigger_or_column_is_refused_at_opening(sqlite_url, found):
    with Ledger(sqlite_url) as ledger:
        ledger.open("survey", psi=1.0, purpose="a test")
    with sqlite3.connect(sqlite_url) as stranger:
        stranger.executescript(ON_SQLITE[found])
    stranger.close()
    for use in (spend, Ledger.verify, lambda ledger: ledger.remaining("survey")):
        with Ledger(sqlite_url) as again, pytest.raises(psidp.errors.TamperedLedgerError, match=found):
            use(again)


def test_a_server_with_a_foreign_trigger_rule_policy_default_or_table_is_refused_at_opening(server):
    for number, (found, statement) in enumerate(ON_SERVER.items()):
        url = server.place(f"foreign_{number}")
        with Ledger(url) as ledger:
            ledger.open("survey", psi=1.0, purpose="a test")
        psql(server, f"foreign_{number}", statement)
        for use in (spend, Ledger.verify):
            with Ledger(url) as again, pytest.raises(psidp.errors.TamperedLedgerError, match=found):
                use(again)


def test_a_spend_that_a_trigger_changes_later_is_read_back_and_not_committed(ledger, url, request):
    """The process has looked at the tables already."""
    ledger.open("survey", psi=1.0, purpose="a test")
    spend(ledger)
    head, drawn = ledger.head(), []
    if "://" in url:
        place = f"{make_url(url).query['options']}".partition("=")[2]
        psql(request.getfixturevalue("server"), place, ON_SERVER["a trigger 'cheap'"])
    else:
        with sqlite3.connect(url) as stranger:
            stranger.executescript("DROP TRIGGER psidp_entries_keep;" + ON_SQLITE["a trigger 'cheap'"])
        stranger.close()
    with (
        pytest.raises(psidp.errors.TamperedLedgerError, match="row that was written"),
        ledger.spend("survey", G, purpose="q"),
    ):
        drawn.append(1)
    assert not drawn
    assert list(ledger.entries())[-1].hash == head.hash


def psql(server, schema, statement):
    where = {"host": "127.0.0.1", "port": server.port, "user": "psidp", "dbname": "postgres"}
    with psycopg.connect(**where, options=f"-csearch_path={schema}", autocommit=True) as connection:
        connection.execute(statement)


def test_a_ledger_its_log_and_what_is_written_of_it_are_for_their_owner_alone(tmp_path, run):
    folder = tmp_path / "shared"
    folder.mkdir(mode=0o755)
    ledger = Ledger(folder / "ledger.db")
    ledger.open("survey", psi=1.0, purpose="a test")
    spend(ledger)
    ledger.verify(kept=folder / "kept", key=folder / "key")
    assert run("ledger", "export", folder / "ledger.db", "-o", folder / "export.jsonl")[0] == 0
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}
    assert modes == dict.fromkeys(["ledger.db", "ledger.db-wal", "ledger.db-shm", "kept", "key", "export.jsonl"], 0o600)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755
    ledger.dispose()


def test_a_ledger_that_is_there_keeps_the_mode_that_its_owner_gave_it(tmp_path):
    path = tmp_path / "ledger.db"
    with Ledger(path) as ledger:
        ledger.open("survey", psi=1.0, purpose="a test")
    path.chmod(0o640)
    with Ledger(path) as ledger:
        spend(ledger)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
