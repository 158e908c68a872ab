"""DistinctSketches: about how many different values the columns of a stream have, in 4 KiB a column.

    sketches = DistinctSketches(schema)      for the columns that can be keys
    add(batch)                               any number of times
    registers(name) -> bytes                 of one column, to be merged with others and counted (records_parts)

    64-bit hash of a value    | index, 12 bits | rank: zero bits before the first one of the other 52, plus 1 |
    register[index]           the largest rank seen, 0: none

Every value costs its hash and one byte of a table that fits the first cache; equal values change nothing, nulls are
left out. Two sketches merge by the larger of each pair of registers, so parts can be sketched apart.

Invariants: registers are 0..53. The hash is the row hash: the same value has the same in every process.
Limits: a standard error of 1.6 %; for the estimate see ``records_parts.distinct_estimate``.

Source: Flajolet, Fusy, Gandouet and Meunier, HyperLogLog (2007).
Held by: tests/connectors/test_records_writer.py
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc

from engine.records.arrow_batch cimport ArrowBatch, ColumnView, column_is_null
from engine.records.hashing cimport hash_batch
from engine.records.key_types import is_key_type

cdef extern from *:
    int leading_zeros "__builtin_clzll"(unsigned long long) noexcept nogil

cdef enum:
    INDEX_BITS = 12
    REGISTERS = 1 << INDEX_BITS


@cython.final
cdef class DistinctSketches:
    """Sketches of the columns of a schema that can be keys.

    Args:
        schema: pyarrow.Schema of the batches.

    Thread: one at a time.
    """

    cdef readonly tuple names
    cdef int32_t* _columns              # positions of the sketched columns
    cdef uint8_t* _registers            # REGISTERS of each of them

    def __cinit__(self, schema not None):
        cdef int32_t index
        positions = [position for position, field in enumerate(schema) if is_key_type(field.type)]
        self.names = tuple(schema.names[position] for position in positions)
        self._columns = <int32_t*> calloc(len(positions) + 1, sizeof(int32_t))
        self._registers = <uint8_t*> calloc(len(positions) + 1, REGISTERS)
        if self._columns == NULL or self._registers == NULL:
            raise MemoryError
        for index in range(<int32_t> len(positions)):
            self._columns[index] = positions[index]

    def __dealloc__(self):
        free(self._columns)
        free(self._registers)

    def add(self, batch not None):
        """Take the values of a pyarrow.RecordBatch of the schema."""
        cdef ArrowBatch opened = ArrowBatch.open(batch)
        cdef int32_t count = <int32_t> len(self.names)
        cdef int32_t index
        cdef uint64_t* hashes = <uint64_t*> malloc((<size_t> opened.row_count + 1) * sizeof(uint64_t))
        if hashes == NULL:
            raise MemoryError
        with nogil:
            for index in range(count):
                hash_batch(opened, self._columns + index, 1, 0, opened.row_count, hashes)
                take(&opened.columns[self._columns[index]], hashes, opened.row_count,
                     self._registers + <int64_t> index * REGISTERS)
        free(hashes)

    def registers(self, str name not None):
        """Return the registers of a column as bytes, 4096 of them."""
        cdef int64_t index = self.names.index(name)
        return (<char*> self._registers)[index * REGISTERS:(index + 1) * REGISTERS]


cdef void take(const ColumnView* column, const uint64_t* hashes, int64_t count, uint8_t* registers) noexcept nogil:
    cdef int64_t row
    cdef uint64_t rest
    cdef uint64_t index
    cdef uint8_t rank
    cdef bint has_nulls = column.null_count != 0
    for row in range(count):
        if has_nulls and column_is_null(column, row):
            continue
        index = hashes[row] >> (64 - INDEX_BITS)
        # A one behind the last bit bounds the rank.
        rest = hashes[row] << INDEX_BITS | <uint64_t> 1 << (INDEX_BITS - 1)
        rank = <uint8_t> (leading_zeros(rest) + 1)
        if rank > registers[index]:
            registers[index] = rank
