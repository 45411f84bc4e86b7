"""How this version is called. It changes with the interface; calls_0_2.py does not.

So far the calls are those of 0.2, but for conditions, which are always text.
"""

from typing import Any

from bench.since_0_2 import calls_0_2

__all__ = ["Calls"]


class Calls(calls_0_2.Calls):
    """Answers of this version to neutral questions."""

    def _where(self, q: dict[str, Any]) -> Any:
        return q.get("where")
