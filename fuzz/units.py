"""What a budget pays for through curators is about the units of its first release, or an entry says in words why."""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from psidp import Curator, Ledger, ask
from psidp.errors import MismatchError
from psidp.ledger import spend

FLIGHTS = pa.table({"tailnum": ["N1"] * 9 + ["N2"], "flight": list(range(10)), "gate": list("ABABABABAB")})
COLUMNS = ("tailnum", "flight", "gate", None)
UNITS = ("aircraft", "record", "row", "flight")


def explore(random: Random) -> None:
    """One round: two budgets, perhaps shares of one, and curators of several minds."""
    with TemporaryDirectory() as folder:
        book = Ledger(Path(folder) / "ledger.db")
        units: dict[str, str] = {}
        first: dict[str, str | None] = {}
        for name in ("fleet", "crew"):
            units[name] = random.choice(UNITS)
            book.open(name, psi=10.0, unit=units[name], actor="Ann", purpose="to be mistaken")
        told = [f"{name} is per {unit}" for name, unit in units.items()]
        for _ in range(random.randrange(4, 12)):
            if "share" not in units and random.random() < 0.2:
                book.split("crew", {"share": 1, "other share": 1}, actor="Ann", purpose="two teams")
                units["share"] = units.pop("crew")
                if "crew" in first:
                    first["share"] = first["crew"]
                told.append("crew is split, share goes on")
            _release(random, book, random.choice(list(units)), units, first, told)
        book.verify()
        book.dispose()


def _release(
    random: Random, book: Ledger, budget: str, units: dict[str, str], first: dict[str, Any], told: list[str]
) -> None:
    column, words = random.choice(COLUMNS), random.choice(("", "", "the same, I counted"))
    told.append(f"{budget}: unit={column!r}, same_unit={words!r}")
    begins = column is not None or units[budget] in ("record", "row")
    right = column == first[budget] if budget in first else begins
    before = book.head().id
    try:
        curator = Curator(FLIGHTS, column, ledger=book, budget=budget, same_unit=words)
        curator.ask(ask.count()).release(psi=0.01)
    except MismatchError:
        assert not right, _story("refused what is the budget's unit", told)
        assert not words, _story("refused what was said in words", told)
        assert book.head().id == before, _story("a refusal was paid for", told)
        return
    assert right or words, _story("released per another unit, and nobody says why", told)
    event = json.loads([entry for entry in book.entries(budget) if entry.state == "spent"][-1].event)
    if budget not in first:
        assert event.get("unit_column", "missing") == column, _story(f"the entry does not say its unit: {event}", told)
    elif not right:
        said = (event.get("unit_column", "missing"), event.get("budget_unit_column", "missing"), event.get("same_unit"))
        assert said == (column, first[budget], words), _story(f"the entry does not say both: {event}", told)
    first.setdefault(budget, column)


def _story(finding: str, told: list[str]) -> str:
    return "\n  ".join([f"{finding}:", *told])


def _nobody_asks() -> AbstractContextManager[object]:
    """As it was: a budget per aircraft takes a release per row, and an entry does not tell."""
    stack = ExitStack()
    stack.enter_context(patch.object(Ledger, "check_unit", lambda *_: None))
    stack.enter_context(patch.object(spend, "said", lambda budget, known, event: {"kind": "guarantee"}))
    return stack


RELAPSES: dict[str, Callable[[], AbstractContextManager[object]]] = {"rows are aircraft": _nobody_asks}
