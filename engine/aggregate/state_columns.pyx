"""GroupScan: the groups of one store of a group table, or of all, as Arrow batches, keys and then states or results.

    for batch in GroupScan(table, store, partition, schema, columns, max_rows, max_bytes): ...

    group addresses ──► key rows ──► decode_into ──► key columns                           ─┐
                    └─► one kernel per column: values, validity (from the flags) ──► columns ─┴─► BatchBuilder

A column is a state as it is, or an average made of a sum and a count: float64, of an exact sum rounded once; or
a statistic made of moments (``moment_kernels``).

Invariants: the table is not changed while a scan is read. Groups that no row was put into are left out. A batch has at
most max_rows rows and about max_bytes bytes of records, never less than one row.

Held by: tests/aggregate/test_hash_aggregate.py
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from engine.accumulators.means cimport mean_of
from engine.accumulators.moment_kernels cimport VARIANCE, gather_statistics
from engine.accumulators.state_kernels cimport FLAG_OUTSIDE, FLAG_VALUE, StateField
from engine.aggregate.group_store cimport GROUP_HASH, RecordHeader, store_next_group
from engine.aggregate.group_table cimport GroupTable
from engine.aggregate.outside_states cimport read_values
from engine.aggregate.value_states cimport ValueSlot, value_bytes
from engine.records.arrow_batch cimport KIND_BOOL, KIND_LARGE_BYTES
from engine.records.batch_builder cimport BatchBuilder, padded
from engine.records.number_types cimport Offset
from engine.records.outside_values cimport values_lie_outside
from engine.records.row_codec cimport RowCodec
from engine.records.row_columns cimport decode_into

from engine.errors import DataError

cdef enum:
    BRIEF_GROUPS = 2048             # are looked through in less time than it takes to give the GIL away and get it back


cdef int64_t gather_validity(uint8_t** groups, int64_t count, int32_t flag, uint8_t* bits) noexcept nogil:
    """Set the bit of each group whose flag is set; returns the number of nulls."""
    cdef int64_t index
    cdef int64_t nulls = 0
    memset(bits, 0, <size_t> ((count + 7) >> 3))
    for index in range(count):
        if groups[index][flag] & FLAG_VALUE:
            bits[index >> 3] |= <uint8_t> (1 << (index & 7))
        else:
            nulls += 1
    return nulls


cdef void gather_fixed(uint8_t** groups, int64_t count, const StateField* field, uint8_t* values) noexcept nogil:
    cdef int64_t index
    if field.kind == KIND_BOOL:
        memset(values, 0, <size_t> ((count + 7) >> 3))
        for index in range(count):
            values[index >> 3] |= <uint8_t> ((groups[index][field.offset] & 1) << (index & 7))
    elif field.width == 8:
        for index in range(count):
            (<uint64_t*> values)[index] = (<uint64_t*> (groups[index] + field.offset))[0]
    else:
        for index in range(count):
            memcpy(values + index * field.width, groups[index] + field.offset, <size_t> field.width)


cdef int64_t sum_of_sizes(uint8_t** groups, int64_t count, const StateField* field) noexcept nogil:
    cdef bint looks_outside = values_lie_outside()
    cdef int64_t index
    cdef int64_t total = 0
    for index in range(count):
        if groups[index][field.flag] & FLAG_VALUE:
            total += value_bytes(groups[index], field, looks_outside)
    return total


cdef inline void copy_values(uint8_t** groups, int64_t count, const StateField* field, Offset* offsets, uint8_t* values,
                             bint looks_outside) noexcept nogil:
    """Write offsets and values, with room for those that lie outside."""
    cdef int64_t index
    cdef int64_t position = 0
    cdef const ValueSlot* slot
    for index in range(count):
        offsets[index] = <Offset> position
        if groups[index][field.flag] & FLAG_VALUE:
            slot = <const ValueSlot*> (groups[index] + field.offset)
            if not (looks_outside and groups[index][field.flag] & FLAG_OUTSIDE):
                memcpy(values + position, slot.data, <size_t> slot.size)
            position += value_bytes(groups[index], field, looks_outside)
    offsets[count] = <Offset> position


cdef void gather_values(uint8_t** groups, int64_t count, const StateField* field, uint8_t* offsets,
                        uint8_t* values) noexcept nogil:
    cdef bint looks_outside = values_lie_outside()
    if field.kind == KIND_LARGE_BYTES:
        copy_values(groups, count, field, <int64_t*> offsets, values, looks_outside)
    else:
        copy_values(groups, count, field, <int32_t*> offsets, values, looks_outside)


cdef void gather_means(uint8_t** groups, int64_t count, const StateField* total, const StateField* counted,
                       double* values) noexcept nogil:
    """Averages of groups; those without input are written as 0 and null by their flag."""
    cdef int64_t index, rows
    cdef uint8_t* group
    for index in range(count):
        group = groups[index]
        rows = max((<int64_t*> (group + counted.offset))[0], <int64_t> 1)
        values[index] = mean_of(group + total.offset, total.kind, rows, total.scale)


@cython.final
cdef class GroupScan:
    """Args:
        store: -1: all of them, in order.
        partition: only its groups, -1: all of the store.
        schema: of the batches.
        columns: for each column behind the keys (state, -1), (sum state, count state) of an average, (moments,
            Statistic).
        max_rows, max_bytes: 1 or more.
    """

    def __cinit__(self, GroupTable table not None, int32_t store, int32_t partition, schema, list columns not None,
                  int64_t max_rows, int64_t max_bytes):
        cdef int64_t groups = table.stores[store].group_count if store >= 0 else table.group_count
        self._table = table
        self._store = max(store, 0)
        self._end = store + 1 if store >= 0 else table.store_count
        self._partition = partition
        self._schema = schema
        self._columns = columns
        self._capacity = max(min(max_rows, groups), <int64_t> 1)
        self._max_bytes = max_bytes
        self._groups = <uint8_t**> malloc(<size_t> self._capacity * sizeof(uint8_t*))
        self._keys = <uint8_t**> malloc(<size_t> self._capacity * sizeof(uint8_t*))
        if self._groups == NULL or self._keys == NULL:
            raise MemoryError()

    def __dealloc__(self):
        free(self._groups)
        free(self._keys)

    def __iter__(self):
        return self

    def __next__(self):
        cdef int64_t count = 0
        if self._store < self._end and self._capacity <= BRIEF_GROUPS:
            count = self._collect()
        elif self._store < self._end:
            with nogil:
                count = self._collect()
        if count == 0:
            raise StopIteration
        self.group_count += count
        return self._to_batch(count)

    cdef int64_t _collect(self) noexcept nogil:
        """Find the groups of the next batch."""
        cdef int64_t count = 0
        cdef int64_t used = 0
        cdef int64_t size, page_index, offset
        cdef uint8_t* group
        self._looks_outside = values_lie_outside()
        while count < self._capacity:
            page_index = self._page_index
            offset = self._offset
            group = store_next_group(&self._table.stores[self._store], &page_index, &offset)
            if group == NULL:
                self._store += 1
                self._page_index = self._offset = 0
                if self._store == self._end:
                    break
                continue
            if self._table.has_rows(group) and (
                    self._partition < 0
                    or self._table.partition_of((<uint64_t*> (group + GROUP_HASH))[0]) == self._partition):
                size = self._size_of(group)
                if count > 0 and used + size > self._max_bytes:
                    break
                used += size
                self._groups[count] = group
                self._keys[count] = group + self._table.key_offset
                count += 1
            self._page_index = page_index
            self._offset = offset
        return count

    cdef int64_t _size_of(self, const uint8_t* group) noexcept nogil:
        """Bytes of a group, and of its keys and values outside."""
        cdef int64_t size = (<const RecordHeader*> group).size
        cdef int32_t index
        for index in range(self._table.field_count):
            if self._table.fields[index].is_variable and group[self._table.fields[index].flag] & FLAG_VALUE:
                size += value_bytes(group, &self._table.fields[index], self._looks_outside)
        if self._table._key_count > 0:
            size += self._table._codec.bytes_outside(group + self._table.key_offset)
        return size

    cdef object _to_batch(self, int64_t count):
        cdef BatchBuilder builder = BatchBuilder.begin(self._schema, count)
        cdef RowCodec codec = self._table._codec
        cdef int32_t column = self._table._key_count
        cdef int32_t state, counted
        if column > 0:
            decode_into(&codec._shape, codec.schema, self._keys, count, NULL, column, builder, NULL)
        for state, counted in self._columns:
            if counted <= VARIANCE:
                self._set_statistic(builder, column, count, state, counted)
            elif counted >= 0:
                self._set_mean(builder, column, count, state, counted)
            elif self._table.fields[state].is_variable:
                self._set_texts(builder, column, count, state)
            else:
                self._set_fixed(builder, column, count, state)
            column += 1
        return builder.build()

    cdef int _set_fixed(self, BatchBuilder builder, int32_t column, int64_t count, int32_t state) except -1:
        cdef const StateField* field = &self._table.fields[state]
        cdef int64_t nulls
        cdef int64_t bits_size = padded((count + 7) >> 3)
        cdef int64_t size = bits_size if field.kind == KIND_BOOL else count * field.width
        cdef uint8_t* bits = builder.allocate(bits_size + size)
        if count <= BRIEF_GROUPS:
            nulls = gather_validity(self._groups, count, field.flag, bits)
            gather_fixed(self._groups, count, field, bits + bits_size)
        else:
            with nogil:
                nulls = gather_validity(self._groups, count, field.flag, bits)
                gather_fixed(self._groups, count, field, bits + bits_size)
        return builder.set_values(column, nulls, bits, NULL, bits + bits_size)

    cdef int _set_texts(self, BatchBuilder builder, int32_t column, int64_t count, int32_t state) except -1:
        cdef const StateField* field = &self._table.fields[state]
        cdef int64_t size = sum_of_sizes(self._groups, count, field)
        cdef int64_t bits_size = padded((count + 7) >> 3)
        cdef int64_t offsets_size = padded((count + 1) * (8 if field.kind == KIND_LARGE_BYTES else 4))
        cdef int64_t nulls
        cdef uint8_t* bits
        cdef uint8_t* offsets
        cdef uint8_t* values
        if field.kind != KIND_LARGE_BYTES and size > 0x7FFFFFFF:
            data_type = self._schema.field(column).type
            raise DataError(f"{size} bytes of {data_type} in one batch of aggregates; use large_{data_type}")
        bits = builder.allocate(bits_size + offsets_size + size)
        offsets = bits + bits_size
        values = offsets + offsets_size
        with nogil:
            nulls = gather_validity(self._groups, count, field.flag, bits)
            gather_values(self._groups, count, field, offsets, values)
        read_values(self._groups, count, field, values)
        return builder.set_values(column, nulls, bits, offsets, values)

    cdef int _set_statistic(self, BatchBuilder builder, int32_t column, int64_t count, int32_t state,
                            int32_t statistic) except -1:
        cdef int64_t nulls
        cdef int64_t bits_size = padded((count + 7) >> 3)
        cdef uint8_t* bits = builder.allocate(bits_size + count * 8)
        cdef double* values = <double*> (bits + bits_size)
        with nogil:
            nulls = gather_statistics(self._groups, count, self._table.fields[state].offset, statistic, bits, values)
        return builder.set_values(column, nulls, bits, NULL, <uint8_t*> values)

    cdef int _set_mean(self, BatchBuilder builder, int32_t column, int64_t count, int32_t total,
                       int32_t counted) except -1:
        cdef const StateField* field = &self._table.fields[total]
        cdef int64_t nulls
        cdef int64_t bits_size = padded((count + 7) >> 3)
        cdef uint8_t* bits = builder.allocate(bits_size + count * 8)
        cdef double* values = <double*> (bits + bits_size)
        with nogil:
            nulls = gather_validity(self._groups, count, field.flag, bits)
            gather_means(self._groups, count, field, &self._table.fields[counted], values)
        return builder.set_values(column, nulls, bits, NULL, <uint8_t*> values)
