"""The 400 questions, as plain data that knows neither version.

Each has a name; a layout (table, cube or stream); a table and how it is opened; the unit; measures, groups, a condition
as text (and, where 0.2 is to be asked in its own way, as an Ibis expression); a price; and what that layout needs.
Groups are a list of keys, {"product": {...}}, {"private": {...}}, {"file": ...}, or left out.
"""

import random
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from bench.since_0_2.tables import START

__all__ = ["QUESTIONS"]

Data = dict[str, Any]

WARDS = ["A", "B", "C", "it's D", None]
COSTS = [-500, 0, 50, 100, 200, 400, 800, 1600, 5000]
AGES = [*range(0, 101, 10)]
FIVES = [*range(0, 121, 5)]


def count(**more: Any) -> Data:
    """Rows."""
    return {"kind": "count"} | more


def units(**more: Any) -> Data:
    """Units."""
    return {"kind": "units"} | more


def of(kind: str, column: str, lower: float, upper: float, **more: Any) -> Data:
    """A measure of values between bounds."""
    return {"kind": kind, "column": column, "lower": lower, "upper": upper} | more


def binned(kind: str, column: str, edges: Any, **more: Any) -> Data:
    """A measure of bins."""
    return {"kind": kind, "column": column, "edges": edges} | more


def auto(kind: str, column: str, **more: Any) -> Data:
    """A measure whose bounds are chosen."""
    return {"kind": kind, "column": column, "bounds": "auto"} | more


def weighted(**more: Any) -> Data:
    """A weighted sum."""
    return {"kind": "weighted_sum", "column": "cost", "lower": 0, "upper": 2000, "weights": "weight", "most": 4} | more


def ratio(above: Data, below: Data, **more: Any) -> Data:
    """One total over another."""
    return {"kind": "ratio", "above": above, "below": below} | more


def top(k: int, by: Data) -> Data:
    """The largest groups."""
    return {"kind": "top", "k": k, "of": by}


SUM, MEAN = of("sum", "cost", 0, 5000), of("mean", "cost", 0, 2000)
MEDIAN = binned("median", "age", FIVES)
QUANTILES = binned("quantiles", "cost", COSTS, at=[0.1, 0.5, 0.9])
HISTOGRAM = binned("histogram", "age", AGES)
RATIO = ratio(SUM, of("sum", "minutes", 0, 240))
DISTINCT = {"kind": "distinct", "column": "diagnosis", "at_most": 5}

MEASURES = {
    "count": count(),
    "units": units(),
    "sum": SUM,
    "sum with negative values": of("sum", "cost", -1000, 1000),
    "sum of large integers": of("sum", "large", -(2**62), 2**62),
    "sum of decimals": of("sum", "price", -10, 500),
    "sum of tiny bounds": of("sum", "cost", -1e-200, 1e-210),
    "mean": MEAN,
    "mean of integers": of("mean", "age", 0, 110),
    "mean of decimals": of("mean", "price", 0, 900),
    "variance": of("variance", "cost", 0, 2000),
    "deviation": of("deviation", "age", 0, 110),
    "histogram": HISTOGRAM,
    "histogram of decimals": binned("histogram", "price", [-50, 0, 100, 500, 900]),
    "quantiles": QUANTILES,
    "median": MEDIAN,
    "min": binned("min", "age", FIVES),
    "max": binned("max", "age", FIVES),
    "max at 0.9": binned("max", "cost", COSTS, at=0.9),
    "weighted sum": weighted(),
    "ratio of sums": RATIO,
    "ratio of sum to count": ratio(SUM, count()),
    "ratio with weights": ratio(weighted(), of("sum", "weight", 0, 4)),
    "distinct": DISTINCT,
    "top by count": top(2, count()),
    "top by sum": top(3, SUM),
    "top by units": top(1, units()),
    "top by distinct": top(2, DISTINCT),
    "mean of a derived column": of("mean", "hour(at)", 0, 23),
    "histogram of a derived column": binned("histogram", "month(day)", [1, 4, 7, 10, 12]),
}
BY_WARD_ONLY = {
    "sum of tiny bounds", "mean of decimals", "sum of decimals", "histogram of decimals", "min", "max at 0.9",
    "ratio with weights", "top by units", "mean of a derived column", "histogram of a derived column",
}  # fmt: skip


def table(name: str, *measures: Data, **terms: Any) -> Data:
    """A release of a table of visits."""
    usual = {"table": "visits", "source": "parquet", "unit": "patient", "price": {"psi": 1.0}}
    grouped = {"groups": WARDS} if terms.get("by") == "ward" and "groups" not in terms else {}
    return {"name": f"table/{name}", "layout": "table", "measures": list(measures)} | usual | grouped | terms


