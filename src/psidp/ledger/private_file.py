"""Private file: what holds a ledger or a run is made for its owner alone, whatever the umask."""

import os
from contextlib import suppress
from pathlib import Path

__all__ = ["made_private", "private"]


def private(path: str, flags: int) -> int:
    """An `opener` for `open`: a file that is made has mode 0600; one that is there keeps its own."""
    return os.open(path, flags, 0o600)


def made_private(path: Path) -> None:
    """An empty file, for a database that would be made with the umask's mode; nothing where there is one."""
    with suppress(OSError):  # whoever opens it next says why it cannot be made
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
