"""The rows of batches, as functions are given them: made one at a time, natively, from the columns.

    RowReader(batch, positions, ...)     one batch: the loops of map, flat_map, filter (row_loop.pyx) read it
    RowStream(batches)                   an iterator over the rows of all batches: map_partition
    GroupedRows(batches, views, …)       the same, cut into groups of neighbours: reduce, co_group

A row without other references is filled again with the values of the next one, as ``zip`` does with its tuples, and so
are its numbers: a function that looks at its row and lets it go costs no allocation. A ``for`` loop holds its row until
it has the next one: two rows take turns there, unless what they hold is very wide. With the last row of a batch its
columns are let go: what is very wide is not kept while that row is used.

    groups = GroupedRows(batches, views, [GROUP_START])    a column of 0, or what begins at this row
    while groups.next_group():
        for row in groups.rows(0, groups.number): ...     on demand; what is not read is skipped by ``next_group``

A group may be larger than memory: it travels batch by batch. Group boundaries are found by the task, which knows
when keys are equal; nothing here compares values. A view is the columns that rows of one side have, and their names.

``current`` is the row that was read last, whole, for error messages; ``error`` what ended the input before its end.

Held by: tests/functions/test_row_reader.py
Held by: tests/functions/test_group_rows.py
"""

cimport cython
from cpython.exc cimport PyErr_Clear, PyErr_ExceptionMatches
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.tuple cimport PyTuple_New
from libc.stdint cimport int8_t, int32_t, int64_t, uintptr_t
from libc.stdlib cimport calloc, free

from engine.functions.row import RowsAt, row_class
from engine.records.value_reader cimport ColumnValues, ValueColumn, refilled, value_at
from engine.records.wide_rows import WIDE_BYTES

cdef extern from *:
    """
    /* A row with room for so many items, all NULL. */
    static PyObject* drey_new_row(PyObject* row_class, Py_ssize_t size) {
        return ((PyTypeObject*)row_class)->tp_alloc((PyTypeObject*)row_class, size);
    }
    /* Put an item into a row in place of the one that is there; takes the reference. */
    static void drey_set_item(PyObject* row, Py_ssize_t position, PyObject* item) {
        PyObject* former = PyTuple_GET_ITEM(row, position);
        PyTuple_SET_ITEM(row, position, item);
        Py_XDECREF(former);
    }
    static int drey_is_own(PyObject* row) {
    #if PY_VERSION_HEX >= 0x030E0000
        ((PyTupleObject*)row)->ob_hash = -1;  /* a tuple remembers its hash */
    #endif
        return Py_REFCNT(row) == 1;
    }
    """
    object drey_new_row(object row_class, Py_ssize_t size)
    PyObject* drey_item "PyTuple_GET_ITEM"(PyObject* row, Py_ssize_t position)
    void drey_set_item(PyObject* row, Py_ssize_t position, PyObject* item)
    bint drey_is_own(PyObject* row)

#: value_at with its error checked here: a ``try`` around it would cost as much as the value
ctypedef PyObject* (*ReadValue)(const ValueColumn*, int64_t) noexcept


cdef const int8_t* bytes_of(object array) except? NULL:
    """The values of an int8 column without nulls, which the caller keeps."""
    cdef uintptr_t address = array.buffers()[1].address
    cdef int64_t offset = array.offset
    return <const int8_t*>address + offset


