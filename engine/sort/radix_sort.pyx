"""Radix sort of index entries, most significant bits first, with full comparisons only on ties.

    level 0    entries ── the 8 bits of the prefix from the highest one on in which any two differ ──► 256 buckets
    level 1    each bucket likewise ...                         keys below 200,000 take three levels, not eight
    small      24 entries or fewer: insertion sort by (prefix, row)
    last       equal prefixes: only when the prefix does not decide; also in what is small
               rows that have the first keys in common: prefixes of the other keys (``KeyTail``), level 0
               all others: merge sort by RowComparator

Entries move once for each level, there and back between their place and the scratch, and what ends at the wrong one of
the two is copied. Entries in order are left as they are where the prefix decides.

Every step is stable (scatter in order of arrival, insertion sort, merge sort that prefers the left), so entries that
compare equal stay in order of arrival and the result depends on nothing but the input.

The merge sort of ties looks first whether its two halves are in order already: rows with one and the same key cost
one comparison each.

Limits: scratch as large as the entries (16 bytes a row); recursion is at most 8 deep by prefix and log2(ties) deep.

Source: McIlroy, Bostic, McIlroy, "Engineering radix sort" (1993), out of place for stability; Flink's
NormalizedKeySorter has the same index (pointer and prefix) under a quick sort.

Held by: tests/sort/test_external_sorter.py
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from engine.records.byte_kernels cimport prefetch
from engine.records.comparator cimport RowComparator
from engine.records.normalized_key cimport Ties, may_differ
from engine.sort.key_tail cimport NOT_SHORT, KeyTail

cdef extern from *:
    """
    #define DREY_HIGHEST_BIT(value) (63 - __builtin_clzll(value))
    """
    int highest_bit "DREY_HIGHEST_BIT" (uint64_t value) noexcept nogil      # of a value that is not 0

cdef enum:
    SMALL_COUNT = 24        # at most so many entries are insertion sorted
    TIE_CHUNK = 8
    TAILS_COUNT = 3         # so many rows of one head are sorted by prefixes of their other keys
    PREFIX_CHUNK = 256
    AHEAD = 8               # rows fetched before they are compared


cdef inline bint precedes(const IndexEntry* left, const IndexEntry* right, RowComparator comparator,
                          bint ties) noexcept nogil:
    if left.prefix != right.prefix:
        return left.prefix < right.prefix
    return ties and comparator.compare(left.row, right.row) < 0


cdef void insertion_sort(IndexEntry* entries, int64_t count, RowComparator comparator, bint ties) noexcept nogil:
    cdef int64_t index, hole
    cdef IndexEntry entry
    for index in range(1, count):
        if not precedes(&entries[index], &entries[index - 1], comparator, ties):
            continue
        entry = entries[index]
        hole = index
        while hole > 0 and precedes(&entry, &entries[hole - 1], comparator, ties):
            entries[hole] = entries[hole - 1]
            hole -= 1
        entries[hole] = entry


cdef void sort_small(IndexEntry* entries, IndexEntry* scratch, int64_t count, RowComparator comparator,
                     const Ties* ties, KeyTail tail, bint by_tail) noexcept nogil:
    """Sort by prefix, then stretches of one prefix by prefixes of the tail or by their rows, fetched together."""
    cdef bint has_tail = tail is not None and not by_tail
    cdef int64_t start = 0
    cdef int64_t index, stop
    insertion_sort(entries, count, comparator, False)
    while ties.any and start < count:
        stop = start + 1
        while stop < count and entries[stop].prefix == entries[start].prefix:
            stop += 1
        if stop - start > 1 and may_differ(ties, entries[start].prefix):
            for index in range(start, stop):
                prefetch(entries[index].row)
            if has_tail and stop - start >= TAILS_COUNT and have_one_head(entries + start, stop - start, tail):
                sort_tails(entries + start, scratch, stop - start, comparator, tail)
            else:
                insertion_sort(entries + start, stop - start, comparator, True)
        start = stop


cdef void sort_ties(IndexEntry* entries, IndexEntry* scratch, int64_t count, RowComparator comparator) noexcept nogil:
    """Merge sort of entries with one prefix; the left half moves to scratch and is merged back."""
    cdef int64_t middle = count // 2
    cdef int64_t left = 0
    cdef int64_t right = middle
    cdef int64_t target = 0
    if count <= TIE_CHUNK:
        insertion_sort(entries, count, comparator, True)
        return
    sort_ties(entries, scratch, middle, comparator)
    sort_ties(entries + middle, scratch, count - middle, comparator)
    if comparator.compare(entries[middle - 1].row, entries[middle].row) <= 0:
        return
    memcpy(scratch, entries, <size_t> middle * sizeof(IndexEntry))
    while left < middle and right < count:
        if comparator.compare(entries[right].row, scratch[left].row) < 0:
            entries[target] = entries[right]
            right += 1
        else:
            entries[target] = scratch[left]
            left += 1
        target += 1
    memcpy(entries + target, scratch + left, <size_t> (middle - left) * sizeof(IndexEntry))


cdef bint have_one_head(IndexEntry* entries, int64_t count, KeyTail tail) noexcept nogil:
    """Return whether entries of one prefix have the first keys in common."""
    cdef int64_t index
    cdef uint64_t size
    if tail.is_head_known(entries[0].prefix):
        return True
    size = tail.short_text(entries[0].row)
    for index in range(1, count):
        if index + AHEAD < count:
            prefetch(entries[index + AHEAD].row)
        if size != NOT_SHORT:
            if tail.short_text(entries[index].row) != size:
                return False
        elif tail._head.compare(entries[index - 1].row, entries[index].row) != 0:
            return False
    return True


cdef void sort_tails(IndexEntry* entries, IndexEntry* scratch, int64_t count, RowComparator comparator,
                     KeyTail tail) noexcept nogil:
    """Sort entries of one prefix and one head by prefixes of their other keys."""
    cdef uint8_t* rows[PREFIX_CHUNK]
    cdef uint64_t prefixes[PREFIX_CHUNK]
    cdef uint64_t common = entries[0].prefix
    cdef uint64_t last = 0
    cdef bint in_order = tail.rest.decides
    cdef int64_t begin = 0
    cdef int64_t index, size
    while begin < count:
        size = min(<int64_t> PREFIX_CHUNK, count - begin)
        for index in range(size):
            rows[index] = entries[begin + index].row
        tail.rest.prefixes_of_rows(rows, size, prefixes)
        for index in range(size):
            entries[begin + index].prefix = prefixes[index]
            in_order = in_order and last <= prefixes[index]
            last = prefixes[index]
        begin += size
    if not in_order:
        sort_bucket(entries, scratch, count, True, comparator, &tail.rest.ties, tail, True)
    for index in range(count):
        entries[index].prefix = common


cdef bint are_in_order(const IndexEntry* entries, int64_t count) noexcept nogil:
    cdef int64_t index
    for index in range(1, count):
        if entries[index - 1].prefix > entries[index].prefix:
            return False
    return True


cdef void sort_leaf(IndexEntry* entries, IndexEntry* scratch, int64_t count, RowComparator comparator,
                    const Ties* ties, KeyTail tail, bint by_tail) noexcept nogil:
    """Sort few entries, or entries of one prefix."""
    if count <= SMALL_COUNT:
        sort_small(entries, scratch, count, comparator, ties, tail, by_tail)
    elif not may_differ(ties, entries[0].prefix):
        return
    elif tail is not None and not by_tail and have_one_head(entries, count, tail):
        sort_tails(entries, scratch, count, comparator, tail)
    else:
        sort_ties(entries, scratch, count, comparator)


cdef void sort_bucket(IndexEntry* entries, IndexEntry* scratch, int64_t count, bint stay, RowComparator comparator,
                      const Ties* ties, KeyTail tail, bint by_tail) noexcept nogil:
    """Sort entries; they end where they are, or unless they ``stay`` in scratch."""
    cdef int64_t[257] starts
    cdef int64_t[256] targets
    cdef uint64_t differs = 0
    cdef int64_t index, size
    cdef int digit, shift
    if count > SMALL_COUNT:
        for index in range(1, count):
            differs |= entries[index].prefix ^ entries[0].prefix
    if differs == 0 or (not ties.any and are_in_order(entries, count)):
        if not stay:
            memcpy(scratch, entries, <size_t> count * sizeof(IndexEntry))
        if differs == 0:
            sort_leaf(entries if stay else scratch, scratch if stay else entries, count, comparator, ties, tail,
                      by_tail)
        return
    shift = max(0, highest_bit(differs) - 7)
    memset(starts, 0, sizeof(starts))
    for index in range(count):
        starts[((entries[index].prefix >> shift) & 0xFF) + 1] += 1
    for digit in range(256):
        starts[digit + 1] += starts[digit]
        targets[digit] = starts[digit]
    for index in range(count):
        digit = (entries[index].prefix >> shift) & 0xFF
        scratch[targets[digit]] = entries[index]
        targets[digit] += 1
    for digit in range(256):
        size = starts[digit + 1] - starts[digit]
        if size > 0:
            sort_bucket(scratch + starts[digit], entries + starts[digit], size, not stay, comparator, ties, tail,
                        by_tail)


cdef void sort_entries(IndexEntry* entries, IndexEntry* scratch, int64_t count, RowComparator comparator,
                       const Ties* ties, KeyTail tail) noexcept nogil:
    sort_bucket(entries, scratch, count, True, comparator, ties, tail, False)
