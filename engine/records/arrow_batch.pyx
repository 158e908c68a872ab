"""ArrowBatch: an Arrow record batch opened for kernels through the Arrow C data interface.

    pyarrow.RecordBatch ──__arrow_c_array__()──► ArrowSchema (format strings) ──► kinds and widths
                                                 ArrowArray  (buffers)        ──► ColumnView for each column
    batch = ArrowBatch.open(record_batch)        # one call per batch; kernels then read batch.columns[c]
    batch_bytes(record_batch)                    # what ``nbytes`` says, in a fraction of its time
    used_bytes(record_batch)                     # the same, of dictionaries what the rows can use

A column of nested type has views for its children. Dictionary, run-end and view types are converted to plain ones
first (``plain_types``); extension types are seen as their storage.

Invariants: the views borrow the buffers, which live as long as the ArrowBatch. The nulls of a column are counted
exactly at open, and a column without nulls has no validity, so kernels choose their loop once per column.
Limits: a batch below 2 GiB; types nested at most 64 deep. Thread: any; an opened batch is read-only.
Source: the Arrow C data interface (format strings and structures) and the Arrow PyCapsule interface.

Held by: tests/records/test_row_codec.py
"""

cimport cython
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, strtol
from libc.string cimport strcmp, strncmp

from weakref import ref

import pyarrow as pa

from engine.errors import DataError, SchemaError
from engine.records.arrow_c_data cimport ArrowArray, ArrowSchema
from engine.records.byte_kernels cimport count_ones, load64
from engine.records.opened_batch cimport OpenedBatch, opened_batch
from engine.records.plain_types import plain_batch

#: limit of bytes of one batch: every row made of it then fits the row format
cdef int64_t BATCH_BYTES_MAX = 2 ** 31 - 1
#: number of values whose nulls are counted faster than the GIL is released and taken
cdef int64_t BRIEF_VALUES = 1 << 20

cdef int32_t UNSUPPORTED = -1
cdef int32_t NOT_PLAIN = -2

# Format strings of one letter.
cdef struct ScalarFormat:
    char letter
    int32_t kind
    int32_t width

cdef ScalarFormat[17] SCALAR_FORMATS = [
    [b"n", KIND_NULL, 0], [b"b", KIND_BOOL, 1],
    [b"c", KIND_INT8, 1], [b"s", KIND_INT16, 2], [b"i", KIND_INT32, 4], [b"l", KIND_INT64, 8],
    [b"C", KIND_UINT8, 1], [b"S", KIND_UINT16, 2], [b"I", KIND_UINT32, 4], [b"L", KIND_UINT64, 8],
    [b"e", KIND_FLOAT16, 2], [b"f", KIND_FLOAT32, 4], [b"g", KIND_FLOAT64, 8],
    [b"z", KIND_BYTES, 0], [b"u", KIND_BYTES, 0], [b"Z", KIND_LARGE_BYTES, 0], [b"U", KIND_LARGE_BYTES, 0],
]


cdef int32_t _temporal_kind(const char* format, int32_t* width) noexcept nogil:
    """Return the kind of a format that begins with t."""
    width[0] = 8
    if format[1] == c"d":
        if format[2] == c"D":
            width[0] = 4
            return KIND_INT32
        return KIND_INT64
    if format[1] == c"t":
        if format[2] == c"s" or format[2] == c"m":
            width[0] = 4
            return KIND_INT32
        return KIND_INT64
    if format[1] == c"s" or format[1] == c"D":
        return KIND_INT64
    if format[1] == c"i" and format[2] == c"n":
        # an interval of months, days and nanoseconds: kept as it is, and never compared
        width[0] = 16
        return KIND_FIXED_BYTES
    return UNSUPPORTED


cdef int32_t _decimal_kind(const char* format, int32_t* width) noexcept nogil:
    """Return the kind of d:precision,scale[,bits]; narrow decimals are their integers."""
    cdef int32_t commas = 0
    cdef int32_t bits = 128
    while format[0] != 0:
        if format[0] == c",":
            commas += 1
            if commas == 2:
                bits = <int32_t>strtol(format + 1, NULL, 10)
        format += 1
    width[0] = bits // 8
    if bits == 32:
        return KIND_INT32
    if bits == 64:
        return KIND_INT64
    if bits == 128:
        return KIND_DECIMAL128
    return KIND_DECIMAL256 if bits == 256 else UNSUPPORTED


