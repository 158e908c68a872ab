"""Rows that a mask keeps: what Arrow's ``filter`` does, in a tenth of its time.

    kept_rows(batch, mask) -> batch             rows where the mask is true, null is not; the batch itself if all are
    kept_columns(batch, mask, places, schema)   of these rows some columns, by number, for kernels (``opened_batch``)

    mask      1 1 1 1 1 1 1 1 │ 0 1 0 0 0 0 1 0 │ 0 0 0 0 0 0 0 0      64 rows a word
    values    copied at once    one by one        passed over           kept_kernels.pxd

Values of fixed width, bools and texts are copied here: all columns in one go without the GIL, into one block of memory
that becomes a batch in one call (``batch_builder`` says why); the batch is opened through the Arrow C data interface,
with no array of Arrow's for a column. A dictionary's codes are copied beside the dictionary as it is. Columns of other
types go through Arrow's ``filter``.

Held by: tests/records/test_kept_rows.py
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free

import pyarrow as pa

from engine.records.arrow_batch cimport (
    KIND_BOOL,
    KIND_BYTES,
    KIND_DECIMAL256,
    KIND_INT8,
    KIND_LARGE_BYTES,
    kind_of_format,
)
from engine.records.arrow_c_data cimport ArrowArray, ArrowSchema
from engine.records.arrow_functions import pc
from engine.records.batch_builder cimport BatchBuilder, padded
from engine.records.kept_kernels cimport (
    keep_1,
    keep_2,
    keep_4,
    keep_8,
    keep_16,
    keep_32,
    keep_bits,
    keep_large_texts,
    keep_large_texts_bytes,
    keep_texts,
    keep_texts_bytes,
)
from engine.records.opened_batch cimport OpenedBatch, opened_batch, schema_of
from engine.records.row_mask cimport Mask, mask_from

ctypedef void (*Keeping)(const uint8_t* values, int64_t rows, const uint64_t* mask, uint8_t* target) noexcept nogil

cdef enum:
    VALUE_BYTES_MAX = 32


cdef Keeping keeping_of(int32_t width) noexcept nogil:
    if width == 1:
        return keep_1
    if width == 2:
        return keep_2
    if width == 4:
        return keep_4
    if width == 8:
        return keep_8
    return keep_16 if width == 16 else keep_32


cdef void read_column(KeptColumn* column, const ArrowSchema* schema, const ArrowArray* array,
                      int64_t offset) noexcept nogil:
    cdef int32_t width
    cdef int32_t kind = kind_of_format(schema.format, &width)
    if array.n_buffers < 2 or array.buffers[1] == NULL:
        return
    if kind == KIND_BOOL:
        column.kind = IS_BOOL
    elif kind == KIND_BYTES:
        column.kind = IS_TEXT
    elif kind == KIND_LARGE_BYTES:
        column.kind = IS_LARGE_TEXT
    elif KIND_INT8 <= kind <= KIND_DECIMAL256:
        column.kind = width
    column.is_coded, column.is_renamed = schema.dictionary != NULL, schema.metadata != NULL
    column.offset = offset + array.offset
    column.validity = <const uint8_t*>array.buffers[0] if array.null_count else NULL
    column.values = <const uint8_t*>array.buffers[1]
    if column.kind == IS_TEXT or column.kind == IS_LARGE_TEXT:
        column.values += column.offset * (4 if column.kind == IS_TEXT else 8)
        column.texts = <const uint8_t*>array.buffers[2]
    elif column.kind > 0:
        column.values += column.offset * column.kind


cdef int64_t size_of_kept(Mask mask, KeptColumn* column) noexcept nogil:
    """Bytes of what is kept of a column, with the room that kernels write beyond the last value."""
    cdef int64_t size = padded((mask.kept + 63) // 64 * 8) if column.validity != NULL else 0
    if column.kind == IS_BOOL:
        return size + padded((mask.kept + 63) // 64 * 8)
    if column.kind == IS_TEXT:
        column.text_bytes = keep_texts_bytes(column.values, mask.rows, mask.words)
        return size + padded((mask.kept + 1) * 4) + padded(column.text_bytes + VALUE_BYTES_MAX)
    if column.kind == IS_LARGE_TEXT:
        column.text_bytes = keep_large_texts_bytes(column.values, mask.rows, mask.words)
        return size + padded((mask.kept + 1) * 8) + padded(column.text_bytes + VALUE_BYTES_MAX)
    return size + padded(mask.kept * column.kind + VALUE_BYTES_MAX)


cdef int64_t size_of_all(Mask mask, KeptColumn* columns, int32_t width) noexcept nogil:
    """Bytes of what is kept of all columns that are copied here."""
    cdef int64_t size = 0
    cdef int32_t index
    for index in range(width):
        if columns[index].kind:
            size += size_of_kept(mask, &columns[index])
    return size


cdef uint8_t* copy_kept(Mask mask, KeptColumn* column, uint8_t* target) noexcept nogil:
    """Copy what is kept of a column; returns where the next one begins."""
    column.ones = mask.kept
    if column.validity != NULL:
        column.target_validity = target
        column.ones = keep_bits(column.validity, column.offset, mask.rows, mask.words, <uint64_t*>target)
        target += padded((mask.kept + 63) // 64 * 8)
    column.target = target
    if column.kind == IS_BOOL:
        keep_bits(column.values, column.offset, mask.rows, mask.words, <uint64_t*>target)
        return target + padded((mask.kept + 63) // 64 * 8)
    if column.kind == IS_TEXT:
        column.target_texts = target + padded((mask.kept + 1) * 4)
        keep_texts(column.values, column.texts, mask.rows, mask.words, target, column.target_texts)
        return column.target_texts + padded(column.text_bytes + VALUE_BYTES_MAX)
    if column.kind == IS_LARGE_TEXT:
        column.target_texts = target + padded((mask.kept + 1) * 8)
        keep_large_texts(column.values, column.texts, mask.rows, mask.words, target, column.target_texts)
        return column.target_texts + padded(column.text_bytes + VALUE_BYTES_MAX)
    keeping_of(column.kind)(column.values, mask.rows, mask.words, target)
    return target + padded(mask.kept * column.kind + VALUE_BYTES_MAX)


cdef int keep_into(BatchBuilder builder, list places, Mask mask, object batch) except -1:
    cdef int32_t width = <int32_t>len(places)
    cdef int32_t index
    cdef int64_t size
    cdef bint has_texts = False
    cdef uint8_t* target
    cdef OpenedBatch opened = opened_batch(batch)
    cdef KeptColumn* columns = <KeptColumn*>calloc(<size_t>width + 1, sizeof(KeptColumn))
    cdef KeptColumn* column
    if columns == NULL:
        raise MemoryError("columns of which rows are kept")
    try:
        for index in range(width):
            columns[index].place = places[index]
            if columns[index].place < 0:
                continue
            read_column(&columns[index], opened.types.children[index], opened.array.children[index],
                        opened.array.offset)
            if columns[index].is_renamed and isinstance(batch.schema.field(index).type, pa.BaseExtensionType):
                columns[index].kind = 0
            has_texts |= columns[index].kind == IS_TEXT or columns[index].kind == IS_LARGE_TEXT
        if has_texts:
            with nogil:
                size = size_of_all(mask, columns, width)
        else:
            size = size_of_all(mask, columns, width)
        target = builder.allocate(size)
        with nogil:
            for index in range(width):
                if columns[index].kind:
                    target = copy_kept(mask, &columns[index], target)
        for index in range(width):
            column = &columns[index]
            if column.kind:
                builder.set_values(
                    column.place, mask.kept - column.ones, column.target_validity,
                    column.target if column.target_texts != NULL else NULL,
                    column.target_texts if column.target_texts != NULL else column.target)
                if column.is_coded:
                    builder.set_dictionary(column.place, opened.dictionary(index))
            elif column.place >= 0:
                builder.set_array(column.place, pc.filter(batch.column(index), mask.array()))
    finally:
        free(columns)
    return 0


cdef OpenedBatch kept_unshown(Mask mask, object batch, list places, object schema):
    if all_or_none(mask, batch) or not places:
        return opened_batch(batch.slice(0, mask.kept).select(places))
    return builder_of_kept(mask, batch, places, schema).build_unshown()


cdef bint all_or_none(Mask mask, object batch) except -1:
    """Whether all rows of a batch are kept, or none."""
    if mask.rows != batch.num_rows:
        raise pa.ArrowInvalid(f"a mask of {mask.rows} rows for a batch of {batch.num_rows}")
    return mask.kept == 0 or mask.kept == mask.rows


cdef BatchBuilder builder_of_kept(Mask mask, object batch, list places, object schema):
    cdef BatchBuilder builder = BatchBuilder.begin(schema, mask.kept)
    cdef list targets = [-1] * batch.num_columns
    for target, place in enumerate(places):
        targets[place] = target
    keep_into(builder, targets, mask, batch)
    return builder


def kept_rows(batch not None, mask not None):
    """Return the rows of a pyarrow.RecordBatch for which a Mask, or a BooleanArray of as many rows, is true."""
    cdef Mask words = mask_from(mask)
    if all_or_none(words, batch) or not batch.num_columns:
        return batch if words.kept == words.rows else batch.slice(0, words.kept)
    return builder_of_kept(words, batch, list(range(batch.num_columns)), schema_of(batch)).build_like(batch)


def kept_columns(batch not None, mask not None, list places not None, schema not None):
    """Return some columns of these rows, by their numbers, each once, for kernels; schema: of what they become."""
    return kept_unshown(mask_from(mask), batch, places, schema)
