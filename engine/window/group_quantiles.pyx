"""Values beside a share of each group's values, which are in no order: selected, not sorted.

    group_quantiles(values, order, bounds, share, starts) -> (low, high, fraction)
    order, bounds       rows, group by group (``group_order``); order None: they lie so
    starts              of runs of rows, and their end, where ``order`` names runs; None: it names rows
    values              an array; or chunks, none of which has a part of a run
    low, high           of each group the values on both sides of the place share * (n - 1) among its n values that are
                        not null, null where it has none; fraction: how far between them it is

Values are of 8 bytes, as words whose order is theirs (``value_words``). Those of a group are copied and selected by
radix: counted by the highest bits in which they differ, and only the bucket of the place goes on to the next bits,
until it is small and sorted by insertion. That is linear in the size of the group whatever the values are: at most nine
passes, of which each leaves a small part in general.

For values that do not lie in memory together (``value_search``), 16 bits at a time:

    counts = DigitCounts(shift, prefix)                 how often each digit in front of ``shift`` bits is there among
    counts.add(values)                                  words that begin with a prefix
    counts.find(place) -> (digit, before, count)        the digit of the value at a place of these, in their order
    words_of(values, shift, prefix)                     the values whose words begin with a prefix
    value_at(values, place), value_of(word, type)       one of an array; that of a word

Source: Alabi, Blanchard, Gordon, Steinbach, "Fast k-selection algorithms for graphics processing units" (2012).

Held by: tests/window/test_group_quantiles.py
"""

cimport cython
from libc.math cimport floor
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from engine.records.arrow_batch cimport KIND_FLOAT64, ArrowBatch, ColumnView, column_is_null
from engine.window.value_words cimport bits_of, word_of

import pyarrow as pa

cdef extern from *:
    """
    #define DREY_HIGHEST_BIT(value) (63 - __builtin_clzll(value))
    """
    int highest_bit "DREY_HIGHEST_BIT" (uint64_t value) noexcept nogil      # of a value that is not 0

cdef enum:
    SMALL_COUNT = 24        # at most so many words are sorted
    LARGE_COUNT = 4096      # words that are worth more counters
    LARGE_DIGITS = 1 << 11
    DIGIT_BITS = 16         # of values that are counted
    DIGITS = 1 << 16

# Rows that lie side by side, all of one group.
cdef struct Run:
    const ColumnView* column
    int64_t begin
    int64_t end

# Rows in groups, and what is found for each of them.
cdef struct Selection:
    const ColumnView* column    # the first chunk of values
    const Run* runs             # that are in order; NULL: rows of the column are
    const int32_t* order
    const int64_t* bounds
    uint64_t* words             # scratch: those of one group
    uint64_t* low
    uint64_t* high
    double* fraction
    uint8_t* validity


cdef void sort_small(uint64_t* words, int64_t count) noexcept nogil:
    cdef int64_t index, hole
    cdef uint64_t word
    for index in range(1, count):
        word = words[index]
        hole = index
        while hole > 0 and word < words[hole - 1]:
            words[hole] = words[hole - 1]
            hole -= 1
        words[hole] = word


cdef int64_t keep_bucket(uint64_t* words, int64_t count, int shift, uint64_t mask, uint64_t digit) noexcept nogil:
    """Move the words with a digit to the front; returns how many there are."""
    cdef int64_t index
    cdef int64_t kept = 0
    for index in range(count):
        words[kept] = words[index]
        kept += (words[index] >> shift) & mask == digit
    return kept


cdef uint64_t least_above(const uint64_t* words, int64_t count, int shift, uint64_t mask,
                          uint64_t digit) noexcept nogil:
    """Return the least of the words whose digit is greater; there is one."""
    cdef uint64_t least = ~<uint64_t> 0
    cdef int64_t index
    for index in range(count):
        if (words[index] >> shift) & mask > digit and words[index] < least:
            least = words[index]
    return least


