"""FunctionBody: a user's function over Arrow batches; the same code in a worker process and in a task's thread.

    apply(batch) -> batches of the output schema, at most BATCH_ROWS_MAX rows each

    map       one row out for each row in (tuple, dict or row)
    flat_map  any number of rows out for each row in
    filter    rows for which the function returns true
    map_batches:<format>   one batch or an iterable of them for each batch in (batch_formats.py)
    partition              the batch with a column CHANNEL_COLUMN: function(*key values, channel count) of each row

Whatever the function raises becomes UserFunctionError with the function's name, the user's file and line, and the row
at hand. A value that does not fit the declared schema is reported the same way, with its column.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import index
from typing import Any

import pyarrow as pa

from engine.errors import JobExecutionError
from engine.functions.batch_formats import from_format, is_of_format, to_format
from engine.functions.row import Row, row_class
from engine.graph.operator_descriptor import PythonOperator

BATCH_ROWS_MAX = 8192
#: the column that a partition function's results become (int32)
CHANNEL_COLUMN = "__channel"
_ROW_TEXT_MAX = 300


class UserFunctionError(JobExecutionError):
    """A user's function failed; the fields say what, where and on which row."""

    def __init__(
        self,
        type_name: str,
        message: str,
        function_name: str = "",
        file: str = "",
        line: int = 0,
        row: str = "",
        details: str = "",
    ) -> None:
        super().__init__(message, details=details)
        self.type_name = type_name
        self.message = message
        self.function_name = function_name
        self.file = file
        self.line = line
        self.row = row


class _BadOutputError(Exception):
    """What the function returned does not fit the output schema."""


def describe_row(row: object) -> str:
    """Return a row as text of bounded length."""
    text = repr(row)
    return text if len(text) <= _ROW_TEXT_MAX else f"{text[:_ROW_TEXT_MAX]}..."


def _to_array(values: Sequence[Any], field: pa.Field) -> pa.Array:
    """Return values as an array of the field's type; a fraction is no integer, although Arrow would cut it off."""
    if pa.types.is_integer(field.type) and any(type(value) is float and not value.is_integer() for value in values):
        raise _BadOutputError(f"a fraction for column {field.name!r} of type {field.type}")
    return pa.array(values, field.type, from_pandas=False)


def _message_of(error: BaseException) -> str:
    """Return an exception's text, also of one whose ``__str__`` fails: it is the user's code."""
    try:
        return str(error)
    except Exception as failure:
        return f"(its text cannot be made: {type(failure).__name__})"


