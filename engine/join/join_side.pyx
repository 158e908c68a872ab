"""JoinSide: schema, row codec and key columns of one input of a join, so that they travel together.

    side = JoinSide(spec.left, value_owner)         of a JoinInput; out-of-line values of its rows lie with their owner
    side.hash_batch(...) / side.hash_rows(...)      kernels: the same hash from Arrow columns and from rows

Immutable after construction; may be read from any thread.

Held by: tests/join/test_hash_join.py
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc

from engine.records.arrow_batch cimport ArrowBatch, KIND_FLOAT64
from engine.records.hashing cimport hash_batch, hash_rows, null_keys_of_batch, null_keys_of_rows
from engine.records.row_codec cimport RowCodec


@cython.final
cdef class JoinSide:
    """One input (JoinInput) of a join."""

    def __cinit__(self, side, value_owner=None):
        cdef int32_t position
        self.codec = RowCodec(side.schema)
        self.schema = self.codec.schema
        self.key_count = len(side.keys)
        self.keys = <int32_t*> malloc(max(1, self.key_count) * sizeof(int32_t))
        if self.keys == NULL:
            raise MemoryError("key columns of a join")
        for position, column in enumerate(side.keys):
            self.keys[position] = column
        # the hash of one number is a bijection of it (hashing.pyx); without keys all rows are equal
        self.hash_is_key = self.key_count == 0 or (
            self.key_count == 1 and self.codec.kinds[self.keys[0]] <= KIND_FLOAT64)
        if value_owner is not None:
            self.codec.let_outside(value_owner, ())

    def __dealloc__(self):
        free(self.keys)

    cdef void hash_batch(self, ArrowBatch batch, int64_t start, int64_t count, uint64_t* hashes) noexcept nogil:
        hash_batch(batch, self.keys, self.key_count, start, count, hashes)

    cdef void hash_rows(self, uint8_t** rows, int64_t count, uint64_t* hashes) noexcept nogil:
        hash_rows(self.codec, self.keys, self.key_count, rows, count, hashes)

    cdef int64_t null_keys_of_batch(self, ArrowBatch batch, int64_t start, int64_t count,
                                    uint8_t* flags) noexcept nogil:
        return null_keys_of_batch(batch, self.keys, self.key_count, start, count, flags)

    cdef int64_t null_keys_of_rows(self, uint8_t** rows, int64_t count, uint8_t* flags) noexcept nogil:
        return null_keys_of_rows(self.codec, self.keys, self.key_count, rows, count, flags)
