# LoserTree: which of k cursors has the smallest row. Plain C arrays; the owner sets prefixes and rows of the leaves.

from libc.stdint cimport int32_t, uint8_t, uint64_t

from engine.records.comparator cimport RowComparator
from engine.records.normalized_key cimport Ties

cdef struct LoserTree:
    int32_t leaf_count
    int32_t winner          # leaf with the smallest row; its row is NULL when all leaves are exhausted
    int32_t* losers         # [leaf_count] the leaf that lost the match at each inner node, 1 .. leaf_count - 1
    uint64_t* prefixes      # [leaf_count] prefix of the leaf's row
    uint8_t** rows          # [leaf_count] the leaf's row, NULL: exhausted (larger than every row)

# 0, or -1 when there is no memory.
cdef int tree_create(LoserTree* tree, int32_t leaf_count) noexcept nogil
cdef void tree_destroy(LoserTree* tree) noexcept nogil
# Play all matches. Caller has set prefixes and rows of every leaf.
cdef int tree_build(LoserTree* tree, RowComparator comparator, const Ties* ties) noexcept nogil
# Play the matches from a leaf whose row has changed up to the root. Caller guarantees that it is the winner's leaf.
cdef void tree_replay(LoserTree* tree, int32_t leaf, RowComparator comparator, const Ties* ties) noexcept nogil
