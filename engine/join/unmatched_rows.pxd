# UnmatchedRows: the build rows in memory that no probe row has matched, as output batches.

cimport cython
from libc.stdint cimport int64_t, uint8_t

from engine.join.entry_pages cimport EntryCursor, EntryPages
from engine.join.match_output cimport MatchOutput


@cython.final
cdef class UnmatchedRows:
    cdef const EntryPages* _entries
    cdef EntryCursor _cursor
    cdef MatchOutput _output
    cdef uint8_t** _rows            # scratch
    cdef int64_t _begin
    cdef int64_t _count

    cdef int64_t _next_unmatched(self) noexcept nogil
    cdef int64_t _bounded(self) noexcept nogil

# An iterator of batches. The entries must stay until it has ended.
cdef UnmatchedRows unmatched_rows(const EntryPages* entries, MatchOutput output)
