"""Distances between texts, row by row, in characters.

    levenshtein(left, right) -> int64           the least number of insertions, deletions and replacements
    jaro(left, right, prefix_share) -> float64  Jaro's similarity; with a share of a common beginning Winkler's

    two binary arrays ──► characters of one pair ──► its distance

Nulls are computed like values: the caller sets them. Source of the second one: W. E. Winkler, 1990; as in other
libraries a common beginning of at most four characters counts where texts are alike by more than 0.7.

Invariants: runs without the GIL.

Held by: tests/expressions/test_text_distances.py
"""

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

import pyarrow as pa

from engine.expressions.byte_values cimport Values, begin_of, code_points, values_of

cdef enum:
    PREFIX_MAX = 4


cdef int64_t edits(const int32_t* left, int64_t left_size, const int32_t* right, int64_t right_size, int32_t* row) \
        noexcept nogil:
    """Return the least number of insertions, deletions and replacements; ``row`` has room for right_size + 1."""
    cdef int64_t i, j
    cdef int32_t above, diagonal, best
    for j in range(right_size + 1):
        row[j] = <int32_t> j
    for i in range(left_size):
        diagonal = row[0]
        row[0] = <int32_t> (i + 1)
        for j in range(right_size):
            above = row[j + 1]
            best = diagonal + (0 if left[i] == right[j] else 1)
            if above + 1 < best:
                best = above + 1
            if row[j] + 1 < best:
                best = row[j] + 1
            row[j + 1] = best
            diagonal = above
    return row[right_size]


cdef double likeness(const int32_t* left, int64_t left_size, const int32_t* right, int64_t right_size, int32_t* marks,
                     double prefix_share) noexcept nogil:
    """Return the similarity of two texts; ``marks`` has room for left_size + right_size."""
    cdef int64_t i, j, reach, begin, end, matches = 0, moved = 0, prefix = 0
    cdef int32_t* taken = marks + left_size
    cdef double found
    if left_size == 0 or right_size == 0:
        return 0.0
    reach = (left_size if left_size > right_size else right_size) // 2 - 1
    reach = 0 if reach < 0 else reach
    memset(marks, 0, <size_t> (left_size + right_size) * sizeof(int32_t))
    for i in range(left_size):
        begin = i - reach if i > reach else 0
        end = i + reach + 1 if i + reach + 1 < right_size else right_size
        for j in range(begin, end):
            if not taken[j] and left[i] == right[j]:
                marks[i] = taken[j] = 1
                matches += 1
                break
    if matches == 0:
        return 0.0
    j = 0
    for i in range(left_size):
        if marks[i]:
            while not taken[j]:
                j += 1
            moved += left[i] != right[j]
            j += 1
    found = matches / <double> left_size + matches / <double> right_size
    found = (found + (matches - moved // 2) / <double> matches) / 3.0
    if found > 0.7:
        while prefix < PREFIX_MAX and prefix < left_size and prefix < right_size and left[prefix] == right[prefix]:
            prefix += 1
        found += prefix * prefix_share * (1.0 - found)
    return found


cdef int64_t longest_of(const Values* values) noexcept nogil:
    """Return the bytes of the longest value."""
    cdef int64_t index, size, longest = 0
    for index in range(values.count):
        size = begin_of(values, index + 1) - begin_of(values, index)
        longest = size if size > longest else longest
    return longest


cdef distances(left, right, bint is_jaro, double prefix_share):
    """Return the distances of all pairs, 64 bits each: int64, or float64 of Jaro."""
    cdef Values one, other
    cdef int64_t index, longest, size, other_size
    cdef int32_t* room
    cdef int64_t* counts
    data_type = pa.float64() if is_jaro else pa.int64()
    if len(left) != len(right):
        raise ValueError(f"distances of {len(left)} texts to {len(right)}")
    if len(left) == 0:
        return pa.nulls(0, data_type)
    one, other = values_of(left), values_of(right)
    with nogil:
        longest = longest_of(&one)
        size = longest_of(&other)
        longest = (size if size > longest else longest) + 1
    buffer = pa.allocate_buffer(one.count * 8)
    counts = <int64_t*> <size_t> buffer.address
    room = <int32_t*> malloc(<size_t> (4 * longest) * sizeof(int32_t))
    if room == NULL:
        raise MemoryError(f"{longest} characters")
    with nogil:
        for index in range(one.count):
            size = begin_of(&one, index)
            size = code_points(one.data + size, begin_of(&one, index + 1) - size, room)
            other_size = begin_of(&other, index)
            other_size = code_points(
                other.data + other_size, begin_of(&other, index + 1) - other_size, room + longest
            )
            if is_jaro:
                (<double*> counts)[index] = likeness(
                    room, size, room + longest, other_size, room + 2 * longest, prefix_share
                )
            else:
                counts[index] = edits(room, size, room + longest, other_size, room + 2 * longest)
        free(room)
    return pa.Array.from_buffers(data_type, one.count, [None, buffer], null_count=0)


def levenshtein(left not None, right not None):
    """Return the edits between texts of two binary arrays, row by row."""
    return distances(left, right, False, 0.0)


def jaro(left not None, right not None, double prefix_share):
    """Return the similarities of texts of two binary arrays, with a share for each character of a common beginning."""
    return distances(left, right, True, prefix_share)
