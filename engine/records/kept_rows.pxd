# Rows that a mask keeps, for kernels elsewhere.

from libc.stdint cimport int32_t, int64_t, uint8_t

from engine.records.arrow_c_data cimport ArrowArray, ArrowSchema
from engine.records.batch_builder cimport BatchBuilder
from engine.records.opened_batch cimport OpenedBatch
from engine.records.row_mask cimport Mask

# Forms of values that have no width of their own.
cdef enum:
    IS_BOOL = -1
    IS_TEXT = -2
    IS_LARGE_TEXT = -3

# A column that is copied here, and where to.
cdef struct KeptColumn:
    int32_t place               # in the batch that is made, -1: it is not wanted
    int32_t kind                # width of a value in bytes, or its form; 0: it is not copied here
    bint is_coded               # values are codes of a dictionary
    bint is_renamed             # it may be of a type of others
    const uint8_t* validity     # NULL: no nulls
    const uint8_t* values       # of texts their offsets, the first row's first
    const uint8_t* texts
    int64_t offset              # of the first row, in bits
    int64_t text_bytes          # that are kept
    int64_t ones                # rows that are kept and not null
    uint8_t* target_validity
    uint8_t* target
    uint8_t* target_texts

# Find where a column lies; offset: of the batch.
cdef void read_column(KeptColumn* column, const ArrowSchema* schema, const ArrowArray* array,
                      int64_t offset) noexcept nogil

# Set columns of a batch to the kept rows of another one: each at its place, -1: none. Sources and results may be kept
# apart.
cdef int keep_into(BatchBuilder builder, list places, Mask mask, object batch) except -1

# Of the rows that are kept some columns, by number, and their schema, for kernels alone.
cdef OpenedBatch kept_unshown(Mask mask, object batch, list places, object schema)
