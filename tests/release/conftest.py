"""Real engines for the curator: a PostgreSQL of its own on loopback, a Spark session in this process."""

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest


def absent(what):
    """Skip where a machine lacks an engine; in CI nothing is skipped."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what}, and CI skips nothing")
    pytest.skip(what)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def server_program():
    """The newest PostgreSQL server that is installed, or None."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda p: int(p.parts[-3]))
    found += [Path(p).resolve() for p in [shutil.which("postgres")] if p]
    return found[-1].parent if found else None


def as_user(command):
    """The command as somebody who may run a server: root may not."""
    if os.geteuid() != 0:
        return command
    return ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", *command]


@pytest.fixture(scope="session")
def postgres_url(tmp_path_factory):
    """A fresh server that ends with the tests; nothing outside this machine can reach it."""
    programs = server_program()
    if programs is None:
        absent("no PostgreSQL server is installed (Debian: apt-get install postgresql)")
    home = Path("/tmp") / f"psidp-postgres-{os.getpid()}"
    home.mkdir(mode=0o700)
    if os.geteuid() == 0:
        shutil.chown(home, "nobody", "nogroup")
    data, port = str(home / "data"), free_port()
    quiet = {"check": True, "stdout": subprocess.DEVNULL, "cwd": home}
    settings = ["--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C.UTF-8", "--username=curator"]
    subprocess.run(as_user([str(programs / "initdb"), f"--pgdata={data}", *settings]), **quiet)
    options = [f"-p{port}", "-h127.0.0.1", f"-k{home}", "-cfsync=off", "-cshared_buffers=16MB", "-cmax_connections=10"]
    with (home / "log").open("w") as log:
        server = subprocess.Popen(
            as_user([str(programs / "postgres"), f"-D{data}", *options]), cwd=home, stdout=log, stderr=log
        )
    try:
        wait_for(programs, port, server)
        yield f"postgresql://curator@127.0.0.1:{port}/postgres"
    finally:
        server.terminate()
        server.wait(30)
        shutil.rmtree(home, ignore_errors=True)


def wait_for(programs, port, server):
    """Until the server answers."""
    for _ in range(150):
        ready = [str(programs / "pg_isready"), "-q", "-h127.0.0.1", f"-p{port}"]
        if subprocess.run(ready, check=False).returncode == 0:
            return
        assert server.poll() is None, "PostgreSQL did not start"
        time.sleep(0.1)
    raise AssertionError("PostgreSQL did not answer within 15 seconds")


@pytest.fixture(scope="session")
def postgres(postgres_url):
    """An Ibis connection to it."""
    ibis = pytest.importorskip("ibis") if os.environ.get("CI") != "true" else __import__("ibis")
    connection = ibis.connect(postgres_url)
    yield connection
    connection.disconnect()


@pytest.fixture(scope="session")
def spark():
    """An Ibis connection to a Spark session in this process."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        absent("pyspark is not installed (pip install 'psidp[spark]')")
    if shutil.which("java") is None:
        absent("Spark needs a Java runtime (Debian: apt-get install openjdk-17-jre-headless)")
    import ibis

    session = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    yield ibis.pyspark.connect(session)
    session.stop()
