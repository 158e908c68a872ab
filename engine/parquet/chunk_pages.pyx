"""The pages of a column: read, checked, opened, so that their values can be taken.

    header │ compressed bytes        next_page: unneeded rows are skipped with their page, unread
                  │ open_page: checksum, snappy (other codecs: CHUNK_SEALED, the owner opens it and calls open_sealed)
                  ▼
    levels (is there a value?) │ values        plain, differences of integers, or numbers of the dictionary, which is a
                                               page of its own before

A page is read whole, and one page of each column is there at a time. What a header says is held against what the
footer says before memory is taken for it.

Invariants: a page's rows never go beyond those of the column; every buffer has PAGE_SLACK bytes behind its end.
Limits: flat columns, at most one definition level. Source: parquet-format, "Data Pages", "Encodings".
Held by: tests/parquet/test_group_reader.py
"""

from libc.errno cimport errno
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memmove, memset

from engine.parquet.delta_kernels cimport deltas_begin
from engine.parquet.fetched_bytes cimport read_bytes
from engine.parquet.page_header cimport (
    ENCODING_DELTA_BINARY_PACKED,
    ENCODING_PLAIN,
    ENCODING_PLAIN_DICTIONARY,
    ENCODING_RLE,
    ENCODING_RLE_DICTIONARY,
    PAGE_DATA,
    PAGE_DATA_2,
    PAGE_DICTIONARY,
    PAGE_INDEX,
    parse_page_header,
)
from engine.parquet.page_kernels cimport crc, crc_begin, runs_begin, runs_bits, snappy, snappy_begin
from engine.parquet.page_rooms cimport give_back, grow
from engine.parquet.value_kernels cimport convert, reverse
from engine.records.byte_kernels cimport load32

cdef enum:
    HEADER_BYTES = 512
    HEADER_BYTES_MAX = 16 << 10
    LARGE_PAGES = 4             # so many, each like the last one, are more than a window: they are read one by one

crc_begin()
snappy_begin()


cdef void free_chunk(Chunk* chunk) noexcept nogil:
    give_back(&chunk.window)
    give_back(&chunk.page)
    give_back(&chunk.valid)
    give_back(&chunk.words)
    give_back(&chunk.offsets)
    give_back(&chunk.validity)
    give_back(&chunk.texts)
    give_back(&chunk.ends)


cdef void reset_chunk(Chunk* chunk) noexcept nogil:
    chunk.window_start = chunk.window_size = chunk.header.compressed = 0
    chunk.is_open = chunk.is_dictionary = False
    chunk.rows_left = chunk.row = chunk.passed = chunk.null_count = chunk.dictionary_count = 0
    chunk.mask = NULL


cdef int window_at(Chunk* chunk, int64_t position, int64_t size, const uint8_t** found) noexcept nogil:
    """Find bytes of the file, which are read with those behind them where they are not in memory.

    Of large pages only the next header is read ahead: they may be passed over.
    """
    cdef int64_t wanted, got, more
    cdef int64_t kept = chunk.window_start + chunk.window_size - position
    if position < chunk.window_start or kept < size:
        wanted = chunk.window_bytes
        if chunk.header.compressed * LARGE_PAGES > wanted:
            wanted = size + HEADER_BYTES
        wanted = min(max(size, wanted), chunk.end - position)
        if not grow(&chunk.window, wanted):
            return CHUNK_NO_MEMORY
        got = 0
        if position >= chunk.window_start and kept > 0:
            memmove(chunk.window.data, chunk.window.data + (position - chunk.window_start), <size_t>kept)
            got = kept
        while got < wanted:
            more = read_bytes(chunk.descriptor, chunk.parts, chunk.window.data + got, wanted - got, position + got)
            if more < 0:
                chunk.window_size = 0
                chunk.error = errno
                return CHUNK_UNREADABLE
            if more == 0:
                break
            got += more
        chunk.window_start, chunk.window_size = position, got
        if got < size:
            return CHUNK_ENDS
    found[0] = chunk.window.data + (position - chunk.window_start)
    return CHUNK_OK


