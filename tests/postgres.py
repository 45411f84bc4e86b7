"""A real PostgreSQL server on loopback, in a temporary folder, run unprivileged and stopped by its process id."""

import contextlib
import os
import pwd
import random
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

__all__ = ["Server", "why_no_server"]


def _programs() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda p: int(p.parts[-3]))
    where = str(found[-1]) if found else shutil.which("postgres")
    return Path(where).resolve().parent if where else None


def why_no_server() -> str:
    """Empty where a server can be started, else the reason."""
    if _programs() is None:
        return "no server program is installed (Debian: apt-get install postgresql)"
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "the driver is missing (pip install 'psidp[postgres]')"
    return ""


class PortTakenError(RuntimeError):
    """Another process listens there."""


class Server:
    """Started on entering, stopped on leaving; it can be killed and started again in between."""

    def __enter__(self):
        self.programs = _programs()
        self.folder = Path(tempfile.mkdtemp(prefix="psidp-postgres-"))
        self.user = None
        if os.geteuid() == 0:  # PostgreSQL refuses to be run by root
            self.user = next(name for name in ("postgres", "nobody") if _exists(name))
            entry = pwd.getpwnam(self.user)
            os.chown(self.folder, entry.pw_uid, entry.pw_gid)
        init = [self.programs / "initdb", "-D", self.folder / "data", "-U", "psidp", "-E", "UTF8", "--locale=C", "-N"]
        self._run([*init, "-A", "trust"])
        for self.port in _ports():
            with contextlib.suppress(PortTakenError):
                self.start()
                return self
        raise RuntimeError("no free port on loopback")

    def __exit__(self, *_):
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self):
        settings = {"listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": ""}
        flags = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with (self.folder.parent / f"{self.folder.name}.log").open("ab") as log:
            command = [self.programs / "postgres", "-D", self.folder / "data", *flags]
            self.process = subprocess.Popen(command, stdout=log, stderr=log, **self._as_user())
        end = time.monotonic() + 300.0
        while self.process.poll() is None and time.monotonic() < end:
            with contextlib.suppress(Exception):
                if self.execute("SHOW data_directory") == [(str(self.folder / "data"),)]:  # not somebody else's
                    return
            time.sleep(0.05)
        said = Path(log.name).read_text()
        raise (PortTakenError if "Address already in use" in said else RuntimeError)(said)

    def stop(self, how=signal.SIGINT):
        """SIGINT ends connections; SIGQUIT ends at once, as a crash does."""
        self.process.send_signal(how)
        self.process.wait()
        (self.folder.parent / f"{self.folder.name}.log").unlink(missing_ok=True)

    def place(self, name):
        """The address of an empty schema of its own."""
        self.execute(f'CREATE SCHEMA "{name}"')
        return f"postgresql://psidp:not-a-secret-42@127.0.0.1:{self.port}/postgres?options=-csearch_path%3D{name}"

    def execute(self, statement):
        import psycopg

        where = {"host": "127.0.0.1", "port": self.port, "user": "psidp", "dbname": "postgres", "connect_timeout": 60}
        with psycopg.connect(**where, autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def _run(self, command):
        done = subprocess.run(command, capture_output=True, text=True, **self._as_user())
        assert done.returncode == 0, done.stderr

    def _as_user(self):
        return {"user": self.user, "group": pwd.getpwnam(self.user).pw_gid, "cwd": "/"} if self.user else {"cwd": "/"}


def _ports():
    """Ports below those that systems give to outgoing connections: one that is free is still so after a restart."""
    return random.SystemRandom().sample(range(16384, 32768), 100)


def _exists(name):
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True
