"""SnappyStream: a snappy block, as Parquet compresses a page, read piece by piece: nothing of its size is in memory.

    stream = SnappyStream(read, size_bytes)       read(count) -> the next bytes of the block, at most count
    stream.readinto(view)                         fills it; ValueError where the block is damaged or ends

    block    size as a varint │ literal: tag, bytes │ copy: tag, distance │ ...
    window   │ 1 MiB that copies may refer to │ 1 MiB of new bytes │

A copy may refer to anything before it, yet compressors work in blocks of 64 KiB and never look further back. Kernels
run without the GIL.

Limits: a copy from more than 1 MiB back is an error.
Source: google/snappy, format_description.txt.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

cdef enum:
    WINDOW = 1 << 20
    CHUNK = 1 << 18
    TAG_BYTES = 5

cdef struct Block:
    const uint8_t* source
    int64_t source_left
    uint8_t* window
    int64_t used                 # bytes in the window
    int64_t left                 # bytes of the block that are still to come
    int64_t literal              # bytes of a literal that are still to be copied
    int64_t copied               # the same of a copy
    int64_t distance


# Decode until the window is full, or the source has less than a tag and is not at its end. False: it is damaged.
cdef bint decode(Block* block, bint is_end) noexcept nogil:
    cdef int64_t count, position
    while block.left and block.used < 2 * WINDOW:
        if block.literal:
            count = min(block.literal, min(block.source_left, 2 * WINDOW - block.used))
            if count == 0:
                return not is_end
            memcpy(block.window + block.used, block.source, <size_t>count)
            block.source += count
            block.source_left -= count
            block.literal -= count
        elif block.copied:
            count = min(block.copied, 2 * WINDOW - block.used)
            for position in range(block.used, block.used + count):
                block.window[position] = block.window[position - block.distance]
            block.copied -= count
        else:
            if block.source_left < TAG_BYTES and not is_end:
                return True
            if not take_tag(block):
                return False
            continue
        block.used += count
        block.left -= count
    return True


cdef bint take_tag(Block* block) noexcept nogil:
    cdef const uint8_t* source = block.source
    cdef uint8_t tag
    cdef int64_t length, extra
    cdef int64_t number = 0
    if block.source_left < 1:
        return False
    tag = source[0]
    length = tag >> 2
    if tag & 3 == 0:
        extra = length - 59 if length >= 60 else 0
    else:
        extra = 1 if tag & 3 == 1 else 2 if tag & 3 == 2 else 4
    if block.source_left < 1 + extra:
        return False
    memcpy(&number, source + 1, <size_t>extra)      # little-endian, as all machines this is built for
    block.source += 1 + extra
    block.source_left -= 1 + extra
    if tag & 3 == 0:
        block.literal = (number if extra else length) + 1
        return block.literal <= block.left
    if tag & 3 == 1:
        block.copied = (length & 7) + 4
        block.distance = (tag >> 5 << 8) | number
    else:
        block.copied = length + 1
        block.distance = number
    # What is left of the copy when the window moves on refers to the 1 MiB that stays.
    return 0 < block.distance <= min(block.used, <int64_t>WINDOW) and block.copied <= block.left


@cython.final
cdef class SnappyStream:
    """Reads one block. Used by one thread."""

    cdef object _read
    cdef bytes _chunk
    cdef Block _block
    cdef int64_t _given          # bytes of the window that were read
    cdef bint _is_end            # of the source

    def __cinit__(self, read, int64_t size_bytes):
        cdef int64_t shift = 0
        cdef int64_t size = 0
        self._read = read
        self._block.window = <uint8_t*>malloc(2 * WINDOW)
        if self._block.window == NULL:
            raise MemoryError("no memory to decompress a page")
        while shift < 35:
            if self._block.source_left == 0:
                self._refill()
                if self._is_end:
                    break
            byte = self._block.source[0]
            self._block.source += 1
            self._block.source_left -= 1
            size |= <int64_t>(byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        if size != size_bytes:
            raise ValueError(f"a page of {size_bytes} bytes says that it has {size}")
        self._block.left = size

    def __dealloc__(self):
        free(self._block.window)

    def readinto(self, uint8_t[::1] target not None):
        """Fill target with the next bytes."""
        cdef int64_t size = target.shape[0]
        cdef int64_t done = 0
        cdef int64_t count
        while done < size:
            if self._given == self._block.used:
                self._decode()
            count = min(size - done, self._block.used - self._given)
            memcpy(&target[done], self._block.window + self._given, <size_t>count)
            done += count
            self._given += count

    def read(self, int64_t size):
        """Return the next bytes."""
        target = bytearray(size)
        if size:
            self.readinto(target)
        return bytes(target)

    cdef int _decode(self) except -1:
        """Decode at least one more byte."""
        cdef Block* block = &self._block
        cdef int64_t before
        cdef bint is_sound
        if block.used == 2 * WINDOW:
            memcpy(block.window, block.window + WINDOW, WINDOW)
            block.used = self._given = WINDOW
        before = block.used
        while block.used == before:
            if block.left == 0:
                raise ValueError("a compressed page ends before its values do")
            with nogil:
                is_sound = decode(block, self._is_end)
            if not is_sound:
                raise ValueError("a page compressed by snappy is damaged")
            if block.used == before:
                self._refill()
        return 0

    cdef int _refill(self) except -1:
        rest = self._block.source[:self._block.source_left] if self._block.source_left else b""
        more = self._read(CHUNK)
        self._is_end = not more
        self._chunk = rest + more
        self._block.source = <const uint8_t*>PyBytes_AS_STRING(self._chunk)
        self._block.source_left = len(self._chunk)
        return 0
