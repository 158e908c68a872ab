"""KeyBytes: the sort keys of one row as bytes that compare, as bytes do, the way the rows do.

    key_bytes = KeyBytes(schema, keys)
    size = key_bytes.write(row, target)             kernel: at most KEY_BYTES_MAX bytes
    key_bytes.of_batch(batch) -> list[bytes]        for tests and tools

The 8-byte prefix of NormalizedKey sorts; these bytes divide: samples, bounds of ranges and the sparse index of a run
are made of them, because they travel through components that know no rows, and because the prefixes of long keys with
a common beginning are all the same. The layout is in ``key_bytes.pxd``.

Invariants: the order of key bytes never contradicts RowComparator; keys that were cut may be equal where rows differ,
so such rows stay in one range. -0.0 is 0.0, NaN is one value and the largest; nulls are where nulls_last puts them,
whatever descending says.

Cost: some 20-50 ns a row; it is asked for once a block, a sample or a step of a binary search, never for every row.

Source: normalized keys of Flink's TypeComparator; escaped terminators as in FoundationDB's tuple layer.

Held by: tests/sort/test_sorted_runs.py
"""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp

from engine.records.byte_kernels cimport load16, load32, load64
from engine.records.comparator cimport RowComparator, SortColumn
from engine.records.ordered_number cimport (
    ORDER_BYTES,
    ORDER_DECIMAL,
    ORDER_FIXED_BYTES,
    ORDER_NULL,
    ordered_word,
)
from engine.records.outside_values cimport PREFIX_OFFSET, is_outside, known_bytes
from engine.records.row_codec cimport RowCodec, row_is_null, row_size


cdef inline int32_t _put(uint8_t* target, int32_t used, uint8_t value) noexcept nogil:
    """Append a byte while there is room."""
    if used < KEY_BYTES_MAX:
        target[used] = value
        return used + 1
    return used


cdef inline int32_t _put_number(uint8_t* target, int32_t used, uint64_t value, int32_t width,
                                uint8_t flip) noexcept nogil:
    """Append the low `width` bytes of a word, highest first."""
    cdef int32_t shift = 8 * width - 8
    while shift >= 0:
        used = _put(target, used, <uint8_t> (value >> shift) ^ flip)
        shift -= 8
    return used


cdef int32_t _put_bytes(uint8_t* target, int32_t used, const uint8_t* data, uint64_t size,
                        uint8_t flip) noexcept nogil:
    """Append bytes of any length, escaped and ended."""
    cdef uint64_t index
    for index in range(size):
        if used == KEY_BYTES_MAX:
            return used
        used = _put(target, used, data[index] ^ flip)
        if data[index] == 0:
            used = _put(target, used, 0xFF ^ flip)
    return _put(target, _put(target, used, flip), flip)


cdef int32_t _put_value(uint8_t* target, int32_t used, const SortColumn* key, const uint8_t* row) noexcept nogil:
    cdef uint8_t flip = 0xFF if key.descending else 0
    cdef const uint8_t* value = row + key.slot
    cdef uint64_t word
    cdef uint64_t sign = <uint64_t> 1 << 63
    cdef int32_t index
    if key.order == ORDER_BYTES:
        word = load64(value)
        value = row + (word & 0xFFFFFFFFU)
        if is_outside(word):      # what is known of it is as much as is taken of any value
            return _put_bytes(target, used, value + PREFIX_OFFSET, known_bytes(value), flip)
        return _put_bytes(target, used, value, word >> 32, flip)
    if key.order == ORDER_FIXED_BYTES:
        for index in range(key.width):
            used = _put(target, used, value[index] ^ flip)
        return used
    if key.order == ORDER_DECIMAL:
        index = key.width - 8
        while index >= 0:
            used = _put_number(target, used, load64(value + index) ^ sign, 8, flip)
            sign = 0
            index -= 8
        return used
    if key.width == 8:
        word = ordered_word[uint64_t](load64(value), key.order)
    elif key.width == 4:
        word = ordered_word[uint32_t](load32(value), key.order)
    elif key.width == 2:
        word = ordered_word[uint16_t](load16(value), key.order)
    else:
        word = ordered_word[uint8_t](value[0], key.order)
    return _put_number(target, used, word, key.width, flip)


cdef int compare_keys(const uint8_t* left, int32_t left_size, const uint8_t* right, int32_t right_size) noexcept nogil:
    cdef int order = memcmp(left, right, <size_t> min(left_size, right_size))
    return order if order != 0 else left_size - right_size


@cython.final
cdef class KeyBytes:
    """Args: schema: pyarrow.Schema of the rows; keys: SortKey, the first decides first. Raises: SchemaError."""

    def __cinit__(self, schema, keys):
        cdef RowCodec codec = RowCodec(schema)
        cdef int32_t index
        self._comparator = RowComparator(codec, keys)
        self._nullable = <uint8_t*> calloc(<size_t> self._comparator.column_count + 1, 1)
        if self._nullable == NULL:
            raise MemoryError()
        for index in range(self._comparator.column_count):
            self._nullable[index] = codec.schema.field(self._comparator.keys[index].column).nullable

    def __dealloc__(self):
        free(self._nullable)

    cdef int32_t write(self, const uint8_t* row, uint8_t* target) noexcept nogil:
        cdef const SortColumn* key
        cdef int32_t index
        cdef int32_t used = 0
        cdef bint is_null
        for index in range(self._comparator.column_count):
            key = &self._comparator.keys[index]
            if self._nullable[index] or key.order == ORDER_NULL:
                is_null = row_is_null(row, key.column)
                used = _put(target, used, is_null == key.nulls_last)
                if is_null:
                    continue
            if key.order != ORDER_NULL:
                used = _put_value(target, used, key, row)
            if used == KEY_BYTES_MAX:
                return used
        return used

    cdef int compare(self, const uint8_t* row, const uint8_t* key, int32_t size) noexcept nogil:
        cdef uint8_t[KEY_BYTES_MAX] own
        cdef int32_t own_size = self.write(row, own)
        return compare_keys(own, own_size, key, size)

    def of_batch(self, batch):
        """Return the key of every row of a record batch of the schema."""
        cdef const uint8_t[::1] rows
        cdef uint8_t[KEY_BYTES_MAX] target
        cdef int64_t offset = 0
        found = []
        if batch.num_rows == 0:
            return found
        rows = self._comparator._codec.to_rows(batch)
        while offset < rows.shape[0]:
            found.append(PyBytes_FromStringAndSize(<const char*> target, self.write(&rows[offset], target)))
            offset += row_size(&rows[offset])
        return found
