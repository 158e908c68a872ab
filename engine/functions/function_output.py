"""FunctionOutput: the rows that a function returns become batches of its schema.

    output.batch(values, rows_in) -> RecordBatch    rows_in[i]: the row at hand when values[i] was returned
    output.limit                                    rows that the next batch should have: one at first, then about
                                                    BATCH_BYTES_MAX of them, whatever a row weighs

A row is a tuple, a list, a dict or a Row. Where a value does not fit its column the guilty row is looked for and named.
A fraction is no integer, although Arrow would cut it off.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

import pyarrow as pa

from engine.functions.function_error import BadOutputError, FunctionPlace, UserFunctionError, describe_row
from engine.records.batch_limits import BATCH_BYTES_MAX, BATCH_ROWS_MAX

#: rows of the first batch, until their weight is known: each may be as large as memory allows for one
FIRST_ROWS = 1
_GROWTH = 8


def to_array(values: Sequence[Any], field: pa.Field) -> pa.Array:
    """Return values as an array of the field's type."""
    if (
        pa.types.is_integer(field.type)
        and float in set(map(type, values))
        and any(type(value) is float and not value.is_integer() for value in values)
    ):
        raise BadOutputError(f"a fraction for column {field.name!r} of type {field.type}")
    return pa.array(values, field.type, from_pandas=False)


class FunctionOutput:
    """Makes batches of one schema."""

    def __init__(self, schema: pa.Schema, place: FunctionPlace) -> None:
        self.schema = schema
        self._place = place
        self._names = tuple(schema.names)
        self.limit = FIRST_ROWS

    def batch(self, values: list[Any], rows_in: Iterable[object]) -> pa.RecordBatch:
        """Turn returned rows into a batch; UserFunctionError with the guilty one where that fails."""
        try:
            records = self._as_tuples(values)
            # Not zip(*records): an iterator for each row is what the garbage collector would be busy with.
            columns = (list(map(itemgetter(position), records)) for position in range(len(self._names)))
            arrays = [to_array(column, field) for column, field in zip(columns, self.schema, strict=True)]
            batch = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        except Exception as error:
            raise self._find_bad_output(values, rows_in, error) from error
        by_weight = BATCH_BYTES_MAX * batch.num_rows // max(1, batch.nbytes)
        self.limit = max(1, min(BATCH_ROWS_MAX, max(self.limit, batch.num_rows * _GROWTH), by_weight))
        return batch

    def _as_tuples(self, values: list[Any]) -> list[Sequence[Any]]:
        types = set(map(type, values))
        if all(issubclass(each, tuple) for each in types) and set(map(len, values)) == {len(self._names)}:
            return values if types == {tuple} else list(map(tuple, values))
        return [self._as_tuple(value) for value in values]

    def _as_tuple(self, value: Any) -> Sequence[Any]:
        names = self._names
        if isinstance(value, dict):
            if value.keys() != set(names):
                raise BadOutputError(f"returned keys {sorted(map(str, value))}, the schema has {list(names)}")
            return [value[name] for name in names]
        if isinstance(value, tuple | list):
            if len(value) != len(names):
                raise BadOutputError(f"returned {len(value)} values, the schema has {len(names)}: {', '.join(names)}")
            return tuple(value)
        raise BadOutputError(f"returned {type(value).__name__}; expected a tuple, a dict or a row")

    def _find_bad_output(self, values: list[Any], rows_in: Iterable[object], error: Exception) -> UserFunctionError:
        for value, row in zip(values, rows_in, strict=True):
            text = "" if row is None else describe_row(row)
            try:
                record = self._as_tuple(value)
            except BadOutputError as unfit:
                return self._place.error(unfit, text)
            for item, field in zip(record, self.schema, strict=True):
                try:
                    to_array([item], field)
                except Exception:
                    what = f"{describe_row(item)} ({type(item).__name__})"
                    bad = BadOutputError(f"returned {what} for column {field.name!r} of type {field.type}")
                    return self._place.error(bad, text)
        return self._place.error(error)
