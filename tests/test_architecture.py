"""docs/architecture.md keeps its word: the picture is the tree, and the journeys visit the files that it lists."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import psidp
from test_house import BESIDE, DOORS, FILES, FLOORS, SRC

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text()
PICTURE = re.search(r"```text\n(.*?)```", PAGE, re.DOTALL).group(1).splitlines()
SECTIONS = dict(re.findall(r"^### ([^:\n]+).*?\n(.*?)(?=^##)", PAGE, re.DOTALL | re.MULTILINE))
NAMES = {
    "conversion": "A conversion",
    "account": "An accounted run",
    "array": "A release of an array",
    "table": "A private table",
    "step": "A training step",
}
MOST = 25


def listed(text):
    return re.findall(r"^\d+\. `([\w/]+\.py)`: ", text, re.MULTILINE)


def journey(name):
    run = [sys.executable, str(ROOT / "tests" / "journeys.py"), name]
    done = subprocess.run(run, capture_output=True, text=True, check=True, cwd=ROOT)
    return json.loads(done.stdout)[0]


def lists(name):
    """The page's list for a journey; the table's has a second one, of what a ledger adds."""
    plain, _, more = SECTIONS[NAMES[name]].partition("With a ledger")
    return listed(plain), listed(more)


def test_the_picture_shows_every_floor_in_its_place():
    assert [line.split()[0] for line in PICTURE] == FLOORS[::-1]


def test_the_picture_shows_every_door():
    shown = {line.split()[0]: set(re.findall(r"\w+", line.partition("[")[2])) for line in PICTURE if line.endswith("]")}
    for library, floors in DOORS.items():
        if library != "triton":
            assert any(library in shown.get(floor, ()) for floor in floors), library
    assert set.union(*shown.values()) <= set(DOORS)


def test_the_page_says_which_floors_below_are_not_to_be_known():
    assert {"noise": {"guarantee", "accounting"}, "ledger": {"noise"}} == BESIDE
    assert "`noise` knows neither `guarantee` nor `accounting`, and `ledger` does not know `noise`." in PAGE


def test_every_file_that_the_page_names_exists():
    for name in re.findall(r"`([\w/]+\.(?:py))`", PAGE):
        assert any((root / name).is_file() for root in (SRC, SRC.parent, ROOT)), name


@pytest.mark.parametrize("name", ["conversion", "account", "array", "table", "step"])
def test_a_journey_visits_the_files_that_the_page_lists(name):
    if name == "step":
        pytest.importorskip("torch")
    visited = journey(name)
    assert lists(name)[0] == visited, "\n".join(f"{i}. `{file}`: " for i, file in enumerate(visited, 1))


def test_a_ledger_adds_the_files_that_the_page_lists():
    visited, (plain, more) = journey("table_with_ledger"), lists("table")
    assert more == [file for file in visited if file not in plain]
    assert set(visited) == {*plain, *more}


def test_a_private_table_visits_few_files():
    assert len(lists("table")[0]) <= MOST


def test_the_figures_are_those_of_the_lists():
    plain, more = lists("table")
    counts = {said: len(lists(name)[0]) for name, said in NAMES.items()}
    counts |= {"A private table with a ledger": len(plain) + len(more)}
    for said, count in counts.items():
        row = re.search(rf"^\| {said.lower()} \| .* \| (\d+) files", PAGE, re.MULTILINE)
        assert int(row.group(1)) == count, said
    assert f"| public names at the top | 82 | {len(psidp.__all__)} |" in PAGE


def test_no_file_imports_itself_through_others():
    modules = {_module(path): path for path in FILES}
    below = {name: _imported(path, modules) - {name} for name, path in modules.items()}
    while leaves := [name for name, names in below.items() if not names & below.keys()]:
        for name in leaves:
            del below[name]
    assert not below, f"a cycle is among {sorted(below)}"


def _module(path):
    return ".".join(("psidp", *path.relative_to(SRC).with_suffix("").parts)).removesuffix(".__init__")


def _imported(path, modules):
    """Modules of ours that a file imports, inside functions too; what only type checkers see does not count."""
    tree, found = ast.parse(path.read_text()), set()
    unseen = {n for node in ast.walk(tree) if _for_types(node) for n in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node not in unseen:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (inner & modules.keys()) or {node.module}
    return found & modules.keys()


def _for_types(node):
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
