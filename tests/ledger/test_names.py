"""Two names that look the same are one person: what cannot be seen is in no name, and nobody has a second one."""

import sqlite3
import sys
import unicodedata

import pytest

import psidp
from psidp import Guarantee, Ledger
from psidp.ledger.actor import signed
from psidp.ledger.entry import INSERT, Entry, canonical
from psidp.ledger.names import check_name, same_person

PEOPLE = (
    "Ann", "Zoë O'Neil (IT)", "uid 1000", "DOM\\ann", "bob@example.org", "João", "Nguyễn Thị Ánh", "Ọ̀ṣun",
    "Иван Петров", "Γιώργος", "משה", "محمد", "राम", "தமிழ்", "김철수", "山田太郎", "佐々木", "สมชาย",
)  # fmt: skip
UNSEEN = (
    "\u115f\u1160\u3164\uffa0\u034f\u17b4\u17b5\u180b\ufe0f\U000e0101\u2800\u200b\u200d\u2060\u00ad\u202e\U0001d159"
)
"""Fillers, variation selectors, a joiner of graphemes, blank Braille, what has no width, what turns the order."""


def test_names_of_people_in_the_scripts_in_use_are_accepted():
    for name in PEOPLE:
        for form in ("NFC", "NFD"):
            assert check_name("actor", unicodedata.normalize(form, name))


def test_what_cannot_be_seen_is_in_no_name_and_tells_nobody_apart():
    for letter in UNSEEN:
        for name in (f"bob{letter}", f"{letter}bob", f"b{letter}ob"):
            with pytest.raises(ValueError, match="must consist of visible letters"):
                check_name("actor", name)
            assert same_person("bob", name), ascii(name)


def test_blanks_marks_without_a_letter_and_words_of_two_alphabets_are_refused():
    for name in (
        " bob",
        "bob ",
        "bob  jr",
        "bob\t",
        "bob\u00a0 jr",
        "\u0301bob",
        "bob\u0301\u0301",
        "b\u043eb",
        "\u0412ob",
        "b\u0585b",
        "b\u101db",
        "b\u12d0b",
        "b\u0b20b",
        "bi\u4e28l",
        "b\u1d0fb",
        "\u0269van",
        "🙂",
    ):
        with pytest.raises(ValueError, match="must consist of visible letters"):
            check_name("actor", name)


def test_names_of_other_alphabets_that_look_the_same_are_one_person():
    for one, other in (
        ("BOB", "\u0412\u041e\u0412"),
        ("Anna", "\u0391\u039d\u039d\u0391"),
        ("bob", "ｂｏｂ"),
        ("O'Neil", "O’Neil"),
        ("ava", "\u03b1\u03bd\u03b1"),  # small letters of Greek
        ("Nov", "\u039d\u03bf\u03bd"),
        ("bill", "bi\u0307ll"),  # a second dot on the i
        ("bob", "b\u1d0fb"),  # a small capital
        ("bob", "b\u0585b"),  # Armenian
        ("\u529b\u5c71", "\u30ab\u5c71"),  # an ideograph and a syllable
        ("\u0633\u064a\u0645\u0627", "\u0633\u06cc\u0645\u0627"),  # two letters of Arabic without their dots
    ):
        assert same_person(one, other), (one, other)
    for number, one in enumerate(PEOPLE):
        assert not any(same_person(one, other) for other in PEOPLE[number + 1 :])


def test_every_character_that_a_name_may_hold_shows_something():
    """Against Unicode's own list of characters that are drawn as nothing, as this Python knows it."""
    ignorable = [*range(0x115F, 0x1161), *range(0x17B4, 0x17B6), *range(0x180B, 0x1810), *range(0x200B, 0x2010),
                 *range(0x202A, 0x202F), *range(0x2060, 0x2070), *range(0xFE00, 0xFE10), *range(0xFFF0, 0xFFF9),
                 *range(0xE0000, 0xE1000), 0xAD, 0x34F, 0x61C, 0x2800, 0x3164, 0xFEFF, 0xFFA0]  # fmt: skip
    for number in ignorable:
        with pytest.raises(ValueError, match="must"):
            check_name("actor", f"a{chr(number)}")
    kept = [
        chr(n) for n in range(sys.maxunicode) if unicodedata.category(chr(n)) in ("Cc", "Cf", "Cn", "Co", "Zl", "Zp")
    ]
    for letter in kept[:3000]:
        with pytest.raises(ValueError, match="must"):
            check_name("actor", f"a{letter}b")


