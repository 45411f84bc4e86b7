"""Pages keep their word: every example in them runs and prints what they say, and the notation is current."""

import ast
import doctest
import itertools
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import psidp
from psidp.symbols import notation

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    ROOT / "SECURITY.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def name(page):
    return str(page.relative_to(ROOT))


def blocks(page, language):
    return [body for kind, body in BLOCK.findall(page.read_text()) if kind == language]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_python_examples_print_what_the_page_says(page, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    source = "\n".join(blocks(page, "python"))
    if "import torch" in source:
        pytest.importorskip("torch")
    test = doctest.DocTestParser().get_doctest(source, {}, name(page), str(page), 0)
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    assert runner.run(test).failed == 0


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_console_examples_print_what_the_page_says(page, tmp_path):
    for body in blocks(page, "console"):
        for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n?)*)", body, re.MULTILINE):
            if not command.startswith("psidp "):
                continue
            run = [sys.executable, "-m", "psidp", *shlex.split(command)[1:]]
            done = subprocess.run(
                run, capture_output=True, text=True, cwd=tmp_path, check=False, stdin=subprocess.DEVNULL
            )
            printed = done.stdout + done.stderr
            message = f"{command}\nexpected:\n{expected}\nprinted:\n{printed}"
            assert doctest.OutputChecker().check_output(expected, printed, FLAGS), message


def drawn():
    """The pictures that building the site makes, whether it was built here or not."""
    source = (ROOT / "docs" / "site_pages.py").read_text()
    figures = ast.literal_eval(re.search(r"^DRAWN = (.*)$", source, re.MULTILINE)[1])
    return {ROOT / "docs" / "_static" / "made" / f"{f}-{look}.svg" for f in figures for look in ("light", "dark")}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        place = (page.parent / target).resolve()
        assert place.exists() or place in drawn(), f"{name(page)} links to {target}"


def test_the_notation_page_is_what_the_symbols_say():
    page = (ROOT / "docs" / "notation.md").read_text()
    assert page == "\n".join(notation()) + "\n", "run: psidp notation > docs/notation.md"


def test_every_design_page_is_listed():
    index = (ROOT / "docs" / "design" / "README.md").read_text()
    for page in (ROOT / "docs" / "design").glob("*.md"):
        assert page.name == "README.md" or f"({page.name})" in index


def test_the_citation_names_the_version_and_the_paper():
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {psidp.__version__}\n" in citation
    assert "through the sensitivity index" in citation.split("references:")[1]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_column_of_a_table_has_a_name(page):
    """Who listens to a page hears the name of the column with each cell."""
    lines = page.read_text().splitlines()
    for above, rule in itertools.pairwise(lines):
        if above.startswith("|") and re.fullmatch(r"\|( *:?-+:? *\|)+", rule):
            assert all(cell.strip() for cell in above.strip("| ").split("|")), above
            assert not above.startswith("| |"), above
