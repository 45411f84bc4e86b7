"""Streams of tables that are written anew: closed periods are sealed, and no unit counts more often than was paid."""

import datetime
import random
import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Barrier

import pyarrow as pa
import pytest

from curator.test_stream import PLACES, Clock, frame, moment, stopped_at
from psidp import Curator, Ledger, ask
from psidp.curator.seal import Seal
from psidp.mechanism import stream_plan, stream_series
from reference.stream_totals import START

CAPS = [{"at_most": 2}, {"at_most": 12}, {"apart": 3}, {"at_most": 2, "apart": 2}, {"each": "month"}, {"each": 40}]
ASKS = (ask.count(contribution=2), ask.sum("v", -10, 100))
GROUPS = ["a", "b"]
UNIT = 7


@pytest.fixture
def clock():
    return Clock(moment(0))


@pytest.fixture
def book(tmp_path, clock):
    with Ledger(tmp_path / "ledger.db", clock=clock) as made:
        made.open("survey", psi=9.0, unit="patient", actor="Ann", purpose="a test")
        yield made


@pytest.fixture
def encoded(monkeypatch):
    """What is released is the encoding itself; a list of (sigma, encoding)."""
    seen = []
    monkeypatch.setattr(stream_plan, "chosen", cache(stream_plan.chosen))
    monkeypatch.setattr(stream_series, "noisy_integer", lambda g, n: seen.append((g.sigma, n)) or n)
    return seen


def sealed(table, book, seal, name="visits", asks=ASKS, **terms):
    terms = {"every": "week", "since": START, "periods": 12, "psi": 0.5, "by": "g", "groups": GROUPS} | terms
    terms |= {} if {"at_most", "apart", "each"} & set(terms) else {"at_most": 2}
    made = Curator(table, unit="u", ledger=book, budget="survey")
    return made.stream(name, *asks, totals="sealed", dated="a", seal=seal, **terms)


def versions(seed):
    """The table at the end of every week: rows come late, move to other weeks, change, go, and come back."""
    dice = random.Random(seed)
    rows = [
        {"u": dice.randrange(9), "g": dice.choice("abc"), "v": dice.choice([-9.0, 5.0, 1e300, None]), "a": moment(d)}
        for d in range(84)
        for _ in "12"
    ]
    rows += [{"u": UNIT, "g": dice.choice("ab"), "v": 100.0, "a": moment(d)} for d in range(0, 84, 3)]
    found = []
    for t in range(1, 13):
        now = [row | {"a": moment(dice.randrange(7 * t))} if dice.random() < 0.5 else row for row in rows]
        gone = dice.randrange(7 * t)  # some rows of the unit, those of earlier weeks, are erased for once
        found.append((t, [row for row in now if not (row["u"] == UNIT and row["a"] < moment(gone))]))
    return found


def published(book, clock, tables, place, seal, name="visits", **cap):
    """Weeks published at the end of these, each from the table as it is then."""
    for t, rows in tables:
        clock.now = moment(7 * t, 2)
        assert sealed(place(rows), book, seal, name, **cap).open().publish()


def moved(encoded, tables, place, folder, **cap):
    """psi of what one unit moves, in exact integers: what is released with it and without."""
    worlds, clock = [], Clock(moment(0))
    for name, gone in (("with", None), ("without", UNIT)):
        with Ledger(folder / f"{name}.db", clock=clock) as book:
            clock.now = moment(0)
            book.open("survey", psi=1.0, unit="patient", actor="Ann", purpose="a test")
            del encoded[:]
            world = [(t, [r for r in rows if r["u"] != gone]) for t, rows in tables]
            published(book, clock, world, place, folder / f"{name}.seal", **cap)
            worlds.append(list(encoded))
    return sum(((a - b) / sigma) ** 2 for (sigma, a), (_, b) in zip(*worlds, strict=True)) ** 0.5


@pytest.mark.parametrize("cap", CAPS, ids=str)
def test_no_unit_moves_a_sealed_stream_beyond_what_was_paid_whatever_happens_to_the_table(encoded, tmp_path, cap):
    assert 0.15 < moved(encoded, versions(1)[1::2], frame, tmp_path, **cap) <= 0.5


@pytest.mark.parametrize("engine", list(PLACES))
def test_the_same_holds_on_every_engine(request, encoded, tmp_path, engine):
    connection = None if engine == "duckdb" else request.getfixturevalue(engine)
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir(), here.mkdir()
    tables = versions(3)[1:5:3] if engine == "spark" else versions(3)[1:4]
    found = moved(encoded, tables, lambda rows: PLACES[engine](connection, rows), there, at_most=2)
    assert 0.1 < found <= 0.5
    assert found == moved(encoded, tables, frame, here, at_most=2)


