# PairFilter: asks a join's condition about candidate pairs.

cimport cython
from libc.stdint cimport int64_t, uint8_t

from engine.join.match_output cimport MatchOutput
from engine.join.probe_matches cimport ProbeMatches
from engine.records.arrow_batch cimport ArrowBatch


@cython.final
cdef class PairFilter:
    cdef MatchOutput columns        # what the condition is given
    cdef object _predicate
    cdef uint8_t* _flags            # scratch

    # Have the condition decide about matches.candidates; what it confirms is in matches.pairs.
    cdef int confirm(self, ArrowBatch batch, ProbeMatches matches) except -1
    cdef int _ask(self, object pairs, int64_t begin, int64_t count) except -1
