"""One file, one name: a ledger under a second name, moved, copied, restored or deleted never spends twice."""

import gc
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

import psidp
from psidp import Guarantee, Ledger
from psidp.errors import LedgerUnavailableError
from psidp.ledger import file_identity
from psidp.ledger.file_identity import FileIdentity, Mark
from scripts import script

G = Guarantee(0.1)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(path):
    """A budget that ten spends of 0.1 exhaust."""
    made = Ledger(path, patience=20.0)
    made.open("survey", psi=psidp.compose([G] * 10).psi, actor="Ann", purpose="a test")
    yield made
    made.dispose()


def spend(ledger):
    with ledger.spend("survey", G, purpose="a test") as entry:
        return entry.id


def refused(name, match):
    """Neither read nor spent from; whatever has this name."""
    ledger = name if isinstance(name, Ledger) else Ledger(name)
    drawn = []
    with pytest.raises(LedgerUnavailableError, match=match), ledger.spend("survey", G, purpose="a test"):
        drawn.append("noise")
    assert not drawn
    with pytest.raises(LedgerUnavailableError, match=match):
        ledger.remaining("survey")


def killed(name, spends):
    """A process that spends and is killed: its spends are in the log only."""
    done = subprocess.run([sys.executable, Path(__file__).with_name("names.py"), "die", name, str(spends)])
    assert done.returncode == -9


@contextmanager
def mounted(there, here, monkeypatch):
    """`there` bind-mounted at `here`, whether a file or a folder; where that is not allowed, what looks the same."""
    if subprocess.run(["mount", "--bind", there, here], capture_output=True).returncode == 0:
        try:
            yield
        finally:
            subprocess.run(["umount", "-l", here], check=True)
    elif there.is_dir():
        here.rmdir()
        here.symlink_to(there)
        yield
        here.unlink()
    else:
        table = here.parent / "mountinfo"
        table.write_text(f"36 35 98:0 /x {here} rw,noatime - ext4 /dev/root rw\n")
        monkeypatch.setattr(file_identity, "MOUNTS", table)
        shutil.copy(there, here)
        yield


def test_a_hard_link_is_refused_under_both_names_until_it_is_gone(ledger, path, tmp_path):
    spend(ledger)
    other = tmp_path / "other.db"
    os.link(path, other)
    for name in (ledger, path, other):
        refused(name, "must have one name, got 2 hard links.*Remove the other names")
    other.unlink()
    assert spend(ledger) == spend(Ledger(path)) - 1 == 3
    assert ledger.verify().id == 4


def test_a_link_that_outlives_the_first_name_is_refused(ledger, path, tmp_path):
    """Its link count is 1 again, as under a bind mount."""
    spend(ledger)
    other = tmp_path / "other.db"
    os.link(path, other)
    path.unlink()
    refused(other, "was used as .*ledger.db before: it was moved, copied or restored")
    refused(ledger, "was deleted, moved or replaced while it was in use")


def test_a_file_mounted_by_itself_is_refused(ledger, path, tmp_path, monkeypatch):
    """Also where the mount has the same name in a folder with the same number, as in two containers of one image."""
    spend(ledger)
    (tmp_path / "elsewhere").mkdir()
    other = tmp_path / "elsewhere" / "ledger.db"
    other.touch()
    monkeypatch.setattr(Mark, "is_at", lambda *_: True)
    with mounted(path, other, monkeypatch):
        refused(other, "must be a file in its folder, got a file that is mounted by itself.*Mount the folder")
    assert spend(ledger) == 3


def test_names_of_mounts_are_read_as_the_kernel_writes_them(ledger, path, tmp_path, monkeypatch):
    odd = tmp_path / "a b\\c" / "ledger.db"
    odd.parent.mkdir()
    table = tmp_path / "mountinfo"
    written = str(odd).replace("\\", "\\134").replace(" ", "\\040")
    table.write_text(f"22 1 0:21 / /proc rw - proc proc rw\n36 22 8:1 /x {written} rw shared:1 - ext4 /dev/vda rw\n")
    monkeypatch.setattr(file_identity, "MOUNTS", table)
    made = Ledger(odd)
    made.open("survey", psi=1.0, actor="Ann", purpose="a test")
    made.dispose()
    refused(odd, "mounted by itself")
    monkeypatch.setattr(file_identity, "MOUNTS", tmp_path / "nothing")
    refused(path, "nothing must be readable.*Mount /proc")


