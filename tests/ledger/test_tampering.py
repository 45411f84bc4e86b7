"""Whatever is changed afterwards is found, and the first bad entry is named."""

import json
import random
import struct

import pytest
from sqlalchemy import create_engine, text

import psidp
from psidp import Guarantee, Ledger, Partitions
from psidp.ledger.entry import ENTRIES, NAMES, Entry
from psidp.ledger.url import LedgerUrl

GUARDS = {
    "sqlite": ["DROP TRIGGER IF EXISTS psidp_entries_keep", "DROP TRIGGER IF EXISTS psidp_entries_stay"],
    "postgresql": ["ALTER TABLE psidp_entries DISABLE TRIGGER ALL"],
}


@pytest.fixture
def written(ledger):
    """Five entries with something in every column: opened, spent (2), answered (3), withheld."""
    ledger.open("survey", psi=2.0, actor="Ann", purpose="a test", partitions=Partitions("region", ("north",), "Ann"))
    spend = {"purpose": "mean age", "partition": "north", "retry_key": "q-1", "request": "mean age"}
    with ledger.spend("survey", Guarantee(0.6, 0.0), **spend) as entry:
        entry.answer(lambda: 41.5)
    with pytest.raises(KeyError), ledger.spend("survey", Guarantee(0.5), purpose="other"):
        raise KeyError
    return ledger


@pytest.fixture
def attack(url):
    """Statements run by somebody who owns the database and has taken the guards away."""

    def run(*statements, **values):
        engine = create_engine(LedgerUrl.parse(url).url)
        with engine.begin() as connection:
            for guard in GUARDS[engine.dialect.name]:
                connection.execute(text(guard))
            for statement in statements:
                connection.execute(text(statement) if isinstance(statement, str) else statement, values)
        engine.dispose()

    return run


def flipped(value):
    """The value with its lowest bit flipped."""
    if isinstance(value, float):
        return struct.unpack("<d", struct.pack("<q", struct.unpack("<q", struct.pack("<d", value))[0] ^ 1))[0]
    if isinstance(value, int):
        return value ^ 1 if value else 64
    return value[:-1] + chr(ord(value[-1]) ^ 1) if value else "\x01"


@pytest.mark.parametrize("column", NAMES)
@pytest.mark.parametrize("entry", [2, 3])
def test_a_bit_flipped_in_any_column_is_found_and_named(written, attack, column, entry):
    before = {e.id: e for e in written.entries()}[entry]
    value = 1000 + entry if column == "id" else flipped(getattr(before, column))
    attack(ENTRIES.update().where(ENTRIES.c.id == entry).values({column: value}))
    with pytest.raises(psidp.errors.TamperedLedgerError, match=f"entry {entry} is") as caught:
        written.verify()
    assert caught.value.entry == entry


def test_the_database_itself_refuses_to_change_the_past(written, url):
    engine = create_engine(LedgerUrl.parse(url).url)
    for statement in ("UPDATE psidp_entries SET psi = 0.0", "DELETE FROM psidp_entries WHERE id = 5"):
        with pytest.raises(Exception, match="never"), engine.begin() as connection:
            connection.execute(text(statement))
    engine.dispose()
    written.verify()


def test_a_ledger_with_another_seed_is_found(written, attack):
    attack("UPDATE psidp_ledger SET identity = 'another'")
    with pytest.raises(psidp.errors.TamperedLedgerError, match="entry 1 is"):
        written.verify()


def test_a_removed_entry_is_found(written, attack):
    attack("DELETE FROM psidp_entries WHERE id = 3")
    with pytest.raises(psidp.errors.TamperedLedgerError, match="entry 3 is missing"):
        written.verify()


def test_a_cut_end_is_found_by_whoever_kept_the_head(written, attack):
    head = str(written.head())
    attack("DELETE FROM psidp_entries WHERE id >= 4")
    assert written.verify().id == 3
    with pytest.raises(psidp.errors.TamperedLedgerError, match="it ends at entry 3"):
        written.verify(head)


