"""The payment: a run charged whole to a ledger before its first step, and the note of what it used."""

from typing import Any

from psidp.bridges.torch.training.plan import Run
from psidp.errors import BudgetExceededError
from psidp.ledger.ledger import Ledger
from psidp.symbols import check_text

__all__ = ["Payment"]


class Payment:
    """Which ledger and budget pay for a run; `entry` is the spend, once there is one."""

    def __init__(self, ledger: Ledger, budget: str, purpose: str) -> None:
        if not isinstance(ledger, Ledger):
            raise TypeError(f"ledger must be a psidp.Ledger, got {type(ledger).__name__}.")
        check_text("purpose", purpose)
        ledger.budget(check_text("budget", budget))
        self._ledger, self._budget, self._purpose = ledger, budget, purpose
        self._entry: Any = None

    @classmethod
    def agreed(cls, ledger: Ledger | None, budget: str, purpose: str) -> "Payment | None":
        """The payment, if there is a ledger; a budget without one is refused."""
        if ledger is not None:
            return cls(ledger, budget, purpose)
        if budget:
            raise TypeError(f"ledger must be given with a budget, got budget={budget!r} alone.")
        return None

    def pay(self, run: Run, kappa: float, failure: float) -> None:
        """Charge the whole run; refused, with the ledger as it was, where the budget does not cover it."""
        paid = self._ledger.spend(self._budget, run, kappa=kappa, failure=failure, purpose=self._purpose)
        try:
            with paid as spend:
                self._entry = spend.entry
        except BudgetExceededError as error:
            error.add_note("For a training that is: fewer steps, a lower sampling_rate or a larger noise_multiplier.")
            raise

    def take_up(self, receipt: dict[str, Any], started: int) -> int | None:
        """Go on with a run that was paid for; refused unless this very ledger holds the spend, and notes no more.

        What it notes is returned, if it notes anything.
        """
        entry = self._ledger.spent(receipt["entry"])
        if entry.hash != receipt["hash"]:
            raise ValueError(f"ledger must be the one that paid for this run; its entry {entry.id} is another.")
        after = self._ledger.entries(entry.budget, after=entry.id)
        notes = [one.details() for one in after if one.refers == entry.id]
        noted: int | None = max((note["steps"] for note in notes if note["kind"] == "used"), default=None)
        if noted is not None and not started >= noted:
            raise ValueError(
                f"the ledger noted {noted} steps of this run, its journal counts {started}: checkpoint and journal are "
                "old copies, and steps taken since would not count. Put the newest back, or begin a new run."
            )
        self._entry = entry
        return noted

    @property
    def receipt(self) -> dict[str, Any]:
        """The spend by number and hash, for the journal."""
        return {"entry": self._entry.id, "hash": self._entry.hash}

    def note(self, steps: int) -> None:
        """Write down how many steps were started; nothing is given back."""
        self._ledger.record_usage(self._entry, steps)

    @property
    def head(self) -> str:
        """The ledger's head, for the card."""
        return str(self._ledger.head())
