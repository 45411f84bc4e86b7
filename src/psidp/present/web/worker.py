"""Worker: a process for questions whose work nobody can tell beforehand; what takes too long is ended."""

import json
import sys
from select import select
from subprocess import PIPE, Popen
from threading import Lock
from typing import Any, TextIO
from weakref import finalize

from psidp.errors import PsidpError
from psidp.present.finite import finite
from psidp.present.web import handlers

__all__ = ["LONGEST", "Worker", "work"]

LONGEST = 20.0
"""Seconds after which an answer is given up."""
STARTING = 120.0
QUESTIONS = {"account": handlers.answer_account, "calibrate": handlers.answer_calibrate}


class Worker:
    """One process, started when first needed and again after it was ended; one question at a time."""

    def __init__(self, longest: float = LONGEST) -> None:
        self.longest = longest
        self._lock = Lock()
        self._process: Popen[str] | None = None

    def ask(self, question: str, asked: dict[str, Any]) -> dict[str, Any]:
        """The answer, or its refusal as a ValueError."""
        with self._lock:
            process = self._process = self._alive()
            line = _exchange(process, json.dumps([question, asked]), self.longest)
            if not line:
                _end(process)
                raise ValueError(
                    f"this {question} takes more than {self.longest:g} seconds here, and was given up. "
                    f"psidp {question} on the command line takes the time it needs."
                )
        kind, value = json.loads(line)
        if kind == "refused":
            raise ValueError(value)
        answer: dict[str, Any] = value
        return answer

    def _alive(self) -> Popen[str]:
        """The process that is running, or a new one that has said that it is ready."""
        if self._process is not None and self._process.poll() is None:
            return self._process
        started = Popen([sys.executable, "-m", __name__], stdin=PIPE, stdout=PIPE, text=True, encoding="utf-8")
        finalize(self, _end, started)
        if not _line(started, STARTING):
            raise ValueError("the process that computes did not start.")
        return started


def _exchange(process: Popen[str], line: str, seconds: float) -> str:
    """One line there, one line back; nothing when it takes too long or the process has died."""
    assert process.stdin is not None
    try:
        process.stdin.write(line + "\n")
        process.stdin.flush()
    except BrokenPipeError:
        return ""
    return _line(process, seconds)


def _line(process: Popen[str], seconds: float) -> str:
    assert process.stdout is not None
    ready, _, _ = select([process.stdout], [], [], seconds)
    return process.stdout.readline() if ready else ""


def _end(process: Popen[str]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def work(questions: TextIO, out: TextIO) -> None:
    """Answer line by line until the questions end.

    Examples:
        >>> from io import StringIO
        >>> work(StringIO('["calibrate", {"sampling_rate": 1, "steps": null}]\\n'), out := StringIO())
        >>> print(out.getvalue())
        ["ready", null]
        ["refused", "a run needs steps or epochs."]
    """
    out.write('["ready", null]\n')
    out.flush()
    for line in questions:
        question, asked = json.loads(line)
        try:
            reply = ["answer", finite(QUESTIONS[question](asked))]
        except (ValueError, TypeError, OverflowError, PsidpError) as refusal:
            reply = ["refused", str(refusal)]
        out.write(json.dumps(reply) + "\n")
        out.flush()


if __name__ == "__main__":
    work(sys.stdin, sys.stdout)
