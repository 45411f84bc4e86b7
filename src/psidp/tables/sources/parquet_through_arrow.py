"""Parquet files as batches of Arrow: for files with a value that makes DuckDB's own reader of Parquet fail.

DuckDB's reader ends a query at a text that is not UTF-8, at a time beyond its day, and at an instant of milliseconds
that does not fit into microseconds; where statistics hold that instant, it ends every query of the file. A failure
would show that such a row exists. Arrow reads what is stored, and `readable` turns it into what DuckDB can hold.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from psidp.tables.sources.frames import readable

__all__ = ["ParquetFile"]

MAGIC, TAIL = b"PAR1", 8
"""A file ends with its footer, the footer's length in four bytes, and these four letters."""

ROWS = 1 << 16
"""Rows of a batch."""


class ParquetFile:
    """Rows for whatever reads Arrow streams, in the types that the files themselves declare; read anew for each stream.

    Args:
        paths: one or more files of the same columns.
    """

    def __init__(self, *paths: Path) -> None:
        self.paths = paths
        self._schema = self._opened(paths[0]).schema_arrow

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """A fresh stream over the rows."""
        import pyarrow as pa

        empty = self._schema.empty_table()
        types = [readable(column).type for column in empty.columns]
        schema = pa.schema(list(zip(empty.column_names, types, strict=True)))
        return pa.RecordBatchReader.from_batches(schema, self._batches(schema)).__arrow_c_stream__(requested_schema)

    def _batches(self, schema: Any) -> Iterator[Any]:
        import pyarrow as pa

        for path in self.paths:
            for batch in self._opened(path).iter_batches(ROWS):
                yield pa.record_batch([readable(column) for column in batch.columns], schema=schema)

    @staticmethod
    def _opened(path: Path) -> Any:
        """The file without the Arrow schema that its writer may have left: a column stored as a dictionary of few codes
        would be read as that, which a value can make impossible."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        with path.open("rb") as file:
            end = file.seek(-TAIL, 2)
            length = int.from_bytes(file.read(4), "little")
            file.seek(max(0, end - length))
            footer = file.read().replace(b"ARROW:schema", b"arrow_schema")
        metadata = pq.read_metadata(pa.BufferReader(MAGIC + footer))
        return pq.ParquetFile(path, metadata=metadata, coerce_int96_timestamp_unit="us")
