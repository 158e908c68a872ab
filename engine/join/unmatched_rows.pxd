# UnmatchedRows: the build rows in memory that no probe row has matched, as output batches.

cimport cython
from libc.stdint cimport int64_t, uint8_t

from engine.join.entry_pages cimport EntryCursor, EntryPages
from engine.join.match_output cimport MatchOutput


@cython.final
cdef class UnmatchedRows:
    cdef const EntryPages** _sources
    cdef int64_t _source_count
    cdef int64_t _source            # that is walked
    cdef EntryCursor _cursor        # in it
    cdef MatchOutput _output
    cdef uint8_t** _rows            # scratch
    cdef int64_t _begin
    cdef int64_t _count

    # Walk these entries too, which stay until the iterator has ended.
    cdef int add(self, const EntryPages* entries) except -1
    cdef int64_t _next_unmatched(self) noexcept nogil
    cdef int64_t _bounded(self) noexcept nogil

# An iterator of batches.
cdef UnmatchedRows unmatched_rows(MatchOutput output)
