"""The loops around a user's function: row in, function, rows out; nothing of Python's between two calls but the calls.

    loop = RowLoop(function, appender, kind)
    loop.map(reader)              one row out for each row in
    loop.flat_map(reader)         any number
    loop.run(calls, source)       function(*arguments) for each of ``calls``, which gives any number of rows
    loop.stop()                   the rest is not needed
    filter_rows(function, reader) -> BooleanArray

Each returns True when the appender is full, and goes on at the next call; False at the end of its input. What the
function raises comes out as it is; the current row is the reader's or the source's ``current``.

Held by: tests/functions/test_row_loop.py
"""

from cpython.list cimport PyList_CheckExact, PyList_GET_ITEM, PyList_GET_SIZE
from cpython.tuple cimport PyTuple_CheckExact, PyTuple_GET_ITEM, PyTuple_GET_SIZE
from libc.stdint cimport int64_t, uint8_t, uintptr_t
from libc.string cimport memset

from collections.abc import Iterable

import pyarrow as pa

from engine.functions.function_error import BadOutputError
from engine.functions.row_appender cimport RowAppender
from engine.functions.row_reader cimport RowReader

cdef object BOOL = pa.bool_()


cdef class RowLoop:
    """One function's loop."""

    cdef object function
    cdef RowAppender appender
    cdef str kind
    #: result of a call that is not taken yet: a list or a tuple with the place in it, or an iterator
    cdef object pending
    cdef int64_t pending_at

    def __cinit__(self, function, RowAppender appender, str kind):
        self.function, self.appender, self.kind = function, appender, kind

    def map(self, RowReader reader not None):
        """Take one row of each call."""
        cdef RowAppender appender = self.appender
        cdef object function = self.function
        cdef int64_t room
        while reader.position < reader.size:
            if appender.is_full():
                return True
            room = min(appender.limit - appender.rows, reader.size - reader.position)
            while room > 0:
                appender.add(reader.call(function), reader)
                room -= 1
        return False

    def flat_map(self, RowReader reader not None):
        """Take all rows of each call."""
        while True:
            if self.pending is None:
                if reader.position >= reader.size:
                    return False
                self.begin(reader.call(self.function))
            if self.take(reader):
                return True

    def run(self, calls, source):
        """Call the function with each of some arguments; take all rows of each call."""
        while True:
            if self.pending is None:
                arguments = next(calls, None)
                if arguments is None:
                    return False
                self.begin(self.function(*arguments))
                arguments = None
            if self.take(source):
                return True
            if source.error is not None:
                # the function has caught it and gone on: it has not seen all rows
                raise source.error

    def stop(self):
        """Run an open generator to its end, as ``close`` of a generator does; its rows are not needed."""
        pending, self.pending = self.pending, None
        if hasattr(pending, "close"):
            pending.close()

    cdef int begin(self, object result) except -1:
        """Begin to read a call's result."""
        if not PyList_CheckExact(result) and not PyTuple_CheckExact(result):
            if isinstance(result, (str, bytes, dict)) or not isinstance(result, Iterable):
                raise BadOutputError(f"{self.kind} must return an iterable of rows, not {type(result).__name__}")
            result = iter(result)
        self.pending, self.pending_at = result, 0
        return 0

    cdef bint take(self, object source) except -1:
        """Take rows of the current result; return whether there is no room for more."""
        cdef RowAppender appender = self.appender
        cdef object pending = self.pending
        cdef int64_t place = self.pending_at
        if PyList_CheckExact(pending):
            while place < PyList_GET_SIZE(pending):
                if appender.is_full():
                    self.pending_at = place
                    return True
                appender.add(<object>PyList_GET_ITEM(pending, place), source)
                place += 1
        elif PyTuple_CheckExact(pending):
            while place < PyTuple_GET_SIZE(pending):
                if appender.is_full():
                    self.pending_at = place
                    return True
                appender.add(<object>PyTuple_GET_ITEM(pending, place), source)
                place += 1
        else:
            for value in pending:
                appender.add(value, source)
                if appender.is_full():
                    value = None
                    return True
        self.pending = None
        return False


def filter_rows(function, RowReader reader not None):
    """Return the rows of a batch for which a function returns a true value."""
    cdef int64_t rows = reader.size
    cdef int64_t size = (rows + 63) // 64 * 8
    buffer = pa.allocate_buffer(size)
    cdef uint8_t* mask = <uint8_t*><uintptr_t>buffer.address
    cdef int64_t row
    memset(mask, 0, <size_t>size)
    while reader.position < rows:
        row = reader.position
        if reader.call(function):
            mask[row >> 3] |= <uint8_t>(1 << (row & 7))
    return pa.Array.from_buffers(BOOL, rows, [None, buffer], 0)
