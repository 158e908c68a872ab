"""Nested values read back from rows. The format is that of ``layout.py``.

    builder = new_builder(type)   append_null / append_value per row   build_array(...)   free_builder

Every level of the type has a builder with growing memory; build_array copies each into one Arrow buffer.

Invariants: nothing is believed. Before a count is used, the bytes it promises are there (each level begins with null
bits, so no count can ask for more memory than eight times the bytes of its row); a body that is not used up exactly
is corrupt. Strings are UTF-8 or an error. Limits: values of one batch behind 32-bit offsets together below 2 GiB.

Held by: tests/records/test_row_codec.py
Held by: tests/property/test_damaged_bytes.py
"""

import pyarrow as pa

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy, memset

from engine.errors import CorruptBlockError, DataError
from engine.memory.status cimport STATUS_CORRUPT, STATUS_FULL, STATUS_OK
from engine.records.arrow_batch cimport (
    KIND_BOOL,
    KIND_BYTES,
    KIND_FIXED_LIST,
    KIND_LARGE_BYTES,
    KIND_LARGE_LIST,
    KIND_NULL,
    KIND_STRUCT,
    TypeNode,
)
from engine.records.byte_kernels cimport load32
from engine.records.utf8 cimport are_utf8

cdef int64_t COUNT_MAX = <int64_t>1 << 40


cdef int _fill_builder(Builder* builder, const TypeNode* node) noexcept nogil:
    cdef int32_t index
    builder.kind = node.kind
    builder.width = node.width
    if node.child_count == 0:
        return STATUS_OK
    builder.children = <Builder*>calloc(<size_t>node.child_count, sizeof(Builder))
    if builder.children == NULL:
        return STATUS_FULL
    builder.child_count = node.child_count
    for index in range(node.child_count):
        if _fill_builder(&builder.children[index], &node.children[index]) != STATUS_OK:
            return STATUS_FULL
    return STATUS_OK


cdef Builder* new_builder(const TypeNode* node) noexcept nogil:
    """Return an empty builder for a type."""
    cdef Builder* builder = <Builder*>calloc(1, sizeof(Builder))
    if builder != NULL and _fill_builder(builder, node) != STATUS_OK:
        free_builder(builder)
        return NULL
    return builder


cdef void _free_parts(Builder* builder) noexcept nogil:
    cdef int32_t index
    for index in range(builder.child_count):
        _free_parts(&builder.children[index])
    free(builder.nulls.bytes)
    free(builder.values.bytes)
    free(builder.ends.bytes)
    free(builder.children)


cdef void free_builder(Builder* builder) noexcept nogil:
    """Free a builder and all below it; NULL is fine."""
    if builder != NULL:
        _free_parts(builder)
        free(builder)


cdef int _reserve(Block* block, int64_t size) noexcept nogil:
    """Make room for size bytes altogether; new bytes are zero."""
    cdef int64_t capacity = block.capacity
    cdef uint8_t* grown
    if size <= capacity:
        return STATUS_OK
    capacity = max(size, capacity * 2, 64)
    grown = <uint8_t*>realloc(block.bytes, <size_t>capacity)
    if grown == NULL:
        return STATUS_FULL
    memset(grown + block.capacity, 0, <size_t>(capacity - block.capacity))
    block.bytes = grown
    block.capacity = capacity
    return STATUS_OK


cdef int _append_bytes(Block* block, const uint8_t* bytes, int64_t size) noexcept nogil:
    if _reserve(block, block.size + size) != STATUS_OK:
        return STATUS_FULL
    if size:
        memcpy(block.bytes + block.size, bytes, <size_t>size)
    block.size += size
    return STATUS_OK


cdef int _append_zeros(Block* block, int64_t size) noexcept nogil:
    if _reserve(block, block.size + size) != STATUS_OK:
        return STATUS_FULL
    block.size += size
    return STATUS_OK


cdef int _append_bits(Block* block, int64_t position, const uint8_t* bits, int64_t count,
                      int64_t* ones) noexcept nogil:
    """Append count bits behind position bits; ones counts those that are 1."""
    cdef int64_t index
    cdef uint32_t bit
    if _reserve(block, (position + count + 7) >> 3) != STATUS_OK:
        return STATUS_FULL
    for index in range(count):
        bit = (bits[index >> 3] >> (index & 7)) & 1
        block.bytes[position >> 3] |= <uint8_t>(bit << (position & 7))
        ones[0] += bit
        position += 1
    block.size = (position + 7) >> 3
    return STATUS_OK