cdef void select(uint64_t* words, int64_t count, int64_t place, bint wants_next, uint64_t* low,
                 uint64_t* high) noexcept nogil:
    """Find the word at a place of the order, and the next one if it is wanted, else the same; words are moved."""
    cdef int32_t[LARGE_DIGITS] sizes
    cdef uint64_t differs, mask
    cdef int64_t index, before
    cdef uint64_t digit
    cdef bint is_last = False
    cdef int shift
    while count > SMALL_COUNT:
        differs = 0
        for index in range(1, count):
            differs |= words[index] ^ words[0]
        if differs == 0:
            break
        mask = LARGE_DIGITS - 1 if count >= LARGE_COUNT else 0xFF
        shift = max(0, highest_bit(differs) - highest_bit(mask))
        memset(sizes, 0, <size_t> (mask + 1) * sizeof(int32_t))
        for index in range(count):
            sizes[(words[index] >> shift) & mask] += 1
        digit, before = 0, 0
        while before + sizes[digit] <= place:
            before += sizes[digit]
            digit += 1
        place -= before
        if wants_next and place == sizes[digit] - 1:
            high[0] = least_above(words, count, shift, mask, digit)
            wants_next, is_last = False, True
        count = keep_bucket(words, count, shift, mask, digit)
    if count <= SMALL_COUNT:
        sort_small(words, count)
        low[0] = words[place]
        if not is_last:
            high[0] = words[place + wants_next]
        return
    low[0] = words[0]
    if not is_last:
        high[0] = words[0]


cdef inline int64_t copy_rows(const ColumnView* column, int64_t begin, int64_t end, const int32_t* order,
                              uint64_t* words) noexcept nogil:
    """Copy the values of rows that are not null; returns how many there are."""
    cdef const uint64_t* values = <const uint64_t*> column.values + column.offset
    cdef bint is_real = column.kind == KIND_FLOAT64
    cdef int64_t index, row
    cdef int64_t count = 0
    for index in range(begin, end):
        row = index if order == NULL else order[index]
        if column.validity != NULL and column_is_null(column, row):
            continue
        words[count] = word_of(values[row], is_real)
        count += 1
    return count


cdef int64_t gather(const Selection* groups, int64_t begin, int64_t end) noexcept nogil:
    """Copy the values of one group that are not null; returns how many there are."""
    cdef const Run* run
    cdef int64_t index
    cdef int64_t count = 0
    if groups.runs == NULL:
        return copy_rows(groups.column, begin, end, groups.order, groups.words)
    for index in range(begin, end):
        run = &groups.runs[groups.order[index]]
        count += copy_rows(run.column, run.begin, run.end, NULL, groups.words + count)
    return count


cdef int64_t select_groups(const Selection* into, int64_t group_count, double share) noexcept nogil:
    """Find the values of all groups; returns how many groups have none."""
    cdef bint is_real = into.column.kind == KIND_FLOAT64
    cdef int64_t group, count
    cdef int64_t nulls = 0
    cdef double place, whole
    memset(into.validity, 0, <size_t> ((group_count + 7) >> 3))
    for group in range(group_count):
        into.low[group] = into.high[group] = 0
        into.fraction[group] = 0.0
        count = gather(into, into.bounds[group], into.bounds[group + 1])
        if count == 0:
            nulls += 1
            continue
        place = share * <double> (count - 1)
        whole = floor(place)
        into.fraction[group] = place - whole
        select(into.words, count, <int64_t> whole, place > whole, &into.low[group], &into.high[group])
        into.low[group] = bits_of(into.low[group], is_real)
        into.high[group] = bits_of(into.high[group], is_real)
        into.validity[group >> 3] |= <uint8_t> (1 << (group & 7))
    return nulls


