"""Pages, figures and files that the site makes from the library itself: the reference, the explorer, the pictures."""

import inspect
import json
import os
import re
import shutil
from importlib import import_module
from pathlib import Path
from typing import Any

from site_docstrings import arrays, plain, separate, trimmed, without_overloads

DOCS = Path(__file__).parent
MADE = DOCS / "reference" / "made"
EXTRA = DOCS / "_extra"
PICTURES = DOCS / "_static" / "made"
DRAWN = ("densities", "roc", "profile")
"""Figures of `psidp.figures` that the pages show, each for light and for dark."""

ELSEWHERE = {
    "theory": ("Smaller formulae", ["psidp.theory"]),
    "errors": ("Errors", ["psidp.errors"]),
    "strategies": ("Strategies", ["psidp.strategies"]),
    "bridges": (
        "Bridges",
        ["psidp.bridges.torch", "psidp.bridges.opacus", "psidp.bridges.dp_accounting", "psidp.bridges.mbi"],
    ),
}
"""Pages of the reference for what is not on the front page."""


def setup(app: Any) -> dict[str, bool]:
    """Make everything before Sphinx reads the pages."""
    from sphinx.ext.autodoc.mock import _MockObject
    from sphinx.pycode import ModuleAnalyzer

    stand_in: Any = _MockObject  # of torch and others; `Optimizer | None` is a type, and Sphinx's has no bar
    stand_in.__or__ = stand_in.__ror__ = lambda self, other: self
    ModuleAnalyzer.analyze = without_overloads(ModuleAnalyzer.analyze)
    app.connect("builder-inited", lambda app: make())
    app.connect("autodoc-process-signature", arrays)
    app.connect("autodoc-process-docstring", separate, priority=1)
    app.connect("autodoc-process-docstring", plain, priority=2)
    app.connect("doctree-read", trimmed)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def make() -> None:
    """All of it, from nothing."""
    for folder in (MADE, EXTRA, PICTURES):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    for group, names in front_page().items():
        _write(MADE / f"{group}.md", _page(group.capitalize(), [_entry("psidp", name) for name in names]))
    for name, (title, modules) in ELSEWHERE.items():
        parts = [part for module in modules for part in _module(module)]
        _write(MADE / f"{name}.md", _page(title, parts))
    _write(MADE / "commands.md", "\n".join(_commands()))
    _write(MADE / "http.md", "\n".join(_http()))
    _explorer()
    _pictures()


def front_page() -> dict[str, list[str]]:
    """The names of the front page by the groups in which its source lists them."""
    import psidp

    groups: dict[str, list[str]] = {}
    for line in Path(psidp.__file__).read_text(encoding="utf-8").splitlines():
        if found := re.fullmatch(r"    # ([a-z]+)", line):
            names = groups.setdefault(found[1], [])
        elif groups and (found := re.match(r'    "(\w+)": "psidp', line)):
            names.append(found[1])
    return groups


def _page(title: str, parts: list[str]) -> str:
    return f"# {title}\n\n" + "\n".join(parts)


def _entry(module: str, name: str) -> str:
    """The directive that documents one name; a module is shown with what it lists."""
    value = getattr(import_module(module), name)
    if inspect.ismodule(value):
        return "\n".join(_module(value.__name__, f"{module}.{name}"))
    kind = "autoclass" if inspect.isclass(value) else "autofunction"
    members = "   :members:\n   :special-members: __call__\n" if kind == "autoclass" else ""
    if not (inspect.isclass(value) or callable(value)):
        kind, members = "autodata", ""
    return f"```{{eval-rst}}\n.. {kind}:: {module}.{name}\n{members}```\n"


def _module(name: str, shown: str = "") -> list[str]:
    """A heading, the module's first sentence, and each name that it lists."""
    module = _mocked(name)
    first = inspect.cleandoc(module.__doc__ or "").split("\n\n")[0]
    names = sorted(getattr(module, "__all__", []))
    return [f"## {shown or name}\n\n{first}\n", *(_entry(name, entry) for entry in names)]


def _mocked(name: str) -> Any:
    """The module, with stand-ins for large libraries that are not installed."""
    from sphinx.ext.autodoc.mock import mock

    with mock(["torch", "triton", "opacus", "dp_accounting", "mbi", "jax"]):
        return import_module(name)


def _commands() -> list[str]:
    """Every command's help, as it is printed."""
    from typer.testing import CliRunner

    from psidp.cli.main import COMMANDS, app

    os.environ |= {"COLUMNS": "100", "TERMINAL_WIDTH": "100", "NO_COLOR": "1"}

    def said(*words: str) -> str:
        return CliRunner().invoke(app, [*words, "--help"], prog_name="psidp").output.strip()

    lines = ["# The command line", "", "What `psidp COMMAND --help` prints.", "", _text(said())]
    for name in COMMANDS:
        lines += [f"## psidp {name}", "", _text(said(name))]
        listing = re.search(r"^Commands:\n((?:  .*\n?)+)", said(name), re.MULTILINE)
        for child in re.findall(r"^  (\S+)  ", listing[1], re.MULTILINE) if listing else []:
            lines += [f"### psidp {name} {child}", "", _text(said(name, child))]
    return lines


def _text(body: str) -> str:
    return f"```text\n{body}\n```\n"


def _http() -> list[str]:
    """The JSON API behind the explorer, and the schemas that are published."""
    from psidp.present.web.app import create_app

    api = create_app().app.openapi()
    _write(EXTRA / "openapi.json", json.dumps(api, indent=1))
    card = Path(import_module("psidp.present.card").__file__).parent / "card.schema.json"
    shutil.copy(card, EXTRA / card.name)
    lines = [
        "# HTTP and JSON", "",
        "`psidp explore` answers on 127.0.0.1: the same names, numbers and refusals as in Python. A refusal is",
        '`{"error": "..."}` with status 422.', "",
        '- <a href="../../openapi.json">openapi.json</a>: the whole API as OpenAPI 3.1.',
        '- <a href="../../card.schema.json">card.schema.json</a>: the JSON Schema of a privacy card.', "",
        "| method | path | what it answers |", "| --- | --- | --- |",
    ]  # fmt: skip
    for path, methods in api["paths"].items():
        for method, terms in methods.items():
            words = (terms.get("description") or terms.get("summary") or "").split("\n")[0]
            lines.append(f"| {method.upper()} | `{path}` | {words} |")
    return lines


def _explorer() -> None:
    """The explorer itself; explorer.html is the page about it."""
    from psidp.present.web.standalone import standalone_page

    _write(EXTRA / "explore.html", standalone_page())


def _pictures() -> None:
    """Figures of the pages, each for light and for dark."""
    import psidp

    for name in DRAWN:
        chart = getattr(psidp.figures, name)(psidp.Guarantee(1.0))
        for look, spec in {"light": chart.to_json(), "dark": _dark(chart.to_json())}.items():
            _write(PICTURES / f"{name}-{look}.svg", _svg(spec))


def _dark(spec: str) -> str:
    """The same chart in the palette for dark pages."""
    from psidp.present.palette import DARK, LIGHT

    for concept, colour in LIGHT.items():
        spec = spec.replace(f'"{colour}"', f'"{DARK[concept]}"')
    return spec.replace('"background": "white"', '"background": "#131416"')


def _svg(spec: str) -> str:
    import vl_convert

    return str(vl_convert.vegalite_to_svg(json.loads(spec)))


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
