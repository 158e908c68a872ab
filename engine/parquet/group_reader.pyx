"""GroupReader: columns of a row group decoded here, as record batches of the rows that are wanted.

    chunks = GroupChunks({name: StoredChunk})       columns of a row group, said once for all that read it
    chunks = GroupChunks.of_run([(chunks, rows), ...])  those of several row groups, which are read as one
    reader = GroupReader(schema, window_bytes)
    reader.begin(source, chunks)          a row group; memory is that of the one before
    reader.read(rows, mask) -> batch      of the next rows those for which a BooleanArray of as many is true; None: all
    reader.read_beside(rows, mask, sides, batch, kept) -> batch     the same, beside the rows that are kept of a batch
    reader.skip(rows)                     the next rows are not wanted

A column is decoded straight to where the batch has it: pages of which no row is wanted are not opened, and values of
rows that are not wanted are neither looked up in the dictionary nor copied. All columns of a batch are decoded in one
go without the GIL.

What is not known here is left to pyarrow (``decodable``): nested columns, further encodings, 96-bit times.

Several row groups are decoded one behind the other into one batch; of those of which no row is wanted nothing is read.
What is numbers of a dictionary has one for all of them (``merged_texts``).

Limits: flat columns; several row groups are one batch. Thread: one at a time. Source: parquet-format.
Held by: tests/parquet/test_group_reader.py
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

import os
from typing import NamedTuple

import pyarrow as pa

from engine.parquet.chunk_pages cimport (
    CHUNK_CHECKSUM,
    CHUNK_ENDS,
    CHUNK_NO_MEMORY,
    CHUNK_OK,
    CHUNK_SEALED,
    CHUNK_TOO_LARGE,
    CHUNK_UNKNOWN,
    CHUNK_UNREADABLE,
    CODEC_NONE,
    CODEC_OTHER,
    CODEC_SNAPPY,
    SHAPE_BITS,
    SHAPE_CODES,
    SHAPE_TEXTS,
    Chunk,
    Scratch,
    copy_offsets,
    free_chunk,
    open_sealed,
    pack_bytes,
    reset_chunk,
)
from engine.parquet.fetched_bytes cimport FetchedBytes, Parts
from engine.parquet.chunk_values cimport begin_rows, count_mask, take_rows
from engine.parquet.merged_texts cimport MergedTexts, begin_texts, free_texts, merge_texts, renumber
from engine.parquet.page_kernels cimport PAGE_SLACK
from engine.parquet.page_rooms cimport give_back
from engine.records.batch_builder cimport BatchBuilder, padded
from engine.records.kept_rows cimport keep_into
from engine.records.opened_batch cimport OpenedBatch, opened_batch
from engine.records.row_mask cimport Mask, mask_from
from engine.records.side_by_side cimport SideBySide

#: a batch keeps no room for texts beyond this, and a window no more
cdef int64_t ROOM_KEPT_MAX = 8 << 20
#: texts of a column up to which row groups that are read later have the same dictionary
cdef int64_t LASTING_TEXTS_MAX = 256
cdef dict CODECS = {"UNCOMPRESSED": CODEC_NONE, "SNAPPY": CODEC_SNAPPY}
cdef dict OTHER_CODECS = {"ZSTD": "zstd", "GZIP": "gzip", "LZ4": "lz4_raw", "BROTLI": "brotli"}
cdef object LARGE = (pa.large_string(), pa.large_binary())


class StoredChunk(NamedTuple):
    """A column of a row group as the footer has it, and as what it is to be read."""

    position: int               # of its first page in the file
    end: int
    values: int
    size_max: int               # no page is larger
    codec: str                  # as the footer calls it
    shape: int                  # chunk_pages.Shape
    stored_width: int
    width: int
    is_nullable: bool
    is_integer: bool = False


@cython.final
cdef class GroupChunks:
    """Columns of a row group, from which readers of all threads begin.

    Args: chunks: StoredChunk by name, in the order of the reader's columns.
    """

    def __cinit__(self, dict chunks not None):
        cdef int32_t index
        cdef KnownChunk* column
        self.names = tuple(chunks)
        self._column_count = <int32_t>len(chunks)
        self._codecs = []
        self._allocate(1)
        for index, chunk in enumerate(chunks.values()):
            column = &self._columns[index]
            column.position, column.end, column.values = chunk.position, chunk.end, chunk.values
            column.size_max, column.codec = chunk.size_max, CODECS.get(chunk.codec, CODEC_OTHER)
            column.shape, column.stored_width, column.width = chunk.shape, chunk.stored_width, chunk.width
            column.is_nullable, column.is_integer = chunk.is_nullable, chunk.is_integer
            self._codecs.append(OTHER_CODECS[chunk.codec] if column.codec == CODEC_OTHER else None)

    cdef int _allocate(self, int32_t groups) except -1:
        free(self._columns)
        self._group_count = groups
        self._columns = <KnownChunk*>calloc(<size_t>max(1, self._column_count) * <size_t>groups, sizeof(KnownChunk))
        if self._columns == NULL:
            raise MemoryError("columns of a row group")
        return 0

    @staticmethod
    def of_run(list groups not None):
        """Return the columns of several row groups, which have the same ones: chunks of one, and its rows."""
        cdef GroupChunks run = GroupChunks({})
        cdef GroupChunks chunks
        cdef int32_t group
        run.names = (<GroupChunks?>groups[0][0]).names
        run._column_count = <int32_t>len(run.names)
        run._allocate(<int32_t>len(groups))
        run._rows = <int64_t*>calloc(<size_t>run._group_count, sizeof(int64_t))
        if run._rows == NULL:
            raise MemoryError("rows of row groups")
        for group in range(run._group_count):
            chunks, run._rows[group] = groups[group]
            if chunks.names != run.names or chunks._group_count != 1:
                raise ValueError(f"columns {chunks.names} of a row group beside {run.names}")
            memcpy(&run._columns[group * run._column_count], chunks._columns,
                   <size_t>run._column_count * sizeof(KnownChunk))
            run._codecs += chunks._codecs
        return run

    cdef bint has_codes(self) noexcept:
        """Whether there are numbers of texts among the columns."""
        cdef int32_t index
        for index in range(self._column_count):
            if self._columns[index].shape == SHAPE_CODES:
                return True
        return False

    cdef int64_t rows(self):
        cdef int32_t group
        cdef int64_t rows = 0
        for group in range(self._group_count):
            rows += self._rows[group]
        return rows

    def __dealloc__(self):
        free(self._columns)
        free(self._rows)


def known_codecs():
    """Return the names of codecs that are opened here, or by pyarrow for this module."""
    return frozenset((*CODECS, *(name for name, codec in OTHER_CODECS.items() if pa.Codec.is_available(codec))))


@cython.final
cdef class GroupReader:
    """Rows of a row group, from the first to the last. See the module's text."""

    def __cinit__(self, schema not None, int64_t window_bytes):
        cdef int32_t index
        self._schema, self._codecs = schema, {}
        self._column_count = <int32_t>len(schema)
        self._merged_texts = [None] * self._column_count
        self._columns = <Chunk*>calloc(max(1, self._column_count), sizeof(Chunk))
        self._places = <RunPlace*>calloc(max(1, self._column_count), sizeof(RunPlace))
        self._merged = <MergedTexts*>calloc(max(1, self._column_count), sizeof(MergedTexts))
        self._scratch = <Scratch*>malloc(sizeof(Scratch))
        if self._columns == NULL or self._places == NULL or self._merged == NULL or self._scratch == NULL:
            raise MemoryError("columns of a row group")
        for index in range(self._column_count):
            self._columns[index].scratch, self._columns[index].window_bytes = self._scratch, window_bytes

    def begin(self, source not None, GroupChunks chunks not None):
        """Begin with row groups of as many columns; what was left of other ones is forgotten."""
        cdef int descriptor = source if isinstance(source, int) else -1
        cdef const Parts* parts = NULL if isinstance(source, int) else (<FetchedBytes?>source).parts()
        cdef int32_t index
        if chunks._column_count != self._column_count:
            raise ValueError(f"{chunks._column_count} chunks for {self._column_count} columns")
        self._chunks, self._dictionaries = chunks, [None] * self._column_count
        self.rows_read = 0
        self._source = source
        for index in range(self._column_count):
            self._columns[index].descriptor, self._columns[index].parts = descriptor, parts
            self._places[index] = RunPlace(0, False, 0, 0, False)
            if self._merged[index].count > LASTING_TEXTS_MAX:
                begin_texts(&self._merged[index])
                self._merged_texts[index] = None
            begin_chunk(&self._columns[index], &chunks._columns[index])

    def __dealloc__(self):
        cdef int32_t index
        if self._columns != NULL:
            for index in range(self._column_count):
                free_chunk(&self._columns[index])
        if self._merged != NULL:
            for index in range(self._column_count):
                free_texts(&self._merged[index])
        free(self._columns)
        free(self._places)
        free(self._merged)
        free(self._scratch)

    def skip(self, int64_t rows):
        """Pass over rows, as if a mask kept none of them."""
        cdef int32_t index
        cdef Chunk* column
        cdef int64_t words = (rows + 63) // 64 + 1
        cdef uint64_t* nothing = <uint64_t*>calloc(<size_t>words, 8)
        if nothing == NULL:
            raise MemoryError("a mask of rows")
        try:
            self._take(rows, nothing, 0)
        finally:
            for index in range(self._column_count):
                self._columns[index].mask = NULL
            free(nothing)

    def read(self, int64_t rows, mask=None):
        """Return the rows that are kept of the next ones, at most 2**31 - 1 of them, as a batch of the schema."""
        cdef Mask words = mask_from(mask) if mask is not None else None
        return self._builder(rows, words).build()

    cdef OpenedBatch read_unshown(self, int64_t rows):
        return self._builder(rows, None).build_unshown()

    cdef BatchBuilder _builder(self, int64_t rows, Mask words):
        cdef BatchBuilder builder = BatchBuilder.begin(self._schema, rows if words is None else words.kept)
        self._read_into(builder, list(range(self._column_count)), rows, words)
        return builder

    def read_beside(self, int64_t rows, mask, SideBySide sides not None, batch not None, kept=None):
        """Return the rows of ``read`` and those of a batch as ``sides`` puts batches side by side, the batch first.

        Args: kept: the mask of the batch's rows that are meant, which are as many; None: all.
        """
        sides.settle([batch.schema, self._schema])
        return self.beside(rows, mask_from(mask) if mask is not None else None, sides, batch,
                           mask_from(kept) if kept is not None else None).record_batch()

    cdef OpenedBatch beside(self, int64_t rows, Mask words, SideBySide sides, object batch, Mask of_batch):
        cdef int64_t count = rows if words is None else words.kept
        cdef int32_t place = 0
        cdef bint is_kept = False
        cdef list of_side
        cdef list places
        cdef OpenedBatch opened
        cdef BatchBuilder builder
        if (batch.num_rows if of_batch is None else of_batch.kept) != count or (
                of_batch is not None and of_batch.rows != batch.num_rows):
            raise pa.ArrowInvalid("its columns do not have the same number of rows")
        places = [[-1] * batch.num_columns, [-1] * self._column_count]
        for side, column in sides.places:
            of_side = <list>places[side]
            of_side[column] = place
            is_kept = is_kept or side == 0
            place += 1
        builder = BatchBuilder.begin(sides.schema, count)
        if is_kept and (of_batch is None or of_batch.kept == of_batch.rows):
            opened = opened_batch(batch)
            for column, target in enumerate(<list>places[0]):
                if target >= 0:
                    builder.set_child(target, opened, column, 0)
        elif is_kept:
            keep_into(builder, <list>places[0], of_batch, batch)
        self._read_into(builder, <list>places[1], rows, words)
        return builder.build_unshown()

    cdef double width(self):
        cdef int32_t index
        cdef Chunk* column
        cdef double texts
        cdef double size = 0
        for index in range(self._column_count):
            column = &self._columns[index]
            size += 0.125 if column.kept_nulls else 0
            if column.shape == SHAPE_TEXTS:
                size += 4 + <double>column.texts_size / max(<int64_t>1, column.kept)
            elif column.shape == SHAPE_BITS:
                size += 0.125
            else:
                size += column.width
            if column.shape == SHAPE_CODES and column.dictionary_count:
                texts = 4.0 * column.dictionary_count + (<const int32_t*>column.offsets.data)[column.dictionary_count]
                size += texts / max(column.kept, column.dictionary_count)
        return size

    cdef int _read_into(self, BatchBuilder builder, list places, int64_t rows, Mask words) except -1:
        """Decode the rows that are kept of the next ones to columns of a batch."""
        cdef int64_t kept = rows if words is None else words.kept
        cdef int32_t index
        cdef uint8_t* target
        if words is not None and words.rows != rows:
            raise pa.ArrowInvalid(f"a mask of {words.rows} rows for {rows}")
        if self._column_count:
            target = builder.allocate(self._size_of_values(kept))
            for index in range(self._column_count):
                self._columns[index].target = target
                target += self._size_of_column(&self._columns[index], kept)
            self._take(rows, NULL if words is None or kept == rows else words.words, kept)
            for index in range(self._column_count):
                self._set_column(builder, places[index], index, kept)
        return 0

    cdef int64_t _size_of_column(self, Chunk* column, int64_t kept):
        if column.shape == SHAPE_TEXTS:
            return 0
        return padded(kept * column.width + PAGE_SLACK)

    cdef int64_t _size_of_values(self, int64_t kept):
        cdef int32_t index
        cdef int64_t size = 0
        for index in range(self._column_count):
            size += self._size_of_column(&self._columns[index], kept)
        return size

    cdef int _take(self, int64_t rows, const uint64_t* mask, int64_t kept) except -1:
        """Decode the next rows of all columns."""
        cdef int32_t index = 0
        cdef int status = CHUNK_OK
        cdef bint is_begun = False
        if self._chunks._rows != NULL and rows != self._chunks.rows():
            raise ValueError(f"{rows} rows of row groups of {self._chunks.rows()}, which are one batch")
        while index < self._column_count:
            with nogil:
                while index < self._column_count:
                    status = CHUNK_OK if is_begun else begin_rows(&self._columns[index], rows, mask, kept)
                    if status == CHUNK_OK:
                        status = self._take_column(index)
                    is_begun = status == CHUNK_SEALED
                    if status:
                        break
                    index += 1
            if status == CHUNK_SEALED:
                status = self._open(index)
            if status:
                self._raise(index, status)
        self.rows_read += rows
        return 0

    cdef int _take_column(self, int32_t index) noexcept nogil:
        cdef Chunk* column = &self._columns[index]
        cdef RunPlace* place = &self._places[index]
        cdef const uint64_t* mask = column.mask
        cdef int64_t rows
        cdef int status
        if self._chunks._rows == NULL:
            return take_rows(column)
        while place.group < self._chunks._group_count:
            if not place.is_entered:
                rows = self._chunks._rows[place.group]
                place.end += rows
                if mask != NULL and count_mask(mask, column.wanted_at, rows) == 0:
                    column.wanted_at = place.end
                    place.group += 1
                    continue
                place.kept, place.is_entered = column.kept, True
                begin_chunk(column, &self._chunks._columns[place.group * self._column_count + index])
                column.mask = mask
            column.wanted = place.end
            status = take_rows(column)
            if status:
                return status
            place.has_own_texts = self._chunks._group_count == 1 and column.dictionary_count > LASTING_TEXTS_MAX
            if column.shape == SHAPE_CODES and not place.has_own_texts:
                if not merge_texts(&self._merged[index], column.words.data, <const uint32_t*>column.offsets.data,
                                   column.dictionary_count):
                    return CHUNK_NO_MEMORY
                renumber(&self._merged[index], column.dictionary_count,
                         <int32_t*>column.target + place.kept, column.kept - place.kept)
            place.group += 1
            place.is_entered = False
        return CHUNK_OK

    cdef int _open(self, int32_t index) except -1:
        """Open a page of a codec that is pyarrow's; returns a ChunkStatus."""
        cdef Chunk* column = &self._columns[index]
        sealed = pa.foreign_buffer(<uintptr_t>column.sealed, column.sealed_size)
        name = self._chunks._codecs[self._places[index].group * self._column_count + index]
        codec = self._codecs.get(name)
        if codec is None:
            codec = self._codecs[name] = pa.Codec(name)
        opened = codec.decompress(sealed, column.opened_size)
        if opened.size != column.opened_size:
            raise pa.ArrowInvalid(f"{self._place(index)} has {opened.size} bytes, not {column.opened_size}")
        return open_sealed(column, <const uint8_t*><uintptr_t>opened.address)

    cdef int _set_column(self, BatchBuilder builder, int32_t place, int32_t index, int64_t kept) except -1:
        """Set a column of the batch to one that was decoded."""
        cdef Chunk* column = &self._columns[index]
        cdef uint8_t* validity = NULL
        cdef uint8_t* block
        cdef int64_t size
        if column.kept_nulls:
            size = (kept + 63) // 64 * 8
            validity = builder.allocate(size)
            memcpy(validity, column.validity.data, <size_t>size)
        if column.shape == SHAPE_CODES:
            builder.set_values(place, column.kept_nulls, validity, NULL, column.target)
            builder.set_dictionary(place, self._dictionary(index))
        elif column.shape == SHAPE_TEXTS:
            self._set_texts(builder, place, index, kept, validity)
        elif column.shape == SHAPE_BITS:
            block = builder.allocate((kept + 63) // 64 * 8)
            with nogil:
                pack_bytes(column.target, kept, block)
            builder.set_values(place, column.kept_nulls, validity, NULL, block)
        else:
            builder.set_values(place, column.kept_nulls, validity, NULL, column.target)
        return 0

    cdef int _set_texts(self, BatchBuilder builder, int32_t place, int32_t index, int64_t kept,
                        uint8_t* validity) except -1:
        cdef Chunk* column = &self._columns[index]
        cdef bint is_large = self._schema.field(index).type in LARGE
        cdef int64_t offset_bytes = padded((kept + 1) * (8 if is_large else 4))
        cdef uint8_t* offsets = builder.allocate(offset_bytes + padded(column.texts_size + PAGE_SLACK))
        cdef uint8_t* texts = offsets + offset_bytes
        with nogil:
            copy_offsets(<const int32_t*>column.ends.data, kept, is_large, offsets)
            if column.texts_size:
                memcpy(texts, column.texts.data, <size_t>column.texts_size)
            if column.texts.capacity > ROOM_KEPT_MAX:
                give_back(&column.texts)
        builder.set_values(place, column.kept_nulls, validity, offsets, texts)
        return 0

    cdef object _dictionary(self, int32_t index):
        """The texts of a coded column; there may be more of them after another page."""
        cdef Chunk* column = &self._columns[index]
        cdef MergedTexts* merged = &self._merged[index]
        cdef bint is_merged = self._chunks._rows != NULL and not self._places[index].has_own_texts
        cdef list dictionaries = self._merged_texts if is_merged else self._dictionaries
        cdef int64_t count = merged.count if is_merged else column.dictionary_count
        cdef const int32_t* ends = <const int32_t*>(merged.offsets.data if is_merged else column.offsets.data)
        cdef int64_t size
        cdef bint is_large
        known = dictionaries[index]
        if known is not None and len(known) == count:
            return known
        value_type = self._schema.field(index).type.value_type
        is_large = value_type in LARGE
        size = ends[count] if count else 0
        offsets = pa.allocate_buffer((count + 1) * (8 if is_large else 4))
        texts = pa.allocate_buffer(size + PAGE_SLACK)
        copy_offsets(ends + 1, count, is_large, <uint8_t*><uintptr_t>offsets.address)
        if size:
            memcpy(<void*><uintptr_t>texts.address, merged.words.data if is_merged else column.words.data,
                   <size_t>size)
        found = pa.Array.from_buffers(value_type, count, [None, offsets, texts], 0)
        dictionaries[index] = found
        return found

    cdef str _place(self, int32_t index):
        return f"column {self._schema.field(index).name!r}: the page at byte {self._columns[index].page_position}"

    cdef int _raise(self, int32_t index, int status) except -1:
        """Raise what a status says."""
        if status == CHUNK_NO_MEMORY:
            raise MemoryError(f"{self._place(index)} does not fit into memory")
        if status == CHUNK_UNREADABLE:
            raise OSError(self._columns[index].error, os.strerror(self._columns[index].error))
        reason = {
            CHUNK_ENDS: "is the last one, and there are rows beyond it",
            CHUNK_CHECKSUM: "is damaged: its checksum is not that of its header",
            CHUNK_UNKNOWN: "has an encoding that is not known",
            CHUNK_TOO_LARGE: "makes a batch of more than 2 GiB of text",
        }.get(status, "is damaged: its values are not what its header says")
        raise pa.ArrowInvalid(f"{self._place(index)} {reason}")


cdef void begin_chunk(Chunk* column, const KnownChunk* known) noexcept nogil:
    """Begin with what the footer says of a column."""
    reset_chunk(column)
    column.position, column.end, column.values_left = known.position, known.end, known.values
    column.size_max, column.codec = known.size_max, known.codec
    column.shape, column.stored_width, column.width = known.shape, known.stored_width, known.width
    column.is_nullable, column.is_integer = known.is_nullable, known.is_integer