def test_a_folder_mounted_twice_holds_one_ledger(tmp_path, monkeypatch):
    """As two containers share a volume: log and file are the same by either path."""
    volume, other = tmp_path / "volume", tmp_path / "else where"
    volume.mkdir()
    other.mkdir()
    here = Ledger(volume / "ledger.db")
    here.open("survey", psi=psidp.compose([G] * 10).psi, actor="Ann", purpose="a test")
    with mounted(volume, other, monkeypatch):
        there = Ledger(other / "ledger.db")
        assert [spend(each) for each in (here, there, here, there)] == [2, 3, 4, 5]
        outcome = script("ledger/names.py", "race", volume / "ledger.db", other / "ledger.db")
        assert [word for word, _ in outcome].count("accepted") == 6
        there.dispose()
    assert here.verify().id == 11
    here.dispose()


def test_a_symbolic_link_is_the_file_it_leads_to(ledger, path, tmp_path):
    (tmp_path / "deep").mkdir()
    link = tmp_path / "deep" / "link.db"
    link.symlink_to(path)
    assert [spend(Ledger(link)), spend(ledger), spend(Ledger(link))] == [2, 3, 4]
    outcome = script("ledger/names.py", "race", path, link)
    assert [word for word, _ in outcome].count("accepted") == 7
    assert ledger.verify().id == 11


