"""Neighbouring tables, many pairs in one batch, and questions of every feature with what plain Python makes of them.

Table 2i of a batch and table 2i + 1 are the same, but for one unit. Units belong to one table, so that a question by
`t` asks every table at once. Odd pairs have a unit of values that only one engine can hold.
"""

import datetime
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from math import inf, isqrt, nan

import numpy as np
import pyarrow as pa

from psidp import Curator, PrivateGroups, ask
from psidp.tables.axes import Keys
from psidp.tables.choices.bounds import SIZE_EDGES, NoisyBins, middle_edges, tail_edges
from psidp.tables.choices.private_groups import KeyChoice
from psidp.tables.totals import Totals
from psidp.tables.unit_bounds import NormBound
from reference.bounded_totals import plain as plain_question
from reference.bounded_totals import totals

NAMES = ("t", "who", "word", "day", "seen", "x", "w", "n", "p")
TYPES = {
    "postgres": "t bigint, who bigint, word text, day date, seen timestamp, x double precision, w double precision, "
    "n bigint, p numeric",
    "spark": "t bigint, who bigint, word string, day date, seen timestamp_ntz, x double, w double, n bigint, "
    "p decimal(38, 10)",
}
REGIONS = {
    "word": ["", "a", "A", "it's \\ %", "\u6f22\u5b57x"],
    "region": ["north", "north", "south", None, "west"],
    "beds": [10, 20, 5, 7, None],
}
WORDS = ["", "a", "A", "ab", "a_b", "it's \\ %", "\u6f22\u5b57x", "a ", "\u0130", "e\u0301", 300 * "x", None]
FRACTIONS = [None, nan, inf, -inf, 1e308, -1e308, 5e-324, -5e-324, 0.0, -0.0, 15.0, 0.1, 1e-200, 7.0]
WHOLE = [None, 0, 1, -1, 3, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)]
PRICES = [None, Decimal(0), Decimal("0.1"), Decimal("-99.5"), Decimal(10) ** 27, -(Decimal(10) ** 27), Decimal("1e-10")]
MOMENTS = [
    None, datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59, 999999),
    datetime.datetime(1969, 12, 31, 23, 59, 59), datetime.datetime(2024, 2, 29, 12), datetime.datetime(2026, 12, 28),
]  # fmt: skip
EDGES = (-50.0, -1.0, 0.0, 0.1, 7.0, 100.0)

ODD = {
    "duckdb": {
        "word": [b"\xff\xfe", b"a\xff", b"\xc3", b"\0", b"\xed\xa0\x80"],
        "day": [2**31 - 1, -(2**31) + 2, 2**31 - 2, 10**7],
        "seen": [2**63 - 1, -(2**63) + 2, 2**62],
        "x": [nan, inf, -inf, 5e-324],
        "n": [2**63 - 1, -(2**63)],
        "p": [Decimal("9" * 28), -Decimal("9" * 28)],
    },
    "postgres": {
        "word": ["repeat('x', 100000)", "chr(1)", "chr(1114111)"],
        "day": ["'infinity'", "'-infinity'", "'5874897-12-31'", "'4713-01-01 BC'"],
        "seen": ["'infinity'", "'-infinity'", "'294276-12-31'", "'4713-01-01 BC'"],
        "x": ["'NaN'", "'Infinity'", "'-Infinity'", "5e-324"],
        "n": [str(2**63 - 1), str(-(2**63))],
        "p": ["'NaN'", "'Infinity'", "'-Infinity'", "1e400", "-1e400", "1e-400", "1e16383::numeric * 1000"],
    },
    "spark": {
        "word": ["cast(X'FFFE' as string)", "cast(X'61FF' as string)", "cast(X'00' as string)", "repeat('x', 100000)"],
        "day": ["date_from_unix_date(2147483647)", "date_from_unix_date(-2147483648)"],
        "seen": [f"cast(timestamp_micros({2**63 - 1}) as timestamp_ntz)",
                 f"cast(timestamp_micros(-{2**63 - 1}) as timestamp_ntz)"],
        "x": ["double('NaN')", "double('Infinity')", "double('-Infinity')", "5e-324D"],
        "n": [f"{2**63 - 1}L", f"cast('-{2**63}' as bigint)"],
        "p": [f"cast('{'9' * 28}' as decimal(38, 10))", f"cast('-{'9' * 28}' as decimal(38, 10))"],
    },
}  # fmt: skip
"""Values beyond those that all engines can hold: for DuckDB as Arrow has them, else in SQL."""


