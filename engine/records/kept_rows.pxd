# Rows that a mask keeps, for kernels elsewhere.

from engine.records.batch_builder cimport BatchBuilder
from engine.records.row_mask cimport Mask

# Set columns of a batch to the kept rows of another one: each at its place, -1: none. Sources and results may be kept
# apart.
cdef int keep_into(BatchBuilder builder, list places, Mask mask, object batch) except -1

# The rows of a batch that are kept, as a batch; all of them: the batch itself.
cdef object kept_batch(Mask mask, object batch)

# Of these rows some columns, by number, and their schema.
cdef object kept_of(Mask mask, object batch, list places, object schema)
