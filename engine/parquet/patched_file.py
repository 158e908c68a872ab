"""Files of tables that are written anew with the rows of them that change.

    PatchRuns      rows in the order of their files ──► a run for each file; new rows: a run for each partition
    are_patched(sizes)    whether files of such sizes are
    ChangeRows     the writer of a run: a PatchedFile, or the table's own writer of new rows
    PatchForm      the part of a table's format in such a file

    PatchedFile    changes of a file in the order of their places
        ├─ _Columns     row groups and columns without a change are copied as they lie there, others changed one by one
        └─ _Rows        all rows are read and written, where a column does not fit in memory, or the table has it
                        otherwise than the file

Columns are what a row group holds in memory at once: the largest one decoded, changed and encoded.

Held by: tests/delta_tables/test_patched_files.py
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Final, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from engine.formats.patched_rows import flags_of, patched
from engine.formats.sink_format import PartitionedRows, SinkWriter
from engine.graph.merge_action import ACTION, COUNTED, DELETED, FILE, ORDER, POSITION, UPDATED
from engine.memory.budget import Kind, Role, process_budget
from engine.parquet.spliced_file import Change, SplicedFile
from engine.parquet.writer import ParquetWriter
from engine.records.arrow_functions import pc
from engine.records.kept_rows import kept_rows
from engine.records.plain_scalars import scalar_of

#: files that may be written anew by their changes: sinks are told the paths of all
_FILES_MAX: Final = 10_000
#: bytes that such files have at least, on the average: each stays a file of its own, and small ones are put together
_FILE_BYTES_MIN: Final = 1 << 20
#: forms of a column in memory at once: decoded, changed, encoded
_FORMS: Final = 3
#: bytes of a value of variable width, of which a footer does not say how long it is
_VALUE_BYTES: Final = 4


def are_patched(sizes: Sequence[int]) -> bool:
    """Return whether files of some sizes are written anew with the rows alone that change, each for itself."""
    return 0 < len(sizes) <= _FILES_MAX and sum(sizes) >= len(sizes) * _FILE_BYTES_MIN


class FileRows(Protocol):
    """The rows of a file in their order."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield batches with the columns of the table, as it stores them."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...


class Patched(NamedTuple):
    """A file that is written."""

    footer: pq.FileMetaData
    #: rows of each action
    counts: dict[str, int]
    #: flag of a row for which there were two changes
    is_ambiguous: bool
    #: flag of columns that were copied, so that the form has not seen all values
    is_copied: bool


class PatchForm(Protocol):
    """The part of a table in a file that is written anew: how values are stored, and notes of them."""

    #: columns of the file
    schema: pa.Schema
    #: columns that change
    columns: Collection[str]
    #: flag of rows that may go
    deletes: bool

    def stored(self, name: str, values: pa.Array) -> pa.Array:
        """Return values of a column as the table stores them. Raises: DataError."""
        ...

    def can_copy(self, file: SplicedFile, read: Collection[str]) -> bool:
        """Return whether the former file has columns as the table has them; ``read``: those that may be encoded."""
        ...

    def rows(self, former: str) -> FileRows:
        """Return the rows of the former file."""
        ...

    def writer(self, path: str) -> ParquetWriter:
        """Return the writer of all rows."""
        ...

    def note(self, name: str, values: pa.Array, before: pa.Array | None) -> None:
        """Look at values that are written; ``before``: those in whose place they are, None where none are counted."""
        ...

    def note_copied(self, name: str) -> None:
        """Note that values of a column are copied."""
        ...

    def report(self, found: Patched) -> str:
        """Return the report of the file to the commit."""
        ...


