"""TableChoice: which kind of table a build side gets, and the table that it has.

    rows come ─► DictionaryTable, before partitions ─── all taken, worth it ───────► choose_dictionary()
                       └─ one is not taken ─► all are rows of partitions
                                                 ├─► DenseTable, as they come (insert_early) ─► choose_filled()
                                                 │      └─ one is not taken, a page is wanted ─► give_up_early()
                                                 └─ all are there (choose) ─┬─► DenseTable  ─► fill
                                                                            └─► TaggedTable ─► fill

    kind         asks for                                                      costs
    dictionary   one key of numbers close together, no two rows with the       a byte a number of the keys' range
                 same, rows that differ in it alone, no matched bits
    dense        one key of numbers close together                             4 bytes a number of the range
    tagged       any keys                                                      10 to 16 bytes a key

A table of fewer bytes and without hashes is asked first; the tagged one takes anything. While there is room for
neither, more rows are spilled, so where not all fit it is the smaller one, or the dense one while it is not much
larger: what it saves for each probe row is more than what the few rows cost that are spilled for it. Parts of a build
side that come one after the other (``build_blocks``) are tagged tables.

Copied rows (``replicated_keys``) get the matched bit when they are inserted, so no table is filled early with them.

Invariants: at most one table holds pages, that is ``table`` or one that takes rows early. Thread: one at a time.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memset

from engine.join.build_table cimport TABLE_DENSE, TABLE_DICTIONARY
from engine.join.dense_table cimport DenseTable
from engine.join.dictionary_table cimport DictionaryTable
from engine.join.entry_pages cimport LINK_MATCHED, EntryCursor, EntryPages, next_entries, row_link
from engine.join.join_side cimport JoinSide
from engine.join.tagged_table cimport TaggedTable
from engine.memory.page_pool cimport PagePool
from engine.memory.status cimport STATUS_OK

cdef enum:
    FILL_ROWS = 1024                # inserted at one time: they stay in the cache while they are hashed and linked


@cython.final
cdef class TableChoice:
    """The tables of one choice of roles; the methods are for the join's kernels (see the .pxd)."""

    def __cinit__(self, PagePool pool not None, JoinSide build not None, JoinSide probe not None):
        self._pool = pool
        self._build = build
        self._probe = probe
        self._tagged = TaggedTable(pool, build, probe)
        self._dense = DenseTable(pool, build, probe)
        self.table = self._tagged

    # ------------------------------------------------------------------------------------ while rows come

    cdef DictionaryTable _dictionary_table(self):
        if self._dictionary is None:
            self._dictionary = DictionaryTable(self._pool, self._build, self._probe)
        return self._dictionary

    cdef DictionaryTable open_dictionary(self, int64_t pages_kept, bint one_is_enough):
        return self._dictionary if self._dictionary_table().open(pages_kept, one_is_enough) else None

    cdef int choose_dictionary(self) except -1:
        self.table = self._dictionary
        return 0

    cdef bint insert_early(self, uint8_t** rows, int64_t count) noexcept nogil:
        return self.copies is None and self._dense.insert(rows, NULL, count) == count

    cdef bint give_up_early(self) noexcept nogil:
        cdef bint has_chains = self._dense.has_chains
        self._dense.release()           # only this one: the dictionary table may be giving its rows back
        return has_chains

    cdef void see(self, uint8_t** rows, int64_t count) noexcept nogil:
        self._dense.see(rows, count)

    cdef void see_all(self, const EntryPages* entries) noexcept nogil:
        self._dense.see_all(entries)

    cdef void forget_seen(self) noexcept nogil:
        self._dense.forget_seen()

    cdef bint choose_filled(self) except -1:
        if self._dense.row_count > 0:
            self.table = self._dense
        return self.table.row_count > 0

    # ------------------------------------------------------------------------------------ all are there

    cdef int choose(self, EntryPages** partitions, int32_t partition_count, int64_t rows) except -1:
        cdef int status
        self.release()
        with nogil:             # first touch of the pages takes long
            status = self._dense.reserve(partitions, partition_count, rows)
        if status == STATUS_OK:
            self.table = self._dense
            return status
        if self._dense.is_worth_spilling_for(rows):
            return status
        with nogil:
            return self._tagged.reserve(partitions, partition_count, rows)

    cdef int choose_tagged(self, int64_t rows) except -1:
        self.release()
        with nogil:
            return self._tagged.reserve(NULL, 0, rows)

    cdef int64_t pages_needed(self, int64_t rows) noexcept nogil:
        return self._tagged.pages_needed(rows)

    cdef void fill(self, const EntryPages* entries, uint8_t** rows, uint64_t* hashes, int64_t capacity) noexcept nogil:
        cdef bint hashed = self.table.needs_hashes or self.copies is not None
        cdef int64_t count, index
        cdef EntryCursor cursor
        memset(&cursor, 0, sizeof(cursor))
        while True:
            count = next_entries(entries, &cursor, rows, min(capacity, <int64_t>FILL_ROWS))
            if count == 0:
                return
            if hashed:
                self._build.hash_rows(rows, count, hashes)
            self.table.insert(rows, hashes, count)
            if self.copies is not None:
                for index in range(count):
                    if self.copies.contains(hashes[index]):
                        row_link(rows[index])[0] |= LINK_MATCHED

    cdef int borrow(self, TableChoice owner) except -1:
        self.release()
        if owner.table.kind == TABLE_DICTIONARY:
            self.table = self._dictionary_table()
        elif owner.table.kind == TABLE_DENSE:
            self.table = self._dense
        return self.table.borrow(owner.table)

    cdef int release(self) except -1:
        self._tagged.release()
        self._dense.release()
        if self._dictionary is not None:
            self._dictionary.release()
        self.table = self._tagged
        return 0
