# ChannelSelector: see channel_selector.pyx.

from libc.stdint cimport int32_t, uint32_t

from engine.records.arrow_batch cimport ArrowBatch


cdef class ChannelSelector:
    cdef readonly int32_t channel_count
    # channels[i] = channel of row i, for all rows of the batch. Caller guarantees batch.row_count entries.
    cdef int select(self, ArrowBatch batch, uint32_t* channels) except -1
