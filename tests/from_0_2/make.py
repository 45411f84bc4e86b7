"""Makes the files beside it: ledgers, streams, training runs and cards as psidp 0.2.0 wrote them.

Made once, with the code of commit b98e338 and its `pip install -e '.[dev]' torch`, and never again:

    git worktree add OLD b98e338
    PYTHONPATH=OLD/src python tests/from_0_2/make.py tests/from_0_2

`ledger.db` is SQLite, `ledger.sql` the same entries of a PostgreSQL schema called `from_0_2`. What they hold, key by
key, is in the constants and calls below; the tests ask for it again.
"""

import datetime
import itertools
import re
import sqlite3
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa

START = datetime.datetime(2026, 5, 9, 12, tzinfo=datetime.UTC)
OPENED = datetime.date(2026, 1, 5)
"""First day of every stream: a Monday; each has weeks, and two of them are published."""

VISITS = {
    "patient": [1, 1, 2, 3, 4, 5],
    "ward": ["A", "B", "A", "A", "B", "B"],
    "cost": [10.0, 20.0, 5.0, 7.0, 3.0, 12.0],
    "day": [datetime.date(2026, 1, d) for d in (5, 6, 13, 14, 20, 21)],
    "came": [datetime.datetime(2026, 1, d, 9) for d in (5, 6, 13, 14, 20, 21)],
}
TABLE = {"by": "ward", "groups": ["A", "B"], "psi": 0.5, "confidence": 0.9, "where": "cost >= 4"}
CUBE = ({"ward": ["A", "B"], "day": [datetime.date(2026, 1, 5), datetime.date(2026, 1, 6)]}, [("ward",), ("day",)])
LARGE = {"by": "ward", "groups": ["A", "B"], "psi": 0.9, "purpose": "a large question"}
STREAM = {"every": "week", "since": OPENED, "periods": 6, "psi": 0.5, "by": "ward", "groups": ["A", "B"]}
ARRAY = [7.0, 8.0, 9.0]


class Clock:
    """A second later with every look."""

    def __init__(self, now):
        self.now = now

    def __call__(self):
        self.now += datetime.timedelta(seconds=1)
        return self.now


