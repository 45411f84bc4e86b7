"""The question in full, for whoever is to approve it: aggregates, bounds, groups, condition, and the table's place.

The words are made from the question, never given by whoever asks. They go into the spend's event together with a digest
of everything that the question is, so that an approval of these words is an approval of this question and no other.
"""

import re
from datetime import date
from typing import Any

from psidp.curator.ask import Aggregate
from psidp.curator.cube_query import CubeQuery
from psidp.curator.engine import location
from psidp.curator.query import Query
from psidp.ledger.entry import digest

__all__ = ["LONGEST", "question_text"]

LONGEST = 1_500
"""Letters of a question in an event; a longer one says that it is cut."""

MOST = 20
"""Values or edges that are named."""

ROOM = 800
"""Letters of the groups that are named: the table's place and the condition come after them."""

PLAIN = re.compile(r"[\w.-]*[^\W\d_][\w.-]*")
"""A word that needs no quotes, unless it reads as a number or as nothing."""

IN_MEMORY = "a table in memory"


def question_text(asked: Query | CubeQuery) -> str:
    """What is asked of which table, in words, and a digest of all of it."""
    words = _cube(asked) if isinstance(asked, CubeQuery) else _table(asked)
    if not len(words) <= LONGEST:
        words = f"{words[:LONGEST]}... (cut: it has {len(words):,} letters)"
    return f"{words} [sha256 {digest(asked.to_dict())}]"


def _table(asked: Query) -> str:
    """The condition, in the asker's own words, stands last: it cannot pass for the place."""
    some = f"; where {asked.some}" if asked.some else ""
    return f"{'; '.join(map(_aggregate, asked.asks))}{_groups(asked)}; of {_place(asked.table)}{some}"


def _cube(asked: CubeQuery) -> str:
    asks = "; ".join(map(_aggregate, asked.measures))
    columns = ", ".join(column.name for column in asked.columns)
    chosen = "chosen" if asked.auto else f"{asked.contribution:g}"
    tables = f"{len(asked.marginals.tables)} tables of {columns}; contribution {chosen}"
    some = f"; where {asked.some}" if asked.some else ""
    return f"{asks}; {tables}; of {_place(asked.table)}{some}"


def _aggregate(a: Aggregate) -> str:
    """An aggregate with all that bounds it."""
    if a.terms:
        return f"{a.name} ({'; '.join(map(_aggregate, a.terms))}; contribution {_shown(a.contribution)})"
    said = a.to_dict()
    more = [f"{name} {_shown(said[name])}" for name in ("lower", "upper", "bounds", "edges", "at") if name in said]
    more += [f"weights of at most {a.weights[1]:g}"] if a.weights is not None else []
    more += [] if a.contribution is None else [f"contribution {_shown(a.contribution)}"]
    return a.name + (f" ({', '.join(more)})" if more else "")


def _groups(asked: Query) -> str:
    """The columns that make groups, and which groups there are."""
    if not asked.by:
        return ""
    by = f"; by {', '.join(asked.by)}"
    if asked.private:
        return (
            f"{by}, groups chosen (kappa {asked.private.kappa:g}, each {asked.guarantee.unit} in at most "
            f"{asked.private.at_most:,})"
        )
    keys: Any = asked.groups
    named, length = [], 0
    for key in keys:
        named.append("/".join(map(_shown, key)))
        length += len(named[-1]) + 2
        if length > ROOM:
            break
    more = f", ... ({len(keys):,} in all)" if len(named) < len(keys) else ""
    return f"{by}, {len(keys):,} groups: {', '.join(named)}{more}"


def _shown(value: Any) -> str:
    """A value, or the first ones of many; text in quotes unless it is a plain word."""
    if isinstance(value, list | tuple):
        more = f", ... ({len(value):,} in all)" if len(value) > MOST else ""
        return ", ".join(map(_shown, value[:MOST])) + more
    if isinstance(value, str):
        return value if PLAIN.fullmatch(value) and not _reads_otherwise(value) else repr(value)
    return f"{value:g}" if isinstance(value, float) else value.isoformat() if isinstance(value, date) else str(value)


def _reads_otherwise(word: str) -> bool:
    """Whether a word reads as a number, or as nothing, where it stands without quotes."""
    try:
        float(word)
    except ValueError:
        return word in ("None", "True", "False")
    return True


def _place(table: Any) -> str:
    """Where the rows lie: the paths of files, links resolved, or the database and its tables."""
    import ibis.expr.operations as ops  # type: ignore[import-untyped,unused-ignore]

    tables = table.op().find(ops.PhysicalTable)
    found = sorted({"" if isinstance(one, ops.InMemoryTable) else str(one.name) for one in tables})
    at = location(table.get_backend())
    named = (IN_MEMORY if name in ("", "frame") and not at else name for name in found)
    return ", ".join(dict.fromkeys(named)) + (f" at {at}" if at else "")
