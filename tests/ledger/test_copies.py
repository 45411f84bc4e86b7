"""A copy of a ledger's file is read as it stands: nothing is written, no log beside it is opened, nothing is spent."""

import shutil
import sqlite3

import pytest

import psidp
from psidp import Guarantee, Ledger
from psidp.errors import LedgerUnavailableError, TamperedLedgerError
from psidp.ledger.copies import LedgerCopy, copy_at


@pytest.fixture
def path(tmp_path):
    """A ledger with three entries, at rest."""
    with Ledger(tmp_path / "ledger.db", actor="bob") as ledger:
        ledger.open("survey", psi=1.0, actor="Ann", purpose="a test")
        for psi in (0.1, 0.2):
            with ledger.spend("survey", Guarantee(psi), purpose="a count"):
                pass
    return tmp_path / "ledger.db"


@pytest.fixture
def copied(path, tmp_path):
    folder = tmp_path / "backup"
    folder.mkdir()
    return shutil.copy(path, folder / "ledger.db")


def files(copy):
    return {file.name: file.read_bytes() for file in copy.parent.iterdir()}


def test_a_copy_is_read_and_verified_and_nothing_is_written(path, copied):
    before, head = files(copied), Ledger(path).head()
    with copy_at(copied) as book:
        assert book.verify() == head
        assert book.verified_statement().verified == 3
        assert book.report("survey").spent.psi == pytest.approx(0.05**0.5)
        assert [entry.psi for entry in book.list()] == [0.2, 0.1]
        assert list(book.export()) == list(Ledger(path).export())
        assert not hasattr(book, "spend")
        assert not hasattr(book, "request")
    assert files(copied) == before
    copied.chmod(0o400)
    copied.parent.chmod(0o500)
    assert copy_at(copied).verify() == head
    copied.parent.chmod(0o700)


def test_a_ledger_at_its_place_and_no_ledger_are_no_copies(path, tmp_path):
    assert copy_at(path) is None
    (tmp_path / "link.db").symlink_to(path)
    assert copy_at(tmp_path / "link.db") is None
    assert copy_at(tmp_path / "nothing.db") is None
    assert copy_at("postgresql://host/database") is None
    assert copy_at(path.rename(tmp_path / "moved.db")).original == str(path)


def test_nothing_is_spent_from_a_copy(copied):
    with (
        pytest.raises(LedgerUnavailableError, match="was used as"),
        Ledger(copied).spend("survey", Guarantee(0.1), purpose="q"),
    ):
        pass
    book = copy_at(copied)
    with pytest.raises(LedgerUnavailableError, match="it is read-only"):
        book._access.write(lambda log: log.append("survey", "reset", {"kind": "reset", "by": "x"}, purpose="q"))


def test_a_log_beside_a_copy_is_never_opened(path, copied):
    """SQLite would mix another file's log in, and fold it into the copy."""
    writer = sqlite3.connect(path)
    writer.execute("CREATE TABLE other (x)")
    writer.commit()
    log = copied.with_name("ledger.db-wal")
    shutil.copy(f"{path}-wal", log)
    writer.close()
    before = files(copied)
    with pytest.raises(LedgerUnavailableError, match="-wal may hold its last entries or another ledger's"):
        copy_at(copied)
    assert files(copied) == before
    book = LedgerCopy(psidp.ledger.url.LedgerUrl.parse(copied), copied, "elsewhere")
    assert book.verify().id == 3, "and where somebody laid one there meanwhile it is not read"
    assert files(copied) == before
    log.write_bytes(b"")
    assert copy_at(copied).verify().id == 3


def test_a_copy_that_was_changed_is_found_out(copied):
    connection = sqlite3.connect(copied)
    for statement in (
        "PRAGMA journal_mode = DELETE",
        "DROP TRIGGER psidp_entries_keep",
        "UPDATE psidp_entries SET psi = 0.01 WHERE id = 2",
    ):
        connection.execute(statement)
    connection.commit()
    connection.close()
    with pytest.raises(TamperedLedgerError, match="entry 2 is not what was written"):
        copy_at(copied).verify()


def test_the_very_file_under_another_name_is_no_copy(path, tmp_path):
    (tmp_path / "other.db").hardlink_to(path)
    with pytest.raises(LedgerUnavailableError, match="must have one name, got 2 hard links"):
        copy_at(tmp_path / "other.db")


def test_on_the_command_line_one_line_says_that_it_is_a_copy(run, path, copied):
    path.unlink()
    for command in ("verify", "list", "report", "show", "head", "export"):
        code, out, err = run("ledger", command, copied)
        assert (code, bool(out)) == (0, True)
        assert err.startswith(
            f"psidp: {copied} was used as {path} before, so it is read as a copy: nothing can be spent"
        )
        assert err.count("\n") == 1
    assert "All 3 entries" in run("ledger", "verify", copied)[1]
    code, _, err = run("ledger", "spend", copied, "survey", "--psi", 0.1, "--purpose", "q")
    assert (code, "was used as" in err) == (2, True)
