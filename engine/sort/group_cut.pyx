"""GroupCut: keeps the first rows of each group of a sorted memory, so that a run holds no others.

    cut = GroupCut(codec, keys, GroupLimit("rank", 3, partition_count=1, order_count=1))
    count = cut.apply(entries, count, &bytes)

Groups are equal in the first keys of the sort. A row's place is its number in the group (row_number), 1 + the rows
before those that are equal to it in the order (rank), or 1 + how many different ones there are (dense_rank). Among some
rows of a group a place is at most what it is among all of them: what is dropped from a run is beyond the limit in the
end, too, and those that are kept have the rows before them.

Held by: tests/sort/test_group_cut.py
"""

cimport cython
from libc.stdint cimport int64_t

from engine.records.comparator cimport RowComparator
from engine.records.row_codec cimport RowCodec, row_size
from engine.sort.radix_sort cimport IndexEntry


@cython.final
cdef class GroupCut:
    """Args: keys: of the sort; limit: GroupLimit."""

    def __cinit__(self, RowCodec codec not None, keys, limit):
        cdef int64_t partition_count = limit.partition_count
        cdef int64_t order_count = limit.order_count
        if partition_count > 0:
            self._groups = RowComparator(codec, keys[:partition_count])
        if limit.function != "row_number":
            self._peers = RowComparator(codec, keys[:partition_count + order_count])
        self._is_dense = limit.function == "dense_rank"
        self._most = limit.count

    cdef int64_t apply(self, IndexEntry* entries, int64_t count, int64_t* bytes) noexcept nogil:
        cdef int64_t index
        cdef int64_t kept = 0
        cdef int64_t rows = 0       # of the group so far
        cdef int64_t place = 0
        cdef IndexEntry* last = NULL
        cdef IndexEntry entry
        for index in range(count):
            entry = entries[index]
            if last == NULL or (self._groups is not None and self._groups.compare(last.row, entry.row) != 0):
                rows = 0
                place = 0
            if rows == 0 or self._peers is None or self._peers.compare(last.row, entry.row) != 0:
                place = place + 1 if self._is_dense else rows + 1
            rows += 1
            if place <= self._most:
                entries[kept] = entry
                last = &entries[kept]
                kept += 1
            else:
                bytes[0] -= row_size(entry.row)
        return kept