cdef int read_header(Chunk* chunk) noexcept nogil:
    """Read the header at the position; go to the next one."""
    cdef int64_t room = min(<int64_t>HEADER_BYTES, chunk.end - chunk.position)
    cdef const uint8_t* data = NULL
    cdef int64_t size
    cdef int status = window_at(chunk, chunk.position, room, &data) if room > 0 else CHUNK_ENDS
    if status:
        return status
    size = parse_page_header(data, room, &chunk.header)
    if size == 0:
        room = min(<int64_t>HEADER_BYTES_MAX, chunk.end - chunk.position)
        status = window_at(chunk, chunk.position, room, &data)
        if status:
            return status
        size = parse_page_header(data, room, &chunk.header)
    chunk.page_position, chunk.payload = chunk.position, chunk.position + size
    if size == 0 or chunk.header.compressed < 0 or chunk.header.compressed > chunk.end - chunk.payload:
        return CHUNK_DAMAGED
    if chunk.header.size < 0 or chunk.header.size > chunk.size_max:
        return CHUNK_DAMAGED
    chunk.position = chunk.payload + chunk.header.compressed
    return CHUNK_OK


cdef int next_page(Chunk* chunk) noexcept nogil:
    cdef int status = CHUNK_OK
    while chunk.rows_left == 0:
        if chunk.is_dictionary:
            status = open_page(chunk)
            if status:
                return status
        if chunk.values_left == 0:
            return CHUNK_ENDS
        status = read_header(chunk)
        if status:
            return status
        if chunk.header.kind == PAGE_DICTIONARY:
            if chunk.dictionary_count or chunk.header.values < 0 or chunk.header.values > chunk.header.size:
                return CHUNK_DAMAGED
            chunk.is_dictionary, chunk.is_open = True, False
        elif chunk.header.kind == PAGE_DATA or chunk.header.kind == PAGE_DATA_2:
            if chunk.header.values < 0 or chunk.header.values > chunk.values_left:
                return CHUNK_DAMAGED
            chunk.rows_left = chunk.header.values
            chunk.values_left -= chunk.header.values
            chunk.is_open = False
            chunk.row = chunk.passed = 0
        elif chunk.header.kind != PAGE_INDEX:
            return CHUNK_DAMAGED
    return CHUNK_OK


cdef int open_page(Chunk* chunk) noexcept nogil:
    cdef const uint8_t* data = NULL
    cdef int64_t size = chunk.header.compressed
    cdef int64_t levels = 0
    cdef int status = window_at(chunk, chunk.payload, size, &data)
    if status:
        return status
    if chunk.header.has_checksum and crc(data, size) != chunk.header.checksum:
        return CHUNK_CHECKSUM
    if chunk.header.kind == PAGE_DATA_2:
        if chunk.header.repeat_bytes != 0 or chunk.header.level_bytes < 0:
            return CHUNK_UNKNOWN
        levels = chunk.header.level_bytes
        if levels > size or levels > chunk.header.size:
            return CHUNK_DAMAGED
        status = read_levels(chunk, data, data + levels)
        if status:
            return status
    chunk.sealed, chunk.sealed_size = data + levels, size - levels
    chunk.opened_size = chunk.header.size - levels
    if chunk.codec == CODEC_NONE or not chunk.header.is_compressed or chunk.opened_size == 0:
        if chunk.sealed_size < chunk.opened_size:
            return CHUNK_DAMAGED
        return settle_page(chunk, chunk.sealed)
    if chunk.codec == CODEC_OTHER:
        return CHUNK_SEALED
    if not grow(&chunk.page, chunk.opened_size):
        return CHUNK_NO_MEMORY
    if not snappy(chunk.sealed, chunk.sealed_size, chunk.page.data, chunk.opened_size):
        return CHUNK_DAMAGED
    return settle_page(chunk, chunk.page.data)


