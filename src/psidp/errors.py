"""The few errors a program may want to catch.

Bad input is a plain ValueError or TypeError whose sentence names the quantity. The rest is this tree::

    PsidpError
    ├── IncomparableError (ValueError)   two guarantees whose curves cross have no order
    ├── MismatchError (ValueError)       adjacency or unit of privacy differ
    └── MissingExtraError (ImportError)  an optional library is not installed
"""

__all__ = ["IncomparableError", "MismatchError", "MissingExtraError", "PsidpError"]


class PsidpError(Exception):
    """Everything psidp raises that is not plain bad input."""


class IncomparableError(PsidpError, ValueError):
    """Neither guarantee is at least as private as the other."""


class MismatchError(PsidpError, ValueError):
    """Two guarantees speak of different neighbours or of different units of privacy."""


class MissingExtraError(PsidpError, ImportError):
    """An optional library is missing; the sentence gives the line that installs it."""

    def __init__(self, library: str, extra: str) -> None:
        super().__init__(f"This needs {library}. Install it with: pip install 'psidp[{extra}]'")
