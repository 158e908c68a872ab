# OpenedBatch: the structures of the Arrow C data interface that say where the columns of a batch lie.

cimport cython

from engine.records.arrow_c_data cimport ArrowArray, ArrowSchema


@cython.final
cdef class OpenedBatch:
    cdef const ArrowSchema* schema
    cdef const ArrowArray* array
    cdef bint is_noted              # array is a note_batch's
    cdef object _owners             # what they lie in

# The structures of a pyarrow.RecordBatch, which live as long as what is returned.
cdef OpenedBatch opened_batch(object batch)

# Whether a batch is noted.
cdef bint is_noted(object batch)

# The schema of a batch; the object that it was made with where that is known, of which the structure is kept.
cdef object schema_of(object batch)

# Note where the columns of a batch lie, which the batch keeps alive.
cdef int note_batch(object batch, object schema, const ArrowArray* array) except -1