def measures() -> list[Data]:
    """Each measure: of the whole table, by group, and with every row as its own unit."""
    found = []
    for name, measure in MEASURES.items():
        found.append(table(f"measures/{name} by ward", measure, by="ward", contribution=3))
        if name in BY_WARD_ONLY:
            continue
        if measure["kind"] != "top":
            found.append(table(f"measures/{name}", measure, contribution=4))
        if measure["kind"] != "units":
            found.append(table(f"measures/{name} of rows", measure, unit=None, by="ward"))
    return found


def contributions() -> list[Data]:
    """Each form of a contribution."""
    forms = {"1": 1, "3": 3, "8.5": 8.5, "auto": "auto"}
    some = {"count": count(), "sum": SUM, "mean": MEAN, "quantiles": QUANTILES, "ratio": RATIO, "histogram": HISTOGRAM}
    found = [
        table(f"contribution/{form}/{name}", measure, by="ward", contribution=given)
        for form, given in forms.items()
        for name, measure in some.items()
    ]
    own = [count(contribution=2), of("sum", "cost", 0, 5000, contribution="auto"), of("mean", "age", 0, 100)]
    return [
        *found,
        table("contribution/one for each measure", *own, by="ward", contribution=5),
        table("contribution/auto of all", *own, by="ward", contribution="auto"),
        table("contribution/auto of weighted sums", weighted(), contribution="auto"),
        table("contribution/auto of variance", of("variance", "age", 0, 100), contribution="auto"),
        table("contribution/few units, 1", count(), MEAN, table="few", by="ward", contribution=1),
        table("contribution/few units, auto", count(), MEAN, table="few", by="ward", contribution="auto"),
    ]


def groupings() -> list[Data]:
    """Each way to make groups."""
    days, instants = [date(2026, 1, day) for day in range(5, 12)], [datetime(2026, 1, 5), None]
    keys = {
        "text": ("ward", WARDS),
        "one key": ("ward", ["A"]),
        "absent keys": ("ward", ["A", "nobody", "", "漢字"]),
        "integers": ("age", [*range(20, 40), -3, 10**9]),
        "truth values": ("paid", [True, False, None]),
        "dates": ("day", days),
        "instants": ("at", instants),
        "decimals": ("price", [Decimal("1.50"), Decimal(0), None]),
        "text of units": ("person", [f"P{i:03}" for i in range(20)]),
        "many": ("diagnosis", [f"D{i:02}" for i in range(100)]),
        "two columns": (["ward", "paid"], [["A", True], ["B", False], ["C", None], [None, None]]),
        "two columns, every pair": (["ward", "paid"], {"product": {"ward": WARDS, "paid": [True, False]}}),
        "three columns": (["ward", "paid", "age"], {"product": {"ward": ["A", "B"], "paid": [True], "age": [30, 31]}}),
        "a file": ("ward", {"file": "wards.csv"}),
        "month": ("month(day)", None),
        "month and missing": ("month(day)", [*range(1, 13), None]),
        "quarter under a name": ("quarter(at) as quarter", None),
        "week": ("week(at)", [*range(1, 30)]),
        "weekday and ward": (["isoweekday(at)", "ward"], ["A", "B"]),
        "year": ("year(day)", [2025, 2026]),
        "day": ("date(at)", days),
        "bins": ("cut(cost, 0, 100, 1000)", None),
        "cases": ("case when age < 18 then 'child' when age < 65 then 'adult' else 'old' end as band", None),
        "prefix": ("left(diagnosis, 2)", ["D0", "D1", "D2", "D3", "D4"]),
        "lower": ("lower(ward)", ["a", "b", "it's d"]),
    }
    found = []
    for name, (by, groups) in keys.items():
        terms = {"by": by, "contribution": 4} | ({} if groups is None else {"groups": groups})
        found.append(table(f"groups/{name}", count(), of("sum", "cost", 0, 1000), **terms))
    found += [
        table("groups/means by month", MEAN, by="month(day)", contribution=6),
        table("groups/quantiles by weekday", MEDIAN, by="isoweekday(day)", contribution=6),
        table("groups/of an empty table", count(), MEAN, table="empty", by="ward"),
        table("groups/of one row", count(), MEAN, table="one", by="ward"),
    ]
    return found


