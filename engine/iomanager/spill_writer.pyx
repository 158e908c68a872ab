"""SpillWriter: rows in, blocks on disk.

    writer = space.writer("run 3", block_size=262144)
    writer.write(pointer, size)  or  writer.write_bytes(buffer)          whole rows per call
    writer.cut()                                                         optional: begin a new block here
    mark = writer.mark_block()                                           the same, and have file.place(mark) know it
    file = writer.finish()                                               waits for the disk; SpillFile
    writer.discard()                                                     instead of finish: nothing stays on disk
    writer.cancel()                                                      from any thread: the next call raises

One thread fills, the directory's I/O thread compresses, checksums and writes (the drawing is in ``spill_writer.pxd``).
Compression is kept when it saves a tenth; after three poor blocks in a row a file is written as it is.

When a disk is full, or the directory's limit used up (``disk_limit``), the file goes on in another directory as a new
extent; the torn block is cut off first. When no
directory has room, or a write fails in another way, the writer is poisoned: later blocks are dropped, and the next
call raises the error that happened, as does every call after it.

Memory: one block being filled, and those in the queue (bounded by its depth for all writers of a disk).

Source: Flink's AsynchronousBlockWriter and the compressed channel writers of its table runtime; extents are ours.

Held by: tests/iomanager/test_spill_round_trip.py
"""

cimport cython
from cpython.ref cimport PyObject
from libc.errno cimport EDQUOT, EFBIG, EIO, ENOMEM, ENOSPC
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset

from engine.iomanager.block_format cimport (
    BLOCK_HEADER_BYTES,
    CODEC_NONE,
    BlockHeader,
    Codec,
    compress_payload,
    seal_header,
    set_identity,
)
from engine.iomanager.disk_limit cimport DiskShare
from engine.iomanager.io_buffers cimport IoBuffers
from engine.iomanager.open_files cimport OpenFile
from engine.iomanager.request_queue cimport IoRequest, RequestQueue
from engine.iomanager.spill_file cimport BlockPlace, SpillFile, new_file

import os

from engine.errors import SpillError, TaskCancelledError

cdef int64_t COMPRESS_BYTES_MIN = 1024
cdef int64_t COMPRESS_BYTES_MAX = 16 << 20      # the target of a larger block would be as large again
cdef int32_t POOR_STREAK_MAX = 192     # three blocks of 64 KiB or more, some forty of 4 KiB

cdef struct WriteRequest:
    IoRequest request           # first: what the queue knows
    WriteStream* stream
    uint8_t* data
    int64_t size
    int64_t capacity            # as taken from the IoBuffers; 0: memory of the caller, which waits for this
    int32_t marks               # of this block
    BlockPlace* note            # where its place is written, or NULL


# ---------------------------------------------------------------------------------------------- on the I/O thread


cdef void execute_write(IoRequest* request) noexcept nogil:
    """Handler of the queue: write one block, give its memory back, free the request."""
    cdef WriteRequest* write = <WriteRequest*> request
    cdef WriteStream* stream = write.stream
    cdef int error
    if stream.failed == 0:
        error = write_block(stream, write)
        if error != 0:
            fail_stream(stream, error)
    if write.capacity > 0:
        (<IoBuffers> stream.buffers).give(write.data, write.capacity)
    free(write)


cdef int write_block(WriteStream* stream, WriteRequest* write) noexcept nogil:
    """Compress, seal and write a block; 0, or the errno that poisons the stream (-1: it is poisoned already)."""
    cdef const uint8_t* data = write.data
    cdef int64_t size = write.size
    cdef int64_t capacity = size - size // 10
    cdef uint8_t* target = NULL
    cdef Codec codec = CODEC_NONE
    cdef int64_t stored = 0
    cdef int error
    if stream.compress and COMPRESS_BYTES_MIN <= size <= COMPRESS_BYTES_MAX:
        target = (<IoBuffers> stream.buffers).take(capacity)
        if target != NULL:
            stored = compress_payload(data, size, target, capacity, &codec)
            stream.poor_streak = 0 if stored > 0 else stream.poor_streak + <int32_t> min(size >> 10, 64) + 1
            stream.compress = stream.poor_streak < POOR_STREAK_MAX
    if stored > 0:
        error = store_block(stream, write, codec, target, stored)
    else:
        error = store_block(stream, write, CODEC_NONE, data, size)
    if target != NULL:
        (<IoBuffers> stream.buffers).give(target, capacity)
    return error


