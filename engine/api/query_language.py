"""The reader of queries in SQL: a room above the API, which registers itself as the executors do.

Held by: tests/sql/test_queries.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.api.data_set import DataSet
from engine.errors import NotYetSupportedError

#: function from (text, the Environment with its tables, parameters, dialect) to the query's data set
QueryReader = Callable[[str, Any, Any, str | None], DataSet]

_readers: list[QueryReader] = []


def register_query_reader(reader: QueryReader) -> None:
    """Register a function that reads queries, in place of an earlier one."""
    _readers[:] = [reader]


def query_reader() -> QueryReader:
    """Return the reader of queries; NotYetSupportedError where none is registered."""
    if not _readers:
        raise NotYetSupportedError("sql without engine.targets")
    return _readers[0]
