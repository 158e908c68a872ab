# ChannelSelector: see channel_selector.pyx.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from engine.records.arrow_batch cimport ArrowBatch
from engine.records.comparator cimport RowComparator
from engine.records.row_codec cimport RowCodec


cdef class ChannelSelector:
    cdef readonly int32_t channel_count
    # channels[i] = channel of row i, for all rows of the batch. Caller guarantees batch.row_count entries.
    cdef int select(self, ArrowBatch batch, uint32_t* channels) except -1


# Key columns of a batch, by position.
cdef class KeySelector(ChannelSelector):
    cdef readonly tuple keys            # column names
    cdef object _schema
    cdef int32_t* _columns
    cdef int32_t _column_count
