"""KeyFilter: which values a key column has, in a few bits for each, so that rows without a partner are known early.

    key_filter(arrays, bytes_max, exact_bytes_max) -> KeyFilter, or None: it would be too large
    merged(filters, bytes_max, exact_bytes_max)    -> of all their values together
    filter.mask(array)            -> for each row: false where its value is none of them, or null
    filter.may_lie_between(lows, highs) -> for each pair of bounds: false where no value lies between them

    integers, dates, times, not too far apart one bit for each number from the lowest to the highest: exact
    all others                                a blocked Bloom filter, and the bounds

        hash ──remix──► upper 32 bits: word     4 * 6 low bits: four bits of that word      one cache line for each key

With 16 bits for each key a word of the Bloom filter lets 1 % of other values pass, with 8 bits 5 %; it is not made with
less. A word of a filter that doubles stands for its two halves from then on, so filters of several sizes have a union.

Values are equal here as they are in a join: hashes are those of ``hashing``, for which -0.0 is 0.0 and every NaN is one
value, and null is equal to nothing. Both sides have one type. Bounds are kept where Parquet's order is the order of the
values: of integers and the like, decimals, texts and bytes; a float has none.

Invariants: no value that was given is ever said to be missing. Does not change once it is made: any number of threads.
Source: the split block Bloom filters of Parquet and Impala; Putze, Sanders, Singler, "Cache-, hash- and space-efficient
Bloom filters", with a block of one word as in Velox; the exact join filters of DuckDB.
"""

cimport cython
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset, strcmp

from engine.records.arrow_batch cimport (
    KIND_BYTES,
    KIND_DECIMAL128,
    KIND_INT8,
    KIND_INT64,
    KIND_LARGE_BYTES,
    KIND_UINT64,
    ArrowBatch,
    ColumnView,
    column_is_null,
)
from engine.records.arrow_c_data cimport ArrowArray, ArrowSchema
from engine.records.byte_kernels cimport bits_from, count_ones
from engine.records.hashing cimport hash_batch, rehash
from engine.records.key_bits cimport (
    bits_of,
    fill_zero,
    find_bits,
    find_bits_within,
    find_hashes,
    set_bits,
    widen_bounds,
)
from engine.records.opened_batch cimport OpenedBatch, opened_batch
from engine.records.row_mask cimport Mask

import pyarrow as pa

from engine.records.arrow_functions import pc
from engine.records.plain_types import plain_type

cdef enum:
    HASHED_ROWS = 1024
    # fewer take no longer than giving the GIL away and taking it again
    BRIEF_ROWS = 4096
    # beyond, pages that are touched first are cleared by the kernel
    BRIEF_BYTES = 1 << 18
    WORD_BITS_PER_KEY = 16
    WORD_BITS_PER_KEY_MIN = 8
    WORDS_MIN_SHIFT = 3
    # an exact filter may have as many bits for each key, and as many in any case: a megabyte is looked up in four to
    # five times as fast as hashes are made, eight megabytes twice as fast
    EXACT_BITS_PER_KEY = 512
    EXACT_BITS_ANYWAY = 1 << 23
    # seed of the remix, far from those of partitions and of a join's own filter
    SEED = 0xF117


def key_filter(arrays, int64_t bytes_max, int64_t exact_bytes_max=INT64_MAX):
    """Return the filter of the values of some arrays of one type, at least one; None: it has no place in bytes_max.

    exact_bytes_max: of one with a bit for each number; a Bloom filter may do with less.
    """
    cdef KeyFilter made = KeyFilter(arrays[0].type)
    cdef list listed = list(arrays)
    made.value_count = sum(len(array) - array.null_count for array in listed)
    made._find_bounds(listed)
    return _filled(made, listed, bytes_max, min(bytes_max, exact_bytes_max))


def merged(filters, int64_t bytes_max, int64_t exact_bytes_max=INT64_MAX):
    """Return a filter of all values of some filters of one type; None: it has no place. Sizes as of ``key_filter``."""
    cdef KeyFilter made
    cdef KeyFilter one
    cdef list listed = [one for one in filters if one.value_count]
    cdef list exact = [one for one in listed if one.is_exact]
    cdef list others = [one for one in listed if not one.is_exact]
    if len(listed) <= 1:
        return listed[0] if listed else filters[0]
    made = KeyFilter(filters[0].data_type)
    for one in listed:
        made.value_count += one.value_count
        made._lowest = min(made._lowest, one._lowest)
        made._highest = max(made._highest, one._highest)
    if made._has_order():
        made._least = pc.min_element_wise(*[(<KeyFilter>one)._least for one in listed])
        made._greatest = pc.max_element_wise(*[(<KeyFilter>one)._greatest for one in listed])
    if not others and made._has_place_for_bits(min(bytes_max, exact_bytes_max)):
        made._take_bits()
        for one in exact:
            made._merge_bits(one)
        return made
    arrays = [(<KeyFilter>one)._numbers() for one in exact]
    if not others:
        return _filled(made, arrays, bytes_max, min(bytes_max, exact_bytes_max))
    if not made._take_words(made.value_count, bytes_max):
        return None
    for one in others:
        if not made._merge_words(one):
            return None
    for array in arrays:
        made._set_hashes(array)
    return made