def private_groups() -> list[Data]:
    """Groups that noise chooses."""
    terms = {
        "text": {"by": "diagnosis", "groups": {"private": {"kappa": 1e-6, "at_most": 8}}},
        "of few": {"by": "diagnosis", "groups": {"private": {"kappa": 1e-3, "at_most": 40}}},
        "with a contribution": {
            "by": "diagnosis",
            "groups": {"private": {"kappa": 1e-6, "at_most": 20, "contribution": 2.5}},
        },
        "with a weight": {"by": "diagnosis", "groups": {"private": {"kappa": 1e-6, "at_most": 8, "weight": 3.0}}},
        "two columns": {"by": ["ward", "paid"], "groups": {"private": {"kappa": 1e-6, "at_most": 10}}},
        "of rows": {
            "by": "diagnosis",
            "unit": None,
            "contribution": 1,
            "groups": {"private": {"kappa": 1e-6, "at_most": 1}},
        },
        "integers": {"by": "age", "groups": {"private": {"kappa": 1e-4, "at_most": 20}}},
        "derived": {"by": "hour(at)", "groups": {"private": {"kappa": 1e-6, "at_most": 12}}},
        "dates": {"by": "day", "groups": {"private": {"kappa": 1e-2, "at_most": 30}}},
        "that nobody has": {"by": "person", "groups": {"private": {"kappa": 1e-6, "at_most": 2}}},
    }
    found = [
        table(f"private groups/{name}", count(), **({"price": {"psi": 4.0}, "contribution": 3} | given))
        for name, given in terms.items()
    ]
    several = {"by": "diagnosis", "groups": {"private": {"kappa": 1e-6, "at_most": 8}}, "price": {"psi": 4.0}}
    for name in ("units", "sum", "mean", "quantiles", "ratio of sums", "top by sum"):
        found.append(table(f"private groups/{name}", MEASURES[name], **several, contribution=3))
    found.append(table("private groups/auto contribution", count(), MEAN, **several, contribution="auto"))
    found.append(table("private groups/auto bounds", auto("mean", "cost"), **several, contribution=3))
    return found


CONDITIONS = [
    ("age >= 18", "_.age >= 18"),
    ("age < 17.5", "_.age < 17.5"),
    ("age != 30", "_.age != 30"),
    ("age between 18 and 65", "_.age.between(18, 65)"),
    ("age not between 18 and 65", "~_.age.between(18, 65)"),
    ("age in (20, 30, 40)", "_.age.isin([20, 30, 40])"),
    ("age not in (20, 30)", "~_.age.isin([20, 30])"),
    ("age is null", "_.age.isnull()"),
    ("cost is not null", None),
    ("cost > 100 and cost <= 1000", "(_.cost > 100) & (_.cost <= 1000)"),
    ("cost > minutes", "_.cost > _.minutes"),
    ("large > 0", "_.large > 0"),
    ("large = 9223372036854775807", "_.large == 2**63 - 1"),
    ("large < 99999999999999999999", None),
    ("price >= 1.5", "_.price >= 1.5"),
    ("price < 100.005", None),
    ("ward = 'A'", "_.ward == 'A'"),
    ("ward != 'A'", "_.ward != 'A'"),
    ("ward in ('A', 'B', 'nobody')", "_.ward.isin(['A', 'B', 'nobody'])"),
    ("ward = 'it''s D'", '_.ward == "it\'s D"'),
    ("ward >= 'B'", "_.ward >= 'B'"),
    ("ward like 'it%'", "_.ward.like('it%')"),
    ("ward not like '_'", None),
    ("diagnosis like 'D0_'", "_.diagnosis.like('D0_')"),
    ("lower(ward) = 'a'", "_.ward.lower() == 'a'"),
    ("length(ward) = 1", "_.ward.length() == 1"),
    ("left(diagnosis, 2) = 'D1'", "_.diagnosis.left(2) == 'D1'"),
    ("paid", "_.paid"),
    ("not paid", "~_.paid"),
    ("paid is null or age > 90", "_.paid.isnull() | (_.age > 90)"),
    ("day >= 2026-03-01", "_.day >= '2026-03-01'"),
    ("day between 2026-02-01 and 2026-02-28", "_.day.between('2026-02-01', '2026-02-28')"),
    ("day = 2026-01-05 or day is null", "(_.day == '2026-01-05') | _.day.isnull()"),
    ("at >= '2026-02-03 12:30:00'", "_.at >= '2026-02-03 12:30:00'"),
    ("month(day) in (1, 2) and year(day) = 2026", "_.day.month().isin([1, 2]) & (_.day.year() == 2026)"),
    ("hour(at) between 8 and 17", "_.at.hour().between(8, 17)"),
    ("isoweekday(at) < 6 and not paid", None),
    ("date(at) = 2026-01-06", "_.at.date() == '2026-01-06'"),
    ("cut(cost, 0, 100) = '[0, 100)'", None),
    ("case when age < 18 then 'a' else 'b' end = 'b'", "ibis.cases((_.age < 18, 'a'), else_='b') == 'b'"),
    ("not (ward = 'A' or age > 40) and cost < 300", "~((_.ward == 'A') | (_.age > 40)) & (_.cost < 300)"),
    ("ward = 'A' or ward = 'B' and age < 30", "(_.ward == 'A') | ((_.ward == 'B') & (_.age < 30))"),
    (["age > 20", "ward = 'A'"], None),
    ("patient < 100 and minutes > 30", "(_.patient < 100) & (_.minutes > 30)"),
    ('"cost" >= 0 AND "age" <> 50', None),
]  # fmt: skip
"""Conditions as text, and as 0.2's Ibis expression where it is to be asked with that."""


