"""docs/architecture.md shows the tree as it is, and no file imports itself through others."""

import ast
import re
from pathlib import Path

from test_house import BESIDE, DOORS, FILES, FLOORS, SRC

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text()
PICTURE = re.search(r"```text\n(.*?)```", PAGE, re.DOTALL).group(1).splitlines()


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
