"""Comparing key columns where they lie: rows with rows, and Arrow batches with rows.

    KeyEquality     are the keys equal?     rows_equal(left, right)     batch_equals_rows(many candidates, by column)
                    which comes first?      order_of(left, right)       of two schemas, ascending
    RowComparator   which row comes first?  compare(left, right)        of one schema

Equality is that of keys (-0.0 equals 0.0, NaN equals NaN, null equals null), order that of ``SortKey``: NaN above all
numbers, bytes compared unsigned, nulls first or last whatever the direction. Only key columns are read.

batch_equals_rows clears flags column by column; a loop's type is chosen once per column, and whether it asks for values
outside of their rows (``outside_values``). Null slots of rows are zero,
so a fixed value needs no branch: both null bits alike, and the words alike after a null is taken as zero.

Out-of-line values are compared as ``outside_keys`` does; the caller of a comparison then asks whether it failed.

Limits: both sides have the same types (string and its large form are one); nested types are no keys.
Thread: read-only after their making. Source: Flink's TypeComparator and TypePairComparator.
"""

cimport cython
import pyarrow as pa

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memset

from engine.errors import SchemaError
from engine.records.arrow_batch cimport ArrowBatch, ColumnView, KIND_BOOL, KIND_LARGE_BYTES, column_is_null
from engine.records.byte_kernels cimport equal_bytes, load16, load32, load64
from engine.records.number_types cimport Word
from engine.records.key_types import check_key_columns, column_index
from engine.records.ordered_number cimport (
    ORDER_BYTES,
    ORDER_DECIMAL,
    ORDER_FIXED_BYTES,
    ORDER_NULL,
    canonical_word,
    order_of_kind,
    ordered_word,
)
from engine.records.outside_keys cimport LENGTH_OUTSIDE, compare_outside, equal_outside
from engine.records.outside_values cimport values_lie_outside
from engine.records.row_codec cimport RowCodec, row_is_null


# ------------------------------------------------------------------------------------------------------- equality

cdef inline bint _words_equal(const uint8_t* left, const uint8_t* right, int32_t width, int32_t order) noexcept nogil:
    """Return whether two numbers are equal as keys."""
    if width == 8:
        return canonical_word[uint64_t](load64(left), order) == canonical_word[uint64_t](load64(right), order)
    if width == 4:
        return canonical_word[uint32_t](load32(left), order) == canonical_word[uint32_t](load32(right), order)
    if width == 2:
        return canonical_word[uint16_t](load16(left), order) == canonical_word[uint16_t](load16(right), order)
    return left[0] == right[0]


cdef inline bint _bytes_equal(const uint8_t* left, uint64_t left_length, const uint8_t* right_row,
                              int32_t right_slot) noexcept nogil:
    """Return whether bytes equal a row's variable value; with LENGTH_OUTSIDE they are a reference."""
    cdef uint64_t right = load64(right_row + right_slot)
    if (left_length | right >> 32) & LENGTH_OUTSIDE:
        return equal_outside(left, left_length, right_row + (right & 0xFFFFFFFFU), right >> 32)
    return left_length == right >> 32 and equal_bytes(left, right_row + (right & 0xFFFFFFFFU), left_length)


cdef inline bint _key_equal(const KeyColumn* key, const uint8_t* left, const uint8_t* right) noexcept nogil:
    """Return whether one key column of two rows is equal. Nulls have zeroed slots, so their values are equal."""
    cdef uint64_t value
    if row_is_null(left, key.left_column) != row_is_null(right, key.right_column):
        return False
    if key.order == ORDER_BYTES:
        value = load64(left + key.left_slot)
        return _bytes_equal(left + (value & 0xFFFFFFFFU), value >> 32, right, key.right_slot)
    if key.order == ORDER_DECIMAL or key.order == ORDER_FIXED_BYTES:
        return equal_bytes(left + key.left_slot, right + key.right_slot, <uint64_t>key.width)
    if key.order == ORDER_NULL:
        return True
    return _words_equal(left + key.left_slot, right + key.right_slot, key.width, key.order)


cdef void _match_words(Word* tag, const KeyColumn* key, const ColumnView* column, const int64_t* batch_rows,
                       uint8_t** right_rows, int64_t count, uint8_t* flags) noexcept nogil:
    """Clear the flag of each candidate whose number differs."""
    cdef const Word* values = <const Word*>column.values + column.offset
    cdef bint nulls = column.validity != NULL
    cdef bint null
    cdef Word left, right
    cdef int64_t index
    for index in range(count):
        null = nulls and column_is_null(column, batch_rows[index])
        left = 0 if null else canonical_word(values[batch_rows[index]], key.order)
        right = canonical_word((<const Word*>(right_rows[index] + key.right_slot))[0], key.order)
        flags[index] &= <uint8_t>((left == right) & (null == row_is_null(right_rows[index], key.right_column)))


