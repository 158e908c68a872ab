"""JoinRoles: what depends on which side of a join is built: sides, table, output, condition, what is emitted.

    roles = JoinRoles(spec, left, right, build_is_left, pool)          ``spec`` is the join, a side has its codec
    roles.keep_columns(level)                   after the table is filled

A join has these roles, and the reverse of them once a spilled pair is better built from its other file. The table takes
pages only while it is filled, so roles that rest cost scratch memory alone.

A small build side, or the distinct rows of a dictionary table, are kept as Arrow columns as well, where the pool has as
much to spare: gathering them beats decoding the same rows over and over.

Held by: tests/join/test_hash_join_spill.py
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from engine.join.entry_pages cimport LINK_NUMBER_SHIFT, LINK_SIZE, row_link
from engine.join.join_side cimport JoinSide
from engine.join.match_output cimport MatchOutput
from engine.join.pair_filter cimport PairFilter
from engine.join.partition_set cimport PartitionSet, ResidentCursor
from engine.join.replicated_hashes cimport ReplicatedHashes
from engine.join.table_choice cimport TableChoice
from engine.memory.page_pool cimport PagePool
from engine.records.arrow_batch cimport KIND_INT8, KIND_UINT64

cdef enum:
    KEPT_ROWS_MAX = 1 << 16             # row numbers have 16 bits
    KEPT_BYTES_MAX = 4 << 20


@cython.final
cdef class JoinRoles:
    """Build and probe of one join; the methods are for the join (see the .pxd)."""

    def __cinit__(self, spec, JoinSide left not None, JoinSide right not None, bint build_is_left,
                  PagePool pool not None):
        emitted = spec.emission(build_is_left=build_is_left)
        self.emits.pairs = emitted.pairs
        self.emits.matched_probe = emitted.matched_probe
        self.emits.matched_build = emitted.matched_build
        self.emits.unmatched_probe = emitted.unmatched_probe
        self.emits.unmatched_build = emitted.unmatched_build
        self.build_is_left = build_is_left
        self.build, self.probe = (left, right) if build_is_left else (right, left)
        self._pool = pool
        self.tables = TableChoice(pool, self.build, self.probe)
        columns = [self._source_of((side == 0) == build_is_left, column) for side, column in spec.output]
        self.output = MatchOutput(self.build, self.probe, columns, spec.output_schema)
        if spec.condition is not None:
            self.condition = PairFilter(self.build, self.probe, build_is_left, spec.condition)
        if spec.replicated is not None and spec.copies_are_left == build_is_left:
            self.tables.copies = ReplicatedHashes(spec.replicated.hashes)
        elif spec.replicated is not None:
            self.probe_copies = ReplicatedHashes(spec.replicated.hashes)

    cdef bint marks_build(self) noexcept:
        return self.emits.unmatched_build or self.emits.matched_build

    cdef bint asks_for_presence(self) noexcept:
        return not self.emits.pairs and not self.marks_build() and self.condition is None and self.build.key_count > 0

    # Where an output column is taken from: the key of a pair, if it is a number, from the probe batch, which has it.
    cdef tuple _source_of(self, bint is_build, int32_t column):
        if (is_build and self.build.key_count == 1 and column == self.build.keys[0] and not self.emits.unmatched_build
                and not self.emits.unmatched_probe and KIND_INT8 <= self.build.codec.kinds[column] <= KIND_UINT64
                and self.build.codec.kinds[column] == self.probe.codec.kinds[self.probe.keys[0]]):
            return False, self.probe.keys[0]
        return is_build, column

    cdef bint may_be_dictionary(self) noexcept:
        cdef int32_t key
        if self.build.key_count != 1 or self.marks_build() or self.tables.copies is not None:
            return False
        key = self.build.keys[0]
        return not self.output.has_build_column(key) and (
            self.condition is None or not self.condition.columns.has_build_column(key))

    cdef int keep_columns(self, PartitionSet level) except -1:
        cdef int64_t count, index
        cdef int64_t size_bytes = 0
        cdef uint8_t** rows
        count = self.tables.table.distinct_rows(&rows)
        if count:
            with nogil:
                for index in range(count):
                    row_link(rows[index])[0] = <uint64_t>index << LINK_NUMBER_SHIFT
            return self._keep_rows(rows, count)
        count = self.tables.table.row_count
        for index in range(level.fan_out):
            size_bytes += level._entries[index].row_bytes
        if (count == 0 or count > KEPT_ROWS_MAX or size_bytes > KEPT_BYTES_MAX
                or size_bytes > self._pool.pages_free() * self._pool.page_size):
            return 0
        rows = <uint8_t**>malloc(count * sizeof(uint8_t*))
        if rows == NULL:
            raise MemoryError("row addresses of a small build side")
        try:
            self._number_rows(level, rows, count)
            self._keep_rows(rows, count)
        finally:
            free(rows)
        return 0

    cdef int _keep_rows(self, uint8_t** rows, int64_t count) except -1:
        self.output.keep_columns(rows, count)
        if self.condition is not None:
            self.condition.columns.keep_columns(rows, count)
        return 0

    cdef int64_t block_count(self, object pair, int64_t row_limit) except -1:
        cdef int64_t rows = pair.build_rows
        cdef int64_t pages = (pair.build_bytes + LINK_SIZE * rows) // self._pool.page_size
        if row_limit >= 0:
            return (rows + row_limit - 1) // row_limit
        pages += pages // 16 + 2 + self.tables.pages_needed(rows)
        return (pages + self._pool.page_limit - 1) // self._pool.page_limit

    cdef int _number_rows(self, PartitionSet level, uint8_t** rows, int64_t capacity) except -1:
        cdef ResidentCursor cursor
        cdef int64_t index, count
        memset(&cursor, 0, sizeof(cursor))
        with nogil:
            count = level.next_resident(&cursor, rows, capacity)
            for index in range(count):
                row_link(rows[index])[0] |= <uint64_t>index << LINK_NUMBER_SHIFT
        return 0
