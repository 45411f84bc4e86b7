"""How this version is called. It changes with the interface; calls_0_2.py does not."""

from typing import Any

from bench.since_0_2 import calls_0_2
from bench.since_0_2.calls_0_2 import _guarantee, _measure, _plain, _read, _rows
from psidp import Curator, ask

__all__ = ["Calls"]

Data = dict[str, Any]

PRICES = ("psi", "epsilon", "delta", "auc", "advantage", "tpr", "fpr", "alpha", "rho", "zcdp", "error", "errors")


class Calls(calls_0_2.Calls):
    """Answers of this version to neutral questions: a question is a value, which has its price when it is released."""

    def _where(self, q: Data) -> Any:
        return q.get("where")

    def _split(self, terms: Data) -> tuple[Data, Data]:
        """What belongs to the question, and its price."""
        return {n: v for n, v in terms.items() if n not in PRICES}, {n: v for n, v in terms.items() if n in PRICES}

    # tables

    def _asked(self, q: Data, curator: Curator) -> tuple[Any, Data]:
        asks, given = self._table_call(q)
        terms, price = self._split(given)
        return curator.ask(*asks, **terms), price

    def _table_plan(self, q: Data, curator: Curator) -> Data:
        question, price = self._asked(q, curator)
        plan = question.plan(**price)
        names = ["name", "contribution", "sensitivity", "psi", "sigma", "standard_error", "by_rows", "ranks"]
        return _guarantee(plan.guarantee) | {"measures": [{n: getattr(e, n) for n in names} for e in plan.expected]}

    def _table(self, q: Data, curator: Curator) -> Data:
        plan, (question, price) = self._table_plan(q, curator), self._asked(q, curator)
        paid = {"purpose": "a report", "retry_key": "2026"} if q.get("ledger") else {}
        answer = question.release(**price, **paid)
        found = {"plan": plan, "psi": _guarantee(answer.guarantee), "rows": _rows("", answer)}
        if not paid:
            return found
        again = _rows("", question.release(**price, **paid)) == found["rows"]
        return found | {"ledger": {"left": _guarantee(curator.ledger.remaining("survey")), "again": again}}

    # cubes

    def _cube_asked(self, q: Data, curator: Curator) -> tuple[Any, Data]:
        (columns, tables), given = self._cube_call(q)
        terms, price = self._split(given)
        return curator.cube(columns, tables, **terms), price

    def _cube_plan(self, q: Data, curator: Curator) -> Data:
        question, price = self._cube_asked(q, curator)
        plan = question.plan(**price)
        errors = [[list(t.columns), t.cells, {str(k): _plain(e) for k, e in t.errors.items()}] for t in plan.tables]
        return _guarantee(plan.guarantee) | {"tables": errors, "gap": plan.gap}

    def _cube(self, q: Data, curator: Curator) -> Data:
        plan, (question, price) = self._cube_plan(q, curator), self._cube_asked(q, curator)
        paid = {"retry_key": "2026"} if q.get("ledger") else {}
        cube = question.release(**price, **paid)
        rows = [row for read in q["read"] for row in _rows(str(read), _read(cube, read))]
        found = {"plan": plan, "psi": _guarantee(cube.guarantee), "rows": rows}
        if not paid:
            return found
        again = question.release(**price, **paid)
        same = rows == [row for read in q["read"] for row in _rows(str(read), _read(again, read))]
        return found | {"ledger": {"left": _guarantee(curator.ledger.remaining("survey")), "again": same}}

    # streams

    def _opened(self, q: Data, curator: Curator) -> Any:
        terms = self._terms(q, "by contribution confidence every since periods windows arrived") | self._groups(q)
        given, price = self._split(terms)
        cap = {"cap": ask.cap(**q["cap"])} if q["cap"] else {}
        stream = curator.stream("visits", *[_measure(m) for m in q["measures"]], **given, **cap)
        return stream.priced(**price)
