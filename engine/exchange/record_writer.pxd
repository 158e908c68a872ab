# RecordWriter: see record_writer.pyx.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from engine.exchange.buffer_pool cimport Buffer, LocalBufferPool
from engine.exchange.channel_selector cimport ChannelSelector
from engine.records.arrow_batch cimport ArrowBatch
from engine.records.row_codec cimport RowCodec


cdef struct OpenBuffer:             # of one channel
    uint8_t* data                   # start of the segment, NULL: none is open
    int64_t used                    # bytes placed
    int64_t capacity                # bytes of the segment, 0: none is open


# How the rows of one batch were placed; grown to the largest batch seen.
cdef struct Placement:
    int64_t capacity                # rows
    uint32_t* channels
    uint32_t* sizes
    uint8_t** targets


@cython.final
cdef class RecordWriter:
    cdef readonly object partition          # ResultPartition
    cdef readonly object schema             # pyarrow.Schema
    cdef readonly int64_t rows              # emitted
    cdef readonly int64_t bytes             # bytes sent, once for any number of receivers
    cdef readonly int64_t timeout_ms        # 0: flush after every batch, -1: full buffers only
    cdef readonly bint is_broadcast
    cdef readonly ChannelSelector selector
    cdef int32_t _channel_count             # open buffers: 1 when broadcasting
    cdef LocalBufferPool _pool              # of the partition
    cdef int64_t _segment_size
    cdef RowCodec _codec
    cdef Placement _placement
    cdef OpenBuffer* _open
    cdef list _buffers                      # Buffer or None of each channel, the owners of _open
    cdef list _full                         # (Buffer, channel) placed, in order, to be sent after encoding
    cdef int64_t _open_since_ns             # when the oldest open buffer got its first row; 0: nothing is open
    cdef object _lock                       # held while emitting; the output flusher only tries
    cdef object _flush_error                # of the output flusher, raised by the next call; or None
    cdef bint _is_closed
    cdef bint _keeps_columns                # batches of many rows travel as columns
    cdef bint _replicates                   # the selector's divide has rows for all channels

    cdef int drop_buffers(self) except -1
    cdef int check_flush_error(self) except -1
    cdef int write(self, batch, int32_t channel) except -1
    cdef int write_columns(self, batch) except -1
    cdef void measure(self, ArrowBatch batch, int32_t channel) noexcept nogil
    cdef int reserve(self, int64_t row_count) except -1
    cdef int emit_rows(self, ArrowBatch batch) except -1
    cdef int emit_oversized(self, ArrowBatch batch, int64_t row) except -1
    cdef int emit_pieces(self, const uint8_t* content, int64_t size, int32_t channel, int32_t last_kind) except -1
    cdef int encode(self, ArrowBatch batch, int64_t start, int64_t stop) except -1
    cdef int open_buffer(self, int32_t channel, Buffer buffer) except -1
    cdef int close_buffer(self, int32_t channel) except -1
    cdef int hand_over_full(self) except -1
    cdef int hand_over_all(self) except -1
    cdef Buffer next_buffer(self)
    cdef int hand_over(self, Buffer buffer, int32_t channel) except -1
    cdef Buffer wait_for_buffer(self)