cdef object _filled(KeyFilter made, list arrays, int64_t bytes_max, int64_t exact_bytes_max):
    if made.value_count == 0:
        return made
    if made._has_place_for_bits(exact_bytes_max):
        made._take_bits()
        for array in arrays:
            made._set_numbers(array)
        return made
    if not made._take_words(made.value_count, bytes_max):
        return None
    for array in arrays:
        made._set_hashes(array)
    return made


cdef ArrowBatch _opened(object array):
    return ArrowBatch.open(pa.RecordBatch.from_arrays([array], names=["key"]))


# An integer column as it lies; returns what must live as long as the view. To open a batch gives the GIL away twice.
cdef list _view_integers(object array, int32_t width, ColumnView* column):
    cdef list buffers = array.buffers()
    memset(column, 0, sizeof(ColumnView))
    column.width = width
    column.offset = array.offset
    column.null_count = array.null_count
    column.kind = KIND_INT64        # any that has values: what matters is the width
    if column.null_count:
        column.validity = <const uint8_t*><uintptr_t>buffers[0].address
    if buffers[1] is not None:
        column.values = <const uint8_t*><uintptr_t>buffers[1].address
    return buffers


#: kind, width and format of key types seen so far
cdef dict _kinds = {}


cdef tuple _kind_of(object data_type):
    cdef ArrowBatch batch
    cdef const ArrowSchema* opened
    found = _kinds.get(data_type)
    if found is None:
        batch = _opened(pa.nulls(0, data_type))
        # Others do not lie there as numbers: they are hashed.
        is_plain = plain_type(data_type) == data_type
        schema = pa.schema([pa.field("key", data_type)]).__arrow_c_schema__()
        opened = <const ArrowSchema*>PyCapsule_GetPointer(schema, b"arrow_schema")
        width = batch.columns[0].width if is_plain else 0
        found = _kinds[data_type] = batch.columns[0].kind, width, <bytes>opened.children[0].format
    return found


