"""Results in the client: files of a finished job as a table, tables as rows and as text.

Held by: tests/api/test_environment.py
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unicodedata import combining, east_asian_width

import pyarrow as pa

from engine.commit.handed_target import HandedResult
from engine.connectors.arrow_files import arrow_batches, arrow_parts
from engine.connectors.handed_writer import handed_batches
from engine.errors import ResourceError
from engine.functions.row import Row, row_class
from engine.graph.plan import Sort
from engine.lowering.logical_node import LogicalNode
from engine.records.python_values import shown_value
from engine.records.value_reader import python_values
from engine.shown_html import note_html, table_html
from engine.shown_text import shown_line
from engine.storage.file_systems import is_folder

_CELL_MAX = 40


def check_visible(folder: Path, what: str) -> None:
    """Raise ResourceError when a job has written ``what`` into a folder that is not there for the client."""
    if not is_folder(os.fspath(folder)):
        raise ResourceError(
            f"{what}: the job has ended, and its rows are in {folder} of the cluster's machines, which is not this "
            "machine's folder; let TMPDIR name a folder that both see, or write them with write_parquet"
        )


def read_parts(folder: Path, schema: pa.Schema) -> pa.Table:
    """Return the rows of the Arrow parts of a folder, in the order of their numbers."""
    batches = [batch for part in arrow_parts(os.fspath(folder)) for batch in arrow_batches(part)]
    return pa.Table.from_batches(batches, schema=schema)


def handed_table(result: HandedResult, schema: pa.Schema) -> pa.Table:
    """Return the rows that a job in this process has left for its client."""
    return pa.Table.from_batches([batch for part in result.parts for batch in handed_batches(part)], schema=schema)


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


def _cell(value: Any) -> str | None:
    return None if value is None else _cut(str(value))


def _cut(text: str) -> str:
    text = shown_line(text)
    return text if len(text) <= _CELL_MAX else f"{text[: _CELL_MAX - 3]}..."


def _cells(field: pa.Field, column: pa.ChunkedArray) -> list[str | None]:
    """Return the values of a column as they are shown, None for null."""
    # A moment beyond Python's years has digits to show; text that is no text has not.
    is_moment = pa.types.is_temporal(field.type)
    return [*map(_cell, map(shown_value, column) if is_moment else python_values(field.name, column))]


def _is_number(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(data_type) or pa.types.is_floating(data_type))


def _width(text: str) -> int:
    """Return the width of a text in a terminal: letters of East Asia take two places, marks on letters none."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(each) else 2 if east_asian_width(each) in "WF" else 1 for each in text)


def _padded(text: str, width: int, *, right: bool) -> str:
    space = " " * (width - _width(text))
    return space + text if right else text + space


def _how_many(table: pa.Table, count: int) -> str:
    if table.num_rows > count:
        return "only the first rows are shown"
    return "1 row" if table.num_rows == 1 else f"{table.num_rows} rows"


def format_table(table: pa.Table, count: int, width: int | None = None) -> str:
    """Return the first ``count`` rows as text, numbers to the right, and whether there are more.

    width: places of a line, None: any number. Columns in the middle that have no room are left out.
    """
    columns = []
    for field, column in zip(table.schema, table.slice(0, count).columns, strict=True):
        values = ["null" if cell is None else cell for cell in _cells(field, column)]
        cells = [_cut(field.name), _cut(str(field.type)), *values]
        places = max(map(_width, cells))
        columns.append([_padded(cell, places, right=_is_number(field.type)) for cell in cells])
    said = _how_many(table, count)
    first, last = _with_room([_width(cells[0]) for cells in columns], width)
    if first + last < len(columns):
        said += f"; {first + last} of {len(columns)} columns are shown"
        columns = [*columns[:first], ["..."] * len(columns[0]), *columns[len(columns) - last :]]
    lines = [" | ".join(cells).rstrip() for cells in zip(*columns, strict=True)]
    lines.insert(2, "-+-".join("-" * _width(cells[0]) for cells in columns))
    return "\n".join([*lines, f"({said})", ""])


def _with_room(widths: Sequence[int], width: int | None) -> tuple[int, int]:
    """Return the number of columns that fit at the left and at the right of a line; one at least."""
    if width is None or sum(widths) + 3 * (len(widths) - 1) <= width:
        return len(widths), 0
    room = width - len("...")
    first = last = 0
    while first + last < len(widths):
        is_left = first <= last
        wanted = widths[first] if is_left else widths[len(widths) - 1 - last]
        room -= wanted + len(" | ")
        if room < 0 and first:
            break
        first, last = (first + 1, last) if is_left else (first, last + 1)
    return first, last


def html_of_rows(table: pa.Table, count: int) -> str:
    """Return a table of rows as HTML, for a notebook: a wide table is not broken into lines there."""
    columns = [_cells(field, column) for field, column in zip(table.schema, table.slice(0, count).columns, strict=True)]
    numbers = [place for place, field in enumerate(table.schema) if _is_number(field.type)]
    types = [str(field.type) for field in table.schema]
    rows = zip(*columns, strict=True)
    return table_html(table.column_names, rows, below=types, numbers=numbers) + note_html(_how_many(table, count))
