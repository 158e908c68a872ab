"""DenseGroups: the groups of keys that have few values, found by their numbers, without hash and comparison.

    key columns    text as codes        integer, date, bool        null
    number         by_code[code]        value - base + 1           0
    row            number + stride * number + ...  ──► groups[number] ──► its group, or NULL: look in the table, keep it

    numbered = dense.open(keys)         a batch: codes of a dictionary that it does not know get numbers by their texts
    missing = dense.find(numbered, ...) a block of rows; the table looks for those that are missing,
    dense.keep(...)                     and they are known from then on

A text keeps its number from dictionary to dictionary (each row group of a file has one of its own); two codes of the
same text have the same number, and the code of a null has that of null. Integers have numbers where they lie close
together. Where values come that have no number, there are more numbers, and groups are learned anew; where that are too
many (the product over the columns is more than NUMBERS_MAX, or an eighth of the memory), only the current ones get
some. Where that does not help, or where hardly a group is known MISSES_MAX blocks in a row, some blocks are not looked
at: more and more of them while groups had to be learned anew in between, for the values of a sorted key do not come
back.

Invariants: groups are groups of the table, and dropping one calls forget(); two rows have one number exactly when
their keys are equal (no floats: -0.0 and NaN). Integers are numbered modulo 2^64, or 2^32 where they are of up to 32
bits: different ones within a range have different numbers wherever it lies. The caller has checked that the
dictionary has them.

Limits: keys of KEYS_MAX columns; texts that have numbers, and numbers of one block, lie outside the budget.

Source: the perfect hash aggregate and the dictionary vectors of DuckDB; Velox's VectorHasher (value ids).
"""

cimport cython
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memcpy, memset

from engine.memory.page_pool cimport PagePool
from engine.records.arrow_batch cimport (
    KIND_BOOL,
    KIND_BYTES,
    KIND_INT8,
    KIND_LARGE_BYTES,
    KIND_UINT8,
    KIND_UINT64,
    ArrowBatch,
    ColumnView,
    column_is_null,
)
from engine.records.arrow_c_data cimport ArrowArray
from engine.records.number_types cimport Integer, Narrow
from engine.records.opened_batch cimport OpenedBatch, opened_batch
from engine.records.row_codec cimport RowCodec

import pyarrow as pa

from engine.records.arrow_functions import pc

cdef enum:
    KEYS_MAX = 8
    TEXT_BUFFERS = 3            # validity, offsets, texts
    BLOCK_ROWS_MAX = 1024       # as the table's
    NUMBERS_MAX = 1 << 17       # a megabyte of addresses: what the second cache of a core holds
    POOL_PART = 8
    CAPACITY_MIN = 16
    MISSES_MAX = 4
    MISSES_REST = 16
    MOVED_REST_MAX = 1024
    RANGE_REST = 60

cdef object INT32 = pa.int32()


