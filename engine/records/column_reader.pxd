# One column of rows into Arrow buffers. Every kernel takes a range of rows, so that the caller can go in chunks that
# stay in the cache. Row pointers are never NULL here (the caller puts a row of nulls in their place).

from libc.stdint cimport int32_t, int64_t, uint8_t

# Check each row's size against fixed_size and gather the union of null bits (null_bytes bytes, or-ed into union); rows
# up to available come to the cache. Returns Status.
cdef int scan_rows(uint8_t** rows, int64_t count, int64_t available, int32_t fixed_size, int32_t null_bytes,
                   uint8_t* null_union) noexcept nogil
# Fixed values of width bytes at slot, one behind the other at target.
cdef void read_fixed(uint8_t** rows, int64_t count, int32_t slot, int32_t width, uint8_t* target) noexcept nogil
# Bools: one byte each in the rows, bits at target (count a multiple of 8, or the last range).
cdef void read_bools(uint8_t** rows, int64_t count, int32_t slot, uint8_t* target) noexcept nogil
# Validity bits (1 = not null) of column null_index; returns how many rows are null.
cdef int64_t read_validity(uint8_t** rows, int64_t count, int32_t null_index, uint8_t* target) noexcept nogil
# Where each value ends when all are concatenated behind total[0] bytes; checks that each lies in its row.
# large: int64_t offsets, else int32_t (which wrap when the total outgrows them: the caller looks at total).
cdef int read_offsets(uint8_t** rows, int64_t count, int32_t slot, bint large, uint8_t* target,
                      int64_t* total) noexcept nogil
# The bytes of the values, concatenated so that the last one ends at end; returns where the first begins. Writes nothing
# before base. After read_offsets found the rows sound.
cdef uint8_t* read_bytes(uint8_t** rows, int64_t count, int32_t slot, uint8_t* base, uint8_t* end) noexcept nogil
