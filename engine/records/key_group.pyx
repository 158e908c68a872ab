"""Flink's key groups: which group, and so which subtask, a key belongs to.

    key ──Java's hashCode──► 32 bits ──murmur──► >= 0 ──mod max parallelism──► key group ──► operator index
                                                                              group * parallelism / max parallelism

Hash codes are Java's: int itself; long high ^ low half; boolean 1231 or 1237; float and double of their bits (one
NaN); String over UTF-16 units, 31 * h + unit; byte arrays 31 * h + byte from 1; decimals as BigDecimal. Dates and
times are the int or long that Arrow holds; unsigned 32-bit numbers are longs; half floats are floats. -0.0 is taken
as 0.0 first (as a key it equals it; Java's Double tells them apart).
One key column: its hash code. Several: Arrays.hashCode of theirs, 31 * h + code from 1.

Invariants: a null key is refused: "Assigned key must not be null!". Same key, same group, in every process.
Source: Flink's KeyGroupRangeAssignment and MathUtils.murmurHash; vectors measured on Flink in the tests.
"""

cimport cython
import pyarrow as pa

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc

from engine.errors import DataError
from engine.records.arrow_batch cimport (
    ArrowBatch,
    ColumnView,
    KIND_BOOL,
    KIND_BYTES,
    KIND_FIXED_BYTES,
    KIND_FLOAT16,
    KIND_FLOAT32,
    KIND_FLOAT64,
    KIND_INT16,
    KIND_INT64,
    KIND_INT8,
    KIND_LARGE_BYTES,
    KIND_UINT16,
    KIND_UINT32,
    KIND_UINT64,
    KIND_UINT8,
    column_is_null,
)
from engine.records.byte_kernels cimport load16, load32, load64
from engine.records.hash_mix cimport word_of_double, word_of_float
from engine.records.key_types import check_key_columns
from engine.records.plain_types import plain_schema

#: bounds of the maximum parallelism in Flink
LOWER_BOUND_MAX_PARALLELISM = 128
UPPER_BOUND_MAX_PARALLELISM = 32768

# What a kind does not tell: > 0 is a decimal of so many bytes; TEXT is hashed by UTF-16 unit, other bytes by byte.
cdef int32_t TEXT = -1


cdef inline int32_t _long_code(uint64_t value) noexcept nogil:
    return <int32_t><uint32_t>(value ^ (value >> 32))


cdef inline uint32_t _half_to_float(uint16_t half) noexcept nogil:
    """Return the bits of the float of a half's value."""
    cdef uint32_t sign = <uint32_t>(half & 0x8000) << 16
    cdef uint32_t exponent = (half >> 10) & 0x1F
    cdef uint32_t fraction = half & 0x3FF
    if exponent == 0x1F:
        return sign | 0x7F800000U | fraction << 13
    if exponent == 0:
        if fraction == 0:
            return sign
        exponent = 113
        while fraction & 0x400 == 0:
            fraction <<= 1
            exponent -= 1
        return sign | exponent << 23 | (fraction & 0x3FF) << 13
    return sign | (exponent + 112) << 23 | fraction << 13


cdef int32_t _text_code(const uint8_t* text, int64_t size) noexcept nogil:
    """Java's String.hashCode of UTF-8: over UTF-16 units, those above the plane as two."""
    cdef uint32_t code = 0
    cdef uint32_t point, lead
    cdef int64_t position = 0
    while position < size:
        lead = text[position]
        if lead < 0x80:
            point = lead
            position += 1
        elif lead < 0xE0 and position + 1 < size:
            point = (lead & 0x1F) << 6 | (text[position + 1] & 0x3FU)
            position += 2
        elif lead < 0xF0 and position + 2 < size:
            point = (lead & 0x0F) << 12 | (text[position + 1] & 0x3FU) << 6 | (text[position + 2] & 0x3FU)
            position += 3
        elif position + 3 < size:
            point = ((lead & 0x07) << 18 | (text[position + 1] & 0x3FU) << 12 | (text[position + 2] & 0x3FU) << 6
                     | (text[position + 3] & 0x3FU))
            position += 4
        else:
            return <int32_t>code
        if point >= 0x10000:
            code = 31 * code + (0xD800U + ((point - 0x10000U) >> 10))
            point = 0xDC00U + ((point - 0x10000U) & 0x3FFU)
        code = 31 * code + point
    return <int32_t>code


cdef int32_t _array_code(const uint8_t* bytes, int64_t size) noexcept nogil:
    """Arrays.hashCode(byte[])."""
    cdef uint32_t code = 1
    cdef int64_t position
    for position in range(size):
        code = 31 * code + <uint32_t><int32_t><int8_t>bytes[position]
    return <int32_t>code