def main(folder):
    """Write every file."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from postgres import Server
    from psidp import Ledger

    for name in ("ledger.db", "ledger.db-wal", "ledger.db-shm", "seal.db"):
        (folder / name).unlink(missing_ok=True)
    clock = Clock(datetime.datetime(2025, 11, 20, 8, tzinfo=datetime.UTC))
    with Ledger(folder / "ledger.db", clock=clock, actor="Bob") as ledger:
        fill(ledger, clock, folder / "seal.db")
        (folder / "kept.key").write_text("the key of a test, which is no secret of anybody\n")
        (folder / "kept.json").unlink(missing_ok=True)
        ledger.verify(kept=folder / "kept.json", key=folder / "kept.key")
        runs(ledger, "yearly", renewed=True)  # 0.2 read the clock twice for a renewal, and verified no more
        others(folder, clock)
    _forget_place(folder / "ledger.db")
    with Server() as server:
        clock = Clock(datetime.datetime(2025, 11, 20, 8, tzinfo=datetime.UTC))
        with Ledger(server.place("from_0_2"), clock=clock, actor="Bob") as ledger:
            fill(ledger, clock, server.folder / "seal.db")
            runs(ledger, "yearly", renewed=True)
        (folder / "ledger.sql").write_text(_dump(server))


def fill(ledger, clock, seal):
    """Every kind of entry and event."""
    from psidp import Partitions

    ledger.open("yearly", psi=4.0, kappa=1e-6, actor="Cem", purpose="trainings of a year", renews="year")
    runs(ledger, "yearly")
    clock.now = datetime.datetime(2026, 1, 28, 10, tzinfo=datetime.UTC)
    ledger.open("series", psi=4.0, actor="Ann", purpose="the weekly numbers", unit="patient")
    streams(ledger, seal)
    clock.now = START
    ledger.open(
        "survey", psi=5.0, kappa=1e-5, actor="Ann", purpose="ψ of the 2026 survey", unit="patient", table="visits"
    )
    ledger.open("numbers", psi=2.0, kappa=1e-3, actor="José", purpose="single numbers")
    plain(ledger)
    numbers(ledger)
    tables(ledger)
    ledger.open(
        "sites", psi=1.0, actor="Bea", purpose="by site", partitions=Partitions("site", ("north", "south"), "Bea")
    )
    for site, psi in (("north", 0.8), ("south", 0.6), ("north", 0.25)):
        pay(ledger, "sites", psi, purpose="visits", partition=site)
    ledger.open("team", psi=3.0, actor="Cem", purpose="for two teams")
    ledger.split("team", {"left": 1.0, "right": 2.0}, actor="Cem", purpose="halves and more")
    pay(ledger, "left", 0.5, purpose="a pilot")
    ledger.raise_to("numbers", psi=2.5, kappa=1e-3, actor="Ann", purpose="more numbers")
    ledger.open("again", psi=0.5, actor="Ann", purpose="begins anew")
    pay(ledger, "again", 0.5, purpose="all of it")
    ledger.reset("again", actor="Ann", purpose="other data")
    ledger.open("over", psi=1.0, actor="Ann", purpose="a project that ended")
    ledger.close("over", actor="Ann", purpose="it ended")
    approvals(ledger)
    ledger.open("stopped", psi=1.0, actor="Ann", purpose="an audit")
    ledger.pause("stopped", actor="Ann", purpose="until the audit is over")
    ledger.pause(person="Mallory", actor="Ann", purpose="has left")
    ledger.pause("survey", person="Dora", actor="Ann", purpose="on leave")
    ledger.resume("survey", person="Dora", actor="Ann", purpose="is back")


def pay(ledger, budget, psi, **more):
    """A spend of which nothing comes back."""
    from psidp import Guarantee

    with ledger.spend(budget, Guarantee(psi, unit=ledger.budget(budget).unit), **more) as entry:
        return entry.entry


def runs(ledger, budget, renewed=False):
    """Every kind of training run."""
    from psidp import DPSGD, BandMF, FixedOrder, RandomAllocation

    if renewed:
        with ledger.spend(budget, DPSGD(4.0, 0.01, 100), kappa=1e-9, purpose="the first of the new year") as entry:
            ledger.record_usage(entry.entry, 60)
        return
    for run, kappa, failure in (
        (DPSGD(4.0, 0.01, 100), 1e-9, 0.0),
        (DPSGD(6.0, 0.01, 50, group=2), 1e-9, 1e-10),
        (DPSGD(6.0, 0.01, 50, truncated_batch_size=60, dataset_size=1000), 1e-9, 0.0),
        (RandomAllocation(6.0, 25, 2), 1e-9, 0.0),
        (BandMF(6.0, 0.01, 64, 4), 1e-9, 0.0),
        (FixedOrder(8.0, 4), 0.0, 0.0),
    ):
        terms = {"adjacency": run.adjacency or "add-remove", "unit": run.unit}
        own = budget if terms == {"adjacency": "add-remove", "unit": "record"} else f"{terms['adjacency']} {run.unit}"
        if own not in ledger.budgets():
            ledger.open(own, psi=3.0, kappa=1e-6, actor="Cem", purpose="other trainings", **terms)
        with ledger.spend(own, run, kappa=kappa, failure=failure, purpose=f"a {type(run).__name__} run"):
            pass


def plain(ledger):
    """Guarantees, claims about other mechanisms, and blocks that raised before and after something was drawn."""
    from psidp import Guarantee
    from psidp.ledger.event import price

    for claim in (
        {"epsilon": 0.1},
        {"epsilon": 0.1, "delta": 1e-6},
        {"zcdp": 0.005, "kappa": 1e-6},
        {"alpha": 8.0, "rho": 0.02, "kappa": 1e-6},
    ):
        event = {"kind": "claim", "mechanism": "laplace"} | claim
        with ledger.spend("numbers", price(event), purpose="a claim", event=event):
            pass
    by_hand = {
        "kind": "guarantee",
        "mechanism": "gaussian",
        "epsilon": 0.1,
        "delta": 1e-6,
    }  # as psidp ledger spend has it
    with ledger.spend("numbers", Guarantee.gaussian(epsilon=0.1, delta=1e-6), purpose="by hand", event=by_hand):
        pass
    for key in ("", "failed"):
        try:
            with ledger.spend("numbers", Guarantee(0.01), purpose="fails", retry_key=key):
                raise RuntimeError("before anything is drawn")
        except RuntimeError:
            pass
    for key in ("", "interrupted"):
        try:
            with ledger.spend("numbers", Guarantee(0.01), purpose="is interrupted", retry_key=key) as entry:
                entry.answer(lambda: [][0])
        except IndexError:
            pass


def numbers(ledger):
    """Answers of mechanisms, and of anybody's own code."""
    from psidp import GaussianMechanism, Guarantee
    from psidp.mechanism.clipping import clip_sum

    mechanism = GaussianMechanism(1.0, 20.0, ledger=ledger, budget="numbers")
    mechanism.release(ARRAY, purpose="three sums", retry_key="array")
    mechanism.release(np.array(ARRAY, np.float32), purpose="three sums of 32 bits", retry_key="float32")
    mechanism.release(12, purpose="a count", retry_key="whole", integers=True)
    mechanism.release(12.5, purpose="a number", retry_key="number", request="how many")
    mechanism.release(clip_sum([[0.5], [0.25]], 1.0), purpose="a clipped sum", retry_key="sum")
    with ledger.spend("numbers", Guarantee(0.05), purpose="own code", retry_key="own", request=["own", 1]) as entry:
        entry.answer(lambda: {"mean": float("nan"), "most": float("inf"), "keys": {3: 2}, "large": 1 << 5000})
    try:
        with ledger.spend("numbers", Guarantee(0.05), purpose="keys of two parts", retry_key="pairs") as entry:
            entry.answer(lambda: {(1, "A"): 2})
    except TypeError:
        pass  # 0.2 stored it and could not read it


