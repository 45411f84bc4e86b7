"""The ledger's schema as readable SQL files, one per version, and how a database is brought to the newest."""

import re
import sqlite3
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection, func, inspect, select

from psidp.errors import NewerLedgerError, NotALedgerError, TamperedLedgerError
from psidp.ledger.entry import LEDGER

__all__ = [
    "VERSION", "check_objects", "create", "guards_are_current", "identity_of", "login", "migrate", "roles",
    "version_of",
]  # fmt: skip

VERSION = 3
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


def guards_are_current(connection: Connection) -> bool:
    """Whether the guards of a server's roles are in force and are those of this program."""
    query = (
        "SELECT prosrc FROM pg_trigger t JOIN pg_proc p ON p.oid = tgfoid WHERE tgrelid = to_regclass('psidp_entries') "
        "AND tgname = 'psidp_entries_who' AND tgenabled IN ('O', 'A')"
    )
    (ours,) = _bodies("roles.sql")[1:]
    return bool(connection.exec_driver_sql(query).scalar() == ours)


def check_objects(connection: Connection, version: int, shown: str) -> None:
    """Refuse tables of the ledger that hold triggers, rules, defaults or columns which psidp did not make."""
    look = _foreign_in_file if connection.dialect.name == "sqlite" else _foreign_on_server
    if found := look(connection, version):
        raise TamperedLedgerError(
            f"the ledger {shown} has {found}, which psidp did not make and which may change what is written or read. "
            "Nothing was spent and nothing released. Find out who made it; its owner removes it with SQL.", 0,
        )  # fmt: skip


def _foreign_in_file(connection: Connection, version: int) -> str:
    """The first thing in a SQLite file that is not ours, in words; "" where all is."""
    triggers = {" ".join(sql.split()) for sql in _made(version)["triggers"]}
    query = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND lower(tbl_name) LIKE 'psidp~_%' ESCAPE '~'"
    for name, sql in connection.exec_driver_sql(query):
        if " ".join(sql.split()) not in triggers:
            return f"a trigger {name!r}"
    for table in TABLES:
        if _columns(connection.exec_driver_sql, table) != _made(version)[table]:
            return f"other columns in {table}"
    return ""


@cache
def _made(version: int) -> dict[str, list[Any]]:
    """The triggers and columns of a new file."""
    connection = sqlite3.connect(":memory:")
    for step in range(1, version + 1):
        for statement in statements(step, "sqlite"):
            connection.execute(statement)
    triggers = [sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master WHERE type = 'trigger'")]
    made = {"triggers": triggers} | {table: _columns(connection.execute, table) for table in TABLES}
    connection.close()
    return made


def _columns(run: Any, table: str) -> list[Any]:
    """What a name of SQLite is, and its columns: name, type, whether it may be NULL, default, key, whether hidden."""
    kinds = run(f"SELECT type FROM sqlite_master WHERE name = '{table}'")
    return [*map(tuple, kinds), *(tuple(row)[1:] for row in run(f"PRAGMA table_xinfo({table})"))]


def _foreign_on_server(connection: Connection, _: int) -> str:
    """The first thing on the tables of a server that is not ours, in words; "" where all is."""
    ours = {"psidp_entries_keep": _bodies("1-postgresql.sql")[0], "psidp_entries_stay": _bodies("1-postgresql.sql")[0]}
    for what, name, body in connection.exec_driver_sql(_ON_SERVER):
        if not (what == "trigger" and (name == "psidp_entries_who" or ours.get(name) == body)):
            return f"a {what} {name!r}"
    return ""


TABLES = ("psidp_ledger", "psidp_entries")
_ON_SERVER = """
WITH ours AS (SELECT to_regclass(name)::oid AS id FROM unnest(ARRAY['psidp_ledger', 'psidp_entries']) name)
SELECT 'trigger', tgname, prosrc FROM pg_trigger JOIN ours ON tgrelid = id JOIN pg_proc p ON p.oid = tgfoid
    WHERE NOT tgisinternal
UNION ALL SELECT 'rule', rulename, '' FROM pg_rewrite JOIN ours ON ev_class = id WHERE rulename <> '_RETURN'
UNION ALL SELECT 'policy', polname, '' FROM pg_policy JOIN ours ON polrelid = id
UNION ALL SELECT 'table that inherits', inhrelid::regclass::text, '' FROM pg_inherits
    JOIN ours ON id IN (inhparent, inhrelid)
UNION ALL SELECT 'table of another kind', relname, '' FROM pg_class c JOIN ours ON c.oid = id WHERE relkind <> 'r'
UNION ALL SELECT 'default of column', attname, '' FROM pg_attrdef JOIN ours ON adrelid = id
    JOIN pg_attribute ON attrelid = id AND attnum = adnum
    WHERE attname NOT IN ('actor', 'table_name') OR pg_get_expr(adbin, adrelid) <> '''''::text'
ORDER BY 2
"""


def _bodies(name: str) -> list[str]:
    """What stands between dollar quotes in a file, in order."""
    return re.findall(r"\$\$(.*?)\$\$", "\n\n".join(_statements(name)), re.DOTALL)


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
    if connection.dialect.name == "postgresql" and login(connection):
        driver: Any = connection.connection.driver_connection
        for statement in _statements("roles.sql"):
            driver.execute(statement)