def test_a_rewritten_past_is_found_by_whoever_kept_the_head(written, attack, url):
    head = written.head()
    cheaper = [e.to_dict() for e in written.entries()]
    attack("DELETE FROM psidp_entries WHERE id >= 4")
    again = Ledger(url)
    with again.spend("survey", Guarantee(0.1), purpose="other"):
        pass
    with pytest.raises(psidp.errors.TamperedLedgerError, match="it ends at entry 4"):
        again.verify(head)
    with again.spend("survey", Guarantee(0.1), purpose="other"):
        pass
    assert again.verify().id == len(cheaper)
    with pytest.raises(psidp.errors.TamperedLedgerError, match="entry 5 has another hash"):
        again.verify(head)
    again.dispose()


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"psi": 0.05}, "its totals do not follow"),
        ({"event": '{"kind":"gaussian","sensitivity":1.0,"sigma":2.0}', "psi": 0.25}, "its price is psi=0.25"),
        ({"kappa": 1e-9}, "caps|kappa"),
        ({"psi": 50.0}, "has psi"),
        ({"time": "2020-01-01T00:00:00.000000Z"}, "lies before"),
        ({"time": "yesterday"}, "Invalid isoformat"),
        ({"standing": "{}"}, "totals"),
        ({"budget": "other"}, "other"),
    ],
)
def test_an_entry_rewritten_with_a_fitting_hash_is_still_found(written, attack, changes, why):
    """Somebody who knows how hashes are made changes the last spend: prices and totals give it away."""
    last = list(written.entries())[3].to_dict()
    forged = Entry.sealed(**{k: v for k, v in (last | changes).items() if k != "hash"}).to_dict()
    attack("DELETE FROM psidp_entries WHERE id > 3", ENTRIES.insert().values(forged))
    with pytest.raises(psidp.errors.TamperedLedgerError, match=f"entry 4 is not what was written: .*({why})"):
        written.verify()


def test_an_entry_of_an_unknown_kind_is_listed_as_not_recomputed(written, attack, run, url):
    last = list(written.entries())[3].to_dict()
    for changes in ({"event": '{"kind":"magic"}'}, {"state": "refunded", "psi": 0.0}):
        forged = Entry.sealed(**{k: v for k, v in (last | changes).items() if k != "hash"}).to_dict()
        attack(
            "DELETE FROM psidp_entries WHERE id > 3",
            ENTRIES.insert().values(forged),
            "UPDATE psidp_entries SET actor = :by WHERE id = 4",
            by=json.loads(forged["event"]).get("by", ""),
        )
        stranger = Ledger(url)
        assert stranger.verify().not_recomputed == (4,)
        assert stranger.verified_statement().to_dict()["not_recomputed"] == [4]
        code, out, _ = run("ledger", "verify", url)
        assert code == 2
        assert "Not recomputed: entry 4." in out
        stranger.dispose()
    with pytest.raises(psidp.errors.NewerLedgerError, match="entry 4"):
        Ledger(url).raise_to("survey", psi=3.0, purpose="after it")


def test_nothing_is_spent_after_an_entry_that_was_changed(written, attack):
    attack("UPDATE psidp_entries SET standing = replace(standing, 'p', 'p-') WHERE id = 5")
    drawn = []
    with pytest.raises(psidp.errors.TamperedLedgerError), written.spend("survey", Guarantee(0.1), purpose="more"):
        drawn.append(1)
    assert not drawn


def test_flipped_bits_of_the_file_are_found_or_change_nothing(sqlite_url, tmp_path):
    ledger = Ledger(sqlite_url)
    ledger.open("survey", psi=9.0, actor="Ann", purpose="a test")
    for number in range(40):
        with ledger.spend("survey", Guarantee(0.1), purpose=f"spend {number}"):
            pass
    lines = list(ledger.export())
    ledger.dispose()
    content = (tmp_path / "ledger.db").read_bytes()
    dice, found = random.Random(3), 0
    for number in range(120):
        place = dice.randrange(len(content))
        damaged = tmp_path / f"{number}.db"
        damaged.write_bytes(content[:place] + bytes([content[place] ^ (1 << dice.randrange(8))]) + content[place + 1 :])
        copy = Ledger(damaged)
        try:
            copy.verify()
            assert list(copy.export()) == lines
        except psidp.errors.LedgerError:
            found += 1
        finally:
            copy.dispose()
            damaged.unlink()
    assert found > 40
