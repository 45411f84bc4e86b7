"""A name in which something cannot be seen is refused, and two names that look the same are one person's."""

import unicodedata
from collections.abc import Callable
from contextlib import AbstractContextManager
from random import Random
from typing import Literal

from psidp.ledger.names import check_name, same_person

UNSEEN = [
    *range(0x115F, 0x1161), *range(0x17B4, 0x17B6), *range(0x180B, 0x1810), *range(0x200B, 0x2010), 0xAD, 0x34F, 0x61C,
    *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0x2800, 0x3164, *range(0xFE00, 0xFE10), 0xFEFF, 0xFFA0,
    *range(0xE0100, 0xE01F0),
]  # fmt: skip
"""What Unicode draws as nothing (Default_Ignorable_Code_Point) or as a blank, taken from its lists by hand."""
ALPHABETS = (
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZäöüßéñçøåŁžşğı", "ИванГеоргий", "ανδρέας", "王小明田中さくら",
    "김철수", "שרה", "محمد", "राम",
)  # fmt: skip
SIGNS = "0123456789.,'-_@()"
FORMS: tuple[Literal["NFC", "NFD", "NFKC", "NFKD"], ...] = ("NFC", "NFD", "NFKC", "NFKD")


def explore(random: Random) -> None:
    """One round: names of a few letters, with something unseen in some, spelled in several ways."""
    for _ in range(200):
        letters = random.choice(ALPHABETS) + SIGNS
        name = "".join(random.choice(letters) for _ in range(random.randrange(1, 9)))
        if not _accepted(name):
            continue
        place, letter = random.randrange(len(name) + 1), chr(random.choice(UNSEEN))
        hidden = name[:place] + letter + name[place:]
        assert not _accepted(hidden), (
            f"{hidden!a} is accepted, with {unicodedata.name(letter, 'U+' + hex(ord(letter)))}"
        )
        assert same_person(name, hidden), f"{hidden!a} and {name!a} are two people"
        other = unicodedata.normalize(random.choice(FORMS), random.choice((name, name.upper(), name.lower())))
        if len(other.casefold()) == len(name.casefold()):  # no letter became two
            assert same_person(name, other), f"{other!a} and {name!a} are two people"
        more = name + random.choice("bdfgz2345")
        assert not same_person(name, more), f"{more!a} and {name!a} are one person"


def _accepted(name: str) -> bool:
    try:
        return check_name("actor", name) == name
    except ValueError:
        return False


RELAPSES: dict[str, Callable[[], AbstractContextManager[object]]] = {}
