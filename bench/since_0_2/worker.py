"""python -m bench.since_0_2.worker VERSION [LIBRARIES ...]: one version of psidp, which answers line by line.

{"do": "where"}                                             version and folder of psidp
{"do": "ask", "question": ..., "place": ...}                an answer, and the exact numbers behind it
{"do": "plan", "question": ..., "place": ...}               the plan alone
{"do": "time", "row": ..., "times": n, "folder": ...}       CPU seconds of n calls of a piece of work
{"do": "visit", "row": ..., "folder": ...}                  what a piece of work visits

VERSION is 0_2 or now, and says which calls_ and work_ translate; LIBRARIES are folders of more libraries. What fails
is an answer too: {"error": "ValueError: ..."}.
"""

import os
import sys
from importlib import import_module
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from typing import Any

from bench.since_0_2.lines import dumps, loads

Data = dict[str, Any]


class Worker:
    """What this process can be asked."""

    def __init__(self, version: str) -> None:
        self._version, self._calls, self._door = version, None, None
        self._ready: dict[str, Any] = {}

    def where(self, _: Data) -> Data:
        """Which psidp this is."""
        import psidp

        return {"version": psidp.__version__, "folder": str(Path(psidp.__file__).parent)}

    def ask(self, asked: Data) -> Data:
        """The answer to a question with scripted noise, and the exact numbers behind it."""
        if self._door is None:
            from bench.since_0_2.door import Door

            self._door = Door()
        question = asked["question"]
        self._door.begin(question["name"])
        return self._asked(asked["place"]).answer(question) | {"totals": self._door.exact}

    def plan(self, asked: Data) -> Data:
        """The plan alone."""
        return self._asked(asked["place"]).plan(asked["question"])

    def time(self, asked: Data) -> Data:
        """CPU seconds, of processes that it starts as well; the first call makes ready and is not counted."""
        row = asked["row"]
        if row not in self._ready:
            self._ready[row] = self._work(asked)
            self._ready[row]()
        run, begin = self._ready[row], _seconds()
        for _ in range(asked["times"]):
            run()
        return {"seconds": _seconds() - begin}

    def visit(self, asked: Data) -> Data:
        """What a piece of work visits."""
        from bench.since_0_2.visits import visits

        return visits(self._work(asked))

    def _asked(self, place: Data) -> Any:
        if self._calls is None:
            self._calls = import_module(f"bench.since_0_2.calls_{self._version}").Calls(place)
        return self._calls

    def _work(self, asked: Data) -> Any:
        work = import_module(f"bench.since_0_2.work_{self._version}").WORK
        return work[asked["row"]](Path(asked["folder"]))


def _seconds() -> float:
    return sum(used.ru_utime + used.ru_stime for used in map(getrusage, (RUSAGE_SELF, RUSAGE_CHILDREN)))


def main(version: str, *libraries: str) -> None:
    """Answer until standard input ends; what libraries print goes to standard error."""
    sys.path.extend(libraries)
    with os.fdopen(os.dup(1), "w", buffering=1) as out:
        os.dup2(2, 1)
        worker = Worker(version)
        for line in sys.stdin:
            asked = loads(line)
            try:
                found = getattr(worker, asked["do"])(asked)
            except Exception as error:
                found = {"error": f"{type(error).__name__}: {error}"}
            print(dumps(found), file=out)


if __name__ == "__main__":
    main(*sys.argv[1:])
