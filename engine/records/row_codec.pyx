"""RowCodec: Arrow batches to binary rows and back, for one schema. The format is that of ``layout.py``.

    codec = RowCodec(schema)
    writing   codec.accept(batch)  codec.measure(...) ──► sizes ──► caller places rows ──► codec.encode(...)
    reading   rows_of_page(...) ──► row addresses ──► codec.decode(...) ──► pyarrow.RecordBatch

Rows are written and read in chunks of 512: within a chunk column by column, so each loop is of one type, and the
chunk's rows stay in the cache from the first column to the last.

Invariants: every byte of a row is written, padding included (pages are recycled; nothing old leaks into files).
Thread: a codec is read-only after its making; any number of threads may use it.
Limits: a row below 4 GiB (guaranteed by ArrowBatch.open), a batch decoded below 2 GiB per 32-bit offset column.

Source: Flink's BinaryRowData and its writer; ours works on columns, not on records.
"""

cimport cython
import pyarrow as pa

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from engine.errors import CorruptBlockError, SchemaError
from engine.records.arrow_batch cimport ArrowBatch, ColumnView, KIND_BYTES, TypeNode, types_of_schema
from engine.records.byte_kernels cimport LINE_BYTES, WALK_AHEAD, load64, prefetch, store32, store64
from engine.records.column_writer cimport add_variable_sizes, write_column
from engine.records.layout import row_layout
from engine.records.outside_values cimport (
    OUTSIDE_BIT,
    forget_closed_stores,
    move_outside,
    outside_bytes,
    values_lie_outside,
)
from engine.records.row_columns cimport decode_rows
from engine.records.plain_types import plain_schema

cdef enum:
    CHUNK_ROWS = 512


cdef bint _same_types(const TypeNode* node, const ColumnView* view) noexcept nogil:
    """Return whether a column has the type of a node, children included."""
    cdef int32_t index
    if node.kind != view.kind or node.width != view.width or node.child_count != view.child_count:
        return False
    for index in range(node.child_count):
        if not _same_types(&node.children[index], &view.children[index]):
            return False
    return True


cdef int64_t rows_of_page(const uint8_t* page, int64_t used, uint8_t** rows, int64_t capacity) noexcept nogil:
    """Walk a page of rows; each size says where the next one lies, so lines to come are asked for by distance."""
    cdef int64_t asked = 0
    cdef int64_t position = 0
    cdef int64_t count = 0
    cdef int64_t size
    while position < used and count < capacity:
        while asked < position + WALK_AHEAD:
            prefetch(page + asked)
            asked += LINE_BYTES
        if used - position < 8:
            return -1
        size = (<const uint32_t*>(page + position))[0]
        if size < 8 or size & 7 or size > used - position:
            return -1
        rows[count] = <uint8_t*>page + position
        count += 1
        position += size
        asked = max(asked, position)
    return count


cdef void _zero_padding(const uint32_t* sizes, uint8_t** targets, int64_t count, const uint32_t* ends) noexcept nogil:
    """Zero the up to 7 bytes between the last variable value and the row's end."""
    cdef uint8_t* last
    cdef uint32_t shift
    cdef int64_t row
    for row in range(count):
        last = targets[row] + sizes[row] - 8
        shift = (sizes[row] - ends[row]) * 8
        store64(last, load64(last) << shift >> shift)


cdef void _mark_outside(const uint8_t* flags, int64_t count, int32_t slot, uint8_t** targets) noexcept nogil:
    """Mark in the slots the values that are references."""
    cdef int64_t row
    for row in range(count):
        if flags[row]:
            store64(targets[row] + slot, load64(targets[row] + slot) | OUTSIDE_BIT)


