"""FetchedBytes: bytes of a file that were fetched, where they came, read by kernels as the file would be.

    fetched = FetchedBytes()
    fetched.add(position, content)    over what was there; ``content`` is kept, and not copied
    fetched.seal()                    kernels see it from now on
    fetched.parts_of()                (position, bytes) of all parts
    fetched.clear()

    file       ....[ a ][  b  ].....[c]....      a gap reads as zeros, which are no page and no header
    parts          (begin, end, pointer) × 3

Thread: one at a time; kernels read without the GIL.
Held by: tests/parquet/test_fetched_bytes.py
"""

from bisect import bisect_left

from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset
from posix.unistd cimport pread


cdef int64_t read_bytes(int descriptor, const Parts* parts, uint8_t* target, int64_t size,
                        int64_t position) noexcept nogil:
    """Read bytes of a file, or of its parts where there are any; returns how many, -1 for an error (errno)."""
    cdef int64_t low = 0
    cdef int64_t high
    cdef int64_t middle
    cdef int64_t got = 0
    cdef int64_t more
    if parts == NULL:
        return pread(descriptor, target, <size_t>size, position)
    high = parts.count
    while low < high:                       # the first part that ends behind the position
        middle = (low + high) // 2
        if parts.parts[middle].end <= position:
            low = middle + 1
        else:
            high = middle
    while got < size:
        if low == parts.count or parts.parts[low].begin > position:     # a gap
            more = size - got
            if low < parts.count:
                more = min(more, parts.parts[low].begin - position)
            memset(target + got, 0, <size_t>more)
        else:
            more = min(parts.parts[low].end - position, size - got)
            memcpy(target + got, parts.parts[low].data + (position - parts.parts[low].begin), <size_t>more)
            low += 1
        got += more
        position += more
    return size


cdef class FetchedBytes:
    """See the module's text."""

    def __cinit__(self):
        self._begins, self._found, self._kept = [], [], []

    def __dealloc__(self):
        free(self._parts.parts)

    cdef const Parts* parts(self):
        return &self._parts

    def add(self, int64_t position, content):
        """Have bytes at a place, in place of those that were there."""
        cdef int64_t end = position + len(content)
        if end == position:
            return
        first = bisect_left(self._begins, position)
        if first and self._found[first - 1][1] > position:
            first -= 1
        last = bisect_left(self._begins, end)
        rest = [(position, end, content, 0)]
        for begin, stop, other, offset in self._found[first:last]:
            if begin < position:
                rest.insert(0, (begin, position, other, offset))
            if stop > end:
                rest.append((end, stop, other, offset + end - begin))
        self._found[first:last] = rest
        self._begins[first:last] = [each[0] for each in rest]

    def seal(self):
        """Let kernels read what was added; to be called before they do."""
        cdef int64_t count = len(self._found)
        cdef int64_t at = 0
        cdef const uint8_t[:] view
        cdef Part* parts = <Part*>malloc(<size_t>max(1, count) * sizeof(Part))
        if parts == NULL:
            raise MemoryError("parts of a file")
        kept = []
        try:
            for begin, end, content, offset in self._found:
                view = content
                kept.append(view)
                parts[at].begin, parts[at].end, parts[at].data = begin, end, &view[0] + <int64_t>offset
                at += 1
        except BaseException:
            free(parts)
            raise
        free(self._parts.parts)
        self._parts.parts, self._parts.count, self._kept = parts, count, kept

    def clear(self):
        """Let go of all bytes, also for readers that still have this."""
        free(self._parts.parts)
        self._parts.parts, self._parts.count = NULL, 0
        self._begins, self._found, self._kept = [], [], []

    def parts_of(self):
        """Return (position, bytes) of all parts."""
        found = []
        for begin, end, content, offset in self._found:
            found.append((begin, memoryview(content)[offset:offset + end - begin]))
        return found

    def read_at(self, int64_t position, int64_t size):
        """Return bytes as kernels read them."""
        cdef uint8_t* target = <uint8_t*>malloc(<size_t>max(1, size))
        if target == NULL:
            raise MemoryError("bytes of a file")
        try:
            got = read_bytes(-1, &self._parts, target, size, position)
            return (<char*>target)[:got]
        finally:
            free(target)
