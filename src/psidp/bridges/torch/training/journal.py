"""The journal: every step that was ever started, on the disk before its noise is drawn; it only grows."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from psidp.forms import check_form
from psidp.noise.stream import process

__all__ = ["Journal", "Memory", "Tally", "Terms", "durable", "read", "sync_folder"]

Terms = dict[str, Any]
"""What the run is, fixed before its first step: plain values, under names."""

FORM = "psidp-training-1"
LONGEST = 2**16
"""Bytes of the first line at most; a file that has none within so many is no journal, and is left as it is."""


class Tally(Protocol):
    """How many steps were started."""

    @property
    def started(self) -> int:
        """Steps started so far, in this process and in those before it."""

    def begin(self) -> None:
        """One more, before its noise is drawn."""


class Memory:
    """A tally that ends with its process."""

    def __init__(self) -> None:
        self.started = 0
        self._process = process()

    def begin(self) -> None:
        """One more."""
        _refuse_child(self._process)
        self.started += 1


class Journal:
    """A tally in a file: one line with the terms, then one byte for each step.

    Guarantees:
        When `begin` returns, the step counts on the disk, whatever happens next. The count is the length of the file,
        so that nothing of it can be half written. One process at a time holds a journal.
    """

    def __init__(self, file: int, head: int) -> None:
        self._file, self._head, self._process = file, head, process()

    @property
    def started(self) -> int:
        """Steps started so far, by whoever did."""
        return os.fstat(self._file).st_size - self._head

    def begin(self) -> None:
        """One more, durable when this returns."""
        _refuse_child(self._process)
        os.write(self._file, b".")
        durable(self._file)

    @classmethod
    @contextmanager
    def held(cls, path: Path, terms: Terms) -> Iterator["Journal"]:
        """The journal of these terms for the length of a block, made if it is not there; refused while others hold it.

        A file without its first line is one whose maker died: no step was started under it, and it is written anew.
        """
        line = _line(terms)
        file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RuntimeError(f"{path.name} is held by another process, which trains this very run.") from None
            there = os.pread(file, LONGEST, 0)
            if b"\n" not in there and len(there) < LONGEST:
                os.ftruncate(file, 0)
                os.write(file, line)
                durable(file)
                sync_folder(path)
            elif not there.startswith(line):
                raise ValueError(f"{path.name} is the journal of another run. Give this run a checkpoint of its own.")
            yield cls(file, len(line))
        finally:
            os.close(file)


def read(path: Path) -> tuple[Terms, int] | None:
    """The terms of a run and how many steps it has started; None where no run has begun."""
    if not path.exists():
        return None
    line, end, steps = path.read_bytes().partition(b"\n")
    if not end:
        return None
    try:
        terms = json.loads(line)
        form = terms["form"]
    except (ValueError, LookupError, TypeError):
        raise ValueError(f"{path.name} is not the journal of a training run.") from None
    check_form(form, FORM, f"the journal {path.name}")
    return {name: value for name, value in terms.items() if name != "form"}, len(steps)


def durable(file: int) -> None:
    """What was written to a file is on the disk."""
    full = getattr(fcntl, "F_FULLFSYNC", None)  # macOS: fsync alone leaves it in the disk's own memory
    if full is None:
        os.fsync(file)
    else:
        fcntl.fcntl(file, full)


def sync_folder(path: Path) -> None:
    """The name of a file is on the disk too."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _line(terms: Terms) -> bytes:
    """The terms as the first line of a journal."""
    line = (json.dumps({"form": FORM} | terms, allow_nan=False) + "\n").encode()
    if not len(line) < LONGEST:
        raise ValueError(f"unit, purpose and names of a run must fit into {LONGEST} bytes, got {len(line)}.")
    return line


def _refuse_child(mine: tuple[int, int]) -> None:
    """Refuse to count in a copy of the process: both copies would take the same step."""
    if process() != mine:
        raise RuntimeError("a run must go on in the process that began it; this one is a fork. Make a trainer here.")
