"""python -m bench.since_0_2.worker MODULE: a version of psidp in a process of its own; a line in, a line out.

{"do": "where"}                                             version and folder of psidp
{"do": "ask", "question": ..., "place": ...}                an answer, and the exact numbers behind it
{"do": "time", "row": ..., "times": n, "folder": ...}       CPU seconds of n calls of a piece of work
{"do": "visit", "journey": ..., "folder": ...}              what a call visits

MODULE is calls_0_2 or calls_now. What fails is an answer too: {"error": "ValueError: ..."}.
"""

import os
import sys
from importlib import import_module
from pathlib import Path
from time import process_time
from typing import Any

from bench.since_0_2.lines import dumps, loads

Data = dict[str, Any]


class Worker:
    """What this process can be asked."""

    def __init__(self, module: str) -> None:
        self._module, self._calls, self._door = f"bench.since_0_2.{module}", None, None
        self._ready: Data = {}

    def where(self, _: Data) -> Data:
        """Which psidp this is."""
        import psidp

        return {"version": psidp.__version__, "folder": str(Path(psidp.__file__).parent)}

    def ask(self, asked: Data) -> Data:
        """The answer to a question with scripted noise."""
        if self._door is None:
            from bench.since_0_2.door import Door

            self._door = Door()
            self._calls = import_module(self._module).Calls(asked["place"])
        question = asked["question"]
        self._door.begin(question["name"])
        return self._calls.answer(question) | {"totals": self._door.exact}

    def plan(self, asked: Data) -> Data:
        """The plan alone."""
        return import_module(self._module).Calls(asked["place"]).plan(asked["question"])

    def time(self, asked: Data) -> Data:
        """CPU seconds; the first call makes ready and is not counted."""
        row = asked["row"]
        if row not in self._ready:
            self._ready[row] = import_module(self._module).WORK[row](Path(asked["folder"]))
            self._ready[row]()
        run, begin = self._ready[row], process_time()
        for _ in range(asked["times"]):
            run()
        return {"seconds": process_time() - begin}

    def visit(self, asked: Data) -> Data:
        """What one call visits."""
        from bench.since_0_2.visits import visits

        return visits(import_module(self._module).WORK[asked["journey"]](Path(asked["folder"])))


def main(module: str) -> None:
    """Answer until standard input ends; what libraries print goes to standard error."""
    with os.fdopen(os.dup(1), "w", buffering=1) as out:
        os.dup2(2, 1)
        worker = Worker(module)
        for line in sys.stdin:
            asked = loads(line)
            try:
                found = getattr(worker, asked["do"])(asked)
            except Exception as error:
                found = {"error": f"{type(error).__name__}: {error}"}
            print(dumps(found), file=out)


if __name__ == "__main__":
    main(sys.argv[1])