cdef int open_sealed(Chunk* chunk, const uint8_t* opened) noexcept nogil:
    if not grow(&chunk.page, chunk.opened_size):
        return CHUNK_NO_MEMORY
    memcpy(chunk.page.data, opened, <size_t>chunk.opened_size)
    return settle_page(chunk, chunk.page.data)


cdef int read_levels(Chunk* chunk, const uint8_t* data, const uint8_t* end) noexcept nogil:
    """Find out which rows of the page have a value."""
    cdef Runs runs
    cdef int64_t words = chunk.header.values // 64 + 2
    cdef int64_t ones
    chunk.null_count = 0
    if not chunk.is_nullable:
        return CHUNK_OK
    if not grow(&chunk.valid, words * 8):
        return CHUNK_NO_MEMORY
    memset(chunk.valid.data, 0, <size_t>(words * 8))
    runs_begin(&runs, data, end, 1)
    ones = runs_bits(&runs, chunk.header.values, <uint64_t*>chunk.valid.data)
    if ones < 0:
        return CHUNK_DAMAGED
    chunk.null_count = chunk.header.values - ones
    return CHUNK_OK


cdef int settle_page(Chunk* chunk, const uint8_t* data) noexcept nogil:
    """Find levels and values in the bytes of a page that was opened."""
    cdef const uint8_t* end = data + chunk.opened_size
    cdef int64_t size
    cdef int status = CHUNK_OK
    if chunk.is_dictionary:
        chunk.is_dictionary = False
        return settle_dictionary(chunk, data, end)
    if chunk.header.kind == PAGE_DATA:
        chunk.null_count = 0
        if chunk.is_nullable:
            if chunk.header.level_encoding != ENCODING_RLE:
                return CHUNK_UNKNOWN
            size = load32(data) if end - data >= 4 else -1
            if size < 0 or size > end - data - 4:
                return CHUNK_DAMAGED
            status = read_levels(chunk, data + 4, data + 4 + size)
            if status:
                return status
            data += 4 + size
    chunk.at, chunk.page_end, chunk.bit = data, end, 0
    chunk.is_open = True
    return settle_values(chunk)


cdef int settle_values(Chunk* chunk) noexcept nogil:
    """Find out how values lie in the page."""
    cdef int64_t encoding = chunk.header.encoding
    cdef int64_t size
    if encoding == ENCODING_PLAIN:
        chunk.mode = MODE_PLAIN
        if chunk.shape == SHAPE_CODES:
            chunk.mode, chunk.added = MODE_ADDED, <uint32_t>chunk.dictionary_count
            return add_texts(chunk, chunk.at, chunk.page_end, chunk.rows_left - chunk.null_count)
        return CHUNK_OK
    if encoding == ENCODING_RLE_DICTIONARY or encoding == ENCODING_PLAIN_DICTIONARY:
        chunk.mode = MODE_NUMBERS
        if chunk.shape == SHAPE_BITS:
            return CHUNK_UNKNOWN
        if chunk.at == chunk.page_end:                  # of nulls alone
            return CHUNK_OK if chunk.null_count == chunk.header.values else CHUNK_DAMAGED
        if chunk.at[0] > 32:
            return CHUNK_DAMAGED
        runs_begin(&chunk.runs, chunk.at + 1, chunk.page_end, chunk.at[0])
        return CHUNK_OK
    if encoding == ENCODING_RLE and chunk.shape == SHAPE_BITS:
        chunk.mode = MODE_RUNS
        size = load32(chunk.at) if chunk.page_end - chunk.at >= 4 else -1
        if size < 0 or size > chunk.page_end - chunk.at - 4:
            return CHUNK_DAMAGED
        runs_begin(&chunk.runs, chunk.at + 4, chunk.at + 4 + size, 1)
        return CHUNK_OK
    if encoding == ENCODING_DELTA_BINARY_PACKED and chunk.is_integer:
        chunk.mode = MODE_DELTAS
        if chunk.null_count == chunk.header.values:
            return CHUNK_OK
        return CHUNK_OK if deltas_begin(&chunk.deltas, chunk.at, chunk.page_end) else CHUNK_DAMAGED
    return CHUNK_UNKNOWN


