"""RecordWriter: Arrow batches in, buffers full of binary rows out, one open buffer per channel.

    writer.emit(batch)* ─► writer.flush()* ─► writer.finish() ─► writer.close()       close also after a failure

    batch ─► selector: channel of each row ─► codec.measure: size of each row ─► place: address in the channel's open
    buffer ─► codec.encode: all placed rows, column by column ─► full buffers to the partition, in order

Placing stops at a row whose channel's buffer is full. The next buffer is taken if the pool has one; if not, what is
placed is encoded, full buffers are sent (their consumers return them) and the thread waits without the GIL:
that is back pressure. A wait longer than the time-out sends the half-full buffers too, so that two consumers that
wait for each other through this writer both get what there is; at once when all buffers of the pool are open here.

Where all rows go to one channel and are stored (``keep_columns``), a batch of many rows is no rows: its columns travel
as BATCH buffers and one LAST_BATCH (``batch_stream``), so that neither side takes rows apart. Batches of few rows, or
of wide ones, are rows all the same. What is written first is read first.

A row larger than a buffer is encoded aside and travels as FRAGMENT buffers and one LAST_FRAGMENT, which hold nothing
else. A broadcast is encoded once: every channel gets a share of the same buffers. Rows that the selector replicates
(heavy keys of a join's other side) are taken out of the batch and written to one channel after the other.

Flushing (PIPELINED): ``timeout_ms`` 0 after every emit; > 0 by ``flush_if_older_than``, which the output flusher calls
and which does nothing while the writer is busy (under back pressure a flush has no effect); -1 only full buffers.

Invariants: rows of a channel keep their order; a buffer is sent only when all its rows are encoded; the writer
never holds more buffers than one per channel plus those the pool gave without waiting.

Source: Flink's RecordWriter, ChannelSelectorRecordWriter, BroadcastRecordWriter; there record by record.
"""

import threading

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset

from engine.errors import IllegalTransitionError
from engine.exchange.batch_stream import stream_of
from engine.exchange.buffer_pool cimport Buffer, KIND_LAST_BATCH, KIND_LAST_FRAGMENT, KIND_ROWS
from engine.exchange.channel_selector cimport ChannelSelector
from engine.exchange.monitor cimport monotonic_ns
from engine.records.arrow_batch import batch_bytes
from engine.records.arrow_batch cimport ArrowBatch
from engine.records.opened_batch cimport shown_batch
from engine.records.row_codec cimport RowCodec

cdef enum:
    BRIEF_ROWS = 512            # are measured, or encoded, before the GIL could be given away and got back
    COLUMN_ROWS = 512           # least rows of columns: what a batch costs beside its rows is less than encoding them
    COLUMN_BYTES = 1 << 20      # of a batch that is not written in parts
    COLUMN_BYTES_MAX = 8 << 20  # of a part: a reader has it in memory twice

#: wait for a buffer before half-full ones are sent, when there is no time-out
cdef int64_t PATIENCE_MS = 100


