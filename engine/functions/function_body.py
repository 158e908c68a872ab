"""FunctionBody: a user's function over Arrow batches; the same code in a worker process and in a task's thread.

    open() ─► run(batches) -> batches of the output schema ─► close()         apply(batch): one batch, kinds by batch

    by batch   map                    one row out for each row in (tuple, dict or row)
               flat_map               any number of rows out for each row in
               filter                 rows for which the function returns true
               map_batches:<format>   one batch or an iterable of them for each batch in (batch_formats.py)
               partition              the batch with a column CHANNEL_COLUMN: function(*key values, channel count)
    as one     map_partition          function(rows) returns an iterable of rows, rows is an iterator over all of them
               reduce                 the same for each group (group_rows.py)
               co_group               function(left_rows, right_rows) for each key of two inputs

Input is pulled when the function's iterators want it, output is yielded while input comes: what is held is a batch of
each. A function may stop early or never read. One that catches what went wrong with its input (no memory for the next
batch, say) and goes on has not seen all of it: it fails when it returns.

Whatever the function raises becomes UserFunctionError with the function's name, the user's file and line, and the row
at hand. A value that does not fit the declared schema is reported the same way, with its column.

Held by: tests/functions/test_function_runner.py
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from operator import index
from typing import Any, Protocol

import pyarrow as pa

from engine.functions.batch_formats import from_format, is_of_format, to_format
from engine.functions.function_error import BadOutputError, FunctionPlace, FunctionStopped, describe_row, message_of
from engine.functions.function_output import FunctionOutput
from engine.functions.group_rows import LEFT, RIGHT, GroupedRows, PairedGroups, View
from engine.functions.row import Row, RowsAt, make_row, rows_of, taken_rows
from engine.functions.used_columns import used_columns
from engine.functions.user_function import FunctionContext, close_function, function_of, open_function
from engine.graph.operator_descriptor import PythonOperator
from engine.records.batch_limits import BATCH_BYTES_MAX, BATCH_ROWS_MAX
from engine.records.kept_rows import kept_rows
from engine.records.python_values import python_values

#: the column that a partition function's results become (int32)
CHANNEL_COLUMN = "__channel"
#: kinds whose function sees all rows of the subtask, or groups of them
STREAM_KINDS = ("map_partition", "reduce", "co_group")
#: of a stream's input, after which rows go out however few they are
_TAKEN_BYTES_MAX = 8 * BATCH_BYTES_MAX


class _HasCurrent(Protocol):
    """What a stream function reads from."""

    @property
    def current(self) -> Row | None:
        """The row read last."""
        ...


class _RowStream:
    """All rows of a subtask."""

    current: Row | None = None

    def rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Row]:
        for row in taken_rows(batches):
            self.current = row
            yield row


class _RowAt:
    """One row of a batch."""

    def __init__(self, rows: Sequence[Row], position: int) -> None:
        self._rows = rows
        self._position = position

    @property
    def current(self) -> Row:
        """The row, whole."""
        return self._rows[self._position]


class FunctionBody:
    """A function of one kind with its input and output schemas.

    Args:
        operator: kind, name and place of the function.
        value: what the user passed.
        context: what ``open`` gives it.
        folder: where rows are kept that wait for being read; None: the system's folder for such files.
    """

    def __init__(
        self,
        operator: PythonOperator,
        value: Any,
        input_schema: pa.Schema,
        output_schema: pa.Schema,
        context: FunctionContext | None = None,
        folder: str | None = None,
    ) -> None:
        self._operator = operator
        self._value = value
        self.context = context or FunctionContext()
        self._folder = folder
        self._kind, _, self._format = operator.kind.partition(":")
        self._place = FunctionPlace(operator)
        function = function_of(self._kind, value)
        if function is None:
            raise self._place.error(BadOutputError(f"is no function for {self._kind}"))
        self._function: Callable[..., Any] = function
        self._input_schema = input_schema
        self._columns = self._columns_to_decode()
        self._output = FunctionOutput(output_schema, self._place)
        self._row_count = 0
        #: taken from the input since rows went out the last time
        self._taken_bytes = 0
        self._is_open = False
        #: what ended an iterator of the function before its rows
        self._input_error: BaseException | None = None

    def open(self) -> None:
        """Open a rich function."""
        try:
            open_function(self._value, self.context)
        except BaseException as error:
            raise self._place.error(error, step="open") from error
        self._is_open = True

    def close(self) -> None:
        """Close a rich function that was opened; idempotent."""
        was_open, self._is_open = self._is_open, False
        if not was_open:
            return
        try:
            close_function(self._value)
        except BaseException as error:
            raise self._place.error(error, step="close") from error

    @property
    def is_stream(self) -> bool:
        """Whether the function takes its input as one, so that ``apply`` is not for it."""
        return self._kind in STREAM_KINDS

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the results of all batches, taken when they are needed."""
        if self.is_stream:
            batches = self._weighed(batches)
        match self._kind:
            case "map_partition":
                stream = _RowStream()
                return self._stream(iter([(stream.rows(batches),)]), stream)
            case "reduce":
                groups = GroupedRows(batches, [self._view(())])
                return self._stream(self._groups(groups), groups)
            case "co_group":
                left, right = (self._view(columns) for columns in self._operator.views)
                pairs = PairedGroups(batches, (left, right), self._folder)
                return self._stream(self._pairs(pairs), pairs)
            case _:
                return self._each(batches)

    def _each(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            handed = [batch]
            del batch  # a very wide one is not kept while its result is on its way
            yield from self.apply(handed.pop())

    def apply(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the results of one batch."""
        row_count = batch.num_rows
        handed = [batch]
        del batch
        match self._kind:
            case "map":
                yield from self._map(handed.pop())
            case "flat_map":
                yield from self._flat_map(handed.pop())
            case "filter":
                yield _kept(handed, self._filter(handed[0]))
            case "partition":
                channels = pa.array(self._channels(handed[0]), pa.int32())
                yield pa.RecordBatch.from_arrays([*handed.pop().columns, channels], schema=self._output.schema)
            case _:
                yield from self._map_batches(handed.pop())
        self._row_count += row_count

    # by batch --------------------------------------------------------------------------------------------------

    def _columns_to_decode(self) -> list[int] | None:
        """Return the columns that the function uses of a row, at least one; None for all."""
        names = self._input_schema.names
        used = used_columns(self._function, names) if self._kind in ("map", "flat_map", "filter") else None
        if used is None or len(set(names)) < len(names):
            return None
        if used.issuperset(names):
            return None
        return [position for position, name in enumerate(names) if name in used] or [0]

    def _rows(self, batch: pa.RecordBatch) -> tuple[list[Row], pa.RecordBatch | None]:
        """Return the rows of a batch as far as the function sees them, and the batch if they are not whole."""
        if self._columns is None:
            return list(rows_of(batch)), None
        return list(rows_of(batch.select(self._columns))), batch

    def _map(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        rows, whole = self._rows(batch)
        del batch  # what is very wide is not kept longer than it is needed, neither batch nor rows nor results
        rows.reverse()
        start = 0
        while rows:
            part = rows[: -self._output.limit - 1 : -1]
            del rows[-len(part) :]
            places = part if whole is None else RowsAt(whole, range(start, start + len(part)))
            start += len(part)
            results = [self._output.batch(self._mapped(part, places), places)]
            del part, places
            if not rows:
                whole = None
            yield results.pop()

    def _mapped(self, rows: Sequence[Row], places: Sequence[Row]) -> list[Any]:
        function = self._function
        values: list[Any] = []
        try:
            for row in rows:
                values.append(function(row))  # noqa: PERF401 - the place of a failure is told by what is there
        except BaseException as error:
            raise self._error(error, places[len(values)]) from error
        return values

    def _flat_map(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        function = self._function
        rows, whole = self._rows(batch)
        del batch
        places: Sequence[Row] = rows if whole is None else RowsAt(whole, range(len(rows)))
        values: list[Any] = []
        positions: list[int] = []
        for position, row in enumerate(rows):
            source = _RowAt(places, position)
            for value in self._iterate(source, function, row):
                values.append(value)
                positions.append(position)
                if len(values) >= self._output.limit:
                    results = [self._output.batch(values, map(places.__getitem__, positions))]
                    values, positions = [], []
                    del value
                    yield results.pop()
        if values:
            yield self._output.batch(values, map(places.__getitem__, positions))

    def _filter(self, batch: pa.RecordBatch) -> pa.Array:
        function = self._function
        mask: list[bool] = []
        try:
            for row in self._rows(batch)[0]:
                mask.append(bool(function(row)))  # noqa: PERF401 - the place of a failure is told by what is there
        except BaseException as error:
            raise self._error(error, RowsAt(batch, range(batch.num_rows))[len(mask)]) from error
        return pa.array(mask, pa.bool_())

    def _channels(self, batch: pa.RecordBatch) -> list[int]:
        function, keys, count = self._function, self._operator.keys, self._operator.channel_count
        channels: list[int] = []
        values: tuple[Any, ...] = ()
        try:
            for values in zip(*(python_values(key, batch.column(key)) for key in keys), strict=True):
                channel = function(*values, count)
                if not hasattr(channel, "__index__") or not 0 <= channel < count:
                    raise BadOutputError(f"returned channel {describe_row(channel)}; expected 0 to {count - 1}")
                channels.append(index(channel))
        except BaseException as error:
            raise self._error(error, make_row(keys, values)) from error
        return channels

    def _map_batches(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        rows = f"rows {self._row_count} to {self._row_count + batch.num_rows - 1} of this subtask"
        handed = [batch]
        del batch  # what is very wide is not kept longer than it is needed
        for value in self._batches_of(handed, rows):
            try:
                result = from_format(value, self._format, self._output.schema)
            except Exception as error:
                raise self._place.error(BadOutputError(f"returned {message_of(error)}"), rows) from error
            del value
            for start in range(0, result.num_rows, BATCH_ROWS_MAX):
                yield result.slice(start, BATCH_ROWS_MAX)
            del result

    def _batches_of(self, handed: list[pa.RecordBatch], rows: str) -> Iterator[Any]:
        """Yield what the function returns for the batch in the list."""
        try:
            result = self._function(to_format(handed.pop(), self._format))
            if (
                is_of_format(result, self._format)
                or isinstance(result, str | bytes)
                or not isinstance(result, Iterable)
            ):
                yield result
            else:
                yield from result
        except (GeneratorExit, FunctionStopped):
            raise
        except BaseException as error:
            raise self._place.error(error, rows) from error

    # as one ----------------------------------------------------------------------------------------------------

    def _view(self, columns: tuple[tuple[str, str], ...]) -> View:
        """Return the view of these (name, column) pairs; of none: all columns under their own names."""
        pairs = columns or tuple((name, name) for name in self._input_schema.names)
        return View(
            tuple(name for name, _ in pairs), tuple(self._input_schema.get_field_index(column) for _, column in pairs)
        )

    def _groups(self, groups: GroupedRows) -> Iterator[tuple[Iterator[Row]]]:
        is_empty = True
        while groups.next_group():
            is_empty = False
            yield (groups.rows(0, groups.number),)
        if is_empty and not self._operator.keys:
            # Without keys there is one group, of nothing if need be.
            yield (iter(()),)

    def _pairs(self, pairs: PairedGroups) -> Iterator[tuple[Iterator[Row], Iterator[Row]]]:
        try:
            while pairs.next_group():
                yield pairs.rows(LEFT), pairs.rows(RIGHT)
        finally:
            pairs.close()

    def _stream(self, calls: Iterator[tuple[Iterator[Row], ...]], source: _HasCurrent) -> Iterator[pa.RecordBatch]:
        """Yield the results of calling the function with each of ``calls``."""
        values: list[Any] = []
        rows_in: list[Row | None] = []
        for arguments in calls:
            for value in self._iterate(source, self._function, *arguments):
                values.append(value)
                rows_in.append(source.current)
                # A few wide rows among many narrow ones: what is returned is likely to be as wide as what was read.
                if len(values) >= self._output.limit or self._taken_bytes >= _TAKEN_BYTES_MAX:
                    self._taken_bytes = 0
                    results = [self._output.batch(values, rows_in)]
                    values, rows_in = [], []
                    del value
                    yield results.pop()
        if values:
            yield self._output.batch(values, rows_in)

    def _weighed(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            self._taken_bytes += batch.nbytes
            handed = [batch]
            del batch
            yield handed.pop()

    def _iterate(self, source: _HasCurrent, function: Callable[..., Any], *arguments: Any) -> Iterator[Any]:
        """Yield what one call returns; ``source`` knows the row at hand."""
        try:
            result = function(*map(self._watched, arguments))
            if isinstance(result, str | bytes | dict) or not isinstance(result, Iterable):
                raise BadOutputError(f"{self._kind} must return an iterable of rows, not {type(result).__name__}")
            yield from result
            if self._input_error is not None:
                raise self._input_error
        except (GeneratorExit, FunctionStopped):
            raise
        except BaseException as error:
            raise self._error(error, source.current) from error

    def _watched(self, argument: Any) -> Any:
        """Return what a function is called with; of an iterator over rows it is remembered how it ended."""
        return self._remembering(argument) if isinstance(argument, Generator) else argument

    def _remembering(self, rows: Generator[Row]) -> Generator[Row]:
        try:
            yield from rows
        except (GeneratorExit, FunctionStopped):
            raise
        except BaseException as error:
            self._input_error = error
            raise

    def _error(self, error: BaseException, row: Row | None) -> Exception:
        return self._place.error(error, "" if row is None else describe_row(row))


def _kept(handed: list[pa.RecordBatch], mask: pa.Array) -> pa.RecordBatch:
    """Return the rows of the batch in the list that the mask keeps; all of them are the batch itself."""
    return kept_rows(handed.pop(), mask)