cdef int store_block(
    WriteStream* stream, WriteRequest* write, Codec codec, const uint8_t* payload, int64_t stored_length
) noexcept nogil:
    """Write header and payload to the current extent, or to the next ones, and report its place."""
    cdef BlockHeader header = stream.identity
    cdef int error
    seal_header(&header, codec, write.size, stream.block_count, payload, stored_length)
    while True:
        error = (<DiskShare> stream.share).write(
            <OpenFile> stream.file, &header, BLOCK_HEADER_BYTES, payload, stored_length, stream.position
        )
        if error < 0:
            return -error
        if error == 0:
            break
        if error != ENOSPC and error != EDQUOT and error != EFBIG:
            return error
        if next_extent(stream, error, stored_length + BLOCK_HEADER_BYTES) != 0:
            return -1
    if write.marks > 0 and add_marks(stream, write.marks) != 0:
        return ENOMEM
    if write.note != NULL:
        write.note[0] = next_place(stream)
    stream.block_count += 1
    stream.position += stored_length + BLOCK_HEADER_BYTES
    stream.stored_bytes += stored_length + BLOCK_HEADER_BYTES
    return 0


cdef BlockPlace next_place(WriteStream* stream) noexcept nogil:
    """Return the place of the next block."""
    cdef BlockPlace place
    place.sequence = stream.block_count
    place.offset = stream.position
    place.extent = max(stream.extent, 0)
    return place


cdef int add_marks(WriteStream* stream, int64_t count) noexcept nogil:
    """Let that many marks stand for where the next block begins; -1: no memory."""
    cdef int64_t capacity = max(stream.mark_count + count, 2 * stream.mark_capacity)
    cdef BlockPlace* marks
    if stream.mark_count + count > stream.mark_capacity:
        marks = <BlockPlace*> realloc(stream.marks, <size_t> capacity * sizeof(BlockPlace))
        if marks == NULL:
            return -1
        stream.marks = marks
        stream.mark_capacity = capacity
    while count > 0:
        stream.marks[stream.mark_count] = next_place(stream)
        stream.mark_count += 1
        count -= 1
    return 0


cdef int next_extent(WriteStream* stream, int error, int64_t need) noexcept nogil:
    with gil:
        return (<SpillWriter> stream.owner)._next_extent(error, need)


cdef void fail_stream(WriteStream* stream, int error) noexcept nogil:
    if error > 0:
        with gil:
            (<SpillWriter> stream.owner)._fail(error)
    elif stream.failed == 0:
        stream.failed = EIO


cdef void note_size(SpillWriter writer):
    """Tell the directory of the last extent what it takes. Nothing is pending."""
    if writer._stream.extent >= 0:
        file, directory = writer._extents[writer._stream.extent]
        directory.note_size(file, writer._stream.position)


# --------------------------------------------------------------------------------------------- on the caller's thread


