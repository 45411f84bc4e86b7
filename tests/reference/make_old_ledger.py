"""Makes old_ledger.db: a ledger as it was written before words changed (`by`, `key`, `keys` and `level` for what is now
`actor`, `retry_key`, `groups` and `confidence`).

Made once, with the code of commit c68dff5, and never again:

    PYTHONPATH=<checkout of c68dff5>/src python tests/reference/make_old_ledger.py old_ledger.db
"""

import sys
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pyarrow as pa

VISITS = {"patient": [1, 1, 2, 3, 4], "ward": ["A", "B", "A", "A", "B"], "cost": [10.0, 20.0, 5.0, 7.0, 3.0]}


def make(path: Path) -> None:
    """Write the ledger. The calls are those of the old version."""
    from psidp import DPSGD, Curator, GaussianMechanism, Guarantee, Ledger, Partitions, ask

    minutes = count()
    start = datetime(2026, 5, 9, 12, 0, tzinfo=UTC)
    ledger = Ledger(path, clock=lambda: start + timedelta(minutes=next(minutes)))
    ledger.open("survey", psi=2.0, kappa=1e-6, by="Ann", purpose="the 2026 survey", unit="patient")
    with ledger.spend("survey", Guarantee(0.3, unit="patient"), purpose="a mean"):
        pass
    curator = Curator(pa.table(VISITS), unit="patient", ledger=ledger, budget="survey")
    curator.release(
        ask.count(), ask.mean("cost", 0, 50), by="ward", keys=["A", "B"], psi=0.5, level=0.9, purpose="wards", key="w-1"
    )
    ledger.open("numbers", psi=1.0, by="Ann", purpose="single numbers")
    mechanism = GaussianMechanism(1.0, 4.0, ledger=ledger, budget="numbers")
    mechanism.release([1.0, 2.0, 3.0], purpose="three sums", key="n-1")
    ledger.open("sites", psi=1.0, by="Bea", purpose="by site", partitions=Partitions("site", ("north", "south"), "Bea"))
    for site, psi in (("north", 0.8), ("south", 0.6), ("north", 0.25)):
        with ledger.spend("sites", Guarantee(psi), purpose="visits", partition=site):
            pass
    ledger.open("team", psi=3.0, by="Cem", purpose="for two teams")
    ledger.split("team", {"left": 1.0, "right": 2.0}, by="Cem", purpose="halves and more")
    with ledger.spend("left", Guarantee(0.5), purpose="a pilot"):
        pass
    ledger.raise_to("numbers", psi=1.5, by="Ann", purpose="more numbers")
    ledger.open("run", psi=4.0, kappa=1e-6, by="Cem", purpose="one training", renews="year")
    with ledger.spend("run", DPSGD(4.0, 0.01, 100), kappa=1e-9, purpose="a model") as entry:
        pass
    ledger.used(entry.entry, 60)
    ledger.verify()
    curator.dispose()
    ledger.dispose()


if __name__ == "__main__":
    make(Path(sys.argv[1]))
