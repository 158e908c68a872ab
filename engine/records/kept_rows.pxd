# A mask of rows, for kernels elsewhere.

cimport cython
from libc.stdint cimport int64_t, uint64_t

from engine.records.batch_builder cimport BatchBuilder


@cython.final
cdef class Mask:
    cdef uint64_t* words            # 64 rows each; bits behind the last row are 0
    cdef readonly int64_t rows, kept
    cdef object array(self)

# Set columns of a batch to the kept rows of another one, which is opened by __arrow_c_array__: each at its place, -1:
# none. Sources and results may be kept apart.
cdef int keep_into(BatchBuilder builder, list places, Mask mask, object batch) except -1

# The rows of a batch that are kept, as a batch; all of them: the batch itself.
cdef object kept_batch(Mask mask, object batch)