def tables(ledger):
    """Stored answers of tables and cubes; one release without a key."""
    from psidp import Curator, PrivateGroups, ask

    with Curator(pa.table(VISITS), unit="patient", ledger=ledger, budget="survey") as curator:
        asks = ask.count(), ask.mean("cost", 0, 50)
        curator.release(*asks, **TABLE, purpose="wards", retry_key="table")
        curator.release(ask.units(), by="day", groups=[VISITS["day"][0], None], psi=0.3, retry_key="days")
        curator.release(ask.median("cost", [0, 5, 10, 50]), psi=0.3, retry_key="median")
        groups = PrivateGroups(kappa=1e-6, at_most=1)
        curator.release(ask.count(), by="ward", groups=groups, psi=0.5, retry_key="private groups")
        curator.release(ask.count(), psi=0.2, purpose="without a key")
        curator.cube(
            *CUBE, measures=(ask.count(), ask.mean("cost", 0, 50)), psi=0.5, purpose="a cube", retry_key="cube"
        )
    with Curator(
        pa.table(VISITS),
        unit="ward",
        ledger=ledger,
        budget="survey",
        same_unit="one patient has one ward",
        protects="patient",
    ) as other:
        other.release(ask.count(), psi=0.2, purpose="by another column", retry_key="other unit")


def approvals(ledger):
    """Requests: one that waits, one that is approved, one that is used, one that is denied; of a number and a table."""
    from psidp import Curator, Guarantee, ask
    from psidp.errors import ApprovalNeededError

    ledger.open("asking", psi=6.0, actor="Ann", purpose="large ones wait", unit="patient")
    ledger.limit("asking", 0.4, actor="Ann", purpose="above 0.4 somebody else looks")
    gaussian = {"kind": "gaussian", "sensitivity": 1.0, "sigma": 2.0}
    requests = {}
    for what in ("waits", "approved", "used", "denied"):
        asked = ledger.request(
            "asking",
            Guarantee(0.5, unit="patient"),
            purpose=f"a mean, {what}",
            event=gaussian,
            table="visits",
            days=300,
        )
        requests[what] = asked.id
    for what in ("approved", "used"):
        ledger.approve(requests[what], actor="Ann", purpose="fine", days=300)
    ledger.deny(requests["denied"], actor="Ann", purpose="too much")
    with ledger.spend(
        "asking",
        Guarantee(0.5, unit="patient"),
        purpose="a mean, used",
        event=gaussian,
        table="visits",
        retry_key="used",
    ) as entry:
        entry.answer(lambda: 41.5)
    with Curator(pa.table(VISITS), unit="patient", ledger=ledger, budget="asking") as curator:
        for aggregate, approved in ((ask.count(), False), (ask.sum("cost", 0, 50), True)):
            try:
                curator.release(aggregate, **LARGE)
            except ApprovalNeededError as needed:
                asked = ledger.request(
                    "asking", Guarantee(0.9, unit="patient"), purpose=LARGE["purpose"], event=needed.event,
                    table_unit="patient", days=300,
                )  # fmt: skip
                if approved:
                    ledger.approve(asked.id, actor="Ann", purpose="fine", days=300)