@cython.final
cdef class KeyFilter:
    """Made by ``key_filter`` and ``merged``."""

    def __cinit__(self, data_type not None):
        kind, width, self._format = _kind_of(data_type)
        self.data_type = data_type
        self._kind = kind
        self._lowest = ~<uint64_t>0
        if KIND_INT8 <= self._kind <= KIND_UINT64 and width:
            self._width = width
            self._sign = <uint64_t>1 << (8 * self._width - 1) if self._kind <= KIND_INT64 else 0

    def __dealloc__(self):
        free(self._bits)
        free(self._words)

    def __str__(self):
        kind = "exact" if self.is_exact else "Bloom"
        return f"{kind} filter of {self.value_count} keys in {self.size_bytes} bytes"

    # ------------------------------------------------------------------------------------------------ making

    cdef int _find_bounds(self, list arrays) except -1:
        cdef ColumnView column
        cdef int64_t count
        if self._width:
            for array in arrays:
                count = len(array)
                lies_in = _view_integers(array, self._width, &column)
                if count <= BRIEF_ROWS:
                    widen_bounds(&column, self._width, self._sign, count, &self._lowest, &self._highest)
                else:
                    with nogil:
                        widen_bounds(&column, self._width, self._sign, count, &self._lowest, &self._highest)
        if not self._has_order():
            return 0
        self._least, self._greatest = pc.min_max(pa.chunked_array(arrays, self.data_type)).values()
        return 0

    cdef bint _has_place_for_bits(self, int64_t bytes_max) noexcept:
        cdef uint64_t span = self._highest - self._lowest
        return self._width and self._lowest <= self._highest and span < <uint64_t>8 * bytes_max and (
            span < EXACT_BITS_ANYWAY or span // EXACT_BITS_PER_KEY < <uint64_t>self.value_count)

    def _has_order(self):
        return self._kind in (KIND_BYTES, KIND_LARGE_BYTES, KIND_DECIMAL128)

    cdef int _take_bits(self) except -1:
        cdef uint64_t size = ((self._highest - self._lowest + 2) + 63) // 64 * 8
        with nogil:     # megabytes are cleared
            self._bits = <uint8_t*>calloc(size, 1)
        if self._bits == NULL:
            raise MemoryError("an exact filter of keys")
        self.size_bytes = size
        self.is_exact = True
        return 0

    cdef int _take_words(self, int64_t rows, int64_t bytes_max) except -1:
        cdef int32_t shift = WORDS_MIN_SHIFT
        while (<int64_t>64 << shift) < rows * WORD_BITS_PER_KEY and (<int64_t>16 << shift) <= bytes_max:
            shift += 1
        if (<int64_t>64 << shift) < rows * WORD_BITS_PER_KEY_MIN:
            return 0
        with nogil:
            self._words = <uint64_t*>calloc(<size_t>1 << shift, sizeof(uint64_t))
        if self._words == NULL:
            raise MemoryError("a Bloom filter of keys")
        self._word_shift = shift
        self.size_bytes = <int64_t>8 << shift
        return 1

    cdef int _set_numbers(self, object array) except -1:
        cdef ColumnView column
        cdef int64_t count = len(array)
        lies_in = _view_integers(array, self._width, &column)
        if count <= BRIEF_ROWS and self.size_bytes <= BRIEF_BYTES:
            set_bits(&column, self._width, self._sign, count, self._lowest, self._bits)
        else:
            with nogil:
                set_bits(&column, self._width, self._sign, count, self._lowest, self._bits)
        return 0

    cdef int _set_hashes(self, object array) except -1:
        cdef ArrowBatch batch = _opened(array)
        cdef ColumnView* column = &batch.columns[0]
        cdef uint64_t hashes[HASHED_ROWS]
        cdef int32_t key = 0
        cdef int64_t start = 0
        cdef int64_t count, index
        cdef uint64_t mixed
        with nogil:
            while start < batch.row_count:
                count = min(<int64_t>HASHED_ROWS, batch.row_count - start)
                hash_batch(batch, &key, 1, start, count, hashes)
                for index in range(count):
                    if not column_is_null(column, start + index):
                        mixed = rehash(hashes[index], SEED)
                        self._words[(mixed >> 32) >> (32 - self._word_shift)] |= bits_of(mixed)
                start += count
        return 0

    # The bits of an exact filter, moved to where their numbers are in this one.
    cdef int _merge_bits(self, KeyFilter other) except -1:
        cdef uint64_t* target = <uint64_t*>self._bits + ((other._lowest - self._lowest) >> 6)
        cdef const uint64_t* source = <const uint64_t*>other._bits
        cdef int32_t moved = <int32_t>((other._lowest - self._lowest) & 63)
        cdef int64_t index
        cdef int64_t words = other.size_bytes // 8
        with nogil:
            if moved == 0:
                for index in range(words):
                    target[index] |= source[index]
            else:
                target[0] |= source[0] << moved
                for index in range(1, words):       # without a branch, so several words at a time
                    target[index] |= (source[index] << moved) | (source[index - 1] >> (64 - moved))
                if source[words - 1] >> (64 - moved):
                    target[words] |= source[words - 1] >> (64 - moved)
        return 0

    # Words of the smaller filter stand for as many neighbours in the larger one. 0: this one is too small for that.
    cdef int _merge_words(self, KeyFilter other) except -1:
        cdef int64_t index
        cdef int32_t more = self._word_shift - other._word_shift
        if more < 0:
            return 0
        for index in range(<int64_t>1 << self._word_shift):
            self._words[index] |= other._words[index >> more]
        return 1

    # The values of an exact filter, each once.
    cdef object _numbers(self):
        cdef const uint64_t* words = <const uint64_t*>self._bits
        cdef uint64_t word, number
        cdef int64_t index, place
        cdef int64_t count = 0
        cdef uint8_t* target
        for index in range(self.size_bytes // 8):
            count += count_ones(words[index])
        buffer = pa.allocate_buffer(count * self._width)
        target = <uint8_t*><uintptr_t>buffer.address
        for index in range(self.size_bytes // 8):
            word = words[index]
            while word:
                place = 64 * index + count_ones((word & (0 - word)) - 1)
                number = (<uint64_t>place + self._lowest) ^ self._sign
                memcpy(target, &number, self._width)         # little-endian
                target += self._width
                word &= word - 1
        return pa.Array.from_buffers(self.data_type, count, [None, buffer])

    # ------------------------------------------------------------------------------------------------ asking

    def mask(self, array not None):
        """Return the mask of values of an array of the keys' type that may be a key; null is none."""
        cdef ArrowBatch batch = None
        cdef ColumnView column
        cdef int64_t count = len(array)
        cdef Mask found = Mask.unset(count)
        if array.type != self.data_type:
            raise TypeError(f"the filter is of {self.data_type}, not of {array.type}")
        if self.is_exact:
            lies_in = _view_integers(array, self._width, &column)
        elif self.value_count:
            batch = _opened(array)
        with nogil:
            self._look_up(batch, &column, count, <uint8_t*>found.words)
        found.count()
        return found.both(Mask(pc.is_valid(array))) if array.null_count else found

    def mask_of(self, batch not None, bytes column not None, Mask within=None):
        """Return the mask of the rows of a batch whose value in a column may be a key, of those of a mask alone.

        None: the filter is not exact, or the column is not of integers of the keys' type (``mask`` is for it).
        """
        cdef OpenedBatch opened
        cdef const ArrowArray* array
        cdef ColumnView view
        cdef Mask found
        cdef int64_t index
        if not self.is_exact:
            return None
        opened = opened_batch(batch)
        for index in range(opened.types.n_children):
            if strcmp(opened.types.children[index].name, <const char*>column) == 0:
                break
        else:
            return None
        array = opened.array.children[index]
        if array.dictionary != NULL or strcmp(opened.types.children[index].format, <const char*>self._format) != 0:
            return None
        memset(&view, 0, sizeof(ColumnView))
        view.offset = array.offset + opened.array.offset
        view.values = <const uint8_t*>array.buffers[1]
        found = Mask.unset(opened.array.length) if within is None else within.copy()
        if found.rows != opened.array.length:
            raise pa.ArrowInvalid(f"a mask of {found.rows} rows for {opened.array.length}")
        if (found.rows if within is None else found.kept) > BRIEF_ROWS:
            with nogil:
                self._look_up_within(&view, found, within is None)
        else:
            self._look_up_within(&view, found, within is None)
        if array.null_count != 0 and array.buffers[0] != NULL:
            for index in range((found.rows + 63) >> 6):
                found.words[index] &= bits_from(<const uint8_t*>array.buffers[0], view.offset + 64 * index,
                                                min(64, found.rows - 64 * index))
        found.count()
        return found

    # Leave the rows of an exact filter in a mask, whose words are not set yet where all are asked for.
    cdef void _look_up_within(self, const ColumnView* column, Mask found, bint are_all) noexcept nogil:
        if are_all or self.value_count == 0:
            self._look_up(None, column, found.rows, <uint8_t*>found.words)
        else:
            find_bits_within(column, self._width, self._sign, found.rows, self._bits, self._lowest, self._highest,
                             found.words)

    def may_lie_between(self, lows not None, highs not None):
        """Return a flag for each pair of bounds: whether some key may lie between them; a null is no bound."""
        found = []
        if self.value_count == 0:
            return [False] * len(lows)
        for index, (least, greatest) in enumerate(zip(lows, highs, strict=True)):
            if not least.is_valid or not greatest.is_valid:
                found.append(True)
            elif self._width:
                found.append(self._has_number(self._word_at(lows, index), self._word_at(highs, index)))
            elif self._least is None or not self._least.is_valid:
                found.append(True)
            else:
                found.append(pc.less_equal(least, self._greatest).as_py()
                             and pc.less_equal(self._least, greatest).as_py())
        return found

    # A number that is no null, as a word.
    cdef uint64_t _word_at(self, object array, int64_t index):
        cdef ColumnView column
        cdef uint64_t word = 0
        lies_in = _view_integers(array, self._width, &column)
        memcpy(&word, column.values + (column.offset + index) * self._width, self._width)   # little-endian
        return word ^ self._sign

    def _has_number(self, uint64_t low, uint64_t high):
        cdef uint64_t word
        low = max(low, self._lowest)
        high = min(high, self._highest)
        if low > high or not self.is_exact:
            return low <= high
        low -= self._lowest
        high -= self._lowest
        word = low
        while word <= high:
            if (self._bits[word >> 3] >> (word & 7)) & 1:
                return True
            # nothing set in the rest of a byte
            word = (word | 7) + 1 if self._bits[word >> 3] >> (word & 7) == 0 else word + 1
        return False

    cdef void _look_up(self, ArrowBatch batch, const ColumnView* column, int64_t count, uint8_t* found) noexcept nogil:
        if self.value_count == 0:
            fill_zero(found, count)
        elif not self.is_exact:
            find_hashes(batch, count, SEED, self._words, self._word_shift, found)
        else:
            find_bits(column, self._width, self._sign, count, self._bits, self._lowest, self._highest, found)
