"""The other library's scripts on the pages for those who come from it: each must print what the page says."""

import doctest
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.timing import Report

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "docs" / "coming-from"
SCRIPT = re.compile(r"^```py peer\n(.*?)^```", re.DOTALL | re.MULTILINE)
SAID = re.compile(r"print\(.*\)  # (.*)$", re.MULTILINE)
APART = {"tumult": "tmlt.analytics==0.21.0"}
"""Pages whose library does not go together with the other peers (here: NumPy 1), and what to install for them."""


def run(full: bool, seed: int) -> list[Report]:
    """How many scripts of each page print what its comments say."""
    report = Report("migration: scripts of other libraries that print what our pages say")
    for page in sorted(PAGES.glob("*.md")):
        scripts = SCRIPT.findall(page.read_text(encoding="utf-8"))
        if not scripts:
            continue
        python, missing = _interpreter(page.stem)
        if missing:
            report.say(page.stem, f"not run, since {APART[page.stem]} does not install here: {missing}")
            continue
        wrong = [trouble for script in scripts if (trouble := _trouble(script, python))]
        report.add(page.stem, float(len(wrong)), f"of {len(scripts)} differ", at_most=0, note="; ".join(wrong)[:200])
    return [report]


def _interpreter(page: str) -> tuple[str, str]:
    """The Python that has a page's library, made where it must be one of its own; else why there is none."""
    if page not in APART:
        return sys.executable, ""
    folder = ROOT / f".venv-peers-{page}"
    python = str(folder / "bin" / "python")
    if not Path(python).exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", APART[page]]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    return python, done.stderr.strip().splitlines()[-1] if done.returncode else ""


def _trouble(script: str, python: str) -> str:
    """What is not as the page says, or nothing."""
    with tempfile.TemporaryDirectory() as folder:  # Spark leaves files where it is started
        done = subprocess.run([python, "-c", script], capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode:
        return done.stderr.strip().splitlines()[-1]
    said = "\n".join(SAID.findall(script))
    lines = done.stdout.splitlines()[-len(SAID.findall(script)) :]
    same = doctest.OutputChecker().check_output(said + "\n", "\n".join(lines) + "\n", doctest.ELLIPSIS)
    return "" if same else f"printed {lines}, the page says {said!r}"
