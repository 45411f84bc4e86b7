"""Where the database has roles, names are logins: nobody spends or approves under another name, or past a limit."""

import psycopg
import pytest

import psidp
from psidp import Guarantee, Ledger
from psidp.ledger import schema
from psidp.ledger.entry import INSERT, Entry

G = Guarantee(0.5)
DENIED = psidp.errors.LedgerUnavailableError


@pytest.fixture(scope="module")
def people(server):
    """Ledgers of an officer, two analysts and an auditor, on a server that its owner has given roles."""
    url = server.place("officers")
    owner = Ledger(url)
    owner.open("survey", psi=2.0, purpose="before there were roles", actor="Ann")
    run(server, "psidp", schema.roles())
    run(server, "psidp", schema.roles())  # twice does no harm
    found = {"owner": owner}
    for name, role in (("ann", "officer"), ("dee", "officer"), ("bob", "analyst"), ("cem", "auditor")):
        server.execute(f"CREATE ROLE {name} LOGIN")
        server.execute(f"GRANT psidp_{role} TO {name}")
        found[name] = Ledger(url.replace("psidp:not-a-secret-42", name))
    found["ann"].limit("survey", 0.3, purpose="large ones are looked at")
    yield found
    for ledger in found.values():
        ledger.dispose()


def run(server, login, statements, *values):
    """Statements of somebody who does not go through psidp."""
    where = {"host": "127.0.0.1", "port": server.port, "user": login, "dbname": "postgres"}
    with psycopg.connect(**where, options="-csearch_path=officers", autocommit=True) as connection:
        connection.execute(statements, *values)


def spend(ledger, guarantee=G, **terms):
    with ledger.spend("survey", guarantee, **{"purpose": "a release"} | terms) as entry:
        return entry.entry


def forged(ledger, **changes):
    """The next row of the table, with a hash that fits, as an analyst could write it by hand."""
    last = ledger._read(lambda log: log.last())
    fresh = {"id": last.id + 1, "previous": last.hash, "key": "", "request": "", "answer": ""}
    columns = last.to_dict() | fresh | changes
    columns.pop("hash")
    return Entry.sealed(**columns).row()


def test_the_actor_is_the_login_and_no_other_name(people):
    assert people["bob"].actor == "bob"
    assert spend(people["bob"], Guarantee(0.1)).details()["by"] == "bob"
    with pytest.raises(DENIED, match="the actor must be the login bob, got ann"):
        spend(people["bob"], Guarantee(0.1), actor="ann")
    people["cem"].verify()


def test_an_auditor_reads_everything_and_writes_nothing(people):
    assert people["cem"].report("survey").above == 0.3
    assert people["cem"].list(size=5)
    with pytest.raises(DENIED, match="permission denied"):
        spend(people["cem"], Guarantee(0.1))


@pytest.mark.parametrize(
    "change",
    [
        lambda ledger: ledger.open("mine", psi=9.0, purpose="q"),
        lambda ledger: ledger.raise_to("survey", psi=9.0, purpose="q"),
        lambda ledger: ledger.reset("survey", purpose="q"),
        lambda ledger: ledger.limit("survey", None, purpose="q"),
        lambda ledger: ledger.pause("survey", purpose="q"),
        lambda ledger: ledger.close("survey", purpose="q"),
        lambda ledger: ledger.split("survey", {"a": 1, "b": 1}, purpose="q"),
    ],
)
def test_only_an_officer_changes_a_budget(people, change):
    head = people["bob"].head()
    with pytest.raises(DENIED, match="only an officer"):
        change(people["bob"])
    assert people["bob"].head() == head


