"""Data files of a table that are written anew with the rows of them that change.

    patch_runs(schema, spec)                 rows in the order of their files
    change_rows(schema, path, spec)          the writer of a run (``engine.parquet.patched_file``)

Columns are copied where the file has all of them with the ids, names and types of the table. The new file has the
partition, the specification and, unless a column of it changes, the sort order of the former one: the commit takes
these from the table. A manifest counts NaN; of columns that are copied the commit adds what has changed.

Held by: tests/iceberg_tables/test_patched_files.py
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from functools import partial
from typing import Any, Final

import msgspec
import pyarrow as pa

from engine.errors import DataError
from engine.graph.source_spec import FormatSource, SinkSpec, SourceSplit
from engine.iceberg_tables.arrow_types import field_id, to_arrow
from engine.iceberg_tables.file_statistics import Collector, encoded_statistics
from engine.iceberg_tables.iceberg_reader import IcebergReader
from engine.iceberg_tables.iceberg_writer import IcebergRuns, IcebergWriter
from engine.iceberg_tables.planned_files import data_path
from engine.iceberg_tables.table_properties import codec_of
from engine.iceberg_tables.write_options import Rewrite, WriteOptions, options_of
from engine.parquet.footers import arrow_schema, read_footer
from engine.parquet.patched_file import ChangeRows, Patched, PatchedFile, PatchRuns
from engine.parquet.spliced_file import SplicedFile
from engine.parquet.writer import ParquetWriter
from engine.records.arrow_functions import pc

_CALL: Final = "merge_into"


def patch_runs(schema: pa.Schema, spec: SinkSpec) -> PatchRuns:
    """Return the division of changes by their files, and of new rows by their partitions."""
    hidden = spec.partition_by[1:]
    return PatchRuns(schema, partial(IcebergRuns, keys=hidden) if hidden else None)


def change_rows(schema: pa.Schema, path: str, spec: SinkSpec) -> ChangeRows:
    """Return the writer of a run."""
    options = options_of(spec)

    def patched(number: int) -> PatchedFile:
        assert options.rewrite is not None
        form = IcebergForm(options, options.rewrite, number)
        return PatchedFile(data_path(form.former), path, form)

    new_bytes = 0 if options.rewrite is None else options.rewrite.new_bytes
    new = msgspec.structs.replace(spec, target_file_bytes=new_bytes)
    return ChangeRows(patched, lambda: IcebergWriter(new, schema, path))


class IcebergForm:
    """The table's part of a file (``PatchForm``)."""

    def __init__(self, options: WriteOptions, rewrite: Rewrite, number: int) -> None:
        self.schema: pa.Schema = pa.ipc.read_schema(pa.py_buffer(options.schema_ipc))
        self.columns: Collection[str] = frozenset(rewrite.patched_columns)
        self.deletes = rewrite.patch_deletes
        #: the file, as manifests name it
        self.former = rewrite.patched_files[number]
        self._constants = rewrite.constants[number] if rewrite.constants else {}
        self._options = options
        floats = [field for field in self.schema if pa.types.is_floating(field.type)]
        self._nans = {field.name: 0 for field in floats}

    def stored(self, name: str, values: pa.Array) -> pa.Array:
        """Return values as files have them: UUIDs as such."""
        return pa.ExtensionArray.from_storage(pa.uuid(), values) if name in self._options.uuids else values

    def can_copy(self, file: SplicedFile, read: Collection[str]) -> bool:
        """Return whether the file has the table's columns, with its ids: another width would be one of bounds."""
        found = arrow_schema(file.former)
        return not file.differing and all(_ids(found.field(field.name)) == _ids(field) for field in self.schema)

    def rows(self, former: str) -> _StoredRows:
        """Return the rows of the former file."""
        return _StoredRows(former, self._constants, self._options, self.schema)

    def writer(self, path: str) -> ParquetWriter:
        """Return the writer of all rows."""
        return ParquetWriter(self.schema, path, *codec_of(self._options.properties, _CALL))

    def note(self, name: str, values: pa.Array, before: pa.Array | None) -> None:
        """Count NaN, and refuse null where the table has none."""
        if name in self._options.required and values.null_count:
            raise DataError(f"{_CALL}: column {name!r} is required, and a row has null there; fill it, or filter")
        if name in self._nans:
            self._nans[name] += _nan_count(values) - (0 if before is None else _nan_count(before))

    def note_copied(self, name: str) -> None:
        """Note nothing: what is copied has as many NaN as before."""

    def report(self, found: Patched) -> str:
        """Return the statistics of the file for its manifest."""
        ids = {field.name: field_id(field) for field in self.schema}
        nans = {number: count for name, count in self._nans.items() if (number := ids[name]) is not None}
        told = Collector(self._options).statistics(found.footer, {} if found.is_copied else nans)
        return encoded_statistics(
            msgspec.structs.replace(
                told,
                counts=found.counts,
                replaces=self.former,
                is_ambiguous=found.is_ambiguous,
                nan_changes=nans if found.is_copied else {},
            )
        )


def _nan_count(values: pa.Array) -> int:
    return pc.sum(pc.is_nan(values)).as_py() or 0


def _ids(field: pa.Field) -> list[int | None]:
    """Return the ids of a field and of all within it."""
    inner = [field.type.field(index) for index in range(field.type.num_fields)]
    return [field_id(field), *(number for each in inner for number in _ids(each))]


class _StoredRows:
    """The rows of a file, as the table has them."""

    def __init__(self, former: str, constants: dict[str, str | None], options: WriteOptions, schema: pa.Schema) -> None:
        from pyiceberg.schema import Schema

        self._schema, self._uuids = schema, options.uuids
        read = to_arrow(Schema.model_validate_json(options.schema_json), _CALL)
        footer = read_footer(former)
        size = max(1, sum(footer.row_group(group).total_byte_size for group in range(footer.num_row_groups)))
        split = SourceSplit(former, 0, 1 << 62, size)
        facts = {former: {"constants": constants}} if constants else {}
        mapping = options.properties.get("schema.name-mapping.default", "")
        known: dict[str, Any] = {"files": json.dumps(facts), "mapping": mapping}
        spec = FormatSource(
            "iceberg", (former,), (split,), read.serialize().to_pybytes(), tuple(schema.names), options=known
        )
        self._reader = IcebergReader(spec, (split,))

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield batches."""
        for batch in self._reader:
            arrays = [self._array(field, batch.column(field.name)) for field in self._schema]
            yield pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _array(self, field: pa.Field, array: pa.Array) -> pa.Array:
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        return pa.ExtensionArray.from_storage(pa.uuid(), array) if field.name in self._uuids else array

    def close(self) -> None:
        """Close the file."""
        self._reader.close()
