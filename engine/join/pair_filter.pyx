"""PairFilter: asks a join's condition (``pair_condition.py``) about candidate pairs, a batch at a time.

    confirm(batch, matches)      matches.candidates ─► their columns ─► predicate ─► flags ─► matches.pairs

Only the condition's columns are gathered, by the same means as a join's output. Null counts as not true.

Thread: that of the join.

Held by: tests/join/test_join_condition.py
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc

import pyarrow as pa

from engine.join.join_side cimport JoinSide
from engine.join.match_output cimport MatchOutput
from engine.join.probe_matches cimport OUTPUT_ROWS, ProbeMatches
from engine.records.arrow_batch cimport ArrowBatch
from engine.records.row_mask cimport Mask, mask_from

from engine.errors import SchemaError


@cython.final
cdef class PairFilter:
    """The condition of a join, for one choice of the build side."""

    def __cinit__(self, JoinSide build not None, JoinSide probe not None, bint build_is_left, condition):
        if not condition.columns:
            raise SchemaError("a join's condition must use at least one column")
        columns = [((side == 0) == build_is_left, column) for side, column in condition.columns]
        self.columns = MatchOutput(build, probe, columns, condition.schema)
        self._predicate = condition.predicate
        self._flags = <uint8_t*>malloc(OUTPUT_ROWS)
        if self._flags == NULL:
            raise MemoryError("flags of a join's condition")

    def __dealloc__(self):
        free(self._flags)

    cdef int confirm(self, ArrowBatch batch, ProbeMatches matches) except -1:
        cdef int64_t begin = 0
        cdef int64_t count
        while begin < matches.candidates.count:
            count = self.columns.pairs_within(&matches.candidates, begin)
            self._ask(self.columns.piece(batch, &matches.candidates, begin, count), begin, count)
            begin += count
        with nogil:
            matches.confirm(self._flags)
        return 0

    cdef int _ask(self, object pairs, int64_t begin, int64_t count) except -1:
        """Set the flags of count pairs from begin on."""
        cdef object answer = self._predicate(pairs)
        cdef Mask mask
        cdef int64_t index
        if not isinstance(answer, (Mask, pa.BooleanArray)) or len(answer) != count:
            raise SchemaError(f"a join's condition gave {type(answer).__name__} for {count} pairs, not their booleans")
        mask = mask_from(answer)
        with nogil:
            for index in range(count):
                self._flags[begin + index] = (mask.words[index >> 6] >> (index & 63)) & 1
        return 0
