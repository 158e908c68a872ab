"""SortedBatch: some rows of a sorted input, opened for the merge; how the keys of both inputs compare.

    left = SortedSide(0, left_side, given)                 given: columns that are given out or asked about
    order = KeyOrder(left_side, right_side)                keys have pairwise equal types
    batch = left.open(row_batch, True)                     sizes, null flags and prefixes of the rows
    compare_keys(order, left, row, right, row)             kernel: prefixes first, rows on ties
    end_of_key(order, batch, begin, batch, row)            kernel: how far a group of equal keys reaches

    RowBatch ─► a size, a state, a null flag and a prefix for each row          the rows themselves stay where they are

Keys are compared in their rows, and by reference where they lie outside (``outside_keys``), so no key is copied or
decoded for the merge. Order and equality are those of sort keys: -0.0 equals 0.0, NaN equals NaN and is the largest
number, strings compare by bytes, null comes first. Rows with null keys are passed over and never compared, so
prefixes have no bits for nulls, and the 64 bits of one number decide.

Memory: about 23 bytes for each row, and what RowBatch holds, until the batch goes. Thread: one. A comparison asks
``raise_failed_comparison`` before what came of it is used.

Held by: tests/join/test_outside_merge.py
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc

from engine.join.join_side cimport JoinSide
from engine.records.arrow_batch cimport KIND_BYTES
from engine.records.comparator cimport KeyEquality, RowComparator
from engine.records.normalized_key cimport NormalizedKey
from engine.records.outside_values cimport outside_bytes, values_lie_outside
from engine.records.row_batch cimport RowBatch
from engine.records.row_codec cimport RowCodec, row_size

import pyarrow as pa

from engine.errors import SchemaError
from engine.graph.sort_key import SortKey

cdef enum:
    CHUNK_ROWS = 256

cdef int64_t SIZE_MAX = 0xFFFFFFFF


cdef list _key_columns(JoinSide side):
    cdef int32_t position
    return [side.keys[position] for position in range(side.key_count)]


@cython.final
cdef class KeyOrder:
    """The comparison of both sides' keys."""

    def __cinit__(self, JoinSide left not None, JoinSide right not None):
        left_keys, right_keys = _key_columns(left), _key_columns(right)
        self.across = KeyEquality(left.codec, left_keys, right.codec, right_keys)
        self.left = KeyEquality(left.codec, left_keys, left.codec, left_keys)
        self.right = KeyEquality(right.codec, right_keys, right.codec, right_keys)
        self.ties = not prefixes_of(left, left_keys).decides


cdef RowCodec _without_nulls(JoinSide side):
    """Return the codec of a side in whose keys none is null; columns named by position, for names may come twice."""
    fields = [
        pa.field(f"c{position}", field.type, pa.types.is_null(field.type)) for position, field in enumerate(side.schema)
    ]
    return RowCodec(pa.schema(fields))


cdef NormalizedKey prefixes_of(JoinSide side, columns):
    return NormalizedKey(_without_nulls(side), [SortKey(f"c{column}") for column in columns])


cdef RowComparator comparator_of(JoinSide side, columns):
    return RowComparator(_without_nulls(side), [SortKey(f"c{column}") for column in columns])


