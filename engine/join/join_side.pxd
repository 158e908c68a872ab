# JoinSide: schema, row codec and key columns of one input of a join.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from engine.records.arrow_batch cimport ArrowBatch
from engine.records.row_codec cimport RowCodec


@cython.final
cdef class JoinSide:
    cdef readonly object schema       # pyarrow.Schema of plain types (no dictionaries)
    cdef RowCodec codec
    cdef int32_t* keys                # column indexes of the keys
    cdef int32_t key_count
    cdef bint hash_is_key             # rows without null keys: equal hashes are equal keys

    cdef void hash_batch(self, ArrowBatch batch, int64_t start, int64_t count, uint64_t* hashes) noexcept nogil
    cdef void hash_rows(self, uint8_t** rows, int64_t count, uint64_t* hashes) noexcept nogil
    # flags[i] = 1 when a key of the row is null; returns how many
    cdef int64_t null_keys_of_batch(self, ArrowBatch batch, int64_t start, int64_t count,
                                    uint8_t* flags) noexcept nogil
    cdef int64_t null_keys_of_rows(self, uint8_t** rows, int64_t count, uint8_t* flags) noexcept nogil