cdef int64_t largest_group(const Selection* groups, int64_t group_count) noexcept nogil:
    """Return the most rows that a group has."""
    cdef int64_t group, index, size
    cdef int64_t largest = 0
    cdef const Run* run
    for group in range(group_count):
        size = groups.bounds[group + 1] - groups.bounds[group]
        if groups.runs != NULL:
            size = 0
            for index in range(groups.bounds[group], groups.bounds[group + 1]):
                run = &groups.runs[groups.order[index]]
                size += run.end - run.begin
        largest = max(largest, size)
    return largest


cdef ArrowBatch opened_values(array):
    """Open values of 8 bytes."""
    cdef ArrowBatch opened = opened_array(array)
    assert opened.columns[0].width == 8, "values of 8 bytes"
    return opened


cdef ArrowBatch opened_array(array):
    return ArrowBatch.open(pa.RecordBatch.from_arrays([array], ["0"]))


cdef Run* new_runs(list chunks, const int64_t* starts, int64_t count) except NULL:
    """Return the runs of all chunks, which begin at rows counted from the first one of all."""
    cdef Run* runs = <Run*> malloc(<size_t> (count + 1) * sizeof(Run))
    cdef ArrowBatch chunk
    cdef int64_t first = 0
    cdef int64_t run = 0
    if runs == NULL:
        raise MemoryError()
    for chunk in chunks:
        while run < count and starts[run] < first + chunk.row_count:
            runs[run] = Run(&chunk.columns[0], starts[run] - first, starts[run + 1] - first)
            run += 1
        first += chunk.row_count
    return runs


def group_quantiles(values not None, order, bounds not None, double share, starts=None):
    """Return the values on both sides of a share of each group's values, and how far between them it is."""
    cdef list chunks = [opened_values(each) for each in (values.chunks if starts is not None else [values])]
    cdef ArrowBatch places = opened_array(bounds)
    cdef ArrowBatch first = chunks[0]
    cdef ArrowBatch opened
    cdef int64_t count = places.row_count - 1
    cdef int64_t nulls
    cdef Run* runs = NULL
    cdef Selection found
    low, high, fraction = (pa.allocate_buffer(count * 8) for _ in range(3))
    validity = pa.allocate_buffer((count + 7) >> 3)
    memset(&found, 0, sizeof(found))
    found.column = &first.columns[0]
    if order is not None:
        rows = opened_array(order)
        found.order = <const int32_t*> numbers_of(rows)
    found.bounds = <const int64_t*> numbers_of(places)
    found.low, found.high = <uint64_t*> <size_t> low.address, <uint64_t*> <size_t> high.address
    found.fraction, found.validity = <double*> <size_t> fraction.address, <uint8_t*> <size_t> validity.address
    try:
        if starts is not None:
            opened = opened_array(starts)
            found.runs = runs = new_runs(chunks, <const int64_t*> numbers_of(opened), opened.row_count - 1)
        found.words = <uint64_t*> malloc(<size_t> (largest_group(&found, count) + 1) * sizeof(uint64_t))
        if found.words == NULL:
            raise MemoryError()
        with nogil:
            nulls = select_groups(&found, count, share)
    finally:
        free(found.words)
        free(runs)
    return (
        pa.Array.from_buffers(values.type, count, [validity, low], null_count=nulls),
        pa.Array.from_buffers(values.type, count, [validity, high], null_count=nulls),
        pa.Array.from_buffers(pa.float64(), count, [None, fraction], null_count=0),
    )


cdef const void* numbers_of(ArrowBatch batch) noexcept:
    """Return the numbers of a batch of one column of them."""
    cdef const ColumnView* column = &batch.columns[0]
    return <const uint8_t*> column.values + column.offset * column.width


# --------------------------------------------------------------------------- values that do not lie in memory together

cdef inline bint begins_with(uint64_t word, int shift, uint64_t prefix) noexcept nogil:
    return shift >= 64 or word >> shift == prefix


