"""Random corners of accounting against an oracle in ball arithmetic: false ends, crashes, widths and times.

The oracle is tests/reference/make_corners.py, which shares no code with src. Without --full its two hundred stored
settings are judged, with it 2,000 fresh ones. A setting that the oracle cannot answer in some seconds still counts for
crashes, widths and times.
"""

import json
import random
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path
from time import process_time
from typing import Any

from bench.timing import Report
from psidp import DPSGD, Guarantee, account
from psidp.accounting.exact_sums import float_above, float_below

TESTS = Path(__file__).parent.parent / "tests"
COUNT = 2000
LEAST = 1e-6
"""Widths are measured against epsilon, or this where it is smaller."""


def run(full: bool, seed: int) -> list[Report]:
    """Counts over all settings, and by method."""
    if full:
        return [_report(f"{COUNT} random corners, seed {seed}", _fresh(seed))]
    lines = (TESTS / "reference" / "corners.jsonl").read_text().splitlines()
    return [_report("The two hundred stored corners", (json.loads(line) for line in lines))]


def _fresh(seed: int) -> Any:
    """Settings with a reference, or with none where the oracle has no answer."""
    sys.path[:0] = [str(TESTS), str(TESTS / "reference")]
    from reference import make_corners

    dice = random.Random(seed)
    for i in range(COUNT):
        kind = make_corners.KINDS[i % len(make_corners.KINDS)]
        state = dice.getstate()
        found = make_corners.setting(dice, kind)
        if found is None:
            dice.setstate(state)
            runs, psi, kappa, target = make_corners.draw(dice, kind)
            found = {"runs": runs, "psi": psi, "kappa": kappa, "target": max(target, 2.0 * kappa)}
        yield found


def _report(title: str, settings: Any) -> Report:
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
            return _timed(curve, setting["target"], marks)[0].method, marks, []
        low, high = (Fraction(setting["delta"][end]) for end in ("lower", "upper"))
        more, _ = _timed(curve, float_above(high), marks)
        less, found = curve.epsilon(float_below(low)), curve.delta(setting["epsilon"])
    except Exception as error:  # a crash is what is looked for
        return "none", ["crashes"], [f"{type(error).__name__}: {error}"]
    false = more.lower > setting["epsilon"] or less.upper < setting["epsilon"]
    false |= Fraction(found.lower) > high or Fraction(found.upper) < low
    words = [f"epsilon {setting['epsilon']!r}: {more}, {less}, {found}"] if false else []
    return more.method, marks + (["false ends"] if false else []), words


def _timed(curve: Any, delta: float, marks: list[str]) -> tuple[Any, float]:
    """epsilon at delta, with marks for its width and its time."""
    begin = process_time()
    found = curve.epsilon(delta)
    seconds = process_time() - begin
    width = found.width / max(found.upper if found.upper < float("inf") else 1.0, LEAST)
    width = float("inf") if found.upper == float("inf") > found.lower else width
    for name, value, limits in (("wide", width, (1e-3, 0.1)), ("slow", seconds, (1.0, 10.0))):
        unit = " CPU s" if name == "slow" else ""
        for word, limit in ((name, limits[0]), (f"very {name}", limits[1])):
            marks += [f"{word} (above {limit:g}{unit})"] if value > limit else []
    return found, seconds
