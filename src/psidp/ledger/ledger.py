"""Ledger: a privacy budget that cannot be overspent, lost or forgotten."""

import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Self

from psidp.accounting import DPSGD, BandMF, FixedOrder, RandomAllocation
from psidp.guarantee import Guarantee
from psidp.ledger import openings, pauses, relocation, requests
from psidp.ledger.actor import signed, system_user
from psidp.ledger.budget import Budget, Partitions, Renewal, check_limit
from psidp.ledger.entry import Entry
from psidp.ledger.event import checked, priced_run
from psidp.ledger.log import EntryLog
from psidp.ledger.names import check_name
from psidp.ledger.reading import PATIENCE, LedgerReading
from psidp.ledger.spend import Spend, request_digest
from psidp.ledger.usage import noted
from psidp.ledger.verify import Head
from psidp.maths.sensitivity import Adjacency
from psidp.symbols import check_text, symbol

__all__ = ["Ledger"]


class Ledger(LedgerReading):
    """Budgets and what was spent from them, in a SQLite file or on a PostgreSQL server.

    Args:
        url: a path, sqlite:///path, or postgresql://user@host/database.
        patience: seconds to wait while others write, before refusing.
        clock: where the time comes from; the system's clock unless told.
        actor: who asks; unless told the operating system's user, or on a server with roles the login.

    Guarantees:
        The sum of psi_i^2 never exceeds psi^2, to the last bit, and 1 - prod(1 - kappa_i) never exceeds kappa, whoever
        spends at the same time and whatever crashes. This is a privacy filter: it holds when each release is chosen
        after seeing all earlier ones (docs/design/ledger.md). A spend is on the disk before its block begins. Entries
        are hash-chained and never changed.

    Examples:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> ledger = Ledger(f"{folder.name}/ledger.db")
        >>> _ = ledger.open("survey", psi=1.0, unit="patient", actor="Ann", purpose="the 2026 survey")
        >>> with ledger.spend("survey", Guarantee(0.6, unit="patient"), purpose="mean age") as entry:
        ...     print("entry", entry.id)
        entry 2
        >>> ledger.remaining("survey")
        Guarantee(psi=0.7999..., unit='patient')
        >>> ledger.dispose(); folder.cleanup()

    References:
        Smith and Thakurta, "Fully adaptive composition for Gaussian differential privacy", 2022.
    """

    def open(
        self,
        budget: str,
        psi: float,
        kappa: float = 0.0,
        *,
        purpose: str,
        actor: str = "",
        unit: str = "record",
        adjacency: Adjacency = "add-remove",
        partitions: Partitions | None = None,
        renews: Renewal = "",
        approval_above: float | None = None,
        table: str = "",
        exist_ok: bool = False,
    ) -> Entry:
        """The entry that opens a budget; the first one makes the ledger. A name is opened once.

        Args:
            approval_above: a spend of more than this psi needs somebody else's approval; none does unless told.
            table: the table that it is meant for. exist_ok: whether a budget that was opened with the same terms will
                do, so that a script can run again; its entry comes back, and nothing is written.
        """
        guarantee = Guarantee(symbol("psi").at_most(psi), kappa, adjacency, unit)
        terms = Budget(
            name=budget, guarantee=guarantee, actor=self._who(actor), purpose=purpose,
            partitions=partitions, renews=renews, approval_above=check_limit(approval_above), table=table,
        )  # fmt: skip
        work = openings.reopened if exist_ok else openings.opened
        return self._access.write(lambda log: work(log, terms), create=True)

    def raise_to(self, budget: str, psi: float, kappa: float = 0.0, *, purpose: str, actor: str = "") -> Entry:
        """The entry that raises a budget's cap; everybody will see it."""
        cap = Guarantee(symbol("psi").at_most(psi), kappa)
        return self._change(budget, "raised", {"psi": cap.psi, "kappa": cap.kappa}, actor, purpose)

    def reset(self, budget: str, *, purpose: str, actor: str = "") -> Entry:
        """The entry that begins a budget anew; reports go on showing what was spent since it was opened."""
        return self._change(budget, "reset", {}, actor, purpose)

    def limit(self, budget: str, approval_above: float | None, *, purpose: str, actor: str = "") -> Entry:
        """The entry from which on a spend of more than this psi needs an approval; None: no spend does."""
        return self._change(budget, "limited", {"above": check_limit(approval_above)}, actor, purpose)

    def close(self, budget: str, *, purpose: str, actor: str = "") -> Entry:
        """The entry that closes a budget for good."""
        return self._change(budget, "closed", {}, actor, purpose)

    def pause(self, budget: str = "", *, purpose: str, person: str = "", actor: str = "") -> list[Entry]:
        """The entries that stop spending from a budget; by one person only, if told; in all budgets, without one."""
        return self._stop("paused", budget, person, actor, purpose)

    def resume(self, budget: str = "", *, purpose: str, person: str = "", actor: str = "") -> list[Entry]:
        """The entries that let spending go on, as `pause` stopped it."""
        return self._stop("resumed", budget, person, actor, purpose)

    def split(self, budget: str, weights: Mapping[str, float], *, purpose: str, actor: str = "") -> list[Entry]:
        """Everything that is left, given to shares: new budgets with these names, in proportion to the weights.

        The last share takes the exact remainder, so that the shares' psi^2 sum to what was left, to the last bit.
        """
        who, why = self._who(actor), check_text("purpose", purpose)
        return self._access.write(
            lambda log: openings.split(log, self._access.budget(log, budget), dict(weights), who, why)
        )

    def spend(
        self,
        budget: str,
        guarantee: Guarantee | DPSGD | BandMF | FixedOrder | RandomAllocation,
        *,
        purpose: str,
        kappa: float = 0.0,
        failure: float = 0.0,
        event: Mapping[str, Any] | None = None,
        partition: str = "",
        retry_key: str = "",
        request: Any = None,
        actor: str = "",
        table: str = "",
        table_unit: str = "",
    ) -> Spend:
        """A block that is entered only once the spend is durable: `with ledger.spend(...) as entry:`.

        Args:
            budget: its name.
            guarantee: what the release costs; or a training run, which is charged whole.
            purpose: why, in words.
            kappa: for a run, the probability of outright failure to account it at.
            failure: for a run, the part of kappa that its implementation has of its own, such as PrivateStep.kappa.
            event: what is released, such as {"kind": "gaussian", "sensitivity": 1.0, "sigma": 2.0}; the guarantee has
                to be its price, and verify recomputes it. A curator's also says its "unit_column".
            partition: the part of the data that is read, in a budget opened in partitions.
            retry_key: idempotency key; see Spend.answer.
            request: what is asked, as JSON values; under one key only one request is answered.
            actor: who spends; the ledger's actor unless told. table: which table is read. table_unit: its unit column.

        Refused, with the ledger as it was: what does not fit (BudgetExceededError), what needs an approval that is not
        there (ApprovalNeededError), what speaks of another unit or adjacency, a closed, paused or unknown budget, a
        key that was used for another request.
        """
        check_text("purpose", purpose)
        if retry_key:
            check_text("retry_key", retry_key)
        guarantee, event = _priced(guarantee, kappa, failure, event)
        return Spend(
            access=self._access,
            budget=budget,
            guarantee=guarantee,
            purpose=purpose,
            event=signed(event, self._who(actor), table, table_unit),
            partition=partition,
            retry_key=retry_key,
            request=request_digest(request, guarantee, event, partition) if retry_key else "",
        )

    def request(
        self,
        budget: str,
        guarantee: Guarantee | DPSGD | BandMF | FixedOrder | RandomAllocation,
        *,
        purpose: str,
        kappa: float = 0.0,
        failure: float = 0.0,
        event: Mapping[str, Any] | None = None,
        partition: str = "",
        actor: str = "",
        table: str = "",
        table_unit: str = "",
        what: str = "",
        days: float = 30.0,
    ) -> Entry:
        """The entry that asks for a spend above the budget's limit, with the arguments of `spend`.

        Its number is what `approve` and `deny` take. It waits for so many days. `what` stands for the event, where a
        refused spend has named it. What is more than the budget has left is warned of: a renewal, a reset or a raise
        would have to come first.
        """
        guarantee, event = _priced(guarantee, kappa, failure, event)
        self._warn(lambda log: requests.beyond_budget(self._access, log, budget, guarantee, partition))
        asked = requests.Request(
            budget=budget, guarantee=guarantee, purpose=purpose, event=event, partition=partition, what=what,
            actor=self._who(actor), table=table, table_unit=table_unit, days=days,
        )  # fmt: skip
        return self._access.write(lambda log: asked.written(self._access, log))

    def approve(self, request: int, *, purpose: str, days: float = 7.0, actor: str = "") -> Entry:
        """The entry that approves a request of somebody else: one spend of exactly its terms, within so many days.

        A request for more than the budget has left is warned of, as in `request`.
        """
        who = self._who(actor)
        self._warn(lambda log: requests.approved_beyond(self._access, log, request))
        return self._access.write(lambda log: requests.answered(log, "approved", request, who, purpose, days))

    def deny(self, request: int, *, purpose: str, actor: str = "") -> Entry:
        """The entry that denies a request, or takes back an approval that was not used."""
        who = self._who(actor)
        return self._access.write(lambda log: requests.answered(log, "denied", request, who, purpose, 1.0))

    def record_usage(self, spend: Entry, steps: int) -> Entry:
        """The entry that says how many steps of a DP-SGD run were taken, all of which `spend` paid for; no refund.

        Refused, with the ledger as it was: an entry that is not this ledger's spend on a run, more steps than it paid.
        """
        return self._access.write(lambda log: noted(log, spend, steps))

    @classmethod
    def restore(cls, url: str | Path, lines: Iterable[str], *, patience: float = PATIENCE) -> Self:
        """An exported ledger in a new database, verified on the way; refused where there is a ledger already."""
        ledger = cls(url, patience=patience)
        relocation.restored(ledger._access, lines)
        return ledger

    def moved(self, *, purpose: str, actor: str = "", head: Head | str | None = None) -> Head:
        """The head, once a SQLite ledger that was moved, copied or restored may be used where it lies now.

        Everything is verified first. Who says so is written into the file, outside of the chain.

        Args:
            actor: who says that this is now the only one.
            purpose: why it moved, in words.
            head: one that was kept earlier: the ledger must still contain it. Without one, a restored old copy has
                forgotten what was spent since, and nobody can tell.

        Refused, with the file as it was: while the old place, where it can be seen, still holds the ledger or its log.
        """
        who, why = check_name("actor", actor or system_user()), check_text("purpose", purpose)
        return relocation.moved(self._access, who, why, lambda: self.verify(head))

    def _change(self, budget: str, state: str, event: dict[str, Any], actor: str, purpose: str) -> Entry:
        said, why = signed({"kind": state} | event, self._who(actor)), check_text("purpose", purpose)
        return self._access.write(lambda log: log.append(self._access.budget(log, budget), state, said, purpose=why))

    def _warn(self, work: Callable[[EntryLog], str]) -> None:
        """Warn the caller's caller of what `work` finds, before anything is written."""
        if said := self._read(work):
            warnings.warn(said, UserWarning, stacklevel=3)

    def _stop(self, state: str, budget: str, person: str, actor: str, purpose: str) -> list[Entry]:
        who, why = self._who(actor), check_text("purpose", purpose)
        return self._access.write(lambda log: pauses.stopped(log, state, budget, person, who, why))


def _priced(
    guarantee: Guarantee | DPSGD | BandMF | FixedOrder | RandomAllocation,
    kappa: float,
    failure: float,
    event: Mapping[str, Any] | None,
) -> tuple[Guarantee, dict[str, Any]]:
    """The price of a spend and its event: a run's from its account, another's as it is given, if both agree."""
    if isinstance(guarantee, DPSGD | BandMF | FixedOrder | RandomAllocation):
        guarantee, event = priced_run(guarantee, kappa, failure)
    elif kappa or failure:
        raise TypeError("kappa and failure must be given with a DP-SGD run; a guarantee has its own.")
    return guarantee, checked(event, guarantee)
