"""SpillReader: the blocks of a SpillFile, in order, read ahead.

    reader = file.reader(prefetch=2)
    while reader.next_block(&data, &size): ...       or ``for rows in reader`` (bytes)
    reader.cancel()                                   from any thread: every later read raises TaskCancelledError
    reader.close()                                    or ``with``

The directory's reader thread reads, checks and decompresses up to `prefetch` blocks while the caller works on one
(slots are drawn in ``spill_reader.pxd``); with prefetch 0 the caller's thread does it and nothing is queued. Where a
block is follows from the one before it: a chain, which one thread at a time follows. Every header is checked before
what it says is used: a block that is not exactly the expected one raises CorruptBlockError, its rows are never seen,
and nothing behind it is read.

Memory: prefetch + 1 blocks (raw), and one stored block in the thread while it decompresses.

Source: Flink's AsynchronousBlockReader and its header-checked buffer file reader.

Held by: tests/iomanager/test_spill_round_trip.py
"""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.errno cimport ENOMEM
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free

from engine.iomanager.block_format cimport (
    BLOCK_HEADER_BYTES,
    CODEC_NONE,
    FAULT_CODEC,
    FAULT_LENGTH,
    FAULT_NONE,
    FAULT_TRUNCATED,
    check_header,
    check_payload,
    decompress_payload,
)
from engine.iomanager.io_buffers cimport IoBuffers
from engine.iomanager.open_files cimport OpenFile
from engine.iomanager.request_queue cimport IoRequest, RequestQueue
from engine.iomanager.spill_file cimport SpillFile

import os

from engine.errors import SpillError, TaskCancelledError
from engine.iomanager.block_format import corrupt_block

cdef extern from *:
    """
    #include <errno.h>
    #include <stdint.h>
    #include <sys/uio.h>

    /* Read two parts, one behind the other, at an offset; 0 or errno, and how many bytes there were. */
    static int drey_read_parts(int fd, void* first_part, size_t first_size, void* second_part, size_t second_size,
                               int64_t offset, int64_t* done)
    {
        struct iovec parts[2] = {{first_part, first_size}, {second_part, second_size}};
        int first = 0;
        *done = 0;
        while (first < 2) {
            ssize_t count;
            if (parts[first].iov_len == 0) {
                first++;
                continue;
            }
            count = preadv(fd, parts + first, 2 - first, offset + *done);
            if (count < 0) {
                if (errno == EINTR)
                    continue;
                return errno;
            }
            if (count == 0)
                return 0;
            *done += count;
            while (first < 2 && (size_t) count >= parts[first].iov_len) {
                count -= parts[first].iov_len;
                first++;
            }
            if (first < 2) {
                parts[first].iov_base = (char*) parts[first].iov_base + count;
                parts[first].iov_len -= count;
            }
        }
        return 0;
    }
    """
    int drey_read_parts(
        int fd, void* first_part, size_t first_size, void* second_part, size_t second_size, int64_t offset,
        int64_t* done
    ) noexcept nogil


cdef void execute_read(IoRequest* request) noexcept nogil:
    """Handler of the queue."""
    read_slot(<ReadSlot*> request)


cdef void read_slot(ReadSlot* slot) noexcept nogil:
    """Read the cursor's block into the slot and move the cursor on, unless something is wrong, now or before."""
    cdef BlockCursor* cursor = slot.cursor
    cdef int64_t length
    if cursor.fault == FAULT_NONE and cursor.error == 0:
        find_block(cursor)
    if cursor.fault == FAULT_NONE and cursor.error == 0:
        length = cursor.header.stored_length
        cursor.has_header = read_block(cursor, slot)
        if cursor.fault == FAULT_NONE and cursor.error == 0:
            cursor.place.sequence += 1
            cursor.place.offset += BLOCK_HEADER_BYTES + length
    slot.is_bad = cursor.fault != FAULT_NONE or cursor.error != 0


cdef int read_parts(
    BlockCursor* cursor, void* first_part, size_t first_size, void* second_part, size_t second_size, int64_t offset,
    int64_t* done
) noexcept nogil:
    """Read two parts, one behind the other, of the cursor's extent; errno or 0."""
    cdef void* file = cursor.files[cursor.place.extent]
    cdef int descriptor = (<OpenFile> file).take()
    cdef int error
    if descriptor < 0:
        return -descriptor
    error = drey_read_parts(descriptor, first_part, first_size, second_part, second_size, offset, done)
    (<OpenFile> file).put()
    return error


