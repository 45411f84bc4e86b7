"""A verification goes on from where the last one stopped, reads only what is new, and trusts no changed file."""

import json

import pytest
from sqlalchemy import create_engine, text

import psidp
from psidp import Guarantee, Ledger, Partitions
from psidp.ledger.url import LedgerUrl
from psidp.ledger.verify import Verification

GUARDS = {
    "sqlite": ["DROP TRIGGER psidp_entries_keep", "DROP TRIGGER psidp_entries_stay"],
    "postgresql": ["ALTER TABLE psidp_entries DISABLE TRIGGER ALL"],
}
Tampered = psidp.errors.TamperedLedgerError


def spend(ledger, psi=0.1, budget="survey", **more):
    with ledger.spend(budget, Guarantee(psi), purpose="a test", **more):
        pass


@pytest.fixture
def kept(ledger, tmp_path):
    """A ledger with something of everything, verified once; the file and the key of that."""
    parts = Partitions("region", ("north", "south"), "Ann")
    ledger.open("regions", psi=5.0, purpose="q", partitions=parts)
    ledger.open("survey", psi=5.0, purpose="q", approval_above=1.0)
    spend(ledger, 0.5, "regions", partition="north")
    spend(ledger)
    ledger.split("survey", {"one": 1, "two": 2}, purpose="q")
    ledger.request("one", Guarantee(2.0), purpose="q", actor="bob")
    ledger.pause("two", purpose="q", person="eve")
    where = {"kept": tmp_path / "ledger.kept", "key": tmp_path / "ledger.key"}
    ledger.verify(**where)
    return where


@pytest.fixture
def attack(url):
    def run(*statements, **values):
        engine = create_engine(LedgerUrl.parse(url).url)
        with engine.begin() as connection:
            for statement in GUARDS[engine.dialect.name]:
                connection.execute(text(statement))
            for statement in statements:
                connection.execute(text(statement), values)
        engine.dispose()

    return run


def test_it_reads_only_what_is_new_and_comes_to_the_same_head(ledger, kept, monkeypatch):
    spend(ledger, 0.5, "regions", partition="north")
    ledger.approve(ledger.waiting()[0][0].id, purpose="q", actor="ann")
    whole, read = ledger.verify(), []
    original = Verification.take
    monkeypatch.setattr(Verification, "take", lambda self, e, log: read.append(e.id) or original(self, e, log))
    assert ledger.verify(**kept) == whole
    assert read == [whole.id - 1, whole.id]
    read.clear()
    assert ledger.verify(**kept) == whole
    assert not read


def test_only_its_owner_may_read_the_key_and_a_short_one_is_refused(ledger, kept, tmp_path):
    assert kept["key"].stat().st_mode & 0o777 == 0o600
    (tmp_path / "short").write_text("secret")
    with pytest.raises(ValueError, match="at least 32"):
        ledger.verify(kept=kept["kept"], key=tmp_path / "short")
    with pytest.raises(TypeError, match="give both"):
        ledger.verify(key=kept["key"])


def test_a_file_that_was_changed_or_is_anothers_is_not_gone_on_from(ledger, kept, tmp_path):
    text = kept["kept"].read_text()
    values = json.loads(text)
    for name in values:
        value = values[name]
        another = value[:-1] + ("1" if value.endswith("0") else "0") if isinstance(value, str) else {"x": 1}
        changed = values | {name: another}
        kept["kept"].write_text(json.dumps(changed))
        with pytest.raises((Tampered, ValueError, TypeError)):
            ledger.verify(**kept)
    kept["kept"].write_text(text)
    with pytest.raises(Tampered, match="give its key"):
        ledger.verify(kept=kept["kept"])
    with pytest.raises(Tampered, match="under this key"):
        ledger.verify(kept=kept["kept"], key=tmp_path / "another.key")
    other = Ledger(tmp_path / "other.db")
    other.open("survey", psi=1.0, purpose="q")
    with pytest.raises(Tampered, match="another ledger"):
        other.verify(**kept)
    other.dispose()
    kept["kept"].write_text("nonsense")
    with pytest.raises(Tampered, match="no file that a verification kept"):
        ledger.verify(**kept)


def test_what_changed_after_the_kept_head_is_found(ledger, kept, attack):
    spend(ledger, 0.1, "one")
    spend(ledger, 0.1, "one")
    last = ledger.head().id
    attack(f"UPDATE psidp_entries SET purpose = 'other' WHERE id = {last - 1}")
    with pytest.raises(Tampered, match=f"entry {last - 1} is"):
        ledger.verify(**kept)


def test_a_cut_end_and_a_changed_head_are_found(ledger, kept, attack):
    last = ledger.head().id
    attack(f"DELETE FROM psidp_entries WHERE id = {last}")
    with pytest.raises(Tampered, match="does not contain the head that was kept"):
        ledger.verify(**kept)


def test_another_balance_to_go_on_from_is_found_though_its_entry_is_old(ledger, kept, attack, url):
    (old,) = (e for e in ledger.entries("regions") if e.state == "spent")
    forged = psidp.ledger.entry.Entry.sealed(
        **{k: v for k, v in (old.to_dict() | {"standing": old.standing.replace("1p-2", "1p-9")}).items() if k != "hash"}
    )
    assert forged.standing != old.standing
    change = "UPDATE psidp_entries SET standing = :standing, hash = :hash WHERE id = :id"
    attack(change, standing=forged.standing, hash=forged.hash, id=old.id)
    with pytest.raises(Tampered, match=f"entry {old.id} is not what was written: budget 'regions'"):
        ledger.verify(**kept)
    with Ledger(url) as fresh, pytest.raises(Tampered):
        spend(fresh, 0.1, "regions")
