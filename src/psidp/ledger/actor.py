"""Actor: who asks, and of which table; every spend carries it in its event.

    {"kind": "gaussian", ..., "by": "bob"}                                    who spends
    {..., "by": "bob", "table": "visits.csv", "table_unit": "patient_id"}     the table that is read, where it is
                                                                              known, and the column of its units
    {..., "clipped": true}                                                    psidp itself clipped what each unit adds:
                                                                              a curator's release or stream

On a file a name is what its bearer says (ledger/names.py). On a PostgreSQL server with roles it is the login, and the
server checks it.
"""

import getpass
import os
from collections.abc import Mapping
from typing import Any

from psidp.ledger.names import check_name
from psidp.symbols import check_text

__all__ = ["BESIDE_THE_PRICE", "CLIPPED", "UNASKED", "UNITS", "WHO", "priced", "signed", "system_user"]

WHO = ("by", "table", "table_unit")
UNITS = ("unit_column", "budget_unit_column", "same_unit")
CLIPPED = "clipped"
"""Says of a release that psidp clipped what each unit adds to it."""
UNASKED = (*WHO, *UNITS, CLIPPED, "form")
"""What an event says that is no part of what a request asks for."""
BESIDE_THE_PRICE = (*UNASKED, "question")
"""What an event says that has no part in its price."""


def system_user() -> str:
    """The operating system's name for whoever runs this process."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container may run as a number that has no name
        return f"uid {os.getuid()}"


def priced(event: Mapping[str, Any]) -> dict[str, Any]:
    """What has a part in an event's price."""
    return {name: value for name, value in event.items() if name not in BESIDE_THE_PRICE}


def signed(event: Mapping[str, Any], actor: str, table: str = "", table_unit: str = "") -> dict[str, Any]:
    """The event with who did it; and with the table and its unit column, where they are given.

    Examples:
        >>> signed({"kind": "guarantee"}, "bob", "visits.csv")
        {'kind': 'guarantee', 'by': 'bob', 'table': 'visits.csv'}
    """
    said = {"by": check_name("actor", actor)}
    for name, value in (("table", table), ("table_unit", table_unit)):
        if value:
            said[name] = check_text(name, value)
    return {**event, **said}
