# BuildInput: build rows on their way into a join's partitions.

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from engine.join.dictionary_table cimport DictionaryTable
from engine.join.join_side cimport JoinSide
from engine.join.partition_set cimport PartitionSet
from engine.join.recent_rows cimport RecentRows
from engine.join.table_choice cimport TableChoice
from engine.records.arrow_batch cimport ArrowBatch


@cython.final
cdef class BuildInput:
    cdef int64_t row_count           # of add_batch and add_collected; null keys included
    cdef int64_t null_key_count
    cdef uint8_t** rows              # scratch, others' as well while nothing is added: CHUNK_ROWS each
    cdef uint64_t* hashes
    cdef uint8_t* null_flags
    cdef int64_t* _indices
    cdef JoinSide _build
    cdef bint _keeps_null_keys
    cdef PartitionSet _level
    cdef DictionaryTable _dictionary     # takes rows as they come; None: the level does
    cdef RecentRows _recent          # what came before is left out; None: every row counts
    cdef uint8_t* _block             # scratch of these: BLOCK_ROWS rows
    cdef uint32_t* _block_sizes

    # Have rows go to another level, perhaps of the other side. recent: None, or one row of each key is enough.
    cdef int begin(self, JoinSide build, bint keeps_null_keys, PartitionSet level, RecentRows recent) except -1
    # Let a dictionary table take the rows first, if this build side can have one.
    cdef int fill_dictionary(self, TableChoice tables) except -1
    # A batch of any number of rows.
    cdef int add_batch(self, ArrowBatch batch) except -1
    # Put addresses of contiguous rows behind count others that wait to be added; returns how many wait then.
    cdef int64_t collect(self, const uint8_t[::1] data, int64_t count) except -1
    # Add the rows that wait.
    cdef int add_collected(self, int64_t count) except -1
    # Add rows[:count], which are counted already or were here before.
    cdef int add_rows(self, int64_t count, bint count_nulls) except -1
    # True: the dictionary table has taken all rows, and is worth it. False: all rows are in the level.
    cdef bint finish(self) except -1
    cdef int release(self) except -1

    cdef int _add_chunk(self, ArrowBatch batch, int64_t start, int64_t count) except -1
    cdef int _add_once(self, ArrowBatch batch, int64_t start, int64_t count) except -1
    cdef int _give_up_dictionary(self) except -1
    cdef int64_t _take_rows(self, int64_t count, bint count_nulls, int64_t* null_count, int64_t* taken) noexcept nogil
