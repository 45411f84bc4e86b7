"""The tables that both versions are asked about: small, made by code, the same each time, with odd values in them."""

import csv
import io
import random
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from math import inf, nan
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["TABLES", "in_postgres", "write"]

START = date(2026, 1, 5)
"""A Monday, on which the streams begin."""

WARDS = ["A", "B", "C", "it's D", None]
VISITS = pa.schema([
    ("patient", pa.int64()), ("person", pa.string()), ("ward", pa.string()), ("day", pa.date32()),
    ("at", pa.timestamp("us")), ("arrived", pa.timestamp("us")), ("cost", pa.float64()), ("age", pa.int64()),
    ("minutes", pa.int32()), ("weight", pa.float64()), ("large", pa.int64()), ("price", pa.decimal128(10, 2)),
    ("paid", pa.bool_()), ("diagnosis", pa.string()),
])  # fmt: skip
TRIPS = pa.schema([
    ("rider", pa.int64()), ("origin", pa.string()), ("carrier", pa.string()), ("month", pa.int64()),
    ("delay", pa.float64()), ("distance", pa.int64()),
])  # fmt: skip


def visits(rows: int = 2400, units: int = 300, seed: int = 2026) -> list[dict[str, Any]]:
    """Visits of patients, a few of whom have most; each column has missing or extreme values."""
    dice = random.Random(seed)
    return [_visit(dice, units) for _ in range(rows)]


def _visit(dice: random.Random, units: int) -> dict[str, Any]:
    patient = min(int(units * dice.random() ** 2), units - 1)
    day = START + timedelta(days=dice.randrange(-20, 200))
    at = datetime.combine(day, time(dice.randrange(24), dice.randrange(60), dice.randrange(60)))
    cost = round(dice.lognormvariate(5.0, 1.2), 2)
    return {
        "patient": None if dice.random() < 0.01 else patient,
        "person": None if dice.random() < 0.01 else f"P{patient:03}",
        "ward": dice.choices(WARDS, [40, 27, 18, 9, 6])[0],
        "day": None if dice.random() < 0.02 else day,
        "at": None if dice.random() < 0.02 else at,
        "arrived": None if dice.random() < 0.02 else at + timedelta(hours=dice.randrange(50)),
        "cost": dice.choices([cost, None, nan, inf, -inf, -cost, 1e12, 5e-324], [90, 3, 2, 1, 1, 6, 1, 1])[0],
        "age": dice.choices([dice.randrange(0, 100), None, -3, 140], [95, 3, 1, 1])[0],
        "minutes": None if dice.random() < 0.05 else dice.randrange(5, 180),
        "weight": dice.choices([dice.random() * 3, None, nan, -1.0, 50.0], [92, 3, 1, 2, 2])[0],
        "large": dice.choices([dice.randrange(-(2**62), 2**62), 2**63 - 1, -(2**63), None], [90, 3, 3, 4])[0],
        "price": None if dice.random() < 0.03 else Decimal(dice.randrange(-5000, 90000)) / 100,
        "paid": dice.choices([True, False, None], [60, 35, 5])[0],
        "diagnosis": None if dice.random() < 0.05 else f"D{min(int(dice.expovariate(0.12)), 39):02}",
    }


def trips(rows: int = 3000, seed: int = 2027) -> list[dict[str, Any]]:
    """Trips of riders, for cubes: few values in each column."""
    dice = random.Random(seed)
    return [
        {
            "rider": int(400 * dice.random() ** 1.5),
            "origin": dice.choices(["EWR", "JFK", "LGA", None], [40, 35, 22, 3])[0],
            "carrier": dice.choices(["AA", "B6", "DL", "UA", "XX"], [20, 25, 20, 30, 5])[0],
            "month": dice.randrange(1, 13),
            "delay": dice.choices([round(dice.gauss(8.0, 30.0), 1), None, nan, 1e9], [94, 3, 2, 1])[0],
            "distance": dice.randrange(100, 2600),
        }
        for _ in range(rows)
    ]


TABLES = {
    "visits": (VISITS, visits),
    "trips": (TRIPS, trips),
    "few": (VISITS, lambda: visits(900, 12, 2028)),  # a dozen patients with many visits each
    "one": (VISITS, lambda: visits(1, 1, 2029)),
    "empty": (VISITS, list),
}
"""Each table's columns and rows."""


def write(folder: Path) -> None:
    """Every table as Parquet; the visits also as CSV, as several files, and in a DuckDB file."""
    made = {name: pa.Table.from_pylist(rows(), schema) for name, (schema, rows) in TABLES.items()}
    for name, table in made.items():
        pq.write_table(table, folder / f"{name}.parquet")
    (folder / "visits.csv").write_text(_csv(made["visits"], missing="NA"), encoding="utf-8")
    (folder / "parts").mkdir()
    for part in range(3):
        pq.write_table(made["visits"].slice(800 * part, 800), folder / "parts" / f"{part}.parquet")
    with duckdb.connect(str(folder / "tables.duckdb")) as database:
        database.execute(f"CREATE TABLE visits AS FROM '{folder / 'visits.parquet'}'")
    (folder / "wards.csv").write_text("ward\nA\nB\nC\nnobody\n", encoding="utf-8")


def _csv(table: pa.Table, missing: str) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(table.column_names)
    writer.writerows([missing if value is None else value for value in row.values()] for row in table.to_pylist())
    return text.getvalue()


def in_postgres(url: str) -> None:
    """The visits and the trips on a server."""
    import psycopg

    types = {"int64": "bigint", "int32": "integer", "string": "text", "date32[day]": "date", "double": "float8"}
    types |= {"timestamp[us]": "timestamp", "decimal128(10, 2)": "numeric(10, 2)", "bool": "boolean"}
    with psycopg.connect(url, autocommit=True) as connection:
        for name in ("visits", "trips"):
            schema, rows = TABLES[name]
            columns = ", ".join(f"{field.name} {types[str(field.type)]}" for field in schema)
            connection.execute(f"CREATE TABLE {name} ({columns})")
            with connection.cursor().copy(f"COPY {name} FROM STDIN") as copy:
                for row in rows():
                    copy.write_row(tuple(row.values()))


def moment(period: int, every: str) -> datetime:
    """A moment after so many periods are over."""
    days = {"day": 1, "week": 7, "month": 31, "quarter": 92, "year": 366}[every]
    return datetime.combine(START + timedelta(days=days * period), time(3), UTC)
