"""Processes that spend and are killed: at random moments, or between two chosen statements.

Run as a script: "random", URL, kills, seed; or "every", URL with NUMBER in it, stride, first statement.

A process of its own, so that forking is safe: everything is imported once, each victim is a fork.
"""

import json
import os
import random
import signal
import sys
import time
from functools import partial

from sqlalchemy import Engine, event

from psidp import Guarantee, Ledger
from psidp.errors import NotALedgerError
from psidp.ledger.entry import genesis
from psidp.ledger.schema import identity_of
from psidp.ledger.verify import Verification

CAP = 1e6


def spend_for_ever(url, pipe, seed):
    """Plain, keyed and failing spends in turn; what is released leaves through the pipe."""
    ledger, dice = Ledger(url), random.Random(seed)
    ledger.remaining("survey")
    os.write(pipe, b"ready\n")
    turn = 0
    while True:
        turn += 1
        once(ledger, pipe, f"{seed}-{turn}", ("plain", "keyed", "failing")[turn % 3], dice.uniform(0.01, 0.1))


def once(ledger, pipe, token, how, psi):
    key = token if how == "keyed" else ""
    try:
        with ledger.spend("survey", Guarantee(psi), purpose=token, retry_key=key, request=token) as entry:
            if how == "failing":
                raise RuntimeError("before anything was drawn")
            noise = entry.answer(random.SystemRandom().random)
            line = json.dumps({"id": entry.id, "token": token, "psi": psi, "key": key, "noise": noise})
            os.write(pipe, line.encode() + b"\n")
    except RuntimeError:
        pass


def killed(url, seed, dice):
    """The lines that left a process which was killed at a random moment after some of its releases."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            spend_for_ever(url, writer, seed)
        finally:
            os._exit(3)
    os.close(writer)
    got, wanted, begun = b"", dice.randrange(1, 5), time.monotonic()
    while got.count(b"\n") < wanted:
        chunk = os.read(reader, 65536)
        assert chunk, ("the process ended by itself", got, os.waitpid(child, 0))
        got += chunk
    time.sleep(dice.uniform(0.0, 2.0) * (time.monotonic() - begun) / wanted)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), (status, got)
    while chunk := os.read(reader, 65536):
        got += chunk
    os.close(reader)
    lines = got.split(b"\n")
    assert lines[0] == b"ready"
    return [json.loads(line) for line in lines[1:] if line]


def covered(released, entries):
    """Every noise that left is paid for by a durable entry, and is the stored answer where it has a key."""
    spends = {e.id: e for e in entries if e.state == "spent"}
    answers = {e.key: json.loads(e.answer) for e in entries if e.state == "answered"}
    for line in released:
        spend = spends[line["id"]]
        assert (spend.purpose, spend.psi) == (line["token"], line["psi"])
        assert not line["key"] or answers[line["key"]] == line["noise"]


def random_kills(url, kills, seed):
    """So many kills, the ledger reopened and checked after each."""
    dice, walk, noises, states = random.Random(seed), None, 0, {}
    ledger = Ledger(url)
    ledger.open("survey", psi=CAP, actor="Ann", purpose="to be killed")
    for number in range(kills):
        ledger.dispose()
        released = killed(url, number, dice)
        ledger = Ledger(url)
        if walk is None:
            walk = Verification(ledger._read(lambda chain: genesis(identity_of(chain.connection))))
        fresh = list(ledger.entries(after=walk.id))
        ledger._read(partial(walk.over, fresh))
        covered(released, fresh)
        noises += len(released)
        for entry in fresh:
            states[entry.state] = states.get(entry.state, 0) + 1
    with ledger.spend("survey", Guarantee(0.1), purpose="the last"):  # after a COMMIT that a dead client had sent
        pass
    ledger._read(lambda log: walk.over(list(log.some(None, walk.id)), log))
    assert ledger.verify() == walk.head
    return {"kills": kills, "noises": noises, "entries": walk.id} | states


def kill_after(statements):
    """Kill this process before or after its so-manieth statement."""
    count = [0]

    def tick(*_):
        if count[0] == statements:
            os.kill(os.getpid(), signal.SIGKILL)
        count[0] += 1

    event.listen(Engine, "before_cursor_execute", tick)
    event.listen(Engine, "after_cursor_execute", tick)


def scene(url, pipe):
    """A ledger made, a budget opened, and one spend of each kind."""
    ledger = Ledger(url)
    ledger.open("survey", psi=CAP, actor="Ann", purpose="to be killed")
    for how in ("plain", "keyed", "failing"):
        once(ledger, pipe, how, how, 0.1)


def every_statement(fresh_url, stride, first):
    """The scene killed between two statements, one pair in `stride`; reopened and counted each time."""
    for kills, statements in enumerate(range(first, 1000, stride)):
        url = fresh_url(statements)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                kill_after(statements)
                scene(url, writer)
                os._exit(0)
            finally:
                os._exit(3)
        os.close(writer)
        _, status = os.waitpid(child, 0)
        lines = [json.loads(line) for line in os.read(reader, 65536).split(b"\n") if line]
        os.close(reader)
        if reopened(url, lines, finished=not os.WIFSIGNALED(status)):
            return {"kills": kills}
    raise AssertionError("the scene never ended")


def reopened(url, released, finished):
    """What is there is whole, covers what left, and can be gone on with."""
    ledger = Ledger(url)
    try:
        ledger.verify()
        entries = list(ledger.entries())
    except NotALedgerError:
        entries = []
    covered(released, entries)
    if not entries:
        ledger.open("survey", psi=CAP, actor="Ann", purpose="again")
    with ledger.spend("survey", Guarantee(0.1), purpose="afterwards"):
        pass
    ledger.verify()
    ledger.dispose()
    if finished:
        assert [e.state for e in entries] == ["opened", "spent", "spent", "answered", "spent", "withheld"]
        assert len(released) == 2
    return finished


if __name__ == "__main__":
    what, where, many, start = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    if what == "random":
        result = random_kills(where, many, seed=start)
    else:
        result = every_statement(lambda number: where.replace("NUMBER", str(number)), many, start)
    print(json.dumps(result))
