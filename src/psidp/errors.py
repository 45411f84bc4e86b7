"""The few errors a program may want to catch.

Bad input is a plain ValueError or TypeError whose sentence names the quantity. The rest is this tree::

    PsidpError
    ├── EngineError                      the database failed; what it said stays there
    ├── IncomparableError (ValueError)   two guarantees whose curves cross have no order
    ├── MismatchError (ValueError)       adjacency or unit of privacy differ
    └── MissingExtraError (ImportError)  an optional library is not installed
"""

__all__ = ["EngineError", "IncomparableError", "MismatchError", "MissingExtraError", "PsidpError"]


class PsidpError(Exception):
    """Everything psidp raises that is not plain bad input."""


class EngineError(PsidpError):
    """The database failed or is gone. Its own words are not repeated: they may speak of the data or a password."""

    def __init__(self, engine: str, kind: str) -> None:
        super().__init__(
            f"The engine ({engine}) failed with {kind}; its own message is not shown, since it may speak of the data. "
            "Check that the engine runs and may read the table, then ask again."
        )


class IncomparableError(PsidpError, ValueError):
    """Neither guarantee is at least as private as the other."""


class MismatchError(PsidpError, ValueError):
    """Two guarantees speak of different neighbours or of different units of privacy."""


class MissingExtraError(PsidpError, ImportError):
    """An optional library is missing; the sentence gives the line that installs it."""

    def __init__(self, library: str, extra: str) -> None:
        super().__init__(f"This needs {library}. Install it with: pip install 'psidp[{extra}]'")
