"""Whatever an entry of a ledger falsely claims, with totals and a hash that fit, verify names it."""

import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from psidp import Guarantee, Ledger, Partitions
from psidp.errors import PsidpError, TamperedLedgerError
from psidp.ledger.approvals import Proposed, terms_of, what_of
from psidp.ledger.balance import Balance, step
from psidp.ledger.budget import period_of
from psidp.ledger.cost import ZERO, Cost
from psidp.ledger.entry import INSERT, Entry, canonical, stamp

Event = dict[str, Any]
FOREVER = "2999-01-01T00:00:00.000000Z"


def explore(random: Random) -> None:
    """One round: a ledger with something of everything, and a false entry of each kind at its end."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        with Ledger(path) as book:
            scene(book, random)
            head = book.verify()
            for words, make in random.sample(FALSE, 12):
                entry = make(Forger(book, "bob", random))
                _append(path, entry)
                try:
                    named = book.verify().not_recomputed == (entry.id,)
                except TamperedLedgerError as refusal:
                    named = refusal.entry == entry.id
                assert named, f"verify accepts {words}: {entry}"
                _cut(path, head.id)
            assert book.verify() == head


def scene(book: Ledger, random: Random) -> None:
    """Budgets of each sort, with spends, answers, requests and approvals of three people."""
    with_regions = Partitions("region", ("north", "south"), "Ann")
    book.open("survey", psi=2.0, kappa=1e-6, purpose="a test", actor="ann", approval_above=0.3, partitions=with_regions)
    book.open("monthly", psi=1.0, purpose="a test", actor="ann", renews=random.choice(("month", "week", "day", "year")))
    book.open("closed", psi=1.0, purpose="a test", actor="ann")
    book.open("paused", psi=1.0, purpose="a test", actor="ann")
    book.pause("paused", person="bob", purpose="has left", actor="ann")
    book.close("closed", purpose="done", actor="ann")
    with book.spend(
        "survey", Guarantee(0.1), purpose="a count", actor="bob", retry_key="answered", request="q"
    ) as entry:
        entry.answer(lambda: random.random())
    book.spend("survey", Guarantee(0.1), purpose="a mean", actor="ann", retry_key="open", request="q").once()
    book.spend("survey", Guarantee(0.2), purpose="a sum", actor="bob", retry_key="mine", request="q").once()
    with book.spend("monthly", Guarantee(random.uniform(0.5, 1.0)), purpose="a count", actor="bob"):
        pass
    asked = book.request("survey", Guarantee(0.5), purpose="a large one", actor="ann")
    book.request("survey", Guarantee(0.6), purpose="a larger one", actor="bob")
    book.approve(asked.id, purpose="agreed", actor="cem")


class Forger:
    """Somebody who knows how entries are made, and puts one at the end of a ledger."""

    def __init__(self, book: Ledger, by: str, random: Random) -> None:
        self.book, self.by, self.random = book, by, random
        self.entries = list(book.entries())
        self.now = max(datetime.now(UTC), datetime.fromisoformat(self.entries[-1].time))

    def first(self, state: str, **columns: Any) -> Entry:
        """The first entry of a state, of somebody and of a key where that is asked for."""
        by = columns.pop("by", None)
        return next(
            e for e in self.entries
            if e.state == state and by in (None, e.details().get("by"))
            and all(getattr(e, name) == value for name, value in columns.items())
        )  # fmt: skip

    def balance(self, budget: str) -> Balance:
        """How a budget stands."""
        return Balance.read([entry for entry in self.entries if entry.budget == budget][-1].standing)

    def entry(self, budget: str, state: str, event: Event, after: Balance | None = None, **columns: Any) -> Entry:
        """A sealed entry, with the totals that the rules give, or where they refuse it, those of the forger."""
        event = {"kind": state, "by": self.by} | event
        last = self.entries[-1]
        mine = [entry for entry in self.entries if entry.budget == budget]
        values: Event = {"id": last.id + 1, "time": stamp(self.now), "psi": 0.0, "kappa": 0.0} | columns
        cost = Cost.of(Guarantee(values["psi"], values["kappa"])) if values["psi"] >= 0.0 else ZERO
        plain = {name: value for name, value in values.items() if name in Proposed._fields}
        proposed = Proposed(budget, state, event, cost, **plain)
        before = self.balance(budget) if mine else None
        if after is None:
            try:
                parts = [e for e in mine if e.partition and e.partition == values.get("partition")]
                after = step(before, proposed, Balance.read(parts[-1].standing) if parts else None)
            except (PsidpError, ValueError):
                after = before.after_spend(cost) if before is not None and state == "spent" else before
        if after is None:
            raise AssertionError(f"no totals for {state} of {budget}")
        return Entry.sealed(
            budget=budget, state=state, event=canonical(event), standing=after.text(), previous=last.hash, **values
        )

    def spend(self, budget: str = "survey", psi: float = 0.05, event: Event | None = None, **columns: Any) -> Entry:
        """A spend, small and without a key unless told."""
        return self.entry(budget, "spent", {"kind": "guarantee"} | (event or {}), psi=psi, **{"purpose": "q"} | columns)

    def note(self, state: str, spend: Entry, event: Event | None = None, **columns: Any) -> Entry:
        """What became of a spend."""
        said: Event = {} if state == "answered" else {"error": "ValueError"}
        answer = {"answer": str(self.random.random())} if state == "answered" else {}
        keyed = {"key": spend.key, "request": spend.request}
        return self.entry("survey", state, said | (event or {}), refers=spend.id, **keyed | answer | columns)

    def request(self, event: Event, psi: float = 0.7, **columns: Any) -> Entry:
        """A request whose digest of its terms fits."""
        said: Event = {"kind": "requested", "by": self.by, "psi": psi, "kappa": 0.0, "event": {"kind": "guarantee"}}
        said |= {"until": stamp(self.now + timedelta(days=9))} | event
        said |= {"what": what_of(said["event"])}
        columns = {"purpose": "q"} | columns
        said["terms"] = terms_of(Proposed("survey", "requested", said, ZERO, **columns))
        return self.entry("survey", "requested", said, **columns)

    def later(self) -> str:
        """A period of the monthly budget that has not begun."""
        renews = self.book.budget("monthly").renews
        return period_of(renews, self.now + timedelta(days=self.random.randrange(400, 4000)))

    def renewal(self, budget: str, period: str) -> Entry:
        """A new period, with the totals that it would begin with."""
        return self.entry(budget, "renewed", {"period": period}, self.balance(budget).renewed(period))

    def opening(self, more: Event, budget: str = "mine") -> Entry:
        """A budget of the forger's own."""
        terms: Event = {"psi": 1.0, "kappa": 0.0, "adjacency": "add-remove", "unit": "record"} | more
        after = Balance(
            Cost.read(more["cap"]) if "cap" in more else Cost.of(Guarantee(1.0)), period=more.get("period", "")
        )
        return self.entry(budget, "opened", terms, after, purpose="q")

    def reset_totals(self) -> Entry:
        """A spend after which nothing was ever spent."""
        balance = self.balance("survey")
        return self.entry(
            "survey", "spent", {"kind": "guarantee"}, Balance(balance.cap, above=balance.above), psi=0.05, purpose="q"
        )


