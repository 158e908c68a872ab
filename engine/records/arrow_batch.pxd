# ArrowBatch: an Arrow record batch opened for kernels through the Arrow C data interface.
#
# Opening costs one call per batch; afterwards every column is a ColumnView: plain pointers that kernels read without
# the GIL. The view borrows: it is valid while the ArrowBatch lives (which holds the C structures and so the buffers).

from libc.stdint cimport int32_t, int64_t, uint8_t

from engine.records.opened_batch cimport OpenedBatch

# What a kernel must know of a type. Several Arrow types share a kind: date32 is KIND_INT32, timestamp KIND_INT64.
cdef enum Kind:
    KIND_NULL = 0
    KIND_BOOL = 1          # one bit a value in Arrow, one byte in a row
    KIND_INT8 = 2
    KIND_INT16 = 3
    KIND_INT32 = 4
    KIND_INT64 = 5
    KIND_UINT8 = 6
    KIND_UINT16 = 7
    KIND_UINT32 = 8
    KIND_UINT64 = 9
    KIND_FLOAT16 = 10
    KIND_FLOAT32 = 11
    KIND_FLOAT64 = 12
    KIND_DECIMAL128 = 13
    KIND_DECIMAL256 = 14
    KIND_FIXED_BYTES = 15  # width bytes
    KIND_BYTES = 16        # string, binary: int32 offsets
    KIND_LARGE_BYTES = 17  # large_string, large_binary: int64 offsets
    KIND_LIST = 18         # list, map: int32 offsets into child 0
    KIND_LARGE_LIST = 19
    KIND_FIXED_LIST = 20
    KIND_STRUCT = 21

# A type as a tree of kinds; owned by the caller (free_types).
cdef struct TypeNode:
    int32_t kind               # Kind
    int32_t width              # bytes of one fixed-width value; KIND_FIXED_LIST: values of one list; else 0
    int32_t child_count
    TypeNode* children

cdef struct ColumnView:
    int32_t kind               # Kind
    int32_t width              # bytes of one fixed-width value; KIND_FIXED_LIST: values of one list; else 0
    int64_t offset             # logical index of row 0 in the buffers (Arrow's array offset)
    int64_t null_count         # 0: no nulls (then validity is NULL); > 0 or -1: look at validity. Never -1 in a column
    const uint8_t* validity    # bitmap, NULL: no nulls
    const uint8_t* values      # fixed-width values, bits of bools, or the bytes of variable values
    const uint8_t* offsets     # int32_t or int64_t offsets of variable and list kinds, else NULL
    int32_t child_count
    ColumnView* children       # nested kinds, else NULL. Row r of a struct is row offset + r of each child; of a
                               # fixed-size list: rows (offset + r) * width and following of child 0; of a list:
                               # rows offsets[offset + r] up to offsets[offset + r + 1] of child 0

cdef class ArrowBatch:
    cdef readonly int64_t row_count
    cdef readonly int32_t column_count
    cdef readonly object batch        # the pyarrow.RecordBatch (of plain types), kept alive
    cdef ColumnView* columns
    cdef OpenedBatch _opened          # what the columns lie in
    cdef void* _views                 # the block of memory that holds columns and their children
    cdef uint8_t** outside            # NULL, or for each column NULL or a flag for each row: the value is a reference
    cdef bint has_moved               # wide values have been looked for
    cdef list _moved                  # what the views of such columns lie in
    cdef list _places                 # of its columns in the batch; None: they are the batch's

    @staticmethod
    cdef ArrowBatch open(object batch)
    # The same of some columns of a batch, by their numbers, None: all; with are_codes, numbers of dictionaries for what
    # comes as such.
    @staticmethod
    cdef ArrowBatch open_columns(object batch, list places, bint are_codes)
    # The field of a column.
    cdef object field(self, int32_t column)
    # Note that a column's view has references (outside_values), and keep alive what it lies in.
    cdef int keep_outside(self, int32_t column, uint8_t* flags, object owners) except -1

# The kind of a format string, of a dictionary that of its codes, and the width of a value; negative: it has none.
cdef int32_t kind_of_format(const char* format, int32_t* width) noexcept nogil

# The types of a schema (plain types only), one node for each column, in one block; column_count entries.
# Raises SchemaError naming the column and its type. Give it back with free().
cdef TypeNode* types_of_schema(object schema) except NULL

# Whether row is null in column. Caller guarantees 0 <= row < row_count.
cdef inline bint column_is_null(const ColumnView* column, int64_t row) noexcept nogil:
    cdef int64_t bit
    if column.validity == NULL:
        return column.kind == KIND_NULL
    bit = column.offset + row
    return not (column.validity[bit >> 3] >> (bit & 7)) & 1
