"""The explorer's page with the known deployments in it, and the same as one file that works from disk."""

import json
import re
from importlib.resources import files
from posixpath import dirname, join, normpath

from psidp.present.deployments import deployments
from psidp.present.markup import source_hash

__all__ = ["page", "script", "standalone_page"]

STATIC = files("psidp.present.web").joinpath("static")
IMPORT = re.compile(r'^import \{ ([^}]+) \} from "(\.[^"]+)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|class) )", re.MULTILINE)
NAME = re.compile(r"^export (?:async )?(?:function|const|class) (\w+)", re.MULTILINE)


def page() -> str:
    """The page's HTML, with the known deployments and their psi as data in it."""
    known = json.dumps([deployment.to_dict() for deployment in deployments()], ensure_ascii=False)
    return _replaced(
        _read("index.html"), {'id="deployments">[]<': f'id="deployments">{known.replace("<", chr(92) + "u003c")}<'}
    )


def standalone_page() -> str:
    """The whole page as HTML, with no server behind it and nothing to load."""
    style, code = _read("explorer.css"), script()
    policy = (
        f"default-src 'none'; script-src {source_hash(code)}; style-src {source_hash(style)}; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    replaced = {
        'data-server="yes"': 'data-server="no"',
        '<meta charset="utf-8">': (
            f'<meta charset="utf-8">\n  <meta http-equiv="Content-Security-Policy" content="{policy}">'
        ),
        '<link rel="stylesheet" href="static/explorer.css">': f"<style>{style}</style>",
        '  <script type="module" src="static/js/main.js"></script>\n': "",
        "</body>": f'<script type="module">{code}</script>\n</body>',
    }
    return _replaced(page(), replaced)


def _replaced(text: str, replaced: dict[str, str]) -> str:
    """The text with each of these, which it must hold exactly once, replaced."""
    for old, new in replaced.items():
        if text.count(old) != 1:
            raise RuntimeError(f"the page must hold {old!r} exactly once.")
        text = text.replace(old, new)
    return text


def script() -> str:
    """Every module as a function that is called once, those it imports before it."""
    order: list[str] = []
    _visit("js/main.js", order)
    return "const modules = {};\n" + "".join(_folded(path) for path in order)


def _visit(path: str, order: list[str]) -> None:
    for _, target in IMPORT.findall(_read(path)):
        found = normpath(join(dirname(path), target))
        if found not in order:
            _visit(found, order)
    if path not in order:
        order.append(path)


def _folded(path: str) -> str:
    """One module: imports become destructuring, exports what the function returns."""
    source = _read(path)

    def imported(match: re.Match[str]) -> str:
        found = normpath(join(dirname(path), match[2]))
        return f'const {{ {match[1].replace(" as ", ": ")} }} = modules["{found}"];\n'

    body = EXPORT.sub("", IMPORT.sub(imported, source))
    return f'modules["{path}"] = (() => {{\n{body}\nreturn {{ {", ".join(NAME.findall(source))} }};\n}})();\n'


def _read(path: str) -> str:
    return STATIC.joinpath(path).read_text(encoding="utf-8")
