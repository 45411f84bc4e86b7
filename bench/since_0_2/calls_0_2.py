"""How version 0.2 is called: a neutral question as a call of its interface, and the answer as plain data. Frozen."""

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psidp
from bench.since_0_2.tables import moment
from psidp import Curator, Ledger, PrivateGroups, ask

__all__ = ["Calls"]

Data = dict[str, Any]


class Calls:
    """Answers to questions about the tables of a place: {"folder": ..., "postgres": address}."""

    def __init__(self, place: Data) -> None:
        self.folder, self.postgres = Path(place["folder"]), place.get("postgres", "")

    def answer(self, question: Data) -> Data:
        """The plan, what was paid, and every number."""
        with ExitStack() as stack:
            return getattr(self, f"_{question['layout']}")(question, self._curator(question, stack))

    def plan(self, question: Data) -> Data:
        """The plan alone."""
        with ExitStack() as stack:
            return getattr(self, f"_{question['layout']}_plan")(question, self._curator(question, stack))

    def _curator(self, q: Data, stack: ExitStack) -> Curator:
        """The table, opened as the question says."""
        terms = {name: q[name] for name in ("adjacency", "types", "missing") if name in q}
        if q.get("ledger"):
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            late = moment(q["published"], q["every"]) if q["layout"] == "stream" else moment(0, "day")
            ledger = stack.enter_context(Ledger(Path(folder) / "ledger.db", clock=lambda: late))
            ledger.open("survey", psi=10.0, kappa=1e-3, unit=str(q["unit"]), actor="Ann", purpose="a survey",
                        adjacency=q.get("adjacency", "add-remove"))  # fmt: skip
            terms |= {"ledger": ledger, "budget": "survey"}
            if q["unit"] is None:
                terms["same_unit"] = "every row is a visit, and a visit is what the budget protects"
        curator = Curator(*self._source(q["source"], q["table"]), q["unit"], **self._more(q), **terms)
        stack.callback(curator.dispose)
        join = q.get("join")
        return curator.join(join["public"], on=join["on"]) if join else curator

    def _source(self, source: str, table: str) -> tuple[Any]:
        file, parts = self.folder / f"{table}.parquet", self.folder / "parts"
        if source in ("pandas", "polars", "lazy", "arrow"):
            return (_frame(source, file),)
        if source == "spark":
            from sparks import session  # tests/sparks.py: a small session, which psidp then finds

            session()
        known = {
            "parquet": file,
            "spark": str(file),
            "csv": self.folder / f"{table}.csv",
            "folder": parts,
            "files": sorted(parts.iterdir()),
            "pattern": str(parts / "*.parquet"),
            "duckdb": self.folder / "tables.duckdb",
            "postgres": table,
        }
        return (known[source],)

    def _more(self, q: Data) -> Data:
        more = {
            "duckdb": {"name": q["table"]},
            "postgres": {"engine": self.postgres},
            "spark": {"engine": "spark://local"},
        }
        return more.get(q["source"], {})

    def _terms(self, q: Data, names: str) -> Data:
        """Arguments that 0.2 has under the same names, the price, and the condition."""
        terms = {name: q[name] for name in names.split() if name in q} | q["price"]
        where = self._where(q)
        return terms if where is None else terms | {"where": where}

    def _where(self, q: Data) -> Any:
        """The condition, as an Ibis expression where the question has one."""
        if "ibis" not in q:
            return q.get("where")
        import ibis

        return eval(q["ibis"], {"_": ibis._, "ibis": ibis})

    def _groups(self, q: Data) -> Data:
        groups = q.get("groups")
        if groups is None:
            return {}
        if isinstance(groups, list):
            return {"groups": [tuple(key) if isinstance(key, list) else key for key in groups]}
        ((kind, value),) = groups.items()
        return {"groups": {"private": lambda: PrivateGroups(**value), "file": lambda: self.folder / value}[kind]()
                if kind != "product" else value}  # fmt: skip

    # tables

    def _table_call(self, q: Data) -> tuple[list[Any], Data]:
        terms = self._terms(q, "by contribution confidence clipping_share") | self._groups(q)
        return [_measure(m) for m in q["measures"]], terms

    def _table_plan(self, q: Data, curator: Curator) -> Data:
        asks, terms = self._table_call(q)
        plan = curator.plan(*asks, **terms)
        names = ["name", "contribution", "sensitivity", "psi", "sigma", "standard_error", "by_rows", "ranks"]
        return _guarantee(plan.guarantee) | {"measures": [{n: getattr(e, n) for n in names} for e in plan.expected]}

    def _table(self, q: Data, curator: Curator) -> Data:
        asks, terms = self._table_call(q)
        plan = self._table_plan(q, curator)
        if not q.get("ledger"):
            answer = curator.release(*asks, **terms)
            return {"plan": plan, "psi": _guarantee(answer.guarantee), "rows": _rows("", answer)}
        answer = curator.release(*asks, **terms, purpose="a report", retry_key="2026")
        again = curator.release(*asks, **terms, purpose="a report", retry_key="2026")
        paid = {"left": _guarantee(curator.ledger.remaining("survey")), "again": _rows("", again) == _rows("", answer)}
        return {"plan": plan, "psi": _guarantee(answer.guarantee), "rows": _rows("", answer), "ledger": paid}

    # cubes

    def _cube_call(self, q: Data) -> tuple[tuple[Any, Any], Data]:
        columns = {name: _values(values) for name, values in q["columns"].items()}
        tables = ask.up_to(q["tables"]) if isinstance(q["tables"], int) else [tuple(t) for t in q["tables"]]
        terms = self._terms(q, "contribution confidence clipping_share bound balance")
        if "errors" in terms:
            terms["errors"] = {tuple(k) if isinstance(k, list) else k: error for k, error in terms["errors"]}
        return (columns, tables), terms | {"measures": [_measure(m) for m in q["measures"]]}

    def _cube_plan(self, q: Data, curator: Curator) -> Data:
        given, terms = self._cube_call(q)
        plan = curator.plan_cube(*given, **terms)
        errors = [[list(t.columns), t.cells, {str(k): _plain(e) for k, e in t.errors.items()}] for t in plan.tables]
        return _guarantee(plan.guarantee) | {"tables": errors, "gap": plan.gap}

    def _cube(self, q: Data, curator: Curator) -> Data:
        given, terms = self._cube_call(q)
        plan, paid = self._cube_plan(q, curator), {"retry_key": "2026"} if q.get("ledger") else {}
        cube = curator.cube(*given, **terms, **paid)
        rows = [row for read in q["read"] for row in _rows(str(read), _read(cube, read))]
        found = {"plan": plan, "psi": _guarantee(cube.guarantee), "rows": rows}
        if not paid:
            return found
        again = curator.cube(*given, **terms, **paid)
        same = rows == [row for read in q["read"] for row in _rows(str(read), _read(again, read))]
        return found | {"ledger": {"left": _guarantee(curator.ledger.remaining("survey")), "again": same}}

    # streams

    def _opened(self, q: Data, curator: Curator) -> Any:
        terms = self._terms(q, "by contribution confidence every since periods windows arrived") | self._groups(q)
        return curator.stream("visits", *[_measure(m) for m in q["measures"]], **terms, **q["cap"])

    def _stream_plan(self, q: Data, curator: Curator) -> Data:
        plan = self._opened(q, curator).plan()
        return _guarantee(plan.guarantee) | {
            "parts": [part._asdict() for part in plan.parts],
            "strategy": plan.strategy.to_dict(),
            "expected": [row._asdict() for row in plan.expected()],
        }

    def _stream(self, q: Data, curator: Curator) -> Data:
        plan, stream = self._stream_plan(q, curator), self._opened(q, curator).open("weekly figures")
        rows = _published("published", stream.publish())
        for read in q["read"]:
            ((kind, value),) = read.items()
            if kind == "between":
                value = [stream.calendar.begin(period) for period in value]
                rows += _published(str(read), stream.between(*value))
            else:
                rows += _published(str(read), getattr(stream, kind)(value))
        left = {"left": _guarantee(curator.ledger.remaining("survey"))}
        return {"plan": plan, "psi": _guarantee(stream.plan().guarantee), "rows": rows, "ledger": left}