def conditions() -> list[Data]:
    """Each kind of condition."""
    return [
        table(
            f"where/{where if isinstance(where, str) else ' + '.join(where)}", count(), of("sum", "cost", 0, 1000),
            by="ward", contribution=3, where=where, **({} if ibis is None else {"ibis": ibis}),
        )
        for where, ibis in CONDITIONS
    ]  # fmt: skip


NOTIONS: dict[str, Data] = {
    "psi": {"psi": 0.4},
    "epsilon, delta": {"epsilon": 1.0, "delta": 1e-6},
    "auc": {"auc": 0.6},
    "advantage": {"advantage": 0.1},
    "tpr, fpr": {"tpr": 0.2, "fpr": 0.05},
    "alpha, rho": {"alpha": 8.0, "rho": 0.5},
    "zcdp": {"zcdp": 0.08},
}


def prices() -> list[Data]:
    """Each notion, and wanted errors."""
    ward = {"by": "ward", "contribution": 3}
    found = [table(f"price/{name}", count(), MEAN, price=price, **ward) for name, price in NOTIONS.items()]
    private = {"by": "diagnosis", "groups": {"private": {"kappa": 1e-7, "at_most": 8}}, "contribution": 3}
    some = {name: NOTIONS[name] for name in ("psi", "epsilon, delta", "auc", "advantage", "tpr, fpr")}
    found += [table(f"price/{name}, private groups", count(), price=price, **private) for name, price in some.items()]
    wanted = {
        "of a count": (count(), {"error": 10}),
        "of units": (units(), {"error": 2.5}),
        "of a sum": (SUM, {"error": 20000}),
        "of a mean": (MEAN, {"error": [5.0, 1000]}),
        "of a variance": (of("variance", "age", 0, 100), {"error": [10.0, 1000]}),
        "of quantiles": (QUANTILES, {"error": 15}),
        "of a ratio": (RATIO, {"error": [0.5, 500]}),
        "of a histogram": (HISTOGRAM, {"error": 6}),
    }
    found += [table(f"price/error {name}", measure, price=price, **ward) for name, (measure, price) in wanted.items()]
    errors = {"count": 10, "mean of cost": [5.0, 1000], "median of age": 20}
    found.append(table("price/errors of several", count(), MEAN, MEDIAN, price={"error": errors}, **ward))
    found.append(table("price/error with private groups", count(), price={"error": 3}, **private))
    return found


def bounds() -> list[Data]:
    """Bounds and edges that are chosen."""
    kinds = {
        "sum": auto("sum", "cost"),
        "mean": auto("mean", "cost"),
        "mean of integers": auto("mean", "age"),
        "mean of decimals": auto("mean", "price"),
        "variance": auto("variance", "age"),
        "deviation": auto("deviation", "cost"),
        "histogram": binned("histogram", "cost", "auto"),
        "quantiles": binned("quantiles", "cost", "auto", at=[0.25, 0.5, 0.75]),
        "median": binned("median", "age", "auto"),
    }
    found = [table(f"bounds/{name}", measure, price={"psi": 3.0}, contribution=4) for name, measure in kinds.items()]
    more = {"price": {"psi": 3.0}, "by": "ward"}
    return [
        *found,
        table("bounds/by ward", kinds["mean"], kinds["sum"], count(), **more, contribution=4),
        table("bounds/auto contribution", kinds["mean"], **more, contribution="auto"),
        table("bounds/of rows", kinds["mean"], kinds["quantiles"], **more, unit=None),
        table("bounds/of large integers", auto("mean", "large"), **more, contribution=4),
        table("bounds/of an empty table", kinds["mean"], table="empty", price={"psi": 3.0}),
        table("bounds/where", kinds["mean"], **more, contribution=4, where="cost between 10 and 20"),
    ]