@cython.final
cdef class SortedSide:
    """One input.

    Args: index: 0 left, 1 right; given: indexes of the columns whose values are wanted; group_keys: the first so many
    keys make groups, whose beginnings are marked, and prefixes are those of the other keys.
    """

    def __cinit__(self, int index, JoinSide side not None, given, Py_ssize_t group_keys=0):
        cdef int32_t column
        self.index = index
        self.side = side
        keys = _key_columns(side)
        self._normalized_key = prefixes_of(side, keys[group_keys:])
        self.decides = self._normalized_key.decides
        if group_keys:
            self._groups = KeyEquality(side.codec, keys[:group_keys], side.codec, keys[:group_keys])
        self._given_slots = <int32_t*> malloc((<size_t> len(side.schema) + 1) * sizeof(int32_t))
        if self._given_slots == NULL:
            raise MemoryError("columns of a sorted input")
        for column in given:
            if side.codec.kinds[column] >= KIND_BYTES:
                self._given_slots[self._given_count] = side.codec.slots[column]
                self._given_count += 1

    def __dealloc__(self):
        free(self._given_slots)

    cdef SortedBatch open(self, RowBatch rows, bint with_keys):
        cdef SortedBatch opened = SortedBatch.__new__(SortedBatch)
        cdef size_t count = <size_t> rows.count + 1
        cdef int64_t begin = 0
        cdef int64_t nulls = 0
        cdef int64_t size
        cdef bint looks_outside = self._given_count > 0 and values_lie_outside()
        self._check(rows.codec)
        opened.batch = rows
        opened.rows = rows.rows
        opened.count = rows.count
        opened.side = self.index
        opened.sizes = <uint32_t*> malloc(count * sizeof(uint32_t))
        opened.states = <uint8_t*> calloc(count, 1)
        if opened.sizes == NULL or opened.states == NULL:
            raise MemoryError("rows of a sorted batch")
        if with_keys:
            opened.null_keys = <uint8_t*> malloc(count)
            opened.prefixes = <uint64_t*> malloc(count * sizeof(uint64_t))
            if opened.null_keys == NULL or opened.prefixes == NULL:
                raise MemoryError("keys of a sorted batch")
            opened.starts = <uint8_t*> calloc(count, 1)
            if opened.starts == NULL:
                raise MemoryError("groups of a sorted batch")
            opened.starts[0] = 1
        with nogil:
            while begin < opened.count:
                size = min(<int64_t> CHUNK_ROWS, opened.count - begin)
                nulls += self._open_rows(opened, begin, begin + size, with_keys, looks_outside)
                begin += size
            if with_keys and self._groups is not None:
                if nulls:
                    self._mark_groups_and_nulls(opened)
                else:
                    self._mark_groups(opened)
        return opened

    cdef int64_t _open_rows(self, SortedBatch batch, int64_t begin, int64_t end, bint with_keys,
                            bint looks_outside) noexcept nogil:
        """Fill in what is asked of some rows, one after the other while they are near; return how many null keys."""
        cdef int64_t nulls = 0
        cdef int64_t index, size
        if with_keys:
            self._normalized_key.prefixes_of_rows(batch.rows + begin, end - begin, batch.prefixes + begin)
            nulls = self.side.null_keys_of_rows(batch.rows + begin, end - begin, batch.null_keys + begin)
        for index in range(begin, end):
            size = row_size(batch.rows[index])
            batch.total_bytes += size
            if looks_outside:
                size += outside_bytes(batch.rows[index], self._given_slots, self._given_count)
            batch.sizes[index] = <uint32_t> min(size, SIZE_MAX)
        return nulls

    cdef void _mark_groups(self, SortedBatch batch) noexcept nogil:
        """Mark where groups begin; the first row may be of the group before. Rows of one group are neighbours."""
        cdef int64_t begin = 0
        cdef int64_t step, last, middle, other
        while True:
            # the row ``last`` is of the group that begins here, ``other`` is not, or is behind the last row
            last, step = begin, 1
            while last + step < batch.count and self._groups.rows_equal(batch.rows[begin], batch.rows[last + step]):
                last += step
                step *= 2
            other = min(last + step, batch.count)
            while last + 1 < other:
                middle = (last + other) // 2
                if self._groups.rows_equal(batch.rows[begin], batch.rows[middle]):
                    last = middle
                else:
                    other = middle
            if other >= batch.count:
                return
            batch.starts[other] = 1
            begin = other

    cdef void _mark_groups_and_nulls(self, SortedBatch batch) noexcept nogil:
        """The same where a key is null: what is behind a row with one begins a group, or may."""
        cdef int64_t index
        for index in range(1, batch.count):
            batch.starts[index] = batch.null_keys[index - 1] or (
                not batch.null_keys[index] and not self._groups.rows_equal(batch.rows[index - 1], batch.rows[index]))

    cdef int _check(self, RowCodec codec) except -1:
        """Raise SchemaError for rows of other types; once for each codec."""
        if codec is self._checked or codec is self.side.codec:
            return 0
        if codec.schema.types != self.side.schema.types:
            raise SchemaError(f"rows of {codec.schema.types} cannot be merged as rows of {self.side.schema.types}")
        self._checked = codec
        return 0


@cython.final
cdef class SortedBatch:
    """Some rows of one input; for the join (see the .pxd)."""

    def __dealloc__(self):
        free(self.sizes)
        free(self.states)
        free(self.null_keys)
        free(self.prefixes)
        free(self.starts)


cdef int64_t end_of_key(KeyOrder order, SortedBatch batch, int64_t begin, SortedBatch key_batch,
                        int64_t key_row) noexcept nogil:
    cdef uint64_t prefix = key_batch.prefixes[key_row]
    cdef const uint8_t* key = key_batch.rows[key_row]
    cdef bint is_equal = True
    while begin < batch.count and batch.prefixes[begin] == prefix and not batch.null_keys[begin]:
        if order.ties:
            if batch.side != key_batch.side:
                is_equal = (order.across.rows_equal(key, batch.rows[begin]) if batch.side
                            else order.across.rows_equal(batch.rows[begin], key))
            elif batch.side:
                is_equal = order.right.rows_equal(batch.rows[begin], key)
            else:
                is_equal = order.left.rows_equal(batch.rows[begin], key)
            if not is_equal:
                break
        begin += 1
    return begin
