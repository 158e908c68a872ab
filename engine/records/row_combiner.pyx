"""RowCombiner: makes one row of two that have the same keys.

    sort, merge      rows in order ─► neighbours of equal keys ─► combined_size(first, second)
                                                                     0 ─► combine(first, second)            in place
                                                                     n ─► combine_into(new, first, second)  n bytes
    aggregate        StateCombiner(RowCombiner): rows are groups with their partial states

A sort knows which rows are equal, an aggregate what to do with them, and neither room knows the other: this is the
interface between them, and the one native class here that others extend. The base keeps the first row, which is what
``distinct`` wants.

Where no value changes its size (``keeps_size``), any two rows combine in place.

Invariants: ``target`` keeps its keys; what is in ``source`` stays as it is. Combining is associative, so
it does not matter in which runs and merges neighbours meet; it need not be commutative: ``target`` arrived first.

Source: Flink's CombiningUnilateralSortMerger, which calls a combine function for each group of a sorted buffer.
Held by: tests/sort/test_row_combiner.py
"""

from libc.stdint cimport int64_t, uint8_t


cdef class RowCombiner:

    def __cinit__(self):
        self.keeps_size = True

    cdef int64_t combined_size(self, const uint8_t* target, const uint8_t* source) noexcept nogil:
        return 0

    cdef int combine(self, uint8_t* target, const uint8_t* source) noexcept nogil:
        return 0

    cdef int combine_into(self, uint8_t* row, const uint8_t* target, const uint8_t* source) noexcept nogil:
        return 0

    cdef int raise_failure(self, int failure) except -1:
        raise AssertionError(f"rows could not be combined ({failure})")
