"""Radix sort of index entries, most significant byte first, with full comparisons only on ties.

    level 0    entries ── byte 7 of the prefix ──► 256 buckets
    level 1    each bucket ── byte 6 ──► 256 buckets ...        a byte that all entries share costs one pass of counting
    small      24 entries or fewer: insertion sort by (prefix, row)
    level 8    equal prefixes: merge sort by RowComparator, only when the prefix does not decide

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

cdef enum:
    SMALL_COUNT = 24        # at most so many entries are insertion sorted
    TIE_CHUNK = 8


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


cdef void sort_small(IndexEntry* entries, int64_t count, RowComparator comparator, bint ties) noexcept nogil:
    """Sort by prefix, then stretches of one prefix by their rows, which are fetched together."""
    cdef int64_t start = 0
    cdef int64_t index, stop
    insertion_sort(entries, count, comparator, False)
    while ties and start < count:
        stop = start + 1
        while stop < count and entries[stop].prefix == entries[start].prefix:
            stop += 1
        if stop - start > 1:
            for index in range(start, stop):
                prefetch(entries[index].row)
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


cdef void sort_bucket(IndexEntry* entries, IndexEntry* scratch, int64_t count, int shift, RowComparator comparator,
                      bint ties) noexcept nogil:
    """Sort entries whose prefixes agree above `shift` + 7 bits."""
    cdef int64_t[257] starts
    cdef int64_t[256] targets
    cdef int64_t index, size
    cdef int digit
    while True:
        if count <= SMALL_COUNT:
            sort_small(entries, count, comparator, ties)
            return
        if shift < 0:
            if ties:
                sort_ties(entries, scratch, count, comparator)
            return
        memset(starts, 0, sizeof(starts))
        for index in range(count):
            starts[((entries[index].prefix >> shift) & 0xFF) + 1] += 1
        if starts[((entries[0].prefix >> shift) & 0xFF) + 1] < count:
            break
        shift -= 8
    for digit in range(256):
        starts[digit + 1] += starts[digit]
        targets[digit] = starts[digit]
    for index in range(count):
        digit = (entries[index].prefix >> shift) & 0xFF
        scratch[targets[digit]] = entries[index]
        targets[digit] += 1
    memcpy(entries, scratch, <size_t> count * sizeof(IndexEntry))
    for digit in range(256):
        size = starts[digit + 1] - starts[digit]
        if size > 1:
            sort_bucket(entries + starts[digit], scratch + starts[digit], size, shift - 8, comparator, ties)


cdef void sort_entries(IndexEntry* entries, IndexEntry* scratch, int64_t count, RowComparator comparator,
                       bint ties) noexcept nogil:
    sort_bucket(entries, scratch, count, 56, comparator, ties)