cdef void find_block(BlockCursor* cursor) noexcept nogil:
    """Have the header of the block at the cursor's place, checked."""
    cdef int64_t done = 0
    while cursor.place.extent + 1 < cursor.extent_count and (
        cursor.first_blocks[cursor.place.extent + 1] <= cursor.place.sequence
    ):
        cursor.place.extent += 1
        cursor.place.offset = 0
        cursor.has_header = False
    if not cursor.has_header:
        cursor.error = read_parts(
            cursor, &cursor.header, BLOCK_HEADER_BYTES, NULL, 0, cursor.place.offset, &done
        )
        if cursor.error == 0 and done < BLOCK_HEADER_BYTES:
            cursor.fault = FAULT_TRUNCATED
    if cursor.error == 0 and cursor.fault == FAULT_NONE:
        cursor.fault = check_header(&cursor.header, cursor.identity, cursor.place.sequence, -1, -1)
    if cursor.error == 0 and cursor.fault == FAULT_NONE and (
        cursor.header.raw_length > cursor.length_max or cursor.header.stored_length > cursor.length_max
    ):
        cursor.fault = FAULT_LENGTH


cdef bint read_block(BlockCursor* cursor, ReadSlot* slot) noexcept nogil:
    """Read, check and decompress the payload of the cursor's block; returns whether its header is the next one's now.

    The headers behind payloads are read with them, but for the last one of an extent.
    """
    cdef BlockHeader header = cursor.header
    cdef bint compressed = header.codec != CODEC_NONE
    cdef bint is_last = cursor.first_blocks[cursor.place.extent + 1] == cursor.place.sequence + 1
    cdef uint8_t* stored
    cdef int64_t done = 0
    if not slot_holds(slot, header.raw_length):
        cursor.error = ENOMEM
        return False
    stored = (<IoBuffers> cursor.buffers).take(header.stored_length) if compressed else slot.memory
    if stored == NULL:
        cursor.error = ENOMEM
        return False
    cursor.error = read_parts(
        cursor, stored, <size_t> header.stored_length, &cursor.header, 0 if is_last else BLOCK_HEADER_BYTES,
        cursor.place.offset + BLOCK_HEADER_BYTES, &done,
    )
    if done >= header.stored_length:
        cursor.error = 0                # what is wrong behind the block is found when that is wanted
        cursor.fault = check_payload(&header, stored)
        if compressed and cursor.fault == FAULT_NONE and (
            decompress_payload(header.codec, stored, header.stored_length, slot.memory, header.raw_length) != 0
        ):
            cursor.fault = FAULT_CODEC
    elif cursor.error == 0:
        cursor.fault = FAULT_TRUNCATED
    if compressed:
        (<IoBuffers> cursor.buffers).give(stored, header.stored_length)
    return not is_last and done == header.stored_length + BLOCK_HEADER_BYTES


cdef bint slot_holds(ReadSlot* slot, int64_t size) noexcept nogil:
    """Give a slot, whose memory is unused, enough of it; False: there is none."""
    slot.size = size
    if slot.memory != NULL and slot.capacity < size:
        (<IoBuffers> slot.cursor.buffers).give(slot.memory, slot.capacity)
        slot.memory = NULL
    if slot.memory == NULL:
        slot.capacity = size
        slot.memory = (<IoBuffers> slot.cursor.buffers).take(size)
    return slot.memory != NULL


