"""Spark around the engine. It is an optional extra: the engine itself needs no JVM.

export.py            ``export_data``: a DataFrame, cleaned and checked, as a record data set with its manifest
export_checks.py     which rows are bad, and why
export_publishing.py publication of an export under its name, with other writers
export_rejected.py   rows that are set aside
export_report.py     what an export did: lines, JSON, a page
export_command.py    ``bin/spark-export``
exportable.py        which types can be written, and with which of Spark's settings
data_source.py       ``format("drey")``: record data sets written and read by Spark's tasks
manifest_switch.py   how rows of such a write appear at once, whatever dies
order_check.py       whether the rows of such a write come in the order that was promised
column_names.py      names of columns in texts
arrow_types.py       types on their way between both
file_urls.py         paths as Spark reads them
session.py           the session of Spark: the process's own, one of Spark Connect, or a new one
session_settings.py  settings of a session for a while
driver_program.py    what the driver sends to workers says which Drey made it
failures.py          errors on their way through Spark
frames.py            ``read_dataframe`` and ``DataSet.to_spark``: both in one program
found_by_name        the package ``pyspark_drey``, by which Spark finds ``format("drey")``

    from engine.spark import read_dataframe, register

Names are loaded when they are first used: the package itself needs no pyspark.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.spark.data_source import DreyDataSource, register
    from engine.spark.export import export_data
    from engine.spark.frames import read_dataframe

__all__ = ["DreyDataSource", "export_data", "read_dataframe", "register"]

_MODULES = {
    "DreyDataSource": "data_source",
    "register": "data_source",
    "export_data": "export",
    "read_dataframe": "frames",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"engine.spark.{_MODULES[name]}"), name)
