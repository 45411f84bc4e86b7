"""Patterns: DuckDB takes a path with brackets, stars or question marks for many files. Here a path means one."""

from pathlib import Path

__all__ = ["SPECIAL", "pattern_of"]

SPECIAL = "[*?"


def pattern_of(path: Path) -> str:
    """The pattern that this path alone matches.

    Examples:
        >>> pattern_of(Path("visits[1].parquet"))
        'visits[[]1].parquet'
    """
    text = str(path)
    if "\\" in text and any(letter in text for letter in SPECIAL):
        raise ValueError(f"a path must not have a backslash beside one of {SPECIAL}, got {text!r}. Rename the file.")
    return "".join(f"[{letter}]" if letter in SPECIAL else letter for letter in text)
