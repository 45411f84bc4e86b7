"""Names of people: which may be written, and when two of them are one person's.

A name consists of visible characters only: letters of the scripts in use with their marks, digits, a few signs and
single blanks. So nobody has a second name that looks the same. Entries of before may hold any text as a name; those
names are compared, never refused. Why, and what is left: docs/design/ledger.md.
"""

import re
import unicodedata
from functools import lru_cache
from itertools import groupby, pairwise

from psidp.symbols import check_text

__all__ = ["check_name", "same_person"]

SCRIPTS = frozenset({
    "LATIN", "GREEK", "CYRILLIC", "ARMENIAN", "HEBREW", "ARABIC", "DEVANAGARI", "BENGALI", "GURMUKHI", "GUJARATI",
    "ORIYA", "TAMIL", "TELUGU", "KANNADA", "MALAYALAM", "SINHALA", "THAI", "LAO", "TIBETAN", "MYANMAR", "GEORGIAN",
    "ETHIOPIC", "KHMER", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "BOPOMOFO", "HANGUL", "CJK", "IDEOGRAPHIC",
    "COMBINING",
})  # fmt: skip
"""How the Unicode names of letters and marks begin: the scripts of UAX 31, table 5, and marks for all of them."""
SIGNS = frozenset(" 0123456789.,'-_@+&()/\\:#·’ʼʻ")
ALIKE = ("LATIN", "GREEK", "CYRILLIC")
"""Scripts with letters in common to the eye; a word has letters of one of them only."""
TOGETHER = (
    frozenset({"CJK", "IDEOGRAPHIC", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA"}),
    frozenset({"CJK", "IDEOGRAPHIC", "BOPOMOFO"}),
    frozenset({"CJK", "IDEOGRAPHIC", "HANGUL"}),
)
"""Scripts that are written together. All other letters side by side are of one script: many have a ring like an o."""
AFRICAN = frozenset("ɓɔɖɗəɛɣɲʒ")
"""Small letters of orthographies among those of phonetics, which are copies of Latin ones: U+1D0F is another o."""
UNSEEN = ("FILLER", "VARIATION SELECTOR", "GRAPHEME JOINER", "INHERENT", "BLANK", "NULL NOTEHEAD")
"""Words in the Unicode names of characters that show nothing, although they count as letters, marks or symbols."""
LOOKS = str.maketrans(
    "авекмнорстухіјѕԁһԛԝӏ" "αβεζηικμνορτυχ" "օոսհյցզլ" "カニロエタハトーヘ" "یىکہە"
    "ıɑɡƅȷƿǝɖð" "ĸᴀʙᴄᴅᴇɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ" "’ʼʻ",
    "abekmhopctyxijsdhqwl" "abezhikmnoptyx" "onuhjgql" "力二口工夕八卜一へ" "ييكهه"
    "iagbjpəđđ" "kabcdeghijklmnoprstuvwyz" "'''",
    "\u0640",  # a stroke that only makes an Arabic word longer
)  # fmt: skip
"""Letters, and the ones that they look like, small or large: those of another script or of phonetics."""
SMALL = str.maketrans("ηνυγωϲпг", "nvuywcnr")
"""Letters whose small form looks like another letter than their large form does."""
DOTTED = re.compile("(?<=[ij])\u0307")
"""A dot above a letter that has one already."""


def check_name(what: str, name: str) -> str:
    """`name` itself, if every character of it can be seen.

    Examples:
        >>> check_name("actor", "Zoë O'Neil (IT)")
        "Zoë O'Neil (IT)"
        >>> check_name("actor", "bob\\N{HANGUL FILLER}")
        Traceback (most recent call last):
        ValueError: actor (name of a person) must consist of visible letters, ... with U+1160 HANGUL JUNGSEONG FILLER...
    """
    if wrong := _wrong(check_text(what, name)):
        raise ValueError(
            f"{what} (name of a person) must consist of visible letters, digits, signs such as . - _ @ and single "
            f"blanks inside, got {what}={name!a} with {wrong}. Write the name as others read it."
        )
    return name


@lru_cache(maxsize=256)
def _wrong(name: str) -> str:
    """What is wrong with a name, in words; "" where nothing is."""
    text = unicodedata.normalize("NFKC", name)
    ragged = "blanks at its ends or side by side" if text != " ".join(text.split()) else ""
    return _first_wrong(text) or _mixed(text) or ragged


def _first_wrong(text: str) -> str:
    """The first character that is not allowed where it stands, in words."""
    for before, letter in pairwise(f" {text}"):
        hangs = unicodedata.category(letter) in ("Mn", "Mc") and before in (" ", letter)
        if letter not in SIGNS and (not _shown(letter) or hangs):
            return f"U+{ord(letter):04X} {unicodedata.name(letter, 'without a name')}"
    return ""


def _mixed(text: str) -> str:
    """The first word with letters of two of the scripts that look alike, or of any two side by side, in words."""
    for word in text.split():
        if len({script for letter in word if (script := _script(letter)) in ALIKE}) > 1:
            return f"letters of two alphabets in {word!a}"
        for _, run in groupby(word, lambda letter: letter in SIGNS):
            scripts = {script for letter in run if (script := _script(letter)) in SCRIPTS} - {"COMBINING"}
            if len(scripts) > 1 and not any(scripts <= written for written in TOGETHER):
                return f"letters of two alphabets in {word!a}"
    return ""


def same_person(one: str, other: str) -> bool:
    """Whether two names are one person's: names that differ in case, blanks, unseen characters or look-alikes are.

    Examples:
        >>> same_person("bob", " BOB"), same_person("bob", "rob"), same_person("bob", "b\\N{CYRILLIC SMALL LETTER O}b")
        (True, False, True)
    """
    return one == other or not _looks(one).isdisjoint(_looks(other))


def _looks(name: str) -> set[str]:
    """A name as it is compared: what it looks like in large letters, in small ones, and as it is written."""
    text = unicodedata.normalize("NFKC", name)
    small = text.casefold().translate(SMALL)
    written = "".join(letter.translate(SMALL) if letter == letter.lower() else letter for letter in text)
    return {_plainly(reading) for reading in (text, small, written)}


def _plainly(text: str) -> str:
    """What is seen of a text, in small Latin letters where it looks like them."""
    folded = unicodedata.normalize("NFKD", text.casefold()).translate(LOOKS)
    seen = (letter for letter in folded if unicodedata.category(letter)[0] not in "ZC" and not _unseen(letter))
    return DOTTED.sub("", "".join(seen))


def _shown(letter: str) -> bool:
    """Whether this is a letter or a mark of a script in use that shows something."""
    kind, script = unicodedata.category(letter), _script(letter)
    if script == "HANGUL":
        return "\uac00" <= letter <= "\ud7a3"  # whole syllables; their parts compose to them
    if script == "LATIN" and not (letter < "\u0250" or "\u1e00" <= letter <= "\u1eff" or letter in AFRICAN):
        return False
    cased = kind in ("Lu", "Ll", "Lt") or script != "LATIN"  # the others look like strokes, such as U+01C0
    return kind in ("Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc") and cased and script in SCRIPTS and not _unseen(letter)


def _script(letter: str) -> str:
    return unicodedata.name(letter, "").partition(" ")[0]


def _unseen(letter: str) -> bool:
    return letter > "\x7f" and any(word in unicodedata.name(letter, "") for word in UNSEEN)
