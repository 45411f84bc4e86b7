"""Which files a source is: one, those of a folder or a pattern, or a list. Looks at names, never at rows."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["SourceFiles", "is_sqlite", "paths_in", "source_files"]

MANY = (".parquet", ".csv")
SQLITE = b"SQLite format 3\0"


@dataclass(frozen=True, slots=True)
class SourceFiles:
    """The files of one table.

    Args:
        paths: the files, absolute and in order. name: what the table is called, the same whenever and from wherever it
            is opened.
    """

    paths: tuple[Path, ...]
    name: str

    @property
    def kind(self) -> str:
        """How their names end."""
        return self.paths[0].suffix.lower()


def paths_in(source: Any) -> bool:
    """Whether a source is a list of paths."""
    return isinstance(source, list | tuple) and bool(source) and all(isinstance(one, str | Path) for one in source)


def source_files(source: str | Path | Sequence[str | Path]) -> SourceFiles | None:
    """The .parquet or .csv files that a folder, a pattern or a list means; None where it is one path of one file.

    A folder means all .parquet files in it and below; a star in a path that is no file's name stands for any text, and
    two of them for any folders.
    """
    if not isinstance(source, str | Path):
        return _listed([Path(one) for one in source])
    path = Path(source)
    if path.is_dir():
        return _together(sorted(path.resolve().rglob("*.parquet")), str(path.resolve()), source)
    if "*" in str(path) and not path.exists():
        first = next(i for i, part in enumerate(path.parts) if "*" in part)
        base, rest = Path(*path.parts[:first]).resolve(), "/".join(path.parts[first:])
        return _together(sorted(p for p in base.glob(rest) if p.is_file()), f"{base}/{rest}", source)
    return None


def _listed(paths: Sequence[Path]) -> SourceFiles:
    """Files that were named one by one."""
    absent = [str(path) for path in paths if not path.is_file()]
    if absent:
        raise ValueError(f"the table must be files that exist, got {absent[0]!r}.")
    found = [path.resolve() for path in paths]
    if len(set(found)) < len(found):
        raise ValueError(
            "the table must be a list of different files: rows of one that is named twice would count twice."
        )
    known = hashlib.sha256("\n".join(sorted(map(str, found))).encode(errors="surrogateescape")).hexdigest()[:16]
    return _together(sorted(found), f"{found[0]} and {len(found) - 1} others ({known})", paths[0])


def _together(paths: Sequence[Path], name: str, source: Any) -> SourceFiles:
    """Files of one kind that are read as one table."""
    kinds = {path.suffix.lower() for path in paths}
    if not paths:
        raise ValueError(
            f"the table must be a folder or pattern with .parquet files, or a file that exists, got {str(source)!r}."
        )
    if len(kinds) > 1 or not kinds <= set(MANY):
        raise ValueError(f"several files must be all .parquet or all .csv, got {', '.join(sorted(kinds))}.")
    return SourceFiles(tuple(paths), name)


def is_sqlite(path: Path) -> bool:
    """Whether a file is a database of SQLite."""
    try:
        with path.open("rb") as file:
            return file.read(len(SQLITE)) == SQLITE
    except OSError:
        return False
