"""Signatures say what may be given: no Any in the conversions, no open keywords, notions that an editor completes."""

import ast
import inspect
from pathlib import Path
from types import ModuleType

import jedi
import pytest

import psidp
from psidp.guarantee import Guarantee
from psidp.maths.notion import NAMES

SRC = Path(psidp.__file__).parent
TYPED = [*sorted((SRC / "maths").glob("*.py")), SRC / "guarantee.py"]
NOTION_NAMES = set(NAMES)
WRAPPER = {"elementwise"}  # gives what it decorates the overloads' types, which say it all


def public_functions(tree):
    """Functions and methods that a caller may see; of an overloaded one its overloads."""
    nodes = [n for n in tree.body if isinstance(n, ast.FunctionDef)]
    nodes += [n for c in tree.body if isinstance(c, ast.ClassDef) for n in c.body if isinstance(n, ast.FunctionDef)]
    return [n for n in nodes if not n.name.startswith("_") and n.name not in WRAPPER]


@pytest.mark.parametrize("path", TYPED, ids=lambda p: p.stem)
def test_no_public_signature_of_maths_and_guarantee_says_any(path):
    for node in public_functions(ast.parse(path.read_text())):
        every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
        said = [a.annotation for a in every if a is not None and a.annotation is not None] + [node.returns]
        words = {w for s in said if s is not None for w in ast.walk(s)}
        assert not any(isinstance(w, ast.Name) and w.id == "Any" for w in words), f"{path.name}: {node.name}"


def test_reals_are_not_any():
    aliases = ast.parse((SRC / "maths" / "elementwise.py").read_text()).body
    (reals,) = (n for n in aliases if isinstance(n, ast.Assign) and n.targets[0].id == "Reals")
    assert reals.value.id == "ArrayLike"


def test_every_conversion_has_a_signature_for_numbers_and_one_for_arrays():
    for path in TYPED:
        tree = ast.parse(path.read_text())
        shown = [n for n in tree.body if isinstance(n, ast.FunctionDef) and not n.name.startswith("_")]
        for node in shown:
            if any(isinstance(d, ast.Name) and d.id == "elementwise" for d in node.decorator_list):
                both = [n for n in shown if n.name == node.name and n is not node]
                assert [ast.unparse(n.returns) for n in both] == ["float", "Array"], node.name
                names = [[a.arg for a in n.args.args] for n in [*both, node]]
                assert names[0] == names[1] == names[2], node.name


def test_an_editor_completes_the_notions_of_a_gaussian_guarantee():
    parameters = inspect.signature(Guarantee.gaussian).parameters
    assert set(parameters) == NOTION_NAMES | {"adjacency", "unit"}
    assert all(p.kind is p.KEYWORD_ONLY for p in parameters.values())
    line = "psidp.Guarantee.gaussian("
    listed = {c.name for c in jedi.Interpreter(line, [{"psidp": psidp}]).complete(1, len(line))}
    assert {f"{name}=" for name in NOTION_NAMES} <= listed


def test_an_editor_lists_the_front_page():
    listed = {c.name for c in jedi.Script("import psidp\npsidp.").complete(2, len("psidp."))}
    assert set(psidp.__all__) <= listed


def public_calls():
    """Everything callable behind the front page, one level deep."""
    for name in psidp.__all__:
        value = getattr(psidp, name)
        if isinstance(value, ModuleType):
            inner = {n: getattr(value, n) for n in getattr(value, "__all__", ())}
        elif inspect.isclass(value):
            inner = {"": value, **{n: m for n, m in inspect.getmembers(value) if not n.startswith("_")}}
        else:
            inner = {"": value}
        for member, call in inner.items():
            error = inspect.isclass(call) and issubclass(call, BaseException)
            if callable(call) and not error and (inspect.isroutine(call) or inspect.isclass(call)):
                yield f"{name}.{member}".strip("."), call


def test_no_public_call_takes_open_keywords():
    seen = 0
    for name, call in public_calls():
        seen += 1
        kinds = {p.kind for p in inspect.signature(call).parameters.values()}
        assert inspect.Parameter.VAR_KEYWORD not in kinds, name
    assert seen > 100
