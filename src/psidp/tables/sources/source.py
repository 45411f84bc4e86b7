"""Source: a table where it lies, with its schema. Opening looks at names and types, never at rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from psidp.tables.engines.engine import Dialect, Engine
from psidp.tables.types import DECLARED, Type

__all__ = ["Source"]

ALIKE = (("a", "A"), ("a", "a "), ("a", "\u00e1"), ("\u00e9", "e\u0301"), ("ss", "\u00df"), ("ab", "a-b"), ("1", "01"))
"""Texts that some collation takes for one: by case, blanks, accents, composition, letters, punctuation, digits."""


@dataclass(frozen=True, slots=True)
class Source:
    """A table of an engine.

    Args:
        engine: where it is. text: what stands after FROM: a quoted name, or a SELECT in parentheses.
        schema: the types of its columns, in their order. untyped: columns of text without a type of their own (CSV,
            pandas), which are read as what a question takes them for.
        name: what the table is called in the ledger; "" for a frame. place: where the rows lie, in words for an
            approval. home: which table it is, whatever files are added to a list of them later, for a stream.
    """

    engine: Engine
    text: str
    schema: Mapping[str, Type]
    untyped: frozenset[str] = frozenset()
    name: str = ""
    place: str = ""
    home: str = ""

    @property
    def dialect(self) -> Dialect:
        """How SQL over its columns is written."""
        return self.engine.sql(self.schema)

    def with_columns(
        self, columns: Mapping[str, tuple[str, Type]], *, untyped: frozenset[str] | None = None
    ) -> "Source":
        """The same rows with these columns, each given in SQL over `source` and by its type; a column of the same name
        is replaced. By default such columns have a type; `untyped` names all columns that have none."""
        if not columns:
            return self
        untyped = self.untyped - set(columns) if untyped is None else untyped
        dialect = self.dialect
        schema = {**self.schema, **{name: kind for name, (_, kind) in columns.items()}}
        texts = [f"{columns[n][0]} AS {dialect.quoted(n)}" if n in columns else dialect.column(n) for n in schema]
        text = f"(SELECT {', '.join(texts)} FROM {self.text} AS source)"
        return replace(self, text=text, schema=schema, untyped=untyped)

    def reading(self, kinds: Mapping[str, str]) -> "Source":
        """The same with untyped columns read as "int64", "float64", ...: values that cannot be parsed are missing.
        Columns with a type of their own are left as they are."""
        dialect = self.dialect
        read = {
            name: (dialect.read(dialect.column(name), kind), DECLARED[kind])
            for name, kind in kinds.items()
            if name in self.untyped
        }
        return self.with_columns(read)

    def filtered(self, test: str) -> "Source":
        """The rows for which a test in SQL over `source` is true."""
        columns = ", ".join(map(self.dialect.column, self.schema))
        return replace(self, text=f"(SELECT {columns} FROM {self.text} AS source WHERE {test})")

    def exact_text(self, columns: Sequence[str]) -> None:
        """Refuse columns of text in which the engine takes different texts for one.

        No row is read: MAX over no rows is NULL of the column's own type and collation.
        """
        dialect, texts = self.dialect, [name for name in columns if self.schema[name].text]
        if not texts:
            return
        tests = [
            " OR ".join(f"coalesce(max({dialect.key(n)}), {dialect.quote(a)}) = {dialect.quote(b)}" for a, b in ALIKE)
            for n in texts
        ]
        (merged,) = self.engine.rows(f"SELECT {', '.join(tests)} FROM {self.text} AS source WHERE FALSE")
        for name, merges in zip(texts, merged, strict=True):
            if merges:
                raise ValueError(
                    f"column {name!r} cannot make groups: the database takes different texts in it for one (by case, "
                    "accents or blanks), and the text it shows depends on the rows. Give a view in which the column is "
                    "plain text, such as lower(...) under the database's binary collation."
                )

    def close(self) -> None:
        """End the connection, if it was opened for this table."""
        self.engine.close()
