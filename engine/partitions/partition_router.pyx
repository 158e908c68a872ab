"""PartitionRouter: rows go from an exchange's page to their partition as they are.

    router = PartitionRouter(codec)
    gate ─► pages ─► router ─┬─► router.begin(partitions) was called: RowPartitions.add_rows
                             └─► else: decoded, for the operator
    router.end()

Where the rows of an exchange are what the partitions consist of, decoding and encoding them again would give the same
bytes.

Invariants: rows of a key keep their order. Thread: that of the operator.
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t

from engine.partitions.row_partitions cimport RowPartitions
from engine.records.row_check cimport check_rows
from engine.records.row_codec cimport RowCodec, row_size
from engine.records.row_router cimport RowRouter


@cython.final
cdef class PartitionRouter(RowRouter):
    """Args: codec: of the rows that come, which are those of the partitions."""

    def __cinit__(self, RowCodec codec not None):
        self._codec = codec

    def begin(self, RowPartitions target not None):
        """Take all rows from now on."""
        self._target = target
        self.takes_all = True

    def end(self):
        """Take none any more."""
        self._target = None
        self.takes_all = False

    cdef int64_t route(self, uint8_t** rows, int64_t count) except -1:
        if self._target is None:
            return count
        check_rows(self._codec, rows, count)
        self._target.add_rows(rows, count)
        self._count(rows, count)
        return 0

    cdef void _count(self, uint8_t** rows, int64_t count) noexcept nogil:
        cdef int64_t index
        self.row_count += count
        if self._codec.is_fixed:
            self.size_bytes += count * self._codec.fixed_size
            return
        for index in range(count):
            self.size_bytes += row_size(rows[index])
