"""KeyGroups: the merge of two sorted batches, and the pairs of rows with equal keys in bounded portions.

    merge(order, left, right)  ─► groups         set_group(...)  ─► one group
    mark_matched(...)                            where the keys alone decide
    rewind() ─► next_pairs(...) ─► keep_pairs(...) where a condition decides too ─► next_pairs(...) ─► ... ─► 0

    left   a a b c c c e            groups   (0,2)x(0,1)   a
    right  a c c d e                         (3,6)x(1,3)   c
                                    e is open: it may go on in the next batch of either side

A group that reaches the end of a batch is not merged here: the position of both batches stays in front of it, and
the reader of the batches looks how far it reaches. Rows with a null key are passed over; they have no match.

Invariants: positions only grow; a row is in at most one group; at most PAIRS_MAX pairs of about PAIRS_BYTES at a time.

Held by: tests/join/test_sort_merge_join.py
"""

cimport cython
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from engine.join.sorted_batch cimport ROW_MATCHED, KeyOrder, SortedBatch, compare_keys, end_of_key


@cython.final
cdef class KeyGroups:
    """Groups and pairs of two batches at a time."""

    def __cinit__(self, bint skips_matched):
        self.skips_matched = skips_matched
        self.left_rows = <int64_t*> malloc(PAIRS_MAX * sizeof(int64_t))
        self.right_rows = <int64_t*> malloc(PAIRS_MAX * sizeof(int64_t))
        if self.left_rows == NULL or self.right_rows == NULL:
            raise MemoryError("scratch of a sort-merge join")

    def __dealloc__(self):
        free(self.left_rows)
        free(self.right_rows)

    cdef int merge(self, KeyOrder order, SortedBatch left, SortedBatch right) noexcept nogil:
        cdef int64_t left_row = left.position
        cdef int64_t right_row = right.position
        cdef int64_t left_end, right_end
        cdef int stop = STOP_BATCH_ENDS
        cdef int compared
        self.group_count = 0
        while left_row < left.count and right_row < right.count:
            if left.null_keys[left_row]:
                left_row += 1
                continue
            if right.null_keys[right_row]:
                right_row += 1
                continue
            compared = compare_keys(order, left, left_row, right, right_row)
            if compared < 0:
                left_row += 1
                continue
            if compared > 0:
                right_row += 1
                continue
            left_end = end_of_key(order, left, left_row + 1, left, left_row)
            right_end = end_of_key(order, right, right_row + 1, right, right_row)
            if left_end == left.count or right_end == right.count:
                stop = STOP_OPEN_GROUP
                break
            if self.group_count == GROUPS_MAX:
                stop = STOP_GROUPS_FULL
                break
            self.groups[self.group_count] = KeyGroup(left_row, left_end, right_row, right_end)
            self.group_count += 1
            left_row = left_end
            right_row = right_end
        left.position = left_row
        right.position = right_row
        return stop

    cdef void set_group(self, int64_t left_begin, int64_t left_end, int64_t right_begin,
                        int64_t right_end) noexcept nogil:
        self.groups[0] = KeyGroup(left_begin, left_end, right_begin, right_end)
        self.group_count = 1 if left_begin < left_end and right_begin < right_end else 0

    cdef void mark_matched(self, SortedBatch left, SortedBatch right) noexcept nogil:
        cdef int64_t index
        cdef KeyGroup* group
        for index in range(self.group_count):
            group = &self.groups[index]
            memset(left.states + group.left_begin, ROW_MATCHED, group.left_end - group.left_begin)
            memset(right.states + group.right_begin, ROW_MATCHED, group.right_end - group.right_begin)

    cdef void rewind(self) noexcept nogil:
        self._group = 0
        self._left = self.groups[0].left_begin
        self._right = self.groups[0].right_begin

    cdef int64_t next_pairs(self, SortedBatch left, SortedBatch right) noexcept nogil:
        cdef int64_t count = 0
        cdef int64_t used = 0
        cdef KeyGroup* group
        self.pair_bytes = 0
        while self._group < self.group_count:
            group = &self.groups[self._group]
            while self._left < group.left_end:
                if self.skips_matched and left.states[self._left] == ROW_MATCHED:
                    self._right = group.right_end
                while self._right < group.right_end:
                    used += left.sizes[self._left] + right.sizes[self._right]
                    if count == PAIRS_MAX or (count > 0 and used > PAIRS_BYTES):
                        self.pair_count = count
                        return count
                    self.pair_bytes = used
                    self.left_rows[count] = self._left
                    self.right_rows[count] = self._right
                    count += 1
                    self._right += 1
                self._left += 1
                self._right = group.right_begin
            self._group += 1
            if self._group < self.group_count:
                self._left = self.groups[self._group].left_begin
                self._right = self.groups[self._group].right_begin
        self.pair_count = count
        return count

    cdef void keep_pairs(self, SortedBatch left, SortedBatch right, const uint64_t* words) noexcept nogil:
        cdef int64_t kept = 0
        cdef int64_t index
        for index in range(self.pair_count):
            if not (words[index >> 6] >> (index & 63)) & 1:
                continue
            left.states[self.left_rows[index]] = ROW_MATCHED
            right.states[self.right_rows[index]] = ROW_MATCHED
            self.left_rows[kept] = self.left_rows[index]
            self.right_rows[kept] = self.right_rows[index]
            kept += 1
        self.pair_count = kept
