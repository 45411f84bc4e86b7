"""Whatever is asked and however it is shown, a budget pays only for an answer that is stored and printed."""

import atexit
import shutil
import sys
import tempfile
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from datetime import date, timedelta
from decimal import Decimal
from functools import cache
from io import StringIO
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from psidp import Ledger
from psidp.cli.main import main

__all__ = ["FACTORS", "RELAPSES", "explore", "pay"]

RELAPSES: dict[str, object] = {}
ROWS = 300
NEAR = [Decimal(f"1{'0' * 33}.0{digit}") for digit in (0, 1, 2)]
"""Numbers of 36 digits that are one number in 28."""

FACTORS: Mapping[str, tuple[str, ...]] = {
    "measure": (
        "--count", "--units", "--sum cost:auto", "--variance cost:0:100", "--histogram cost:0,50,100",
        "--quantiles cost:0,20,40,100:0.1,0.5", "--median cost:auto", "--weighted-sum cost:0:100:share:1",
        "--ratio cost:0:100/count", "--distinct near:2", "--top 2", "--units --mean cost:0:100 --top 1:cost:0:100",
    ),
    "unit": ("--unit-column who", "--unit-column who --unit-column month", "--rows-are-units"),
    "contribution": ("", "--contribution 3", "--contribution auto", "--clipping-share 0"),
    "groups": (
        "", "--by month --groups 1..12", "--by odd --groups A,B", "--by odd --private-groups 1e-6:3",
        "--by near --private-groups 1e-6:3", "--by odd --by near --private-groups 1e-6:3", "--by month(day)",
        "--by day --private-groups 1e-6:3",
    ),
    "rows": ("", "--where cost<0"),
    "shown": (
        "", "--output FILE.md --figure FILE.svg", "--output FILE.tex --round", "--output FILE.xlsx --json",
        "--figure FILE.html --json", "--whole", "--non-negative --round --output FILE.csv", "--suppress-below 5",
        "--output nowhere/FILE.csv",
    ),
    "price": ("--psi 20", "--epsilon 5 --delta 1e-4", "--psi 5", "--error 5"),
}  # fmt: skip
"""What a release is made of; a word is an option or its value."""


def explore(random: Random) -> None:
    """One release, drawn from the full product."""
    pay({name: random.choice(choices) for name, choices in FACTORS.items()})


def pay(chosen: Mapping[str, str]) -> bool:
    """Ask for a release; whether it was answered. The budget must have paid for a stored and printed answer alone."""
    folder, ledger = _place()
    for file in folder.glob("shown.*"):
        file.unlink()
    words = " ".join(chosen.values()).replace("FILE", str(folder / "shown")).split()
    before, entries = ledger.remaining("b"), len(list(ledger.entries()))
    code, out, err = _run(
        ["release", "table", folder / "rows.parquet", "--ledger", folder / "ledger.db", "--budget", "b", *words]
    )
    states = [entry.state for entry in ledger.entries()][entries:]
    said = f"{' '.join(words)}\n{out}{err}"
    if code:
        assert code == 2, f"ended with code {code}: {said}"
        assert not states, f"refused, and wrote {states}: {said}"
        assert ledger.remaining("b") == before, f"refused and paid: {said}"
        return False
    assert states == ["spent", "answered"], f"released, and wrote {states}: {said}"
    assert out, f"paid, and printed nothing: {said}"
    files = [Path(word) for word in words if word.startswith(str(folder / "shown"))]
    assert all(file.is_file() and file.stat().st_size for file in files) or "No figure was drawn" in err, said
    return True


def _run(words: list[object]) -> tuple[int, str, str]:
    """Exit code, output and messages of the command line."""
    out, err, before = StringIO(), StringIO(), sys.argv
    sys.argv = ["psidp", *map(str, words)]
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main()
        return 0, out.getvalue(), err.getvalue()
    except SystemExit as done:
        return int(done.code or 0), out.getvalue(), err.getvalue()
    finally:
        sys.argv = before


@cache
def _place() -> tuple[Path, Ledger]:
    """A folder with a table of hostile groups, and a ledger with much to spend."""
    folder, random = Path(tempfile.mkdtemp(prefix="psidp-payments-")), Random(1)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    table = {
        "who": [i // 3 for i in range(ROWS)],
        "odd": [random.choice(["A", "\x01\x1b[2J", "\ufffe", "|_&\\"]) for _ in range(ROWS)],
        "near": pa.array([random.choice(NEAR) for _ in range(ROWS)], pa.decimal128(38, 2)),
        "month": [random.randrange(1, 13) for _ in range(ROWS)],
        "day": [date(2026, 1, 1) + timedelta(days=random.randrange(3)) for _ in range(ROWS)],
        "cost": [random.uniform(0.0, 120.0) for _ in range(ROWS)],
        "share": [random.random() for _ in range(ROWS)],
    }
    pq.write_table(pa.table(table), folder / "rows.parquet")
    ledger = Ledger(folder / "ledger.db")
    ledger.open("b", psi=1e6, kappa=0.5, purpose="payments")
    return folder, ledger