@cython.final
cdef class DenseGroups:
    """Dense groups of one table. Args: pool: of the table; codec: of its keys, None: none. Methods: see the .pxd."""

    def __cinit__(self, PagePool pool not None, RowCodec codec):
        cdef int32_t column, kind
        cdef int32_t key_count = 0 if codec is None else codec.column_count
        self._pool = pool
        self._texts, self._dictionaries = [None] * key_count, [None] * key_count
        if not 0 < key_count <= KEYS_MAX:
            return
        self._keys = <KeyNumbers*> calloc(key_count, sizeof(KeyNumbers))
        self.numbers = <uint32_t*> malloc(BLOCK_ROWS_MAX * sizeof(uint32_t))
        if self._keys == NULL or self.numbers == NULL:
            raise MemoryError("numbers of keys")
        for column in range(key_count):
            kind = codec.kinds[column]
            if kind == KIND_BYTES or kind == KIND_LARGE_BYTES:
                self._keys[column].is_text = self.has_texts = True
            elif kind == KIND_BOOL:
                self._keys[column].is_bool = True
            elif not KIND_INT8 <= kind <= KIND_UINT64:
                return
            self._keys[column].is_unsigned = kind >= KIND_UINT8
            self._keys[column].code_count = -1
        self._key_count = key_count

    def __dealloc__(self):
        cdef int32_t column
        for column in range(self._key_count):
            free(self._keys[column].by_code)
        free(self._keys)
        free(self.numbers)

    # -------------------------------------------------------------------------------------------------------- batches

    cdef ArrowBatch open(self, object batch, list places):
        cdef int32_t column
        if self._key_count == 0:
            return None
        for column in range(self._key_count if self.has_texts else 0):
            if self._keys[column].is_text and not self._has_codes(column, batch, places[column]):
                return None
        return ArrowBatch.open_columns(batch, places, self.has_texts)

    cdef bint _has_codes(self, int32_t column, object batch, int32_t place):
        """See to it that the codes of a column have numbers; False: there are too many, or it has none."""
        cdef KeyNumbers* key = &self._keys[column]
        cdef OpenedBatch opened = opened_batch(batch)
        cdef const ArrowArray* texts = opened.array.children[place].dictionary
        if texts == NULL:
            return False
        if texts.length == key.code_count and texts.offset == key.first and texts.n_buffers == TEXT_BUFFERS and (
                memcmp(texts.buffers, key.buffers, sizeof(key.buffers)) == 0):
            return True
        array = batch.column(place)
        if array.type.index_type != INT32:
            return False
        key.code_count = -1
        if not self._learn_texts(column, array.dictionary):
            return False
        if texts.n_buffers == TEXT_BUFFERS:
            memcpy(key.buffers, texts.buffers, sizeof(key.buffers))
            key.first, key.code_count = texts.offset, texts.length
        return True

    cdef bint _learn_texts(self, int32_t column, object dictionary):
        """See to it that the texts of a dictionary have numbers, and its codes; False: there are too many."""
        last = self._dictionaries[column]
        if last is not None and dictionary.equals(last):
            self._dictionaries[column] = dictionary
            return True
        texts = self._texts[column]
        if len(dictionary) >= self.numbers_max():
            return False
        if texts is None or texts.type != dictionary.type:
            texts = dictionary.slice(0, 0)
            self.forget()
        found = pc.index_in(dictionary, value_set=texts)
        if found.null_count > dictionary.null_count:
            others = pc.unique(pc.filter(dictionary, pc.and_(pc.is_null(found), pc.is_valid(dictionary))))
            if len(texts) + len(others) >= self.numbers_max():
                texts, others = others.slice(0, 0), pc.unique(pc.drop_null(dictionary))
                self.forget()
            texts = pa.concat_arrays([texts, others])
            found = pc.index_in(dictionary, value_set=texts)
        self._texts[column] = texts
        self._dictionaries[column] = None
        self._take_codes(column, found)
        self._dictionaries[column] = dictionary
        self._keys[column].text_count = len(texts)
        if self._keys[column].text_count >= self._keys[column].capacity:
            self.release()
        return True

    cdef int _take_codes(self, int32_t column, object found) except -1:
        """Keep the numbers of codes: where their texts were found, and 1; of null 0."""
        cdef KeyNumbers* key = &self._keys[column]
        cdef int64_t count = len(found)
        cdef int64_t code
        cdef int32_t* by_code = <int32_t*> malloc(<size_t> (count + 1) * sizeof(int32_t))
        cdef const int32_t* places
        if by_code == NULL:
            raise MemoryError("numbers of texts")
        found = pc.fill_null(found, -1)
        if count:
            places = <const int32_t*> <uintptr_t> found.buffers()[1].address + <int64_t> found.offset
            with nogil:
                for code in range(count):
                    by_code[code] = places[code] + 1
        free(key.by_code)
        key.by_code = by_code
        return 0

    cdef int64_t numbers_max(self) noexcept nogil:
        return min(<int64_t> NUMBERS_MAX, self._pool.page_limit * self._pool.page_size // POOL_PART // 8)

    # ----------------------------------------------------------------------------------------------------------- rows

    cdef int64_t find(self, ArrowBatch keys, int64_t start, int64_t count, uint8_t** groups,
                      int32_t* missing) noexcept nogil:
        cdef int64_t row
        cdef int64_t missing_count = 0
        cdef bint are_known = True
        self.are_numbered = False
        if self._rest:
            self._rest -= 1
            return NO_NUMBERS
        if self._groups == NULL or not self._number(keys, start, count):
            if not self._widen(keys, start, count) or not self._number(keys, start, count):
                self._rest = RANGE_REST
                return NO_NUMBERS
            self._have_moved = True
        self.are_numbered = True
        for row in range(count):
            groups[row] = self._groups[self.numbers[row]]
            are_known &= groups[row] != NULL
        if are_known:
            self._misses = 0
            return 0
        for row in range(count):
            missing[missing_count] = <int32_t> row
            missing_count += groups[row] == NULL
        self._misses = self._misses + 1 if 4 * missing_count > 3 * count else 0
        if self._misses > MISSES_MAX:
            self._rest_after_misses()
        return missing_count

    cdef void _rest_after_misses(self) noexcept nogil:
        """Leave some blocks out; each time twice as many where values move on, as those of a sorted key do."""
        self._misses = 0
        if self._have_moved:
            self._last_rest = min(max(2 * self._last_rest, MISSES_REST), MOVED_REST_MAX)
        else:
            self._last_rest = MISSES_REST
        self._rest = self._last_rest
        self._have_moved = False

    cdef void keep(self, int64_t count, uint8_t** groups) noexcept nogil:
        cdef int64_t row
        for row in range(count if self.are_numbered else 0):
            self._groups[self.numbers[row]] = groups[row]

    cdef void forget(self) noexcept nogil:
        self.are_numbered = False
        if self._groups != NULL:
            memset(self._groups, 0, <size_t> self._size)

    cdef void release(self) noexcept nogil:
        self.are_numbered = False
        if self._groups != NULL:
            self._pool.give_large(<uint8_t*> self._groups, self._size)
            self._groups = NULL

    cdef bint _number(self, ArrowBatch keys, int64_t start, int64_t count) noexcept nogil:
        """Give each row of a block its number; False: some value has none."""
        cdef int32_t column
        cdef bint are_known = True
        memset(self.numbers, 0, <size_t> count * sizeof(uint32_t))
        for column in range(self._key_count):
            are_known &= number_column(&self._keys[column], &keys.columns[column], start, count, self.numbers)
        return are_known

    cdef bint _widen(self, ArrowBatch keys, int64_t start, int64_t count) noexcept nogil:
        """Lay groups out for the values of a block beside those that were seen, or for them alone; False: too many."""
        cdef int32_t column
        for column in range(self._key_count):
            see_integers(&self._keys[column], &keys.columns[column], start, count)
        if self._lay_out():
            return True
        for column in range(self._key_count):
            self._keys[column].is_known = False
            see_integers(&self._keys[column], &keys.columns[column], start, count)
        return self._lay_out()

    cdef bint _lay_out(self) noexcept nogil:
        """Take memory for the groups of all numbers, all of them unknown; False: too many, or no memory."""
        cdef int64_t numbers = 1
        cdef int64_t most = self.numbers_max()
        cdef int64_t spare
        cdef int32_t column
        cdef KeyNumbers* key
        self.release()
        for column in range(self._key_count):
            key = &self._keys[column]
            if key.is_text:
                key.capacity = key.text_count * 5 // 4 + CAPACITY_MIN
            elif key.is_bool:
                key.capacity = 3
            elif key.is_known:
                if key.highest - key.lowest >= <uint64_t> most:
                    return False
                # room on both sides for what comes next
                spare = <int64_t> (key.highest - key.lowest) // 8 + CAPACITY_MIN // 2
                key.base = key.lowest - <uint64_t> spare
                key.capacity = <int64_t> (key.highest - key.lowest) + 2 * spare + 2
            else:
                key.capacity = 2        # nulls alone
            key.stride = numbers
            numbers *= key.capacity
            if numbers > most:
                return False
        self._size = 8 * numbers
        self._groups = <uint8_t**> self._pool.take_large(self._size, False)
        if self._groups == NULL:
            return False
        memset(self._groups, 0, <size_t> self._size)
        self.layouts += 1
        return True


# ------------------------------------------------------------------------------------------------------------- kernels


cdef inline uint32_t mask_of(const ColumnView* column, int64_t row) noexcept nogil:
    """All bits for a value, none for null."""
    return 0 if column_is_null(column, row) else 0xFFFFFFFFU


cdef bint number_narrow(const Narrow* values, const KeyNumbers* key, const ColumnView* column, int64_t start,
                        int64_t count, uint32_t* numbers) noexcept nogil:
    cdef uint32_t base = <uint32_t> key.base
    cdef uint32_t end = <uint32_t> (key.capacity - 1)
    cdef uint32_t stride = <uint32_t> key.stride
    cdef uint32_t place, mask
    cdef uint32_t beyond = 0
    cdef int64_t row
    if column.validity == NULL:
        for row in range(count):
            place = <uint32_t> values[row] - base
            beyond |= place >= end
            numbers[row] += (place + 1) * stride
        return beyond == 0
    for row in range(count):
        mask = mask_of(column, start + row)
        place = <uint32_t> values[row] - base
        beyond |= (place >= end) & mask
        numbers[row] += (place + 1) * stride & mask
    return beyond == 0


cdef bint number_wide(const uint64_t* values, const KeyNumbers* key, const ColumnView* column, int64_t start,
                      int64_t count, uint32_t* numbers) noexcept nogil:
    cdef uint64_t end = <uint64_t> (key.capacity - 1)
    cdef uint32_t stride = <uint32_t> key.stride
    cdef uint64_t place
    cdef uint32_t beyond = 0
    cdef uint32_t mask = 0xFFFFFFFFU
    cdef int64_t row
    for row in range(count):
        if column.validity != NULL:
            mask = mask_of(column, start + row)
        place = values[row] - key.base
        beyond |= (place >= end) & mask
        numbers[row] += (<uint32_t> place + 1) * stride & mask
    return beyond == 0


cdef bint number_bits(const KeyNumbers* key, const ColumnView* column, int64_t start, int64_t count,
                      uint32_t* numbers) noexcept nogil:
    cdef uint32_t stride = <uint32_t> key.stride
    cdef int64_t row, bit
    for row in range(count):
        bit = column.offset + start + row
        numbers[row] += (1 + ((column.values[bit >> 3] >> (bit & 7)) & 1)) * stride & mask_of(column, start + row)
    return True


cdef bint number_codes(const int32_t* codes, const KeyNumbers* key, const ColumnView* column, int64_t start,
                       int64_t count, uint32_t* numbers) noexcept nogil:
    cdef const int32_t* by_code = key.by_code
    cdef uint32_t stride = <uint32_t> key.stride
    cdef int64_t row
    if column.validity == NULL:
        for row in range(count):
            numbers[row] += <uint32_t> by_code[codes[row]] * stride
        return True
    for row in range(count):
        if not column_is_null(column, start + row):
            numbers[row] += <uint32_t> by_code[codes[row]] * stride
    return True


cdef bint number_column(const KeyNumbers* key, const ColumnView* column, int64_t start, int64_t count,
                        uint32_t* numbers) noexcept nogil:
    """Add the numbers of a column's values to those of their rows; False: some values have none."""
    cdef const uint8_t* values = column.values + (column.offset + start) * column.width
    if key.is_bool:
        return number_bits(key, column, start, count, numbers)
    if key.is_text:
        return number_codes(<const int32_t*> values, key, column, start, count, numbers)
    if column.width == 8:
        return number_wide(<const uint64_t*> values, key, column, start, count, numbers)
    if column.width == 4:
        return number_narrow(<const uint32_t*> values, key, column, start, count, numbers)
    if column.width == 2:
        if key.is_unsigned:
            return number_narrow(<const uint16_t*> values, key, column, start, count, numbers)
        return number_narrow(<const int16_t*> values, key, column, start, count, numbers)
    if key.is_unsigned:
        return number_narrow(values, key, column, start, count, numbers)
    return number_narrow(<const int8_t*> values, key, column, start, count, numbers)


cdef void see(const Integer* values, KeyNumbers* key, const ColumnView* column, int64_t start,
              int64_t count) noexcept nogil:
    """Widen the bounds of what has been seen to the values of a block."""
    cdef Integer lowest, highest
    cdef int64_t row
    cdef bint is_known = key.is_known
    lowest = <Integer> key.lowest
    highest = <Integer> key.highest
    for row in range(count):
        if column.validity != NULL and column_is_null(column, start + row):
            continue
        if not is_known:
            lowest = highest = values[row]
            is_known = True
        lowest = min(lowest, values[row])
        highest = max(highest, values[row])
    key.is_known = is_known
    if Integer is uint8_t or Integer is uint16_t or Integer is uint32_t or Integer is uint64_t:
        key.lowest, key.highest = lowest, highest
    else:
        key.lowest, key.highest = <uint64_t> <int64_t> lowest, <uint64_t> <int64_t> highest


cdef void see_integers(KeyNumbers* key, const ColumnView* column, int64_t start, int64_t count) noexcept nogil:
    cdef const uint8_t* values = column.values + (column.offset + start) * column.width
    if key.is_text or key.is_bool:
        return
    if column.width == 8:
        if key.is_unsigned:
            see[uint64_t](<const uint64_t*> values, key, column, start, count)
        else:
            see[int64_t](<const int64_t*> values, key, column, start, count)
    elif column.width == 4:
        if key.is_unsigned:
            see[uint32_t](<const uint32_t*> values, key, column, start, count)
        else:
            see[int32_t](<const int32_t*> values, key, column, start, count)
    elif column.width == 2:
        if key.is_unsigned:
            see[uint16_t](<const uint16_t*> values, key, column, start, count)
        else:
            see[int16_t](<const int16_t*> values, key, column, start, count)
    elif key.is_unsigned:
        see[uint8_t](values, key, column, start, count)
    else:
        see[int8_t](<const int8_t*> values, key, column, start, count)
