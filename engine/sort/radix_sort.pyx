"""Radix sort of index entries, most significant byte first, with full comparisons only on ties.

    level 0    entries ── byte 7 of the prefix ──► 256 buckets
    level 1    each bucket ── byte 6 ──► 256 buckets ...        a byte that all entries share costs one pass of counting
    small      24 entries or fewer: insertion sort by (prefix, row)
    level 8    equal prefixes: only when the prefix does not decide; also in what is small
               rows that have the first keys in common: prefixes of the other keys (``KeyTail``), level 0
               all others: merge sort by RowComparator

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
from engine.sort.key_tail cimport KeyTail

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


cdef void sort_small(IndexEntry* entries, IndexEntry* scratch, int64_t count, RowComparator comparator, bint ties,
                     KeyTail tail, bint by_tail) noexcept nogil:
    """Sort by prefix, then stretches of one prefix by prefixes of the tail or by their rows, fetched together."""
    cdef bint has_tail = tail is not None and not by_tail
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
    cdef int64_t index
    for index in range(1, count):
        if index + AHEAD < count:
            prefetch(entries[index + AHEAD].row)
        if tail._head.compare(entries[index - 1].row, entries[index].row) != 0:
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
        sort_bucket(entries, scratch, count, 56, comparator, not tail.rest.decides, tail, True)
    for index in range(count):
        entries[index].prefix = common


cdef void sort_bucket(IndexEntry* entries, IndexEntry* scratch, int64_t count, int shift, RowComparator comparator,
                      bint ties, KeyTail tail, bint by_tail) noexcept nogil:
    """Sort entries whose prefixes agree above `shift` + 7 bits."""
    cdef int64_t[257] starts
    cdef int64_t[256] targets
    cdef int64_t index, size
    cdef int digit
    while True:
        if count <= SMALL_COUNT:
            sort_small(entries, scratch, count, comparator, ties, tail, by_tail)
            return
        if shift < 0:
            if ties and tail is not None and not by_tail and have_one_head(entries, count, tail):
                sort_tails(entries, scratch, count, comparator, tail)
            elif ties:
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
            sort_bucket(entries + starts[digit], scratch + starts[digit], size, shift - 8, comparator, ties,
                        tail, by_tail)


cdef void sort_entries(IndexEntry* entries, IndexEntry* scratch, int64_t count, RowComparator comparator,
                       bint ties, KeyTail tail) noexcept nogil:
    sort_bucket(entries, scratch, count, 56, comparator, ties, tail, False)
