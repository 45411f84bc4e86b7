"""Through whatever names a SQLite ledger is opened, moved, copied or restored, it spends once and forgets nothing."""

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from fractions import Fraction
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from psidp import Guarantee, Ledger
from psidp.errors import LedgerError
from psidp.ledger.file_identity import FileIdentity
from psidp.ledger.verify import Head

PSI = 0.25
CAP = 2.0
NAMES = ("a.db", "b.db", "deep/a.db", "deep/link.db")


def explore(random: Random) -> None:
    """One round: some ledgers, each with a few names, and somebody who moves files while others spend."""
    for _ in range(6):
        with TemporaryDirectory() as folder:
            scene = Scene(Path(folder), random)
            try:
                for _ in range(random.randrange(8, 30)):
                    scene.step()
            finally:
                scene.close()


class Scene:
    """A folder with a ledger in it, those who have it open, and what was released."""

    def __init__(self, folder: Path, random: Random) -> None:
        self.folder, self.random, self.told = folder, random, ["open a.db"]
        (folder / "deep").mkdir()
        self.holding: list[tuple[str, Ledger]] = []
        self.released: list[Fraction] = []
        book = Ledger(folder / "a.db", patience=0.2)
        book.open("survey", psi=CAP, actor="Ann", purpose="to be moved")
        self.head = book.head()
        if random.random() < 0.5:
            self.holding.append(("a.db", book))
        else:
            book.dispose()

    def step(self) -> None:
        """Somebody spends, or somebody does something to the files."""
        spends = (self.spend, self.spend_again, self.spend, self.spend_again)
        moves = (self.link, self.rename, self.remove, self.copy, self.shorten, self.accept)
        self.random.choice((*spends, *moves))()

    def close(self) -> None:
        """Those who held the ledger let it go."""
        for _, book in self.holding:
            book.dispose()

    def spend(self) -> None:
        """A process of its own, which may go on holding the ledger, or be killed: its log stays as well."""
        name = self.random.choice([name for name in NAMES if (self.folder / name).exists()] or NAMES)
        book = Ledger(self.folder / name, patience=0.2)
        stays = self.random.random() < 0.4
        self._spend(name, book)
        if stays:
            self.holding.append((name, book))
        else:
            book.dispose()

    def spend_again(self) -> None:
        """One of those who hold the ledger, whatever happened to it since."""
        if self.holding:
            self._spend(*self.random.choice(self.holding))

    def _spend(self, name: str, book: Ledger) -> None:
        try:
            with book.spend("survey", Guarantee(PSI), purpose="a release") as entry:
                spent = entry.entry
        except LedgerError as refusal:
            self.told.append(f"spend through {name}: refused, {type(refusal).__name__}")
            return
        self.told.append(f"spend through {name}: entry {spent.id}")
        self.released.append(Fraction(PSI) ** 2)
        assert spent.previous == self.head.hash, self.story(f"entry {spent.id} has forgotten entry {self.head.id}")
        self.head = Head(spent.id, spent.hash)
        assert sum(self.released) <= Fraction(CAP) ** 2, self.story("the budget is overspent")
        assert _last_at(book) == spent.id, self.story(f"entry {spent.id} is not where it was spent")

    def link(self) -> None:
        """A second name, of either kind."""
        old, new = self._two()
        make = os.symlink if self.random.random() < 0.3 else os.link
        self._do(f"{make.__name__} {old} {new}", lambda: make(self.folder / old, self.folder / new))

    def rename(self) -> None:
        """The file alone: the log stays behind if somebody holds the ledger, or died with it."""
        old, new = self._two()
        self._do(f"mv {old} {new}", lambda: self._replace(old, new))

    def _replace(self, old: str, new: str) -> None:
        (self.folder / old).replace(self.folder / new)

    def remove(self) -> None:
        """A name less; the file may be gone with it."""
        name = self.random.choice(NAMES)
        self._do(f"rm {name}", (self.folder / name).unlink)

    def shorten(self) -> None:
        """A link that stays while the first name goes: its link count is 1 again."""
        old, new = self._two()
        self._do(f"ln {old} {new}", lambda: os.link(self.folder / old, self.folder / new))
        self._do(f"rm {old}", (self.folder / old).unlink)

    def copy(self) -> None:
        """A copy of the file alone, which may also be put in place of another."""
        old, new = self._two()
        self._do(f"cp {old} {new}", lambda: shutil.copyfile(self.folder / old, self.folder / f"{new}.copy"))
        self._do(f"restore {new}", lambda: self._replace(f"{new}.copy", new))

    def accept(self) -> None:
        """Somebody says that the ledger is here now, and holds the last head against it."""
        name = self.random.choice(NAMES)
        if not self._accepted(name) and self.random.random() < 0.5:
            self._bring_log(name)

    def _accepted(self, name: str) -> bool:
        book = Ledger(self.folder / name, patience=0.2)
        try:
            book.moved(actor="Ann", purpose="moved", head=self.head)
            self.told.append(f"moved {name}")
            return True
        except LedgerError as refusal:
            self.told.append(f"moved {name}: refused, {type(refusal).__name__}")
            return False
        finally:
            book.dispose()

    def _bring_log(self, name: str) -> None:
        """As the refusal says: the log that was left behind goes where the file is; or back, if it is refused again."""
        here = self.folder / f"{name}-wal"
        for other in NAMES:
            log = self.folder / f"{other}-wal"
            if log.exists() and not (self.folder / other).exists() and not here.exists():
                log.rename(here)
                self.told.append(f"mv {other}-wal {name}-wal")
                if not self._accepted(name) and here.exists():
                    here.rename(log)
                    self.told.append(f"mv {name}-wal {other}-wal")

    def _two(self) -> tuple[str, str]:
        old, new = self.random.sample(NAMES, 2)
        return old, new

    def _do(self, words: str, deed: Callable[[], Any]) -> None:
        try:
            deed()
            self.told.append(words)
        except OSError:
            pass

    def story(self, finding: str) -> str:
        """What was found, and how it came to that."""
        return "\n  ".join([f"{finding}:", *self.told])


