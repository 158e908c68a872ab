# TableChoice: which kind of table a build side gets, and the table that it has.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from engine.join.build_table cimport BuildTable
from engine.join.dense_table cimport DenseTable
from engine.join.dictionary_table cimport DictionaryTable
from engine.join.entry_pages cimport EntryPages
from engine.join.join_side cimport JoinSide
from engine.join.replicated_hashes cimport ReplicatedHashes
from engine.join.tagged_table cimport TaggedTable
from engine.memory.page_pool cimport PagePool


@cython.final
cdef class TableChoice:
    cdef BuildTable table                # the chosen one; the tagged one, empty, until something is chosen
    cdef ReplicatedHashes copies         # rows of these keys are inserted as matched; None: there are none
    cdef PagePool _pool
    cdef JoinSide _build
    cdef JoinSide _probe
    cdef TaggedTable _tagged
    cdef DenseTable _dense
    cdef DictionaryTable _dictionary     # None until it is asked for

    # A dictionary table to take rows before partitions do, leaving them so many pages; None: not for this build side.
    cdef DictionaryTable open_dictionary(self, int64_t pages_kept, bint one_is_enough)
    # The dictionary table has taken all rows.
    cdef int choose_dictionary(self) except -1
    # Insert rows of partitions into a dense table as they come. False: give_up_early() comes next.
    cdef bint insert_early(self, uint8_t** rows, int64_t count) noexcept nogil
    # Forget what was inserted early; returns whether links of rows have been written.
    cdef bint give_up_early(self) noexcept nogil
    # Look at the keys of rows that come, once nothing is inserted early any more; and of those that came before.
    cdef void see(self, uint8_t** rows, int64_t count) noexcept nogil
    cdef void see_all(self, const EntryPages* entries) noexcept nogil
    cdef void forget_seen(self) noexcept nogil
    # All rows are there: whether a table that took them as they came has them all, which is the chosen one then.
    cdef bint choose_filled(self) except -1
    # Choose a table for so many rows, which lie in those of these partitions that are not spilled, and take its pages.
    cdef int choose(self, EntryPages** partitions, int32_t partition_count, int64_t rows) except -1
    # The same for a part of a build side, as many rows as it happens to be.
    cdef int choose_tagged(self, int64_t rows) except -1
    # Pages that the latter takes at the least.
    cdef int64_t pages_needed(self, int64_t rows) noexcept nogil
    # Insert all rows of a partition into the chosen table; rows, hashes: scratch of so many.
    cdef void fill(self, const EntryPages* entries, uint8_t** rows, uint64_t* hashes, int64_t capacity) noexcept nogil
    # Probe the pages of another build side's table, which must stay as it is until release().
    cdef int borrow(self, TableChoice owner) except -1
    # Give all pages back and begin again.
    cdef int release(self) except -1

    cdef DictionaryTable _dictionary_table(self)