@dataclass(frozen=True)
class Question:
    """What is asked by table and by `by`: of rows that satisfy `where`, which `holds` tells of a row in Python."""

    asks: tuple
    by: tuple[str, ...] = ()
    groups: dict = field(default_factory=dict)
    where: str | None = None
    holds: Callable = lambda row: True
    contribution: float = 1.5


def _month(moment):
    return None if moment is None else moment.month


def _is(value, test):
    """The truth of a comparison: of what is missing nothing is true, nor of NaN."""
    return value is not None and test(value)


def _cut(x):
    """The bin of cut(x, 0, 15), as its definition names them."""
    return None if x is None or x != x else "below 0" if x < 0 else "0 to 15" if x < 15 else "15 and above"


CASE = "case when x < 0 then 'low' when x >= 15 then 'high' end as size"
QUESTIONS = {
    "sums": Question(
        (
            ask.weighted_sum("x", -10.0, 100.0, weights="w", most=3.0), ask.top(1, ask.sum("n", -4.0, 1e6)),
            ask.ratio(ask.sum("x", -7.5, 30.0), ask.sum("n", 0.0, 3.0)), ask.units(), ask.sum("beds", 0, 15),
        ),
        ("region",), {"region": ["north", "south", "west", None]},
        "word is null or word not like 'a_b' and length(word) < 200",
        lambda r: r["word"] is None or (r["word"] != "a_b" and len(r["word"]) < 200),
    ),
    "ratios": Question(
        (
            ask.ratio(ask.weighted_sum("x", 1.0, 9.0, weights="w", most=5.0), ask.count()), ask.mean("p", -7.5, 30.0),
            ask.weighted_sum("p", 0.5, 4.0, weights="n", most=9),
        ),
        ("region",), {}, "left(word, 1) in ('a', 'A') or region = 'west' or day is null",
        lambda r: r["left(word, 1)"] in ("a", "A") or r["region"] == "west" or r["day"] is None, 1.0,
    ),
    "quantiles": Question(
        (ask.median("x", EDGES), ask.min("n", EDGES), ask.max("p", EDGES, 0.9), ask.histogram("x", EDGES)),
        (CASE,), {}, "month(seen) in (1, 2, 12) or seen is null or x between -1 and 20",
        lambda r: _month(r["seen"]) in (None, 1, 2, 12) or _is(r["x"], lambda x: -1 <= x <= 20), 3.0,
    ),
    "parts": Question(
        (ask.count(), ask.mean("isoweekday(day)", 1, 5), ask.top(3)),
        ("month(seen)",), {}, "day between '0001-01-01' and '2026-12-31' and not (word in ('a', 'A'))",
        lambda r: _is(r["day"], lambda d: d <= datetime.date(2026, 12, 31)) and r["word"] not in (None, "a", "A"), 1.0,
    ),
    "bins": Question(
        (ask.count(), ask.sum("beds", -5, 15)), ("left(word, 1)",), {"left(word, 1)": ["", "a", "A", "\u6f22", "e"]},
        "(cut(x, 0, 15) is not null or region = 'north') and (n <> 3 or n is null)",
        lambda r: (_cut(r["x"]) is not None or r["region"] == "north") and r["n"] != 3, 8.0,
    ),
    "distinct": Question(
        (
            ask.distinct("n", 3), ask.distinct("word", 1.7), ask.distinct("day", 1),
            ask.top(2, ask.distinct("left(word, 2)", 2)),
        ),
        ("region",), {"region": ["north", "south", "west", None]}, "w is null or w <> 7", lambda r: r["w"] != 7,
    ),
}  # fmt: skip