@cython.final
@cython.no_gc_clear         # __dealloc__ needs queue, buffers and file
cdef class SpillReader:

    def __cinit__(
        self, space, SpillFile file not None, RequestQueue queue, IoBuffers buffers not None, int32_t prefetch,
        place, int64_t end_block,
    ):
        self._space = space
        self._file = file
        self._queue = queue
        self._buffers = buffers
        self._prefetch = prefetch if queue is not None else 0
        self._cursor.place.sequence, self._cursor.place.offset, self._cursor.place.extent = place
        self.next_index = self._requested_index = self._cursor.place.sequence
        self.end_index = end_block
        self._slot_count = self._prefetch + 1
        self._slots = <ReadSlot*> calloc(<size_t> self._slot_count, sizeof(ReadSlot))
        if self._slots == NULL:
            raise MemoryError(f"no memory for a reader of {file.label}")
        file.enter()
        self._cursor.files = file._files
        self._cursor.identity = &file._identity
        self._cursor.first_blocks = file._first_blocks
        self._cursor.extent_count = file._extent_count
        self._cursor.length_max = file.raw_bytes + file.stored_bytes
        self._cursor.buffers = <void*> buffers
        if self._prefetch > 0:
            self._queue.start()
            while self._requested_index < min(end_block, self.next_index + self._prefetch):
                self._request(self._requested_index)

    def __dealloc__(self):
        self._release()

    cdef int next_block(self, const uint8_t** data, int64_t* size) except -1 nogil:
        cdef ReadSlot* slot
        if self._state != READER_OPEN:
            with gil:
                self._refuse()
        if self.next_index >= self.end_index:
            return 0
        while self._requested_index < self.end_index and self._requested_index < self.next_index + self._slot_count:
            self._request(self._requested_index)
        slot = self._slots + self.next_index % self._slot_count
        if self._prefetch > 0:
            self._queue.wait_pending(&slot.pending, 0)
        if slot.is_bad:
            with gil:
                self._raise_failure()
        self.next_index += 1
        data[0] = slot.memory
        size[0] = slot.size
        return 1

    cdef int _request(self, int64_t index) except -1 nogil:
        """Read a block into its slot, whose memory is unused."""
        cdef ReadSlot* slot = self._slots + index % self._slot_count
        slot.cursor = &self._cursor
        slot.request.handler = execute_read
        self._requested_index = index + 1
        if self._prefetch > 0:
            self._queue.submit(&slot.request, &slot.pending)
        else:
            read_slot(slot)
        return 0

    cdef int _refuse(self) except -1:
        if self._state == READER_CANCELLED:
            raise TaskCancelledError(f"the reader of {self._file.label} was cancelled")
        raise ValueError(f"the reader of {self._file.label} is closed")

    cdef int _raise_failure(self) except -1:
        cdef BlockCursor* cursor = &self._cursor
        path = self._file.paths[cursor.place.extent]
        if cursor.fault != 0:
            found = (<const uint8_t*> &cursor.header)[:8].hex()
            there = f" (there is {found}; the file has {os.stat(path).st_size} bytes)" if os.path.exists(path) else ""
            raise corrupt_block(path, cursor.place.offset, cursor.place.sequence, cursor.fault, there)
        if cursor.error == ENOMEM:
            raise MemoryError(f"no memory for block {cursor.place.sequence} of {self._file.label}")
        failure = SpillError(f"reading block {cursor.place.sequence} at offset {cursor.place.offset} of {path} failed: "
                             f"{os.strerror(cursor.error)}")
        raise failure from OSError(cursor.error, os.strerror(cursor.error), path)

    cdef int _release(self) except -1:
        """Wait for what is queued; give back memory, and the file. Raises: SpillError."""
        cdef int32_t index
        if self._slots != NULL:
            for index in range(self._slot_count):
                if self._prefetch > 0 and self._slots[index].pending > 0:
                    self._queue.wait_pending(&self._slots[index].pending, 0)
                if self._slots[index].memory != NULL:
                    self._buffers.give(self._slots[index].memory, self._slots[index].capacity)
            free(self._slots)
            self._slots = NULL
        if self._cursor.files != NULL:
            self._cursor.files = NULL
            self._file.leave()
        return 0

    # -------------------------------------------------------------------------------------------------- from Python

    def __iter__(self):
        return self

    def __next__(self):
        cdef const uint8_t* data
        cdef int64_t size
        cdef int found
        with nogil:
            found = self.next_block(&data, &size)
        if not found:
            raise StopIteration
        return PyBytes_FromStringAndSize(<const char*> data, size)

    def cancel(self):
        """Have every later read raise TaskCancelledError; it is still to be closed. Thread: any."""
        if self._state == READER_OPEN:
            self._state = READER_CANCELLED

    def close(self):
        """Wait for what is being read and give everything back; idempotent."""
        if self._state != READER_CLOSED:
            self._state = READER_CLOSED
            self._space.reader_closed(self)
            self._release()

    def __enter__(self):
        return self

    def __exit__(self, error_type, error, traceback):
        self.close()
