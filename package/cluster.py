"""A standalone cluster of Spark on loopback: a master and some workers, stopped by their process ids."""

import os
import re
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

__all__ = ["Cluster"]

PATIENCE = 120.0
"""Seconds that a process may take to say that it is ready."""


class Cluster:
    """Started on entering, stopped on leaving. Every worker has one core and so much memory."""

    def __init__(self, workers: int = 2, memory: str = "1g") -> None:
        self.workers, self.memory = workers, memory
        self.processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> "Cluster":
        self.folder = tempfile.TemporaryDirectory(prefix="psidp-spark-")
        try:
            said = self._start(
                "master.Master", "0", "--webui-port", "0", until=r"Starting Spark master at (spark://\S+)"
            )
            self.address = said[1]
            for number in range(self.workers):
                work = str(Path(self.folder.name) / f"work-{number}")
                more = ["--webui-port", "0", "--cores", "1", "--memory", self.memory, "--work-dir", work, self.address]
                self._start("worker.Worker", "0", *more, until="Successfully registered with master")
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            process.wait()
        self.folder.cleanup()

    def _start(self, what: str, port: str, *words: str, until: str) -> Any:
        """Start one process and wait until its log says that it is ready."""
        import pyspark  # type: ignore[import-not-found,unused-ignore]

        jars = Path(pyspark.__file__).parent / "jars"
        command = ["java", "-Xmx512m", "-cp", f"{jars}/*", f"org.apache.spark.deploy.{what}", "--host", "127.0.0.1"]
        home = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_HOME": str(jars.parent), "SPARK_SCALA_VERSION": "2.13"}
        path = Path(self.folder.name) / f"log-{len(self.processes)}"
        with path.open("wb") as log:
            started = [*command, "--port", port, *words]
            self.processes.append(subprocess.Popen(started, stdout=log, stderr=log, env={**os.environ, **home}))
        end = time.monotonic() + PATIENCE
        while self.processes[-1].poll() is None and time.monotonic() < end:
            found = re.search(until, path.read_text())
            if found:
                return found
            time.sleep(0.1)
        raise RuntimeError(path.read_text())