def with_derived(row):
    """The row with all that questions derive from it, by Python's own calendar and texts."""
    at = REGIONS["word"].index(row["word"]) if row["word"] in REGIONS["word"] else None
    x, word = row["x"], row["word"]
    return row | {
        "region": None if at is None else REGIONS["region"][at],
        "beds": None if at is None else REGIONS["beds"][at],
        "month(seen)": _month(row["seen"]),
        "isoweekday(day)": None if row["day"] is None else row["day"].isoweekday(),
        "left(word, 1)": None if word is None else word[:1],
        "left(word, 2)": None if word is None else word[:2],
        "size": "low" if _is(x, lambda v: v < 0) else "high" if _is(x, lambda v: v >= 15) else None,
    }


def a_row(dice):
    """A row of ordinary values and of those that break things."""
    odd = dice.random() < 0.35
    moment = datetime.datetime(2026, 1, 1) + datetime.timedelta(hours=dice.randrange(20_000))
    moments = [dice.choice(MOMENTS) if odd else moment for _ in range(2)]
    return {
        "word": dice.choice(WORDS),
        "day": None if moments[0] is None else moments[0].date(),
        "seen": moments[1],
        "x": dice.choice(FRACTIONS) if odd else dice.gauss(10, 30),
        "w": dice.choice(FRACTIONS) if odd else dice.choice([0.5, 1.0, 2.0, 7.0]),
        "n": dice.choice(WHOLE) if odd else dice.randint(-5, 9),
        "p": dice.choice(PRICES) if odd else Decimal(dice.randint(-999, 9999)) / 100,
    }


def a_table(dice):
    """Rows of a few units, one of which may have many, and of nobody."""
    units, rows = dice.randint(1, 4), dice.choice([0, 1, 3, 8, 8, 25])
    return [a_row(dice) | {"who": dice.choice([*range(units), 0, None])} for _ in range(rows)]


def batch(dice, pairs):
    """Rows of so many pairs of neighbours: the second of each is without one unit of the first, or with one more."""
    made = []
    for pair in range(pairs):
        full = a_table(dice)
        gone = dice.choice([row["who"] for row in full if row["who"] is not None] or [0])
        less = [row for row in full if row["who"] != gone]
        for t, rows in ((2 * pair, full), (2 * pair + 1, less)):
            made += [row | {"t": t, "who": None if row["who"] is None else 10 * t + row["who"]} for row in rows]
    return made


def odd_units(engine, first):
    """For each odd unit (table, rows of it): one for each odd row, and one that has all of them."""
    kinds = ODD[engine]
    rows = [{c: v[i % len(v)] for c, v in kinds.items()} for i in range(max(map(len, kinds.values())))]
    rows += [{c: v[i]} for c, v in kinds.items() for i in range(len(v))]
    return [(first + 2 * i, unit) for i, unit in enumerate([*([row] for row in rows), rows])]


def placed(engine, connection, rows, first, name="features"):
    """What a curator is given, and how many tables it has: the rows, and from table `first` on the odd pairs."""
    odd = odd_units(engine, first)
    plain = {"word": "a", "x": 3.0, "w": 1.0, "n": 2, "p": Decimal(2), "seen": MOMENTS[4], "day": MOMENTS[4].date()}
    rows = rows + [plain | {"t": t + i, "who": 10 * (t + i)} for t, _ in odd for i in (0, 1)]
    tables = first + 2 * len(odd)
    extra = [row | {"t": t, "who": 10 * t + 1} for t, unit in odd for row in unit]
    if engine == "duckdb":
        return {"table": _in_arrow([*rows, *extra])}, tables
    if engine == "postgres":
        _in_postgres(connection, rows, extra, name)
    else:
        _in_spark(connection, rows, extra, name)
    return {"table": connection, "name": name}, tables


