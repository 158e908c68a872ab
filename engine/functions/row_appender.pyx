"""RowAppender: rows that a function returns, taken apart into the columns of its schema as they come.

    tuple, list, Row, NamedTuple          its items, in order
    dict                                  its values, by the schema's names
    an object of a dataclass              its attributes, by the schema's names
    anything else                         the value of the only column, where the schema has one. Not None, which is
                                          likely to be a forgotten return

Of a function of values (``values_only``) whatever it returns is the value of the only column.

    appender.add(value, source)           a row; BadOutputError where it has another shape
    appender.is_full()                    rows should go out: there are ``limit`` of them, or much input was read
    appender.finish()                     RecordBatch; what pyarrow raises where a value is none of its column

Values go straight into Arrow's buffers (value_writer.pyx). Where one waits for pyarrow to convert it, the place of its
input is noted, so that the row can be named if that fails (function_output.py).

Held by: tests/functions/test_row_appender.py
"""

cimport cython
from cpython.dict cimport PyDict_Check, PyDict_GetItem
from cpython.list cimport PyList_Check, PyList_GET_ITEM
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_Check, PyTuple_GET_ITEM, PyTuple_GET_SIZE
from libc.stdint cimport int32_t, int64_t

import pyarrow as pa

from engine.functions.function_error import BadOutputError, unfit_value
from engine.records.batch_limits import BATCH_BYTES_MAX
from engine.records.plain_types import nullable_schema
from engine.records.value_writer cimport ColumnTarget, add_value
from engine.records.value_writer import array_of

#: bytes of a stream's input after which rows are sent, however few they are
cdef int64_t TAKEN_BYTES_MAX = 8 * BATCH_BYTES_MAX
cdef int64_t TEXT_BYTES_MAX = BATCH_BYTES_MAX


cdef class Place:
    """The place of a row's input."""

    cdef readonly object place

    def __cinit__(self, place):
        self.place = place


@cython.final
cdef class RowAppender:
    """Rows become columns. ``limit``: rows of a batch at most."""

    def __init__(self, schema, limit, values_only=False):
        # what is not nullable is checked as it comes: all columns of the engine are nullable
        self.schema, self.values_only = nullable_schema(schema), values_only
        self.targets = [ColumnTarget(field.with_name("") if values_only else field) for field in schema]
        self.column_count = len(schema)
        self.names = tuple(schema.names)
        self.limit = limit
        self.places = []

    cdef bint is_full(self):
        return self.rows >= self.limit or (self.taken_bytes >= TAKEN_BYTES_MAX and self.rows > 0)

    cdef int add(self, object value, object source) except -1:
        """Add a row; ``source.place`` is the place of its input."""
        cdef ColumnTarget target
        cdef bint is_unfit
        if not self.has_begun:
            for target in self.targets:
                target.begin(self.limit)
            self.has_begun = True
        if self.values_only:
            is_unfit = add_value(<ColumnTarget>PyList_GET_ITEM(self.targets, 0), value, self.rows)
        elif PyTuple_Check(value):
            is_unfit = self.add_items(value)
        elif self.column_count == 1 and type(value) is self.plain_type:
            is_unfit = add_value(<ColumnTarget>PyList_GET_ITEM(self.targets, 0), value, self.rows)
        elif PyDict_Check(value):
            is_unfit = self.add_named(value, True)
        elif PyList_Check(value):
            is_unfit = self.add_items(tuple(value))
        elif type(value) is self.field_type or self.has_fields(value):
            is_unfit = self.add_named(value, False)
        elif self.column_count == 1 and value is not None:
            self.plain_type = type(value)
            is_unfit = add_value(<ColumnTarget>PyList_GET_ITEM(self.targets, 0), value, self.rows)
        else:
            raise BadOutputError(f"returned {type(value).__name__}; expected a tuple, a dict or a row")
        if is_unfit:
            self.places.append((self.rows, source.place))
        self.rows += 1
        return 0

    def append(self, value, place, *, bint check):
        """Add a row whose input is at a place. check: raise BadOutputError now where a value is none of its column."""
        cdef ColumnTarget target
        cdef int64_t row = self.rows
        self.add(value, Place(place))
        if not check or not self.places or self.places[len(self.places) - 1][0] != row:
            return
        for target in self.targets:
            if target.unfit is not None:
                item = target.unfit[len(target.unfit) - 1]
                try:
                    array_of([item], target.field)
                except Exception as unfit:
                    self.rows = row
                    self.places.pop()
                    for each in self.targets:
                        (<ColumnTarget>each).take_back(row)
                    raise unfit_value(item, target.field, unfit) from None

    cdef bint add_items(self, object value) except -1:
        """Add the items of a tuple."""
        cdef Py_ssize_t index
        cdef Py_ssize_t size = PyTuple_GET_SIZE(value)
        cdef bint is_unfit = False
        if size != self.column_count:
            raise BadOutputError(
                f"returned {size} values, the schema has {self.column_count}: {', '.join(self.names)}")
        for index in range(size):
            if add_value(
                    <ColumnTarget>PyList_GET_ITEM(self.targets, index), <object>PyTuple_GET_ITEM(value, index),
                    self.rows):
                is_unfit = True
        return is_unfit

    cdef bint add_named(self, object value, bint is_dict) except -1:
        cdef int32_t index
        cdef bint is_unfit = False
        cdef list items = []
        cdef PyObject* found
        if is_dict:
            for name in self.names:
                found = PyDict_GetItem(value, name)
                if found == NULL:
                    break
                items.append(<object>found)
            if len(items) < self.column_count or len(value) != self.column_count:
                raise BadOutputError(
                    f"returned keys {sorted(map(str, value))}, the schema has {list(self.names)}")
        else:
            if type(value) is not self.field_type:
                fields = value.__dataclass_fields__
                if len(fields) != self.column_count or fields.keys() != set(self.names):
                    raise BadOutputError(
                        f"returned {type(value).__name__} with {sorted(fields)}, the schema has {list(self.names)}")
                self.field_type = type(value)
            items = [getattr(value, name) for name in self.names]
        for index in range(self.column_count):
            if (<ColumnTarget>PyList_GET_ITEM(self.targets, index)).add(items[index], self.rows):
                is_unfit = True
        return is_unfit

    cdef bint has_fields(self, object value):
        """Return whether it is an object of a dataclass."""
        return hasattr(type(value), "__dataclass_fields__")

    def finish(self):
        """Return the rows added so far as a batch and begin the next one; ``places`` stay valid until ``forget``."""
        cdef ColumnTarget target
        arrays = [(<ColumnTarget>each).finish(self.rows) for each in self.targets]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        self.rows = 0
        self.taken_bytes = 0
        self.has_begun = False
        if self.places:
            self.places = []
        return batch
