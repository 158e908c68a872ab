"""Where queries in SQL become data sets: a room above the API, which registers itself as the executors do.

Held by: tests/sql/test_queries.py
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from engine.api.data_set import DataSet
from engine.errors import NotYetSupportedError

#: (text, data sets by name, how rows that stand in the text become a data set) -> the query's data set
QueryReader = Callable[[str, Mapping[str, DataSet], Callable[[pa.Table], DataSet]], DataSet]

_readers: list[QueryReader] = []


def register_query_reader(reader: QueryReader) -> None:
    """Let a function read queries, in place of the one before."""
    _readers[:] = [reader]


def query_reader() -> QueryReader:
    """Return what reads queries; NotYetSupportedError where nothing is registered."""
    if not _readers:
        raise NotYetSupportedError("sql without engine.targets")
    return _readers[0]
