"""JSON for programs, with every digit, on standard output."""

import json
from typing import Any

import typer

from psidp.escaping import json_text
from psidp.present.finite import finite

__all__ = ["show_json"]


def show_json(values: dict[str, Any] | list[dict[str, Any]]) -> None:
    """Plain JSON on standard output; infinities as the strings "inf" and "-inf", since JSON has none."""
    typer.echo(json_text(json.dumps(finite(values), indent=2, ensure_ascii=False, allow_nan=False)))