@cython.final
cdef class RowReader:
    """The rows of a batch.

    positions: the columns that the function sees of it, None: all, and their places are not asked for. by_values: it is
    given their values as arguments, no row. The batch comes in a list, and is taken out of it.
    """

    def __cinit__(self, list handed, positions=None, bint by_values=False):
        cdef int32_t index
        cdef ColumnValues column
        batch = handed.pop()
        names = batch.schema.names
        columns = batch.columns
        self.size = batch.num_rows
        self.is_narrow = batch.nbytes < WIDE_BYTES
        self.by_values = by_values
        if positions is not None or by_values:
            self.batch = batch  # for messages
        if positions is None:
            positions = range(len(columns))
        self.column_count = len(positions)
        self.row_class = row_class(tuple([names[position] for position in positions]))
        self.owners = [ColumnValues(names[position], columns[position]) for position in positions]
        self.columns = <const ValueColumn**>calloc(<size_t>self.column_count + 1, sizeof(void*))
        if self.columns == NULL:
            raise MemoryError("columns of a batch")
        for index in range(self.column_count):
            column = self.owners[index]
            self.columns[index] = &column.column

    def __dealloc__(self):
        free(self.columns)

    cdef PyObject* value(self, int32_t column, int64_t position) except NULL:
        """Return a new reference to a value."""
        cdef PyObject* found = (<ReadValue>value_at)(self.columns[column], position)
        return found if found != NULL else self.unread(column, position)

    cdef PyObject* unread(self, int32_t column, int64_t position) except NULL:
        """Return a value that was not read: another attempt, or an error with a message."""
        if not PyErr_ExceptionMatches(ValueError) and not PyErr_ExceptionMatches(OverflowError):
            return NULL  # what was raised goes on
        PyErr_Clear()
        try:
            value = (<ColumnValues>self.owners[column]).value(position)
        except BaseException:
            self.row = None  # it has values of two rows
            raise
        Py_INCREF(value)
        return <PyObject*>value

    cdef object row_at(self, int64_t position):
        """Return a row: an earlier one where it has no other references."""
        cdef int32_t index
        cdef PyObject* row = <PyObject*>self.row
        if row == <PyObject*>None or not drey_is_own(row):
            row = self.other_row()
        for index in range(self.column_count):
            if not refilled(drey_item(row, index), self.columns[index], position):
                drey_set_item(row, index, self.value(index, position))
        return <object>row

    cdef PyObject* other_row(self) except NULL:
        """Fill the row before the last one, or a new one: the last one is referenced."""
        row = self.former
        self.former = self.row if self.is_narrow else None
        if row is None or not drey_is_own(<PyObject*>row):
            row = None
            row = drey_new_row(self.row_class, self.column_count)
        self.row = row
        return <PyObject*>self.row

    cdef object next_row(self):
        """Return the row at ``position`` and go on."""
        row = self.row_at(self.position)
        self.go_on()
        return row

    cdef void let_go(self):
        """Drop what is not needed any more when the last row has been made."""
        self.owners = None

    cdef object call(self, object function):
        """Call the function with the row at ``position``, advance, and return the result."""
        if not self.by_values:
            return function(self.next_row())
        if self.column_count != 1:
            return function(*self.next_values())
        only = <object>self.value(0, self.position)
        Py_DECREF(only)
        self.go_on()
        return function(only)

    cdef tuple next_values(self):
        """Return the values of the row at ``position`` and go on."""
        cdef int32_t index
        cdef tuple values = PyTuple_New(self.column_count)
        for index in range(self.column_count):
            drey_set_item(<PyObject*>values, index, self.value(index, self.position))
        self.go_on()
        return values

    cdef int go_on(self) except -1:
        self.position += 1
        if self.position == self.size:
            self.let_go()
        return 0

    def __iter__(self):
        """Yield the function's arguments for each remaining row."""
        while self.position < self.size:
            given = self.next_values() if self.by_values else (self.next_row(),)
            yield self.place, given
            given = None

    @property
    def current(self):
        """The row that was read last, whole; None before the first one."""
        cdef int64_t last = self.position - 1
        if last < 0 or self.batch is None:
            return self.row
        if self.shown is None or self.shown_position != last:
            self.shown, self.shown_position = RowsAt(self.batch, (last,))[0], last
        return self.shown

    @property
    def place(self):
        """The place of the row that was read last: a sequence of one row, made on request."""
        return (self.row,) if self.batch is None or self.position == 0 else RowsAt(self.batch, (self.position - 1,))