class FunctionBody:
    """A function of one kind with its input and output schemas."""

    def __init__(
        self, operator: PythonOperator, function: Callable[..., Any], input_schema: pa.Schema, output_schema: pa.Schema
    ) -> None:
        self._operator = operator
        self._function = function
        self._name = operator.function_name
        self._file = operator.file
        self._line = operator.line
        self._output_schema = output_schema
        self._output_names = tuple(output_schema.names)
        self._make_row = row_class(tuple(input_schema.names))
        self._rows_out: list[Sequence[Any]] = []
        kind, _, self._format = operator.kind.partition(":")
        self._apply = {
            "map": self._map,
            "flat_map": self._flat_map,
            "filter": self._filter,
            "map_batches": self._map_batches,
            "partition": self._partition,
        }[kind]

    def apply(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the results of one batch."""
        if self._format or self._operator.kind == "partition":
            return self._apply(batch, ())
        columns = [column.to_pylist() for column in batch.columns]
        make_row = self._make_row
        rows = map(make_row, zip(*columns, strict=True)) if columns else (make_row(()) for _ in range(batch.num_rows))
        return self._apply(batch, rows)

    def _map(self, _batch: pa.RecordBatch, rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
        function = self._function
        rows_in: list[Row] = []
        values: list[Any] = []
        row: Row | None = None
        try:
            for row in rows:
                values.append(function(row))
                rows_in.append(row)
        except BaseException as error:
            raise self._user_error(error, row) from error
        yield self._to_batch(values, rows_in)

    def _flat_map(self, _batch: pa.RecordBatch, rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
        function = self._function
        values: list[Any] = []
        rows_in: list[Row] = []
        for row in rows:
            iterator = self._iterate(function, row)
            for value in iterator:
                values.append(value)
                rows_in.append(row)
                if len(values) == BATCH_ROWS_MAX:
                    yield self._to_batch(values, rows_in)
                    values, rows_in = [], []
        if values:
            yield self._to_batch(values, rows_in)

    def _iterate(self, function: Callable[[Row], Any], row: Row) -> Iterator[Any]:
        try:
            result = function(row)
            if isinstance(result, str | bytes) or not isinstance(result, Iterable):
                raise _BadOutputError(f"flat_map must return an iterable of rows, not {type(result).__name__}")
            yield from result
        except GeneratorExit:
            raise
        except BaseException as error:
            raise self._user_error(error, row) from error

    def _filter(self, batch: pa.RecordBatch, rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
        function = self._function
        row: Row | None = None
        mask: list[bool] = []
        try:
            for row in rows:
                mask.append(bool(function(row)))
        except BaseException as error:
            raise self._user_error(error, row) from error
        yield batch.filter(pa.array(mask, pa.bool_()))

    def _partition(self, batch: pa.RecordBatch, _rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
        function, keys, count = self._function, self._operator.keys, self._operator.channel_count
        make_row = row_class(keys)
        channels: list[int] = []
        values: tuple[Any, ...] | None = None
        try:
            for values in zip(*(batch.column(key).to_pylist() for key in keys), strict=True):
                channel = function(*values, count)
                if not hasattr(channel, "__index__") or not 0 <= channel < count:
                    raise _BadOutputError(f"returned channel {describe_row(channel)}; expected 0 to {count - 1}")
                channels.append(index(channel))
        except BaseException as error:
            raise self._user_error(error, None if values is None else make_row(values)) from error
        columns = [*batch.columns, pa.array(channels, pa.int32())]
        yield pa.RecordBatch.from_arrays(columns, schema=self._output_schema)

    def _map_batches(self, batch: pa.RecordBatch, _rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
        for value in self._batches_of(batch):
            try:
                result = from_format(value, self._format, self._output_schema)
            except Exception as error:
                raise self._user_error(_BadOutputError(f"returned {_message_of(error)}"), None) from error
            for start in range(0, result.num_rows, BATCH_ROWS_MAX):
                yield result.slice(start, BATCH_ROWS_MAX)

    def _batches_of(self, batch: pa.RecordBatch) -> Iterator[Any]:
        try:
            result = self._function(to_format(batch, self._format))
            if (
                is_of_format(result, self._format)
                or isinstance(result, str | bytes)
                or not isinstance(result, Iterable)
            ):
                yield result
            else:
                yield from result
        except GeneratorExit:
            raise
        except BaseException as error:
            raise self._user_error(error, None) from error

    def _to_batch(self, values: list[Any], rows_in: list[Row]) -> pa.RecordBatch:
        """Turn returned rows into a batch; find the guilty one where that fails."""
        try:
            records = self._as_tuples(values)
            columns = list(zip(*records, strict=True)) if records else [()] * len(self._output_names)
            arrays = [_to_array(column, field) for column, field in zip(columns, self._output_schema, strict=True)]
            return pa.RecordBatch.from_arrays(arrays, schema=self._output_schema)
        except Exception as error:
            raise self._find_bad_output(values, rows_in, error) from error

    def _as_tuples(self, values: list[Any]) -> list[Sequence[Any]]:
        width = len(self._output_names)
        if all(type(value) is tuple and len(value) == width for value in values):
            return values
        return [self._as_tuple(value) for value in values]

    def _as_tuple(self, value: Any) -> Sequence[Any]:
        names = self._output_names
        if isinstance(value, dict):
            if value.keys() != set(names):
                raise _BadOutputError(f"returned keys {sorted(map(str, value))}, the schema has {list(names)}")
            return [value[name] for name in names]
        if isinstance(value, tuple | list):
            if len(value) != len(names):
                raise _BadOutputError(f"returned {len(value)} values, the schema has {len(names)}: {', '.join(names)}")
            return value
        raise _BadOutputError(f"returned {type(value).__name__}; expected a tuple, a dict or a row")

    def _find_bad_output(self, values: list[Any], rows_in: list[Row], error: Exception) -> UserFunctionError:
        for value, row in zip(values, rows_in, strict=True):
            try:
                record = self._as_tuple(value)
            except _BadOutputError as bad:
                return self._user_error(bad, row)
            for item, field in zip(record, self._output_schema, strict=True):
                try:
                    _to_array([item], field)
                except Exception:
                    what = f"{describe_row(item)} ({type(item).__name__})"
                    text = f"returned {what} for column {field.name!r} of type {field.type}"
                    return self._user_error(_BadOutputError(text), row)
        return self._user_error(error, None)

    def _user_error(self, error: BaseException, row: Row | None) -> UserFunctionError:
        """Return what a person needs to know of a failure in the user's code."""
        if isinstance(error, UserFunctionError):
            return error
        own_file = __file__
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != own_file]
        inside = [frame for frame in frames if frame.filename == self._file] or frames
        place = inside[-1] if inside else None
        return UserFunctionError(
            "TypeError" if isinstance(error, _BadOutputError) else type(error).__name__,
            f"{self._name} {error}" if isinstance(error, _BadOutputError) else _message_of(error),
            self._name,
            place.filename if place else self._file,
            (place.lineno or 0) if place else self._line,
            "" if row is None else describe_row(row),
            "".join(traceback.format_exception(error)),
        )
