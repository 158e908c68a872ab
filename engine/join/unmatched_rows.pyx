"""UnmatchedRows: the build rows in memory that no probe row has matched, as output batches.

    rows = unmatched_rows(output) ─► rows.add(&partition.entries)* ─► for batch in rows: ...

Walks the entries in their order and leaves out those that carry the matched bit. Batches are bounded by rows and bytes;
what several partitions leave comes in one.

Held by: tests/join/test_hash_join.py
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memset

from engine.join.entry_pages cimport LINK_MATCHED, EntryCursor, EntryPages, next_entries, row_link
from engine.join.match_output cimport MatchOutput
from engine.join.probe_matches cimport OUTPUT_BYTES, OUTPUT_ROWS
from engine.records.row_codec cimport row_size


@cython.final
cdef class UnmatchedRows:
    """Iterator over output batches."""

    def __cinit__(self):
        self._rows = <uint8_t**>malloc(OUTPUT_ROWS * sizeof(uint8_t*))
        if self._rows == NULL:
            raise MemoryError("scratch of a join's unmatched rows")

    def __dealloc__(self):
        free(self._rows)
        free(self._sources)

    cdef int add(self, const EntryPages* entries) except -1:
        cdef const EntryPages** sources
        if not entries.row_count:
            return 0
        sources = <const EntryPages**>realloc(self._sources, (self._source_count + 1) * sizeof(EntryPages*))
        if sources == NULL:
            raise MemoryError("partitions of a join")
        sources[self._source_count] = entries
        self._sources = sources
        self._source_count += 1
        return 0

    def __iter__(self):
        return self

    def __next__(self):
        cdef int64_t begin, end
        with nogil:
            while self._begin == self._count:
                self._begin = 0
                self._count = self._next_unmatched()
            begin = self._begin
            end = self._bounded() if self._count >= 0 else begin
        if self._count < 0:
            raise StopIteration
        end = begin + self._output.rows_within(self._rows + begin, end - begin)
        self._begin = end
        return self._output.unmatched_build(self._rows + begin, end - begin)

    # The next unmatched entries; -1 at the end.
    cdef int64_t _next_unmatched(self) noexcept nogil:
        cdef int64_t unmatched = 0
        cdef int64_t count, index, first
        while unmatched < OUTPUT_ROWS and self._source < self._source_count:
            first = unmatched
            count = next_entries(self._sources[self._source], &self._cursor, self._rows + first, OUTPUT_ROWS - first)
            for index in range(first, first + count):
                if not row_link(self._rows[index])[0] & LINK_MATCHED:
                    self._rows[unmatched] = self._rows[index]
                    unmatched += 1
            if count == 0:
                self._source += 1
                memset(&self._cursor, 0, sizeof(EntryCursor))
        return unmatched if unmatched else -1

    # The end of the next batch.
    cdef int64_t _bounded(self) noexcept nogil:
        cdef int64_t bytes_taken = 0
        cdef int64_t index
        for index in range(self._begin, self._count):
            bytes_taken += row_size(self._rows[index])
            if index > self._begin and bytes_taken > OUTPUT_BYTES:
                return index
        return self._count


cdef UnmatchedRows unmatched_rows(MatchOutput output):
    cdef UnmatchedRows rows = UnmatchedRows()
    rows._output = output
    return rows