@cython.final
cdef class RowStream:
    """An iterator over the rows of all batches."""

    def __cinit__(self, batches):
        self.batches = batches

    def __iter__(self):
        return self

    def __next__(self):
        try:
            if self.reader is not None and self.reader.position < self.reader.size or self.load():
                return self.reader.next_row()
        except BaseException as error:
            self.error = error
            raise
        raise StopIteration

    cdef bint load(self) except -1:
        """Take the next batch that has rows; return whether there is one."""
        while True:
            batch = next(self.batches, None)
            if batch is None:
                return False
            handed = [batch]
            batch = None
            self.reader = RowReader(handed)
            if self.reader.size:
                return True

    @property
    def current(self):
        """The row that was read last."""
        return None if self.reader is None else self.reader.current

    @property
    def place(self):
        """The place of that row: a sequence of rows."""
        return (self.current,)


@cython.final
cdef class GroupedRows:
    """Cuts a stream of batches into groups of neighbouring rows.

    start_columns: int8 columns; the first one says where groups begin.
    """

    def __cinit__(self, batches, views, start_columns):
        self.source = batches
        self.views = tuple(views)
        self.start_columns = tuple(start_columns)
        self.readers = [None] * len(self.views)

    def next_group(self):
        """Skip what is left of the group; return whether there is another one."""
        while not self.has_ended:
            self.position = self.end
            if self.position < self.size:
                self.start = self.position
                self.find_end(self.position + 1)
                self.number += 1
                return True
            self.load()
        return False

    cdef void find_end(self, int64_t position):
        """Find where the group ends: at the next beginning, or with the batch."""
        while position < self.size and self.starts[position] == 0:
            position += 1
        self.end = position

    def value_at_start(self, int start_column):
        """Return the value of a start column where the group begins; right after ``next_group``."""
        return (self.starts if start_column == 0 else self.others)[self.start]

    def rows(self, int32_t view, int64_t number):
        """Return an iterator over the rest of group ``number``, while that is the current group."""
        return GroupRows(self, view, number)

    def batches(self, int32_t view):
        """Yield the rest of the current group as batches of a view."""
        while True:
            if self.position < self.end:
                part = self.batch.slice(self.position, self.end - self.position)
                self.position = self.end
                yield self.views[view].select(part)
            if self.end < self.size or not self.load():
                return

    cdef object next_row(self, int32_t view):
        cdef RowReader reader = self.readers[view]
        if reader is None:
            reader = RowReader([self.views[view].select(self.batch)])
            self.readers[view] = reader
        self.last_reader = reader
        try:
            row = reader.row_at(self.position)
        except BaseException as error:
            self.error = error
            raise
        self.position += 1
        if self.position == self.size:
            # No more of it is needed: very wide values are not kept while the last row is used.
            reader.let_go()
            self.batch = None
            self.readers = [None] * len(self.views)
        return row

    cdef bint load(self) except -1:
        """Take the next batch; the current group goes on in it unless one begins at its first row."""
        self.batch = None
        self.readers = [None] * len(self.views)
        self.position = self.end = self.size = self.start = 0
        if self.has_ended:
            return False
        try:
            batch = next(self.source, None)
        except BaseException as error:
            self.error = error
            raise
        self.has_ended = batch is None
        if batch is None:
            return False
        self.batch, self.size = batch, batch.num_rows
        self.start_array = batch.column(self.start_columns[0])
        self.starts = bytes_of(self.start_array)
        if len(self.start_columns) > 1:
            self.other_array = batch.column(self.start_columns[1])
            self.others = bytes_of(self.other_array)
        self.find_end(0)
        return True

    def set_current(self, row):
        """Set the row that was read last."""
        self.last_reader = None
        self.other_row = row

    @property
    def current(self):
        """The row that was read last."""
        return self.other_row if self.last_reader is None else self.last_reader.current

    @property
    def place(self):
        """The place of that row: a sequence of rows."""
        return (self.current,)


@cython.final
cdef class GroupRows:
    """The rest of a group."""

    cdef GroupedRows groups
    cdef int32_t view
    cdef int64_t number

    def __cinit__(self, GroupedRows groups, int32_t view, int64_t number):
        self.groups, self.view, self.number = groups, view, number

    def __iter__(self):
        return self

    def __next__(self):
        cdef GroupedRows groups = self.groups
        while self.number == groups.number:
            if groups.position < groups.end:
                return groups.next_row(self.view)
            if groups.end < groups.size or not groups.load():
                break
        raise StopIteration
