"""Python workers of a Spark of this machine, which begin with the engine loaded.

    spark.python.daemon.module=engine.targets.spark_daemon      Spark starts this in place of PySpark's own daemon

Each worker is a fork of the daemon, and would import the engine for itself: half a second of processor time, as long as
some twenty fragments take. Spark ends a worker whose task failed or whose rows were not all taken, and one that had
nothing to do for a minute, so there are many. No thread of the engine runs before a worker is forked.

Held by: tests/dataframes/test_spark_daemon.py
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

from pyspark.daemon import manager

LOADED: Final = ("pandas", "pyspark.worker", "engine.dataframes.fragments", "engine.targets.local")

if __name__ == "__main__":
    for each in LOADED:
        import_module(each)
    manager()
