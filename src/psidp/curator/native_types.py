"""Native types: what the engine itself calls the types of columns, learned from its planner, which reads no row.

Ibis calls different things one: DuckDB's whole numbers of 128 bits are decimals to it, texts of all collations are one
type, and so are Spark's instants with and without a zone. Whether a comparison can fail depends on which it is.
"""

import re
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from psidp.curator.row_sql import ibis_library

__all__ = ["HUGE", "Native", "native_types", "quoted"]

HUGE = "decimal(39, 0)"
"""DuckDB's whole numbers of 128 bits: 39 digits, which no decimal has."""

WHOLE = {f"{sign}{word}": f"{'u' * len(sign)}int{bits}" for sign in ("", "U") for word, bits in
         (("TINYINT", 8), ("SMALLINT", 16), ("INTEGER", 32), ("BIGINT", 64))}  # fmt: skip

LISTED: dict[str, dict[str, str]] = {
    "duckdb": WHOLE
    | {
        "BOOLEAN": "boolean",
        "HUGEINT": HUGE,
        "FLOAT": "float32",
        "DOUBLE": "float64",
        "VARCHAR": "string",
        "DATE": "date",
        "TIMESTAMP": "timestamp(6)",
        "TIMESTAMP_S": "timestamp(0)",
        "TIMESTAMP_MS": "timestamp(3)",
        "TIMESTAMP_NS": "timestamp(9)",
        "TIMESTAMP WITH TIME ZONE": "timestamp('UTC', 6)",
    },
    "postgres": {
        "boolean": "boolean",
        "smallint": "int16",
        "integer": "int32",
        "bigint": "int64",
        "real": "float32",
        "double precision": "float64",
        "numeric": "decimal",
        "date": "date",
        "timestamp without time zone": "timestamp(6)",
        "timestamp with time zone": "timestamp('UTC', 6)",
    },
    "pyspark": {
        "boolean": "boolean",
        "tinyint": "int8",
        "smallint": "int16",
        "int": "int32",
        "bigint": "int64",
        "float": "float32",
        "double": "float64",
        "date": "date",
        "timestamp": "timestamp('UTC', 6)",
        "timestamp_ntz": "timestamp(6)",
    },
}
"""Types that a condition may compare, and the Ibis types that say what they hold. Decimals and texts come besides."""


@dataclass(frozen=True, slots=True)
class Native:
    """A column's type as its engine has it.

    Args:
        name: the engine's word for it. kind: the Ibis type that says what it holds, None where it is not listed.
        collation: of text. searchable: whether parts of a text can be looked for under its collation.
    """

    name: str
    kind: Any
    collation: str = ""
    searchable: bool = True


def native_types(table: Any, names: Sequence[str]) -> dict[str, Native]:
    """The native types of these columns; reads no row. Empty where the engine is not one of the three."""
    backend = table.get_backend()
    ask = {"duckdb": _on_duckdb, "postgres": _on_postgres, "pyspark": _on_spark}.get(backend.name)
    return ask(backend, table.select(*names)) if ask is not None and names else {}


def _on_duckdb(backend: Any, columns: Any) -> dict[str, Native]:
    """DuckDB does not say which collation a text has, but refuses to plan a comparison of two."""
    backend.to_pyarrow(columns.limit(0).count())  # frames in memory become known to the engine
    sql = backend.compile(columns)
    words = {row[0]: row[1] for row in backend.con.execute(f"DESCRIBE {sql}").fetchall()}
    several = list(words.values()).count("VARCHAR") > 1
    own = {
        name: name for name, word in words.items() if several and word == "VARCHAR" and _collated(backend, sql, name)
    }
    return {name: Native(word, _listed("duckdb", word), own.get(name, "")) for name, word in words.items()}


def _collated(backend: Any, sql: str, name: str) -> bool:
    """Whether a text has a collation of its own: then it compares with one of these at most."""
    tests = ", ".join(f"{quoted(name)} = ('' COLLATE {collation})" for collation in ("nocase", "nfc"))
    try:
        backend.con.execute(
            f"DESCRIBE SELECT {tests} FROM ({sql})"
        ).fetchall()  # a result left open bars the next query
    except Exception:
        return True
    return False


def quoted(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def _on_spark(backend: Any, columns: Any) -> dict[str, Native]:
    fields = backend.raw_sql(backend.compile(columns)).schema.fields
    words = {field.name: field.dataType.simpleString() for field in fields}
    texts = {name: word.partition(" collate ")[2] for name, word in words.items()}
    return {name: Native(word, _listed("pyspark", word), texts[name]) for name, word in words.items()}


def _on_postgres(backend: Any, columns: Any) -> dict[str, Native]:
    """Every text is cast to plain text; its collation, and whether that tells all texts apart, are asked besides."""
    kinds, sql, asked = columns.schema(), backend.compile(columns), []
    for place, (name, kind) in enumerate(kinds.items()):
        none = f"(SELECT {quoted(name)}{'::text' if kind.is_string() else ''} FROM ({sql}) AS t LIMIT 0)"
        exact = f"(SELECT collisdeterministic FROM pg_collation WHERE oid = pg_collation_for({none})::regcollation)"
        text = f"pg_collation_for({none}), {exact}" if kind.is_string() else "NULL, TRUE"
        asked.append(f"(SELECT pg_typeof({none})::text, {text}, {place})")
    with closing(backend.raw_sql(" UNION ALL ".join(asked) + " ORDER BY 4")) as cursor:
        found = cursor.fetchall()
    backend.con.commit()
    return {
        name: Native(word, kind if kind.is_string() else _listed("postgres", word), collation or "", exact is True)
        for (name, kind), (word, collation, exact, _) in zip(kinds.items(), found, strict=True)
    }


def _listed(engine: str, word: str) -> Any:
    """The Ibis type of a native one, or None where it is not listed."""
    ibis = ibis_library()
    bounded = re.fullmatch(r"decimal\((\d+), ?(\d+)\)", word.lower())
    if bounded:
        return ibis.dtype(f"decimal({bounded[1]}, {bounded[2]})")
    text = {"duckdb": word.startswith("ENUM("), "pyspark": word == "string" or word.startswith("string collate ")}
    known = "string" if text.get(engine) else LISTED[engine].get(word)
    return None if known is None else ibis.dtype(known)
