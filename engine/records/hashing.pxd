# The 64-bit hash of key columns, the same from Arrow columns and from rows.
#
# The bits that each level uses (a later level must not see bits that an earlier one has divided by):
#     bits 63..32   exchange: channel = (hash >> 32) * channels >> 32
#     bits 31..16   join and aggregate: partition of level 0; deeper levels hash again with their own seed
#     bits 15..0    tag of the table's directory;  the directory's index comes from a remix of all bits

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from engine.records.arrow_batch cimport ArrowBatch
from engine.records.row_codec cimport RowCodec

# hashes[i] = hash of the key columns of row start + i. Null, -0.0 and every NaN hash as one value each.
cdef void hash_batch(ArrowBatch batch, const int32_t* columns, int32_t column_count, int64_t start, int64_t count,
                     uint64_t* hashes) noexcept nogil
cdef void hash_rows(RowCodec codec, const int32_t* columns, int32_t column_count, uint8_t** rows, int64_t count,
                    uint64_t* hashes) noexcept nogil
# flags[i] = 1 when any key column of the row is null, else 0. Returns how many.
cdef int64_t null_keys_of_batch(ArrowBatch batch, const int32_t* columns, int32_t column_count, int64_t start,
                                int64_t count, uint8_t* flags) noexcept nogil
cdef int64_t null_keys_of_rows(RowCodec codec, const int32_t* columns, int32_t column_count, uint8_t** rows,
                               int64_t count, uint8_t* flags) noexcept nogil

# A fresh hash for recursion level: bijective, so equal hashes stay equal.
cdef inline uint64_t rehash(uint64_t hash, uint32_t level) noexcept nogil:
    cdef uint64_t mixed = hash + (<uint64_t>level) * 0x9E3779B97F4A7C15U
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9U
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBU
    return mixed ^ (mixed >> 31)

# The spill partition of a hash on a level of recursion, for joins and aggregates.
cdef inline int32_t partition_of_hash(uint64_t hash, uint32_t level, int32_t partition_count) noexcept nogil:
    cdef uint64_t mixed = rehash(hash, level) if level else hash
    return <int32_t>((((mixed >> 16) & 0xFFFF) * <uint64_t>partition_count) >> 16)