@cython.final
cdef class RowCodec:
    """Converts between Arrow batches and binary rows of one schema.

    Args:
        schema: pyarrow.Schema; dictionary, run-end and view types are taken as their plain types.

    Raises:
        SchemaError: a column has a type that rows cannot hold.
    """

    def __cinit__(self, schema):
        cdef int32_t index
        cdef TypeNode* types
        # A new codec begins a work of its own: the values of those that ended need not be looked for in it.
        forget_closed_stores()
        self.schema = plain_schema(schema)
        self.column_count = len(self.schema)
        types = types_of_schema(self.schema)
        self._nested = types
        layout = row_layout([(types[index].kind, types[index].width) for index in range(self.column_count)])
        self.fixed_size = layout.fixed_size
        self.kinds = <int32_t*>calloc(<size_t>self.column_count * 3 + 1, sizeof(int32_t))
        self._null_row = <uint8_t*>calloc(<size_t>self.fixed_size, 1)
        if self.kinds == NULL or self._null_row == NULL:
            raise MemoryError
        self.slots = self.kinds + self.column_count
        self.widths = self.slots + self.column_count
        self.is_fixed = True
        for index in range(self.column_count):
            self.kinds[index] = types[index].kind
            self.slots[index] = layout.slots[index]
            self.widths[index] = layout.widths[index]
            self._null_row[4 + (index >> 3)] |= <uint8_t>(1 << (index & 7))
            if types[index].kind >= KIND_BYTES:
                self.is_fixed = False
        store32(self._null_row, <uint32_t>self.fixed_size)
        self._shape = RowShape(self.column_count, self.fixed_size, layout.null_bytes, types, self.slots, self.widths,
                               self._null_row)
        self._projections = {}
        self._variable_slots = <int32_t*>calloc(<size_t>self.column_count + 1, sizeof(int32_t))
        if self._variable_slots == NULL:
            raise MemoryError
        for index in range(self.column_count):
            if self.kinds[index] >= KIND_BYTES:
                self._variable_slots[self._variable_count] = self.slots[index]
                self._variable_count += 1
        self._required = tuple([index for index, field in enumerate(self.schema) if not field.nullable])

    def __dealloc__(self):
        free(self.kinds)
        free(self._null_row)
        free(self._nested)
        free(self._variable_slots)

    cdef int let_outside(self, object owner, inside) except -1:
        cdef int32_t index
        self._owner = owner
        self._movable = tuple([index for index in range(self.column_count)
                               if self.kinds[index] >= KIND_BYTES and index not in inside])
        return 0

    cdef int move_outside(self, ArrowBatch batch) except -1:
        """Write wide values to their owner."""
        cdef int32_t index
        if self._owner is None or batch.has_moved:
            return 0
        batch.has_moved = True
        for index in self._movable:
            move_outside(batch, index, self._owner)
        return 0

    cdef int64_t bytes_outside(self, const uint8_t* row) noexcept nogil:
        if row == NULL or not values_lie_outside():
            return 0
        return outside_bytes(row, self._variable_slots, self._variable_count)

    cdef int64_t rows_within(self, uint8_t** rows, int64_t count, int64_t size_limit) noexcept nogil:
        cdef int64_t row
        if self._variable_count == 0 or not values_lie_outside():
            return count
        for row in range(count):
            size_limit -= self.bytes_outside(rows[row])
            if size_limit < 0 and row > 0:
                return row
        return count

    cdef int accept(self, ArrowBatch batch) except -1:
        """Check a batch once; kernels trust it afterwards."""
        cdef TypeNode* types = <TypeNode*>self._nested
        cdef int32_t index
        if batch.column_count != self.column_count:
            raise SchemaError(f"a batch has {batch.column_count} columns, the rows have {self.column_count}: "
                              f"{', '.join(self.schema.names)}")
        for index in range(self.column_count):
            if not _same_types(&types[index], &batch.columns[index]):
                field = self.schema.field(index)
                raise SchemaError(f"column '{field.name}' of the rows has the type {field.type}, the batch brings "
                                  f"{batch.field(index).type}; cast it first")
        for index in self._required:
            if batch.columns[index].null_count != 0:
                raise SchemaError(f"column '{self.schema.field(index).name}' is declared not nullable and holds "
                                  f"{batch.columns[index].null_count} nulls; declare it nullable or drop them")
        return 0

    cdef void measure(self, ArrowBatch batch, int64_t start, int64_t count, uint32_t* sizes) noexcept nogil:
        """Compute the size of each row."""
        cdef int64_t row
        cdef int32_t index
        for row in range(count):
            sizes[row] = <uint32_t>self.fixed_size
        if self.is_fixed:
            return
        for index in range(self.column_count):
            if self.kinds[index] >= KIND_BYTES:
                add_variable_sizes(&batch.columns[index], start, count, sizes)
        for row in range(count):
            sizes[row] = (sizes[row] + 7U) & ~7U

    cdef void encode(self, ArrowBatch batch, int64_t start, int64_t count, const uint32_t* sizes,
                     uint8_t** targets) noexcept nogil:
        """Write the rows, chunk by chunk, column by column."""
        cdef uint32_t[CHUNK_ROWS] cursors
        cdef int64_t begin = 0
        cdef int64_t chunk
        cdef int32_t index
        while begin < count:
            chunk = min(<int64_t>CHUNK_ROWS, count - begin)
            self._begin_rows(sizes + begin, targets + begin, chunk, cursors)
            for index in range(self.column_count):
                write_column(&batch.columns[index], start + begin, chunk, self.slots[index], index, sizes + begin,
                             cursors, targets + begin)
                if batch.outside != NULL and batch.outside[index] != NULL:
                    _mark_outside(batch.outside[index] + start + begin, chunk, self.slots[index], targets + begin)
            if not self.is_fixed:
                _zero_padding(sizes + begin, targets + begin, chunk, cursors)
            begin += chunk

    cdef void _begin_rows(self, const uint32_t* sizes, uint8_t** targets, int64_t count,
                          uint32_t* cursors) noexcept nogil:
        """Write sizes, zero null bits and the last word of the fixed part, which may hold padding."""
        cdef int32_t fixed_size = self.fixed_size
        cdef int32_t head = (4 + self._shape.null_bytes + 7) & ~7
        cdef uint8_t* target
        cdef int64_t row
        for row in range(count):
            target = targets[row]
            store64(target + fixed_size - 8, 0)
            if head > 8:
                memset(target + 8, 0, <size_t>(head - 8))
            store64(target, sizes[row])
            cursors[row] = <uint32_t>fixed_size

    cdef object decode(self, uint8_t** rows, int64_t count, const int32_t* columns, int32_t column_count):
        """Return rows as a record batch."""
        cdef int32_t index
        if columns == NULL:
            return decode_rows(&self._shape, self.schema, rows, count, NULL, self.column_count)
        chosen = tuple([columns[index] for index in range(column_count)])
        schema = self._projections.get(chosen)
        if schema is None:
            schema = pa.schema([self.schema.field(position) for position in chosen])
            self._projections[chosen] = schema
        return decode_rows(&self._shape, schema, rows, count, columns, column_count)

    def to_rows(self, batch):
        """Return the rows of a record batch, one behind the other.

        Args:
            batch: pyarrow.RecordBatch of the codec's columns.

        Raises:
            SchemaError: the batch has other columns, or a null where none is declared.
        """
        cdef ArrowBatch opened = ArrowBatch.open(batch)
        cdef int64_t count = opened.row_count
        cdef int64_t row
        cdef int64_t total = 0
        cdef uint8_t* target
        self.accept(opened)
        self.move_outside(opened)
        cdef uint32_t* sizes = <uint32_t*>malloc(<size_t>count * sizeof(uint32_t) + 1)
        cdef uint8_t** targets = <uint8_t**>malloc(<size_t>count * sizeof(uint8_t*) + 1)
        try:
            if sizes == NULL or targets == NULL:
                raise MemoryError
            with nogil:
                self.measure(opened, 0, count, sizes)
                for row in range(count):
                    total += sizes[row]
            page = PyBytes_FromStringAndSize(NULL, total)
            target = <uint8_t*>PyBytes_AS_STRING(page)
            with nogil:
                for row in range(count):
                    targets[row] = target
                    target += sizes[row]
                self.encode(opened, 0, count, sizes, targets)
            return page
        finally:
            free(sizes)
            free(targets)

    def keep_outside(self, owner, inside=()):
        """Store wide values out of line, with owner (write_value); columns of these indexes stay in their rows."""
        self.let_outside(owner, inside)

    def from_rows(self, const uint8_t[::1] page not None):
        """Return the rows of a page as a record batch.

        Args:
            page: rows one behind the other, as ``to_rows`` gives them; nothing behind the last.

        Raises:
            CorruptBlockError: the bytes are not rows of this schema.
        """
        cdef int64_t used = page.shape[0]
        cdef int64_t capacity = used // 8
        cdef int64_t count
        cdef uint8_t** rows = <uint8_t**>malloc(<size_t>capacity * sizeof(uint8_t*) + 1)
        try:
            if rows == NULL:
                raise MemoryError
            count = rows_of_page(&page[0], used, rows, capacity + 1) if used else 0
            if count < 0:
                raise CorruptBlockError(f"a page of {used} bytes is damaged: the sizes of its rows do not add up")
            return self.decode(rows, count, NULL, 0)
        finally:
            free(rows)