@cython.final
cdef class RecordWriter:
    """Writes row pages to a result partition. Made by RecordWriterBuilder.

    Args:
        partition: ResultPartition, producing.
        schema: pyarrow.Schema of all batches.
        selector: with as many channels as the partition has subpartitions.
        timeout_ms: flush time-out, see above.

    Thread: the task's; ``flush_if_older_than`` from any other.
    """

    def __cinit__(self, partition not None, schema not None, ChannelSelector selector not None,
                  int64_t timeout_ms=-1):
        if selector.channel_count != partition.subpartition_count:
            raise IllegalTransitionError(f"partition {partition.id} has {partition.subpartition_count} subpartitions, "
                                         f"the selector {selector.channel_count} channels")
        self.partition = partition
        self.schema = schema
        self.selector = selector
        self.timeout_ms = timeout_ms
        self.is_broadcast = selector.is_broadcast
        self._replicates = selector.replicates
        self._channel_count = 1 if self.is_broadcast else selector.channel_count
        self._pool = partition.pool
        self._segment_size = self._pool.segment_size
        self._codec = RowCodec(schema)
        self._buffers = [None] * self._channel_count
        self._full = []
        self._lock = threading.Lock()
        self._open = <OpenBuffer*> calloc(<size_t> self._channel_count, sizeof(OpenBuffer))
        if self._open == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self._open)
        free(self._placement.channels)
        free(self._placement.sizes)
        free(self._placement.targets)

    # ---------------------------------------------------------------------------------------------------------- public

    def keep_outside(self, owner):
        """Let wide values lie with owner (write_value) in place of the pages."""
        self._codec.let_outside(owner, ())

    def keep_columns(self):
        """Let batches of many rows travel as columns; there is one channel, or all get the same."""
        self._keeps_columns = True

    def emit(self, batch not None):
        """Write a pyarrow.RecordBatch.

        Raises:
            TaskCancelledError, PartitionReleasedError: the partition is gone; nothing more can be written.
            SchemaError: a batch of another schema.
        """
        cdef int32_t channel
        with self._lock:
            self.check_flush_error()
            self.partition.check_producing()
            batch = self.selector.travelling(batch)
            if self._replicates:
                rest, copies = self.selector.divide(batch)
                if rest is not None:
                    self.write(rest, -1)
                if copies is not None:
                    for channel in range(self._channel_count):
                        self.write(copies, channel)
            elif not self._keeps_columns or self.write_columns(batch) == 0:
                self.write(batch, -1)
            self.rows += batch.num_rows
            self.partition.rows += batch.num_rows
            if self.timeout_ms == 0:
                self.hand_over_all()

    def flush(self):
        """Send half-full buffers."""
        with self._lock:
            self.check_flush_error()
            self.hand_over_all()

    def flush_if_older_than(self, int64_t age_ms):
        """Send half-full buffers if the oldest waits that long; returns whether. Never waits. Thread: any.

        What goes wrong is raised by the next call of ``emit`` or ``flush``, in the task's thread.
        """
        if self._open_since_ns == 0 or not self._lock.acquire(False):
            return False
        try:
            if self._is_closed or self._open_since_ns == 0:
                return False
            if monotonic_ns() - self._open_since_ns < age_ms * 1000000:
                return False
            self.hand_over_all()
            return True
        except Exception as error:
            self._flush_error = error
            return False
        finally:
            self._lock.release()

    def finish(self):
        """Send the rest and finish the partition."""
        self.flush()
        self.partition.finish()

    def close(self):
        """Release unsent buffers. Idempotent."""
        with self._lock:
            self._is_closed = True
            self.drop_buffers()

    cdef int drop_buffers(self) except -1:
        """Release everything that was not sent."""
        cdef list dropped = [*[full for full, _ in self._full], *self._buffers]
        self._open_since_ns = 0
        self._full.clear()
        self._buffers = [None] * self._channel_count
        memset(self._open, 0, <size_t> self._channel_count * sizeof(OpenBuffer))
        for buffer in dropped:
            if buffer is not None:
                buffer.recycle()
        return 0

    cdef int check_flush_error(self) except -1:
        if self._flush_error is not None:
            raise self._flush_error
        return 0

    # --------------------------------------------------------------------------------------------------------- placing

    cdef int write(self, batch, int32_t channel) except -1:
        """Write all rows of a batch to one channel, or to those that the selector chooses when it is -1."""
        cdef ArrowBatch opened = ArrowBatch.open(batch)
        self._codec.accept(opened)
        if opened.row_count == 0:
            return 0
        self.reserve(opened.row_count)
        if channel < 0 and self._channel_count > 1:
            self.selector.select(opened, self._placement.channels)
        else:
            channel = max(channel, 0)
        self._codec.move_outside(opened)
        if opened.row_count <= BRIEF_ROWS:
            self.measure(opened, channel)
        else:
            with nogil:
                self.measure(opened, channel)
        try:
            self.emit_rows(opened)
        except BaseException:
            self.drop_buffers()     # rows have places but no bytes yet: the flusher must not send them
            raise
        return 0

    cdef int write_columns(self, batch) except -1:
        """Write a batch as columns, in parts of about COLUMN_BYTES; return 0 where it is better written as rows."""
        cdef int64_t rows = batch.num_rows
        cdef int64_t part, begin, size
        cdef const uint8_t[::1] content
        if rows < COLUMN_ROWS:
            return 0
        batch = shown_batch(batch)
        self._codec.accept(ArrowBatch.open(batch))
        size = batch_bytes(batch)
        part = rows if size <= COLUMN_BYTES else rows * COLUMN_BYTES // size
        if part < COLUMN_ROWS:
            return 0
        for begin in range(0, rows, part):
            piece = batch if part == rows else batch.slice(begin, part)
            if batch_bytes(piece) > COLUMN_BYTES_MAX:
                self.write(piece, -1)
                continue
            self.hand_over_all()
            content = stream_of(piece)
            self.emit_pieces(&content[0], content.shape[0], 0, KIND_LAST_BATCH)
        return 1

    cdef void measure(self, ArrowBatch batch, int32_t channel) noexcept nogil:
        """Note the sizes of rows and, unless it is -1, that they go to a channel."""
        cdef int64_t row
        if channel >= 0:
            for row in range(batch.row_count):
                self._placement.channels[row] = <uint32_t> channel
        self._codec.measure(batch, 0, batch.row_count, self._placement.sizes)

    cdef int reserve(self, int64_t row_count) except -1:
        cdef Placement* placement = &self._placement
        cdef size_t capacity = <size_t> row_count
        if row_count <= placement.capacity:
            return 0
        placement.capacity = 0
        free(placement.channels)
        free(placement.sizes)
        free(placement.targets)
        placement.channels = <uint32_t*> malloc(capacity * sizeof(uint32_t))
        placement.sizes = <uint32_t*> malloc(capacity * sizeof(uint32_t))
        placement.targets = <uint8_t**> malloc(capacity * sizeof(uint8_t*))
        if placement.channels == NULL or placement.sizes == NULL or placement.targets == NULL:
            raise MemoryError
        placement.capacity = row_count
        return 0

    cdef int emit_rows(self, ArrowBatch batch) except -1:
        cdef int64_t placed = 0
        cdef int64_t encoded = 0
        cdef int32_t channel
        cdef Buffer buffer
        while True:
            # With the GIL: a page's worth of rows has its places before it could be given away and got back.
            placed = place(&self._placement, self._open, placed, batch.row_count)
            if placed == batch.row_count:
                break
            channel = <int32_t> self._placement.channels[placed]
            if self._placement.sizes[placed] > self._segment_size:
                self.close_buffer(channel)
                self.encode(batch, encoded, placed)
                self.hand_over_full()
                self.emit_oversized(batch, placed)
                placed += 1
                encoded = placed
                continue
            self.close_buffer(channel)
            buffer = self.next_buffer()
            if buffer is None:
                self.encode(batch, encoded, placed)
                encoded = placed
                self.hand_over_full()
                buffer = self.wait_for_buffer()
            self.open_buffer(channel, buffer)
        self.encode(batch, encoded, placed)
        self.hand_over_full()
        return 0

    cdef int emit_oversized(self, ArrowBatch batch, int64_t row) except -1:
        cdef int64_t size = self._placement.sizes[row]
        cdef uint8_t* row_bytes = <uint8_t*> malloc(<size_t> size)
        if row_bytes == NULL:
            raise MemoryError(f"no memory for a row of {size} bytes")
        try:
            self._placement.targets[row] = row_bytes
            self.encode(batch, row, row + 1)
            self.emit_pieces(row_bytes, size, <int32_t> self._placement.channels[row], KIND_LAST_FRAGMENT)
        finally:
            free(row_bytes)
        return 0

    cdef int emit_pieces(self, const uint8_t* content, int64_t size, int32_t channel, int32_t last_kind) except -1:
        """Send bytes in buffers of their own; the kind of all but the last one is the number before the last one's."""
        cdef int64_t offset = 0
        cdef int64_t piece
        cdef Buffer buffer
        while offset < size:
            buffer = self.wait_for_buffer()
            piece = min(size - offset, self._segment_size)
            memcpy(buffer.segment.data, content + offset, <size_t> piece)
            offset += piece
            buffer.size = <int32_t> piece
            buffer.kind = last_kind if offset == size else last_kind - 1
            self.hand_over(buffer, channel)
        return 0

    cdef int encode(self, ArrowBatch batch, int64_t start, int64_t stop) except -1:
        cdef uint32_t* sizes = self._placement.sizes + start
        cdef uint8_t** targets = self._placement.targets + start
        if start < stop <= start + BRIEF_ROWS:
            self._codec.encode(batch, start, stop - start, sizes, targets)
        elif start < stop:
            with nogil:
                self._codec.encode(batch, start, stop - start, sizes, targets)
        return 0

    # --------------------------------------------------------------------------------------------------------- buffers

    cdef int open_buffer(self, int32_t channel, Buffer buffer) except -1:
        self._buffers[channel] = buffer
        self._open[channel].data = buffer.segment.data
        self._open[channel].used = 0
        self._open[channel].capacity = buffer.segment.size
        if self._open_since_ns == 0:
            self._open_since_ns = monotonic_ns()
        return 0

    cdef int close_buffer(self, int32_t channel) except -1:
        """Move a channel's open buffer to the full ones."""
        cdef Buffer buffer = self._buffers[channel]
        if buffer is not None:
            buffer.size = <int32_t> self._open[channel].used
            self._full.append((buffer, channel))
            self._buffers[channel] = None
            memset(&self._open[channel], 0, sizeof(OpenBuffer))
        return 0

    cdef int hand_over_full(self) except -1:
        """Give the full buffers, whose rows are all encoded, to the partition."""
        cdef int64_t handed = 0
        cdef Buffer buffer
        if self.is_broadcast:
            try:
                for buffer, channel in self._full:
                    handed += 1
                    self.hand_over(buffer, channel)
            finally:
                del self._full[:handed]
        elif self._full:
            for buffer, _ in self._full:
                handed += buffer.size
            self.partition.add_all(self._full)
            self.bytes += handed
        return 0

    cdef int hand_over_all(self) except -1:
        cdef int32_t channel
        for channel in range(self._channel_count):
            self.close_buffer(channel)
        self._open_since_ns = 0
        return self.hand_over_full()

    cdef int hand_over(self, Buffer buffer, int32_t channel) except -1:
        cdef int32_t size = buffer.size
        if self.is_broadcast:
            self.partition.broadcast(buffer)
        else:
            self.partition.add(buffer, channel)
        self.bytes += size
        return 0

    cdef Buffer next_buffer(self):
        """Return a buffer, or None when there is none now; the partition may know of one, or why there is none."""
        cdef Buffer buffer = None
        if not self._pool.is_closed:
            buffer = self._pool.take(0)
        return self.partition.request_buffer(0) if buffer is None else buffer

    cdef Buffer wait_for_buffer(self):
        """Return a buffer, with patience. Everything placed has been encoded and no full buffer is left here."""
        cdef Buffer buffer = self.next_buffer()
        cdef int64_t open_count
        if buffer is not None:
            return buffer
        open_count = self._channel_count - self._buffers.count(None)
        if self.partition.pool.in_use > open_count:
            buffer = self.partition.request_buffer(self.timeout_ms if self.timeout_ms > 0 else PATIENCE_MS)
        if buffer is None:
            self.hand_over_all()
            buffer = self.partition.request_buffer(-1)
        return buffer


cdef int64_t place(Placement* placement, OpenBuffer* open_buffers, int64_t row, int64_t row_count) noexcept nogil:
    """Give rows their addresses; stops at the first one whose channel has no room and returns it, or row_count."""
    cdef OpenBuffer* target
    cdef int64_t size
    while row < row_count:
        target = &open_buffers[placement.channels[row]]
        size = placement.sizes[row]
        if size > target.capacity - target.used:
            return row
        placement.targets[row] = target.data + target.used
        target.used += size
        row += 1
    return row
