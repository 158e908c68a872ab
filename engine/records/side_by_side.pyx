"""SideBySide: columns of batches of the same rows as one batch, by reference.

    join = SideBySide(names)        the order of the columns; (): as they come
    join.of([batch, ...])           a batch, which refers to these
    chosen_columns(batch, places, schema)       some columns of one batch

What follows from the schemas of the batches is kept, since most batches have those of the ones before.

Held by: tests/records/test_side_by_side.py
"""

cimport cython
from libc.stdint cimport int32_t

import pyarrow as pa

from engine.records.batch_builder cimport BatchBuilder
from engine.records.opened_batch cimport OpenedBatch, is_noted, opened_batch


def chosen_columns(batch not None, list places not None, schema not None):
    """Return columns of a batch, by number, as a batch of their schema, by reference.

    None: the batch was not made by a builder, and Arrow does it as fast.
    """
    cdef OpenedBatch opened
    cdef BatchBuilder builder
    cdef int32_t index = 0
    if not is_noted(batch):
        return None
    opened = opened_batch(batch)
    builder = BatchBuilder.begin(schema, opened.array.length)
    for place in places:
        builder.set_child(index, opened, place, 0)
        index += 1
    return builder.build_like(batch)


@cython.final
cdef class SideBySide:
    """Columns of batches in some order; of several with a name the last one. Thread: one at a time."""

    def __init__(self, names=()):
        self._names = list(names)
        self._schemas = []

    def of(self, list batches not None):
        """Return the columns of batches as one. Raises: pa.ArrowInvalid (they have different numbers of rows)."""
        cdef int32_t index = 0
        cdef BatchBuilder builder
        schemas = [batch.schema for batch in batches]
        self.settle(schemas)
        rows = [batch.num_rows for batch in batches]
        if rows.count(rows[0]) < len(rows):
            raise pa.ArrowInvalid("its columns do not have the same number of rows")
        builder = BatchBuilder.begin(self.schema, rows[0])
        opened = [opened_batch(batch) for batch in batches]
        for batch, column in self.places:
            builder.set_child(index, opened[batch], column, 0)
            index += 1
        return builder.build()

    cdef int settle(self, list schemas) except -1:
        cdef Py_ssize_t index
        cdef bint are_same = len(schemas) == len(self._schemas)
        for index in range(len(schemas) if are_same else 0):    # they are the same objects but for the first time
            are_same = are_same and schemas[index] is self._schemas[index]
        if are_same:
            return 0
        if schemas == self._schemas:
            self._schemas = schemas
            return 0
        found = {name: (batch, column) for batch, schema in enumerate(schemas)
                 for column, name in enumerate(schema.names)}
        names = self._names or list(found)
        self.places = [found[name] for name in names]
        types = [schemas[batch].field(column).type for batch, column in self.places]
        self.schema = pa.schema([pa.field(name, data_type) for name, data_type in zip(names, types)])
        self._schemas = schemas
        return 0
