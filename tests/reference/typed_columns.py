"""Tables with a column of every type that an engine has, full of its most extreme values, and odd constants.

Each engine has its types, each with values as that engine writes them. A table is there twice: bare, without a row, and
full.
"""

import datetime
import uuid
from decimal import Decimal
from math import inf, nan

import duckdb
import pyarrow as pa

from psidp.tables.sources import open_source

__all__ = ["DUCKDB", "LITERALS", "POSTGRES", "SPARK", "on_duckdb", "on_postgres", "on_spark"]

WHOLE = {8: "tinyint", 16: "smallint", 32: "integer", 64: "bigint"}
DAYS = ["date '2026-01-01'", "date '1969-12-31'", "date '0001-01-01'", "date '9999-12-31'"]
TEXTS = ["''", "'a'", "'A'", "'2026-01-01'", "'1e400'", "'NaN'", "'%_'", "'" + 300 * "x" + "'", "'\u00e9\u00df\u0130'"]
FRACTIONS = ["0", "1.5", "-1e308", "5e-300", "'NaN'", "'Infinity'", "'-Infinity'"]


def _whole(bits, signed=True):
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return [str(low), "0", "1", str(high)]


def _cast(kind, values):
    return [f"cast({value} as {kind})" for value in values]


DUCKDB = {
    **{kind: _whole(bits) for bits, kind in WHOLE.items()},
    **{f"u{kind}": _whole(bits, False) for bits, kind in WHOLE.items()},
    "hugeint": [f"'{2**127 - 1}'::hugeint", f"'-{2**127}'::hugeint", "5"],
    "uhugeint": [f"'{2**128 - 1}'::uhugeint", "5"],
    "bignum": [f"'{10**400}'::bignum", "5"],
    "boolean": ["true", "false"],
    "float": _cast("float", ["0", "1.5", "-3e38", "1e-45", "'nan'", "'inf'", "'-inf'"]),
    "double": _cast("double", FRACTIONS),
    "decimal(5, 2)": ["999.99", "-999.99", "0"],
    "decimal(18, 3)": ["999999999999999.999", "-1"],
    "decimal(38, 0)": [f"'{10**38 - 1}'", f"'-{10**38 - 1}'", "5"],
    "decimal(38, 37)": ["'9." + 37 * "9" + "'", "-9.5"],
    "decimal(38, 38)": ["'0." + 38 * "9" + "'", "0"],
    "varchar": TEXTS,
    "varchar collate nocase": TEXTS,
    "varchar collate de": TEXTS,
    "enum('good', 'bad')": ["'good'", "'bad'"],
    "date": [*DAYS, "'infinity'", "'-infinity'", "'5881580-07-10'", "'5877642-06-25 (BC)'"],
    "time": ["'00:00:00'", "'23:59:59.999999'", "'24:00:00'"],
    "timetz": ["'00:00:00+15:59'", "'23:59:59.999999-15:59'"],
    "time_ns": ["'23:59:59.999999999'"],
    "timestamp": ["'2026-01-01 12:00:00.123456'", "'infinity'", "'-infinity'", "'290309-12-22 (BC) 00:00:00'",
                  "'294247-01-10 04:00:54.775806'"],
    "timestamp_s": ["'2026-01-01 12:00:00'", "'infinity'", "(select s from raw)"],
    "timestamp_ms": ["'2026-01-01 12:00:00.123'", "'infinity'", "(select ms from raw)"],
    "timestamp_ns": ["'2026-01-01 12:00:00.123456789'", "'infinity'", "(select ns from raw)", "(select low from raw)"],
    "timestamptz": ["'2026-01-01 12:00:00+00'", "'infinity'", "'-infinity'", "'294247-01-09 04:00:54+00'"],
    "interval": ["'1 month'", "'-999999999 days'", "'30 days'"],
    "uuid": [f"'{uuid.UUID(int=0)}'", f"'{uuid.UUID(int=2**128 - 1)}'"],
    "json": ["'1'", "'\"a\"'", "'{}'", "'null'"],
    "variant": ["1", "'a'"],
    "blob": ["'a'", "'\\xFF\\x00'::blob"],
    "bit": ["'1'::bit", "'" + 200 * "0" + "'::bit"],
    "integer[]": ["[1, null]", "[]"],
    "integer[2]": ["[1, null]"],
    "struct(a integer)": ["{'a': 1}"],
    "map(varchar, integer)": ["map {'a': 1}"],
    "union(a integer, b varchar)": ["'x'", "1"],
}  # fmt: skip