def options() -> list[Data]:
    """Adjacency, confidence, weights, the share for clipping, several measures at once."""
    replaced, ward = {"adjacency": "replace-one", "by": "ward", "contribution": 3}, {"by": "ward", "contribution": 3}
    some = ("count", "units", "sum", "mean", "histogram", "quantiles", "ratio of sums", "distinct")
    found = [table(f"options/replace-one/{name}", MEASURES[name], **replaced) for name in some]
    all_of = [count(), units(), SUM, MEAN, HISTOGRAM, QUANTILES, RATIO]
    return [
        *found,
        table("options/replace-one of rows", count(), MEAN, MEDIAN, unit=None, adjacency="replace-one", by="ward"),
        table("options/replace-one, auto", count(), SUM, **replaced | {"contribution": "auto"}),
        table("options/confidence 0.5", count(), MEAN, MEDIAN, **ward, confidence=0.5),
        table("options/confidence 0.999", count(), MEAN, RATIO, **ward, confidence=0.999),
        table("options/weights", count(weight=3.0), of("mean", "cost", 0, 2000, weight=0.5), **ward),
        table("options/nothing for clipping", count(), MEAN, **ward, clipping_share=0.0),
        table("options/half for clipping", count(), MEAN, **ward, clipping_share=0.5),
        table("options/seven measures", *all_of, **ward),
        table("options/seven measures, high psi", *all_of, **ward, price={"psi": 100.0}),
        table("options/seven measures, low psi", *all_of, **ward, price={"psi": 0.01}),
        table("options/joined public table", count(), by="region", contribution=3, join=JOIN),
        table("options/joined, as a condition", MEAN, by="ward", contribution=3, join=JOIN, where="region = 'north'"),
        table("options/joined, as a value", of("mean", "beds", 0, 20), contribution=3, join=JOIN),
        table("options/from a ledger", count(), MEAN, **ward, ledger=True),
        table("options/from a ledger, by error", count(), **ward, price={"error": 20}, ledger=True),
        table("options/from a ledger, private groups", count(), by="diagnosis", contribution=3, ledger=True,
              price={"psi": 2.0}, groups={"private": {"kappa": 1e-7, "at_most": 8}}),
        table("options/text as unit", count(), units(), MEAN, unit="person", by="ward", contribution=3),
    ]  # fmt: skip


JOIN = {"on": "ward", "public": {"ward": ["A", "B", "C"], "region": ["north", "south", "north"], "beds": [10, 20, 5]}}
TYPES = {"patient": "int64", "cost": "float64", "age": "int64", "minutes": "int64", "weight": "float64"}
TYPES |= {"day": "date", "at": "timestamp", "arrived": "timestamp", "paid": "boolean", "large": "int64"}


