"""NotebookView: values that draw themselves in a notebook. The drawing itself is loaded only when a notebook asks."""

from importlib import import_module
from typing import Any

__all__ = ["NotebookView"]


class NotebookView:
    """A value that a notebook shows as psidp.present.notebook draws it."""

    __slots__ = ()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """What notebooks look for: text, HTML and a picture."""
        shown: dict[str, str] = import_module("psidp.present.notebook").bundle(self)
        return shown