def test_a_relative_path_stays_the_same_file(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ledger = Ledger("ledger.db")
    ledger.open("survey", psi=1.0, actor="Ann", purpose="a test")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    ledger.dispose()
    assert spend(ledger) == 2
    assert not Path("ledger.db").exists()


@pytest.mark.parametrize("second", ["hard link", "bind mount", "link left over"])
def test_two_names_never_spend_twice_however_they_race(ledger, path, tmp_path, monkeypatch, second):
    ledger.dispose()
    other = tmp_path / "other.db"
    if second == "bind mount":
        other.touch()
        with mounted(path, other, monkeypatch):
            outcome = script("ledger/names.py", "race", path, other)
    else:
        os.link(path, other)
        if second == "link left over":
            path.unlink()
        outcome = script("ledger/names.py", "race", path, other)
        (other if second == "hard link" else path).unlink(missing_ok=True)
        if second == "link left over":
            other.rename(path)
    accepted = [word for word, _ in outcome].count("accepted")
    assert accepted == (8 if second == "bind mount" else 0), "what is not refused is paid for, once"
    assert sum(e.state == "spent" for e in Ledger(path).entries()) == accepted
    assert Ledger(path).verify().id == accepted + 1


@pytest.mark.parametrize("how", ["deleted", "replaced", "renamed", "begun anew"])
def test_a_file_that_goes_while_it_is_open_takes_no_more_spends(ledger, path, tmp_path, how):
    spend(ledger)
    away = tmp_path / "away.db"
    if how == "deleted":
        path.unlink()
    else:
        path.rename(away)
    if how == "replaced":
        shutil.copy(away, path)
    if how == "begun anew":
        Path(f"{path}-wal").unlink()
        Ledger(path).open("survey", psi=9.0, actor="Bob", purpose="another one")
    refused(ledger, "was deleted, moved or replaced while it was in use. Nothing was spent")
    ledger.dispose()
    refused(ledger, "deleted, moved or replaced|used as|holds the last entries")


def test_a_log_that_goes_while_it_is_open_takes_no_more_spends(ledger, path, tmp_path):
    """What would be written to it then, nobody else would find."""
    spend(ledger)
    log = Path(f"{path}-wal")
    log.rename(tmp_path / "away")
    for _ in range(2):
        drawn = []
        with (
            pytest.raises(LedgerUnavailableError, match=r"or its log .*ledger\.db-wal, was deleted, moved or replaced"),
            ledger.spend("survey", G, purpose="a test"),
        ):
            drawn.append("noise")
        assert not drawn
        log.touch()
    (tmp_path / "away").rename(log)
    assert spend(ledger) == spend(Ledger(path)) - 1 == 3


def test_a_file_that_goes_while_a_spend_is_written_releases_nothing(ledger, path, tmp_path, monkeypatch):
    spend(ledger)
    monkeypatch.setattr(
        "psidp.ledger.log.canonical", lambda _: (path.rename(tmp_path / "away.db"), '{"kind":"guarantee"}')[1]
    )
    drawn = []
    with (
        pytest.raises(LedgerUnavailableError, match="may be in a file that is lost, and nothing was released"),
        ledger.spend("survey", G, purpose="a test"),
    ):
        drawn.append("noise")
    assert not drawn


def test_a_file_that_moved_is_not_found_again_through_a_link(ledger, path, tmp_path):
    """The log stays where it was, while the file went: a link from the old name does not bring them together."""
    spend(ledger)
    path.rename(tmp_path / "away.db")
    path.symlink_to(tmp_path / "away.db")
    refused(ledger, "was deleted, moved or replaced")
    refused(path, "it was moved, copied or restored")
    with pytest.raises(LedgerUnavailableError, match="may still be in"):
        Ledger(path).moved(actor="Ann", purpose="a test")


def test_a_file_that_is_put_back_goes_on(ledger, path, tmp_path):
    spend(ledger)
    path.rename(tmp_path / "away.db")
    refused(ledger, "was deleted, moved or replaced")
    (tmp_path / "away.db").rename(path)
    assert spend(ledger) == spend(Ledger(path)) - 1 == 3


def test_a_moved_ledger_goes_on_once_somebody_says_so(ledger, path, tmp_path):
    spend(ledger)
    head = ledger.head()
    ledger.dispose()
    other = tmp_path / "other.db"
    path.rename(other)
    refused(other, "If this is now the only one, say so: psidp ledger moved .*other.db --purpose")
    moved = Ledger(other)
    assert moved.moved(actor="Ann", purpose="a better name", head=head) == head
    assert spend(moved) == spend(Ledger(other)) - 1 == 3
    with sqlite3.connect(other) as inside:
        rows = inside.execute("SELECT name, by, purpose FROM psidp_place ORDER BY id").fetchall()
    assert rows == [("ledger.db", "", ""), ("other.db", "Ann", "a better name")]
    inside.close()
    assert moved.moved(actor="Ann", purpose="said twice, written once").id == 4


def test_a_whole_folder_may_be_renamed(ledger, path, tmp_path):
    killed(path, 2)
    ledger.dispose()
    other = tmp_path.rename(tmp_path.parent / f"{tmp_path.name}-renamed")
    assert spend(Ledger(other / "ledger.db")) == 4
    other.rename(tmp_path)


def test_a_ledger_that_moved_without_its_log_forgets_nothing(ledger, path, tmp_path):
    """The killed process left two spends in the log, which did not move with the file."""
    ledger.dispose()
    killed(path, 2)
    other = tmp_path / "other.db"
    path.rename(other)
    refused(other, "it was moved, copied or restored")
    with pytest.raises(LedgerUnavailableError, match=r"may still be in .*ledger.db-wal. .*rename .* to .*other.db-wal"):
        Ledger(other).moved(actor="Ann", purpose="a better name")
    Path(f"{path}-wal").rename(f"{other}-wal")
    moved = Ledger(other)
    assert moved.moved(actor="Ann", purpose="a better name").id == 3
    assert spend(moved) == 4


def test_a_new_ledger_is_not_begun_over_the_log_of_another(ledger, path, tmp_path):
    ledger.dispose()
    killed(path, 2)
    path.rename(tmp_path / "other.db")
    with pytest.raises(LedgerUnavailableError, match="holds the last entries of one that was here"):
        Ledger(path).open("survey", psi=1.0, actor="Ann", purpose="anew")
    (tmp_path / "other.db").rename(path)
    assert Ledger(path).verify().id == 3


def test_a_copy_is_refused_while_the_first_is_there(ledger, path, tmp_path):
    spend(ledger)
    copy = tmp_path / "copy.db"
    ledger.dispose()
    shutil.copy(path, copy)
    refused(copy, "it was moved, copied or restored")
    with pytest.raises(LedgerUnavailableError, match=r"is a copy of .*ledger.db, which is still there"):
        Ledger(copy).moved(actor="Ann", purpose="a test")
    path.unlink()
    assert Ledger(copy).moved(actor="Ann", purpose="the disk died").id == 2
    assert spend(Ledger(copy)) == 3


def test_a_restored_backup_goes_on_once_somebody_says_so_and_keeps_what_the_head_knows(ledger, path, tmp_path):
    spend(ledger)
    backup = tmp_path / "backup.db"
    with sqlite3.connect(path) as source, sqlite3.connect(backup) as target:
        source.backup(target)
    source.close()
    target.close()
    old = ledger.head()
    spend(ledger)
    new = ledger.head()
    ledger.dispose()
    backup.replace(path)
    refused(path, "it was moved, copied or restored")
    with pytest.raises(psidp.errors.TamperedLedgerError, match="does not contain the head"):
        Ledger(path).moved(actor="Ann", purpose="restored", head=new)
    refused(path, "it was moved, copied or restored")
    assert Ledger(path).moved(actor="Ann", purpose="restored", head=old) == old
    assert spend(Ledger(path)) == 3


def test_a_restored_backup_is_not_mixed_with_the_log_of_the_file_before(ledger, path, tmp_path):
    ledger.dispose()
    backup = Path(shutil.copy(path, tmp_path / "backup.db"))
    killed(path, 2)
    backup.replace(path)
    content = path.read_bytes()
    refused(path, "it was moved, copied or restored")
    with pytest.raises(LedgerUnavailableError, match=r"may be that one's.*remove .*ledger.db-wal.*a new folder"):
        Ledger(path).moved(actor="Ann", purpose="restored")
    assert path.read_bytes() == content
    Path(f"{path}-wal").unlink()
    assert Ledger(path).moved(actor="Ann", purpose="restored").id == 1


def test_the_file_proper_knows_its_place_before_anything_is_spent(path):
    """Whatever is in the log: a file that goes without it says where it belongs."""
    ledger = Ledger(path)
    seen = []
    ledger.open("survey", psi=1.0, actor="Ann", purpose="a test")
    with ledger.spend("survey", G, purpose="a test"):
        seen.append(FileIdentity(path, "").recorded())
    assert seen == [Mark.at(path)]
    ledger.dispose()


def test_a_ledger_of_an_earlier_version_opens_and_learns_its_place(ledger, path, tmp_path):
    spend(ledger)
    head = ledger.head()
    ledger.dispose()
    with sqlite3.connect(path) as inside:
        inside.execute("DROP TABLE psidp_place")
    inside.close()
    again = Ledger(path)
    assert again.verify(head) == head
    assert spend(again) == 3
    again.dispose()
    path.rename(tmp_path / "other.db")
    refused(tmp_path / "other.db", "it was moved, copied or restored")


def test_looking_at_the_mark_keeps_the_locks_of_the_process(ledger, path):
    """A process that opens and closes a file by other means than SQLite loses its locks on it."""
    spend(ledger)
    held = sqlite3.connect(path, isolation_level=None)
    held.execute("BEGIN")
    held.execute("SELECT * FROM psidp_entries").fetchall()
    assert FileIdentity(path, "").is_recorded()
    code = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('PRAGMA journal_mode = DELETE')"
    other = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
    assert "database is locked" in other.stderr
    held.close()


def test_an_exported_ledger_begins_at_its_new_place(ledger, tmp_path):
    spend(ledger)
    other = Ledger.restore(tmp_path / "other.db", ledger.export())
    other.dispose()
    (tmp_path / "other.db").rename(tmp_path / "third.db")
    refused(tmp_path / "third.db", "it was moved, copied or restored")


def test_what_cannot_have_moved_is_refused(tmp_path, server):
    with pytest.raises(psidp.errors.NotALedgerError, match="there is no ledger"):
        Ledger(tmp_path / "nothing.db").moved(actor="Ann", purpose="a test")
    with pytest.raises(ValueError, match="purpose must be said in words"):
        Ledger(tmp_path / "nothing.db").moved(actor="Ann", purpose=" ")
    with pytest.raises(ValueError, match="a ledger on a server has no file"):
        Ledger(server.place("unmoved")).moved(actor="Ann", purpose="a test")


def test_a_forgotten_ledger_is_closed_and_leaves_no_log(path):
    ledger = Ledger(path)
    ledger.open("survey", psi=1.0, actor="Ann", purpose="a test")
    assert Path(f"{path}-wal").exists()
    del ledger
    gc.collect()
    assert not Path(f"{path}-wal").exists()