def test_a_seal_that_forgets_who_counted_would_break_the_promise(encoded, tmp_path, monkeypatch):
    monkeypatch.setattr(Seal, "barred", lambda *_: set())
    assert moved(encoded, versions(1)[1::2], frame, tmp_path, at_most=2) > 0.75


def test_totals_are_those_of_units_that_may_still_count(book, clock, tmp_path):
    """Unit 1 is in every week: with a separation of 3 it counts in weeks 1, 4, 7, ..., greedily; unit 2 once."""
    rows = [{"u": 1, "g": "a", "v": 1.0, "a": moment(7 * w)} for w in range(12)]
    rows += [{"u": 2, "g": "b", "v": 1.0, "a": moment(7)}]
    clock.now = moment(90)
    made = sealed(frame(rows), book, tmp_path / "s", asks=[ask.count()], apart=3).open()
    made.publish()
    totals = [[n / made._totals.rows.grids[0].truncated(1.0) for n in p.totals] for p in kept(made)]
    assert totals == [[1.0 if w % 3 == 0 else 0.0, 1.0 if w == 1 else 0.0] for w in range(12)]


def kept(made):
    return made._totals.seal.periods(made._record.identity)


def test_a_closed_period_is_never_read_again(book, clock, encoded, tmp_path):
    tables = versions(4)
    published(book, clock, tables[:3], frame, tmp_path / "s")
    before = kept(sealed(frame([]), book, tmp_path / "s"))
    del encoded[:]
    clock.now = moment(28, 2)
    made = sealed(frame([]), book, tmp_path / "s")
    made.publish()
    assert kept(made)[:3] == before
    assert kept(made)[3].totals == (0, 0, 0, 0)
    series = [[p.totals[i] for p in kept(made)] for i in range(4)]
    assert [n for _, n in encoded] == [made.plan().strategy.newest(totals) for totals in series]
    assert any(map(any, series))


def test_nothing_of_it_is_in_the_ledger_and_nobody_else_may_read_the_file(book, clock, tmp_path):
    rows = [{"u": 123456789 + i, "g": "a", "v": 77.125, "a": moment(1)} for i in range(12)]
    clock.now = moment(8)
    made = sealed(frame(rows), book, tmp_path / "s", psi=0.01).open()
    made.publish()
    text = "".join(book.export())
    assert not any(str(total) in text for total in kept(made)[0].totals if total)
    assert "12345679" not in text
    assert (tmp_path / "s").stat().st_mode & 0o077 == 0
    with sqlite3.connect(tmp_path / "s") as file:
        assert file.execute("SELECT count(*), min(unit) FROM counted").fetchone() == (12, "123456789")


def test_a_seal_that_is_lost_another_or_behind_ends_the_stream_and_releases_nothing(book, clock, tmp_path):
    tables, seal = versions(5), tmp_path / "s"
    published(book, clock, tables[:2], frame, seal)
    shutil.copy(seal, tmp_path / "old")
    published(book, clock, tables[1:2], frame, tmp_path / "other", "others")
    clock.now = moment(21, 2)
    sealed(frame(tables[2][1]), book, seal).publish()
    head = book.head()
    clock.now = moment(28, 2)
    for wrong in ("old", "other", "new"):
        with pytest.raises(ValueError, match="must be the one that the 3 published periods were made from"):
            sealed(frame(tables[3][1]), book, tmp_path / wrong).publish()
    assert book.head() == head
    assert len(sealed(frame(tables[3][1]), book, seal).publish()) == 4


def test_two_copies_of_a_seal_that_part_are_found(book, clock, tmp_path):
    tables, seal = versions(6), tmp_path / "s"
    published(book, clock, tables[:2], frame, seal)
    shutil.copy(seal, tmp_path / "copy")
    clock.now = moment(21, 2)
    late = sealed(frame(tables[3][1]), book, tmp_path / "copy")
    late._totals.until(3, late._record)  # has counted week 3, and is slower than the other
    sealed(frame(tables[2][1]), book, seal).publish()
    with pytest.raises(ValueError, match="must be the one that the 3 published periods were made from"):
        late.publish() or late._totals.until(4, late._record)


def test_interrupted_at_any_line_it_goes_on_with_the_same_numbers(book, clock, tmp_path, monkeypatch):
    monkeypatch.setattr(stream_plan, "chosen", cache(stream_plan.chosen))
    tables, line, marks = versions(7), 1, 0
    while True:
        name, seal, clock.now = f"s{line}", tmp_path / f"s{line}", moment(16)
        made = sealed(frame(tables[1][1]), book, seal, name, psi=0.01)
        files = ("curator/stream.py", "curator/seal.py", "stream_totals.py", "ledger/spend.py")
        reached = stopped_at(line, lambda made=made: made.open().publish(), files)
        before = {e.key: e.answer for e in book.entries() if e.state == "answered"}
        found = kept(made) if made._totals.stream else []
        again = sealed(frame(tables[2][1]), book, seal, name, psi=0.01).open()  # the table is another one by now
        again.publish()
        after = {e.key: e.answer for e in book.entries() if e.state == "answered"}
        assert before.items() <= after.items()
        assert kept(again)[: len(found)] == found
        assert [row[-1] for row in again._record.released()] == [p.mark for p in kept(again)]
        marks += bool(found)
        if not reached:
            break
        line += 23  # `./dev fuzz --only kills` kills at all lines
    paid = [e.key for e in book.entries() if e.state == "spent" and e.psi > 0]
    assert len(paid) == len(set(paid)) > 4
    assert 0 < marks < len(paid)
    book.verify()


