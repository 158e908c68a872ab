"""Batches within limits: not so large that they break the memory promise, not so small that they cost more.

    for piece in bounded_batches(batch): ...                    a large batch, divided
    small = SmallBatches(); small.add(batch)*; small.rest()     small ones, put together
    for batch in put_together(batches): ...                     the same of all that an iterator yields

A batch costs each operator that it meets as much as a thousand rows, and two threads that exchange batches more;
arrays of a few rows are larger than their values. Limits: SmallBatches holds a batch back until enough have come.

Most batches of a job pass through here, several times, so it is no Python frame.

Held by: tests/records/test_bounded_batches.py
"""

cimport cython
from libc.stdint cimport int64_t

from engine.records.arrow_batch import batch_bytes
from engine.records.batch_limits import BATCH_BYTES_MAX, BATCH_ROWS_MAX
from engine.records.joined_batches import joined_batches
from engine.records.opened_batch cimport schema_of

#: rows and bytes from which a batch is large enough for any operator
ROWS_MIN = 16384
BYTES_MIN = 512 << 10
#: number of waiting batches that are combined into one, which goes on waiting
HELD_MAX = 64
cdef Py_ssize_t _HELD_MAX = HELD_MAX


def bounded_batches(batch not None, int64_t rows_max=BATCH_ROWS_MAX, size_bytes=None,
                    int64_t bytes_max=BATCH_BYTES_MAX):
    """Return slices of a batch, each within the limits of rows and (about) bytes, never less than one row.

    Args: size_bytes: of the batch, where they are known; bytes_max: of a slice.
    """
    cdef int64_t rows = batch.num_rows
    cdef int64_t step
    if rows == 0:
        return []
    size_bytes = (batch_bytes(batch) if size_bytes is None else size_bytes) // rows
    step = max(<int64_t>1, min(rows_max, bytes_max // max(<int64_t>1, <int64_t>size_bytes)))
    return [batch] if rows <= step else [batch.slice(start, step) for start in range(0, rows, step)]


@cython.final
cdef class SmallBatches:
    """Puts small batches together; the rows keep their order.

    Args: rows_min: enough for the first one, later ones are larger, up to rows_enough; bytes_min: a batch of so many is
    large enough. What is put together has less than twice as many.
    """

    cdef int64_t _rows_min, _rows_enough, _bytes_min
    cdef readonly list held
    cdef int64_t _rows, _size_bytes     # of what is held

    def __init__(self, rows_min=None, int64_t bytes_min=BYTES_MIN, int64_t rows_enough=ROWS_MIN):
        self._rows_min = rows_enough if rows_min is None else <int64_t>rows_min
        self._rows_enough, self._bytes_min = rows_enough, bytes_min
        self.held = []

    cpdef list add(self, batch):
        """Take a batch; return those that are large enough, which are the caller's alone."""
        cdef int64_t rows = batch.num_rows, size_bytes = batch_bytes(batch)
        cdef list held = self.held, ready
        if held and not are_alike(schema_of(batch), schema_of(held[0])):    # one as codes of a dictionary, one plain
            return self.rest() + self.add(batch)
        if rows >= self._rows_min or size_bytes >= self._bytes_min:
            ready = self.rest()
            ready.append(batch)
        else:
            held.append(batch)
            self._rows += rows
            self._size_bytes += size_bytes
            if self._rows < self._rows_min and self._size_bytes < self._bytes_min:
                if len(held) == _HELD_MAX:
                    self.held = [joined_batches(held)]
                return []
            ready = self.rest()
        if self._rows_min < self._rows_enough:
            rows = ready[len(ready) - 1].num_rows
            self._rows_min = min(2 * max(self._rows_min, rows), self._rows_enough)
        return ready

    def shrink(self):
        """Reduce the rows of the next batch: the last one took long."""
        self._rows_min = max(<int64_t>1, self._rows_min // 4)

    cpdef list rest(self):
        """Return the held rows as one batch, and hold none afterwards."""
        cdef list held = self.held
        self.held, self._rows, self._size_bytes = [], 0, 0
        return held if len(held) < 2 else [joined_batches(held)]


cdef bint are_alike(schema, other) except -1:
    return schema is other or schema.equals(other)


def put_together(batches not None, bytes_min=BYTES_MIN):
    """Return an iterator of batches, of which small ones are put together; the first ones leave at once.

    None of them is kept while the next is read: a wide one is large. Args: bytes_min: as of SmallBatches.
    """
    return PutTogether(iter(batches), SmallBatches(1, bytes_min))


@cython.final
cdef class PutTogether:
    """See put_together."""

    cdef object _batches        # None: all have come
    cdef SmallBatches _small
    cdef list _ready            # the next one last

    def __init__(self, batches not None, SmallBatches small not None):
        self._batches, self._small, self._ready = batches, small, []

    def __iter__(self):
        return self

    def __next__(self):
        while not self._ready:
            if self._batches is None:
                raise StopIteration
            batch = next(self._batches, None)
            if batch is None:
                self._batches = None
            self._ready = self._small.rest() if batch is None else self._small.add(batch)
            self._ready.reverse()
            batch = None
        return self._ready.pop()