def sources() -> list[Data]:
    """Each file, frame and engine."""
    ward, found = {"by": "ward", "contribution": 3}, []
    for source in ("files", "folder", "pattern", "duckdb", "arrow", "polars", "lazy"):
        found.append(table(f"sources/{source}", count(), SUM, MEDIAN, **ward, source=source))
    for source in ("csv", "pandas"):
        typed = {"source": source} | ({"types": TYPES, "missing": "NA"} if source == "csv" else {"unit": "person"})
        found += [
            table(f"sources/{source}", count(), SUM, MEDIAN, **ward, **typed),
            table(f"sources/{source}, condition", count(), MEAN, **ward, **typed, where="age >= 18 and cost < 900"),
            table(f"sources/{source}, month", count(), by="month(day)", contribution=4, **typed),
            table(f"sources/{source}, auto", auto("mean", "cost"), contribution="auto", **typed),
        ]
    found.append(table("sources/csv without types", count(), SUM, by="ward", source="csv", unit="person"))
    for name in ("count", "sum", "sum of large integers", "mean", "variance", "histogram", "quantiles", "ratio of sums",
                 "weighted sum", "distinct", "top by sum"):  # fmt: skip
        found.append(table(f"sources/postgres/{name}", MEASURES[name], **ward, source="postgres"))
    postgres = {"source": "postgres", "contribution": 3}
    private = {"private": {"kappa": 1e-6, "at_most": 8}}
    found += [
        table("sources/postgres/rows", count(), SUM, MEDIAN, by="ward", source="postgres", unit=None),
        table("sources/postgres/auto", count(), MEAN, **ward | {"contribution": "auto"}, source="postgres"),
        table("sources/postgres/auto bounds", auto("mean", "cost"), **ward, source="postgres"),
        table("sources/postgres/private", count(), by="diagnosis", groups=private, price={"psi": 4.0}, **postgres),
        table("sources/postgres/month", count(), by="month(day)", **postgres),
        table("sources/postgres/cases", MEAN, by="cut(age, 18, 65)", **postgres),
        table("sources/postgres/dates", count(), by="day", groups=[date(2026, 1, 5), None], **postgres),
        table("sources/postgres/decimals", count(), by="price", groups=[Decimal("1.50"), Decimal(0)], **postgres),
    ]
    for where in ("ward in ('A', 'B') and age >= 18", "day >= 2026-03-01 or not paid", "diagnosis like 'D0_'"):
        found.append(table(f"sources/postgres/where {where}", count(), SUM, **ward, source="postgres", where=where))
    found += [
        table("sources/spark/six measures", count(), units(), SUM, MEAN, MEDIAN, RATIO, **ward, source="spark"),
        table("sources/spark/auto", count(), MEAN, **ward | {"contribution": "auto"}, source="spark"),
        table("sources/spark/where", count(), **ward, source="spark", where="age >= 18 and ward in ('A', 'B')"),
    ]  # fmt: skip
    return found


ORIGINS, CARRIERS, MONTHS = ["EWR", "JFK", "LGA"], ["AA", "B6", "DL", "UA"], [*range(1, 13)]
PLAIN = {"origin": ORIGINS, "carrier": CARRIERS}
DELAY = {"ordered": [-60, -20, -5, 0, 5, 15, 30, 60, 120]}
READ_PLAIN: list[Data] = [{"table": []}, {"table": ["origin"]}, {"table": ["carrier", "origin"]}]
READ_DELAY: list[Data] = [{"table": ["delay"]}, {"cdf": "delay", "by": ["origin"]}]
READ_DELAY += [{"quantile": "delay", "at": [0.25, 0.5, 0.9], "by": ["origin"]}, {"quantile": "delay", "at": 0.5}]


def cube(name: str, *measures: Data, **terms: Any) -> Data:
    """A cube of trips."""
    usual = {"table": "trips", "source": "parquet", "unit": "rider", "price": {"psi": 1.0}, "contribution": 6}
    usual |= {"columns": PLAIN, "tables": 2, "read": READ_PLAIN}
    return {"name": f"cube/{name}", "layout": "cube", "measures": list(measures or [count()])} | usual | terms