Make = Callable[[Forger], Entry]
FALSE: list[tuple[str, Make]] = [
    ("a renewal with a later period", lambda f: f.renewal("monthly", f.later())),
    ("a renewal of the period that it is", lambda f: f.renewal("monthly", f.balance("monthly").period)),
    ("a renewal of a budget that does not renew", lambda f: f.renewal("survey", "2999")),
    ("a period beside its name", lambda f: f.renewal("monthly", f.balance("monthly").period + "x")),
    ("an answer to somebody else's spend", lambda f: f.note("answered", f.first("spent", by="ann"))),
    ("a failure of somebody else's spend", lambda f: f.note("withheld", f.first("spent", by="ann"))),
    ("an interruption of somebody else's spend", lambda f: f.note("interrupted", f.first("spent", by="ann"))),
    ("an answer under another key", lambda f: f.note("answered", f.first("spent", key="mine"), key="open")),
    ("an answer to another request", lambda f: f.note("answered", f.first("spent", key="mine"), request="0" * 64)),
    ("a second answer", lambda f: f.note("answered", f.first("spent", key="answered"))),
    ("an answered spend that failed", lambda f: f.note("withheld", f.first("spent", key="answered"))),
    ("an answer that is no JSON", lambda f: f.note("answered", f.first("spent", key="mine"), answer="{")),
    ("an answer to no spend", lambda f: f.note("answered", f.first("opened"), key="mine", request="q")),
    ("an answer to another budget's spend", lambda f: f.note("answered", f.first("spent", budget="monthly"))),
    ("steps of a spend that is no run", lambda f: f.note("answered", f.first("spent", key="mine"),
        {"kind": "used", "steps": 1}, key="", request="", answer="")),
    ("a note with a price", lambda f: f.note("withheld", f.first("spent", key="mine"), psi=0.1)),
    ("a note of an unknown kind", lambda f: f.note("answered", f.first("spent", key="mine"), {"kind": "refund"})),
    ("a spend under an answered key",
        lambda f: f.spend(key="answered", request=f.first("spent", key="answered").request)),
    ("a spend under another request's key", lambda f: f.spend(key="open", request="0" * 64)),
    ("a spend of nothing under the key of a spend", lambda f: f.spend(psi=0.0, key="open",
        request=f.first("spent", key="open").request)),
    ("a spend of another part under the key of a spend", lambda f: f.spend(psi=0.1, key="open", partition="north",
        request=f.first("spent", key="open").request)),
    ("a spend of a closed budget", lambda f: f.spend("closed")),
    ("a spend of who is paused", lambda f: f.spend("paused")),
    ("a spend beyond the cap", lambda f: f.spend("monthly", f.random.uniform(1.0, 9.0))),
    ("a spend beyond the limit", lambda f: f.spend(psi=f.random.uniform(0.31, 0.9))),
    ("a spend of somebody else's approval", lambda f: f.spend(psi=0.5, refers=f.first("approved").id)),
    ("a small spend of an approval", lambda f: f.spend(refers=f.first("approved").id)),
    ("a spend below its price", lambda f: f.spend(event={"kind": "gaussian", "sensitivity": 1.0, "sigma": 2.0})),
    ("a spend of an unknown kind", lambda f: f.spend(event={"kind": "magic"})),
    ("a spend of a partition that nobody declared", lambda f: f.spend(partition="east")),
    ("a spend after which nothing was spent", lambda f: f.reset_totals()),
    ("a spend of a budget that is not there", lambda f: f.entry("nowhere", "spent", {"kind": "guarantee"},
        Balance(Cost.of(Guarantee(9.0))), psi=0.1, purpose="q")),
    ("a spend before the last entry", lambda f: f.spend(time="2020-01-01T00:00:00.000000Z")),
    ("a spend with a time of another zone", lambda f: f.spend(time=stamp(f.now).replace("Z", "-14:00"))),
    ("a request for ever", lambda f: f.request({"until": FOREVER})),
    ("a request at another price than its event's", lambda f: f.request(
        {"event": {"kind": "gaussian", "sensitivity": 1.0, "sigma": 9.0}})),
    ("a request for a partition that nobody declared", lambda f: f.request({}, partition="east")),
    ("an approval of one's own request", lambda f: f.entry("survey", "approved",
        {"until": stamp(f.now + timedelta(days=2)), "terms": f.first("requested", by="bob").details()["terms"]},
        f.balance("survey"), refers=f.first("requested", by="bob").id, purpose="q")),
    ("an approval of other terms", lambda f: f.entry("survey", "approved",
        {"until": stamp(f.now + timedelta(days=2)), "terms": "0" * 64}, refers=f.first("requested", by="bob").id,
        purpose="q")),
    ("a denial of what was not asked", lambda f: f.entry("survey", "denied", {}, refers=1, purpose="q")),
    ("an opening in another period", lambda f: f.opening({"renews": "month", "period": "2999-01"})),
    ("an opening with another cap than its psi", lambda f: f.opening({"cap": Cost.of(Guarantee(9.0)).text()})),
    ("a share that nobody gave", lambda f: f.opening({"cap": Cost.of(Guarantee(1.0)).text(), "part_of": "survey"})),
    ("an opening of a budget that is open", lambda f: f.opening({}, "survey")),
    ("a raise to another cap than its psi", lambda f: f.entry("survey", "raised",
        {"psi": 3.0, "kappa": 1e-6, "cap": Cost.of(Guarantee(99.0)).text()}, purpose="q")),
    ("a raise that lowers", lambda f: f.entry("survey", "raised", {"psi": 1.0, "kappa": 1e-6}, purpose="q")),
    ("a limit that is no number", lambda f: f.entry("survey", "limited", {"above": -1.0}, purpose="q")),
    ("a split of less than what is left", lambda f: f.entry("survey", "split",
        {"taken": Cost.of(Guarantee(0.5)).text(), "shares": {"a": Cost.of(Guarantee(0.5)).text()}}, purpose="q")),
    ("the end of one's own pause", lambda f: f.entry("paused", "resumed", {"person": "bob"}, purpose="q")),
    ("the end of a pause that is none", lambda f: f.entry("survey", "resumed", {"person": "bob"}, purpose="q")),
    ("a state that nobody knows", lambda f: f.entry("survey", "refunded", {}, f.balance("survey"), purpose="q")),
    ("a reset that says more", lambda f: f.entry("survey", "reset", {"to": 0.0}, purpose="q")),
]  # fmt: skip
"""What is not so, and an entry that says it."""

