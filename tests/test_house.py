"""The house keeps its shape: floors rest on floors below, outside libraries have one door."""

import ast
from pathlib import Path

SRC = Path(__file__).parent.parent / "src" / "psidp"
FLOORS = [
    "errors",
    "forms",
    "escaping",
    "symbols",
    "notebook_view",
    "maths",
    "theory",
    "guarantee",
    "accounting",
    "noise",
    "strategies",
    "ledger",
    "mechanism",
    "tables",
    "auditing",
    "bridges",
    "present",
    "cli",
]
BESIDE = {"noise": {"guarantee", "accounting"}, "ledger": {"noise"}}  # below, and yet not to be known
DOORS = {
    "scipy": {"maths"},
    "cryptography": {"noise"},
    "sqlalchemy": {"ledger"},
    "duckdb": {"tables"},
    "sqlglot": {"tables"},
    "psycopg": {"tables", "ledger"},
    "pyspark": {"tables"},
    "altair": {"present"},
    "openpyxl": {"present"},
    "typer": {"cli"},
    "rich": {"present", "cli"},
    "fastapi": {"present"},
    "opacus": {"bridges"},
    "dp_accounting": {"bridges"},
    "jax": {"bridges"},
    "mbi": {"bridges"},
    "torch": {"bridges"},
    "triton": {"bridges"},
}
FILES = sorted(SRC.rglob("*.py"))


def floor_of(path: Path) -> str:
    return path.relative_to(SRC).parts[0].removesuffix(".py")


def below(floor: str) -> set[str]:
    """What a floor may import besides itself."""
    return set(FLOORS[: FLOORS.index(floor)]) - BESIDE.get(floor, set())


def imports(path: Path) -> list[str]:
    names = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            names.append(node.module or "")
    return names


def test_a_file_imports_only_floors_below_and_libraries_through_their_door():
    for path in FILES:
        floor = floor_of(path)
        for name in imports(path):
            parts = name.split(".")
            if parts[0] == "psidp" and floor not in {"__init__", "__main__"}:
                assert len(parts) > 1, f"{path} leans on the shop window"
                assert parts[1] == floor or parts[1] in below(floor), f"{path} imports {name}"
            if parts[0] in DOORS:
                assert floor in DOORS[parts[0]], f"{path} opens a second door to {parts[0]}"


def test_a_file_says_what_it_is():
    for path in FILES:
        assert ast.get_docstring(ast.parse(path.read_text())), f"{path} does not say what it is"
        assert path.stem not in {"utils", "common", "misc", "helpers", "base"}


def test_every_floor_exists_and_is_placed():
    assert {floor_of(p) for p in FILES} - {"__init__", "__main__"} == set(FLOORS)


def test_no_two_files_of_a_floor_have_the_same_name():
    for floor in FLOORS:
        stems = [p.stem for p in FILES if floor_of(p) == floor and p.stem != "__init__"]
        assert len(set(stems)) == len(stems), sorted(stem for stem in set(stems) if stems.count(stem) > 1)