def _frame(kind: str, file: Path) -> Any:
    import pyarrow.parquet as pq

    table = pq.read_table(file)
    if kind == "pandas":
        return table.to_pandas()
    if kind == "arrow":
        return table
    import polars

    return polars.from_arrow(table) if kind == "polars" else polars.scan_parquet(file)


def _measure(m: Data) -> Any:
    """A measure as 0.2 has it."""
    m = dict(m)
    kind = m.pop("kind")
    for name in ("above", "below", "of"):
        if name in m:
            m[name] = _measure(m[name])
    return getattr(ask, kind)(**m)


def _values(values: Any) -> Any:
    """A column of a cube."""
    if not isinstance(values, dict):
        return values
    ((kind, edges),) = values.items()
    return getattr(ask, kind)(edges)


def _choice(choice: Data) -> Data:
    return {name: slice(v["from"], v["to"]) if isinstance(v, dict) else v for name, v in choice.items()}


def _read(cube: Any, read: Data) -> Any:
    """What a cube says to one reading."""
    if "table" in read:
        return cube.table(*read["table"])
    if "query" in read:
        return cube.query(_choice(read["query"]))
    if "ratio" in read:
        return cube.ratio(*map(_choice, read["ratio"]))
    if "cdf" in read:
        return cube.cdf(read["cdf"], read.get("by", ()))
    return cube.quantile(read["quantile"], read["at"], read.get("by", ()))


def _rows(of: str, answer: Any) -> list[Data]:
    """Every number of an answer, or the one number of a query."""
    rows = answer.rows if hasattr(answer, "rows") else [((), answer)]
    names = ("statistic", "value", "standard_error", "lower", "upper", "flag")
    return [{"of": of, "key": list(key)} | {n: getattr(e, n) for n in names} for key, e in rows]


def _published(of: str, rows: list[Any]) -> list[Data]:
    names = ("statistic", "value", "standard_error", "lower", "upper", "flag")
    return [{"of": of, "key": [r.period, *r.group]} | {n: getattr(r, n) for n in names} for r in rows]


def _guarantee(g: psidp.Guarantee) -> Data:
    return {"psi": g.psi, "kappa": g.kappa, "adjacency": g.adjacency, "unit": g.unit}


def _plain(error: Any) -> Any:
    return {str(rows): e for rows, e in error.items()} if isinstance(error, dict) else error
