"""SortedBatch: one batch of a sorted input, with its keys as comparable rows.

    order = KeyOrder(left_schema, left_keys)                      the same for both sides: keys have equal types
    batch = open_sorted(side, record_batch, order)                sizes, null flags, prefixes and rows of the keys
    compare_keys(order, prefix, key, prefix, key)                 kernel: prefixes first, rows on ties
    end_of_key(order, batch, begin, prefix, key)                  kernel: how far a group of equal keys reaches

    RecordBatch ─► key columns ─► binary rows ─► prefixes          8192 rows at a time, in scratch of the batch
                └► sizes of its rows, a state for each: unmatched, matched, elsewhere

Only the key columns become rows; all others stay Arrow columns and are gathered by index. Order and equality are those
of sort keys: -0.0 equals 0.0, NaN equals NaN and is the largest number, strings compare by bytes, null comes first.

Memory: beside the Arrow batch about 30 bytes and the key for each row, until the batch goes. Thread: one.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc

from engine.join.join_side cimport JoinSide
from engine.records.arrow_batch cimport ArrowBatch
from engine.records.comparator cimport RowComparator
from engine.records.normalized_key cimport NormalizedKey
from engine.records.row_codec cimport RowCodec

import pyarrow as pa

from engine.graph.sort_key import SortKey


@cython.final
cdef class KeyOrder:
    """How the keys of both sides compare."""

    def __cinit__(self, schema, key_columns):
        fields = [pa.field(f"k{position}", schema.field(column).type) for position, column in enumerate(key_columns)]
        keys = [SortKey(field.name) for field in fields]
        self.codec = RowCodec(pa.schema(fields))
        self.schema = self.codec.schema
        self.normalized_key = NormalizedKey(self.codec, keys)
        self.comparator = RowComparator(self.codec, keys)
        self.ties = not self.normalized_key.decides


@cython.final
cdef class SortedBatch:
    """Rows of one batch; the methods are for the join (see the .pxd)."""

    def __dealloc__(self):
        free(self.sizes)
        free(self.states)
        free(self.null_keys)
        free(self.prefixes)
        free(self.keys)
        free(self._key_memory)

    cdef int _open_keys(self, KeyOrder order) except -1:
        cdef JoinSide side = self._side
        cdef int32_t position
        cdef int64_t index, key_bytes = 0
        cdef uint32_t* key_sizes
        cdef ArrowBatch keys
        columns = [self._arrow.batch.column(side.keys[position]) for position in range(side.key_count)]
        keys = ArrowBatch.open(pa.RecordBatch.from_arrays(columns, schema=order.schema))
        order.codec.accept(keys)
        self.null_keys = <uint8_t*> malloc(<size_t> self.count + 1)
        self.prefixes = <uint64_t*> malloc((<size_t> self.count + 1) * sizeof(uint64_t))
        self.keys = <uint8_t**> malloc((<size_t> self.count + 1) * sizeof(uint8_t*))
        key_sizes = <uint32_t*> malloc((<size_t> self.count + 1) * sizeof(uint32_t))
        try:
            if self.null_keys == NULL or self.prefixes == NULL or self.keys == NULL or key_sizes == NULL:
                raise MemoryError("keys of a sorted batch")
            with nogil:
                side.null_keys_of_batch(self._arrow, 0, self.count, self.null_keys)
                order.codec.measure(keys, 0, self.count, key_sizes)
                for index in range(self.count):
                    key_bytes += key_sizes[index]
                self._key_memory = <uint8_t*> malloc(<size_t> key_bytes + 1)
            if self._key_memory == NULL:
                raise MemoryError("keys of a sorted batch")
            with nogil:
                key_bytes = 0
                for index in range(self.count):
                    self.keys[index] = self._key_memory + key_bytes
                    key_bytes += key_sizes[index]
                order.codec.encode(keys, 0, self.count, key_sizes, self.keys)
                order.normalized_key.prefixes_of_rows(self.keys, self.count, self.prefixes)
        finally:
            free(key_sizes)
        return 0

    cdef int encode(self, int64_t begin, int64_t end, uint8_t* target) except -1:
        cdef uint8_t** targets = <uint8_t**> malloc((<size_t> (end - begin) + 1) * sizeof(uint8_t*))
        cdef int64_t index
        if targets == NULL:
            raise MemoryError("rows of a sorted batch")
        with nogil:
            for index in range(begin, end):
                targets[index - begin] = target
                target += self.sizes[index]
            self._side.codec.encode(self._arrow, begin, end - begin, self.sizes + begin, targets)
            free(targets)
        return 0


cdef SortedBatch open_sorted(JoinSide side, object batch, KeyOrder order):
    cdef SortedBatch opened = SortedBatch.__new__(SortedBatch)
    cdef int64_t index
    opened._side = side
    opened._arrow = ArrowBatch.open(batch)
    opened.batch = opened._arrow.batch
    opened.count = opened._arrow.row_count
    side.codec.accept(opened._arrow)
    opened.sizes = <uint32_t*> malloc((<size_t> opened.count + 1) * sizeof(uint32_t))
    opened.states = <uint8_t*> calloc(<size_t> opened.count + 1, 1)
    if opened.sizes == NULL or opened.states == NULL:
        raise MemoryError("rows of a sorted batch")
    with nogil:
        side.codec.measure(opened._arrow, 0, opened.count, opened.sizes)
        for index in range(opened.count):
            opened.total_bytes += opened.sizes[index]
    if order is not None:
        opened._open_keys(order)
    return opened


cdef int64_t end_of_key(KeyOrder order, SortedBatch batch, int64_t begin, uint64_t prefix,
                        const uint8_t* key) noexcept nogil:
    while begin < batch.count and compare_keys(order, batch.prefixes[begin], batch.keys[begin], prefix, key) == 0:
        begin += 1
    return begin