cdef void _match_bools(const KeyColumn* key, const ColumnView* column, const int64_t* batch_rows,
                       uint8_t** right_rows, int64_t count, uint8_t* flags) noexcept nogil:
    cdef int64_t bit, index
    cdef uint8_t left
    cdef bint null
    for index in range(count):
        bit = column.offset + batch_rows[index]
        null = column_is_null(column, batch_rows[index])
        left = 0 if null else (column.values[bit >> 3] >> (bit & 7)) & 1
        flags[index] &= <uint8_t>((left == right_rows[index][key.right_slot])
                                  & (null == row_is_null(right_rows[index], key.right_column)))


cdef void _match_wide(const KeyColumn* key, const ColumnView* column, const int64_t* batch_rows,
                      uint8_t** right_rows, int64_t count, uint8_t* flags) noexcept nogil:
    """Clear the flag of each candidate whose decimal or fixed-size binary differs."""
    cdef const uint8_t* left
    cdef int64_t index
    cdef bint null
    for index in range(count):
        if flags[index] == 0:
            continue
        null = column_is_null(column, batch_rows[index])
        if null != row_is_null(right_rows[index], key.right_column):
            flags[index] = 0
        elif not null:
            left = column.values + (column.offset + batch_rows[index]) * column.width
            flags[index] = <uint8_t>equal_bytes(left, right_rows[index] + key.right_slot, <uint64_t>key.width)


cdef inline void _match_values(const KeyColumn* key, const ColumnView* column, const uint8_t* outside,
                               bint looks_outside, const int64_t* batch_rows, uint8_t** right_rows, int64_t count,
                               uint8_t* flags) noexcept nogil:
    """Compare; an out-of-line value has another size than any value of the batch unless it is loaded."""
    cdef bint large = column.kind == KIND_LARGE_BYTES
    cdef int64_t begin, end, index, position
    cdef uint64_t length, right
    cdef bint null
    for index in range(count):
        if flags[index] == 0:
            continue
        null = column_is_null(column, batch_rows[index])
        if null != row_is_null(right_rows[index], key.right_column):
            flags[index] = 0
        elif not null:
            position = column.offset + batch_rows[index]
            if large:
                begin = (<const int64_t*>column.offsets)[position]
                end = (<const int64_t*>column.offsets)[position + 1]
            else:
                begin = (<const int32_t*>column.offsets)[position]
                end = (<const int32_t*>column.offsets)[position + 1]
            length = <uint64_t>(end - begin)
            if looks_outside:
                if outside != NULL and outside[batch_rows[index]]:
                    length |= LENGTH_OUTSIDE
                flags[index] = <uint8_t>_bytes_equal(column.values + begin, length, right_rows[index], key.right_slot)
            else:
                right = load64(right_rows[index] + key.right_slot)
                flags[index] = <uint8_t>(length == right >> 32 and equal_bytes(
                    column.values + begin, right_rows[index] + (right & 0xFFFFFFFFU), length))


cdef void _match_bytes(const KeyColumn* key, const ColumnView* column, const uint8_t* outside,
                       const int64_t* batch_rows, uint8_t** right_rows, int64_t count, uint8_t* flags) noexcept nogil:
    """Clear the flag of each candidate whose variable value differs."""
    if outside != NULL or values_lie_outside():
        _match_values(key, column, outside, True, batch_rows, right_rows, count, flags)
    else:
        _match_values(key, column, NULL, False, batch_rows, right_rows, count, flags)


cdef void _match_nulls(const KeyColumn* key, uint8_t** right_rows, int64_t count, uint8_t* flags) noexcept nogil:
    cdef int64_t index
    for index in range(count):
        flags[index] &= <uint8_t>row_is_null(right_rows[index], key.right_column)


cdef object _comparable(object data_type):
    """Return the type under which key columns of two sides are compared."""
    if pa.types.is_large_string(data_type):
        return pa.string()
    if pa.types.is_large_binary(data_type):
        return pa.binary()
    return data_type


cdef int _check_pair(object left, object right) except -1:
    if not _comparable(left.type).equals(_comparable(right.type)):
        raise SchemaError(f"key columns '{left.name}' of type {left.type} and '{right.name}' of type {right.type} "
                          "cannot be compared; cast them to one type first")
    return 0


