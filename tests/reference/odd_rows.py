"""Columns of every type that Arrow and Parquet have, with ordinary and with odd values, and questions about a column.

A table has the ordinary rows alone, or an odd row besides. What a question comes to must not tell which: the same
refusal, or totals that are apart by no more than the odd rows.
"""

import datetime
from decimal import Context, Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from psidp import Curator, PrivateGroups, ask

__all__ = ["CELLS", "KINDS", "NO_NOISE", "QUESTIONS", "Asked", "apart", "beside", "column", "file_of"]

NO_NOISE = 1e9
TIMES = 6
"""How often each ordinary value is there."""

LONG = [0, -1, 1, 2**63 - 1, 2**63 - 2, -(2**63), -(2**63) + 1, 2**62, 253402300800000, -62135596800001, 2**53 + 1]
SHORT = [-1, 2**31 - 1, -(2**31), -(2**31) + 1, 86_400_000, 3_000_000]
REAL = [float("nan"), float("inf"), -float("inf"), 5e-324, -0.0, 1.7e308]
BYTES = [b"\xff\xfe", b"caf\xe9", b"\xed\xa0\x80", b"\xc0\x80", b"a\0b", b"", b"%_\\", b"\xf4\x90\x80\x80", b"A" * 3000]
DAY = 86_400_000
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def _raw(numbers, kind, dtype="i8"):
    """Numbers as what a type stores."""
    return pa.array(np.array(numbers, dtype)).view(kind)


def _text(cells, kind=None):
    """Bytes that are called text, valid or not."""
    stored = pa.array(cells, pa.large_binary() if kind == pa.large_string() else pa.binary())
    return pa.Array.from_buffers(kind or pa.string(), len(cells), stored.buffers())


def _decimals(digits, scale):
    kind = pa.decimal256(digits, scale) if digits > 38 else pa.decimal128(digits, scale)
    ends = [Decimal(sign + "9" * digits).scaleb(-scale, Context(prec=100)) for sign in ("", "-")]
    return pa.array([Decimal(0), Decimal(1).scaleb(-scale)], kind), pa.array(ends, kind)


def _coded(values, index):
    """Ordinary and odd values of a dictionary."""
    whole = pa.DictionaryArray.from_arrays(pa.array(range(len(values)), index), values)
    return whole[:2], whole[2:]


def _numbers():
    yield "bool", pa.array([True, False]), pa.array([None], pa.bool_())
    for bits in (8, 16, 32, 64):
        for kind, low, high in (
            (f"int{bits}", -(2 ** (bits - 1)), 2 ** (bits - 1) - 1),
            (f"uint{bits}", 0, 2**bits - 1),
        ):
            yield kind, pa.array([1, 2], kind), pa.array([low, high], kind)
    for bits in (16, 32, 64):
        with np.errstate(over="ignore"):
            yield f"float{bits}", *(pa.array(np.array(v, f"f{bits // 8}")) for v in ([1, 2.5], REAL))
    for digits, scale in ((9, 2), (18, 4), (38, 0), (38, 35), (38, 38), (76, 0)):
        yield f"decimal({digits}, {scale})", *_decimals(digits, scale)


def _times():
    for unit, per in UNITS.items():
        for zone in (None, "UTC", "Europe/Berlin"):
            kind = pa.timestamp(unit, zone)
            yield str(kind), _raw([1_700_000_000 * per, 1_600_000_000 * per], kind), _raw(LONG, kind)
        yield f"duration[{unit}]", *(_raw(v, pa.duration(unit)) for v in ([60 * per, 3600 * per], LONG))
    for unit in ("us", "ns"):
        yield f"time64[{unit}]", *(_raw(v, pa.time64(unit)) for v in ([UNITS[unit], 0], LONG))
    for unit in ("s", "ms"):
        yield f"time32[{unit}]", *(_raw(v, pa.time32(unit), "i4") for v in ([UNITS[unit], 0], SHORT))
    yield "date32", *(_raw(v, pa.date32(), "i4") for v in ([19_000, 20_000], SHORT))
    yield "date64", *(_raw(v, pa.date64()) for v in ([19_000 * DAY, 20_000 * DAY], LONG))


def _others():
    usual = [b"abc", b"x"]
    for kind in (pa.string(), pa.large_string()):
        yield str(kind), _text(usual, kind), _text(BYTES, kind)
    yield "text in a short dictionary", *_coded(_text([*usual, *BYTES]), pa.int8())
    yield "text in a dictionary", *_coded(_text([*usual, *BYTES]), pa.int32())
    instants = _raw([1_700_000_000_000, 1_600_000_000_000, *LONG], pa.timestamp("ms"))
    yield "timestamp[ms] in a dictionary", *_coded(instants, pa.int32())
    for kind in (pa.binary(), pa.large_binary()):
        yield str(kind), pa.array(usual, kind), pa.array(BYTES, kind)
    fixed = pa.array([b"a" * 16, b"x" * 16], pa.binary(16)), pa.array([b"\xff" * 16, b"\0" * 16], pa.binary(16))
    yield "binary of 16", *fixed
    yield "uuid", *(pa.ExtensionArray.from_storage(pa.uuid(), part) for part in fixed)
    texts = _text([b"1", b"{}"]), _text([b"{", b"nope", b"1e999999", *BYTES])
    yield "json", *(pa.ExtensionArray.from_storage(pa.json_(), part) for part in texts)
    yield "list", pa.array([[1], []]), pa.array([[2**63 - 1, None]])
    yield "list of text", pa.array([["abc"], []]), pa.ListArray.from_arrays([0, len(BYTES)], _text(BYTES))
    yield "struct", *(pa.StructArray.from_arrays([part], ["a"]) for part in (instants[:2], instants[2:]))
    yield "struct of text", *(pa.StructArray.from_arrays([_text(cells)], ["a"]) for cells in (usual, BYTES))
    broken = pa.MapArray.from_arrays([0, len(BYTES)], _text(BYTES), pa.array(range(len(BYTES))))
    yield "map", pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64())), broken
    yield "null", pa.nulls(2), pa.nulls(1)