cdef int32_t _nested_kind(const char* format, int32_t* width) noexcept nogil:
    """Return the kind of a format that begins with +."""
    width[0] = 0
    if format[1] == c"l" or format[1] == c"m":
        return KIND_LIST
    if format[1] == c"L":
        return KIND_LARGE_LIST
    if format[1] == c"s":
        return KIND_STRUCT
    if format[1] == c"w":
        width[0] = <int32_t>strtol(format + 3, NULL, 10)
        return KIND_FIXED_LIST
    if format[1] == c"r" or format[1] == c"v":
        return NOT_PLAIN
    return UNSUPPORTED


cdef int32_t _kind_of_schema(const ArrowSchema* schema, int32_t* width) noexcept nogil:
    """Return Kind, or UNSUPPORTED or NOT_PLAIN; the width through the pointer."""
    if schema.dictionary != NULL:
        width[0] = 0
        return NOT_PLAIN
    return kind_of_format(schema.format, width)


cdef int32_t kind_of_format(const char* format, int32_t* width) noexcept nogil:
    """Return the kind of a format, of a dictionary that of its codes."""
    cdef int32_t index
    width[0] = 0
    if format[0] == c"t":
        return _temporal_kind(format, width)
    if format[0] == c"d":
        return _decimal_kind(format, width)
    if format[0] == c"+":
        return _nested_kind(format, width)
    if format[0] == c"w":
        width[0] = <int32_t>strtol(format + 2, NULL, 10)
        return KIND_FIXED_BYTES
    if format[0] == c"v":
        return NOT_PLAIN
    for index in range(17):
        if SCALAR_FORMATS[index].letter == format[0]:
            width[0] = SCALAR_FORMATS[index].width
            return SCALAR_FORMATS[index].kind
    return UNSUPPORTED


cdef int32_t _check_schema(const ArrowSchema* schema) noexcept nogil:
    """Return 0 when the type and all below it are plain, else UNSUPPORTED or NOT_PLAIN (the first wins)."""
    cdef int32_t width
    cdef int32_t kind = _kind_of_schema(schema, &width)
    cdef int32_t below
    cdef int64_t index
    if kind < 0:
        return kind
    kind = 0
    for index in range(schema.n_children):
        below = _check_schema(schema.children[index])
        if below == UNSUPPORTED:
            return UNSUPPORTED
        if below < 0:
            kind = below
    return kind


cdef int64_t _node_count(const ArrowSchema* schema) noexcept nogil:
    """Return the number of types a schema holds, below and without itself."""
    cdef int64_t count = schema.n_children
    cdef int64_t index
    for index in range(schema.n_children):
        count += _node_count(schema.children[index])
    return count


cdef TypeNode* _fill_types(const ArrowSchema* schema, TypeNode* nodes) noexcept nogil:
    """Write the children of schema at nodes, theirs behind; return the first unused node."""
    cdef TypeNode* unused = nodes + schema.n_children
    cdef ArrowSchema* child
    cdef int64_t index
    for index in range(schema.n_children):
        child = schema.children[index]
        nodes[index].kind = _kind_of_schema(child, &nodes[index].width)
        nodes[index].child_count = <int32_t>child.n_children
        nodes[index].children = unused if child.n_children > 0 else NULL
        unused = _fill_types(child, unused)
    return unused


cdef int64_t _count_nulls(const uint8_t* validity, int64_t offset, int64_t length) noexcept nogil:
    """Return the number of zeros among length bits from offset on."""
    cdef int64_t bit = offset
    cdef int64_t end = offset + length
    cdef int64_t valid = 0
    while bit < end and bit & 7:
        valid += (validity[bit >> 3] >> (bit & 7)) & 1
        bit += 1
    while bit + 64 <= end:
        valid += count_ones(load64(validity + (bit >> 3)))
        bit += 64
    while bit < end:
        valid += (validity[bit >> 3] >> (bit & 7)) & 1
        bit += 1
    return length - valid


