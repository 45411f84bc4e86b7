"""Ctrl-C: before the spend it costs nothing; after it, under a retry key, the release goes on and is stored."""

import os
import signal
import sys
from threading import Thread, Timer

import duckdb
import pyarrow as pa
import pytest

import psidp
from psidp import Curator, PrivateGroups, ask
from psidp.cli import main
from psidp.tables.engines.duckdb import PROGRESS, DuckDB
from psidp.tables.payment import held_back
from psidp.tables.strategies.identity import IndependentNoise

ROWS = pa.table({"who": range(200), "ward": ["A", "B"] * 100})


@pytest.fixture(autouse=True)
def listening():
    """Ctrl-C raises KeyboardInterrupt, also in a process that was started in the background, where it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def press():
    """Ctrl-C, as the terminal sends it."""
    os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture
def ledger(tmp_path):
    made = psidp.Ledger(tmp_path / "ledger.db")
    made.open("survey", psi=10.0, kappa=1e-6, unit="who", actor="Ann", purpose="test")
    yield made
    made.dispose()


@pytest.fixture
def curator(ledger):
    return Curator(ROWS, "who", ledger=ledger, budget="survey")


def states(ledger):
    return [entry.state for entry in ledger.entries()]


def test_ctrl_c_inside_duckdb_is_no_error_of_the_engine():
    """DuckDB answers it with a RuntimeError of its own; ten billion rows would take it minutes."""
    connection = duckdb.connect()
    connection.execute("create view endless as select a.range as who from range(100000) a, range(100000) b")
    timer = Timer(0.3, press)
    question = Curator(connection, None, name="endless").ask(ask.histogram("who", [0, 10, 20]))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        question.release(psi=1.0)
    timer.join()


@pytest.mark.parametrize("terms", [{}, {"retry_key": "k"}], ids=str)
def test_before_the_spend_it_costs_nothing(curator, ledger, monkeypatch, terms):
    columns = DuckDB.columns

    def stopped(self, sql):
        press()
        return columns(self, sql)

    monkeypatch.setattr(DuckDB, "columns", stopped)
    with pytest.raises(KeyboardInterrupt, match="nothing was spent"):
        curator.ask(ask.count()).release(psi=1.0, **terms)
    assert states(ledger) == ["opened"]
    monkeypatch.undo()
    assert not curator.ask(ask.count()).release(psi=1.0, **terms).stored


@pytest.mark.parametrize("groups", [["A", "B"], PrivateGroups(1e-9, 2)], ids=["public", "private"])
def test_after_the_spend_the_release_goes_on_under_its_retry_key(curator, ledger, monkeypatch, groups):
    """Private groups ask the engine once more after they are paid for: that goes on too."""
    draw, handler = (
        IndependentNoise.draw,
        signal.getsignal(signal.SIGINT),
    )  # Spark has one of its own, once it was started

    def stopped(*arguments):
        press()
        return draw(*arguments)

    monkeypatch.setattr(IndependentNoise, "draw", stopped)
    question = curator.ask(ask.count(), by="ward", groups=groups)
    with pytest.raises(KeyboardInterrupt, match="stored under retry_key 'k'"):
        question.release(psi=5.0, retry_key="k")
    assert states(ledger) == ["opened", "spent", "answered"]
    assert signal.getsignal(signal.SIGINT) is handler
    again = question.release(psi=5.0, retry_key="k")
    assert again.stored
    assert [row["ward"] for row in again] == ["A", "B"]


def test_after_the_spend_without_a_key_the_answer_is_stored_under_one_that_is_made(curator, ledger, monkeypatch):
    draw = IndependentNoise.draw

    def stopped(*arguments):
        press()
        return draw(*arguments)

    monkeypatch.setattr(IndependentNoise, "draw", stopped)
    with pytest.raises(KeyboardInterrupt, match="stored under retry_key 'release-") as stop:
        curator.ask(ask.count()).release(psi=1.0)
    monkeypatch.undo()
    assert states(ledger) == ["opened", "spent", "answered"]
    assert curator.ask(ask.count()).release(psi=1.0, retry_key=str(stop.value).split("'")[1]).stored


def test_a_second_ctrl_c_does_not_wait_and_other_threads_have_no_part():
    def twice():
        with held_back("waited"):
            press()
            press()

    with pytest.raises(KeyboardInterrupt, match="the same retry_key asks again"):
        twice()
    done = []

    def elsewhere():
        with held_back("waited"):
            done.append(True)

    thread = Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert done == [True]


def test_duckdb_tells_how_far_it_is():
    """Percent, from another thread, in a connection of ours; -1 where it does not count."""
    connection = duckdb.connect()
    for setting in PROGRESS:
        connection.execute(setting)
    connection.execute("create view long as select a.range as who from range(30000) a, range(100000) b")
    curator = Curator(connection, None, name="long")
    seen = []

    def watch():
        while not seen or len(seen) < 3:
            percent = curator.progress()
            seen.extend([] if percent is None else [percent])
        press()

    thread = Thread(target=watch)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        curator.ask(ask.histogram("who", [0, 10, 20])).release(psi=1.0)
    thread.join()
    assert all(0.0 <= percent <= 100.0 for percent in seen)


def test_the_command_line_says_what_was_spent(tmp_path, ledger, monkeypatch, capsys):
    (tmp_path / "v.csv").write_text("who\n" + "\n".join(map(str, range(50))) + "\n")
    columns = DuckDB.columns

    def stopped(self, sql):
        press()
        return columns(self, sql)

    monkeypatch.setattr(DuckDB, "columns", stopped)
    words = ["psidp", "release", "table", tmp_path / "v.csv", "--unit-column", "who", "--count", "--psi", 1]
    words += ["--ledger", tmp_path / "ledger.db", "--budget", "survey"]
    monkeypatch.setattr(sys, "argv", list(map(str, words)))
    with pytest.raises(SystemExit) as stop:
        main.main()
    out, err = capsys.readouterr()
    assert (stop.value.code, out) == (130, "")
    assert err == "psidp: stopped; nothing was spent.\n"
    assert states(ledger) == ["opened"]
