"""Tree of losers: the smallest of k rows with log2(k) comparisons for each row taken.

    winner = leaf 2                     leaf i hangs under inner node (i + k) / 2
           │                            node n hangs under node n / 2
        [1: leaf 0]                     a node holds the leaf that LOST there; the winner moved up
        ╱         ╲
   [2: leaf 1]  [3: leaf 3]
     ╱   ╲        ╱    ╲
   leaf 0  1    leaf 2   3

After the winner's row is taken its leaf gets the next row of its run and plays again, only against the losers on its
own way up: no sibling is looked at, which is why losers are stored and not winners.

Rows are compared by prefix, then in full where rows of one prefix may differ, then by leaf index: runs are numbered in
order of arrival, so the merge is stable. An exhausted leaf (row NULL) loses against every row.

Source: Knuth, The Art of Computer Programming 3, 5.4.1 (replacement selection, "tree of losers").

Held by: tests/sort/test_external_sorter.py
"""

from libc.stdint cimport int32_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free

from engine.records.comparator cimport RowComparator
from engine.records.normalized_key cimport Ties, may_differ


cdef int tree_create(LoserTree* tree, int32_t leaf_count) noexcept nogil:
    tree.leaf_count = leaf_count
    tree.winner = 0
    tree.losers = <int32_t*> calloc(leaf_count, sizeof(int32_t))
    tree.prefixes = <uint64_t*> calloc(leaf_count, sizeof(uint64_t))
    tree.rows = <uint8_t**> calloc(leaf_count, sizeof(uint8_t*))
    return 0 if tree.losers != NULL and tree.prefixes != NULL and tree.rows != NULL else -1


cdef void tree_destroy(LoserTree* tree) noexcept nogil:
    free(tree.losers)
    free(tree.prefixes)
    free(tree.rows)
    tree.losers = NULL
    tree.prefixes = NULL
    tree.rows = NULL
    tree.leaf_count = 0


cdef inline bint beats(const LoserTree* tree, int32_t left, int32_t right, RowComparator comparator,
                       const Ties* ties) noexcept nogil:
    """Whether leaf left comes before leaf right."""
    cdef int order
    if tree.prefixes[left] != tree.prefixes[right] and tree.rows[left] != NULL and tree.rows[right] != NULL:
        return tree.prefixes[left] < tree.prefixes[right]
    if tree.rows[left] == NULL or tree.rows[right] == NULL:
        return tree.rows[left] != NULL or (tree.rows[right] == NULL and left < right)
    if may_differ(ties, tree.prefixes[left]):
        order = comparator.compare(tree.rows[left], tree.rows[right])
        if order != 0:
            return order < 0
    return left < right


cdef int tree_build(LoserTree* tree, RowComparator comparator, const Ties* ties) noexcept nogil:
    cdef int32_t count = tree.leaf_count
    cdef int32_t node, left, right
    cdef int32_t* winners = <int32_t*> calloc(2 * count, sizeof(int32_t))
    if winners == NULL:
        return -1
    for node in range(count, 2 * count):
        winners[node] = node - count
    node = count - 1
    while node >= 1:
        left = winners[2 * node]
        right = winners[2 * node + 1]
        if beats(tree, left, right, comparator, ties):
            winners[node] = left
            tree.losers[node] = right
        else:
            winners[node] = right
            tree.losers[node] = left
        node -= 1
    tree.winner = winners[1] if count > 1 else 0
    free(winners)
    return 0


cdef void tree_replay(LoserTree* tree, int32_t leaf, RowComparator comparator, const Ties* ties) noexcept nogil:
    cdef int32_t node = (leaf + tree.leaf_count) // 2
    cdef int32_t winner = leaf
    cdef int32_t loser
    while node >= 1:
        loser = tree.losers[node]
        if beats(tree, loser, winner, comparator, ties):
            tree.losers[node] = winner
            winner = loser
        node //= 2
    tree.winner = winner