def streams(ledger, seal):
    """Two published weeks each: a condition as text, none, one of Ibis, and sealed totals."""
    import ibis

    from psidp import Curator, ask

    with Curator(pa.table(VISITS), unit="patient", ledger=ledger, budget="series") as curator:
        here = {"arrived": "came", "at_most": 2}
        for name, terms in {
            "text": {"where": "cost >= 4", **here},
            "plain": here,
            "ibis": {"where": ibis._.cost >= 4, **here},
            "sealed": {"totals": "sealed", "dated": "day", "seal": seal, "at_most": 2},
        }.items():
            made = curator.stream(name, ask.count(), ask.sum("cost", 0, 50), windows=[2], **STREAM | terms)
            made.open(f"the weekly numbers, {name}")
            wait = datetime.timedelta(days=7)  # at the end of January two of four weeks are over for so long
            curator.stream(
                name, ask.count(), ask.sum("cost", 0, 50), windows=[2], wait=wait, **STREAM | terms
            ).publish()


def others(folder, clock):
    """Files of every other kind: training, export, plan, answer, cube, card."""
    import torch

    import psidp
    from psidp import Curator, Ledger, ask
    from psidp.bridges.torch import PrivateTrainer
    from psidp.present.card import card

    for name in ("run.pt", "run.pt.steps"):
        (folder / name).unlink(missing_ok=True)
    torch.manual_seed(0)
    model = torch.nn.Linear(2, 1)
    trainer = PrivateTrainer(
        model, torch.optim.SGD(model.parameters(), lr=0.1), torch.nn.functional.mse_loss,
        (torch.ones(40, 2), torch.zeros(40, 1)), sampling_rate=0.25, clip=1.0, epochs=3, psi=2.0, kappa=1e-9,
        checkpoint=folder / "run.pt",
    )  # fmt: skip
    trainer.fit(epochs=1)
    with TemporaryDirectory() as place, Ledger(f"{place}/small.db", clock=clock, actor="Bob") as small:
        small.open("small", psi=1.0, actor="Ann", purpose="to be exported")
        pay(small, "small", 0.5, purpose="half")
        (folder / "export.jsonl").write_text("".join(f"{line}\n" for line in small.export()))
    with Curator(pa.table(VISITS), unit="patient") as curator:
        asks = ask.count(), ask.mean("cost", 0, 50)
        (folder / "plan.json").write_text(curator.plan(*asks, **TABLE).to_json())
        (folder / "cube_plan.json").write_text(curator.plan_cube(*CUBE, psi=0.5).to_json())
        (folder / "answer.json").write_text(curator.release(*asks, **TABLE).to_json())
        (folder / "cube.json").write_text(curator.cube(*CUBE, psi=0.5).to_json())
    (folder / "card.json").write_text(card(psidp.Guarantee(0.5, unit="patient"), date="2026-05-09").to_json())


def _forget_place(path):
    """The file by itself, without its log, as if it had lain in /srv."""
    connection = sqlite3.connect(path)
    connection.execute("UPDATE psidp_place SET folder = '1', file = '1', name = 'ledger.db', path = '/srv/ledger.db'")
    connection.commit()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("VACUUM")
    connection.close()


def _dump(server):
    """What pg_dump says, as statements that any driver can run."""
    address = f"postgresql://psidp@127.0.0.1:{server.port}/postgres"
    flags = ["--inserts", "--schema=from_0_2", "--no-owner", "--no-privileges"]
    done = subprocess.run([server.programs / "pg_dump", *flags, address], capture_output=True, text=True, check=True)
    plain = itertools.filterfalse(
        re.compile(r"\\|--|SET |SELECT pg_catalog.set_config|$").match, done.stdout.splitlines()
    )
    return "\n".join(plain) + "\n"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
