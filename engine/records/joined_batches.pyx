"""Rows of several batches as one batch: what Arrow's ``concat_batches`` does, without its allocator and the GIL.

    joined_batches(batches) -> batch        one behind the other; batches have one schema

    values    memcpy ─────────────────┐
    bits      shifted to their place  ├─► one block of memory, a batch in one call (``batch_builder``)
    texts     offsets + where they go ┘

Values of fixed width, bools and texts are copied here, and codes of dictionaries that lie in the same memory. Columns
of other types, and codes of others, go through Arrow's ``concat``.

Held by: tests/records/test_joined_batches.py
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

import pyarrow as pa

from engine.records.arrow_c_data cimport ArrowArray
from engine.records.batch_builder cimport BatchBuilder, padded
from engine.records.bit_kernels cimport append_bits
from engine.records.byte_kernels cimport bits_from, count_ones
from engine.records.kept_rows cimport IS_BOOL, IS_LARGE_TEXT, IS_TEXT, KeptColumn, read_column
from engine.records.opened_batch cimport OpenedBatch, opened_batch, schema_of

cdef int64_t OFFSET_MAX = 2 ** 31 - 1


# A column of all batches.
cdef struct JoinedColumn:
    KeptColumn* parts           # of each batch
    int64_t stride              # from one to the next
    int32_t count
    int32_t kind                # as of its parts; 0: it is not copied here
    bint has_nulls
    int64_t text_bytes
    uint8_t* validity           # where they are copied to
    uint8_t* values
    uint8_t* texts
    int64_t null_count


cdef int64_t text_end(const KeptColumn* part, int64_t row) noexcept nogil:
    """The place at which the texts before a row end."""
    if part.kind == IS_TEXT:
        return (<const int32_t*>part.values)[row]
    return (<const int64_t*>part.values)[row]


cdef void append_rows(uint64_t* target, int64_t at, const uint8_t* bits, int64_t first, int64_t rows) noexcept nogil:
    """Write the bits of rows behind those before ``at``; NULL: ones. Bits from there on are 0."""
    cdef int64_t row, count
    cdef uint64_t word
    for row in range(0, rows, 64):
        count = min(<int64_t>64, rows - row)
        word = ~<uint64_t>0 if bits == NULL else bits_from(bits, first + row, count)
        append_bits(target, at + row, &word, count)


cdef void copy_offsets(const KeptColumn* part, int64_t rows, int64_t base, uint8_t* target) noexcept nogil:
    """Write the ends of texts, which begin at ``base``."""
    cdef int64_t row
    cdef int64_t shift = base - text_end(part, 0)
    if part.kind == IS_TEXT:
        for row in range(rows):
            (<int32_t*>target)[row] = <int32_t>((<const int32_t*>part.values)[row + 1] + shift)
    else:
        for row in range(rows):
            (<int64_t*>target)[row] = (<const int64_t*>part.values)[row + 1] + shift


cdef int64_t size_of(JoinedColumn* column, int64_t rows) noexcept nogil:
    """Bytes of a column's values, without its nulls."""
    if column.kind == IS_BOOL:
        return padded((rows + 63) // 64 * 8)
    if column.kind == IS_TEXT:
        return padded((rows + 1) * 4) + padded(column.text_bytes + 1)
    if column.kind == IS_LARGE_TEXT:
        return padded((rows + 1) * 8) + padded(column.text_bytes + 1)
    return padded(rows * column.kind + 1)


cdef int64_t copy_validity(JoinedColumn* column, const int64_t* rows, int64_t row_count,
                           uint64_t* target) noexcept nogil:
    """Write which rows have a value; returns how many have none."""
    cdef int64_t at = 0, ones = 0, word
    cdef int32_t index
    cdef const KeptColumn* part
    memset(target, 0, <size_t>((row_count + 63) // 64 * 8))
    for index in range(column.count):
        part = &column.parts[index * column.stride]
        append_rows(target, at, part.validity, part.offset, rows[index])
        at += rows[index]
    for word in range((row_count + 63) // 64):
        ones += count_ones(target[word])
    return row_count - ones


cdef void copy_values(JoinedColumn* column, const int64_t* rows, int64_t row_count, uint8_t* target,
                      uint8_t* texts) noexcept nogil:
    """Write the values of all batches; of texts the offsets, and their bytes at ``texts``."""
    cdef int64_t at = 0, base = 0, begin, size
    cdef int64_t offset_bytes = 4 if column.kind == IS_TEXT else 8
    cdef int32_t index
    cdef const KeptColumn* part
    if column.kind == IS_BOOL:
        memset(target, 0, <size_t>((row_count + 63) // 64 * 8))
    elif column.kind < 0:
        memset(target, 0, <size_t>offset_bytes)
    for index in range(column.count):
        part = &column.parts[index * column.stride]
        if column.kind == IS_BOOL:
            append_rows(<uint64_t*>target, at, part.values, part.offset, rows[index])
        elif column.kind > 0:
            memcpy(target + at * column.kind, part.values, <size_t>(rows[index] * column.kind))
        elif rows[index]:
            begin = text_end(part, 0)
            size = text_end(part, rows[index]) - begin
            copy_offsets(part, rows[index], base, target + (at + 1) * offset_bytes)
            if size:
                memcpy(texts + base, part.texts + begin, <size_t>size)
            base += size
        at += rows[index]


cdef bint are_alike(const ArrowArray* left, const ArrowArray* right) noexcept nogil:
    """Whether two dictionaries lie in the same memory."""
    cdef int64_t index
    if left == NULL or right == NULL:
        return left == right
    if left.length != right.length or left.offset != right.offset or left.n_buffers != right.n_buffers or (
            left.n_children or right.n_children):
        return False
    for index in range(left.n_buffers):
        if left.buffers[index] != right.buffers[index]:
            return False
    return True


cdef int settle(JoinedColumn* column, list opened, int32_t place, const int64_t* rows, object schema) except -1:
    """Find where the parts of a column lie, and whether they are copied here."""
    cdef OpenedBatch batch
    cdef OpenedBatch first = opened[0]
    cdef KeptColumn* part
    cdef int32_t index
    for index, batch in enumerate(opened):
        part = &column.parts[index * column.stride]
        read_column(part, batch.types.children[place], batch.array.children[place], batch.array.offset)
        if index == 0:
            column.kind = part.kind
        if part.kind != column.kind or not are_alike(
                batch.array.children[place].dictionary, first.array.children[place].dictionary) or (
                part.is_renamed and isinstance(schema.field(place).type, pa.BaseExtensionType)):
            column.kind = 0
            return 0
        column.has_nulls |= part.validity != NULL
        if (part.kind == IS_TEXT or part.kind == IS_LARGE_TEXT) and rows[index]:
            column.text_bytes += text_end(part, rows[index]) - text_end(part, 0)
    if column.kind == IS_TEXT and column.text_bytes > OFFSET_MAX:
        column.kind = 0
    return 0


cdef uint8_t* copy_column(JoinedColumn* column, const int64_t* rows, int64_t row_count, uint8_t* target) noexcept nogil:
    """Copy a column; returns where the next one begins."""
    cdef int64_t bit_bytes = padded((row_count + 63) // 64 * 8)
    if column.has_nulls:
        column.validity = target
        column.null_count = copy_validity(column, rows, row_count, <uint64_t*>target)
        target += bit_bytes
    column.values = target
    if column.kind == IS_TEXT or column.kind == IS_LARGE_TEXT:
        column.texts = target + padded((row_count + 1) * (4 if column.kind == IS_TEXT else 8))
    copy_values(column, rows, row_count, target, column.texts)
    return target + size_of(column, row_count)


cdef int join_into(BatchBuilder builder, object schema, JoinedColumn* columns, int32_t width, list batches,
                   const int64_t* rows, int64_t row_count) except -1:
    """Set all columns of a batch."""
    cdef list opened = [opened_batch(batch) for batch in batches]
    cdef int64_t size = 0
    cdef int32_t index
    cdef JoinedColumn* column
    cdef uint8_t* target
    for index in range(width):
        column = &columns[index]
        settle(column, opened, index, rows, schema)
        if column.kind:
            size += size_of(column, row_count)
            size += padded((row_count + 63) // 64 * 8) if column.has_nulls else 0
    target = builder.allocate(size)
    with nogil:
        for index in range(width):
            if columns[index].kind:
                target = copy_column(&columns[index], rows, row_count, target)
    for index in range(width):
        column = &columns[index]
        if not column.kind:
            builder.set_array(index, pa.concat_arrays([batch.column(index) for batch in batches]))
            continue
        builder.set_values(index, column.null_count, column.validity, column.values if column.texts != NULL else NULL,
                           column.texts if column.texts != NULL else column.values)
        if column.parts[0].is_coded:
            builder.set_dictionary(index, (<OpenedBatch>opened[0]).dictionary(index))
    return 0


def joined_batches(list batches not None):
    """Return the rows of batches of one schema as one batch, in their order. Raises: as ``pa.concat_batches`` does."""
    cdef int32_t count = <int32_t>len(batches)
    cdef int32_t width, index
    cdef int64_t row_count = 0
    cdef int64_t* rows = NULL
    cdef KeptColumn* parts = NULL
    cdef JoinedColumn* columns = NULL
    cdef BatchBuilder builder
    schema = schema_of(batches[0])
    width = <int32_t>len(schema)
    if width == 0 or count == 1:
        return batches[0] if count == 1 else pa.concat_batches(batches)
    rows = <int64_t*>calloc(<size_t>count, sizeof(int64_t))
    parts = <KeptColumn*>calloc(<size_t>count * <size_t>width, sizeof(KeptColumn))
    columns = <JoinedColumn*>calloc(<size_t>width, sizeof(JoinedColumn))
    try:
        if rows == NULL or parts == NULL or columns == NULL:
            raise MemoryError("rows of several batches")
        for index, batch in enumerate(batches):
            rows[index] = batch.num_rows
            row_count += rows[index]
        for index in range(width):
            columns[index].parts, columns[index].stride, columns[index].count = parts + index, width, count
        builder = BatchBuilder.begin(schema, row_count)
        join_into(builder, schema, columns, width, batches, rows, row_count)
        return builder.build_like(batches[0])
    finally:
        free(rows)
        free(parts)
        free(columns)