POSTGRES = {
    "boolean": ["true", "false"],
    "smallint": _whole(16),
    "integer": _whole(32),
    "bigint": _whole(64),
    "oid": ["0", str(2**32 - 1)],
    "real": _cast("real", ["0", "1.5", "-3e38", "1e-45", "'NaN'", "'Infinity'"]),
    "double precision": _cast("double precision", [*FRACTIONS, "1e308", "5e-324"]),
    "numeric": _cast("numeric", ["'NaN'", "'Infinity'", "'-Infinity'", "1e400", "-1e400", "1e-400", "1.5", "0"]),
    "numeric(10, 2)": ["99999999.99", "'NaN'", "-1"],
    "numeric(38, 10)": ["9" * 28, "'NaN'"],
    "numeric(1000, 3)": ["1" + 900 * "0", "'NaN'", "-1"],
    "numeric(400, 350)": ["1e-350", "1e49", "'NaN'"],
    "money": ["'92233720368547758.07'", "'-92233720368547758.08'", "0"],
    "text": TEXTS,
    'text collate "C"': TEXTS,
    'text collate "en-x-icu"': TEXTS,
    "text collate blind": TEXTS,
    "varchar(400)": TEXTS,
    "char(9)": ["''", "'a'", "'NaN'"],
    "name": ["''", "'a'"],
    "public.citext": TEXTS,
    "mood": ["'good'", "'bad'"],
    "natural_number": ["1", str(2**31 - 1)],
    "word": ["'a'"],
    '"char"': ["'a'"],
    "date": [*DAYS, "'infinity'", "'-infinity'", "'5874897-12-31'", "'4713-01-01 BC'"],
    "time": ["'00:00'", "'24:00'"],
    "timetz": ["'00:00+15:59'", "'24:00-15:59'"],
    "timestamp": ["'2026-01-01 12:00:00.123456'", "'infinity'", "'-infinity'", "'294276-12-31'", "'4713-01-01 BC'"],
    "timestamp(0)": ["'2026-01-01 12:00:00'", "'infinity'"],
    "timestamptz": ["'2026-01-01 12:00:00+00'", "'infinity'", "'-infinity'", "'294276-12-30 00:00+00'"],
    "interval": ["'1 month'", "'-178000000 years'", "'178000000 years'"],
    "uuid": [f"'{uuid.UUID(int=0)}'"],
    "jsonb": ["'1'", "'{}'"],
    "bytea": ["'\\xff00'"],
    "inet": ["'::1'", "'10.0.0.0/8'"],
    "cidr": ["'10.0.0.0/8'"],
    "macaddr": ["'08:00:2b:01:02:03'"],
    "bit(3)": ["B'101'"],
    "bit varying": ["B''"],
    "integer[]": ["'{1, null}'"],
    "int4range": ["'empty'", "'(,)'"],
    "tsvector": ["'a b'"],
    "pg_lsn": ["'0/0'"],
}
POSTGRES_SETUP = (
    "create extension if not exists citext schema public",
    "create collation blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
    "create type mood as enum ('good', 'bad')",
    "create domain natural_number as integer check (value > 0)",
    "create domain word as text check (value ~ '^[a-z]*$')",
)

SPARK = {
    "boolean": ["true", "false"],
    **{kind: [f"cast('{value}' as {kind})" for value in _whole(bits)] for bits, kind in WHOLE.items()},
    "float": _cast("float", FRACTIONS),
    "double": _cast("double", [*FRACTIONS, "5e-324"]),
    "decimal(5, 2)": ["999.99", "0"],
    "decimal(38, 0)": ["9" * 38, "5"],
    "decimal(38, 38)": ["0." + 38 * "9"],
    "string": TEXTS,
    "string collate UTF8_LCASE": TEXTS,
    "string collate UNICODE": TEXTS,
    "char(9)": ["'a'"],
    "date": [*DAYS, "date_from_unix_date(2147483647)", "date_from_unix_date(-2147483648)"],
    "timestamp": ["timestamp '2026-01-01 12:00:00+00:00'", f"timestamp_micros({2**63 - 1})",
                  f"timestamp_micros(-{2**63 - 1})"],
    "timestamp_ntz": ["timestamp_ntz '2026-01-01 12:00:00'",
                      f"cast(timestamp_micros({2**63 - 1}) as timestamp_ntz)",
                      f"cast(timestamp_micros(-{2**63 - 1}) as timestamp_ntz)"],
    "interval day": ["interval '1' day", "interval '-100000000' day"],
    "binary": ["X'FF00'", "X''"],
    "array<int>": ["array(1, null)"],
    "map<string, int>": ["map('a', 1)"],
    "struct<a: int>": ["named_struct('a', 1)"],
    "void": ["null"],
}  # fmt: skip


