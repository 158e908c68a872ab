"""RowRouter: takes rows out of an input's pages before they are decoded.

    page of rows ─► RowRouter.route(rows, count) ─┬─► taken: copied to where they are needed as rows
                                                  └─► left: staged and decoded to batches

An exchange decodes pages because operators work on batches. Some rows go on as rows: those that a hash join keeps in
a file until their partition's turn comes. The exchange does not know the join, nor the join the exchange: this is the
interface between them, a native class that others extend. The base takes nothing.

Invariants: what is taken was copied when ``route`` returns; rows left keep their order.
Source: none; Flink's hybrid hash join gets records one by one and has no such step.

Held by: tests/join/test_spill_router.py
Held by: tests/partitions/test_partition_router.py
"""

from libc.stdint cimport int64_t, uint8_t


cdef class RowRouter:

    cdef int64_t route(self, uint8_t** rows, int64_t count) except -1:
        return count
