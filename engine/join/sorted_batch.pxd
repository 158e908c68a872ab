# SortedSide and SortedBatch: an input of a sort-merge join, and one of its batches opened for merging.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from engine.join.join_side cimport JoinSide
from engine.records.arrow_batch cimport ArrowBatch
from engine.records.comparator cimport RowComparator
from engine.records.normalized_key cimport NormalizedKey
from engine.records.row_codec cimport RowCodec

# What has become of a row.
cdef enum RowState:
    ROW_UNMATCHED = 0
    ROW_MATCHED = 1
    ROW_ELSEWHERE = 2           # copied to a spill file, which returns it


# The order of the keys, one for both sides.
@cython.final
cdef class KeyOrder:
    cdef object schema          # of the key columns alone, the same for both sides
    cdef RowCodec codec
    cdef NormalizedKey normalized_key
    cdef RowComparator comparator
    cdef bint ties              # equal prefixes do not say that keys are equal


@cython.final
cdef class SortedBatch:
    cdef readonly object batch          # pyarrow.RecordBatch
    cdef int64_t count                  # rows
    cdef int64_t position               # next row that is not merged yet
    cdef int64_t total_bytes            # of all rows in binary form
    cdef ArrowBatch _arrow
    cdef JoinSide _side
    cdef uint32_t* sizes                # of each row in binary form
    cdef uint8_t* states                # RowState of each row
    cdef uint8_t* null_keys             # 1: a key is null; NULL in a batch without keys
    cdef uint64_t* prefixes             # normalized keys, likewise
    cdef uint8_t** keys                 # rows of the key columns alone, likewise
    cdef uint8_t* _key_memory

    cdef int _open_keys(self, KeyOrder order) except -1
    # Rows begin .. end in binary form, one behind the other at target, which has room for their sizes.
    cdef int encode(self, int64_t begin, int64_t end, uint8_t* target) except -1


# Open a batch; without an order its keys are not looked at.
cdef SortedBatch open_sorted(JoinSide side, object batch, KeyOrder order)

# Order of two keys: < 0, 0, > 0.
cdef inline int compare_keys(KeyOrder order, uint64_t left_prefix, const uint8_t* left, uint64_t right_prefix,
                             const uint8_t* right) noexcept nogil:
    if left_prefix != right_prefix:
        return -1 if left_prefix < right_prefix else 1
    return order.comparator.compare(left, right) if order.ties else 0

# One behind the last row from begin on that has this key.
cdef int64_t end_of_key(KeyOrder order, SortedBatch batch, int64_t begin, uint64_t prefix,
                        const uint8_t* key) noexcept nogil