cdef void count_digits(const ColumnView* column, int64_t count, int shift, uint64_t prefix,
                       int64_t* counts) noexcept nogil:
    cdef const uint64_t* values = <const uint64_t*> column.values + column.offset
    cdef bint is_real = column.kind == KIND_FLOAT64
    cdef int64_t row
    cdef uint64_t word
    for row in range(count):
        if column.validity != NULL and column_is_null(column, row):
            continue
        word = word_of(values[row], is_real)
        if begins_with(word, shift + DIGIT_BITS, prefix):
            counts[(word >> shift) & (DIGITS - 1)] += 1


cdef int64_t keep_words(const ColumnView* column, int64_t count, int shift, uint64_t prefix,
                        uint64_t* kept) noexcept nogil:
    """Copy the values whose words begin with a prefix; returns how many there are."""
    cdef const uint64_t* values = <const uint64_t*> column.values + column.offset
    cdef bint is_real = column.kind == KIND_FLOAT64
    cdef int64_t row
    cdef int64_t found = 0
    for row in range(count):
        if column.validity != NULL and column_is_null(column, row):
            continue
        kept[found] = values[row]
        found += begins_with(word_of(values[row], is_real), shift, prefix)
    return found


@cython.final
cdef class DigitCounts:
    """Args: shift: bits behind the digit; prefix: those in front of it."""

    cdef int _shift
    cdef uint64_t _prefix
    cdef int64_t* _counts       # [DIGITS]

    def __cinit__(self, int shift, uint64_t prefix):
        self._shift = shift
        self._prefix = prefix
        self._counts = <int64_t*> calloc(DIGITS, sizeof(int64_t))
        if self._counts == NULL:
            raise MemoryError()

    def __dealloc__(self):
        free(self._counts)

    def add(self, values not None):
        """Count the digits of an array's values that are not null."""
        cdef ArrowBatch opened = opened_values(values)
        with nogil:
            count_digits(&opened.columns[0], opened.row_count, self._shift, self._prefix, self._counts)

    def find(self, int64_t place):
        """Return (digit, values with lesser ones, values with it) of the value at a place, which there is."""
        cdef int64_t before = 0
        cdef int64_t digit = 0
        while before + self._counts[digit] <= place:
            before += self._counts[digit]
            digit += 1
            assert digit < DIGITS, "fewer values were counted"
        return digit, before, self._counts[digit]


def words_of(values not None, int shift, uint64_t prefix):
    """Return the values that are not null whose words begin with a prefix, in front of so many bits."""
    cdef ArrowBatch opened = opened_values(values)
    cdef int64_t found
    cdef uint64_t* kept
    buffer = pa.allocate_buffer((opened.row_count + 1) * 8)
    kept = <uint64_t*> <size_t> buffer.address
    with nogil:
        found = keep_words(&opened.columns[0], opened.row_count, shift, prefix, kept)
    return pa.Array.from_buffers(values.type, found, [None, buffer.slice(0, found * 8)], null_count=0)


def value_at(values not None, int64_t place):
    """Return the value at a place of an array's values in their order, as an array of one."""
    cdef ArrowBatch opened = opened_values(values)
    cdef bint is_real = opened.columns[0].kind == KIND_FLOAT64
    cdef uint64_t* words = <uint64_t*> malloc(<size_t> (opened.row_count + 1) * sizeof(uint64_t))
    cdef uint64_t low, high
    cdef int64_t count
    if words == NULL:
        raise MemoryError()
    with nogil:
        count = copy_rows(&opened.columns[0], 0, opened.row_count, NULL, words)
        if place < count:
            select(words, count, place, False, &low, &high)
    free(words)
    assert place < count, "there are fewer values"
    return value_of(low, values.type)


def value_of(uint64_t word, data_type not None):
    """Return the value of a word, as an array of one."""
    cdef uint64_t bits = bits_of(word, pa.types.is_float64(data_type))
    buffer = pa.py_buffer((<uint8_t*> &bits)[:8])
    return pa.Array.from_buffers(data_type, 1, [None, buffer], null_count=0)