@cython.final
cdef class KeyEquality:
    """Equality of the key columns of two row schemas.

    Args:
        left, right: RowCodec of each side.
        left_columns, right_columns: indexes of the key columns, pairwise.

    Raises:
        SchemaError: types of a pair differ, or cannot be keys.
    """

    def __cinit__(self, RowCodec left not None, left_columns, RowCodec right not None, right_columns):
        cdef int32_t index, column
        if len(left_columns) != len(right_columns):
            raise SchemaError(f"{len(left_columns)} key columns cannot be compared with {len(right_columns)}")
        check_key_columns(left.schema, left_columns)
        check_key_columns(right.schema, right_columns)
        self._left = left
        self._right = right
        self.column_count = len(left_columns)
        self.left_columns = <int32_t*>calloc(<size_t>self.column_count * 2 + 1, sizeof(int32_t))
        self._keys = <KeyColumn*>calloc(<size_t>self.column_count + 1, sizeof(KeyColumn))
        if self.left_columns == NULL or self._keys == NULL:
            raise MemoryError
        self.right_columns = self.left_columns + self.column_count
        for index in range(self.column_count):
            _check_pair(left.schema.field(left_columns[index]), right.schema.field(right_columns[index]))
            column = left_columns[index]
            self.left_columns[index] = column
            self._keys[index].left_column = column
            self._keys[index].left_slot = left.slots[column]
            self._keys[index].order = order_of_kind(left.kinds[column])
            self._keys[index].width = left.widths[column]
            column = right_columns[index]
            self.right_columns[index] = column
            self._keys[index].right_column = column
            self._keys[index].right_slot = right.slots[column]

    def __dealloc__(self):
        free(self.left_columns)
        free(self._keys)

    cdef bint rows_equal(self, const uint8_t* left, const uint8_t* right) noexcept nogil:
        """Return whether the keys of two rows are equal."""
        cdef int32_t index
        for index in range(self.column_count):
            if not _key_equal(&self._keys[index], left, right):
                return False
        return True

    cdef int order_of(self, const uint8_t* left, const uint8_t* right) noexcept nogil:
        """Return < 0 when the left key comes first, > 0 when the right one does, 0 when they are equal."""
        return _order_of(self._keys, self.column_count, left, right)

    cdef void batch_equals_rows(self, ArrowBatch batch, const int64_t* batch_rows, uint8_t** right_rows,
                                int64_t count, uint8_t* flags) noexcept nogil:
        """Compare candidates column by column."""
        cdef const KeyColumn* key
        cdef const ColumnView* column
        cdef int32_t index
        memset(flags, 1, <size_t>count)
        for index in range(self.column_count):
            key = &self._keys[index]
            column = &batch.columns[key.left_column]
            if key.order == ORDER_NULL:
                _match_nulls(key, right_rows, count, flags)
            elif key.order == ORDER_BYTES:
                _match_bytes(key, column, batch.outside[key.left_column] if batch.outside != NULL else NULL,
                             batch_rows, right_rows, count, flags)
            elif key.order == ORDER_DECIMAL or key.order == ORDER_FIXED_BYTES:
                _match_wide(key, column, batch_rows, right_rows, count, flags)
            elif column.kind == KIND_BOOL:
                _match_bools(key, column, batch_rows, right_rows, count, flags)
            elif key.width == 8:
                _match_words[uint64_t](NULL, key, column, batch_rows, right_rows, count, flags)
            elif key.width == 4:
                _match_words[uint32_t](NULL, key, column, batch_rows, right_rows, count, flags)
            elif key.width == 2:
                _match_words[uint16_t](NULL, key, column, batch_rows, right_rows, count, flags)
            else:
                _match_words[uint8_t](NULL, key, column, batch_rows, right_rows, count, flags)


# ---------------------------------------------------------------------------------------------------------- order

cdef inline int _sign(uint64_t left, uint64_t right) noexcept nogil:
    return <int>(left > right) - <int>(left < right)


cdef int _compare_decimals(const uint8_t* left, const uint8_t* right, int32_t width) noexcept nogil:
    """Compare from the highest word down; that one is signed."""
    cdef uint64_t flip = <uint64_t>1 << 63
    cdef uint64_t one, other
    width -= 8
    while width >= 0:
        one = load64(left + width) ^ flip
        other = load64(right + width) ^ flip
        if one != other:
            return _sign(one, other)
        flip = 0
        width -= 8
    return 0


