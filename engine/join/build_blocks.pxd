# BuildBlocks: a build file in blocks that fit memory, one after the other in a table.

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t

from engine.iomanager.spill_reader cimport SpillReader
from engine.join.entry_pages cimport EntryPages
from engine.join.join_side cimport JoinSide
from engine.join.key_part cimport KeyPart
from engine.join.recent_rows cimport RecentRows
from engine.join.table_choice cimport TableChoice
from engine.memory.page_pool cimport PagePool


@cython.final
cdef class BuildBlocks:
    cdef EntryPages entries         # the rows in memory now
    cdef readonly int64_t pass_count
    cdef readonly bint at_end       # the block in memory is the last
    cdef JoinSide _build
    cdef PagePool _pool
    cdef KeyPart _part              # of the keys, whose rows are taken
    cdef RecentRows _recent         # what came before is left out; None: every row counts
    cdef SpillReader _reader
    cdef int64_t _row_limit
    cdef const uint8_t* _data       # the reader's current file block
    cdef int64_t _size
    cdef int64_t _offset
    cdef uint8_t** _rows            # scratch
    cdef uint64_t* _hashes

    # Replace the rows in memory and in the table by the next ones; False when there are none left.
    cdef bint load(self, TableChoice tables) except -1
    cdef int release(self) except -1

    cdef bint _fill(self, TableChoice tables) except -1 nogil
    cdef bint _place(self, TableChoice tables, uint8_t* row) noexcept nogil