cdef int _append_end(Builder* builder, int64_t length) noexcept nogil:
    """Append the end of a value of length bytes or elements."""
    cdef int64_t* ends
    if _reserve(&builder.ends, builder.ends.size + 8) != STATUS_OK:
        return STATUS_FULL
    ends = <int64_t*>builder.ends.bytes
    if builder.count:
        length += ends[builder.count - 1]
    ends[builder.count] = length
    builder.ends.size += 8
    return STATUS_OK


cdef int _append_nulls(Builder* builder, int64_t count) noexcept nogil:
    """Append count nulls, and what keeps the children in step."""
    cdef int64_t index
    cdef int32_t child
    cdef int status = _reserve(&builder.nulls, (builder.count + count + 7) >> 3)
    if builder.kind == KIND_STRUCT:
        for child in range(builder.child_count):
            if status == STATUS_OK:
                status = _append_nulls(&builder.children[child], count)
    elif builder.kind == KIND_FIXED_LIST and status == STATUS_OK:
        status = _append_nulls(builder.children, count * builder.width)
    elif builder.kind == KIND_BOOL and status == STATUS_OK:
        status = _reserve(&builder.values, (builder.count + count + 7) >> 3)
        builder.values.size = (builder.count + count + 7) >> 3
    elif builder.kind < KIND_BYTES and status == STATUS_OK:
        status = _append_zeros(&builder.values, count * builder.width)
    if status != STATUS_OK:
        return status
    for index in range(count):
        if KIND_BYTES <= builder.kind <= KIND_LARGE_LIST and _append_end(builder, 0) != STATUS_OK:
            return STATUS_FULL
        builder.nulls.bytes[builder.count >> 3] |= <uint8_t>(1 << (builder.count & 7))
        builder.count += 1
    builder.null_count += count
    return STATUS_OK


cdef int append_null(Builder* builder) noexcept nogil:
    """Append one null."""
    return _append_nulls(builder, 1)


cdef int _read_lengths(Builder* builder, int64_t count, const uint8_t** cursor, const uint8_t* end,
                       int64_t* total) noexcept nogil:
    """Read count lengths, append the ends; total is their sum."""
    cdef int64_t index
    cdef uint32_t length
    cdef int64_t known = builder.count
    if (end - cursor[0]) // 4 < count:
        return STATUS_CORRUPT
    for index in range(count):
        length = load32(cursor[0])
        cursor[0] += 4
        total[0] += length
        if _append_end(builder, length) != STATUS_OK:
            return STATUS_FULL
        builder.count += 1
    # _append_end goes by count, which the null bits of this sequence are counted by as well.
    builder.count = known
    return STATUS_OK


cdef int _read_body(Builder* builder, int64_t count, const uint8_t** cursor, const uint8_t* end) noexcept nogil:
    """Append count values from a body; moves cursor behind it. The builder's count stays."""
    cdef int64_t size, ones = 0, total = 0
    cdef int32_t index
    cdef int status
    if builder.kind == KIND_NULL:
        return STATUS_OK
    if builder.kind == KIND_BOOL:
        size = (count + 7) >> 3
        if end - cursor[0] < size:
            return STATUS_CORRUPT
        status = _append_bits(&builder.values, builder.count, cursor[0], count, &ones)
        cursor[0] += size
        return status
    if builder.kind == KIND_STRUCT:
        for index in range(builder.child_count):
            status = _read_sequence(&builder.children[index], count, cursor, end)
            if status != STATUS_OK:
                return status
        return STATUS_OK
    if builder.kind == KIND_FIXED_LIST:
        if builder.width > 0 and count > COUNT_MAX // builder.width:
            return STATUS_CORRUPT
        return _read_sequence(builder.children, count * builder.width, cursor, end)
    if builder.kind < KIND_BYTES:
        if builder.width > 0 and count > (end - cursor[0]) // builder.width:
            return STATUS_CORRUPT
        size = count * builder.width
        status = _append_bytes(&builder.values, cursor[0], size)
        cursor[0] += size
        return status
    status = _read_lengths(builder, count, cursor, end, &total)
    if status != STATUS_OK:
        return status
    if builder.kind > KIND_LARGE_BYTES:
        return _read_sequence(builder.children, total, cursor, end)
    if end - cursor[0] < total:
        return STATUS_CORRUPT
    status = _append_bytes(&builder.values, cursor[0], total)
    cursor[0] += total
    return status


cdef int _read_sequence(Builder* builder, int64_t count, const uint8_t** cursor, const uint8_t* end) noexcept nogil:
    """Append count values with their null bits."""
    cdef const uint8_t* nulls = cursor[0]
    cdef int status
    if count > COUNT_MAX or end - nulls < (count + 7) >> 3:
        return STATUS_CORRUPT
    cursor[0] += (count + 7) >> 3
    status = _read_body(builder, count, cursor, end)
    if status == STATUS_OK:
        status = _append_bits(&builder.nulls, builder.count, nulls, count, &builder.null_count)
        builder.count += count
    return status


