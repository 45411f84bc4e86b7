"""What one piece of work visits in psidp: files, functions, crossings between files, and which modules are loaded."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

__all__ = ["visits"]


def visits(run: Callable[[], object]) -> dict[str, Any]:
    """Files in the order of the first visit, and how many functions, calls and crossings there were.

    The work is done once before, so that imports and first fillings of tables do not count. A crossing is a call of a
    function of psidp from another file of psidp, directly or through other libraries. Lambdas, comprehensions and
    generator expressions belong to the function that they are in.
    """
    import psidp

    home = str(Path(psidp.__file__).parent)
    run()
    modules = [name.partition(".")[0] for name in sys.modules]
    files: dict[str, None] = {}
    functions: set[tuple[str, str, int]] = set()
    inside: list[str] = []
    calls = crossings = 0

    def watch(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls, crossings
        code = frame.f_code
        if not code.co_filename.startswith(home) or code.co_name.startswith("<"):
            return
        if event == "call":
            calls += 1
            crossings += bool(inside) and inside[-1] != code.co_filename
            inside.append(code.co_filename)
            files[Path(code.co_filename).relative_to(home).as_posix()] = None
            functions.add((code.co_filename, code.co_qualname, code.co_firstlineno))
        elif event == "return" and inside:
            inside.pop()

    sys.setprofile(watch)
    try:
        run()
    finally:
        sys.setprofile(None)
    return {
        "files": list(files), "functions": len(functions), "calls": calls, "crossings": crossings,
        "modules": modules.count("psidp"), "all modules": len(modules),
    }  # fmt: skip