def cubes() -> list[Data]:
    """Tables over the same columns for one price."""
    wide = PLAIN | {"month": MONTHS}
    fare, late = of("sum", "distance", 0, 2000), of("mean", "delay", -60, 180)
    found = [cube(f"price/{name}", price=NOTIONS[name]) for name in ("epsilon, delta", "auc", "tpr, fpr", "zcdp")]
    found += [
        cube(f"bound={bound}/{c}", bound=bound, contribution=c) for bound in ("rows", "image") for c in (1, 4, 30)
    ]
    found += [cube(f"auto, {bound}", bound=bound, contribution="auto") for bound in ("rows", "image")]
    queries: list[Data] = [
        {"query": {}}, {"query": {"origin": "JFK"}}, {"query": {"origin": "JFK", "month": [6, 7, 8]}},
        {"ratio": [{"origin": "JFK", "month": [12, 1, 2]}, {"origin": "JFK"}]},
    ]  # fmt: skip
    bins = {"bins": DELAY["ordered"]}
    ranged: list[Data] = [{"query": {"delay": {"from": 0, "to": 60}}}, {"query": {"delay": {"from": None, "to": 0}}}]
    return [
        *found,
        cube("one column", columns={"origin": ORIGINS}, tables=1, read=READ_PLAIN[:2]),
        cube("up to 3", columns=wide, tables=3, read=[*READ_PLAIN, {"table": [*wide]}, *queries]),
        cube("up to 3, image", columns=wide, tables=3, bound="image", read=[*READ_PLAIN, *queries]),
        cube("up to 3, total", columns=wide, tables=3, balance="total", read=[*READ_PLAIN, *queries]),
        cube("listed tables", columns=wide, tables=[["origin", "month"], ["carrier"]],
             read=[{"table": ["month"]}, {"table": ["carrier"]}, {"table": ["month", "origin"]}]),
        cube("with a missing key", columns=PLAIN | {"origin": [*ORIGINS, None]}),
        cube("of rows", columns=wide, unit=None, contribution=1),
        cube("replace-one", adjacency="replace-one"),
        cube("replace-one of rows", unit=None, adjacency="replace-one", contribution=1),
        cube("replace-one, image", adjacency="replace-one", bound="image"),
        cube("sum", fare),
        cube("mean", late),
        cube("count, sum and mean", count(), fare, late, columns=wide, tables=2),
        cube("count, sum and mean, image", count(), fare, late, bound="image"),
        cube("weights of measures", count(weight=4.0), fare),
        cube("errors by order", price={"errors": [[1, 20], [2, 40]]}),
        cube("errors by table", price={"errors": [[["origin"], 10], [["carrier"], 15], [2, 50]]}),
        cube("errors, total", price={"errors": [[1, 20], [2, 40]]}, balance="total"),
        cube("where", where="distance > 1000 and carrier != 'AA'", ibis="(_.distance > 1000) & (_.carrier != 'AA')"),
        cube("where, mean", late, where="month between 3 and 5"),
        cube("ordered", columns={"origin": ORIGINS, "delay": DELAY}, read=[*READ_PLAIN[:2], *READ_DELAY, *ranged]),
        cube("ordered, of rows", unit=None, contribution=1, columns={"delay": DELAY}, tables=1, read=READ_DELAY[:1]),
        cube("bins", columns={"origin": ORIGINS, "delay": bins}, read=[*READ_DELAY, *ranged]),
        cube("bins, image", bound="image", columns={"origin": ORIGINS, "delay": bins}, read=[*READ_DELAY, *ranged]),
        cube("derived column", table="visits", unit="patient", columns={"ward": WARDS, "month(day)": None},
             read=[{"table": ["ward"]}, {"table": ["month(day)"]}, {"table": ["ward", "month(day)"]}]),
        cube("truth values", table="visits", unit="patient", columns={"ward": WARDS, "paid": [True, False, None]},
             read=[{"table": ["ward", "paid"]}]),
        cube("bins of decimals", table="visits", unit="patient", columns={"price": {"bins": [-50, 0, 100, 900]}},
             tables=1, read=[{"table": ["price"]}]),
        cube("confidence 0.5", confidence=0.5),
        cube("nothing for clipping", clipping_share=0.0),
        cube("half for clipping", clipping_share=0.5),
        cube("empty", table="empty", unit="patient", columns={"ward": WARDS}, tables=1, read=[{"table": ["ward"]}]),
        cube("joined", table="visits", unit="patient", columns={"region": ["north", "south"], "paid": [True, False]},
             join=JOIN, read=[{"table": ["region"]}, {"table": ["region", "paid"]}]),
        cube("from a ledger", ledger=True),
        cube("csv", table="visits", source="csv", types=TYPES, missing="NA", unit="patient",
             columns={"ward": ["A", "B", "C"], "paid": [True, False]}, read=[{"table": ["ward", "paid"]}]),
        cube("postgres", source="postgres"),
        cube("postgres, up to 3 with means", count(), late, source="postgres", columns=wide, tables=3),
        cube("postgres, image", source="postgres", bound="image", columns=wide),
        cube("postgres, ordered", source="postgres", columns={"origin": ORIGINS, "delay": DELAY}, read=READ_DELAY),
        cube("spark", count(), late, source="spark"),
    ]  # fmt: skip


READ_STREAM: list[Data] = [{"series": "single period"}, {"series": "total to date"}, {"window": 4}, {"between": [2, 4]}]


def stream(name: str, *measures: Data, **terms: Any) -> Data:
    """A stream of visits by week of arrival."""
    usual = {"table": "visits", "source": "parquet", "unit": "patient", "price": {"psi": 0.8}, "arrived": "arrived"}
    usual |= {"every": "week", "since": START, "periods": 20, "cap": {"at_most": 4}, "windows": [4], "published": 6}
    usual |= {"read": READ_STREAM, "ledger": True}
    grouped = {"groups": WARDS} if terms.get("by") == "ward" and "groups" not in terms else {}
    found = {"name": f"stream/{name}", "layout": "stream", "measures": list(measures or [count()])}
    return found | usual | grouped | terms