cdef int settle_dictionary(Chunk* chunk, const uint8_t* data, const uint8_t* end) noexcept nogil:
    """Keep the values of the dictionary as Arrow's."""
    cdef int64_t count = chunk.header.values
    if chunk.header.encoding != ENCODING_PLAIN and chunk.header.encoding != ENCODING_PLAIN_DICTIONARY:
        return CHUNK_UNKNOWN
    if chunk.shape == SHAPE_TEXTS or chunk.shape == SHAPE_CODES:
        return add_texts(chunk, data, end, count)
    if chunk.shape == SHAPE_BITS:
        return CHUNK_UNKNOWN
    if count * chunk.stored_width > end - data:
        return CHUNK_DAMAGED
    if not grow(&chunk.words, count * chunk.width):
        return CHUNK_NO_MEMORY
    as_arrow_has(chunk, data, count, chunk.words.data)
    chunk.dictionary_count = count
    return CHUNK_OK


cdef void as_arrow_has(Chunk* chunk, const uint8_t* stored, int64_t count, uint8_t* target) noexcept nogil:
    if chunk.shape == SHAPE_CONVERTED:
        convert(stored, chunk.stored_width, chunk.width, count, target)
    elif chunk.shape == SHAPE_REVERSED:
        reverse(stored, chunk.stored_width, count, target)
    else:
        memcpy(target, stored, <size_t>(count * chunk.width))


cdef int add_texts(Chunk* chunk, const uint8_t* at, const uint8_t* end, int64_t count) noexcept nogil:
    """Put plain texts behind those of the dictionary."""
    cdef uint32_t* offsets
    cdef int64_t index, size
    cdef int64_t known = chunk.dictionary_count
    if not grow(&chunk.offsets, (known + count + 1) * 4):
        return CHUNK_NO_MEMORY
    offsets = <uint32_t*>chunk.offsets.data
    if known == 0:
        offsets[0] = 0
    if offsets[known] + (end - at) > 0x7FFFFFFF:
        return CHUNK_TOO_LARGE
    if not grow(&chunk.words, offsets[known] + (end - at)):
        return CHUNK_NO_MEMORY
    for index in range(known, known + count):
        size = load32(at) if end - at >= 4 else -1
        if size < 0 or size > end - at - 4:
            return CHUNK_DAMAGED
        memcpy(chunk.words.data + offsets[index], at + 4, <size_t>size)
        offsets[index + 1] = offsets[index] + <uint32_t>size
        at += 4 + size
    chunk.dictionary_count = known + count
    return CHUNK_OK


cdef void copy_offsets(const int32_t* ends, int64_t count, bint is_large, uint8_t* target) noexcept nogil:
    """Offsets as Arrow has them, of where values end."""
    cdef int64_t index
    cdef int64_t* large = <int64_t*>target
    if is_large:
        large[0] = 0
        for index in range(count):
            large[index + 1] = ends[index]
    else:
        (<int32_t*>target)[0] = 0
        if count:
            memcpy(target + 4, ends, <size_t>count * 4)


cdef void pack_bytes(const uint8_t* values, int64_t count, uint8_t* target) noexcept nogil:
    """Bools of a byte each as bits."""
    cdef int64_t first, row
    cdef uint8_t byte
    for first in range(0, count, 8):
        byte = 0
        for row in range(first, min(count, first + 8)):
            byte |= <uint8_t>(values[row] << (row - first))
        target[first >> 3] = byte
