"""FunctionBody: a user's function over Arrow batches; the same code in a worker process and in a task's thread.

    open() ─► run(batches) -> batches of the output schema ─► close()         apply(batch): one batch, kinds by batch

    by batch   map                    one row out for each row in (tuple, dict or row)
               flat_map               any number of rows out for each row in
               filter                 rows for which the function returns true
               map_batches:<format>   one batch or an iterable of them for each batch in (batch_formats.py)
               column:<format>        a value for each row from the values of the arguments: scalar, truth (whether it
                                      is true), or a column from columns (batch_formats.py)
               partition              the batch with a column CHANNEL_COLUMN: function(*key values, channel count)
    as one     map_partition          function(rows) returns an iterable of rows, rows is an iterator over all of them
               reduce                 the same for each group (group_rows.py)
               reduce:<format>        one frame or an iterable of them for each group, which is a frame
               co_group               function(left_rows, right_rows) for each key of two inputs

Input is pulled when the function's iterators want it, output is yielded while input comes: what is held is a batch of
each. A function may stop early or never read. One that catches what went wrong with its input (no memory for the next
batch, say) and goes on has not seen all of it: it fails when it returns.

Whatever the function raises becomes UserFunctionError with the function's name, the user's file and line, and the row
in work. A value that does not fit the declared schema is reported the same way, with its column.

Held by: tests/functions/test_function_runner.py
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import index
from typing import Any, Protocol

import pyarrow as pa

from engine.errors import SpillError
from engine.functions.batch_formats import (
    column_from_format,
    column_to_format,
    from_format,
    is_of_format,
    to_format,
)
from engine.functions.careful_calls import CarefulCalls
from engine.functions.failed_inputs import positions_schema, with_inputs
from engine.functions.function_error import (
    BadOutputError,
    FunctionPlace,
    FunctionStopped,
    UserFunctionError,
    describe_row,
    message_of,
)
from engine.functions.function_output import FunctionOutput
from engine.functions.group_rows import GROUP_START, LEFT, RIGHT, PairedGroups, Room
from engine.functions.row import Row, View, make_row
from engine.functions.row_loop import RowLoop, filter_rows
from engine.functions.row_reader import GroupedRows, RowReader, RowStream
from engine.functions.used_columns import used_columns
from engine.functions.user_function import FunctionContext, close_function, function_of, open_function
from engine.graph.operator_descriptor import PythonOperator
from engine.records.batch_limits import BATCH_ROWS_MAX
from engine.records.kept_rows import kept_rows
from engine.records.value_reader import python_values

#: column with the results of a partition function (int32)
CHANNEL_COLUMN = "__channel"
_TRUTHS = pa.schema([("is_kept", pa.bool_())])
#: kinds whose function reads all rows of the subtask, or groups of them
STREAM_KINDS = ("map_partition", "reduce", "co_group")


class _Source(Protocol):
    """The input of a stream function."""

    @property
    def place(self) -> Sequence[Row | None]:
        """The place of the row that was read last: a sequence of one."""
        ...

    @property
    def error(self) -> BaseException | None:
        """The error that ended an iterator of the function early."""
        ...


class FunctionBody:
    """A function of one kind with its input and output schemas.

    Args:
        operator: kind, name and place of the function.
        value: what the user passed.
        context: what ``open`` gives it.
        folder: where rows are kept that wait for being read; None: the system's folder for such files.
        room: room that these rows have there; None: they are not counted.
    """

    def __init__(
        self,
        operator: PythonOperator,
        value: Any,
        input_schema: pa.Schema,
        output_schema: pa.Schema,
        context: FunctionContext | None = None,
        folder: str | None = None,
        room: Room | None = None,
    ) -> None:
        self._operator = operator
        self._value = value
        self.context = context or FunctionContext()
        self._folder = folder
        self._room = room
        self._kind, _, self._format = operator.kind.partition(":")
        self._place = FunctionPlace(operator)
        function = function_of("filter" if operator.kind == "column:truth" else self._kind, value)
        if function is None:
            raise self._place.error(BadOutputError(f"is no function for {self._kind}"))
        self._function: Callable[..., Any] = function
        self._input_schema = input_schema
        self._columns = self._columns_to_decode()
        #: True if what a filter returns are truths, not the rows that it keeps
        self._gives_truths = operator.kind == "column:truth"
        #: True if the function is called with values, not with a row
        self._by_values = bool(operator.arguments)
        policy = operator.policy
        #: results with the failed rows of their batch; None: failed rows are not collected
        self._collecting = output_schema if policy is not None and policy.is_collecting else None
        made = output_schema if self._collecting is None else positions_schema(output_schema)
        self._output = FunctionOutput(made, self._place, values_only=self._kind == "column")
        #: runner of calls of an async function, open and close; it makes its loop when it is first needed
        self._runner = asyncio.Runner()
        self._careful = policy and CarefulCalls(
            function, policy, self._place, self._output, self.context, self._runner, self._kind
        )
        self._loop = RowLoop(function, self._output.appender, self._kind)
        self._row_count = 0
        self._is_open = False
        #: time that opening it took: of ``open()`` or ``setup=``
        self.opening_us = 0

    def open(self) -> None:
        """Open a rich function."""
        began_ns = time.perf_counter_ns()
        try:
            open_function(self._value, self.context, self._runner)
        except BaseException as error:
            self._runner.close()
            raise self._place.error(error, step="open") from error
        self._is_open = True
        self.opening_us = (time.perf_counter_ns() - began_ns) // 1000

    def close(self) -> None:
        """Close a rich function that was opened; idempotent."""
        was_open, self._is_open = self._is_open, False
        if not was_open:
            return
        try:
            close_function(self._value, self._runner)
        except BaseException as error:
            raise self._place.error(error, step="close") from error
        finally:
            self._runner.close()

    def narrow(self) -> tuple[str, ...]:
        """Read only the columns that the function uses; return their names, none where it may use all.

        And have a filter return booleans: the owner of the rows keeps those for which they are true. Where failures are
        collected, results have the positions of rows.
        """
        self._collecting = None
        if self._kind == "filter":
            self._gives_truths = True
            self._output.schema = _TRUTHS
        names = self._input_schema.names
        if self._columns is None or len(set(self._columns)) == len(names) or len(set(names)) < len(names):
            return ()
        used = sorted(set(self._columns))
        self._columns = [used.index(position) for position in self._columns]
        self._input_schema = pa.schema([self._input_schema.field(position) for position in used])
        return tuple(self._input_schema.names)

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
                rows = RowStream(batches)
                return self._stream(iter([(rows,)]), rows)
            case "reduce":
                groups = GroupedRows(batches, [self._view(())], (GROUP_START,))
                if self._format:
                    return self._framed(groups)
                return self._stream(self._groups(groups), groups)
            case "co_group":
                left, right = (self._view(columns) for columns in self._operator.views)
                pairs = PairedGroups(batches, (left, right), self._folder, self._room)
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
            case "filter" | "column" if self._gives_truths:
                yield pa.RecordBatch.from_arrays([self._filter(handed.pop())], schema=self._output.schema)
            case "column" if self._format != "scalar":
                yield self._made_column(handed.pop())
            case "map" | "flat_map" | "column":
                yield from self._rows_of(handed)
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
        if self._operator.arguments:
            return [names.index(name) for name in self._operator.arguments]
        used = used_columns(self._function, names) if self._kind in ("map", "flat_map", "filter") else None
        if used is None or len(set(names)) < len(names):
            return None
        if used.issuperset(names):
            return None
        return [position for position, name in enumerate(names) if name in used] or [0]

    def _rows_of(self, handed: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the results of a function of one row for the batch in the list."""
        if self._careful:
            return self._careful_rows(handed)
        source = RowReader(handed, self._columns, self._by_values)
        step = self._loop.flat_map if self._kind == "flat_map" else self._loop.map
        return self._looped(lambda: step(source), source)

    def _careful_rows(self, handed: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        assert self._careful
        batch = handed[0]
        columns = self._columns
        if columns is None and self._careful.needs_places:
            columns = list(range(batch.num_columns))
        results = self._careful.batches(RowReader(handed, columns, self._by_values))
        if self._collecting is None:
            return results
        return (full for result in results for full in with_inputs(result, batch, self._collecting))

    def _looped(self, step: Callable[[], bool], source: RowReader | _Source) -> Iterator[pa.RecordBatch]:
        """Yield the results of a loop, step by step while it has more."""
        is_full = True
        try:
            while is_full:
                is_full = step()
                if self._output.appender.rows:
                    yield self._output.take()
        except GeneratorExit:
            self._unwind(source)
            raise
        except (FunctionStopped, UserFunctionError):
            raise
        except BaseException as error:
            full = getattr(source, "error", None)
            if isinstance(full, SpillError):  # of a disk: it is nothing to the function
                raise full from None
            raise self._place.error_at(error, source.place) from error

    def _unwind(self, source: RowReader | _Source) -> None:
        try:
            self._loop.stop()
        except BaseException as error:
            raise self._place.error_at(error, source.place) from error

    def _filter(self, batch: pa.RecordBatch) -> pa.Array:
        source = RowReader([batch], self._columns, self._by_values)
        try:
            return filter_rows(self._function, source)
        except BaseException as error:
            raise self._place.error_at(error, source.place) from error

    def _made_column(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the values that a function of whole columns gives for a batch."""
        rows = f"rows {self._row_count} to {self._row_count + batch.num_rows - 1} of this subtask"
        try:
            value = self._function(*(column_to_format(column, self._format) for column in batch.columns))
        except FunctionStopped:
            raise
        except BaseException as error:
            raise self._place.error(error, rows) from error
        try:
            column = column_from_format(value, self._format, self._output.schema.field(0), batch.num_rows)
        except Exception as error:
            raise self._place.error(BadOutputError(f"returned {message_of(error)}"), rows) from error
        return pa.RecordBatch.from_arrays([column], schema=self._output.schema)

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
            raise self._place.error_at(error, (make_row(keys, values),)) from error
        return channels

    def _framed(self, groups: GroupedRows) -> Iterator[pa.RecordBatch]:
        """Yield the results of a function of whole groups, each a frame."""
        is_empty = True
        while groups.next_group():
            is_empty = False
            group = pa.concat_batches(list(groups.batches(0)))
            first = group.slice(0, 1).select(list(self._operator.keys)).to_pylist()
            yield from self._map_batches(group, f"the group of {describe_row(first[0])}" if first[0] else "all rows")
            del group
        if is_empty and not self._operator.keys:
            yield from self._map_batches(pa.RecordBatch.from_pylist([], self._input_schema), "no rows")

    def _map_batches(self, batch: pa.RecordBatch, rows: str = "") -> Iterator[pa.RecordBatch]:
        rows = rows or f"rows {self._row_count} to {self._row_count + batch.num_rows - 1} of this subtask"
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
        """Yield the results of the function for the batch in the list."""
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

    def _stream(self, calls: Iterator[tuple[Iterator[Row], ...]], source: _Source) -> Iterator[pa.RecordBatch]:
        """Yield the results of calling the function with each of ``calls``."""
        return self._looped(lambda: self._loop.run(calls, source), source)

    def _weighed(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # A few wide rows among many narrow ones: what is returned is likely to be as wide as what was read.
        for batch in batches:
            self._output.appender.taken_bytes += batch.nbytes
            handed = [batch]
            del batch
            yield handed.pop()


def _kept(handed: list[pa.RecordBatch], mask: pa.Array) -> pa.RecordBatch:
    """Return the rows of the batch in the list that the mask keeps; all of them are the batch itself."""
    return kept_rows(handed.pop(), mask)