cdef int _compare_bytes(const uint8_t* left_row, int32_t left_slot, const uint8_t* right_row,
                        int32_t right_slot) noexcept nogil:
    cdef uint64_t left = load64(left_row + left_slot)
    cdef uint64_t right = load64(right_row + right_slot)
    cdef uint64_t left_size = left >> 32
    cdef uint64_t right_size = right >> 32
    cdef int order
    if (left_size | right_size) & LENGTH_OUTSIDE:
        return compare_outside(left_row + (left & 0xFFFFFFFFU), left_size, right_row + (right & 0xFFFFFFFFU),
                               right_size)
    order = memcmp(left_row + (left & 0xFFFFFFFFU), right_row + (right & 0xFFFFFFFFU),
                   <size_t>min(left_size, right_size))
    return order if order != 0 else _sign(left_size, right_size)


cdef inline int _compare_values(int32_t order, int32_t width, const uint8_t* left, int32_t left_slot,
                                const uint8_t* right, int32_t right_slot) noexcept nogil:
    """Compare one column of two rows, neither null."""
    if order == ORDER_BYTES:
        return _compare_bytes(left, left_slot, right, right_slot)
    if order == ORDER_DECIMAL:
        return _compare_decimals(left + left_slot, right + right_slot, width)
    if order == ORDER_FIXED_BYTES:
        return memcmp(left + left_slot, right + right_slot, <size_t>width)
    if width == 8:
        return _sign(ordered_word[uint64_t](load64(left + left_slot), order),
                     ordered_word[uint64_t](load64(right + right_slot), order))
    if width == 4:
        return _sign(ordered_word[uint32_t](load32(left + left_slot), order),
                     ordered_word[uint32_t](load32(right + right_slot), order))
    if width == 2:
        return _sign(ordered_word[uint16_t](load16(left + left_slot), order),
                     ordered_word[uint16_t](load16(right + right_slot), order))
    return _sign(ordered_word[uint8_t](left[left_slot], order), ordered_word[uint8_t](right[right_slot], order))


cdef int _order_of(const KeyColumn* keys, int32_t count, const uint8_t* left, const uint8_t* right) noexcept nogil:
    """Compare the key columns of two rows of two schemas: ascending, nulls first."""
    cdef const KeyColumn* key
    cdef bint left_null, right_null
    cdef int32_t index
    cdef int order
    for index in range(count):
        key = &keys[index]
        left_null = row_is_null(left, key.left_column)
        right_null = row_is_null(right, key.right_column)
        if left_null or right_null:
            if left_null and right_null:
                continue
            return -1 if left_null else 1
        order = _compare_values(key.order, key.width, left, key.left_slot, right, key.right_slot)
        if order != 0:
            return order
    return 0


cdef int read_sort_key(RowCodec codec, object key, SortColumn* column) except -1:
    """See the .pxd."""
    cdef int32_t index = column_index(codec.schema, key.column)
    check_key_columns(codec.schema, [index])
    column[0] = SortColumn(order_of_kind(codec.kinds[index]), codec.widths[index], index, codec.slots[index],
                           key.descending, key.nulls_last)
    return 0


@cython.final
cdef class RowComparator:
    """The order of rows by sort keys.

    Args:
        codec: RowCodec of the rows.
        keys: SortKey, the first decides first.

    Raises:
        SchemaError: a column does not exist or cannot be a key.
    """

    def __cinit__(self, RowCodec codec not None, keys):
        cdef int32_t index
        self._codec = codec
        self.column_count = len(keys)
        self.keys = <SortColumn*>calloc(<size_t>self.column_count + 1, sizeof(SortColumn))
        if self.keys == NULL:
            raise MemoryError
        for index in range(self.column_count):
            read_sort_key(codec, keys[index], &self.keys[index])

    def __dealloc__(self):
        free(self.keys)

    cdef int compare(self, const uint8_t* left, const uint8_t* right) noexcept nogil:
        """Return < 0 when left comes first, > 0 when right does, 0 when the keys are equal."""
        cdef const SortColumn* key
        cdef bint left_null, right_null
        cdef int32_t index
        cdef int order
        for index in range(self.column_count):
            key = &self.keys[index]
            left_null = row_is_null(left, key.column)
            right_null = row_is_null(right, key.column)
            if left_null or right_null:
                if left_null and right_null:
                    continue
                return 1 if left_null == key.nulls_last else -1
            order = _compare_values(key.order, key.width, left, key.slot, right, key.slot)
            if order != 0:
                return -order if key.descending else order
        return 0
