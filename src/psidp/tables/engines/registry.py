"""Which engine an address or a connection belongs to. A new engine is one file and one line here."""

from typing import Any

from psidp.tables.engines.duckdb import DuckDB
from psidp.tables.engines.engine import Engine
from psidp.tables.engines.postgres import Postgres
from psidp.tables.engines.spark import Spark

__all__ = ["check_engine", "engine_at", "engine_of"]

REFUSED = {
    "sqlite": "a column of SQLite holds values of any type, and a sum of them that is too large fails",
    "mysql": "whether MySQL fails on a number that is too large depends on its mode",
}


ENGINES: tuple[type[Engine], ...] = (DuckDB, Postgres, Spark)


def engine_at(address: str) -> Engine:
    """A new connection to postgresql://user@host/database, spark://host:port or spark://local."""
    scheme = address.split("://", 1)[0]
    for kind in ENGINES:
        if scheme in kind.schemes:
            return kind.at(address)
    check_engine(scheme)
    raise ValueError(f"engine must be postgresql://... or spark://..., got {scheme!r}.")


def engine_of(source: Any) -> Engine | None:
    """The engine behind a user's own connection; None where it is something else."""
    kind = next((kind for kind in ENGINES if kind.is_connection(source)), None)
    if kind is None:
        check_engine(type(source).__module__.partition(".")[0].removesuffix("3"))
        return None
    return kind(source)


def check_engine(scheme: str) -> None:
    """Refuse engines in which a row can make a query fail."""
    name = scheme.partition("+")[0]
    if name in REFUSED:
        raise ValueError(
            f"engine must be DuckDB, PostgreSQL or Spark, got {name}: {REFUSED[name]}, which would tell "
            "something about the rows. Write the table as Parquet first, or have it on one of these."
        )
