# OpenedBatch: the structures of the Arrow C data interface that say where the columns of a batch lie.

cimport cython
from libc.stdint cimport int32_t

from engine.records.arrow_c_data cimport ArrowArray, ArrowSchema


@cython.final
cdef class OpenedBatch:
    cdef const ArrowSchema* types
    cdef const ArrowArray* array
    cdef bint is_noted              # array is a builder's
    cdef object _owners             # what they lie in
    cdef object _schema             # pyarrow.Schema; None: the batch has it
    cdef object _batch              # pyarrow.RecordBatch; None: it has not been asked for
    cdef ArrowArray _owned          # what it is made of then; release NULL: it has been made
    cdef dict _dictionaries         # pyarrow.Array by column, of those that are known
    cdef object __weakref__

    # The batch as Arrow's.
    cdef object record_batch(self)
    # What the codes of a column stand for.
    cdef object dictionary(self, int32_t column)

# The structures of a pyarrow.RecordBatch, which live as long as what is returned; an OpenedBatch is one.
cdef OpenedBatch opened_batch(object batch)

# What a builder has made, without Arrow: `owned` are its structures, and `array` the same in its own memory.
cdef OpenedBatch unshown_batch(object schema, ArrowArray* owned, const ArrowArray* array, dict dictionaries)

# A batch of Arrow's, of an OpenedBatch or as it is.
cdef object shown_batch(object batch)

# Whether a batch is noted.
cdef bint is_noted(object batch)

# The schema of a batch; the object that it was made with where that is known, of which the structure is kept.
cdef object schema_of(object batch)

# Note where the columns of a batch lie, which the batch keeps alive.
cdef int note_batch(object batch, object schema, const ArrowArray* array) except -1
