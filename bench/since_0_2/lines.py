"""JSON lines between the processes, with dates, instants and decimals."""

import json
from datetime import date, datetime
from decimal import Decimal
from typing import Any

__all__ = ["dumps", "loads"]

READERS = {"$instant": datetime.fromisoformat, "$date": date.fromisoformat, "$decimal": Decimal}


def dumps(value: Any) -> str:
    """One line."""
    return json.dumps(value, default=_packed, ensure_ascii=False)


def loads(line: str) -> Any:
    """What dumps wrote; tuples come back as lists."""
    return json.loads(line, object_hook=_unpacked)


def _packed(value: Any) -> Any:
    if isinstance(value, datetime):
        return {"$instant": value.isoformat()}
    if isinstance(value, date):
        return {"$date": value.isoformat()}
    if isinstance(value, Decimal):
        return {"$decimal": str(value)}
    return value.item()  # a number of NumPy


def _unpacked(values: dict[str, Any]) -> Any:
    ((name, value), *more) = values.items() if values else [("", None)]
    return values if more or name not in READERS else READERS[name](value)