cdef ColumnView* _fill_views(const ArrowSchema* schema, const ArrowArray* array, ColumnView* views) noexcept nogil:
    """Write the views of the children at views, theirs behind; return the first unused view."""
    cdef ColumnView* unused = views + schema.n_children
    cdef ColumnView* view
    cdef ArrowArray* child
    cdef int64_t index
    for index in range(schema.n_children):
        view = &views[index]
        child = array.children[index]
        view.kind = _kind_of_schema(schema.children[index], &view.width)
        view.offset = child.offset
        view.null_count = child.null_count
        if view.kind != KIND_NULL:
            view.validity = <const uint8_t*>child.buffers[0]
            if view.validity == NULL:
                view.null_count = 0
            elif view.null_count == 0:
                view.validity = NULL
        if view.kind == KIND_BYTES or view.kind == KIND_LARGE_BYTES:
            view.offsets = <const uint8_t*>child.buffers[1]
            view.values = <const uint8_t*>child.buffers[2]
        elif view.kind == KIND_LIST or view.kind == KIND_LARGE_LIST:
            view.offsets = <const uint8_t*>child.buffers[1]
        elif KIND_BOOL <= view.kind <= KIND_FIXED_BYTES:
            view.values = <const uint8_t*>child.buffers[1]
        view.child_count = <int32_t>child.n_children
        view.children = unused if child.n_children > 0 else NULL
        unused = _fill_views(schema.children[index], child, unused)
    return unused


cdef void _settle_columns(ColumnView* columns, const ArrowArray* batch) noexcept nogil:
    """Count the nulls of each column, apply the offset of the batch."""
    cdef ColumnView* column
    cdef int64_t index
    for index in range(batch.n_children):
        column = &columns[index]
        column.offset += batch.offset
        if column.kind == KIND_NULL:
            column.null_count = batch.length
        elif column.validity != NULL:
            column.null_count = _count_nulls(column.validity, column.offset, batch.length)
            if column.null_count == 0:
                column.validity = NULL


cdef int64_t _bits_size(int64_t first, int64_t count) noexcept nogil:
    """Return the number of bytes that bits take."""
    return ((first + count + 7) >> 3) - (first >> 3)


cdef int64_t _values_size(const ArrowSchema* schema, const ArrowArray* array, int64_t first,
                          int64_t count) noexcept nogil:
    """Return the bytes of count values of a type from the one at first in the buffers on, as Arrow counts."""
    cdef int32_t width
    cdef int32_t kind = kind_of_format(schema.format, &width)
    cdef int64_t size = 0
    cdef int64_t begin, end, index
    if kind == KIND_NULL:
        return 0
    if schema.dictionary != NULL:
        size = _values_size(schema.dictionary, array.dictionary, array.dictionary.offset, array.dictionary.length)
    if array.buffers[0] != NULL:
        size += _bits_size(first, count)
    if kind == KIND_BOOL:
        return size + _bits_size(first, count)
    if kind < KIND_BYTES:
        return size + count * width
    if kind == KIND_STRUCT or kind == KIND_FIXED_LIST:
        width = max(width, 1 if kind == KIND_STRUCT else 0)
        for index in range(array.n_children):
            size += _values_size(schema.children[index], array.children[index],
                                 array.children[index].offset + first * width, count * width)
        return size
    if array.buffers[1] == NULL or count == 0:
        return size
    if kind == KIND_LARGE_BYTES or kind == KIND_LARGE_LIST:
        size += count * 8
        begin, end = (<const int64_t*>array.buffers[1])[first], (<const int64_t*>array.buffers[1])[first + count]
    else:
        size += count * 4
        begin, end = (<const int32_t*>array.buffers[1])[first], (<const int32_t*>array.buffers[1])[first + count]
    if kind == KIND_BYTES or kind == KIND_LARGE_BYTES:
        return size + end - begin
    return size + _values_size(schema.children[0], array.children[0], array.children[0].offset + begin, end - begin)


