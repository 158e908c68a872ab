"""Results in the client: files of a finished job as a table, tables as rows and as text.

Held by: tests/api/test_environment.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from engine.api.logical_node import LogicalNode
from engine.errors import ResourceError
from engine.functions.row import Row, row_class
from engine.graph.plan import Sort
from engine.records.python_values import shown_value
from engine.records.value_reader import python_values
from engine.shown_text import shown_line

_CELL_MAX = 40
#: parts of so many bytes are mapped, not copied; their room on disk is free when nobody has the table any more
MAPPED_BYTES_MIN: Final = 1 << 20


def check_visible(folder: Path, what: str) -> None:
    """Raise ResourceError when a job has written ``what`` into a folder that is not there for the client."""
    if not folder.is_dir():
        raise ResourceError(
            f"{what}: the job has ended, and its rows are in {folder} of the cluster's machines, which is not this "
            "machine's folder; let TMPDIR name a folder that both see, or write them with write_parquet"
        )


def read_parts(folder: Path, schema: pa.Schema) -> pa.Table:
    """Return the rows of the Arrow parts of a folder, in the order of their numbers."""
    batches: list[pa.RecordBatch] = []
    for part in sorted(folder.glob("part-*.arrow")):
        open_part = pa.memory_map if part.stat().st_size >= MAPPED_BYTES_MIN else pa.OSFile
        with open_part(str(part)) as file, pa.ipc.open_file(file) as reader:
            batches += [reader.get_batch(index) for index in range(reader.num_record_batches)]
    return pa.Table.from_batches(batches, schema=schema)


def is_sorted(node: LogicalNode) -> bool:
    """Whether rows may have an order that comes from a sort: the parts of a result are in it."""
    while len(node.inputs) == 1:
        if isinstance(node.operator, Sort):
            return True
        (node,) = node.inputs
    return False


def table_to_rows(table: pa.Table) -> list[Row]:
    """Return a table as rows."""
    make_row = row_class(tuple(table.column_names))
    columns = [python_values(name, column) for name, column in zip(table.column_names, table.columns, strict=True)]
    return list(map(make_row, zip(*columns, strict=True)))


def _cell(value: Any) -> str:
    text = "null" if value is None else shown_line(str(value))
    return text if len(text) <= _CELL_MAX else f"{text[: _CELL_MAX - 3]}..."


def format_table(table: pa.Table, count: int) -> str:
    """Return the first ``count`` rows as text, numbers to the right, and whether there are more."""
    shown = table.slice(0, count)
    columns = []
    for field, column in zip(table.schema, shown.columns, strict=True):
        # A moment beyond Python's years has digits to show; text that is no text has not.
        is_moment = pa.types.is_temporal(field.type)
        values = map(shown_value, column) if is_moment else python_values(field.name, column)
        cells = [shown_line(field.name), shown_line(str(field.type)), *map(_cell, values)]
        width = max(map(len, cells))
        is_number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        columns.append([cell.rjust(width) if is_number else cell.ljust(width) for cell in cells])
    lines = [" | ".join(cells).rstrip() for cells in zip(*columns, strict=True)]
    lines.insert(2, "-+-".join("-" * len(cells[0]) for cells in columns))
    more = "only the first rows are shown" if table.num_rows > count else f"{shown.num_rows} rows"
    return "\n".join([*lines, f"({more})", ""])
