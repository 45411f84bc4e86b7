"""The few errors a program may want to catch.

Bad input is a plain ValueError or TypeError whose sentence names the quantity. The rest is this tree::

    PsidpError
    ├── ContradictionError               two proved bounds exclude each other: a defect of psidp
    ├── EngineError                      the database failed; what it said stays there
    ├── IncomparableError (ValueError)   two guarantees whose curves cross have no order
    ├── MismatchError (ValueError)       adjacency or unit of privacy differ
    ├── MissingExtraError (ImportError)  an optional library is not installed
    ├── NewerFormError (ValueError)      a newer psidp wrote this file or stored this answer
    └── LedgerError                      the ledger refuses; nothing was released
        ├── BudgetExceededError          what is left does not cover what was asked
        ├── BudgetClosedError            the budget was closed
        ├── BudgetPausedError            the budget, or this person, is paused
        ├── ApprovalNeededError          somebody else has to approve this spend first
        ├── UnknownBudgetError           no budget of this name was opened
        ├── KeyConflictError             another request was made under this idempotency key
        ├── ClockError                   the clock is behind the ledger's last entry
        ├── LedgerBusyError              others held the ledger for longer than one is willing to wait
        ├── LedgerUnavailableError       the disk, the file or the server does not do its part
        ├── NotALedgerError              there is something else there, or nothing
        ├── NewerLedgerError             a newer psidp wrote it
        └── TamperedLedgerError          an entry is not what was written
"""

from collections.abc import Mapping
from typing import Any

__all__ = [
    "ApprovalNeededError",
    "BudgetClosedError",
    "BudgetExceededError",
    "BudgetPausedError",
    "ClockError",
    "ContradictionError",
    "EngineError",
    "IncomparableError",
    "KeyConflictError",
    "LedgerBusyError",
    "LedgerError",
    "LedgerUnavailableError",
    "MismatchError",
    "MissingExtraError",
    "NewerFormError",
    "NewerLedgerError",
    "NotALedgerError",
    "PsidpError",
    "TamperedLedgerError",
    "UnknownBudgetError",
]


def _again(kind: type["PsidpError"], args: tuple[Any, ...], carried: dict[str, Any]) -> "PsidpError":
    """The error that another process raised."""
    error = kind.__new__(kind, *args)
    error.__dict__.update(carried)
    return error


class PsidpError(Exception):
    """Everything psidp raises that is not plain bad input."""

    def __reduce__(self) -> Any:
        """By its sentence and what it carries, so that it comes back whole from another process."""
        return _again, (type(self), self.args, self.__dict__)


class ContradictionError(PsidpError):
    """Two proved bounds of one number exclude each other. That is a defect of psidp: it gives no answer."""

    def __init__(self, question: str, low: float, high: float) -> None:
        super().__init__(
            f"Two proofs contradict each other: {question} would be at least {low!r} and at most {high!r}. This is a "
            "defect of psidp, not of your settings, so it gives no answer. Please report it with the settings."
        )


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


class NewerFormError(PsidpError, ValueError):
    """A newer psidp wrote this file or stored this answer."""


class LedgerError(PsidpError):
    """The ledger refuses, and nothing was released."""


class BudgetExceededError(LedgerError):
    """What is left does not cover what was asked; the ledger is unchanged.

    Attributes:
        budget: its name.
        psi: what was asked.
        kappa: what was asked.
        psi_left: the largest psi that still fits.
        kappa_left: the largest kappa that still fits.
        sigma: the smallest sigma that fits, where the sensitivity is known; nan where it is not, inf where none does.
    """

    def __init__(
        self, sentence: str, *, budget: str, asked: tuple[float, float], left: tuple[float, float], sigma: float
    ) -> None:
        super().__init__(sentence)
        self.budget, self.sigma = budget, sigma
        self.psi, self.kappa = asked
        self.psi_left, self.kappa_left = left


class BudgetClosedError(LedgerError):
    """The budget was closed."""


class BudgetPausedError(LedgerError):
    """The budget is paused, for everybody or for this person.

    Attributes:
        budget: its name.
        person: who is paused; "" where everybody is.
    """

    def __init__(self, sentence: str, budget: str = "", person: str = "") -> None:
        super().__init__(sentence)
        self.budget, self.person = budget, person


class ApprovalNeededError(LedgerError):
    """The spend is above the budget's limit, and nobody else has approved it.

    Attributes:
        request: the request for exactly this spend that waits; 0 where nobody asked for it.
        event: what would be released, as Ledger.request takes it.
        needed: what has to be asked for, and with which flags.
    """

    def __init__(
        self, sentence: str, request: int = 0, event: Mapping[str, Any] | None = None, needed: Any = None
    ) -> None:
        super().__init__(sentence)
        self.request, self.event, self.needed = request, dict(event or {}), needed


class UnknownBudgetError(LedgerError, LookupError):
    """No budget of this name was opened."""


class KeyConflictError(LedgerError):
    """Another request was made under this idempotency key."""


class ClockError(LedgerError):
    """The clock is behind the ledger's last entry."""


class LedgerBusyError(LedgerError):
    """Others held the ledger for longer than one is willing to wait."""


class LedgerUnavailableError(LedgerError):
    """The disk, the file or the server does not do its part."""


class NotALedgerError(LedgerError):
    """There is something else there, or nothing."""


class NewerLedgerError(LedgerError):
    """A newer psidp wrote this ledger."""


class TamperedLedgerError(LedgerError):
    """An entry is not what was written.

    Attributes:
        entry: the id of the first bad entry; 0 where the file as a whole is damaged.
    """

    def __init__(self, sentence: str, entry: int = 0) -> None:
        super().__init__(sentence)
        self.entry = entry