cdef int64_t _batch_size(const ArrowSchema* schema, const ArrowArray* batch) noexcept nogil:
    """Return the bytes of all columns."""
    cdef int64_t size = 0
    cdef int64_t index
    for index in range(batch.n_children):
        size += _values_size(schema.children[index], batch.children[index],
                             batch.children[index].offset + batch.offset, batch.length)
    return size


cdef int64_t _unused_size(const ArrowSchema* schema, const ArrowArray* batch) noexcept nogil:
    """Return the bytes of dictionaries that are more than the rows can use: of values that there are no rows for."""
    cdef const ArrowArray* values
    cdef int64_t size = 0
    cdef int64_t index
    for index in range(batch.n_children):
        values = batch.children[index].dictionary
        if values != NULL and values.length > batch.length:
            size += <int64_t>(_values_size(schema.children[index].dictionary, values, values.offset, values.length)
                              * (1 - <double>batch.length / <double>values.length))
    return size


cdef bint _has_size(const ArrowSchema* schema) noexcept nogil:
    """Whether the bytes of a type are found here: it is plain, or has dictionaries of such."""
    cdef int32_t width
    cdef int64_t index
    if kind_of_format(schema.format, &width) < 0:
        return False
    if schema.dictionary != NULL and not _has_size(schema.dictionary):
        return False
    for index in range(schema.n_children):
        if not _has_size(schema.children[index]):
            return False
    return True


cdef enum:
    SEEN_BATCHES = 251

#: batches that were measured last, by address: a weak reference, the bytes, and those that rows can use
cdef list seen_batches = [(None, 0, 0)] * SEEN_BATCHES


def batch_bytes(batch):
    """Return the number of bytes the rows of a batch have, of larger buffers that they lie in no more than their part.

    A batch that goes from operator to operator is measured once: to open it gives the GIL away, and takes it back.
    """
    return _sizes(batch)[1]


def used_bytes(batch):
    """Return ``batch_bytes``, of dictionaries no more than rows can use: a few have the texts of all others."""
    return _sizes(batch)[2]


cdef tuple _sizes(object batch):
    cdef Py_ssize_t place = (<Py_ssize_t><void*>batch >> 4) % SEEN_BATCHES
    cdef tuple seen = seen_batches[place]
    if seen[0] is None or seen[0]() is not batch:
        seen_batches[place] = seen = _measured(batch)
    return seen


cdef tuple _measured(object batch):
    cdef OpenedBatch opened = opened_batch(batch)
    cdef int64_t size, unused = 0
    if _has_size(opened.types):
        size, unused = _batch_size(opened.types, opened.array), _unused_size(opened.types, opened.array)
    else:
        size = batch.nbytes
    return ref(batch), size, size - unused


cdef object _unsupported(object schema, const ArrowSchema* exported):
    """Return the error that names the first unsupported column."""
    cdef int64_t index
    for index in range(exported.n_children):
        if _check_schema(exported.children[index]) < 0:
            field = schema.field(index)
            name = "a computed column" if field.name.startswith("__") else f"column '{field.name}'"
            return SchemaError(f"{name} has the type {field.type}, which rows cannot hold; leave it out, or make it "
                               "of one type, such as a struct, where it comes from")
    return SchemaError(f"a schema that cannot be read: {schema}")


cdef TypeNode* types_of_schema(object schema) except NULL:
    """Return the types of a schema as kinds, in one block of memory."""
    capsule = schema.__arrow_c_schema__()
    cdef ArrowSchema* exported = <ArrowSchema*>PyCapsule_GetPointer(capsule, b"arrow_schema")
    if _check_schema(exported) < 0:
        raise _unsupported(schema, exported)
    cdef TypeNode* nodes = <TypeNode*>calloc(<size_t>_node_count(exported) + 1, sizeof(TypeNode))
    if nodes == NULL:
        raise MemoryError
    _fill_types(exported, nodes)
    return nodes


