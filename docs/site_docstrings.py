"""Docstrings on their way into the site: signatures, arguments and signs as Sphinx wants them."""

import inspect
import re
from typing import Any

from docutils import nodes

__all__ = ["arrays", "plain", "separate", "trimmed", "without_overloads"]


def without_overloads(analyze: Any) -> Any:
    """One signature for each function: that of numbers says nothing that the names do not."""

    def analyzed(self: Any) -> None:
        analyze(self)
        self.overloads = {}

    return analyzed


def arrays(app: Any, what: str, name: str, value: Any, options: Any, signature: str, returned: str) -> Any:
    """The signature of what takes arrays: names alone, for every argument may be a number or an array."""
    if signature is None or "ndarray" not in f"{signature}{returned}":
        return None
    parameters = inspect.signature(value).parameters.values()
    return str(inspect.Signature([p.replace(annotation=inspect.Parameter.empty) for p in parameters])), ""


def plain(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Bars and stars of a docstring's sentences are themselves; those of formulae and examples are left alone."""
    apart = False
    if what in ("property", "attribute", "data"):
        lines.insert(0, "")  # else napoleon takes what stands before a colon for the type
    for number, line in enumerate(lines):
        if not line.strip():
            apart = False
        apart = apart or line.lstrip().startswith((">>>", ".. "))
        if not apart:
            parts = re.split(r"(`+[^`]*`+)", line)
            parts[::2] = [re.sub(r"(?<!\\)([|*])", r"\\\1", part) for part in parts[::2]]
            lines[number] = "".join(parts)


def separate(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """One line for each argument, where several stand in a row: "psi: the price. delta: the slack." """
    if "Args:" not in lines:
        return
    first = lines.index("Args:") + 1
    last = next((n for n in range(first, len(lines)) if not lines[n].startswith("    ")), len(lines))
    known = "|".join(map(re.escape, _arguments(value)))
    if known:
        words = " ".join(line.strip() for line in lines[first:last])
        apart = re.split(rf"(?:^|(?<=[.;)] ))(?=(?:{known})(?:, (?:{known}))*: )", words)
        lines[first:last] = [f"    {part.strip()}" for part in apart if part.strip()]


def _arguments(value: Any) -> list[str]:
    """The names of what a function or a class takes."""
    try:
        return list(inspect.signature(value).parameters)
    except (TypeError, ValueError):
        return []


def trimmed(app: Any, tree: nodes.document) -> None:
    """Blocks of code without the empty line that ends an example."""
    for block in tree.findall(nodes.literal_block):
        block.rawsource = block.rawsource.rstrip("\n")
        block.children = [nodes.Text(block.astext().rstrip("\n"))]