def _last_at(book: Ledger) -> Any:
    """The last entry that a stranger to psidp finds where the ledger was opened."""
    try:
        stranger = sqlite3.connect(f"file:{book._store.address.path}?mode=rw", uri=True)
    except sqlite3.Error:
        return None
    try:
        return stranger.execute("SELECT max(id) FROM psidp_entries").fetchone()[0]
    except sqlite3.Error:
        return None
    finally:
        stranger.close()


def _goes_on() -> AbstractContextManager[object]:
    """What is open stays open, whatever becomes of the file."""
    stack = ExitStack()
    stack.enter_context(patch.object(FileIdentity, "check", lambda *_: None))
    stack.enter_context(patch.object(FileIdentity, "check_log", lambda *_: None))
    return stack


def _nobody_looks() -> AbstractContextManager[object]:
    """As it was: whatever has a name is opened under it."""
    stack = ExitStack()
    stack.enter_context(patch.object(FileIdentity, "open", lambda self, connect: connect()))
    stack.enter_context(_goes_on())
    stack.enter_context(patch.object(FileIdentity, "is_recorded", lambda self: True))
    return stack


def _no_mark() -> AbstractContextManager[object]:
    """The file does not know where it lies."""
    stack = ExitStack()
    stack.enter_context(patch.object(FileIdentity, "recorded", lambda self: None))
    stack.enter_context(patch.object(FileIdentity, "is_recorded", lambda self: True))
    return stack


RELAPSES: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "a second name is a second ledger": _nobody_looks,
    "a ledger that moved without its log is taken as it is": _no_mark,
    "a file that was deleted while open goes on spending": _goes_on,
}
