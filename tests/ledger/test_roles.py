"""Where the database has roles, names are logins: nobody spends or approves under another name, or past a limit."""

import re
from random import Random
from typing import get_args

import psycopg
import pytest

import psidp
from fuzz import forgeries
from psidp import Guarantee, Ledger
from psidp.ledger import schema
from psidp.ledger.entry import INSERT, Entry, State

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
        login(server, name, role)
        found[name] = Ledger(url.replace("psidp:not-a-secret-42", name))
    found["ann"].limit("survey", 0.3, purpose="large ones are looked at")
    yield found
    for ledger in found.values():
        ledger.dispose()


def login(server, name, role):
    """A login with a role, where another test has not made it."""
    if not server.execute(f"SELECT 1 FROM pg_roles WHERE rolname = '{name}'"):
        server.execute(f"CREATE ROLE {name} LOGIN")
    server.execute(f"GRANT psidp_{role} TO {name}")


def run(server, login, statements, *values, schema="officers"):
    """Statements of somebody who does not go through psidp."""
    where = {"host": "127.0.0.1", "port": server.port, "user": login, "dbname": "postgres"}
    with psycopg.connect(**where, options=f"-csearch_path={schema}", autocommit=True) as connection:
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


@pytest.fixture(scope="module")
def attacked(server):
    """A ledger with something of everything, whose owner gave it roles; and bob, an analyst."""
    url = server.place("attacked")
    with Ledger(url) as owner:
        forgeries.scene(owner, Random(1))
        run(server, "psidp", schema.roles(), schema="attacked")
        login(server, "bob", "analyst")
        yield owner


def written_by_bob(server, book, make):
    """What bob writes by hand: why the server refuses it, or why verify names it; then it is taken away."""
    head, entry = book.verify(), make(forgeries.Forger(book, "bob", Random(1)))
    try:
        run(server, "bob", INSERT["postgresql"], entry.row(), schema="attacked")
    except psycopg.Error as refusal:
        return f"refused: {refusal}"
    try:
        named = book.verify().not_recomputed
    except psidp.errors.TamperedLedgerError as refusal:
        named = (refusal.entry,)
    finally:
        table = "ALTER TABLE psidp_entries {} TRIGGER ALL"
        delete = f"DELETE FROM psidp_entries WHERE id > {head.id}"
        for statement in (table.format("DISABLE"), delete, table.format("ENABLE")):
            run(server, "psidp", statement, schema="attacked")
    assert named == (entry.id,)
    return f"named: {named}"


def test_whatever_an_analyst_writes_falsely_with_sql_is_refused_by_the_server_or_named_by_verify(server, attacked):
    for words, make in forgeries.FALSE:
        assert written_by_bob(server, attacked, make), words
    attacked.verify()


def test_the_server_refuses_an_analyst_every_kind_of_entry_that_is_not_his(server, attacked):
    assert {state for state, _ in forgeries.FORBIDDEN} == set(get_args(State))
    for state, make in forgeries.FORBIDDEN:
        assert written_by_bob(server, attacked, make).startswith("refused: "), state


def test_a_monthly_budget_cannot_be_renewed_twice_nor_anothers_spend_answered(server, attacked):
    for make, why in (
        (lambda f: f.renewal("monthly", f.later()), "a renewal must begin the period of now"),
        (lambda f: f.note("answered", f.first("spent", by="ann")), "only who spent may say what became of it"),
        (lambda f: f.note("withheld", f.first("spent", by="ann")), "only who spent may say what became of it"),
    ):
        assert why in written_by_bob(server, attacked, make)


def test_an_analyst_does_what_he_may_under_the_guards(server, attacked):
    bob = Ledger(attacked._access.store.address.url.set(username="bob").render_as_string().replace("***", ""))
    with bob.spend("survey", Guarantee(0.1), purpose="q", retry_key="new", request="q") as entry:
        assert entry.answer(lambda: 1.5) == 1.5
    with pytest.raises(KeyError), bob.spend("survey", Guarantee(0.1), purpose="q"):
        raise KeyError
    run_of_bob = psidp.DPSGD(noise_multiplier=9.0, sampling_rate=0.01, steps=10)
    with bob.spend("survey", run_of_bob, kappa=1e-10, purpose="a model") as entry:
        pass
    bob.record_usage(entry.entry, 5)
    bob.dispose()
    attacked.verify()


def test_guards_of_an_older_psidp_are_refused_for_writing_until_the_owner_updates_them(server, attacked):
    ours = server.execute("SELECT pg_get_functiondef('attacked.psidp_entries_who'::regproc)")[0][0]
    run(server, "psidp", re.sub(r"BEGIN\n", "BEGIN RETURN NEW;\n", ours, count=1), schema="attacked")
    with Ledger(attacked._access.store.address.url.render_as_string(hide_password=False)) as again:
        again.verify()
        with pytest.raises(DENIED, match=re.escape("psidp ledger roles | psql")):
            again.raise_to("survey", psi=9.0, purpose="q")
        run(server, "psidp", schema.roles(), schema="attacked")
        again.raise_to("survey", psi=9.0, kappa=1e-6, purpose="q", actor="psidp")


def test_a_ledger_of_version_2_brings_its_guards_forward_with_itself(server):
    url = server.place("older")
    with Ledger(url) as owner:
        owner.open("survey", psi=2.0, purpose="a test")
    for statement in (schema.roles(), "DROP INDEX psidp_entries_notes", "DELETE FROM psidp_ledger WHERE version > 2",
                      "CREATE OR REPLACE FUNCTION psidp_entries_who() RETURNS trigger LANGUAGE plpgsql AS "
                      "$$ BEGIN RETURN NEW; END $$"):  # fmt: skip
        run(server, "psidp", statement, schema="older")
    login(server, "bob", "analyst")
    bob = Ledger(url.replace("psidp:not-a-secret-42", "bob"))
    assert bob.verify().id == 1
    with pytest.raises(DENIED, match="Whoever owns the database brings it forward once"):
        spend(bob, Guarantee(0.1))
    with Ledger(url) as owner:
        owner.limit("survey", 0.3, purpose="from now on")
    assert spend(bob, Guarantee(0.1)).details()["by"] == "bob"
    with pytest.raises(psycopg.Error, match="must be the login"):
        run(
            server,
            "bob",
            INSERT["postgresql"],
            forged(bob, psi=0.1, event='{"by":"ann","kind":"guarantee"}'),
            schema="older",
        )
    bob.dispose()
