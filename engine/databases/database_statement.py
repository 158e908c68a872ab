"""The statement of a source of a database, for each of its splits: what a reader sends, and what explain shows.

    DatabaseStatement(spec).text(split) -> "SELECT ..."      .names: the columns it asks for
                           .rest        -> the filter that the engine decides behind it, or None

Held by: tests/databases/test_database.py
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from engine.databases.database_filters import pushed
from engine.databases.database_queries import range_text, select_text
from engine.graph.expression import columns_of, conjunction
from engine.graph.source_spec import FormatSource, SourceSplit


class DatabaseStatement:
    """Says what is asked for, and what is not decided there."""

    def __init__(self, spec: FormatSource) -> None:
        options: dict[str, Any] = dict(spec.options)
        self.schema = pa.ipc.read_schema(pa.py_buffer(spec.file_schema_ipc))
        self.dialect: str = options["dialect"]
        self._place: str = options["from"]
        self._column: str | None = options["partition_on"]
        self._bounds: list[str] = json.loads(options.get("bounds", "[]"))
        self._conditions, rest = pushed(spec.predicate, self.schema, self.dialect)
        self.rest = conjunction(rest) if rest else None
        #: columns that are asked for, those of filters last
        self.names = list(dict.fromkeys([*spec.columns, *(columns_of(self.rest) if self.rest else ())]))

    def text(self, split: SourceSplit) -> str:
        """Return the statement for the rows of a split."""
        limits = range_text(self._column, self._bounds, split) if self._column else ""
        where = [*([limits] if limits else []), *self._conditions]
        return select_text(self._place, self.schema, self.names, where, self.dialect)