def _in_arrow(rows):
    columns = {name: [row.get(name) for row in rows] for name in NAMES}
    words = [w.encode("utf-8") if isinstance(w, str) else w for w in columns["word"]]
    held = pa.array(words, pa.binary())
    days = [(d - datetime.date(1970, 1, 1)).days if isinstance(d, datetime.date) else d for d in columns["day"]]
    start, step = datetime.datetime(1970, 1, 1), datetime.timedelta(microseconds=1)
    moments = [(m - start) // step if isinstance(m, datetime.datetime) else m for m in columns["seen"]]
    made = {
        "word": pa.Array.from_buffers(pa.string(), len(held), held.buffers()),
        "day": pa.array(days, pa.int32()).cast(pa.date32()),
        "seen": pa.array(moments, pa.int64()).cast(pa.timestamp("us")),
        "p": pa.array(columns["p"], pa.decimal128(38, 10)),
    }
    kinds = {"t": pa.int64(), "who": pa.int64(), "x": pa.float64(), "w": pa.float64(), "n": pa.int64()}
    return pa.table({name: made[name] if name in made else pa.array(columns[name], kinds[name]) for name in NAMES})


def _in_postgres(connection, rows, extra, name):
    cursor = connection.cursor()
    cursor.execute(f"drop table if exists {name}")
    cursor.execute(f"create table {name} ({TYPES['postgres']})")
    with cursor.copy(f"copy {name} from stdin") as copy:
        for row in rows:
            copy.write_row([row[c] for c in NAMES])
    for row in extra:
        cursor.execute(f"insert into {name} values ({', '.join(str(row.get(c, 'null')) for c in NAMES)})")


def _in_spark(session, rows, extra, name):
    plain = session.createDataFrame([tuple(row[c] for c in NAMES) for row in rows], TYPES["spark"])
    plain.createOrReplaceTempView(f"{name}_plain")
    kinds = [part.strip().split(" ", 1) for part in TYPES["spark"].replace("(38, 10)", "(38; 10)").split(",")]
    kinds = [(c, kind.replace(";", ",")) for c, kind in kinds]
    lines = [", ".join(f"cast({row.get(c, 'null')} as {kind})" for c, kind in kinds) for row in extra]
    odd = f"select * from values {', '.join(f'({line})' for line in lines)} as odd({', '.join(NAMES)})"
    session.sql(f"select * from {name}_plain union all {odd}").coalesce(1).cache().createOrReplaceTempView(name)


def curator_of(place, unit="who"):
    return Curator(**place, unit=unit).join(REGIONS, on="word")


def priced_of(curator, question, tables, groups=None):
    """The question by table, at a price."""
    contribution = question.contribution if curator.unit is not None else 1.0
    by, keys = ["t", *question.by], groups or {"t": range(tables), **question.groups}
    return curator.ask(*question.asks, by=by, groups=keys, where=question.where, contribution=contribution).at(1.0)


def integers(priced):
    """{measure's name: ({group: totals}, bound)} as the engine has them."""
    exact, found = priced.totals.exact(priced.source, priced.dialect), {}
    for ask_, bound, cells in zip(priced.asks, priced.bounds, exact.cells, strict=True):
        (array,) = cells.values()
        pairs = zip(priced.layout.groups, array, strict=True)
        found[ask_.name] = {key: flat for key, part in pairs if any(flat := _flat(part))}, bound.grid.bound
    return found


def _flat(part):
    return tuple(int(x) for x in part.ravel())


def expected(priced, question, rows, unit="who"):
    """The same in plain Python, of rows that every engine can hold."""
    places = set(priced.layout.groups)
    held = [row for row in map(with_derived, rows) if question.holds(row)]
    held = [row for row in held if tuple(row[name] for name in priced.layout.by) in places]
    found = {}
    for ask_, bound in zip(priced.asks, priced.bounds, strict=True):
        asked = dict(plain_question(ask_))
        if asked["kind"] == "distinct":
            asked["at_most"] = ask_.contribution
        found[ask_.name] = by_group(totals(held, unit, priced.layout.by, asked, bound.grid), asked)
    return found


def by_group(whole, asked):
    """Totals with bins in a row, as the engine's are kept."""
    if "edges" not in asked:
        return {key: tuple(total) for key, total in whole.items() if any(total)}
    made = defaultdict(lambda: [0] * (len(asked["edges"]) - 1))
    for (*key, box), (total,) in whole.items():
        made[tuple(key)][box] = total
    return {key: tuple(total) for key, total in made.items() if any(total)}


def moved(found, pair):
    """The square of how far the totals of a pair of neighbours are apart."""
    one, other = ({key[1:]: v for key, v in found.items() if key[0] == 2 * pair + i} for i in (0, 1))
    square = 0
    for key in one.keys() | other.keys():
        width = len(one.get(key) or other[key])
        ends = zip(one.get(key, (0,) * width), other.get(key, (0,) * width), strict=True)
        square += sum((a - b) ** 2 for a, b in ends)
    return square


def bounds_histograms(curator, tables, dice):
    """Histograms of bounds="auto" by table: {column and stage: ({group: totals}, bound)}, and the questions with their
    grids. Edges of the second and third stage come from noisy numbers of no table."""
    found, asks = {}, {}
    keys = Keys(("t",), tuple((t,) for t in range(tables)))
    priced = priced_of(curator, Question((ask.count(),)), tables)
    for column, contribution, stages in (("x", 1.0, (0, 1, 2)), ("n", 2.5, (0,)), ("p", 1.0, (2,))):
        second = middle_edges(_noisy(SIZE_EDGES, dice), 9.0)
        edges = (SIZE_EDGES, second, tail_edges(_noisy(second, dice)))
        for stage in stages:
            asked = ask.histogram(column, edges[stage])
            vector = asked.measure.vector
            bound = NormBound.of(vector, contribution, 1)
            query = Totals(priced.unit, (keys,), ((0,),), (vector,), (bound,))
            (array,) = query.exact(priced.source, priced.dialect).cells[0].values()
            whole = {key: flat for key, part in zip(keys.keys, array, strict=True) if any(flat := _flat(part))}
            found[f"{column} {stage}"], asks[f"{column} {stage}"] = (whole, bound.grid.bound), (asked, bound.grid)
    return found, asks


def _noisy(edges, dice):
    """Noisy numbers of rows, some of which stand out in a few bins beside each other."""
    bins = len(edges) - 1
    counts = np.array([dice.gauss(0, 1) for _ in range(bins)])
    middle = bins // 2 + dice.randrange(-3, 4)
    counts[max(0, middle - 5) : middle + 6] += 20.0
    return NoisyBins(np.asarray(edges), counts, 1.0)


PRIVATE = PrivateGroups(1e-6, 3)


def private_counts(curator, question, tables):
    """Weighted numbers of units by table and group, for groups that are to be chosen."""
    keys = KeyChoice().exact(priced_of(curator, question, tables, PRIVATE))
    return {key: (total,) for key, total in keys if total}


def expected_private(question, rows):
    """The same in plain Python: a unit in m groups, no more than it may be in, adds to each what m leaves."""
    keys = defaultdict(set)
    for row in filter(question.holds, map(with_derived, rows)):
        if row["who"] is not None:
            keys[row["who"]].add((row["t"], *(row[name] for name in question.by)))
    counted = defaultdict(int)
    for owned in keys.values():
        for key in owned if len(owned) <= PRIVATE.at_most else ():
            counted[key] += private_weight(len(owned))
    return {key: (count,) for key, count in counted.items()}


def private_weight(keys):
    """2^29 min(1, 1/sqrt(keys)), the squares of all keys together at most 2^58: three keys have steps of 2^-29."""
    return min(2**29, isqrt(2**58 // keys))
