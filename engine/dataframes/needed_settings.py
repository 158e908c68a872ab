"""Settings of Spark's session that decide which rows come out: set while a job runs, then set back.

They are errors of ANSI, names that differ by case, UTC, no file left out, and no folding of one type into another.
Batches are as large as the engine's.

Held by: tests/dataframes/test_places.py
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

from pyspark.sql import SparkSession

from engine.spark.session_settings import with_settings

#: settings and their values
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


@contextlib.contextmanager
def with_needed_settings(session: SparkSession) -> Iterator[None]:
    """Change a session's settings to the engine's while a job runs."""
    with with_settings(session, _NEEDED):
        yield
