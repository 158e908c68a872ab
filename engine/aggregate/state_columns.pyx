"""GroupScan: the groups of one store of a group table, or of all, as Arrow batches, keys and then states or results.

    for batch in GroupScan(table, store, partition, schema, columns, max_rows, max_bytes): ...

    group addresses ──► key rows ──► RowCodec.decode ──► key columns
                    └─► one kernel per column: values, validity (from the flags) ──► Arrow buffers

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
from engine.records.number_types cimport Offset
from engine.records.outside_values cimport values_lie_outside

import pyarrow as pa

from engine.errors import DataError
from engine.records.arrow_functions import pc

cdef enum:
    BRIEF_GROUPS = 2048             # are looked through in less time than it takes to give the GIL away and get it back


cdef uint8_t* buffer_address(object buffer) except? NULL:
    """Return the address of an Arrow buffer made by pa.allocate_buffer."""
    return <uint8_t*> <size_t> buffer.address


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
        arrays = []
        if self._table._key_count > 0:
            arrays.extend(self._table._codec.decode(self._keys, count, NULL, 0).columns)
        for state, counted in self._columns:
            data_type = self._schema.field(len(arrays)).type
            if counted <= VARIANCE:
                arrays.append(self._statistic_array(count, state, counted))
            elif counted < 0:
                arrays.append(self._state_array(count, state, data_type))
            else:
                arrays.append(self._mean_array(count, state, counted))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    cdef object _validity(self, int64_t count, int32_t flag):
        """Return (bitmap buffer or None, number of nulls)."""
        cdef int64_t nulls
        buffer = pa.allocate_buffer((count + 7) >> 3)
        cdef uint8_t* bits = buffer_address(buffer)
        if count <= BRIEF_GROUPS:
            nulls = gather_validity(self._groups, count, flag, bits)
        else:
            with nogil:
                nulls = gather_validity(self._groups, count, flag, bits)
        return (buffer if nulls > 0 else None), nulls

    cdef object _state_array(self, int64_t count, int32_t state, data_type):
        cdef const StateField* field = &self._table.fields[state]
        cdef int64_t size
        cdef uint8_t* address
        cdef uint8_t* offsets
        validity, nulls = self._validity(count, field.flag)
        if field.is_variable:
            return self._value_array(count, state, data_type, validity, nulls)
        size = (count + 7) >> 3 if field.kind == KIND_BOOL else count * field.width
        buffer = pa.allocate_buffer(size)
        address = buffer_address(buffer)
        if count <= BRIEF_GROUPS:
            gather_fixed(self._groups, count, field, address)
        else:
            with nogil:
                gather_fixed(self._groups, count, field, address)
        return pa.Array.from_buffers(data_type, count, [validity, buffer], null_count=nulls)

    cdef object _value_array(self, int64_t count, int32_t state, data_type, validity, nulls):
        cdef const StateField* field = &self._table.fields[state]
        cdef int64_t size = sum_of_sizes(self._groups, count, field)
        cdef uint8_t* offsets
        cdef uint8_t* values
        if field.kind != KIND_LARGE_BYTES and size > 0x7FFFFFFF:
            raise DataError(f"{size} bytes of {data_type} in one batch of aggregates; use large_{data_type}")
        offset_buffer = pa.allocate_buffer((count + 1) * (8 if field.kind == KIND_LARGE_BYTES else 4))
        value_buffer = pa.allocate_buffer(size)
        offsets = buffer_address(offset_buffer)
        values = buffer_address(value_buffer)
        with nogil:
            gather_values(self._groups, count, field, offsets, values)
        read_values(self._groups, count, field, values)
        return pa.Array.from_buffers(data_type, count, [validity, offset_buffer, value_buffer], null_count=nulls)

    cdef object _statistic_array(self, int64_t count, int32_t state, int32_t statistic):
        cdef int64_t nulls
        validity = pa.allocate_buffer((count + 7) >> 3)
        buffer = pa.allocate_buffer(count * 8)
        cdef uint8_t* bits = buffer_address(validity)
        cdef double* values = <double*> buffer_address(buffer)
        with nogil:
            nulls = gather_statistics(self._groups, count, self._table.fields[state].offset, statistic, bits, values)
        return pa.Array.from_buffers(pa.float64(), count, [validity, buffer], null_count=nulls)

    cdef object _mean_array(self, int64_t count, int32_t total, int32_t counted):
        cdef double* address
        validity, nulls = self._validity(count, self._table.fields[total].flag)
        buffer = pa.allocate_buffer(count * 8)
        address = <double*> buffer_address(buffer)
        with nogil:
            gather_means(self._groups, count, &self._table.fields[total], &self._table.fields[counted], address)
        return pa.Array.from_buffers(pa.float64(), count, [validity, buffer], null_count=nulls)
