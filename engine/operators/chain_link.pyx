"""ChainLink: base of the operators of a chain; RowMapper: of those that make one batch of another.

    Cancellable        base of what a task's loops ask for its end: check_cancelled()
    ChainLink          what each operator has, and whether anything more is needed: the next one knows
    ChainEnd           process(batch) ─► writer.emit(batch) of each data set
    RowMapper          process(batch) ─► make(batch) ─► output.process(made)

Each batch passes several of them, and each of them is asked whether it is enough, so there is no Python frame here.

Held by: tests/operators/test_batch_task.py
Held by: tests/operators/test_work_ahead.py
"""

from libc.stdint cimport int64_t
from libc.math cimport ceil

from engine.errors import TaskCancelledError
from engine.records.arrow_batch import batch_bytes

#: rows of which it is seen how wide they become
cdef int64_t FIRST_ROWS = 1024
#: limit of a piece of a batch that becomes wide
cdef double PIECE_BYTES_MAX = 16 << 20


cdef class Cancellable:
    """An attempt that may be told to end. Thread: any may set it."""

    cdef public bint is_cancelled

    def check_cancelled(self):
        """Raise TaskCancelledError once the attempt was told to end; loops that wait for no input call it."""
        if self.is_cancelled:
            raise TaskCancelledError(f"{self.task_name} was cancelled")


cdef class ChainLink:
    """An operator: its descriptor, and once it is open what it is told of its task, and what is behind it."""

    cdef public object descriptor, context, output

    @property
    def is_satisfied(self):
        """Whether nothing more is needed from upstream."""
        return self.output.is_satisfied


cdef class ChainEnd:
    """The end of a chain: every batch goes to each of its writers."""

    cdef public list writers

    def process(self, batch not None):
        """Write a batch to all data sets."""
        for writer in self.writers:
            writer.emit(batch)


cdef class RowMapper(ChainLink):
    """One that makes a batch of each batch, by ``make``.

    What may become far wider than it was is taken in pieces, by the width of the rows that came out before, the first
    of them a small one.
    """

    #: function of a batch, and results that other threads have made of it (``WorkAhead``), where one was asked to
    cdef public object make, made_ahead
    cdef public bint may_widen
    #: width of the last output rows; 0.0 before the first ones
    cdef double _row_bytes

    def process(self, batch not None):
        """Pass on what is made of a batch."""
        cdef int64_t rows, pieces
        made = None if self.made_ahead is None else self.made_ahead.take(batch)
        if made is not None:
            self._pass_on(made)
            return
        if not self.may_widen or batch.num_rows <= FIRST_ROWS:
            self._pass_on(self.make(batch))
            return
        while batch.num_rows:
            # about equal ones: every operator pays for a piece
            pieces = <int64_t>ceil(batch.num_rows * self._row_bytes / PIECE_BYTES_MAX)
            rows = -(-<int64_t>batch.num_rows // pieces) if pieces else FIRST_ROWS
            self._pass_on(self.make(batch.slice(0, rows)))
            batch = batch.slice(rows)

    def is_narrow(self, batch not None):
        """Whether a batch can be taken as a whole, as far as is known."""
        return not self.may_widen or 0 < batch.num_rows * self._row_bytes <= PIECE_BYTES_MAX

    cdef int _pass_on(self, made) except -1:
        cdef int64_t rows = made.num_rows
        if self.may_widen and rows:
            self._row_bytes = <double>batch_bytes(made) / rows
        if rows:
            self.output.process(made)
        return 0