KINDS = {name: (usual, odd) for make in (_numbers, _times, _others) for name, usual, odd in make()}
"""Each type with ordinary values, and with odd ones."""


def column(kind, odd):
    """The ordinary values of a type several times, and odd ones after them."""
    usual, _ = KINDS[kind]
    return pa.chunked_array([usual] * TIMES if odd is None else [*[usual] * TIMES, odd])


CELLS = ["abc", "", "x", None, float("nan"), 7, 7.5, -1, True, 2**63, 2**70, 1e300, b"\xff", [7], object(),
         datetime.date(2026, 1, 1), Decimal("7.5"), float("inf"), "1"]  # fmt: skip
"""What one cell may hold where a frame's other cells hold whole numbers, fractions, truth values or text."""


def beside(values):
    """The values, from Arrow or as a list, as x beside a unit and a number in each row."""
    return {"who": list(range(len(values))), "n": [1.0] * len(values), "x": values}


def file_of(values, path, **options):
    """The rows as a file of Parquet; None where the format or its writer does not hold such a value."""
    try:
        pq.write_table(pa.table(beside(values)), path, **options)
    except pa.ArrowException:
        return None
    return path


def _asked(unit, *asks, **terms):
    return unit, lambda curator: curator.ask(*asks, **terms)


def _cube(unit, columns):
    return unit, lambda curator: curator.cube(columns, [tuple(columns)])


CONDITIONS = [
    "x is null", "x is not null", "x = 'abc'", "x = 1", "x <> 1", "x >= 1", "x in (1, 2)", "x = true", "x", "x = '1'",
    "x >= '2021-01-01'", "x < '2021-01-01 12:00:00'", "x like '%b%'", "upper(x) = 'ABC'", "left(x, 1) = 'a'",
    "length(x) > 1", "month(x) = 11", "hour(x) >= 1", "date(x) >= '2021-01-01'", "cut(x, 1, 2) = '[1, 2)'",
    "trim(x) = 'abc'", "case when x >= 1 then 'a' else 'b' end = 'a'", "cut(x, '2021-01-01') is not null",
]  # fmt: skip
KEYS = ["abc", 1, True, Decimal(0), "2023-11-14", datetime.datetime(2020, 9, 13, 12, 26, 40), datetime.date(2022, 1, 8)]

QUESTIONS = {
    "bystander of a count": _asked(None, ask.count()),
    "bystander of units": _asked("who", ask.count(), ask.sum("n", 0, 1), where="n > 0"),
    "unit": _asked("x", ask.count(), ask.units()),
    "private groups": _asked("who", ask.count(), by="x", groups=PrivateGroups(kappa=1e-6, at_most=3)),
    "distinct": _asked("who", ask.distinct("x", 5)),
    "sum": _asked("who", ask.sum("x", -1, 1)),
    "sum of rows": _asked(None, ask.sum("x", -1, 1), ask.mean("x", 0, 1)),
    "histogram": _asked(None, ask.histogram("x", [0, 1.5, 3])),
    **{f"where {text}": _asked("who", ask.count(), where=text) for text in CONDITIONS},
    **{f"by {key!r}": _asked(unit, ask.count(), by="x", groups=[key, None]) for key in KEYS for unit in (None, "who")},
    "by month": _asked("who", ask.count(), by="month(x)"),
    "by week": _asked(None, ask.count(), by="week(x)"),
    "by day": _asked("who", ask.count(), by="date(x)", groups=["2023-11-14", "2020-09-13"]),
    "by prefix": _asked("who", ask.count(), by="left(x, 2)", groups=["ab", "x"]),
    "by bin": _asked("who", ask.count(), by="cut(x, 1, 2)"),
    "cube": _cube("who", {"x": ["abc", "x"]}),
    "cube of months": _cube("who", {"month(x)": None}),
    "cube of bins": _cube(None, {"x": ask.bins([0, 1.5, 3])}),
}
"""What may be asked of a table with a column x: the unit of the curator, and the question."""


class Asked:
    """A table of which several questions are asked."""

    def __init__(self, table, **terms):
        self.table, self.terms, self.curators, self.known = table, terms, {}, {}

    def outcome(self, name):
        """The plan, and totals by group and statistic in rows' worth; or a refusal, as text."""
        if name not in self.known:
            self.known[name] = self._outcome(name)
        return self.known[name]

    def _outcome(self, name):
        unit, asked = QUESTIONS[name]
        try:
            if unit not in self.curators:
                self.curators[unit] = Curator(self.table, unit, **self.terms)
            question = asked(self.curators[unit])
            words = question.plan(psi=NO_NOISE).to_json().replace(str(self.table), "table")
            answer = question.release(psi=NO_NOISE)
        except (ValueError, TypeError) as refusal:
            return f"{type(refusal).__name__}: {refusal}", {}
        tables = [answer.table(*names) for names in answer.tables] if hasattr(answer, "tables") else [answer]
        return words, {(i, *key, e.statistic): e.value for i, one in enumerate(tables) for key, e in one.rows}

    def dispose(self):
        """End its connections."""
        for curator in self.curators.values():
            curator.dispose()


def apart(before, after):
    """How far totals are apart; a group that is not there has none."""
    return max((abs(before.get(key, 0.0) - after.get(key, 0.0)) for key in {*before, *after}), default=0.0)
