"""The session of Spark that runs plans: one that is there, one at ``remote`` (Spark Connect), or one of this machine.

Settings that decide what rows come out are set, and set back when the job is over: errors of ANSI, names that differ
by case, UTC, no file left out, and no folding of one type into another. Batches are as large as the engine's.

Held by: tests/dataframes/test_places.py
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Final

from pyspark.sql import SparkSession

from engine.errors import ConfigurationError
from engine.spark.export import start_spark
from engine.spark.session_settings import with_settings

#: what decides which rows come out
_NEEDED: Final = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.crossJoin.enabled": "true",
    "spark.sql.retainGroupColumns": "true",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.execution.pythonUDF.arrow.enabled": "true",
    "spark.sql.pyspark.jvmStacktrace.enabled": "false",
}


def open_session(name: str, master: str | None, remote: str | None) -> SparkSession:
    """Return a session; ConfigurationError when there is none to have."""
    if remote:
        try:
            return SparkSession.builder.remote(remote).appName(name).getOrCreate()
        except Exception as error:
            raise ConfigurationError(f"Spark at {remote} does not answer: {str(error).splitlines()[0]}") from error
    if threading.current_thread() is not threading.main_thread():
        return start_spark(name, master)
    # Spark's own answer to Ctrl-C asks the JVM in the middle of another question.
    former = signal.getsignal(signal.SIGINT)
    try:
        return start_spark(name, master)
    finally:
        signal.signal(signal.SIGINT, former)


@contextlib.contextmanager
def with_needed_settings(session: SparkSession) -> Iterator[None]:
    """Have a session follow the engine while a job runs."""
    with with_settings(session, _NEEDED):
        yield
