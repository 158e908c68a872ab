"""BlockStream: a block of snappy or LZ4, as Parquet compresses a page, read piece by piece: it is never there whole.

    stream = BlockStream(read, size_bytes, "snappy")      or "lz4"; read(count) -> the block's next bytes, at most count
    stream.readinto(view)                                 fills it; ValueError where the block is damaged or ends

    snappy   size as a varint │ literal: tag, bytes │ copy: tag, distance │ ...
    lz4      token: two lengths of 4 bits │ more of the first │ literal │ distance │ more of the second │ token ...
    window   │ 1 MiB that copies may refer to │ 1 MiB of new bytes │

A copy of snappy may refer to anything before it, yet compressors work in blocks of 64 KiB and never look further back;
one of LZ4 refers to 64 KiB at most. Lengths of LZ4 are written a byte at a time while it is 255, so they are taken a
byte at a time. Kernels run without the GIL.

Limits: a copy from more than 1 MiB back is an error.
Source: google/snappy, format_description.txt; lz4/lz4, lz4_Block_format.md.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

cdef enum:
    WINDOW = 1 << 20
    CHUNK = 1 << 18
    TAG_BYTES = 5

# What comes next in a block of LZ4.
cdef enum Step:
    TOKEN
    MORE_LITERAL
    DISTANCE
    MORE_COPY

cdef struct Block:
    const uint8_t* source
    int64_t source_left
    uint8_t* window
    int64_t used                 # bytes in the window
    int64_t left                 # bytes of the block that are still to come
    int64_t literal              # bytes of a literal that are still to be copied
    int64_t copied               # the same of a copy
    int64_t distance
    bint is_lz4
    Step step
    int64_t length               # of LZ4: of what comes next, so far
    int32_t copy_bits            # of LZ4: the second length of the token


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
            if not (take_step(block) if block.is_lz4 else take_tag(block)):
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


cdef bint take_step(Block* block) noexcept nogil:
    cdef uint8_t byte
    if block.source_left < (2 if block.step == DISTANCE else 1):
        return False
    byte = block.source[0]
    block.source += 1
    block.source_left -= 1
    if block.step == TOKEN:
        block.copy_bits = byte & 15
        block.length = byte >> 4
        block.step = MORE_LITERAL if block.length == 15 else DISTANCE
    elif block.step == DISTANCE:
        block.distance = byte | <int64_t>block.source[0] << 8
        block.source += 1
        block.source_left -= 1
        block.length = block.copy_bits + 4
        block.step = MORE_COPY if block.copy_bits == 15 else TOKEN
    else:
        block.length += byte
        if byte != 255:
            block.step = DISTANCE if block.step == MORE_LITERAL else TOKEN
    if block.length > block.left:
        return False
    if block.step == DISTANCE:
        block.literal = block.length
    elif block.step == TOKEN:
        block.copied = block.length
        return 0 < block.distance <= min(block.used, <int64_t>WINDOW)
    return True


@cython.final
cdef class BlockStream:
    """Reads one block. Used by one thread."""

    cdef object _read
    cdef bytes _chunk
    cdef Block _block
    cdef int64_t _given          # bytes of the window that were read
    cdef bint _is_end            # of the source
    cdef str _codec

    def __cinit__(self, read, int64_t size_bytes, str codec not None):
        self._read = read
        self._codec = codec
        self._block.window = <uint8_t*>malloc(2 * WINDOW)
        if self._block.window == NULL:
            raise MemoryError("no memory to decompress a page")
        self._block.is_lz4 = codec == "lz4"
        self._block.left = size_bytes if self._block.is_lz4 else self._size_in_front(size_bytes)

    def __dealloc__(self):
        free(self._block.window)

    cdef int64_t _size_in_front(self, int64_t size_bytes) except -1:
        """Read the size that a block of snappy begins with."""
        cdef int64_t shift = 0
        cdef int64_t size = 0
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
        return size

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
                raise ValueError(f"a page compressed by {self._codec} is damaged")
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
