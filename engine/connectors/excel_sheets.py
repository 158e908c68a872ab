"""Sheets of Excel and OpenDocument files, read by python-calamine (the extra ``excel``).

    with open_sheet(path, options) as sheet:     names, and rows of cells behind the header
    excel_source(paths, schema, options)         what is known of files when a plan is made
    ExcelReader(spec, splits)                    a split is a file

The library has all cells of a sheet in memory, and gives them as objects of Python; a file is read by one subtask.
Types are those of all cells of all files (``excel_cells``), so that no row of a job has another one.

Held by: tests/connectors/test_excel.py
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, Final, NamedTuple

import pyarrow as pa

from engine.connectors.excel_cells import cell_text, column_of, kind_of, type_of
from engine.connectors.excel_errors import error_cells
from engine.csv.header import column_names
from engine.errors import ConfigurationError, DataError, PlanError, SchemaError
from engine.graph.source_spec import FormatSource, SourceSplit, SourceStatistics
from engine.memory.budget import Kind, Role, process_budget
from engine.records.bounded_batches import bounded_batches
from engine.records.plain_types import plain_schema
from engine.storage.file_systems import file_system_of, size_of
from engine.user_warnings import warn_user

_CALL: Final = "read_excel"
_BATCH_ROWS: Final = 4096
_LETTERS: Final = 26


class Sheet(NamedTuple):
    """An open sheet."""

    path: str
    name: str
    names: tuple[str, ...]
    #: number of the first row behind the header, from 1 on, and of the first column, from 0 on
    first_row: int
    first_column: int
    rows: Iterator[Sequence[Any]]

    def place(self, row: int, column: int) -> str:
        """Return the name of a cell, "B7"; ``row`` from 0 on behind the header."""
        letters, number = "", self.first_column + column + 1
        while number:
            number, letter = divmod(number - 1, _LETTERS)
            letters = chr(ord("A") + letter) + letters
        return f"{letters}{self.first_row + row}"


def _calamine() -> Any:
    try:
        import python_calamine
    except ImportError:
        raise ConfigurationError(
            f"{_CALL} without the package python-calamine; install it: pip install 'drey-engine[excel]'"
        ) from None
    return python_calamine


@contextmanager
def open_sheet(path: str, options: Mapping[str, Any], *, tells: bool = False) -> Iterator[Sheet]:
    """Open the sheet that options name; ``tells``: warns of cells that are errors.

    Raises: PlanError for a file that is none, or without the sheet.
    """
    library = _calamine()
    files = file_system_of(path)
    native = files.native_path(path)
    source = io.BytesIO(files.read(path)) if native is None else native
    try:
        book = library.CalamineWorkbook.from_object(source)
    except library.CalamineError as error:
        raise PlanError(f"{_CALL}: {path} is not a whole file of Excel or OpenDocument ({error})") from None
    with book:
        name = _name_of(path, book.sheet_names, options.get("sheet", 1))
        if tells:
            _tell_errors(path, source, name)
        sheet = book.get_sheet_by_name(name)
        skipped = options.get("skip_rows", 0)
        rows: Iterator[Sequence[Any]] = itertools.islice(sheet.iter_rows(), skipped, None)
        first = next(rows, ())
        if options.get("header", True):
            # Empty rows above a table have no names.
            while first and not any(map(kind_of, first)):
                skipped, first = skipped + 1, next(rows, ())
            names, skipped = column_names([cell_text(cell) for cell in first]), skipped + 1
        else:
            names = [f"column_{index}" for index in range(len(first))]
            rows = itertools.chain([first] if first else [], rows)
        yield Sheet(path, name, tuple(names), skipped + 1, (sheet.start or (0, 0))[1], rows)


def _tell_errors(path: str, source: str | BinaryIO, name: str) -> None:
    count, places = error_cells(source, name)
    if count:
        shown = ", ".join([*places, *(["..."] if count > len(places) else [])])
        what = "1 cell is an error" if count == 1 else f"{count} cells are errors"
        warn_user(f"{_CALL}({path!r}): sheet {name!r}: {what}, read as null: {shown}")


def _name_of(path: str, names: Sequence[str], wanted: str | int) -> str:
    if isinstance(wanted, int) and 1 <= wanted <= len(names):
        return names[wanted - 1]
    if wanted in names:
        return str(wanted)
    raise PlanError(
        f"{_CALL}: {path} has no sheet {wanted!r}; it has {', '.join(map(repr, names))}, and numbers count from 1"
    )


def check_options(options: Mapping[str, Any]) -> None:
    """Raise ConfigurationError for options that mean nothing."""
    sheet, header, skip_rows = (options.get(name, 1) for name in ("sheet", "header", "skip_rows"))
    if isinstance(sheet, bool) or not isinstance(sheet, str | int):
        raise ConfigurationError(f"{_CALL}: sheet={sheet!r}: must be a name, or a number from 1 on")
    if not isinstance(header, bool) and "header" in options:
        raise ConfigurationError(f"{_CALL}: header={header!r}: choose True or False")
    if isinstance(skip_rows, bool) or not isinstance(skip_rows, int) or skip_rows < 0:
        raise ConfigurationError(f"{_CALL}: skip_rows={skip_rows!r}: must be a number of rows, 0 or more")


def excel_source(
    paths: tuple[str, ...], schema: pa.Schema | None, options: Mapping[str, Any]
) -> tuple[FormatSource, SourceStatistics, pa.Schema]:
    """Return a source, what is known of it, and its schema. Raises: PlanError, SchemaError, ConfigurationError."""
    check_options(options)
    kinds: dict[str, set[str]] = {}
    count = 0
    for path in paths:
        with open_sheet(path, options, tells=True) as opened:
            if not opened.names:
                raise SchemaError(f"{_CALL}: {path}, sheet {opened.name!r} is empty")
            sheet = named_by(opened, schema, options)
            _check_names(sheet, tuple(kinds) or sheet.names, schema)
            found = [kinds.setdefault(name, set()) for name in sheet.names]
            for row in sheet.rows:
                count += 1
                for known, cell in zip(found, row, strict=False):
                    known.add(kind_of(cell))
    if schema is None:
        schema = pa.schema([(name, type_of(frozenset(each))) for name, each in kinds.items()])
        mixed = [name for name, each in kinds.items() if "string" in each and len(each - {"", "string"})]
        if mixed:
            warn_user(
                f"{_CALL}({paths[0]!r}): texts and other values are in {', '.join(mixed)}, read as text; pass schema="
                " for another type, or skip_rows= where the names stand below other rows"
            )
    else:
        schema = plain_schema(schema)
    splits = tuple(SourceSplit(path, 0, 0, size_of(path)) for path in paths)
    spec = FormatSource(
        "excel", paths, splits, schema.serialize().to_pybytes(), tuple(schema.names), options=dict(options)
    )
    size = float(sum(split.size_bytes for split in splits))
    return spec, SourceStatistics(float(count), size, "cells of the sheets", is_exact=True), schema


def named_by(sheet: Sheet, schema: pa.Schema | None, options: Mapping[str, Any]) -> Sheet:
    """Return a sheet without names with those of a schema, by position. Raises: SchemaError: there are not as many."""
    if schema is None or options.get("header", True) or set(schema.names) <= set(sheet.names):
        return sheet
    if len(schema) != len(sheet.names):
        raise SchemaError(
            f"{_CALL}: {sheet.path}, sheet {sheet.name!r} has {len(sheet.names)} columns, and schema= {len(schema)};"
            " without a header each column needs its name"
        )
    return sheet._replace(names=tuple(schema.names))


def _check_names(sheet: Sheet, names: Sequence[str], schema: pa.Schema | None) -> None:
    wanted = names if schema is None else schema.names
    missing = [name for name in wanted if name not in sheet.names]
    more = [name for name in sheet.names if name not in names] if schema is None else []
    if missing or more:
        has = f"has no {', '.join(missing)}" if missing else f"has {', '.join(more)}, which others have not"
        raise SchemaError(
            f"{_CALL}: {sheet.path}, sheet {sheet.name!r} {has}; its columns are {', '.join(sheet.names)}"
        )


class ExcelReader:
    """Reads sheets."""

    bad_rows = 0
    pruned_groups = 0

    def __init__(self, spec: FormatSource, splits: Sequence[SourceSplit]) -> None:
        schema = pa.ipc.read_schema(pa.py_buffer(spec.file_schema_ipc))
        self._all = schema
        self._schema = pa.schema([schema.field(name) for name in spec.columns])
        self._options, self._splits = spec.options, splits
        self._member = process_budget.reserve(Kind.ARROW, role=Role.READER)
        self.bytes_read = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of all splits; DataError for a cell that is not of its type."""
        for split in self._splits:
            with open_sheet(split.path, self._options) as opened:
                sheet = named_by(opened, self._all, self._options)
                places = [sheet.names.index(name) for name in self._schema.names]
                begin = 0
                while rows := list(itertools.islice(sheet.rows, _BATCH_ROWS)):
                    yield from bounded_batches(self._batch(sheet, begin, rows, places))
                    begin += len(rows)
            self.bytes_read += split.size_bytes

    def _batch(self, sheet: Sheet, begin: int, rows: Sequence[Sequence[Any]], places: Sequence[int]) -> pa.RecordBatch:
        arrays = []
        for place, field in zip(places, self._schema, strict=True):
            cells = [row[place] if place < len(row) else None for row in rows]
            try:
                arrays.append(column_of(cells, field.type))
            except ValueError as error:
                index, cell = error.args
                raise DataError(
                    f"file {sheet.path}, sheet {sheet.name!r}, cell {sheet.place(begin + index, place)}"
                    f" ({field.name}): {cell!r} is not {field.type}"
                ) from None
        if not arrays:
            return pa.RecordBatch.from_struct_array(pa.nulls(len(rows), pa.struct([])).fill_null({}))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def close(self) -> None:
        """Give the reserved memory back."""
        self._member.close()