def test_a_large_spend_needs_an_officer_and_an_officers_own_another_one(people):
    request = people["bob"].request("survey", G, purpose="a release")
    with pytest.raises(ValueError, match="somebody else"):
        people["bob"].approve(request.id, purpose="my own")
    with pytest.raises(DENIED, match="the actor must be the login bob, got ann"):
        people["bob"].approve(request.id, purpose="my own", actor="ann")
    people["ann"].approve(request.id, purpose="agreed")
    assert spend(people["bob"]).psi == 0.5
    own = people["ann"].request("survey", Guarantee(0.6), purpose="mine")
    with pytest.raises(ValueError, match="somebody else"):
        people["ann"].approve(own.id, purpose="my own")
    people["dee"].approve(own.id, purpose="agreed")
    assert spend(people["ann"], Guarantee(0.6), purpose="mine").psi == 0.6
    people["owner"].verify()


def test_who_asks_may_withdraw_and_nobody_else_but_an_officer(people):
    request = people["bob"].request("survey", G, purpose="a mistake")
    people["bob"].deny(request.id, purpose="I withdraw it")
    other = people["ann"].request("survey", G, purpose="the officer's")
    with pytest.raises(DENIED, match="only an officer"):
        people["bob"].deny(other.id, purpose="out of spite")
    people["ann"].deny(other.id, purpose="not needed")


def test_rows_written_by_hand_are_held_to_the_same_rules(people, server):
    bob, spent = people["bob"], '{"by":"bob","kind":"guarantee"}'
    insert = INSERT["postgresql"]
    now = bob._read(lambda log: log.stamp())
    plain = {"state": "spent", "event": spent, "time": now, "refers": 0, "partition": "", "purpose": "by hand"}
    for changes, why in (
        ({"psi": 0.5}, "needs an approval"),
        ({"psi": 0.5, "refers": 4}, "needs an approval"),
        ({"psi": 0.1, "event": '{"by":"ann","kind":"guarantee"}'}, "must be the login"),
        ({"psi": 0.1, "event": '{"kind":"guarantee"}'}, "must be the login"),
        ({"psi": 0.1, "time": "2020-01-01T00:00:00.000000Z"}, "time of now"),
        ({"psi": 0.1, "id": 99}, "follow the last one"),
        ({"psi": 0.1, "previous": "0" * 64}, "follow the last one"),
        ({"psi": 0.0, "state": "limited", "event": '{"above":null,"by":"bob","kind":"limited"}'}, "only an officer"),
        ({"psi": 0.0, "state": "approved", "event": '{"by":"bob","kind":"approved"}', "refers": 3}, "somebody else"),
    ):
        with pytest.raises(psycopg.Error, match=why):
            run(server, "bob", insert, forged(bob, **plain | changes))
    for statement in (
        "UPDATE psidp_entries SET psi = 0", "DELETE FROM psidp_entries", "TRUNCATE psidp_entries",
        "ALTER TABLE psidp_entries DISABLE TRIGGER ALL", "DROP TRIGGER psidp_entries_who ON psidp_entries",
        "UPDATE psidp_ledger SET version = 1", "SET SESSION AUTHORIZATION ann",
    ):  # fmt: skip
        with pytest.raises(psycopg.Error, match=r"permission|owner"):
            run(server, "bob", statement)
    people["cem"].verify()


def test_a_false_table_before_the_true_one_deceives_nobody(people, server):
    """The guard reads the ledger's own table, whatever the writer's search path finds first."""
    bob = people["bob"]
    row = forged(
        bob, state="spent", event='{"by":"bob","kind":"guarantee"}', psi=0.5, refers=1, purpose="a trick", partition="",
        time=bob._read(lambda log: log.stamp()),
    )  # fmt: skip
    where = {"host": "127.0.0.1", "port": server.port, "user": "bob", "dbname": "postgres"}
    with psycopg.connect(**where, autocommit=True) as connection:
        connection.execute("CREATE TEMP TABLE psidp_entries AS SELECT * FROM officers.psidp_entries")
        connection.execute('UPDATE pg_temp.psidp_entries SET event = \'{"above":9,"by":"ann","kind":"limited"}\'')
        insert = INSERT["postgresql"].replace("INTO psidp_entries", "INTO officers.psidp_entries")
        with pytest.raises(psycopg.Error, match="needs an approval"):
            connection.execute(insert, row)