cdef int32_t _decimal_code(const uint8_t* value, int32_t width, int32_t scale) noexcept nogil:
    """BigDecimal.hashCode: that of the unscaled BigInteger (magnitude by 32 bits, times sign), 31 * it + scale."""
    cdef uint32_t[8] words
    cdef uint32_t code = 0
    cdef uint64_t carry
    cdef int32_t count = width // 4
    cdef int32_t index
    cdef bint negative = value[width - 1] >= 0x80
    carry = 1 if negative else 0
    for index in range(count):
        carry += <uint32_t>~load32(value + 4 * index) if negative else load32(value + 4 * index)
        words[index] = <uint32_t>carry
        carry >>= 32
    for index in range(count - 1, -1, -1):
        # Leading zero words leave the code at 0.
        code = 31 * code + words[index]
    if negative:
        code = 0U - code
    return <int32_t>(31 * code + <uint32_t>scale)


cdef inline const uint8_t* _variable(const ColumnView* column, int64_t position, int64_t* size) noexcept nogil:
    """Return bytes and size of a variable value."""
    cdef int64_t begin
    if column.kind == KIND_BYTES:
        begin = (<const int32_t*>column.offsets)[position]
        size[0] = (<const int32_t*>column.offsets)[position + 1] - begin
    else:
        begin = (<const int64_t*>column.offsets)[position]
        size[0] = (<const int64_t*>column.offsets)[position + 1] - begin
    return column.values + begin


cdef int32_t _code(const ColumnView* column, int64_t row, int32_t mark, int32_t scale) noexcept nogil:
    """Return Java's hash code of a value that is not null. mark: bytes of a decimal, TEXT, or 0."""
    cdef int64_t position = column.offset + row
    cdef const uint8_t* value
    cdef int64_t size
    cdef int32_t kind = column.kind
    if kind == KIND_BYTES or kind == KIND_LARGE_BYTES:
        value = _variable(column, position, &size)
        return _text_code(value, size) if mark == TEXT else _array_code(value, size)
    if kind == KIND_BOOL:
        return 1231 if (column.values[position >> 3] >> (position & 7)) & 1 else 1237
    value = column.values + position * column.width
    if mark > 0:
        return _decimal_code(value, mark, scale)
    if kind == KIND_INT64 or kind == KIND_UINT64:
        return _long_code(load64(value))
    if kind == KIND_INT8:
        return <int8_t>value[0]
    if kind == KIND_UINT8:
        return value[0]
    if kind == KIND_INT16:
        return <int16_t>load16(value)
    if kind == KIND_UINT16:
        return load16(value)
    if kind == KIND_FLOAT16:
        return <int32_t>word_of_float(_half_to_float(load16(value)))
    if kind == KIND_FLOAT32:
        return <int32_t>word_of_float(load32(value))
    if kind == KIND_FLOAT64:
        return _long_code(word_of_double(load64(value)))
    if kind == KIND_FIXED_BYTES:
        return _array_code(value, column.width)
    # int32; uint32 as a long has no high half.
    return <int32_t>load32(value)