def test_publishers_at_once_publish_once(book, clock, tmp_path):
    clock.now, tables = moment(29), versions(8)
    sealed(frame([]), book, tmp_path / "s").open()
    barrier = Barrier(4)

    def run(i):
        with Ledger(tmp_path / "ledger.db", clock=clock) as own:
            made = sealed(frame(tables[3 + i][1]), own, tmp_path / "s")
            barrier.wait()
            made.publish()
            return made.series()

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(run, range(4)))
    assert all(series == found[0] for series in found)
    assert sum(e.state == "answered" for e in book.entries()) == 4


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({"totals": None}, 'one of arrived and totals="sealed" must be given'),
        ({"arrived": "a"}, 'one of arrived and totals="sealed" must be given'),
        ({"totals": "kept"}, 'totals must be "sealed" or left out'),
        ({"dated": None}, "must be given with dated, the column of the day"),
        ({"seal": None}, "and seal, the file that keeps the totals"),
        ({"dated": "v"}, r"dated .* must be a column of dates or instants, got 'v' of float64"),
        ({"dated": "day"}, r"dated .* must be a column of it, got dated='day'"),
        ({"totals": None, "arrived": "a"}, 'dated and seal must be given with totals="sealed"'),
    ],
)
def test_what_is_missing_is_said(book, tmp_path, terms, words):
    terms = {"totals": "sealed", "dated": "a", "seal": tmp_path / "s", "at_most": 1} | terms
    terms |= {"every": "week", "since": START, "periods": 3, "psi": 0.5}
    with pytest.raises((ValueError, TypeError), match=words):
        Curator(frame([]), unit="u", ledger=book, budget="survey").stream("s", ask.count(), **terms)


def test_units_need_a_name_that_can_be_kept_and_the_file_must_be_a_seal(book, clock, tmp_path):
    terms = {"every": "week", "since": START, "periods": 3, "psi": 0.5, "totals": "sealed", "dated": "a"}
    terms |= {"seal": tmp_path / "s"}
    rows = Curator(frame([]), unit=None, ledger=book, budget="survey", same_unit="a row is a patient")
    with pytest.raises(ValueError, match='unit must be a column where totals are "sealed"'):
        rows.stream("s", ask.count(), **terms)
    days = frame([]).set_column(0, "u", pa.array([], pa.date32()))
    with pytest.raises(TypeError, match="must hold whole numbers, text or UUIDs"):
        Curator(days, unit="u", ledger=book, budget="survey").stream("s", ask.count(), at_most=1, **terms)
    clock.now = moment(8)
    (tmp_path / "text").write_text("not a database, and long enough to be taken for something else")
    for wrong in (tmp_path / "ledger.db", tmp_path / "text"):
        with pytest.raises(ValueError, match="must be a new file or one that a stream made"):
            sealed(frame([]), book, wrong).open().publish()
    with pytest.raises(ValueError, match="must be a file that can be written"):
        sealed(frame([]), book, tmp_path / "nowhere" / "s").publish()


def test_a_period_counts_what_is_there_when_it_is_published(book, clock, tmp_path):
    """Late rows and corrections count until the week is published, which `wait` puts off; not afterwards."""
    rows = [{"u": i, "g": "a", "v": 5.0, "a": moment(1)} for i in range(3)]
    terms = {"asks": [ask.sum("v", 0, 100)], "wait": datetime.timedelta(days=10)}
    clock.now = moment(16)
    assert sealed(frame(rows), book, tmp_path / "s", **terms).open().publish() == []
    rows[0]["v"] = 50.0
    rows.append({"u": 4, "g": "a", "v": 7.0, "a": moment(2)})
    clock.now = moment(17, 1)
    made = sealed(frame(rows), book, tmp_path / "s", **terms)
    assert len(made.publish()) == 2
    step = made._totals.rows.grids[0].step
    assert kept(made)[0].totals[0] * step == pytest.approx(67.0)
    rows[1]["v"] = 99.0
    clock.now = moment(24, 1)
    again = sealed(frame(rows), book, tmp_path / "s", **terms)
    again.publish()
    assert kept(again)[0] == kept(made)[0]
