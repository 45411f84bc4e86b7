"""The front page: names load when they are used, type checkers see the same ones, and starting costs little."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import psidp
from psidp.cli.main import COMMANDS


def loaded_after(code, *modules):
    """Which of these modules a new interpreter has loaded after the code."""
    code += f"; import sys; print(*[m for m in {modules!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_every_name_of_the_front_page_loads_and_is_documented():
    for name in psidp.__all__:
        assert getattr(psidp, name).__doc__, name
    assert set(psidp.__all__) <= set(dir(psidp))


def test_type_checkers_see_the_names_that_are_loaded():
    tree = ast.parse(Path(psidp.__file__).with_suffix(".pyi").read_text())
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    seen = {f"{node.module}.{alias.asname}" for node in imports for alias in node.names}
    homes = {f"{home}.{name}" for name, home in psidp._HOMES.items()}
    assert seen == homes | {"psidp.errors", "psidp.theory"}


@pytest.mark.parametrize(
    ("name", "place"),
    [("tangent", "; it is psidp.theory.tangent"), ("MismatchError", "; it is psidp.errors.MismatchError"), ("no", "")],
)
def test_a_name_that_lives_elsewhere_is_named_with_its_place(name, place):
    with pytest.raises(AttributeError) as refused:
        getattr(psidp, name)
    assert str(refused.value) == f"module 'psidp' has no attribute {name!r}{place}"


def test_importing_loads_nothing_and_a_conversion_no_database_and_no_screen():
    heavy = ("numpy", "scipy", "sqlalchemy", "rich", "typer", "ibis", "altair", "numpy.ma")
    assert loaded_after("import psidp", *heavy) == []
    assert loaded_after("import psidp; psidp.epsilon_from_psi(1.0, 1e-5)", *heavy) == ["numpy"]
    assert "sqlalchemy" not in loaded_after("import psidp; psidp.account(psidp.DPSGD(1.0, 0.01, 10))", *heavy)
    assert loaded_after("import psidp.cli.main", *heavy) == ["typer"]


@pytest.mark.parametrize("name", list(COMMANDS))
def test_the_help_says_of_a_command_what_the_command_says_of_itself(name):
    place, line = COMMANDS[name]
    file, _, attribute = place.partition(":")
    found = getattr(import_module(f"psidp.cli.{file}"), attribute)
    said = found.info.help if attribute == "app" else found.__doc__
    assert said.splitlines()[0] == line
