# Columns of a row group, for steps that look at several of them: see group_reader.pyx.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from engine.parquet.chunk_pages cimport Chunk, Scratch
from engine.parquet.merged_texts cimport MergedTexts
from engine.records.batch_builder cimport BatchBuilder
from engine.records.opened_batch cimport OpenedBatch
from engine.records.row_mask cimport Mask
from engine.records.side_by_side cimport SideBySide


# What the footer says of a column of a row group.
cdef struct KnownChunk:
    int64_t position            # of its first page in the file
    int64_t end
    int64_t values
    int64_t size_max            # no page is larger
    int32_t codec               # Codec
    int32_t shape               # Shape
    int32_t stored_width
    int32_t width
    bint is_nullable
    bint is_integer


@cython.final
cdef class GroupChunks:
    cdef readonly tuple names
    cdef int32_t _column_count, _group_count
    cdef KnownChunk* _columns       # row group by row group
    cdef int64_t* _rows             # of each row group; NULL: there is one
    cdef list _codecs               # names of those that are pyarrow's

    cdef int _allocate(self, int32_t groups) except -1
    cdef int64_t rows(self)
    cdef bint has_codes(self) noexcept


# Where a column is among the row groups of a batch.
cdef struct RunPlace:
    int32_t group
    bint is_entered
    int64_t end                 # of the row group, in rows of the batch
    int64_t kept                # rows of those before it
    bint has_own_texts          # codes are of the dictionary of the only row group, which is large


@cython.final
cdef class GroupReader:
    cdef object _schema
    cdef object _source             # what the row group is read from
    cdef dict _codecs               # those that are pyarrow's, by name
    cdef GroupChunks _chunks        # the row groups that are read
    cdef list _dictionaries         # of coded columns: the texts of a row group of its own
    cdef list _merged_texts         # and those that are merged, as far as they have become an array
    cdef Chunk* _columns
    cdef RunPlace* _places          # of each column, where there are several row groups
    cdef MergedTexts* _merged       # of coded columns, likewise; a few texts last
    cdef Scratch* _scratch
    cdef int32_t _column_count
    cdef readonly int64_t rows_read

    # The rows of ``read`` without a mask, for kernels alone.
    cdef OpenedBatch read_unshown(self, int64_t rows)
    cdef BatchBuilder _builder(self, int64_t rows, Mask words)
    # read_beside, for sides that are settled.
    cdef OpenedBatch beside(self, int64_t rows, Mask words, SideBySide sides, object batch, Mask of_batch)
    # Bytes of a row, measured at the last read; of a dictionary at most the values that the rows can use.
    cdef double width(self)
    cdef int _read_into(self, BatchBuilder builder, list places, int64_t rows, Mask words) except -1
    cdef int64_t _size_of_column(self, Chunk* column, int64_t kept)
    cdef int64_t _size_of_values(self, int64_t kept)
    cdef int _take(self, int64_t rows, const uint64_t* mask, int64_t kept) except -1
    # Decode the rows of a column that begin_rows has begun, in all row groups; returns a ChunkStatus.
    cdef int _take_column(self, int32_t index) noexcept nogil
    cdef int _open(self, int32_t index) except -1
    cdef int _set_column(self, BatchBuilder builder, int32_t place, int32_t index, int64_t kept) except -1
    cdef int _set_texts(self, BatchBuilder builder, int32_t place, int32_t index, int64_t kept,
                        uint8_t* validity) except -1
    cdef object _dictionary(self, int32_t index)
    cdef str _place(self, int32_t index)
    cdef int _raise(self, int32_t index, int status) except -1