@cython.final
cdef class KeyGroupAssigner:
    """Key groups of the rows of batches.

    Args:
        schema: pyarrow.Schema of the batches.
        columns: indexes of the key columns, at least one.
        max_parallelism: number of key groups, 1 <= max_parallelism <= 32768.

    Raises:
        SchemaError: a column cannot be a key.
        ValueError: no key column, or a maximum out of bounds.
    """

    def __cinit__(self, schema, columns, int32_t max_parallelism):
        cdef int32_t index
        schema = plain_schema(schema)
        check_key_columns(schema, columns)
        if not columns:
            raise ValueError("key groups need at least one key column")
        if not 1 <= max_parallelism <= UPPER_BOUND_MAX_PARALLELISM:
            raise ValueError(f"max parallelism {max_parallelism}: choose 1 to {UPPER_BOUND_MAX_PARALLELISM}")
        self.max_parallelism = max_parallelism
        self.column_count = len(columns)
        self._names = [schema.field(column).name for column in columns]
        self.columns = <int32_t*>calloc(<size_t>self.column_count * 3, sizeof(int32_t))
        if self.columns == NULL:
            raise MemoryError
        self._scales = self.columns + self.column_count
        self._marks = self._scales + self.column_count
        for index in range(self.column_count):
            self.columns[index] = columns[index]
            data_type = schema.field(columns[index]).type
            if pa.types.is_decimal(data_type):
                self._scales[index] = data_type.scale
                self._marks[index] = data_type.byte_width
            elif pa.types.is_string(data_type) or pa.types.is_large_string(data_type):
                self._marks[index] = TEXT

    def __dealloc__(self):
        free(self.columns)

    cdef void hash_codes(self, ArrowBatch batch, int64_t start, int64_t count, int32_t* codes) noexcept nogil:
        """Compute Java's hash codes."""
        cdef const ColumnView* column
        cdef int64_t row
        cdef int32_t index
        if self.column_count == 1:
            column = &batch.columns[self.columns[0]]
            for row in range(count):
                codes[row] = _code(column, start + row, self._marks[0], self._scales[0])
            return
        for row in range(count):
            codes[row] = 1
        for index in range(self.column_count):
            column = &batch.columns[self.columns[index]]
            for row in range(count):
                codes[row] = <int32_t>(31U * <uint32_t>codes[row] + <uint32_t>_code(
                    column, start + row, self._marks[index], self._scales[index]))

    cdef int64_t first_null(self, ArrowBatch batch, int64_t start, int64_t count) noexcept nogil:
        """Find a null key."""
        cdef const ColumnView* column
        cdef int64_t found = -1
        cdef int64_t row
        cdef int32_t index
        for index in range(self.column_count):
            column = &batch.columns[self.columns[index]]
            if column.null_count == 0:
                continue
            for row in range(start, start + count):
                if column_is_null(column, row):
                    if found < 0 or row < found:
                        found = row
                    break
        return found

    cdef int assign(self, ArrowBatch batch, int64_t start, int64_t count, int32_t* groups) except -1:
        """Compute key groups."""
        cdef int64_t row
        cdef int64_t null_row
        with nogil:
            null_row = self.first_null(batch, start, count)
            if null_row < 0:
                self.hash_codes(batch, start, count, groups)
                for row in range(count):
                    groups[row] = group_of_hash(groups[row], self.max_parallelism)
        if null_row >= 0:
            raise DataError(f"Assigned key must not be null! Key {', '.join(self._names)}, row {null_row} of a batch "
                            f"of {batch.row_count}; key_by refuses null keys: filter them out or give them a value")
        return 0

    def key_groups(self, batch):
        """Return the key group of each row of a pyarrow.RecordBatch, as a list of int."""
        cdef ArrowBatch opened = ArrowBatch.open(batch)
        cdef int64_t row
        cdef int32_t* groups = <int32_t*>malloc(<size_t>opened.row_count * sizeof(int32_t) + 1)
        if groups == NULL:
            raise MemoryError
        try:
            self.assign(opened, 0, opened.row_count, groups)
            return [groups[row] for row in range(opened.row_count)]
        finally:
            free(groups)

    def java_hash_codes(self, batch):
        """Return Java's hash code of the key of each row of a pyarrow.RecordBatch without null keys."""
        cdef ArrowBatch opened = ArrowBatch.open(batch)
        cdef int64_t row
        cdef int32_t* codes = <int32_t*>malloc(<size_t>opened.row_count * sizeof(int32_t) + 1)
        if codes == NULL:
            raise MemoryError
        try:
            self.assign(opened, 0, opened.row_count, codes)
            self.hash_codes(opened, 0, opened.row_count, codes)
            return [codes[row] for row in range(opened.row_count)]
        finally:
            free(codes)


def murmur_hash(int32_t code):
    """Return MathUtils.murmurHash of a hash code, >= 0."""
    return murmur(code)


def key_group(int32_t hash_code, int32_t max_parallelism):
    """Return the key group of Java's hash code of a key, 0 <= group < max_parallelism."""
    return group_of_hash(hash_code, max_parallelism)


def operator_index(int32_t key_group, int32_t max_parallelism, int32_t parallelism):
    """Return the subtask that owns a key group, 0 <= index < parallelism."""
    return operator_of_group(key_group, max_parallelism, parallelism)


def key_group_range(int32_t max_parallelism, int32_t parallelism, int32_t index):
    """Return (first, last) key group of a subtask; last is included, and below first when there is none."""
    first = (index * max_parallelism + parallelism - 1) // parallelism
    return first, ((index + 1) * max_parallelism - 1) // parallelism


def default_max_parallelism(int32_t parallelism):
    """Return Flink's default: the next power of two of parallelism * 1.5, within 128 and 32768."""
    wanted = parallelism + parallelism // 2
    power = 1 << (wanted - 1).bit_length() if wanted > 1 else 1
    return min(max(power, LOWER_BOUND_MAX_PARALLELISM), UPPER_BOUND_MAX_PARALLELISM)
