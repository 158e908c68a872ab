# MatchedRows: which probe rows of a file matched in an earlier pass, in file order.

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t

from engine.iomanager.spill_reader cimport SpillReader
from engine.iomanager.spill_writer cimport SpillWriter
from engine.join.replicated_hashes cimport ReplicatedHashes
from engine.join.probe_matches cimport ProbeMatches


@cython.final
cdef class MatchedRows:
    cdef object _space
    cdef object _file               # of the pass before
    cdef SpillReader _reader
    cdef SpillWriter _writer
    cdef const uint8_t* _data
    cdef int64_t _size
    cdef int64_t _offset
    cdef uint8_t* _record           # scratch

    cdef int begin_pass(self, bint last) except -1
    # before[i] of the next count rows, as written by the pass before (0 in the first).
    cdef int read(self, uint8_t* before, int64_t count) except -1
    # before[i] or matched[i], for the next pass.
    cdef int write(self, const uint8_t* before, const uint8_t* matched, int64_t count) except -1
    cdef int release(self) except -1

# What counts as matched before: rows that matched in earlier passes (matched, or None), and copies (or None). Those
# that match now are written, unless a condition has yet to decide.
cdef int recall_matches(ProbeMatches matches, MatchedRows matched, ReplicatedHashes copies,
                        bint has_condition) except -1
