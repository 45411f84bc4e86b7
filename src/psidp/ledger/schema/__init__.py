"""The ledger's schema as readable SQL files, one per version, and how a database is brought to the newest."""

from collections.abc import Iterator
from importlib.resources import files
from uuid import uuid4

from sqlalchemy import Connection, func, inspect, select

from psidp.errors import NewerLedgerError, NotALedgerError
from psidp.ledger.entry import LEDGER

__all__ = ["VERSION", "create", "identity_of", "login", "migrate", "roles", "version_of"]

VERSION = 2
"""The newest version this program knows."""


def statements(version: int, dialect: str) -> Iterator[str]:
    """The statements of one version: what both databases read, then what only this one does."""
    for name in (f"{version}.sql", f"{version}-{dialect}.sql"):
        yield from _statements(name)


def roles() -> str:
    """The statements that make roles and their guards on PostgreSQL, for its owner to run, with psql or otherwise."""
    return ";\n\n".join(_statements("roles.sql")) + ";\n"


def login(connection: Connection) -> str:
    """The login of a server whose ledger has roles; "" where it has none."""
    query = "SELECT session_user WHERE to_regproc('psidp_entries_who') IS NOT NULL"
    return str(connection.exec_driver_sql(query).scalar() or "")


def _statements(name: str) -> Iterator[str]:
    """The paragraphs of a file, if there is one, without comments."""
    file = files(__package__) / name
    if not file.is_file():
        return
    for paragraph in file.read_text(encoding="utf-8").split("\n\n"):
        lines = [line for line in paragraph.splitlines() if not line.lstrip().startswith("--")]
        if any(line.strip() for line in lines):
            yield "\n".join(lines)


def version_of(connection: Connection, shown: str) -> int:
    """The version of the ledger there; 0 where there is room for one; a refusal where there is something else."""
    names = inspect(connection).get_table_names()
    if "psidp_ledger" not in names:
        if names and connection.dialect.name == "sqlite":
            raise NotALedgerError(f"{shown} is not a ledger: it is a database with {len(names)} tables of others.")
        return 0
    version = connection.execute(select(func.max(LEDGER.c.version))).scalar()
    if not (isinstance(version, int) and version >= 1):
        raise NotALedgerError(f"{shown} is not a ledger: it does not say its version.")
    if version > VERSION:
        raise NewerLedgerError(
            f"The ledger {shown} has version {version}; this psidp knows versions up to {VERSION}. "
            "Install a newer psidp."
        )
    return version


def create(connection: Connection, applied: str, identity: str = "") -> None:
    """A new, empty ledger of the newest version."""
    _bring(connection, 0, identity or str(uuid4()), applied)


def migrate(connection: Connection, version: int, applied: str) -> None:
    """An older ledger brought forward; the caller's one transaction holds all steps or none."""
    _bring(connection, version, identity_of(connection), applied)


def identity_of(connection: Connection) -> str:
    """The seed of the hash chain."""
    query = select(LEDGER.c.identity).order_by(LEDGER.c.version).limit(1)
    return str(connection.execute(query).scalar())


def _bring(connection: Connection, version: int, identity: str, applied: str) -> None:
    for step in range(version + 1, VERSION + 1):
        for statement in statements(step, connection.dialect.name):
            connection.exec_driver_sql(statement)
        connection.execute(LEDGER.insert().values(version=step, identity=identity, applied=applied))
