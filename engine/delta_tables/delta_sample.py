"""A sample of a few files of a table: widths of columns, distinct values, heavy keys, which the log does not have.

    with_sample(spec, statistics, schema, names, predicates, carried) -> statistics

The rows are those of Parquet's samples. Files of tables with other names in files, or with deleted rows, are not looked
at, nor are those of stores, where each would take several requests.

Held by: tests/delta_tables/test_read_delta.py
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Final

import pyarrow as pa

from engine.delta_tables.delta_source import DELETED, PATH, files_table, table_schema
from engine.delta_tables.table_types import physical_name
from engine.errors import EngineError
from engine.graph.expression import Expression
from engine.graph.plan_schema import PlanSchema
from engine.graph.source_spec import FormatSource, SourceStatistics
from engine.parquet import sample
from engine.parquet.source import parquet_source
from engine.records.arrow_functions import pc
from engine.storage.file_systems import LOCAL, file_system_of

#: files that are looked at, spread over all
_FILES_MAX: Final = 4


def with_sample(
    spec: FormatSource,
    statistics: SourceStatistics,
    schema: PlanSchema,
    names: Collection[str],
    predicates: Sequence[Expression],
    carried: Collection[str],
) -> SourceStatistics:
    """Return statistics with those of a sample of columns; a file that cannot be read is left to the job."""
    paths = _plain_paths(spec)
    if not paths:
        return statistics
    chosen = paths[:: max(1, len(paths) // _FILES_MAX)][:_FILES_MAX]
    table = table_schema(spec)
    with suppress(OSError, pa.ArrowException, EngineError):
        schemas: list[pa.Schema] = []
        inner, _, _ = parquet_source(chosen, "read_delta", schemas)
        same = [name for name in names if all(_has(each, table.field(name)) for each in schemas)]
        # Of predicates a sample may say that no row meets them, if it has all rows.
        asked = predicates if len(chosen) == len({split.path for split in spec.splits}) else ()
        return sample.with_sample(inner, statistics, schema, same, asked, [name for name in carried if name in same])
    return statistics


def _has(schema: pa.Schema, field: pa.Field) -> bool:
    return field.name in schema.names and bool(schema.field(field.name).type == field.type)


def _plain_paths(spec: FormatSource) -> list[str]:
    """Return the files of this machine that have their rows as the table has them."""
    paths = list(dict.fromkeys(split.path for split in spec.splits))
    if not paths or file_system_of(paths[0]) is not LOCAL:
        return []
    if any(physical_name(field) != field.name for field in table_schema(spec)):
        return []
    known = files_table(spec)
    if known is None:
        return paths
    deleted = {*known.filter(pc.greater(known.column(DELETED), pa.scalar(0, pa.int64()))).column(PATH).to_pylist()}
    return [path for path in paths if path not in deleted]
