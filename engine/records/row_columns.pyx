"""Columns of rows of one shape, set in a batch that is being built.

    allocate  Arrow buffers of the known sizes (GIL)
    gather    in chunks of 512 rows (no GIL): sizes sound? which columns have a null at all? then column by column:
              fixed values, validity, ends of variable values
    allocate  buffers for the bytes of variable values (GIL)
    copy      in chunks again: the bytes (no GIL)
    nested    columns one by one through builders

A chunk of rows stays in the cache while its columns are read; rows that lie anywhere in memory, as those that a join
finds, come to the cache once. Validity is written from the first chunk on that has a null; a column without nulls gets
none. A missing row (NULL) is replaced by a row of nulls beforehand, so no loop asks.

Invariants: see column_reader. Limits: below 2 GiB behind 32-bit offsets, more is a DataError.

Held by: tests/records/test_row_codec.py
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from engine.errors import CorruptBlockError, DataError
from engine.memory.status cimport STATUS_CORRUPT, STATUS_END, STATUS_FULL, STATUS_OK
from engine.records.arrow_batch cimport (
    KIND_BOOL,
    KIND_BYTES,
    KIND_LARGE_BYTES,
    KIND_NULL,
)
from engine.records.batch_builder cimport BatchBuilder, padded
from engine.records.batch_decoder cimport RowShape
from engine.records.byte_kernels cimport load64
from engine.records.column_reader cimport (
    read_bools,
    read_bytes,
    read_fixed,
    read_offsets,
    read_validity,
    scan_rows,
)
from engine.records.outside_values cimport OUTSIDE_BIT, read_outside, true_length
from engine.records.nested_reader cimport Builder, append_null, append_value, build_array, free_builder, new_builder

cdef int64_t CHUNK_ROWS = 512


# One column on its way; the pointers lead into Arrow buffers that the caller holds.
cdef struct Output:
    int32_t column             # index in the rows
    int32_t place              # in the batch
    int32_t kind
    int32_t width              # of the slot
    int32_t slot
    uint8_t* validity          # NULL: it has none
    uint8_t* values
    uint8_t* offsets
    uint8_t* end               # behind the variable values that are still to be copied
    int64_t total              # bytes of variable values
    int64_t null_count
    bint outside               # some values are references
    bint has_nulls             # a row so far: validity is written


cdef int _raise_status(int status) except -1:
    if status == STATUS_FULL:
        raise MemoryError("no memory for the values of nested columns")
    if status != STATUS_OK:
        raise CorruptBlockError("a row is damaged: a size or an offset in it leads outside the row")
    return 0


cdef bint _any_missing(uint8_t** rows, int64_t count) noexcept nogil:
    cdef int64_t found = 0
    cdef int64_t row
    for row in range(count):
        found += rows[row] == NULL
    return found > 0


cdef uint8_t** _without_missing(uint8_t** rows, int64_t count, uint8_t* null_row) except NULL:
    """Return a copy of rows with null_row in place of NULL; give it back with free()."""
    cdef uint8_t** present = <uint8_t**>malloc(<size_t>count * sizeof(uint8_t*))
    cdef int64_t row
    if present == NULL:
        raise MemoryError
    for row in range(count):
        present[row] = null_row if rows[row] == NULL else rows[row]
    return present


cdef inline bint _has_validity(const Output* output) noexcept nogil:
    return output.kind != KIND_NULL and output.kind <= KIND_LARGE_BYTES


cdef int64_t _fixed_size(const Output* output, int64_t count) noexcept nogil:
    """Return the number of bytes that are known before the rows are read: of values, or of offsets."""
    if output.kind == KIND_BOOL:
        return (count + 7) >> 3
    if output.kind == KIND_BYTES:
        return (count + 1) * 4
    if output.kind == KIND_LARGE_BYTES:
        return (count + 1) * 8
    return count * output.width if output.kind < KIND_BYTES and output.kind != KIND_NULL else 0


cdef int _allocate_fixed(BatchBuilder builder, Output* outputs, int32_t output_count, int64_t count) except -1:
    """Allocate what can be before the rows are read, for all columns at once."""
    cdef int64_t bits_size = padded((count + 7) >> 3)
    cdef int64_t total = 0
    cdef Output* output
    cdef uint8_t* memory
    cdef int64_t size
    cdef int32_t index
    for index in range(output_count):
        total += padded(_fixed_size(&outputs[index], count)) + (bits_size if _has_validity(&outputs[index]) else 0)
    memory = builder.allocate(total)
    for index in range(output_count):
        output = &outputs[index]
        if _has_validity(output):
            output.validity = memory
            memory += bits_size
        size = padded(_fixed_size(output, count))
        if output.kind == KIND_BYTES or output.kind == KIND_LARGE_BYTES:
            output.offsets = memory
            memset(memory, 0, 8)
        elif output.kind < KIND_BYTES and output.kind != KIND_NULL:
            output.values = memory
        memory += size
    return 0


cdef void _set_bits(uint8_t* target, int64_t count) noexcept nogil:
    memset(target, 0xFF, count >> 3)
    if count & 7:
        target[count >> 3] = <uint8_t>((1 << (count & 7)) - 1)


cdef int _gather_chunk(Output* output, uint8_t** rows, int64_t begin, int64_t count, bint has_nulls) noexcept nogil:
    """Read one column of a chunk of rows that begins at row begin (a multiple of 8) of the batch."""
    cdef bint large = output.kind == KIND_LARGE_BYTES
    if output.validity != NULL and has_nulls:
        if not output.has_nulls:
            _set_bits(output.validity, begin)
        output.has_nulls = True
        output.null_count += read_validity(rows, count, output.column, output.validity + (begin >> 3))
    elif output.has_nulls:
        _set_bits(output.validity + (begin >> 3), count)
    if output.kind == KIND_BOOL:
        read_bools(rows, count, output.slot, output.values + (begin >> 3))
    elif output.offsets != NULL:
        return read_offsets(rows, count, output.slot, large, output.offsets + (begin + 1) * (8 if large else 4),
                            &output.total)
    elif output.values != NULL:
        read_fixed(rows, count, output.slot, output.width, output.values + begin * output.width)
    return STATUS_OK


cdef int _gather(const RowShape* shape, Output* outputs, int32_t output_count, uint8_t** rows, int64_t count,
                 uint8_t* nulls) noexcept nogil:
    """Read all columns; STATUS_CORRUPT where a row is damaged, STATUS_END where values lie outside, or it looks so."""
    cdef int64_t begin = 0
    cdef int64_t chunk
    cdef int32_t index, column
    cdef int status = STATUS_OK
    while begin < count:
        chunk = min(CHUNK_ROWS, count - begin)
        memset(nulls, 0, <size_t>shape.null_bytes)
        if scan_rows(rows + begin, chunk, count - begin, shape.fixed_size, shape.null_bytes, nulls) != STATUS_OK:
            return STATUS_CORRUPT
        for index in range(output_count):
            column = outputs[index].column
            if _gather_chunk(&outputs[index], rows + begin, begin, chunk,
                             (nulls[column >> 3] >> (column & 7)) & 1) != STATUS_OK:
                status = STATUS_END
        begin += chunk
    return status


cdef void _copy(Output* outputs, int32_t output_count, uint8_t** rows, int64_t count) noexcept nogil:
    """Concatenate the bytes of variable values, from the last chunk to the first; ends move along."""
    cdef int64_t begin = (count - 1) // CHUNK_ROWS * CHUNK_ROWS
    cdef int64_t end = count
    cdef Output* output
    cdef int32_t index
    while begin >= 0 and end > 0:
        for index in range(output_count):
            output = &outputs[index]
            if output.offsets != NULL and not output.outside:
                output.end = read_bytes(rows + begin, end - begin, output.slot, output.values, output.end)
        end = begin
        begin -= CHUNK_ROWS


cdef int _resolve(Output* output, uint8_t** rows, int64_t count) noexcept nogil:
    """Read the ends of variable values once more, some of which may be references."""
    cdef int64_t row, length
    cdef uint64_t word
    cdef bint large = output.kind == KIND_LARGE_BYTES
    output.total = 0
    for row in range(count):
        word = load64(rows[row] + output.slot)
        length = true_length(rows[row], word)
        if length < 0:
            return STATUS_CORRUPT
        if word & OUTSIDE_BIT:
            output.outside = True
        output.total += length
        if large:
            (<int64_t*>output.offsets)[row + 1] = output.total
        else:
            (<int32_t*>output.offsets)[row + 1] = <int32_t>output.total
    return STATUS_OK


cdef int _resolve_all(Output* outputs, int32_t output_count, uint8_t** rows, int64_t count) noexcept nogil:
    cdef int32_t index
    for index in range(output_count):
        if outputs[index].offsets != NULL and _resolve(&outputs[index], rows, count) != STATUS_OK:
            return STATUS_CORRUPT
    return STATUS_OK


cdef int _read_resolved(Output* output, uint8_t** rows, int64_t count) except -1:
    """Fill the bytes of a column that has references, reading the values behind them to their places."""
    cdef uint8_t* target = output.values
    cdef const uint8_t* value
    cdef int64_t row, length
    cdef uint64_t word
    for row in range(count):
        word = load64(rows[row] + output.slot)
        length = true_length(rows[row], word)
        value = rows[row] + (word & 0xFFFFFFFFU)
        if word & OUTSIDE_BIT:
            read_outside(value, target)
        elif length:
            memcpy(target, value, <size_t>length)
        target += length
    return 0


cdef int _append_outside(uint8_t* row, int32_t slot, Builder* builder) except -1:
    """Append a nested value whose body lies outside."""
    cdef uint64_t word = load64(row + slot)
    cdef int64_t length = true_length(row, word)
    cdef uint8_t* body
    _raise_status(STATUS_CORRUPT if length < 0 else STATUS_OK)
    body = <uint8_t*>malloc(<size_t>length + 1)
    if body == NULL:
        raise MemoryError(f"no memory for a nested value of {length} bytes")
    try:
        read_outside(row + (word & 0xFFFFFFFFU), body)
        with nogil:
            status = append_value(builder, body, <uint64_t>length)
        _raise_status(status)
    finally:
        free(body)
    return 0


cdef int _read_nested(const RowShape* shape, int32_t column, uint8_t** rows, int64_t count, int64_t* position,
                      Builder* builder) noexcept nogil:
    """Append values from position on; STATUS_END at one that lies outside, which position then is."""
    cdef int32_t slot = shape.slots[column]
    cdef int64_t row
    cdef uint64_t value, length
    cdef int status = STATUS_OK
    for row in range(position[0], count):
        position[0] = row
        if (rows[row][4 + (column >> 3)] >> (column & 7)) & 1:
            status = append_null(builder)
        else:
            value = load64(rows[row] + slot)
            if value & OUTSIDE_BIT:
                return STATUS_END
            length = value >> 32
            value &= 0xFFFFFFFFU
            if value + length > <uint64_t>((<const uint32_t*>rows[row])[0]):
                return STATUS_CORRUPT
            status = append_value(builder, rows[row] + value, length)
        if status != STATUS_OK:
            return status
    return STATUS_OK


cdef object _nested_array(const RowShape* shape, object field, int32_t column, uint8_t** rows, int64_t count):
    """Return a nested column as an array."""
    cdef Builder* builder = new_builder(&shape.types[column])
    cdef int status
    cdef int64_t position = 0
    if builder == NULL:
        raise MemoryError
    try:
        with nogil:
            status = _read_nested(shape, column, rows, count, &position, builder)
        while status == STATUS_END:
            _append_outside(rows[position], shape.slots[column], builder)
            position += 1
            with nogil:
                status = _read_nested(shape, column, rows, count, &position, builder)
        _raise_status(status)
        return build_array(builder, field.type, f"column '{field.name}'")
    finally:
        free_builder(builder)


cdef int _decode(const RowShape* shape, object schema, uint8_t** rows, int64_t count, Output* outputs,
                 int32_t output_count, uint8_t* nulls, BatchBuilder builder) except -1:
    """Allocate, gather, allocate, copy, assemble; rows has no NULL, outputs know their columns and places."""
    cdef Output* output
    cdef int32_t index
    cdef int status
    _allocate_fixed(builder, outputs, output_count, count)
    with nogil:
        status = _gather(shape, outputs, output_count, rows, count, nulls)
        if status == STATUS_END:            # to ordinary rows, references look damaged
            status = _resolve_all(outputs, output_count, rows, count)
    _raise_status(status)
    if _allocate_values(builder, schema, outputs, output_count, count):
        with nogil:
            _copy(outputs, output_count, rows, count)
    for index in range(output_count):
        if outputs[index].outside:
            _read_resolved(&outputs[index], rows, count)
    for index in range(output_count):
        output = &outputs[index]
        if output.kind > KIND_LARGE_BYTES:
            builder.set_array(output.place, _nested_array(shape, schema.field(index), output.column, rows, count))
        elif output.kind == KIND_NULL:
            builder.set_values(output.place, count, NULL, NULL, NULL)
        else:
            builder.set_values(output.place, output.null_count, output.validity, output.offsets, output.values)
    return 0


cdef bint _allocate_values(BatchBuilder builder, object schema, Output* outputs, int32_t output_count,
                           int64_t count) except -1:
    """Allocate the bytes of variable values; whether there are such columns."""
    cdef bint has_some = False
    cdef Output* output
    cdef int32_t index
    for index in range(output_count):
        output = &outputs[index]
        if output.offsets == NULL:
            continue
        if output.kind == KIND_BYTES and output.total > 0x7FFFFFFF:
            raise DataError(f"column '{schema.field(index).name}': {count} rows have {output.total} bytes of values, a "
                            "batch holds 2147483647; use smaller batches, or the large form of the type")
        has_some = True
        output.values = builder.allocate(output.total)
        output.end = output.values + output.total
    return has_some


cdef int decode_into(const RowShape* shape, object schema, uint8_t** rows, int64_t count, const int32_t* columns,
                     int32_t column_count, BatchBuilder builder, const int32_t* places) except -1:
    """Set the chosen columns of count rows in a batch that has as many."""
    cdef uint8_t* nulls = <uint8_t*>calloc(<size_t>shape.null_bytes + 4, 1)
    cdef Output* outputs = <Output*>calloc(<size_t>column_count + 1, sizeof(Output))
    cdef uint8_t** present = NULL
    cdef int32_t index, column
    try:
        if nulls == NULL or outputs == NULL:
            raise MemoryError
        if _any_missing(rows, count):
            present = _without_missing(rows, count, shape.null_row)
        for index in range(column_count):
            column = columns[index] if columns != NULL else index
            outputs[index].column = column
            outputs[index].place = places[index] if places != NULL else index
            outputs[index].kind = shape.types[column].kind
            outputs[index].width = shape.widths[column]
            outputs[index].slot = shape.slots[column]
        return _decode(shape, schema, rows if present == NULL else present, count, outputs, column_count, nulls,
                       builder)
    finally:
        free(nulls)
        free(outputs)
        free(present)


cdef object decode_rows(const RowShape* shape, object schema, uint8_t** rows, int64_t count, const int32_t* columns,
                        int32_t column_count):
    """Return the chosen columns of count rows as a record batch."""
    cdef BatchBuilder builder = BatchBuilder.begin(schema, count)
    decode_into(shape, schema, rows, count, columns, column_count, builder, NULL)
    return builder.build()