def test_nobody_approves_spends_or_is_paused_under_a_name_that_cannot_be_read(ledger):
    ledger.open("survey", psi=1.0, purpose="a test", actor="ann", approval_above=0.3)
    request = ledger.request("survey", Guarantee(0.5), purpose="q", actor="bob")
    for use in (
        lambda name: ledger.approve(request.id, purpose="my own", actor=name),
        lambda name: ledger.spend("survey", Guarantee(0.1), purpose="q", actor=name),
        lambda name: ledger.open("other", psi=1.0, purpose="q", actor=name),
        lambda name: ledger.pause("survey", person=name, purpose="q", actor="ann"),
        lambda name: Ledger("unused.db", actor=name),
    ):
        with pytest.raises(ValueError, match="must consist of visible letters"):
            use("bob\u3164")
    assert ledger.head().id == 2


def test_an_old_ledger_with_odd_names_opens_verifies_and_goes_on(sqlite_url, monkeypatch):
    monkeypatch.setattr("psidp.ledger.actor.check_name", lambda _, name: name)
    monkeypatch.setattr("psidp.ledger.budget.check_name", lambda _, name: name)
    monkeypatch.setattr("psidp.ledger.reading.check_name", lambda _, name: name)
    monkeypatch.setattr("psidp.ledger.pauses.check_name", lambda _, name: name)
    with Ledger(sqlite_url) as ledger:
        ledger.open("survey", psi=1.0, purpose="a test", actor="🙂\u3164")
        ledger.pause("survey", person="bob\u200b", purpose="q", actor="ann")
        with ledger.spend("survey", Guarantee(0.1), purpose="q", actor="🙃"):
            pass
    monkeypatch.undo()
    with Ledger(sqlite_url, actor="ann") as again:
        assert again.verify().id == 3
        with (
            pytest.raises(psidp.errors.BudgetPausedError),
            again.spend("survey", Guarantee(0.1), purpose="q", actor="Bob"),
        ):
            pass
        again.resume("survey", person="bob", purpose="is back")
        with again.spend("survey", Guarantee(0.1), purpose="q", actor="Bob"):
            pass
        assert again.verify().id == 5


def test_an_approval_by_a_look_alike_name_is_found_by_verify(sqlite_url):
    ledger = Ledger(sqlite_url)
    ledger.open("survey", psi=1.0, purpose="a test", actor="ann", approval_above=0.3)
    request = ledger.request("survey", Guarantee(0.5), purpose="q", actor="bob")
    approval = ledger.approve(request.id, purpose="agreed", actor="cem")
    for name in ("bob\u3164", "bob\u200b", "\u0412\u041e\u0412"):
        event = approval.details() | {"by": name}
        columns = {k: v for k, v in approval.to_dict().items() if k != "hash"} | {"event": canonical(event)}
        with sqlite3.connect(sqlite_url) as stranger:
            stranger.executescript("DROP TRIGGER IF EXISTS psidp_entries_stay; DELETE FROM psidp_entries WHERE id = 3")
            stranger.execute(INSERT["sqlite"], Entry.sealed(**columns).row())
        stranger.close()
        with Ledger(sqlite_url) as again, pytest.raises(psidp.errors.TamperedLedgerError, match="entry 3"):
            again.verify()
    ledger.dispose()


def test_a_signed_event_names_a_person_that_can_be_read():
    assert signed({}, "Zoë") == {"by": "Zoë"}
    with pytest.raises(ValueError, match="U\\+2800"):
        signed({}, "bob\u2800")
