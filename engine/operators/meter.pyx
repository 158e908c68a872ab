"""Meter: rows, bytes and time of what an operator, or the end of a chain, is sent; otherwise it is like that one.

    operator ─► Meter.process(batch) ─► the next operator        a call of the next one, and two looks at the clock

    Stopwatch                           time of calls, or of making items; the one under way included

It stands in front of each operator (``operator_meters``) and is passed by every batch, and watches are read whenever a
task reports, so neither is a Python frame.

Held by: tests/operators/test_operator_meters.py
"""

cimport cython
from libc.stdint cimport int64_t

from engine.exchange.monitor cimport monotonic_ns
from engine.records.arrow_batch import batch_bytes


@cython.final
cdef class Stopwatch:
    """Adds up times. Thread: runs in the task's, may be read from any."""

    cdef int64_t _total_ns, _began

    @property
    def total_ns(self):
        """Time so far."""
        return self._total_ns + (monotonic_ns() - self._began if self._began else 0)

    def run(self, call not None):
        """Make a call."""
        self._began = monotonic_ns()
        try:
            call()
        finally:
            self._total_ns += monotonic_ns() - self._began
            self._began = 0

    def each(self, items not None):
        """Yield the items; the time of making them counts."""
        end = object()
        while True:
            began = monotonic_ns()
            item = next(items, end)
            self._total_ns += monotonic_ns() - began
            if item is end:
                return
            yield item


@cython.final
cdef class Meter:
    """See the module's text. Thread: counts in the task's, may be read from any."""

    cdef object _inner
    cdef readonly int64_t rows, bytes, busy_ns

    def __init__(self, inner not None):
        self._inner = inner

    @property
    def takes_pages(self):
        """Whether pages of rows need not become batches."""
        return self._inner.takes_pages

    @property
    def router(self):
        """The ``PartitionRouter`` that takes rows of pages before they become batches."""
        return self._inner.router

    @property
    def takes_opened(self):
        """Whether batches may come opened."""
        return self._inner.takes_opened

    @property
    def compact_columns(self):
        """Columns that may come as codes, or as narrow decimals."""
        return self._inner.compact_columns

    @property
    def is_satisfied(self):
        """Whether nothing more is needed."""
        return self._inner.is_satisfied

    @property
    def rows_in(self):
        """Rows that one that works on rows has taken."""
        return self._inner.rows_in

    def ahead(self):
        """Return the work that another thread may do for a batch that is about to come."""
        return self._inner.ahead()

    def say_whole_groups(self):
        """Pass on that what comes are whole groups."""
        self._inner.say_whole_groups()

    def process(self, batch not None):
        """Pass on a batch."""
        cdef int64_t began
        self.rows += batch.num_rows
        self.bytes += batch_bytes(batch)
        began = monotonic_ns()
        self._inner.process(batch)
        self.busy_ns += monotonic_ns() - began

    def process_page(self, segment not None, int64_t size_bytes):
        """Pass on a page of rows; its reader counts its rows."""
        cdef int64_t began = monotonic_ns()
        self._inner.process_page(segment, size_bytes)
        self.busy_ns += monotonic_ns() - began

    def process_rows(self, rows not None):
        """Pass on rows that are larger than a page."""
        cdef int64_t began = monotonic_ns()
        self._inner.process_rows(rows)
        self.busy_ns += monotonic_ns() - began

    def keep_runs(self, runs not None):
        """Pass on sorted runs."""
        cdef int64_t began = monotonic_ns()
        self._inner.keep_runs(runs)
        self.busy_ns += monotonic_ns() - began
