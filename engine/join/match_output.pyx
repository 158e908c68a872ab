"""MatchOutput: assembles the output batches of a join.

    MatchOutput(build, probe, columns, schema)       columns: (is build side, column index) in output order
    pairs(batch, pairs)                              probe columns gathered, build rows decoded
    unmatched_build(rows, count)                     build rows, nulls for the probe side
    keep_columns(rows, count)                        small build side: its columns stay Arrow arrays

Probe columns never become rows: where the pairs are a run of probe rows, each once (every row of a fact table finds its
one dimension row), the columns are passed by reference or sliced; else they are taken by index. A slice is at least
half of its batch, all of which stays in memory with it. Build columns are decoded from the row pointers; a
small build side keeps its columns as Arrow arrays and gathers them by the row number that each row carries in its link,
which is cheaper when the same rows come out again and again.

The output of one call is bounded by that of ProbeMatches.

Held by: tests/join/test_hash_join.py
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uintptr_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memset

import pyarrow as pa

from engine.join.entry_pages cimport LINK_NUMBER_SHIFT, row_link
from engine.join.join_side cimport JoinSide
from engine.join.probe_matches cimport OUTPUT_BYTES, PairRun, ProbeMatches
from engine.records.arrow_batch cimport KIND_BYTES, ArrowBatch
from engine.records.batch_builder cimport BatchBuilder
from engine.records.column_take cimport ColumnTake
from engine.records.outside_values cimport outside_bytes, values_lie_outside
from engine.records.row_columns cimport decode_into
from engine.records.text_take cimport take_texts

from engine.records.arrow_functions import pc
from engine.records.text_gather import gathered_texts
from engine.records.text_take import taken

cdef object INT32 = pa.int32()
cdef object INT64 = pa.int64()


cdef object index_array(const int64_t* values, int64_t count):
    cdef object buffer = pa.allocate_buffer(count * sizeof(int64_t))
    memcpy(<void*><uintptr_t>buffer.address, values, count * sizeof(int64_t))
    return pa.Array.from_buffers(INT64, count, [None, buffer], 0)


cdef object number_array(const int32_t* values, int64_t count):
    cdef object buffer = pa.allocate_buffer(count * sizeof(int32_t))
    memcpy(<void*><uintptr_t>buffer.address, values, count * sizeof(int32_t))
    return pa.Array.from_buffers(INT32, count, [None, buffer], 0)


cdef object _taken(object column, object numbers):
    texts = gathered_texts(column, numbers)
    return pc.take(column, numbers) if texts is None else texts


@cython.final
cdef class MatchOutput:
    """Column mapping of a join's output."""

    def __cinit__(self, JoinSide build not None, JoinSide probe not None, columns, schema):
        cdef int32_t position
        cdef list build_columns = sorted({column for is_build, column in columns if is_build})
        self._build = build
        self._probe = probe
        self.schema = schema
        self._probe_columns = sorted({column for is_build, column in columns if not is_build})
        self._columns = [
            (is_build, (build_columns if is_build else self._probe_columns).index(column))
            for is_build, column in columns
        ]
        self._build_column_count = len(build_columns)
        self._build_schema = pa.schema([build.schema.field(column) for column in build_columns])
        self._is_direct = self._can_be_built(columns, build_columns)
        self._known_schema = None
        self._take = ColumnTake(len(columns))
        self._places = <int32_t*>malloc((len(build_columns) + 1) * sizeof(int32_t))
        if self._places == NULL:
            raise MemoryError("columns of a join's output")
        for position, (is_build, side_position) in enumerate(self._columns):
            if is_build:
                self._places[side_position] = position
        self._build_columns = <int32_t*>malloc((2 * len(build_columns) + 1) * sizeof(int32_t))
        if self._build_columns == NULL:
            raise MemoryError("columns of a join's output")
        for position in range(self._build_column_count):
            self._build_columns[position] = build_columns[position]
            if build.codec.kinds[build_columns[position]] >= KIND_BYTES:
                self._build_columns[self._build_column_count + 1 + self._variable_count] = (
                    build.codec.slots[build_columns[position]])
                self._variable_count += 1

    # Whether each build column comes out once and as the type it has, so that batches need no check of Arrow's.
    cdef bint _can_be_built(self, columns, list build_columns):
        once = sum(is_build for is_build, _ in columns) == len(build_columns)
        return once and all(
            not is_build or self._build.codec.schema.field(column).type == field.type
            for (is_build, column), field in zip(columns, self.schema, strict=True)
        )

    # Whether columns of a batch are of the types that the output says.
    cdef bint _fits(self, object batch):
        schema = batch.schema
        if schema is self._known_schema or (self._known_schema is not None and schema.equals(self._known_schema)):
            self._known_schema = schema
            return True
        for (is_build, position), field in zip(self._columns, self.schema, strict=True):
            if not is_build and schema.field(self._probe_columns[position]).type != field.type:
                return False
        self._known_schema = schema
        return True

    def __dealloc__(self):
        free(self._places)
        free(self._build_columns)
        free(self._numbers)

    cdef int keep_columns(self, uint8_t** rows, int64_t count) except -1:
        # Values outside stay there, one alone too: a column of them would be all of them in memory.
        if self._build_column_count == 0 or self.rows_within(rows, count) < count:
            return 0
        if self._variable_count and values_lie_outside() and outside_bytes(
                rows[0], self._build_columns + self._build_column_count + 1, self._variable_count) > OUTPUT_BYTES:
            return 0
        decoded = self._build.codec.decode(rows, count, self._build_columns, self._build_column_count)
        self._numbered = decoded.columns
        self._numbered_batch = ArrowBatch.open(decoded)
        return 0

    cdef bint has_build_column(self, int32_t column) noexcept:
        cdef int32_t position
        for position in range(self._build_column_count):
            if self._build_columns[position] == column:
                return True
        return False

    cdef int share_columns(self, MatchOutput other) except -1:
        self._numbered = other._numbered
        self._numbered_batch = other._numbered_batch
        return 0

    cdef int64_t rows_within(self, uint8_t** rows, int64_t count) noexcept nogil:
        cdef int64_t left = OUTPUT_BYTES
        cdef int64_t row
        if self._variable_count == 0 or not values_lie_outside():
            return count
        for row in range(count):
            if rows[row] != NULL:
                left -= outside_bytes(rows[row], self._build_columns + self._build_column_count + 1,
                                      self._variable_count)
            if left < 0 and row > 0:
                return row
        return count

    cdef int64_t pairs_within(self, const PairRun* pairs, int64_t begin) noexcept nogil:
        return self.rows_within(pairs.build + begin, pairs.count - begin)

    def pieces(self, ArrowBatch batch not None, ProbeMatches matches not None):
        """Yield the output of the pairs: one batch, or several where build rows have wide values outside."""
        cdef int64_t begin = 0
        cdef int64_t count
        while begin < matches.pairs.count:
            count = self.pairs_within(&matches.pairs, begin)
            yield self.piece(batch, &matches.pairs, begin, count)
            begin += count

    cdef object piece(self, ArrowBatch batch, const PairRun* pairs, int64_t begin, int64_t count):
        cdef PairRun piece
        cdef int64_t index
        if count == pairs.count:
            return self.pairs(batch, pairs)
        piece.rows = pairs.rows + begin
        piece.build = pairs.build + begin
        piece.count = count
        piece.contiguous = pairs.contiguous
        piece.null_count = 0
        for index in range(count):
            piece.null_count += piece.build[index] == NULL
        return self.pairs(batch, &piece)

    cdef object pairs(self, ArrowBatch batch, const PairRun* pairs):
        cdef int64_t count = pairs.count
        cdef BatchBuilder builder
        if not self._is_direct or not self._fits(batch.batch):
            return self._assemble(self._probe_arrays(batch.batch, pairs),
                                  self._build_arrays(pairs.build, count, pairs.null_count))
        builder = BatchBuilder.begin(self.schema, count)
        self._set_probe(builder, batch, pairs)
        if self._build_column_count == 0:
            return builder.build_like(batch.batch)
        if self._numbered is not None and pairs.null_count == 0:
            self._set_numbered(builder, self._numbers_of(pairs.build, count), count)
        elif self._numbered is not None or pairs.null_count == count:
            self._set_arrays(builder, self._build_arrays(pairs.build, count, pairs.null_count))
        else:
            decode_into(&self._build.codec._shape, self._build_schema, pairs.build, count, self._build_columns,
                        self._build_column_count, builder, self._places)
        return builder.build_like(batch.batch)

    # The probe columns: by reference where the pairs are a run, else taken.
    cdef int _set_probe(self, BatchBuilder builder, ArrowBatch batch, const PairRun* pairs) except -1:
        cdef bint is_run = pairs.contiguous and 2 * pairs.count >= batch.row_count
        cdef int32_t place, position, column
        cdef bint is_build
        cdef object indices = None
        for place, (is_build, position) in enumerate(self._columns):
            if is_build:
                continue
            column = self._probe_columns[position]
            if is_run:
                builder.set_column(place, batch, column, pairs.rows[0])
            elif not self._take.add(place, &batch.columns[column]):
                if (batch.outside == NULL or batch.outside[column] == NULL) and take_texts(
                        builder, place, &batch.columns[column], batch.row_count, pairs.rows, NULL, pairs.count):
                    continue
                if indices is None:
                    indices = index_array(pairs.rows, pairs.count)
                builder.set_array(place, taken(batch.batch.column(column), indices))
        return self._take.take(builder, pairs.rows, NULL, pairs.count)

    # The build columns at numbers of kept rows.
    cdef int _set_numbered(self, BatchBuilder builder, const int32_t* numbers, int64_t count) except -1:
        cdef ArrowBatch kept = self._numbered_batch
        cdef int32_t position
        cdef object array = None
        for position in range(self._build_column_count):
            if self._take.add(self._places[position], &kept.columns[position]) or take_texts(
                    builder, self._places[position], &kept.columns[position], kept.row_count, NULL, numbers, count):
                continue
            if array is None:
                array = number_array(numbers, count)
            builder.set_array(self._places[position], _taken(self._numbered[position], array))
        return self._take.take(builder, NULL, numbers, count)

    cdef int _set_arrays(self, BatchBuilder builder, list arrays) except -1:
        cdef int32_t position
        for position in range(self._build_column_count):
            builder.set_array(self._places[position], arrays[position])
        return 0

    cdef bint is_numbered(self) noexcept:
        return self._numbered is not None

    cdef int32_t* numbers(self, int64_t count) except NULL:
        cdef int32_t* room
        if count > self._numbers_max:
            room = <int32_t*>realloc(self._numbers, <size_t>count * sizeof(int32_t))
            if room == NULL:
                raise MemoryError("numbers of build rows")
            self._numbers, self._numbers_max = room, count
        return self._numbers

    cdef object numbered(self, ArrowBatch batch, int64_t start, int64_t count, const int32_t* numbers):
        cdef PairRun whole
        cdef BatchBuilder builder
        whole.rows = &start
        whole.count = count
        whole.contiguous = True
        if not self._is_direct or not self._fits(batch.batch):
            values = number_array(numbers, count)
            return self._assemble(self._probe_arrays(batch.batch, &whole),
                                  [_taken(column, values) for column in self._numbered])
        builder = BatchBuilder.begin(self.schema, count)
        self._set_probe(builder, batch, &whole)
        self._set_numbered(builder, numbers, count)
        return builder.build_like(batch.batch)

    cdef object unmatched_build(self, uint8_t** rows, int64_t count):
        cdef list nulls = [pa.nulls(count, self._probe.schema.field(column).type) for column in self._probe_columns]
        return self._assemble(nulls, self._decoded(rows, count))

    cdef list _probe_arrays(self, object batch, const PairRun* pairs):
        cdef int64_t count = pairs.count
        if pairs.contiguous and 2 * count >= batch.num_rows:
            if count == batch.num_rows:
                return [batch.column(column) for column in self._probe_columns]
            return [batch.column(column).slice(pairs.rows[0], count) for column in self._probe_columns]
        if not self._probe_columns:
            return []
        indices = index_array(pairs.rows, count)
        return [taken(batch.column(column), indices) for column in self._probe_columns]

    cdef list _build_arrays(self, uint8_t** rows, int64_t count, int64_t null_count):
        cdef int32_t position
        if null_count == count:
            return [
                pa.nulls(count, self._build.schema.field(self._build_columns[position]).type)
                for position in range(self._build_column_count)
            ]
        if self._numbered is None:
            return self._decoded(rows, count)
        if null_count:
            numbers = self._numbers_or_null(rows, count, null_count)
        else:
            numbers = number_array(self._numbers_of(rows, count), count)
        return [_taken(column, numbers) for column in self._numbered]

    cdef list _decoded(self, uint8_t** rows, int64_t count):
        if self._build_column_count == 0:
            return []
        return self._build.codec.decode(rows, count, self._build_columns, self._build_column_count).columns

    cdef const int32_t* _numbers_of(self, uint8_t** rows, int64_t count) except NULL:
        cdef int32_t* numbers = self.numbers(count)
        cdef int64_t index
        with nogil:
            for index in range(count):
                numbers[index] = <int32_t>(row_link(rows[index])[0] >> LINK_NUMBER_SHIFT)
        return numbers

    cdef object _numbers_or_null(self, uint8_t** rows, int64_t count, int64_t null_count):
        cdef object values = pa.allocate_buffer(count * sizeof(int32_t))
        cdef int32_t* numbers = <int32_t*><uintptr_t>values.address
        cdef object validity = pa.allocate_buffer((count + 7) // 8)
        cdef uint8_t* bits = <uint8_t*><uintptr_t>validity.address
        cdef int64_t index
        with nogil:
            memset(bits, 0, (count + 7) // 8)
            for index in range(count):
                numbers[index] = 0
                if rows[index] != NULL:
                    numbers[index] = <int32_t>(row_link(rows[index])[0] >> LINK_NUMBER_SHIFT)
                    bits[index >> 3] |= 1 << (index & 7)
        return pa.Array.from_buffers(INT32, count, [validity, values], null_count)

    cdef object _assemble(self, list probe_arrays, list build_arrays):
        cdef list arrays = [
            (build_arrays if is_build else probe_arrays)[position] for is_build, position in self._columns
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)
