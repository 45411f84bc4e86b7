"""A process keeps its connection to a file from spend to spend, closes it, and never takes it through a fork."""

import os
from pathlib import Path

import pytest
from sqlalchemy import event

from psidp import Guarantee, Ledger
from psidp.errors import BudgetExceededError
from psidp.ledger import inode as inode_module
from psidp.ledger.inode import inode


@pytest.fixture
def ledger(tmp_path):
    made = Ledger(tmp_path / "ledger.db")
    made.open("survey", psi=10.0, purpose="a test")
    yield made
    made.dispose()


def spend(ledger):
    with ledger.spend("survey", Guarantee(0.1), purpose="a test"):
        pass


def open_files(folder):
    """The files of a folder that this process has open."""
    links = [link for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    return [link for link in links if str(link.readlink()).startswith(str(folder))]


def test_spends_share_one_connection_which_dispose_closes(ledger, tmp_path):
    checkouts = []
    event.listen(ledger._store.engine, "checkout", lambda *_: checkouts.append(1))
    for _ in range(3):
        spend(ledger)
    assert len(checkouts) <= 1
    ledger.dispose()
    assert not open_files(tmp_path)
    spend(ledger)
    assert ledger.remaining("survey").psi == pytest.approx((100 - 0.04) ** 0.5)


def test_a_forgotten_ledger_leaves_no_file_open(tmp_path):
    forgotten = Ledger(tmp_path / "ledger.db")
    forgotten.open("survey", psi=1.0, purpose="a test")
    assert open_files(tmp_path)
    del forgotten
    assert not open_files(tmp_path)


def test_a_refused_spend_gives_its_connection_back(ledger, tmp_path):
    spend(ledger)
    before = len(open_files(tmp_path))
    for _ in range(20):
        with pytest.raises(BudgetExceededError), ledger.spend("survey", Guarantee(99.0), purpose="too much"):
            pass
    spend(ledger)
    assert len(open_files(tmp_path)) == before


def test_a_child_process_makes_a_connection_of_its_own_and_leaves_its_parents_open(ledger, monkeypatch):
    spend(ledger)
    store = ledger._store
    (parents,) = store._idle
    child = os.getpid() + 1
    monkeypatch.setattr(os, "getpid", lambda: child)
    spend(ledger)
    ledger.dispose()
    monkeypatch.undo()
    assert parents not in store._idle
    assert not parents.closed
    assert parents.exec_driver_sql("SELECT count(*) FROM psidp_entries").scalar() == 3
    parents.close()
    parents.engine.dispose()


@pytest.mark.parametrize("with_statx", [True, False])
def test_a_name_leads_to_the_inode_that_lstat_finds(tmp_path, monkeypatch, with_statx):
    if not with_statx:
        monkeypatch.setattr(inode_module, "_STATX", None)
    file, link = tmp_path / "file", tmp_path / "l\u00efnk"
    file.write_text("something")
    link.symlink_to(file)
    for path in (file, link, tmp_path, Path("/dev/null"), Path("/proc/self")):
        found = os.lstat(path)
        assert inode(os.fsencode(path)) == (found.st_dev, found.st_ino)
    file.unlink()
    with pytest.raises(FileNotFoundError):
        inode(os.fsencode(file))