cdef int append_value(Builder* builder, const uint8_t* body, uint64_t size) noexcept nogil:
    """Append one value that is not null."""
    cdef const uint8_t* cursor = body
    cdef const uint8_t* end = body + size
    cdef int status = _read_body(builder, 1, &cursor, end)
    if status != STATUS_OK:
        return status
    if cursor != end:
        return STATUS_CORRUPT
    status = _reserve(&builder.nulls, (builder.count + 8) >> 3)
    builder.count += 1
    return status


cdef object _buffer(const uint8_t* bytes, int64_t size):
    """Return an Arrow buffer with a copy of the bytes."""
    cdef object buffer = pa.allocate_buffer(size)
    cdef uint8_t* target = <uint8_t*><size_t>buffer.address
    if size:
        memcpy(target, bytes, <size_t>size)
    return buffer


cdef object _validity(Builder* builder):
    """Return the validity buffer, None without nulls."""
    cdef int64_t size = (builder.count + 7) >> 3
    cdef int64_t index
    cdef uint8_t* target
    if builder.null_count == 0 or builder.kind == KIND_NULL:
        return None
    buffer = pa.allocate_buffer(size)
    target = <uint8_t*><size_t>buffer.address
    for index in range(size):
        target[index] = <uint8_t>~builder.nulls.bytes[index]
    return buffer


cdef object _offsets(Builder* builder, str label):
    """Return the offsets buffer: 0 and the ends, in the width of the kind."""
    cdef bint large = builder.kind == KIND_LARGE_BYTES or builder.kind == KIND_LARGE_LIST
    cdef const int64_t* ends = <const int64_t*>builder.ends.bytes
    cdef int64_t index
    cdef size_t address
    buffer = pa.allocate_buffer((builder.count + 1) * (8 if large else 4))
    address = <size_t>buffer.address
    if large:
        (<int64_t*>address)[0] = 0
        for index in range(builder.count):
            (<int64_t*>address)[index + 1] = ends[index]
        return buffer
    if builder.count and ends[builder.count - 1] > 0x7FFFFFFF:
        raise DataError(f"{label}: {ends[builder.count - 1]} bytes or elements in one batch are more than 32-bit "
                        "offsets reach; use smaller batches, or the large form of the type")
    (<int32_t*>address)[0] = 0
    for index in range(builder.count):
        (<int32_t*>address)[index + 1] = <int32_t>ends[index]
    return buffer


cdef list _child_types(object data_type):
    """Return the types of the children of a nested type, in Arrow's order."""
    if pa.types.is_struct(data_type):
        return [data_type.field(index).type for index in range(data_type.num_fields)]
    if pa.types.is_map(data_type):
        return [pa.struct([data_type.key_field, data_type.item_field])]
    return [data_type.value_type]


cdef int _check_text(Builder* builder, str label) except -1:
    """Raise DataError unless the strings of a builder are UTF-8. A retry would not help their reader."""
    cdef bint is_sound
    with nogil:
        is_sound = are_utf8(builder.values.bytes, builder.values.size, <const int64_t*>builder.ends.bytes,
                            builder.count)
    if not is_sound:
        raise DataError(f"{label}: a string within a nested value is not UTF-8: either the input has such ones, which "
                        "are to be read as binary, or a row is damaged")
    return 0


cdef object build_array(Builder* builder, object data_type, str label):
    """Return the values as an Arrow array."""
    cdef int32_t index
    cdef Builder* entries = builder.children
    if pa.types.is_map(data_type) and entries.null_count + entries.children.null_count > 0:
        # Arrow aborts the process over such an array.
        raise CorruptBlockError(f"{label}: a map in a row is damaged: an entry or a key of it is null")
    if isinstance(data_type, pa.BaseExtensionType):
        storage = build_array(builder, data_type.storage_type, label)
        return pa.ExtensionArray.from_storage(data_type, storage)
    buffers = [_validity(builder)]
    children = None
    if KIND_BYTES <= builder.kind <= KIND_LARGE_LIST:
        buffers.append(_offsets(builder, label))
    if pa.types.is_string(data_type) or pa.types.is_large_string(data_type):
        _check_text(builder, label)
    if KIND_BOOL <= builder.kind <= KIND_LARGE_BYTES:
        buffers.append(_buffer(builder.values.bytes, builder.values.size))
    if builder.kind > KIND_LARGE_BYTES:
        types = _child_types(data_type)
        children = [build_array(&builder.children[index], types[index], label) for index in range(builder.child_count)]
    nulls = builder.count if builder.kind == KIND_NULL else builder.null_count
    return pa.Array.from_buffers(data_type, builder.count, buffers, nulls, 0, children)
