"""Readings: as what `where` and `by` read columns without a type of their own. By what was written, never by rows."""

import datetime
import re
from collections.abc import Iterable
from contextlib import suppress
from math import isfinite

from psidp.tables.conditions.text import shorten

__all__ = ["Reading", "kind_in_order", "read_kind", "readings_words", "unread"]

Reading = tuple[str, str]
"""A column and the type in which it is read, of `types.DECLARED`."""

WORDS = {"int64": "numbers", "float64": "numbers", "date": "dates", "timestamp": "dates", "boolean": "truth values"}
FORMS = {"numbers": "numbers such as 1000.5", "dates": "dates such as 2025-12-31"}
"""How a cell must look that is read as one of these."""

LONGEST = 60
"""Letters of the longest constant that may look like a number or a date."""

INSTANT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]*)?)?)?(Z|[+-][0-9]{2}:?[0-9]{2})?$"
NUMBER = re.compile(
    r"\s*[-+\u2212]?\s*[$\u20ac\u00a3\u00a5]?\s*(?:[0-9][0-9.,'_\s]*|\.[0-9]+)(?:e[-+]?[0-9]+)?\s*[%$\u20ac\u00a3\u00a5]?\s*",
    re.IGNORECASE,
)
MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
    r"nov(?:ember)?|dec(?:ember)?)"
)
DAY = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?"
PIECES = re.compile(rf"(?:[0-9]++(?:st|nd|rd|th)?|{MONTH}|{DAY}|am|pm|utc|gmt|t|z|[-+/.:,\s])+", re.IGNORECASE)
APART = re.compile(r"\b[0-9]{1,4}[-/:][0-9]{1,2}\b|\b[0-9]{1,2}[-/][0-9]{4}\b|\b[0-9]{1,4}\.[0-9]{1,2}\.[0-9]{1,4}\b")
NAMED = re.compile(rf"[0-9].*{MONTH}|{MONTH}.*[0-9]", re.IGNORECASE)


def read_kind(word: str) -> str:
    """The type in which an untyped column is read where it meets this constant without quotes."""
    if word in ("true", "false"):
        return "boolean"
    with suppress(ValueError):
        if isfinite(float(word)):
            return "float64"
    with suppress(ValueError):
        datetime.datetime.fromisoformat(word)
        return "timestamp"
    return "string"


def kind_in_order(role: str, name: str, text: str, *, quoted: bool) -> str:
    """The type in which an untyped column is put in order with this constant; a look at the constant alone.

    Text that looks like a number or like a date of another form is refused, in quotes or not: put in order as text, 9
    comes after 10 and 03/01/2025 before every date of another year.
    """
    kind = "string" if quoted else read_kind(text)
    shape = _shape(text)
    if kind != "string" or not shape:
        return kind
    if shape == "instant":
        return "timestamp"
    wanted = {
        "number": "a number such as 1000.5, without quotes and without commas or blanks between digits",
        "date": "a date as 2025-03-01 or an instant as 2025-03-01 12:00:00",
    }[shape]
    raise ValueError(
        f"{role} must put {name!r} in order with {wanted}, got {shorten(text)!r}. Text goes letter by letter, 9 after "
        f"10; where that is meant, declare the column as text: --type {name}:string, or types={{{name!r}: 'string'}}."
    )


def _shape(text: str) -> str:
    """What a constant looks like: an ISO instant, a date of another form, a number, or nothing of these."""
    if not len(text) <= LONGEST:
        return ""
    with suppress(ValueError):
        if re.search(INSTANT, text) and datetime.datetime.fromisoformat(text):
            return "instant"
    if PIECES.fullmatch(text) and (APART.search(text) or NAMED.search(text)):
        return "date"
    return "number" if NUMBER.fullmatch(text) else ""


def readings_words(readings: Iterable[Reading]) -> str:
    """One line for all columns of `where` and `by` that have no type; "" where there are none."""
    found = _by_words(readings)
    if not found:
        return ""
    listed = "; ".join(f"{', '.join(map(repr, names))} as {FORMS.get(words, words)}" for words, names in found.items())
    lost = " Values that cannot be parsed are missing." if any(words != "text" for words in found) else ""
    return f"In conditions and groups, columns without a type are read so: {listed}.{lost}"


def unread(readings: Iterable[Reading]) -> str:
    """What may be wrong where every count is noise; "" where no column was read as numbers or dates."""
    found = {words: names for words, names in _by_words(readings).items() if words in FORMS}
    if not found:
        return ""
    listed = ", or ".join(f"{', '.join(map(repr, names))} holds no {FORMS[words]}" for words, names in found.items())
    return f"No count can be told from zero. Perhaps {listed}: what is written in another way is missing."


def _by_words(readings: Iterable[Reading]) -> dict[str, list[str]]:
    """The columns that are read as numbers, as dates, and so on; text comes last."""
    found: dict[str, list[str]] = {}
    for name, kind in dict.fromkeys(readings):
        names = found.setdefault(WORDS.get(kind, "text"), [])
        names += [name] * (name not in names)
    return dict(sorted(found.items(), key=lambda pair: pair[0] == "text"))
