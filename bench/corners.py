"""Random corners of accounting against an oracle in ball arithmetic: false ends, crashes, widths and times.

The oracle is tests/reference/make_corners.py, which shares no code with src. Without --full its two hundred stored
settings are judged, with it 2,000 others, stored too. A setting that the oracle could not answer in some seconds still
counts for crashes, widths and times. What is wrong, wide or slow is told setting by setting.
"""

import gzip
import json
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from time import process_time
from typing import Any

from bench.timing import Report
from psidp import DPSGD, Guarantee, account
from psidp.accounting.exact_sums import float_above, float_below

STORED = Path(__file__).parent.parent / "tests" / "reference"
LEAST = 1e-6
"""Widths are measured against epsilon, or this where it is smaller."""


def run(full: bool, seed: int) -> list[Report]:
    """Counts over all settings, and by method."""
    if full:
        lines = gzip.decompress((STORED / "corners.2000.jsonl.gz").read_bytes()).decode().splitlines()
    else:
        lines = (STORED / "corners.jsonl").read_text().splitlines()
    return [_report(f"{len(lines):,} stored corners", map(json.loads, lines))]


def _report(title: str, settings: Iterable[dict[str, Any]]) -> Report:
    counts: dict[str, Counter[str]] = {}
    total: Counter[str] = Counter()
    report, number, judged = Report(title), 0, 0
    for setting in settings:
        method, marks, words = _judge(setting)
        number, judged = number + 1, judged + ("delta" in setting)
        total.update(marks)
        counts.setdefault(method, Counter()).update([*marks, "all"])
        for sentence in words:
            report.say("found", f"{setting['runs']} psi={setting['psi']} kappa={setting['kappa']}: {sentence}")
    for name, most in (
        ("false ends", 0),
        ("crashes", 0),
        ("wide (above 0.001)", number // 100),
        ("very wide (above 0.1)", 0),
        ("slow (above 1 CPU s)", number // 100),
        ("very slow (above 10 CPU s)", 0),
    ):
        report.add(name, total[name], "", most)
    report.say("judged by the oracle", f"{judged} of {number}")
    for method, marks in sorted(counts.items()):
        report.say(method, ", ".join(f"{count} {name}" for name, count in sorted(marks.items())))
    return report


def _judge(setting: dict[str, Any]) -> tuple[str, list[str], list[str]]:
    """The method to epsilon, what is to be counted, and what is to be told."""
    plain = [Guarantee(setting["psi"], kappa=setting["kappa"])] if setting["psi"] else []
    events = [DPSGD(*run) for run in setting["runs"]] + plain
    marks: list[str] = []
    try:
        curve = account(events)
        if "delta" not in setting:
            found, words = _timed(curve, setting["target"], marks)
            return found.method, marks, words
        low, high = (Fraction(setting["delta"][end]) for end in ("lower", "upper"))
        more, words = _timed(curve, float_above(high), marks)
        less, found = curve.epsilon(float_below(low)), curve.delta(setting["epsilon"])
    except Exception as error:  # a crash is what is looked for
        return "none", ["crashes"], [f"{type(error).__name__}: {error}"]
    false = more.lower > setting["epsilon"] or less.upper < setting["epsilon"]
    false |= Fraction(found.lower) > high or Fraction(found.upper) < low
    words += [f"epsilon {setting['epsilon']!r}: {more}, {less}, {found}"] if false else []
    return more.method, marks + (["false ends"] if false else []), words


def _timed(curve: Any, delta: float, marks: list[str]) -> tuple[Any, list[str]]:
    """epsilon at delta, with marks for its width and its time, and words where there are any."""
    begin = process_time()
    found = curve.epsilon(delta)
    seconds = process_time() - begin
    width = found.width / max(found.upper if found.upper < float("inf") else 1.0, LEAST)
    width = float("inf") if found.upper == float("inf") > found.lower else width
    for name, value, limits in (("wide", width, (1e-3, 0.1)), ("slow", seconds, (1.0, 10.0))):
        unit = " CPU s" if name == "slow" else ""
        for word, limit in ((name, limits[0]), (f"very {name}", limits[1])):
            marks += [f"{word} (above {limit:g}{unit})"] if not value <= limit else []
    return found, [f"epsilon({delta!r}) = {found} in {seconds:.2g} CPU s"] if marks else []
