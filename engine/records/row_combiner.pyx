"""RowCombiner: makes one row of two that have the same keys.

    sort, merge      rows in order ─► neighbours of equal keys ─► combiner.combine(first, second) ─► one row
    aggregate        StateCombiner(RowCombiner): rows are groups with their partial states

A sort knows which rows are equal, an aggregate what to do with them, and neither room knows the other: this is the
door between them, and the one native class here that others extend. The base keeps the first row, which is what
``distinct`` wants.

Invariants: ``target`` keeps its keys and its size; what is in ``source`` stays as it is. Combining is associative, so
it does not matter in which runs and merges neighbours meet; it need not be commutative: ``target`` arrived first.

Source: Flink's CombiningUnilateralSortMerger, which calls a combine function for each group of a sorted buffer.
"""

from libc.stdint cimport uint8_t


cdef class RowCombiner:

    cdef int combine(self, uint8_t* target, const uint8_t* source) noexcept nogil:
        return 0

    cdef int raise_failure(self, int failure) except -1:
        raise AssertionError(f"rows could not be combined ({failure})")