@cython.final
@cython.no_gc_clear         # __dealloc__ needs queue and buffers
cdef class SpillWriter:

    def __cinit__(
        self, space, str label not None, IoBuffers buffers not None, identity, int32_t file_number, int64_t block_size,
        bint compress,
    ):
        if not 1024 <= block_size <= 1 << 30:
            raise ValueError(f"a block size of {block_size} bytes: from 1024 to 2**30 are possible")
        self._space = space
        self.label = label
        self.block_size = block_size
        self._buffers = buffers
        self._file_number = file_number
        self._extents = []
        self._first_blocks = []
        self._full = set()
        self._pending = <int32_t*> calloc(1, sizeof(int32_t))
        self._stream = <WriteStream*> calloc(1, sizeof(WriteStream))
        if self._pending == NULL or self._stream == NULL:
            raise MemoryError(f"no memory for the spill writer {label}")
        self._stream.owner = <void*> self
        self._stream.buffers = <void*> buffers
        self._stream.extent = -1
        self._stream.compress = compress
        set_identity(&self._stream.identity, identity, file_number)

    def __dealloc__(self):
        if self._pending != NULL and self._pending[0] > 0:
            self._queue.wait_pending(self._pending, 0)
        self._free()
        free(self._pending)

    cdef int write(self, const uint8_t* data, int64_t size) except -1 nogil:
        if self._stream == NULL or self._stream.failed != 0:
            with gil:
                self._raise_failure()
        if size <= 0:
            return 0
        if self._fill_size + size > self.block_size and self._fill_size > 0:
            self.cut()
        self.raw_bytes += size
        if size > self.block_size:
            return self._queue_block(<uint8_t*> data, size, 0)
        if self._fill == NULL:
            self._take_buffer()
        memcpy(self._fill + self._fill_size, data, <size_t> size)
        self._fill_size += size
        return 0

    cdef int cut(self) except -1 nogil:
        cdef uint8_t* data = self._fill
        cdef int64_t size = self._fill_size
        if size == 0:
            return 0
        self._fill = NULL
        self._fill_size = 0
        return self._queue_block(data, size, self.block_size)

    cdef int64_t mark(self) except -1 nogil:
        self.cut()
        self._new_marks += 1
        self._mark_count += 1
        return self._mark_count - 1

    cdef int note_next(self, BlockPlace* place) except -1 nogil:
        self.cut()
        self._note = place
        return 0

    cdef int write_own(self, uint8_t* data, int64_t size, int64_t capacity) except -1 nogil:
        return self._queue_block(data, size, capacity)

    cdef int _take_buffer(self) except -1 nogil:
        self._fill = self._buffers.take(self.block_size)
        if self._fill == NULL:
            with gil:
                raise MemoryError(f"no memory for a block of {self.block_size} bytes of {self.label}")
        return 0

    cdef int _queue_block(self, uint8_t* data, int64_t size, int64_t capacity) except -1 nogil:
        cdef WriteRequest* write = <WriteRequest*> malloc(sizeof(WriteRequest))
        if write != NULL and self._stream.failed == 0 and self._queue is None:
            with gil:
                self._open_first(size + BLOCK_HEADER_BYTES)
        if write == NULL or self._stream.failed != 0:
            free(write)
            if capacity > 0:
                self._buffers.give(data, capacity)
            with gil:
                self._raise_failure()
        memset(write, 0, sizeof(WriteRequest))
        write.request.handler = execute_write
        write.stream = self._stream
        write.data = data
        write.size = size
        write.capacity = capacity
        write.marks = self._new_marks
        write.note = self._note
        self._new_marks = 0
        self._note = NULL
        self.blocks_cut += 1
        self._queue.submit(&write.request, self._pending)
        if capacity == 0:
            self.settle()
        return 0

    cdef void settle(self) noexcept nogil:
        # a writer whose first block was never cut has no queue, one that has ended nothing on its way
        if self._stream != NULL and self._queue is not None:
            self._queue.wait_pending(self._pending, 0)

    cdef int _open_first(self, int64_t need) noexcept:
        """Open the first extent; its directory's queue writes the whole file. The writer is poisoned if that fails."""
        cdef RequestQueue queue
        if self._next_extent(0, need) != 0:
            return -1
        try:
            queue = self._extents[0][1].write_queue
            queue.start()
            self._queue = queue
        except BaseException as failure:
            self._poison(failure)
            return -1
        return 0

    # ------------------------------------------------------------------------------------------------------- failure

    cdef int _raise_failure(self) except -1:
        if self._error is not None:
            raise self._error
        if self._stream == NULL:
            raise ValueError(f"the spill writer {self.label} is finished or discarded")
        raise MemoryError(f"no memory for a block of the spill writer {self.label}")

    cdef int _next_extent(self, int error, int64_t need) noexcept:
        """Open the next extent (of the first block: the first); 0, or -1 after poisoning the writer.

        Thread: the caller's for the first extent, the I/O thread's for the others.
        """
        cdef WriteStream* stream = self._stream
        try:
            if stream.extent >= 0:
                file, directory = self._extents[stream.extent]
                with file as descriptor:
                    os.ftruncate(descriptor, stream.position)
                directory.note_size(file, stream.position)
                if error != EFBIG or stream.position == 0:          # a file may be too long for a disk with room
                    self._full.add(directory)
            number = stream.extent + 1
            extent = self._space.open_extent(self._file_number, number, need, self._full)
            self._extents.append(extent)
            self._first_blocks.append(stream.block_count)
            stream.file = <void*> (<OpenFile?> extent[0])
            share = extent[1].share_of(extent[0])
            stream.share = <void*> (<DiskShare?> share)
            stream.extent = number
            stream.position = 0
        except BaseException as failure:
            self._poison(failure)
            return -1
        return 0

    cdef void _poison(self, failure) noexcept:
        self._error = failure
        self._stream.failed = EIO

    cdef void _fail(self, int error) noexcept:
        """Poison the writer with the errno of a write. Thread: I/O."""
        path = self._extents[self._stream.extent][0].path
        self._error = SpillError(f"writing {path} at offset {self._stream.position} failed: {os.strerror(error)}")
        self._error.__cause__ = OSError(error, os.strerror(error), path)
        self._stream.failed = error

    # -------------------------------------------------------------------------------------------------- from Python

    def write_bytes(self, const uint8_t[::1] data not None):
        """Append whole rows from a contiguous buffer, as `write` does."""
        cdef int64_t size = data.shape[0]
        if size > 0:
            with nogil:
                self.write(&data[0], size)

    def cut_block(self):
        """End the current block here and return the number of the next one."""
        if self._stream == NULL or self._stream.failed != 0:
            self._raise_failure()
        self.cut()
        return self.blocks_cut

    def mark_block(self):
        """End the current block here and mark the next one; return the number of the mark, for SpillFile.place."""
        if self._stream == NULL or self._stream.failed != 0:
            self._raise_failure()
        return self.mark()

    @property
    def stored_bytes(self):
        """Bytes on disk so far, headers included."""
        return self._stream.stored_bytes if self._stream != NULL else 0

    @property
    def extents(self):
        """(file, directory) of each extent so far."""
        return tuple(self._extents)

    def finish(self):
        """Write the last block, wait for the disk and return the SpillFile.

        Raises: DiskFullError, SpillError: what any block met; then nothing of the file stays on disk.
        """
        cdef WriteStream* stream = self._stream
        cdef SpillFile file
        if stream == NULL:
            self._raise_failure()
        try:
            if stream.failed == 0:
                self.cut()
            self.settle()
            if stream.failed != 0:
                self._raise_failure()
            if add_marks(stream, self._new_marks) != 0:
                raise MemoryError(f"no memory for the marks of {self.label}")
            file = new_file(
                self._space, self.label, tuple(self._extents), self._first_blocks, &stream.identity,
                stream.block_count, self.raw_bytes, stream.stored_bytes,
            )
        except BaseException:
            self.discard()
            raise
        file._marks, file._mark_count = stream.marks, stream.mark_count
        stream.marks = NULL
        note_size(self)
        self._space.writer_finished(self, file)
        self._free()
        return file

    def cancel(self):
        """Poison the writer: its next call raises TaskCancelledError; it is still to be discarded. Thread: any."""
        if self._stream != NULL and self._stream.failed == 0:
            self._error = TaskCancelledError(f"the spill writer {self.label} was cancelled")
            self._stream.failed = EIO

    def discard(self):
        """Give the file up: wait for the disk, remove what was written; idempotent."""
        if self._stream == NULL:
            return
        self.settle()
        note_size(self)
        try:
            self._space.writer_discarded(self)
        finally:
            self._free()

    cdef void _free(self) noexcept:
        """Give back buffer and index. Nothing is pending."""
        if self._fill != NULL:
            self._buffers.give(self._fill, self.block_size)
            self._fill = NULL
            self._fill_size = 0
        if self._stream != NULL:
            free(self._stream.marks)
            free(self._stream)
            self._stream = NULL

    def __repr__(self):
        return f"<SpillWriter {self.label!r}: {self.raw_bytes} bytes, {self.blocks_cut} blocks cut>"
