"""./dev compare 0.2: are the answers of this version those of 0.2?

400 public questions go through both versions with the same scripted randomness (door.py). The exact totals, what is
paid, the plan, and every number with its error, interval and flag must be equal, or the difference is listed with its
reason in differences.json: of which questions (a pattern with stars), which fields, and how far at most ("within", a
relative distance; any difference where it is left out). Totals and what is paid must be equal to the last bit, other
numbers up to 1e-12, which is what another order of a sum can change. Leaves with the release after 0.3.
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from fnmatch import fnmatchcase
from math import inf
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench.since_0_2 import environment, tables
from bench.since_0_2.lines import dumps
from bench.since_0_2.process import Process
from bench.since_0_2.questions import QUESTIONS

Data = dict[str, Any]

EXACT = ("error", "totals", "psi", "ledger")
FIELDS = (*EXACT, "plan", "rows", "values", "errors", "intervals", "flags")
ROUNDING = 1e-12
SHOWN = 2
LISTED = Path(__file__).with_name("differences.json")


def main() -> None:
    """Ask both versions, and name what differs."""
    parser = argparse.ArgumentParser(prog="./dev compare", description="400 questions to this version and to 0.2.")
    parser.add_argument("version", choices=["0.2"], help="the version to compare with")
    parser.add_argument(
        "--only", default="", metavar="PATTERN", help="questions with this in their name; * is any text"
    )
    parser.add_argument("--list", action="store_true", help="name the questions, and ask nothing")
    given, console = parser.parse_args(), Console(highlight=False, markup=False, soft_wrap=True)
    questions = [q for q in QUESTIONS if fnmatchcase(q["name"], f"*{given.only}*")]
    if given.list:
        console.print("\n".join(q["name"] for q in questions))
        return
    environment.install()
    listed = json.loads(LISTED.read_text())
    met, wrong, differing = Counter[int](), 0, 0
    for question, old, new in answers(questions):
        entries, lines = judged(question["name"], old, new, listed)
        met.update(entries)
        wrong, differing = wrong + bool(lines), differing + bool(entries and not lines)
        if lines:
            console.print("\n  ".join([question["name"], *lines]))
    for i, entry in enumerate(listed):
        console.print(f"listed: {entry['questions']}, {', '.join(entry['fields'])} ({met[i]} here): {entry['reason']}")
    console.print(f"{len(questions) - wrong} of {len(questions)} equal or listed ({differing} listed)")
    sys.exit(wrong > 0 or not questions)


def answers(questions: list[Data]) -> Iterator[tuple[Data, Data, Data]]:
    """Every question with the answers of both versions, which are asked at the same time."""
    columns = TextColumn("questions"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="psidp-compare-")))
        tables.write(folder)
        place = {"folder": str(folder), "postgres": ""}
        if any(q["source"] == "postgres" for q in questions):
            place["postgres"] = _on_postgres(stack)
        versions = [stack.enter_context(started()) for started in (Process.of_0_2, Process.now)]
        lines = [{"do": "ask", "question": question, "place": place} for question in questions]
        both = zip(questions, *(version.answers(lines) for version in versions), strict=True)
        bar = stack.enter_context(Progress(*columns, console=Console(stderr=True), transient=True))
        yield from bar.track(both, total=len(questions))


def _on_postgres(stack: ExitStack) -> str:
    """The address of a server of our own that has the tables."""
    sys.path.append(str(environment.ROOT / "tests"))
    from postgres import Server, why_no_server

    if reason := why_no_server():
        sys.exit(f"some questions are for PostgreSQL: {reason}")
    address = stack.enter_context(Server()).place("compared")
    tables.in_postgres(address)
    return address


def judged(name: str, old: Data, new: Data, listed: list[Data]) -> tuple[set[int], list[str]]:
    """Which entries of the list a question meets, and what differs without being listed, in words."""
    if "error" in old:
        return set(), [f"0.2 does not answer: {old['error']}"]
    met, lines, first, second = set(), [], fields(old), fields(new)
    for field in FIELDS:
        found = list(differences(first[field], second[field], 0.0 if field in EXACT else ROUNDING))
        entry = next((i for i, e in enumerate(listed) if found and _fits(e, name, field, first, second)), None)
        if entry is not None:
            met.add(entry)
        else:
            lines += [f"{field}{line}" for line in found[:SHOWN]]
            lines += [f"{field}: {len(found) - SHOWN} more"] if len(found) > SHOWN else []
    return met, lines


def _fits(entry: Data, name: str, field: str, old: Data, new: Data) -> bool:
    """Whether an entry of the list is about this difference."""
    about = fnmatchcase(name, entry["questions"]) and field in entry["fields"]
    return about and not any(differences(old[field], new[field], entry["within"]) if "within" in entry else ())


def fields(answer: Data) -> Data:
    """An answer by what is compared: numbers apart from their errors, intervals and flags."""
    rows = answer.get("rows", [])
    return {name: answer.get(name) for name in FIELDS[:5]} | {
        "rows": [[row["of"], row["key"], row["statistic"]] for row in rows],
        "values": [row["value"] for row in rows],
        "errors": [row["standard_error"] for row in rows],
        "intervals": [[row["lower"], row["upper"]] for row in rows],
        "flags": [row["flag"] for row in rows],
    }


def differences(old: Any, new: Any, within: float, place: str = "") -> Iterator[str]:
    """Where two values of plain data differ, in words."""
    if isinstance(old, dict) and isinstance(new, dict) and old.keys() == new.keys():
        for name in old:
            yield from differences(old[name], new[name], within, f"{place} {name}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for i, pair in enumerate(zip(old, new, strict=True)):
            yield from differences(*pair, within, f"{place} [{i}]")
    elif not _equal(old, new, within):
        yield f"{place}: {dumps(old)[:200]} became {dumps(new)[:200]}"


def _equal(old: Any, new: Any, within: float) -> bool:
    """Whether two numbers or texts are the same; of floats, up to a relative distance, and NaN is NaN."""
    if not (isinstance(old, float) and isinstance(new, float)):
        return type(old) is type(new) and old == new
    if old == new or (old != old and new != new):
        return True
    return max(abs(old), abs(new)) < inf and abs(old - new) <= within * max(abs(old), abs(new))


if __name__ == "__main__":
    main()