FORBIDDEN: list[tuple[str, Make]] = [
    ("opened", lambda f: f.opening({})),
    ("raised", lambda f: f.entry("survey", "raised", {"psi": 9.0, "kappa": 1e-6}, purpose="q")),
    ("split", lambda f: f.entry("survey", "split", {"taken": f.balance("survey").left().text(),
        "shares": {"a": f.balance("survey").left().text()}}, purpose="q")),
    ("reset", lambda f: f.entry("survey", "reset", {}, purpose="q")),
    ("closed", lambda f: f.entry("survey", "closed", {}, purpose="q")),
    ("limited", lambda f: f.entry("survey", "limited", {"above": None}, purpose="q")),
    ("paused", lambda f: f.entry("survey", "paused", {"person": "ann"}, purpose="q")),
    ("resumed", lambda f: f.entry("paused", "resumed", {"person": "bob"}, purpose="q")),
    ("approved", lambda f: f.entry("survey", "approved",
        {"until": stamp(f.now + timedelta(days=2)), "terms": f.first("requested", by="bob").details()["terms"]},
        refers=f.first("requested", by="bob").id, purpose="q")),
    ("denied", lambda f: f.entry("survey", "denied", {}, refers=f.first("requested", by="ann").id, purpose="q")),
    ("spent", lambda f: f.spend(psi=0.5)),
    ("spent", lambda f: f.spend("paused")),
    ("spent", lambda f: f.spend("closed")),
    ("spent", lambda f: f.spend(event={"by": "ann"})),
    ("spent", lambda f: f.spend(psi=0.0, key="open", request=f.first("spent", key="open").request)),
    ("renewed", lambda f: f.renewal("monthly", f.later())),
    ("answered", lambda f: f.note("answered", f.first("spent", by="ann"))),
    ("answered", lambda f: f.note("answered", f.first("spent", by="ann"), {"by": "ann"})),
    ("withheld", lambda f: f.note("withheld", f.first("spent", by="ann"))),
    ("interrupted", lambda f: f.note("interrupted", f.first("spent", by="ann"))),
    ("requested", lambda f: f.request({"by": "ann"})),
]  # fmt: skip
"""States, and entries of them that an analyst may not write: the server's guards refuse each."""


def _append(path: Path, entry: Entry) -> None:
    with sqlite3.connect(path) as stranger:
        stranger.execute(INSERT["sqlite"], entry.row())
    stranger.close()


def _cut(path: Path, last: int) -> None:
    """The ledger without what was forged."""
    with sqlite3.connect(path) as stranger:
        guard = stranger.execute("SELECT sql FROM sqlite_master WHERE name = 'psidp_entries_stay'").fetchone()[0]
        stranger.execute("DROP TRIGGER psidp_entries_stay")
        stranger.execute("DELETE FROM psidp_entries WHERE id > ?", (last,))
        stranger.execute(guard)
    stranger.close()


RELAPSES: dict[str, Callable[[], AbstractContextManager[object]]] = {}
