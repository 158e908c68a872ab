# PartitionRouter: rows of pages that go to their partitions as they are.

cimport cython
from libc.stdint cimport int64_t, uint8_t

from engine.partitions.row_partitions cimport RowPartitions
from engine.records.row_codec cimport RowCodec
from engine.records.row_router cimport RowRouter


@cython.final
cdef class PartitionRouter(RowRouter):
    cdef RowCodec _codec
    cdef RowPartitions _target           # None: everything is left

    cdef void _count(self, uint8_t** rows, int64_t count) noexcept nogil
