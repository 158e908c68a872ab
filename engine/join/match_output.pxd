# MatchOutput: assembles output batches from probe columns and build rows.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from engine.join.join_side cimport JoinSide
from engine.join.probe_matches cimport PairRun
from engine.records.arrow_batch cimport ArrowBatch
from engine.records.batch_builder cimport BatchBuilder
from engine.records.column_take cimport ColumnTake


@cython.final
cdef class MatchOutput:
    cdef JoinSide _build
    cdef JoinSide _probe
    cdef readonly object schema          # of the output
    cdef list _columns                   # (is_build, position among the needed columns of that side) in output order
    cdef list _probe_columns             # needed column indexes of the probe schema
    cdef int32_t _variable_count        # build columns whose values may lie outside; their slots stand behind
    cdef int32_t* _build_columns         # needed column indexes of the build schema
    cdef int32_t _build_column_count
    cdef int32_t* _places               # of the build columns in the output
    cdef object _build_schema
    cdef bint _is_direct                # batches are built natively
    cdef object _known_schema           # of probe batches whose columns have the output's types
    cdef ColumnTake _take                # of one output after the other
    cdef ArrowBatch _numbered_batch      # the columns below, opened
    cdef int32_t* _numbers               # of build rows that are gathered
    cdef int64_t _numbers_max            # for which there is room
    cdef list _numbered                  # build columns as Arrow arrays, gathered by row number; None: decode rows

    # Keep the columns of these build rows as Arrow arrays; row i must carry number i in its link.
    cdef int keep_columns(self, uint8_t** rows, int64_t count) except -1
    # Whether the output has a column of build rows.
    cdef bint has_build_column(self, int32_t column) noexcept
    # Use the columns that another output over the same build rows keeps.
    cdef int share_columns(self, MatchOutput other) except -1
    # How many pairs from begin on are one output: at most OUTPUT_BYTES of values that lie outside, at least one pair.
    cdef int64_t pairs_within(self, const PairRun* pairs, int64_t begin) noexcept nogil
    # The output of some of the pairs.
    cdef object piece(self, ArrowBatch batch, const PairRun* pairs, int64_t begin, int64_t count)
    # The same of build rows.
    cdef int64_t rows_within(self, uint8_t** rows, int64_t count) noexcept nogil
    # Pairs of rows of this batch as an output batch.
    cdef object pairs(self, ArrowBatch batch, const PairRun* pairs)
    # Whether build columns are gathered by the numbers of rows.
    cdef bint is_numbered(self) noexcept
    # Room for the numbers of so many build rows, until it is asked for again.
    cdef int32_t* numbers(self, int64_t count) except NULL
    # The output of rows start.. of the batch, at least half of it, each with one build row, by their numbers.
    cdef object numbered(self, ArrowBatch batch, int64_t start, int64_t count, const int32_t* numbers)
    # Build rows with nulls for the probe side.
    cdef object unmatched_build(self, uint8_t** rows, int64_t count)

    cdef bint _can_be_built(self, columns, list build_columns)
    cdef bint _fits(self, object batch)
    cdef int _set_probe(self, BatchBuilder builder, ArrowBatch batch, const PairRun* pairs) except -1
    cdef int _set_numbered(self, BatchBuilder builder, const int32_t* numbers, int64_t count) except -1
    cdef int _set_arrays(self, BatchBuilder builder, list arrays) except -1
    cdef list _probe_arrays(self, object batch, const PairRun* pairs)
    cdef list _build_arrays(self, uint8_t** rows, int64_t count, int64_t null_count)
    cdef list _decoded(self, uint8_t** rows, int64_t count)
    cdef const int32_t* _numbers_of(self, uint8_t** rows, int64_t count) except NULL
    cdef object _numbers_or_null(self, uint8_t** rows, int64_t count, int64_t null_count)
    cdef object _assemble(self, list probe_arrays, list build_arrays)

# int64 array of these values.
cdef object index_array(const int64_t* values, int64_t count)