@cython.final
cdef class ArrowBatch:
    """A record batch whose columns kernels can read. Made by ``ArrowBatch.open`` (Cython) only."""

    def __cinit__(self):
        self.columns = NULL
        self._views = NULL

    def __dealloc__(self):
        free(self._views)
        free(self.outside)

    cdef int keep_outside(self, int32_t column, uint8_t* flags, object owners) except -1:
        if self.outside == NULL:
            self.outside = <uint8_t**>calloc(<size_t>self.column_count, sizeof(uint8_t*))
            if self.outside == NULL:
                raise MemoryError
            self._moved = self._moved or []
        self._moved.append(owners)
        self.outside[column] = flags
        return 0

    @staticmethod
    cdef ArrowBatch open(object batch):
        """Open a pyarrow.RecordBatch.

        Raises:
            SchemaError: a column has a type that rows cannot hold.
            DataError: the batch has 2 GiB or more.
        """
        cdef OpenedBatch source = opened_batch(batch)
        cdef int32_t state = _check_schema(source.types)
        cdef ArrowBatch opened
        if state == NOT_PLAIN:
            batch = plain_batch(batch)
            source = opened_batch(batch)
            state = _check_schema(source.types)
        if state < 0:
            raise _unsupported(batch.schema, source.types)
        opened = batch_of(batch, source.types, source.array)
        opened._opened = source
        return opened

    @staticmethod
    cdef ArrowBatch open_columns(object batch, list places, bint are_codes):
        cdef OpenedBatch source = opened_batch(batch)
        cdef ArrowSchema schema = source.types[0]
        cdef ArrowArray array = source.array[0]
        cdef ArrowBatch opened
        cdef Py_ssize_t index, place, width = schema.n_children if places is None else len(places)
        cdef void** chosen = <void**>calloc(<size_t>(2 * width + 1), sizeof(void*))
        cdef ArrowSchema* codes = <ArrowSchema*>calloc(<size_t>(width + 1), sizeof(ArrowSchema))
        try:
            if chosen == NULL or codes == NULL:
                raise MemoryError
            for index in range(width):
                place = index if places is None else <Py_ssize_t>places[index]
                chosen[index] = source.types.children[place]
                chosen[width + index] = source.array.children[place]
                if are_codes and source.types.children[place].dictionary != NULL:
                    codes[index] = source.types.children[place][0]
                    codes[index].dictionary = NULL
                    chosen[index] = &codes[index]
            schema.children, schema.n_children = <ArrowSchema**>chosen, width
            array.children, array.n_children = <ArrowArray**>(chosen + width), width
            if _check_schema(&schema) < 0:
                batch = batch if places is None else batch.select(places)
                return ArrowBatch.open(_without_codes(batch) if are_codes else batch)
            opened = batch_of(batch, &schema, &array)
        finally:
            free(chosen)
            free(codes)
        opened._opened, opened._places = source, places
        return opened

    cdef object field(self, int32_t column):
        return self.batch.schema.field(column if self._places is None else self._places[column])


cdef object _without_codes(object batch):
    """The batch with the codes themselves in place of what comes as codes."""
    arrays = [array.indices if pa.types.is_dictionary(array.type) else array for array in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


cdef ArrowBatch batch_of(object batch, const ArrowSchema* schema, const ArrowArray* array):
    """The columns of a batch of plain types, whose structures the caller keeps."""
    cdef int64_t size = _batch_size(schema, array)
    cdef ArrowBatch opened = ArrowBatch.__new__(ArrowBatch)
    if size > BATCH_BYTES_MAX:
        raise DataError(
            f"a batch of {array.length} rows has {size} bytes, more than the {BATCH_BYTES_MAX} that can "
            "be made into rows at one time; cut it into smaller batches"
        )
    opened.batch = batch
    opened.row_count = array.length
    opened.column_count = <int32_t>array.n_children
    opened._views = calloc(<size_t>_node_count(schema) + 1, sizeof(ColumnView))
    if opened._views == NULL:
        raise MemoryError
    opened.columns = <ColumnView*>opened._views
    _fill_views(schema, array, opened.columns)
    if array.length * array.n_children <= BRIEF_VALUES:
        _settle_columns(opened.columns, array)
    else:
        with nogil:
            _settle_columns(opened.columns, array)
    return opened