class PatchRuns:
    """Divides rows by their files, and new ones by their partitions, if there are any."""

    def __init__(self, schema: pa.Schema, partitions: Callable[[pa.Schema], PartitionedRows] | None) -> None:
        self._names = [name for name in schema.names if name != ORDER]
        self.schema = pa.schema([schema.field(name) for name in self._names])
        self._partitions = None if partitions is None else partitions(self.schema)
        if self._partitions is not None:
            self.schema = self._partitions.schema

    def of(self, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield a text and the rows of each run, in order."""
        batch = batch.select(self._names)
        files = batch.column(FILE)
        ends = pc.run_end_encode(files)
        start = 0
        for number, end in zip(ends.values.to_pylist(), ends.run_ends.to_pylist(), strict=True):
            rows = batch.slice(start, end - start)
            start = end
            for folder, found in self._partitions.of(rows) if self._partitions is not None else [("", rows)]:
                yield folder if number is None else patch_run(folder, number), found


def patch_run(folder: str, number: int) -> str:
    """Return the text of the rows of one file that are written anew: of its partition, and its number."""
    return f"{folder}//{number}"


class ChangeRows:
    """The writer of one run. ``patched``: the one of a file, by its number; ``new``: that of new rows."""

    def __init__(self, patched: Callable[[int], PatchedFile], new: Callable[[], SinkWriter]) -> None:
        self._patched, self._new = patched, new
        self._writer: PatchedFile | SinkWriter | None = None

    @property
    def is_full(self) -> bool:
        """Whether what follows belongs into another file, which is so of new rows alone."""
        return self._writer is not None and self._writer.is_full

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows; the first one says of what they are."""
        if self._writer is None:
            number = batch.column(FILE)[0].as_py()
            self._writer = self._new() if number is None else self._patched(number)
        self._writer.write(batch)

    def finish(self) -> tuple[int, int, str]:
        """Complete the file; return (rows, bytes, what is known of it)."""
        assert self._writer is not None, "a run has rows"
        return self._writer.finish()

    def abort(self) -> None:
        """Close and remove the file; does nothing after ``finish``."""
        if self._writer is not None:
            self._writer.abort()


class _Way(Protocol):
    """The way in which a file is written, in steps of rows that follow each other."""

    #: flag of columns that are copied
    is_copied: bool
    #: place of the first row of the next step, and of the first behind it; the same at the end
    start: int
    end: int

    def step(self, changes: pa.RecordBatch | None) -> None:
        """Write the rows of a step with changes of them, in their order."""
        ...

    def finish(self) -> tuple[int, pq.FileMetaData]:
        """Complete the file; return its bytes and its footer."""
        ...

    def abort(self) -> None:
        """Close and remove the file."""
        ...


class PatchedFile:
    """Writes one file in the place of another one."""

    is_full = False

    def __init__(self, former: str, path: str, form: PatchForm) -> None:
        self._form = form
        columns = _Columns(former, path, form)
        self._way: _Way = columns
        if not columns.fits:
            columns.abort()
            self._way = _Rows(former, path, form)
        self._columns = [name for name in form.schema.names if name in form.columns]
        self._held: list[pa.RecordBatch] = []
        self._last = -1
        self._counts = dict.fromkeys(COUNTED.values(), 0)
        self._is_ambiguous = False

    def write(self, batch: pa.RecordBatch) -> None:
        """Change rows."""
        places, actions = batch.column(POSITION), batch.column(ACTION)
        for action, name in COUNTED.items():
            self._counts[name] += pc.sum(pc.equal(actions, scalar_of(action, actions.type))).as_py() or 0
        before = pa.concat_arrays([pa.array([self._last], places.type), places.slice(0, len(places) - 1)])
        self._last = places[-1].as_py()
        # What is wrong is not gone on with: the commit refuses it.
        self._is_ambiguous |= not pc.all(pc.less(before, places)).as_py()
        if self._is_ambiguous:
            return
        values = [self._form.stored(name, batch.column(name)) for name in self._columns]
        changes = pa.RecordBatch.from_arrays([*values, places, actions], names=[*self._columns, POSITION, ACTION])
        while changes.num_rows:
            count = pc.sum(pc.less(changes.column(POSITION), scalar_of(self._way.end, places.type))).as_py()
            if count:
                self._held.append(changes.slice(0, count))
            changes = changes.slice(count)
            if changes.num_rows:
                self._step()

    def _step(self) -> None:
        held, self._held = self._held, []
        assert self._way.start < self._way.end, "a change behind the last row"
        if not held:
            self._way.step(None)
            return
        changes = pa.Table.from_batches(held).combine_chunks().to_batches()[0]
        places = pc.subtract(changes.column(POSITION), scalar_of(self._way.start, pa.int64()))
        self._way.step(changes.set_column(changes.schema.get_field_index(POSITION), POSITION, places))

    def finish(self) -> tuple[int, int, str]:
        """Complete the file; return (rows, bytes, what is known of it)."""
        while self._way.start < self._way.end and not self._is_ambiguous:
            self._step()
        size_bytes, footer = self._way.finish()
        found = Patched(footer, self._counts, self._is_ambiguous, self._way.is_copied)
        return footer.num_rows, size_bytes, self._form.report(found)

    def abort(self) -> None:
        """Close and remove the file; does nothing after ``finish``."""
        self._way.abort()


def _split(changes: pa.RecordBatch, rows: int) -> tuple[pa.RecordBatch, pa.BooleanArray, pa.BooleanArray | None]:
    """Return the updates, where they are, and which rows are left, None: all."""
    is_update = pc.equal(changes.column(ACTION), scalar_of(UPDATED, changes.column(ACTION).type))
    updates = changes if is_update.true_count == len(is_update) else kept_rows(changes, is_update)
    left = None
    if updates.num_rows < changes.num_rows:
        is_deleted = pc.equal(changes.column(ACTION), scalar_of(DELETED, changes.column(ACTION).type))
        left = pc.invert(flags_of(changes.column(POSITION).filter(is_deleted), rows))
    return updates, flags_of(updates.column(POSITION), rows), left


class _Columns:
    """The way column by column."""

    is_copied = True

    def __init__(self, former: str, path: str, form: PatchForm) -> None:
        self._file = SplicedFile(former, path, form.schema)
        self._form = form
        self._footer = self._file.former
        self._group = 0
        self.start, self.end = 0, 0
        self._go_on()
        self._reserved = process_budget.reserve(Kind.ARROW, role=Role.WRITER)
        read = [name for name in form.schema.names if form.deletes or name in form.columns]
        #: flag of a file that can be written so, within memory
        self.fits = (
            set(self._file.columns) == set(form.schema.names)
            and form.can_copy(self._file, read)
            and self._reserved.resize(_FORMS * max(map(self._bytes_of, read), default=0))
        )

    def _bytes_of(self, name: str) -> int:
        """Return the bytes that a column has in memory, of the row group where it has most."""
        field = self._form.schema.field(name)
        width = field.type.bit_width // 8 + 1 if pa.types.is_primitive(field.type) else _VALUE_BYTES
        groups = range(self._footer.num_row_groups)
        return max(
            (max(self._file.bytes_of(group, name), width * self._footer.row_group(group).num_rows) for group in groups),
            default=0,
        )

    def _go_on(self) -> None:
        self.start = self.end
        while self._group < self._footer.num_row_groups and self.end == self.start:
            self.end += self._footer.row_group(self._group).num_rows
            self._group += self.end == self.start

    def step(self, changes: pa.RecordBatch | None) -> None:
        """Write a row group."""
        made: dict[str, Change] = {}
        names = self._form.schema.names
        if changes is not None:
            updates, flags, left = _split(changes, self.end - self.start)
            for name in names:
                values = updates.column(name) if name in self._form.columns and updates.num_rows else None
                if left is not None or values is not None:
                    made[name] = self._change(name, flags, values, left)
        for name in names:
            if name not in made:
                self._form.note_copied(name)
        self._file.write(self._group, made)
        self._group += 1
        self._go_on()

    def _change(
        self, name: str, flags: pa.BooleanArray, values: pa.Array | None, left: pa.BooleanArray | None
    ) -> Change:
        def change(array: pa.Array) -> pa.Array:
            before = array
            if values is not None:
                array = patched(array, flags, values)
            if left is not None:
                array = array.filter(left)
            self._form.note(name, array, before)
            return array

        return change

    def finish(self) -> tuple[int, pq.FileMetaData]:
        """Complete the file."""
        self._reserved.close()
        size_bytes = self._file.finish()
        assert self._file.footer is not None, "not finished"
        return size_bytes, self._file.footer

    def abort(self) -> None:
        """Close and remove the file."""
        self._reserved.close()
        self._file.abort()


class _Rows:
    """The way row by row."""

    is_copied = False

    def __init__(self, former: str, path: str, form: PatchForm) -> None:
        self._form = form
        self._writer = form.writer(path)
        self._reader = form.rows(former)
        self._batches: Iterator[pa.RecordBatch] = iter(self._reader)
        self._batch: pa.RecordBatch | None = None
        self.start, self.end = 0, 0
        self._go_on()

    def _go_on(self) -> None:
        self._batch = next(self._batches, None)
        self.start = self.end
        self.end += 0 if self._batch is None else self._batch.num_rows

    def step(self, changes: pa.RecordBatch | None) -> None:
        """Write a batch."""
        assert self._batch is not None
        schema = self._form.schema
        arrays: list[Any] = list(self._batch.columns)
        left = None
        if changes is not None:
            updates, flags, left = _split(changes, self._batch.num_rows)
            for index, name in enumerate(schema.names):
                if name in self._form.columns:
                    arrays[index] = patched(arrays[index], flags, updates.column(name))
        rows = pa.RecordBatch.from_arrays(arrays, schema=schema)
        if left is not None:
            rows = kept_rows(rows, left)
        for name, values in zip(schema.names, rows.columns, strict=True):
            self._form.note(name, values, None)
        self._writer.write(rows)
        self._go_on()

    def finish(self) -> tuple[int, pq.FileMetaData]:
        """Complete the file."""
        self._reader.close()
        _, size_bytes, _ = self._writer.finish()
        assert self._writer.footer is not None, "not finished"
        return size_bytes, self._writer.footer

    def abort(self) -> None:
        """Close and remove the file."""
        self._reader.close()
        self._writer.abort()
