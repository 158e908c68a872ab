# KeyOrder and SortedBatch: how the keys of both inputs of a sort-merge join compare, and some of its rows, opened.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from engine.join.join_side cimport JoinSide
from engine.records.comparator cimport KeyEquality, RowComparator
from engine.records.normalized_key cimport NormalizedKey
from engine.records.row_batch cimport RowBatch
from engine.records.row_codec cimport RowCodec

# What has become of a row.
cdef enum RowState:
    ROW_UNMATCHED = 0
    ROW_MATCHED = 1
    ROW_ELSEWHERE = 2           # copied to a spill file, which returns it


# One input: its rows, which of its values are given out, its keys.
@cython.final
cdef class SortedSide:
    cdef JoinSide side
    cdef int index                      # 0: left, 1: right
    cdef NormalizedKey _normalized_key  # without bits for nulls: rows with null keys are never compared
    cdef readonly bint decides          # equal prefixes are equal keys
    cdef KeyEquality _groups            # None: there is one group
    cdef int32_t* _given_slots          # of the variable columns that are given out or asked about
    cdef int32_t _given_count
    cdef RowCodec _checked              # whose rows are known to be of this side's types

    # Open rows; without keys these are not looked at.
    cdef SortedBatch open(self, RowBatch rows, bint with_keys)
    cdef int _check(self, RowCodec codec) except -1
    cdef int64_t _open_rows(self, SortedBatch batch, int64_t begin, int64_t end, bint with_keys,
                            bint looks_outside) noexcept nogil
    cdef void _mark_groups(self, SortedBatch batch) noexcept nogil
    cdef void _mark_groups_and_nulls(self, SortedBatch batch) noexcept nogil


# How keys compare: of rows of one side, and of both.
@cython.final
cdef class KeyOrder:
    cdef bint ties                      # equal prefixes do not say that keys are equal
    cdef KeyEquality across             # left with right
    cdef KeyEquality left
    cdef KeyEquality right


@cython.final
cdef class SortedBatch:
    cdef RowBatch batch
    cdef uint8_t** rows                 # those of the batch
    cdef int64_t count                  # rows
    cdef int64_t position               # next row that is not merged yet
    cdef int64_t total_bytes            # of all rows in binary form, without what lies outside
    cdef int side                       # 0: left, 1: right
    cdef uint32_t* sizes                # of each row, with what lies outside and is given out; 4 GiB at most
    cdef uint8_t* states                # RowState of each row
    cdef uint8_t* null_keys             # 1: a key is null; NULL in a batch without keys
    cdef uint64_t* prefixes             # normalized keys, likewise; of a side with groups of those behind its keys
    cdef uint8_t* starts                # 1: a group begins, or may begin; likewise


# Order of two keys, neither null: < 0, 0, > 0.
cdef inline int compare_keys(KeyOrder order, SortedBatch left, int64_t left_row, SortedBatch right,
                             int64_t right_row) noexcept nogil:
    if left.prefixes[left_row] != right.prefixes[right_row]:
        return -1 if left.prefixes[left_row] < right.prefixes[right_row] else 1
    return order.across.order_of(left.rows[left_row], right.rows[right_row]) if order.ties else 0

# One behind the last row from begin on that has the key of a row of the same or of the other side, which is not null.
cdef int64_t end_of_key(KeyOrder order, SortedBatch batch, int64_t begin, SortedBatch key_batch,
                        int64_t key_row) noexcept nogil

# Prefixes and order of columns of rows in which none is null.
cdef NormalizedKey prefixes_of(JoinSide side, columns)
cdef RowComparator comparator_of(JoinSide side, columns)
