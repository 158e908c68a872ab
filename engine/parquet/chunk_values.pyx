"""Rows of a column taken out of its pages: only those that a mask keeps, at their place in a batch.

    page     rows │ rows │ rows      a block of 1024, or what is left of the page or the batch
    mask     ....   0000   ..11      of a page without kept rows nothing is read, of a block none is decoded
                             └─► numbers of the dictionary ─► those that are kept ─► values
                             └─► plain values ─────────────► those that are kept ─► as Arrow has them

A null is a row without a value in the page: the mask of rows is turned into one of values, and what was taken is spread
over the rows that are kept.

Invariants: a number beyond the dictionary, and values beyond the page, are damage; nothing behind ``kept`` values of a
target counts.

Held by: tests/parquet/test_group_reader.py
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from engine.parquet.chunk_pages cimport (
    BLOCK_ROWS,
    CHUNK_DAMAGED,
    CHUNK_NO_MEMORY,
    CHUNK_OK,
    CHUNK_TOO_LARGE,
    MODE_ADDED,
    MODE_DELTAS,
    MODE_NUMBERS,
    MODE_PLAIN,
    MODE_RUNS,
    SHAPE_BITS,
    SHAPE_CODES,
    SHAPE_COPIED,
    SHAPE_TEXTS,
    Chunk,
    Scratch,
    as_arrow_has,
    next_page,
    open_page,
)
from engine.parquet.delta_kernels cimport deltas_read
from engine.parquet.page_kernels cimport runs_read, runs_same
from engine.parquet.page_rooms cimport grow
from engine.parquet.value_kernels cimport (
    largest,
    pack_bits,
    put_texts,
    repeat_value,
    spread,
    spread_ends,
    take_texts,
    take_values,
    texts_size,
)
from engine.records.bit_kernels cimport append_bits
from engine.records.byte_kernels cimport bits_from, count_ones
from engine.records.kept_kernels cimport keep_1, keep_2, keep_4, keep_8, keep_16

cdef int64_t TEXTS_MAX = 0x7FFFFFFF


cdef int begin_rows(Chunk* chunk, int64_t rows, const uint64_t* mask, int64_t kept) noexcept nogil:
    cdef int64_t words = (kept + 63) // 64 + 2
    chunk.wanted, chunk.wanted_at, chunk.mask = rows, 0, mask
    chunk.kept = chunk.kept_nulls = chunk.texts_size = 0
    if chunk.is_nullable:
        if not grow(&chunk.validity, words * 8):
            return CHUNK_NO_MEMORY
        memset(chunk.validity.data, 0, <size_t>(words * 8))
    if chunk.shape == SHAPE_TEXTS and not grow(&chunk.ends, (kept + 1) * 4):
        return CHUNK_NO_MEMORY
    return CHUNK_OK


cdef int64_t count_mask(const uint64_t* mask, int64_t first, int64_t rows) noexcept nogil:
    cdef int64_t row
    cdef int64_t count = 0
    for row in range(0, rows, 64):
        count += count_ones(bits_from(<const uint8_t*>mask, first + row, min(<int64_t>64, rows - row)))
    return count


cdef int take_rows(Chunk* chunk) noexcept nogil:
    cdef int64_t rows
    cdef int status
    while chunk.wanted_at < chunk.wanted:
        if chunk.rows_left == 0:
            status = next_page(chunk)
            if status:
                return status
        rows = min(chunk.wanted - chunk.wanted_at, chunk.rows_left)
        if chunk.mask != NULL and not chunk.is_open and count_mask(chunk.mask, chunk.wanted_at, rows) == 0:
            # The page is not opened: later rows of it may not be wanted either.
            chunk.row += rows
            chunk.wanted_at += rows
            chunk.rows_left -= rows
            continue
        if not chunk.is_open:
            status = open_page(chunk)
            if status:
                return status
        status = pass_rows(chunk)
        if status:
            return status
        status = take_of_page(chunk, rows)
        if status:
            return status
    return CHUNK_OK


cdef int pass_rows(Chunk* chunk) noexcept nogil:
    """Skip the values of unneeded rows while the page was not open."""
    cdef int64_t size, dense
    cdef int status
    while chunk.passed < chunk.row:
        size = min(chunk.row - chunk.passed, <int64_t>BLOCK_ROWS)
        dense = size
        if chunk.null_count:
            dense = count_mask(<const uint64_t*>chunk.valid.data, chunk.passed, size)
        status = take_dense(chunk, dense, NULL, 0, NULL, NULL)
        if status:
            return status
        chunk.passed += size
    return CHUNK_OK


cdef int take_of_page(Chunk* chunk, int64_t rows) noexcept nogil:
    """Take rows of the page that is open."""
    cdef Scratch* scratch = chunk.scratch
    cdef int64_t size, row, kept
    cdef int64_t end = chunk.wanted_at + rows
    cdef const uint64_t* words
    cdef int status
    while chunk.wanted_at < end:
        size = min(end - chunk.wanted_at, <int64_t>BLOCK_ROWS)
        words, kept = NULL, size
        if chunk.mask != NULL:
            kept = 0
            for row in range(0, size, 64):
                scratch.mask[row >> 6] = bits_from(
                    <const uint8_t*>chunk.mask, chunk.wanted_at + row, min(<int64_t>64, size - row))
                kept += count_ones(scratch.mask[row >> 6])
            if kept < size:
                words = scratch.mask
        if chunk.null_count:
            status = take_with_nulls(chunk, size, words, kept)
        else:
            status = take_block(chunk, size, words, kept)
        if status:
            return status
        chunk.wanted_at += size
        chunk.row += size
        chunk.passed = chunk.row
        chunk.rows_left -= size
        chunk.kept += kept
    return CHUNK_OK


cdef int take_block(Chunk* chunk, int64_t rows, const uint64_t* mask, int64_t kept) noexcept nogil:
    """Take rows none of which is null."""
    cdef int64_t row
    cdef int32_t* ends = NULL
    if chunk.is_nullable and kept:
        for row in range(0, kept, 64):
            chunk.scratch.kept_valid[row >> 6] = <uint64_t>-1
        append_bits(<uint64_t*>chunk.validity.data, chunk.kept, chunk.scratch.kept_valid, kept)
    if chunk.shape == SHAPE_TEXTS:
        ends = <int32_t*>chunk.ends.data + chunk.kept
        return take_dense(chunk, rows, mask, kept, NULL, ends)
    return take_dense(chunk, rows, mask, kept, chunk.target + chunk.kept * chunk.width, NULL)


cdef int take_with_nulls(Chunk* chunk, int64_t rows, const uint64_t* mask, int64_t kept) noexcept nogil:
    cdef Scratch* scratch = chunk.scratch
    cdef const uint64_t* kept_valid = scratch.valid
    cdef const uint64_t* dense_mask = NULL
    cdef int64_t row
    cdef int64_t dense = 0
    cdef int64_t dense_kept = 0
    cdef int32_t first = <int32_t>chunk.texts_size
    cdef int status
    for row in range(0, rows, 64):
        scratch.valid[row >> 6] = bits_from(chunk.valid.data, chunk.row + row, min(<int64_t>64, rows - row))
        dense += count_ones(scratch.valid[row >> 6])
        if mask != NULL:
            dense_kept += count_ones(scratch.valid[row >> 6] & mask[row >> 6])
    if mask == NULL:
        dense_kept = dense
    else:
        pack_bits(mask, scratch.valid, rows, scratch.dense_mask)
        pack_bits(scratch.valid, mask, rows, scratch.kept_valid)
        dense_mask, kept_valid = scratch.dense_mask, scratch.kept_valid
    status = take_dense(chunk, dense, dense_mask, dense_kept, scratch.dense, scratch.ends)
    if status or kept == 0:
        return status
    if chunk.shape == SHAPE_TEXTS:
        spread_ends(scratch.ends, first, kept, kept_valid, <int32_t*>chunk.ends.data + chunk.kept)
    else:
        spread(scratch.dense, chunk.width, kept, kept_valid, chunk.target + chunk.kept * chunk.width)
    append_bits(<uint64_t*>chunk.validity.data, chunk.kept, kept_valid, kept)
    chunk.kept_nulls += kept - dense_kept
    return CHUNK_OK


cdef int take_dense(Chunk* chunk, int64_t count, const uint64_t* mask, int64_t kept, uint8_t* target,
                    int32_t* ends) noexcept nogil:
    """Take the next values, those of a mask, NULL: all, `kept` of them; none are passed over.

    Values of fixed width go to target. Texts go behind those that are there, and where they end to ends.
    """
    if count == 0:
        return CHUNK_OK
    if chunk.mode == MODE_NUMBERS:
        return take_numbers(chunk, count, mask, kept, target, ends)
    if chunk.mode == MODE_RUNS:
        return take_runs(chunk, count, mask, kept, target)
    if chunk.mode == MODE_DELTAS:
        return take_deltas(chunk, count, mask, kept, target)
    if chunk.mode == MODE_ADDED:
        return take_added(chunk, count, mask, kept, target)
    if chunk.shape == SHAPE_TEXTS:
        return take_plain_texts(chunk, count, mask, kept, ends)
    if chunk.shape == SHAPE_BITS:
        return take_bits(chunk, count, mask, kept, target)
    return take_plain(chunk, count, mask, kept, target)


cdef int take_numbers(Chunk* chunk, int64_t count, const uint64_t* mask, int64_t kept, uint8_t* target,
                      int32_t* ends) noexcept nogil:
    """Values that are numbers of the dictionary."""
    cdef const uint32_t* numbers = chunk.scratch.numbers
    cdef uint32_t number = 0
    cdef int64_t size
    if kept and chunk.shape != SHAPE_TEXTS and runs_same(&chunk.runs, count, &number):
        if number >= chunk.dictionary_count:
            return CHUNK_DAMAGED
        if chunk.shape == SHAPE_CODES:
            repeat_value(<const uint8_t*>&number, 4, kept, target)
        else:
            repeat_value(chunk.words.data + number * chunk.width, chunk.width, kept, target)
        return CHUNK_OK
    if not runs_read(&chunk.runs, count, chunk.scratch.numbers if kept else NULL):
        return CHUNK_DAMAGED
    if kept == 0:
        return CHUNK_OK
    if kept < count:
        keep_4(<const uint8_t*>numbers, count, mask, <uint8_t*>chunk.scratch.kept_numbers)
        numbers = chunk.scratch.kept_numbers
    if largest(numbers, kept) >= chunk.dictionary_count:
        return CHUNK_DAMAGED
    if chunk.shape == SHAPE_CODES:
        memcpy(target, numbers, <size_t>kept * 4)
    elif chunk.shape != SHAPE_TEXTS:
        take_values(chunk.words.data, chunk.width, numbers, kept, target)
    else:
        size = texts_size(<const uint32_t*>chunk.offsets.data, numbers, kept)
        if chunk.texts_size + size > TEXTS_MAX:
            return CHUNK_TOO_LARGE
        if not grow(&chunk.texts, chunk.texts_size + size):
            return CHUNK_NO_MEMORY
        take_texts(chunk.words.data, <const uint32_t*>chunk.offsets.data, numbers, kept, chunk.texts.data,
                   chunk.texts_size, ends)
        chunk.texts_size += size
    return CHUNK_OK


cdef int take_plain(Chunk* chunk, int64_t count, const uint64_t* mask, int64_t kept, uint8_t* target) noexcept nogil:
    """Plain values of fixed width."""
    cdef const uint8_t* stored = chunk.at
    cdef int64_t size = count * chunk.stored_width
    if size > chunk.page_end - chunk.at:
        return CHUNK_DAMAGED
    chunk.at += size
    if kept == 0:
        return CHUNK_OK
    if kept < count:
        if chunk.shape == SHAPE_COPIED:
            keep_values(stored, chunk.stored_width, count, mask, target)
            return CHUNK_OK
        keep_values(stored, chunk.stored_width, count, mask, chunk.scratch.stored)
        stored = chunk.scratch.stored
    as_arrow_has(chunk, stored, kept, target)
    return CHUNK_OK


cdef int take_deltas(Chunk* chunk, int64_t count, const uint64_t* mask, int64_t kept, uint8_t* target) noexcept nogil:
    """Integers that are stored as differences; those of a block at most, of 4 or 8 bytes."""
    cdef bint are_copied = chunk.shape == SHAPE_COPIED
    cdef uint8_t* stored = target if are_copied and kept == count else chunk.scratch.stored
    cdef uint8_t* few = target if are_copied else chunk.scratch.stored + BLOCK_ROWS * 8 + 64
    if not deltas_read(&chunk.deltas, count, chunk.stored_width, stored if kept else NULL):
        return CHUNK_DAMAGED
    if 0 < kept < count:
        keep_values(stored, chunk.stored_width, count, mask, few)
        stored = few
    if kept and not are_copied:
        as_arrow_has(chunk, stored, kept, target)
    return CHUNK_OK


cdef void keep_values(const uint8_t* source, int32_t width, int64_t rows, const uint64_t* mask,
                      uint8_t* target) noexcept nogil:
    cdef int64_t row
    if width == 1:
        keep_1(source, rows, mask, target)
    elif width == 2:
        keep_2(source, rows, mask, target)
    elif width == 4:
        keep_4(source, rows, mask, target)
    elif width == 8:
        keep_8(source, rows, mask, target)
    elif width == 16:
        keep_16(source, rows, mask, target)
    else:
        for row in range(rows):
            if (mask[row >> 6] >> (row & 63)) & 1:
                memcpy(target, source + row * width, <size_t>width)
                target += width


cdef int take_plain_texts(Chunk* chunk, int64_t count, const uint64_t* mask, int64_t kept,
                          int32_t* ends) noexcept nogil:
    cdef int64_t room = chunk.page_end - chunk.at if kept else 0
    cdef uint64_t* nothing = chunk.scratch.mask
    if chunk.texts_size + room > TEXTS_MAX:
        return CHUNK_TOO_LARGE
    if not grow(&chunk.texts, chunk.texts_size + room):
        return CHUNK_NO_MEMORY
    if kept == 0:
        memset(nothing, 0, <size_t>(count + 63) // 64 * 8)
    chunk.at = put_texts(chunk.at, chunk.page_end, count, mask if 0 < kept < count else (NULL if kept else nothing),
                         chunk.texts.data, chunk.texts_size, ends)
    if chunk.at == NULL:
        chunk.at = chunk.page_end
        return CHUNK_DAMAGED
    if kept:
        chunk.texts_size = ends[kept - 1]
    return CHUNK_OK


cdef int take_bits(Chunk* chunk, int64_t count, const uint64_t* mask, int64_t kept, uint8_t* target) noexcept nogil:
    """Plain bools, eight in a byte."""
    cdef int64_t row, bit
    cdef int64_t end = chunk.bit + count
    if (end + 7) // 8 > chunk.page_end - chunk.at:
        return CHUNK_DAMAGED
    if kept:
        for row in range(count):
            if kept == count or (mask[row >> 6] >> (row & 63)) & 1:
                bit = chunk.bit + row
                target[0] = (chunk.at[bit >> 3] >> (bit & 7)) & 1
                target += 1
    chunk.bit = end
    return CHUNK_OK


cdef int take_runs(Chunk* chunk, int64_t count, const uint64_t* mask, int64_t kept, uint8_t* target) noexcept nogil:
    """Bools in runs."""
    cdef int64_t row
    if not runs_read(&chunk.runs, count, chunk.scratch.numbers):
        return CHUNK_DAMAGED
    if kept:
        for row in range(count):
            if kept == count or (mask[row >> 6] >> (row & 63)) & 1:
                target[0] = chunk.scratch.numbers[row] & 1
                target += 1
    return CHUNK_OK


cdef int take_added(Chunk* chunk, int64_t count, const uint64_t* mask, int64_t kept, uint8_t* target) noexcept nogil:
    """Numbers of texts that were added to the dictionary, in their order."""
    cdef int64_t row
    cdef uint32_t* numbers = <uint32_t*>target
    if chunk.added + count > chunk.dictionary_count:
        return CHUNK_DAMAGED
    if kept:
        for row in range(count):
            if kept == count or (mask[row >> 6] >> (row & 63)) & 1:
                numbers[0] = chunk.added + <uint32_t>row
                numbers += 1
    chunk.added += <uint32_t>count
    return CHUNK_OK
