"""SpillReader: the blocks of a SpillFile, in order, read ahead.

    reader = file.reader(prefetch=2)
    while reader.next_block(&data, &size): ...       or ``for rows in reader`` (bytes)
    reader.read_block(index)                          any block of the file, read by the caller's thread
    reader.cancel()                                   from any thread: every later read raises TaskCancelledError
    reader.close()                                    or ``with``

The directory's reader thread reads, checks and decompresses up to `prefetch` blocks while the caller works on one
(slots are drawn in ``spill_reader.pxd``); with prefetch 0 the caller's thread does it and nothing is queued. Every
block is checked against the index and its header: a block that is not exactly the expected one raises
CorruptBlockError, and its rows are never seen.

Memory: prefetch + 1 blocks (raw), and one stored block in the thread while it decompresses.

Source: Flink's AsynchronousBlockReader and its header-checked buffer file reader.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.errno cimport ENOMEM
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from engine.iomanager.block_format cimport (
    BLOCK_HEADER_BYTES,
    FAULT_CODEC,
    FAULT_NONE,
    FAULT_TRUNCATED,
    BlockHeader,
    check_header,
    check_payload,
    decompress_payload,
)
from engine.iomanager.io_buffers cimport IoBuffers
from engine.iomanager.request_queue cimport IoRequest, RequestQueue
from engine.iomanager.spill_file cimport BlockEntry, SpillFile

import os

from engine.errors import SpillError, TaskCancelledError
from engine.iomanager.block_format import corrupt_block

cdef extern from *:
    """
    #include <errno.h>
    #include <stdint.h>
    #include <sys/uio.h>

    /* Read header and payload at an offset; 0, errno, or -1 when the file ends before. */
    static int drey_read_block(int fd, void* header, size_t header_size, void* payload, size_t payload_size,
                               int64_t offset)
    {
        struct iovec parts[2] = {{header, header_size}, {payload, payload_size}};
        int first = 0;
        while (first < 2) {
            ssize_t count;
            if (parts[first].iov_len == 0) {
                first++;
                continue;
            }
            count = preadv(fd, parts + first, 2 - first, offset);
            if (count < 0) {
                if (errno == EINTR)
                    continue;
                return errno;
            }
            if (count == 0)
                return -1;
            offset += count;
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
    int drey_read_block(
        int fd, void* header, size_t header_size, void* payload, size_t payload_size, int64_t offset
    ) noexcept nogil


cdef void execute_read(IoRequest* request) noexcept nogil:
    """Handler of the queue."""
    read_slot(<ReadSlot*> request)


cdef void read_slot(ReadSlot* slot) noexcept nogil:
    """Read, check and decompress the slot's block into its memory; the outcome is in `fault` and `error`."""
    cdef BlockHeader header
    cdef BlockEntry* entry = &slot.entry
    cdef bint compressed = entry.stored_length != entry.raw_length
    cdef uint8_t* stored = slot.memory
    cdef int outcome
    slot.fault = FAULT_NONE
    slot.error = 0
    if compressed:
        stored = (<IoBuffers> slot.buffers).take(entry.stored_length)
        if stored == NULL:
            slot.error = ENOMEM
            return
    outcome = drey_read_block(
        slot.fd, &header, BLOCK_HEADER_BYTES, stored, <size_t> entry.stored_length, entry.offset
    )
    if outcome > 0:
        slot.error = outcome
    elif outcome < 0:
        slot.fault = FAULT_TRUNCATED
    else:
        slot.fault = check_header(&header, slot.identity, slot.sequence, entry.raw_length, entry.stored_length)
        if slot.fault == FAULT_NONE:
            slot.fault = check_payload(&header, stored)
        if slot.fault == FAULT_NONE and compressed:
            if decompress_payload(header.codec, stored, entry.stored_length, slot.memory, entry.raw_length) != 0:
                slot.fault = FAULT_CODEC
    if compressed:
        (<IoBuffers> slot.buffers).give(stored, entry.stored_length)


@cython.final
@cython.no_gc_clear         # __dealloc__ needs queue, buffers and file
cdef class SpillReader:

    def __cinit__(
        self, space, SpillFile file not None, RequestQueue queue, IoBuffers buffers not None, int32_t prefetch,
        int64_t first_block, int64_t end_block,
    ):
        cdef int32_t index
        self._space = space
        self._file = file
        self._queue = queue
        self._buffers = buffers
        self._prefetch = prefetch if queue is not None else 0
        self.next_index = first_block
        self.end_index = end_block
        self._requested_index = first_block
        self._slot_count = self._prefetch + 1
        self._slots = <ReadSlot*> calloc(<size_t> self._slot_count, sizeof(ReadSlot))
        if self._slots == NULL:
            raise MemoryError(f"no memory for a reader of {file.label}")
        self._fds = file.enter()
        if self._prefetch > 0:
            self._queue.start()
            while self._requested_index < min(end_block, first_block + self._prefetch):
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
        if slot.fault != 0 or slot.error != 0:
            with gil:
                self._raise_failure(slot)
        self.next_index += 1
        data[0] = slot.memory
        size[0] = slot.entry.raw_length
        return 1

    cdef int _request(self, int64_t index) except -1 nogil:
        """Have a block read into its slot, whose memory nobody uses any more."""
        cdef ReadSlot* slot = self._slots + index % self._slot_count
        slot.entry = self._file._blocks[index]
        if slot.capacity < slot.entry.raw_length or slot.memory == NULL:
            if slot.memory != NULL:
                self._buffers.give(slot.memory, slot.capacity)
            slot.capacity = slot.entry.raw_length
            slot.memory = self._buffers.take(slot.capacity)
            if slot.memory == NULL:
                with gil:
                    raise MemoryError(f"no memory for a block of {slot.capacity} bytes of {self._file.label}")
        slot.buffers = <void*> self._buffers
        slot.identity = &self._file._identity
        slot.sequence = index
        slot.fd = self._fds[slot.entry.extent]
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

    cdef int _raise_failure(self, ReadSlot* slot) except -1:
        path, offset, _ = self._file.block_place(slot.sequence)
        if slot.fault != 0:
            raise corrupt_block(path, offset, slot.sequence, slot.fault)
        raise SpillError(f"reading block {slot.sequence} at offset {offset} of {path} failed: "
                         f"{os.strerror(slot.error)}")

    cdef void _release(self) noexcept:
        """Wait for what is queued; give back memory and descriptors."""
        cdef int32_t index
        if self._slots != NULL:
            for index in range(self._slot_count):
                if self._prefetch > 0 and self._slots[index].pending > 0:
                    self._queue.wait_pending(&self._slots[index].pending, 0)
                if self._slots[index].memory != NULL:
                    self._buffers.give(self._slots[index].memory, self._slots[index].capacity)
            free(self._slots)
            self._slots = NULL
        if self._fds != NULL:
            self._file.leave()
            self._fds = NULL

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

    def read_block(self, int64_t index):
        """Return the rows of any block of the file, read by this thread; the order of next_block is not touched."""
        cdef ReadSlot slot
        cdef bytes rows
        if self._state != READER_OPEN:
            self._refuse()
        if not 0 <= index < self._file.block_count:
            raise IndexError(f"block {index} of {self._file.block_count}")
        memset(&slot, 0, sizeof(slot))
        slot.entry = self._file._blocks[index]
        rows = PyBytes_FromStringAndSize(NULL, slot.entry.raw_length)
        slot.memory = <uint8_t*> PyBytes_AS_STRING(rows)
        slot.buffers = <void*> self._buffers
        slot.identity = &self._file._identity
        slot.sequence = index
        slot.fd = self._fds[slot.entry.extent]
        with nogil:
            read_slot(&slot)
        if slot.fault != 0 or slot.error != 0:
            self._raise_failure(&slot)
        return rows

    def cancel(self):
        """Have every later read raise TaskCancelledError; it is still to be closed. Thread: any."""
        if self._state == READER_OPEN:
            self._state = READER_CANCELLED

    def close(self):
        """Wait for what is being read and give everything back; idempotent."""
        if self._state != READER_CLOSED:
            self._state = READER_CLOSED
            self._release()
            self._space.reader_closed(self)

    def __enter__(self):
        return self

    def __exit__(self, error_type, error, traceback):
        self.close()
