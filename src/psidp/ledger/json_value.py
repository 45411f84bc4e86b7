"""JSON value: whatever may be released, as text that JSON can hold, and back. Nothing drawn is lost on the way.

JSON has no infinity and no NaN, its readers refuse integers of thousands of digits, and its objects have names only of
text. Those are written as objects with one name of ours; NumPy's numbers and arrays as Python's numbers and lists.
"""

import json
from typing import Any

__all__ = ["from_json", "to_json"]

FLOAT, INTEGER, PAIRS = "psidp_float", "psidp_int", "psidp_pairs"
LONG = 4096
"""Binary digits from which an integer is written in hexadecimal."""


def to_json(value: Any) -> str:
    """One line of JSON, in ASCII; TypeError for what is not made of numbers, text, lists, arrays and mappings.

    Examples:
        >>> to_json({"mean": [1.5, float("inf")]})
        '{"mean":[1.5,{"psidp_float":"inf"}]}'
        >>> from_json(to_json({"mean": [1.5, float("inf")]}))
        {'mean': [1.5, inf]}
    """
    return json.dumps(_packed(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def from_json(text: str) -> Any:
    """The value that to_json wrote, tuples as lists except in names of mappings."""
    return _unpacked(json.loads(text))


def _packed(value: Any) -> Any:
    if isinstance(value, float) and not abs(value) < float("inf"):
        return {FLOAT: repr(float(value))}
    if isinstance(value, float):
        return float(value)
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > LONG:
        return {INTEGER: hex(value)}
    if isinstance(value, list | tuple):
        return [_packed(part) for part in value]
    if isinstance(value, dict):
        plain = all(isinstance(name, str) for name in value) and set(value) not in ({FLOAT}, {INTEGER}, {PAIRS})
        if plain:
            return {name: _packed(part) for name, part in value.items()}
        return {PAIRS: [[_packed(name), _packed(part)] for name, part in value.items()]}
    if hasattr(value, "tolist"):
        plain = value.tolist()
        return value if type(plain) is type(value) else _packed(plain)
    return value


def _name(value: Any) -> Any:
    """A name as a mapping can have it: JSON has a list for a tuple."""
    return tuple(map(_name, value)) if isinstance(value, list) else value


def _unpacked(value: Any) -> Any:
    if isinstance(value, list):
        return [_unpacked(part) for part in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {FLOAT}:
        return float(value[FLOAT])
    if set(value) == {INTEGER}:
        return int(value[INTEGER], 16)
    if set(value) == {PAIRS}:
        return {_name(_unpacked(name)): _unpacked(part) for name, part in value[PAIRS]}
    return {name: _unpacked(part) for name, part in value.items()}
