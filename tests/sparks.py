"""A real Spark session in this process, on one core of this machine."""

import importlib.util
import shutil

__all__ = ["session", "why_no_spark"]

QUIET = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "1g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
}


def why_no_spark():
    """Empty where a session can be started, else the reason."""
    if importlib.util.find_spec("pyspark") is None:
        return "it is not installed (pip install 'psidp[spark]')"
    if shutil.which("java") is None:
        return "there is no Java runtime (Debian: apt-get install openjdk-17-jre-headless)"
    return ""


def session():
    """The session; the one that runs already, where there is one."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]")
    for name, value in QUIET.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