CAPS: dict[str, Data] = {
    "at most 1": {"at_most": 1},
    "at most 20": {"at_most": 20},
    "apart 3": {"apart": 3},
    "at most 2, apart 2": {"at_most": 2, "apart": 2},
    "each month": {"each": "month"},
    "each quarter, at most 2": {"each": "quarter", "at_most": 2},
    "each 3": {"each": 3},
}


def streams() -> list[Data]:
    """Numbers that are published again in every period."""
    found = [stream(f"price/{name}", price=NOTIONS[name]) for name in ("epsilon, delta", "advantage", "alpha, rho")]
    found += [stream(f"cap/{name}", count(), by="ward", cap=cap) for name, cap in CAPS.items()]
    calendars = {
        "day": {"every": "day", "periods": 40, "published": 10},
        "month": {"every": "month", "since": date(2026, 1, 1), "periods": 12, "published": 5},
        "quarter": {"every": "quarter", "since": date(2026, 1, 1), "periods": 8, "published": 2},
        "year": {"every": "year", "since": date(2025, 1, 1), "periods": 5, "published": 2},
        "long": {"every": "day", "periods": 400, "published": 8, "windows": [7, 28]},
    }
    reads = {"read": [{"series": "single period"}, {"series": "total to date"}, {"between": [1, 2]}], "windows": []}
    found += [stream(f"every/{name}", **reads | terms) for name, terms in calendars.items()]
    cost, three = of("sum", "cost", 0, 500), {"contribution": 3}
    return [
        *found,
        stream("units", units(), by="ward"),
        stream("sum", cost, by="ward", **three),
        stream("sum with negative values", of("sum", "cost", -100, 500), **three),
        stream("count, units and sum", count(), units(), cost, by="ward", **three),
        stream("contributions", count(contribution=2), cost, by="ward", **three),
        stream("weights", count(weight=3.0), cost, by="ward"),
        stream("contribution 8.5", by="ward", contribution=8.5),
        stream("of rows", unit=None, cap={}, by="ward"),
        stream("replace-one", adjacency="replace-one", by="ward"),
        stream("two columns", by=["ward", "paid"], groups={"product": {"ward": ["A", "B"], "paid": [True, False]}}),
        stream("where", where="age >= 18 and ward = 'A'", ibis="(_.age >= 18) & (_.ward == 'A')"),
        stream("where, by ward", cost, by="ward", where="not paid or paid is null"),
        stream("windows", windows=[2, 4, 13], read=[*READ_STREAM, {"window": 2}]),
        stream("no windows", windows=[], read=READ_STREAM[:2]),
        stream("confidence 0.5", by="ward", confidence=0.5),
        stream("by date", arrived="day"),
        stream("one group", by="ward", groups=["A"]),
        stream("empty", table="empty", by="ward"),
        stream("every period", periods=6, published=6),
        stream("csv", source="csv", types=TYPES, missing="NA", by="ward"),
        stream("pandas", source="pandas", unit="person", by="ward"),
        stream("postgres", count(), cost, source="postgres", by="ward"),
        stream("postgres, each month", source="postgres", cap={"each": "month"}),
        stream("spark", source="spark", by="ward"),
    ]  # fmt: skip


def drawn(number: int) -> list[Data]:
    """Questions at random, the same each time: measures, groups, contributions and conditions that met nowhere yet."""
    dice, found = random.Random(2026), []
    kinds = [name for name, measure in MEASURES.items() if measure["kind"] != "top" and "tiny" not in name]
    groups = [{}, {"by": "ward"}, {"by": "month(day)"}, {"by": "paid", "groups": [True, False]}]
    groups += [{"by": ["ward", "paid"], "groups": {"product": {"ward": ["A", "C"], "paid": [True, None]}}}]
    for i in range(number):
        names = dice.sample(kinds, dice.randrange(1, 4))
        terms = dict(dice.choice(groups)) | {"contribution": dice.choice([1, 2, 4.5, 16, "auto"])}
        terms |= {"price": dice.choice(list(NOTIONS.values())), "confidence": dice.choice([0.9, 0.95])}
        terms |= {"where": dice.choice(CONDITIONS)[0]} if dice.random() < 0.5 else {}
        terms |= {"source": dice.choice(["parquet", "arrow", "duckdb", "postgres"])}
        found.append(table(f"drawn/{i:02}: {', '.join(names)}", *[MEASURES[name] for name in names], **terms))
    return found


LISTED = [
    *measures(), *contributions(), *groupings(), *private_groups(), *conditions(), *prices(), *bounds(), *options(),
    *sources(), *cubes(), *streams(),
]  # fmt: skip
QUESTIONS = [*LISTED, *drawn(400 - len(LISTED))]