def rows_of(types):
    """SQL of the rows: the i-th values of all types, beginning again where a type has fewer, and one of NULLs."""
    height = max(map(len, types.values()))
    cells = [[values[i % len(values)] for values in types.values()] for i in range(height)]
    casts = [[f"cast({v} as {k.split(' collate')[0]})" for v, k in zip(row, types, strict=True)] for row in cells]
    return [*casts, ["null"] * len(types)]


def on_duckdb():
    """A connection with the tables `bare` and `everything`."""
    connection = duckdb.connect()
    instants = {"s": [2**62], "ms": [2**62], "ns": [2**63 - 1], "low": [-(2**63) + 2]}
    kinds = {"s": pa.timestamp("s"), "ms": pa.timestamp("ms"), "ns": pa.timestamp("ns"), "low": pa.timestamp("ns")}
    connection.register("raw", pa.table({name: pa.array(v, kinds[name]) for name, v in instants.items()}))
    _fill(connection, DUCKDB)
    return connection


def on_postgres(connection):
    """The same connection, with the tables."""
    for statement in POSTGRES_SETUP:
        connection.execute(statement)
    _fill(connection, POSTGRES)
    return connection


def _fill(connection, types):
    columns = ", ".join(f"c{i} {kind}" for i, kind in enumerate(types))
    for name in ("bare", "everything"):
        connection.execute(f"create table {name} ({columns})")
    for row in rows_of(types):
        connection.execute(f"insert into everything values ({', '.join(row)})")


def on_spark(session):
    """The same session, with the tables as views."""
    names = [f"c{i}" for i in range(len(SPARK))]
    lines = [
        ", ".join(f"cast({cell} as {kind}) as {name}" for cell, kind, name in zip(row, SPARK, names, strict=True))
        for row in rows_of(SPARK)
    ]
    made = session.sql(" union all ".join(f"select {line}" for line in lines)).coalesce(1).cache()
    made.createOrReplaceTempView("everything")
    made.filter("false").createOrReplaceTempView("bare")
    return session


def sources(connection):
    """The bare and the full table."""
    return tuple(open_source(connection, name=name) for name in ("bare", "everything"))


LITERALS = [
    *(n + d for n in (0, 2**7, 2**8, 2**15, 2**31, 2**32, 2**53, 2**63 - 1, -(2**63)) for d in (-1, 0, 1)
      if -(2**63) <= n + d < 2**63),
    2**64 - 1, 0.5, 1e-5, 0.00012345678901234567, 123456789012345.678, 1e300, -1e308, 5e-324, inf, -inf, nan, True,
    *map(Decimal, ("1.005", "1e-30", "9" * 38, "9." + 37 * "9", "0." + 38 * "9", "1e100", "-5")),
    "", "a", "it's \\ %_ \"", "good", "\ud800", "\0", "NaN", "2026-01-01", "2026-01-01 12:00:00.5", "9999-12-31",
    "0001-01-01", "1", "1e400", "99999-01-01", "infinity", "[1]", str(uuid.UUID(int=7)), "01:02:03", 2000 * "x",
    "2026-01-01T00:00:00+14:00", "0001-01-01T00:00:00+14:00", "true",
    datetime.date.min, datetime.date(2026, 1, 1), datetime.date.max, datetime.datetime.min, datetime.datetime.max,
    datetime.datetime(2026, 1, 1, 12, 0, 0, 123456), datetime.datetime(1677, 9, 21, 0, 12, 43, 145224),
    datetime.datetime(1677, 9, 21, 0, 12, 43, 145225), datetime.datetime(2262, 4, 11, 23, 47, 16, 854775),
    datetime.datetime(2262, 4, 11, 23, 47, 16, 854776), datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
    datetime.time(1, 2, 3), datetime.timedelta(days=1), uuid.UUID(int=7), b"\xff", [1], None,
]  # fmt: skip
