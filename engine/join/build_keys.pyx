"""The keys of a complete build side, wherever its rows are: what a filter of the probe side is made of.

    build_keys(owner, positions, rows_max, bytes_max) -> for each of the keys its values, or None: they are too many

    rows in pages, in build files      decoded, the key columns alone
    a dictionary table's cells         the numbers themselves

Null keys are not among them: they match nothing. A key may come several times. Files are read as a copy of the build
side reads them (``borrowed_build``), so the owner's pages and files are as they were.

Held by: tests/join/test_build_keys.py
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from engine.join.build_table cimport TABLE_DICTIONARY
from engine.join.dictionary_table cimport DictionaryTable
from engine.join.direct_pages cimport DirectPages
from engine.join.hash_join cimport HashJoin
from engine.join.hash_partition cimport HashPartition
from engine.join.join_side cimport JoinSide
from engine.join.partition_set cimport CHUNK_ROWS, ResidentCursor
from engine.join.probe_matches cimport OUTPUT_BYTES
from engine.join.row_stream cimport RowStream

import pyarrow as pa

from engine.join.join_phase import JoinPhase


def build_keys(HashJoin owner not None, positions, int64_t rows_max, int64_t bytes_max):
    """Return lists of arrays for some keys of a join with a complete build side; None: more than is allowed."""
    cdef JoinSide build = owner._roles.build
    if owner.phase not in (JoinPhase.COMPLETE, JoinPhase.PROBING) or owner._level is None:
        raise ValueError("only a join with a complete build side of its own has its keys")
    if owner._input.row_count - owner._input.null_key_count > rows_max:
        return None
    if owner._roles.tables.table.kind == TABLE_DICTIONARY:
        return [[_dictionary_keys(owner)] for _ in positions]
    found = [[] for _ in positions]
    size_bytes = 0
    for batch in _key_batches(owner, build, positions):
        size_bytes += batch.nbytes
        if size_bytes > bytes_max:
            return None
        for column, arrays in zip(batch.columns, found):
            arrays.append(column)
    empty = [pa.nulls(0, build.schema.field(build.keys[position]).type) for position in positions]
    return [arrays or [none] for arrays, none in zip(found, empty)]


def _key_batches(HashJoin owner, JoinSide build, positions):
    cdef HashPartition partition
    cdef ResidentCursor cursor
    cdef RowStream stream
    cdef int64_t count
    cdef int32_t index, key_count = len(positions)
    cdef int32_t* columns = <int32_t*>malloc(key_count * sizeof(int32_t))
    if columns == NULL:
        raise MemoryError("key columns of a join")
    try:
        for index in range(key_count):
            columns[index] = build.keys[<int32_t>positions[index]]
        memset(&cursor, 0, sizeof(cursor))
        count = CHUNK_ROWS
        while count == CHUNK_ROWS:
            with nogil:
                count = owner._level.next_resident(&cursor, owner._input.rows, CHUNK_ROWS)
            if count:
                yield build.codec.decode(owner._input.rows, count, columns, key_count)
        for partition in owner._level.partitions[:owner._level.fan_out]:
            if not partition.entries.spilled:
                continue
            stream = RowStream(partition.build_file)
            owner._stream = stream
            while True:
                count = stream.next_rows(owner._input.rows, CHUNK_ROWS, OUTPUT_BYTES)
                if count == 0:
                    break
                yield build.codec.decode(owner._input.rows, count, columns, key_count)
            stream.close()
    finally:
        free(columns)


cdef object _dictionary_keys(HashJoin owner):
    cdef DirectPages cells = (<DictionaryTable>owner._roles.tables.table)._cells
    cdef JoinSide build = owner._roles.build
    cdef int64_t count
    cdef uint8_t* target
    with nogil:
        count = _write_keys(cells, NULL)
    buffer = pa.allocate_buffer(count * cells.width)
    target = <uint8_t*><uintptr_t>buffer.address
    with nogil:
        _write_keys(cells, target)
    return pa.Array.from_buffers(build.schema.field(build.keys[0]).type, count, [None, buffer])


# Returns how many cells are taken; their numbers go to target, if there is one.
cdef int64_t _write_keys(DirectPages cells, uint8_t* target) noexcept nogil:
    cdef uint64_t page, cell, number
    cdef int64_t count = 0
    for page in range(cells.size):
        if cells.pages[page] == NULL:
            continue
        for cell in range(cells.mask + 1):
            if cells.pages[page][cell] == 0:
                continue
            count += 1
            if target != NULL:
                number = (((cells.first + page) << cells.shift) + cell) ^ cells.sign
                memcpy(target, &number, cells.width)        # little-endian
                target += cells.width
    return count
