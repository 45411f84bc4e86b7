"""The other library's scripts on the pages for those who come from it: each must print what the page says."""

import doctest
import re
import subprocess
import sys
from pathlib import Path

from bench.timing import Report

PAGES = Path(__file__).parent.parent / "docs" / "coming-from"
SCRIPT = re.compile(r"^```py peer\n(.*?)^```", re.DOTALL | re.MULTILINE)
SAID = re.compile(r"print\(.*\)  # (.*)$", re.MULTILINE)


def run(full: bool, seed: int) -> list[Report]:
    """How many scripts of each page print what its comments say."""
    report = Report("migration: scripts of other libraries that print what our pages say")
    for page in sorted(PAGES.glob("*.md")):
        scripts = SCRIPT.findall(page.read_text(encoding="utf-8"))
        if scripts:
            wrong = [trouble for trouble in map(_trouble, scripts) if trouble]
            report.add(
                page.stem, float(len(wrong)), f"of {len(scripts)} differ", at_most=0, note="; ".join(wrong)[:200]
            )
    return [report]


def _trouble(script: str) -> str:
    """What is not as the page says, or nothing."""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    if done.returncode:
        return done.stderr.strip().splitlines()[-1]
    said = "\n".join(SAID.findall(script))
    lines = done.stdout.splitlines()[-len(SAID.findall(script)) :]
    same = doctest.OutputChecker().check_output(said + "\n", "\n".join(lines) + "\n", doctest.ELLIPSIS)
    return "" if same else f"printed {lines}, the page says {said!r}"
