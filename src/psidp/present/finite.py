"""Values as JSON can hold them: infinities and NaN become strings, since JSON has none."""

from typing import Any

__all__ = ["finite"]


def finite(value: Any) -> Any:
    """`value` with every infinity and NaN in it as a string.

    Examples:
        >>> finite({"epsilon": [1.0, float("inf")]})
        {'epsilon': [1.0, 'inf']}
    """
    if isinstance(value, dict):
        return {name: finite(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [finite(entry) for entry in value]
    if isinstance(value, float) and not abs(value) < float("inf"):
        return str(value)
    return value
