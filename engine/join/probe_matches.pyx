"""ProbeMatches: the matches of one chunk of probe rows, handed out as bounded pairs (probe row, build row).

    (join fills hashes, skip, heads) ─► begin(...) ─► next_pairs() ─► pair_rows, pair_build ... ─► next_pairs() == 0

A probe row's matches are the chain that begins at its head. Position and chain survive between two calls, so one probe
row with millions of matches comes out as many outputs, each bounded by rows and bytes. When no build key occurs twice
(a dimension table) there are no chains: one tight loop yields at most one pair for each probe row, in probe order.

Bytes: with chains a pair counts the sizes of both rows. Without them a probe row comes out once, its bytes are bounded
by its batch, and only build rows count, where they can be large at all.

Thread: one at a time; all memory is of fixed size.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free

from engine.join.entry_pages cimport LINK_MATCHED, LINK_POINTER, row_link
from engine.join.partition_set cimport CHUNK_ROWS
from engine.records.row_codec cimport row_size


@cython.final
cdef class ProbeMatches:
    """Scratch and position of one probing thread."""

    def __cinit__(self):
        self.hashes = <uint64_t*>calloc(CHUNK_ROWS, sizeof(uint64_t))
        self.null_flags = <uint8_t*>calloc(CHUNK_ROWS, 1)
        self.skip = <uint8_t*>calloc(CHUNK_ROWS, 1)
        self.matched_before = <uint8_t*>calloc(CHUNK_ROWS, 1)
        self.row_sizes = <uint32_t*>calloc(CHUNK_ROWS, sizeof(uint32_t))
        self.heads = <uint8_t**>calloc(CHUNK_ROWS, sizeof(uint8_t*))
        self.wanted = <int64_t*>calloc(CHUNK_ROWS, sizeof(int64_t))
        self.spilled = <int64_t*>calloc(CHUNK_ROWS, sizeof(int64_t))
        self.spilled_hashes = <uint64_t*>calloc(CHUNK_ROWS, sizeof(uint64_t))
        self.pair_rows = <int64_t*>calloc(OUTPUT_ROWS, sizeof(int64_t))
        self.pair_build = <uint8_t**>calloc(OUTPUT_ROWS, sizeof(uint8_t*))
        if (self.hashes == NULL or self.null_flags == NULL or self.skip == NULL or self.matched_before == NULL
                or self.row_sizes == NULL or self.heads == NULL or self.wanted == NULL or self.spilled == NULL
                or self.spilled_hashes == NULL or self.pair_rows == NULL or self.pair_build == NULL):
            raise MemoryError("scratch of a join's probe side")

    def __dealloc__(self):
        free(self.hashes)
        free(self.null_flags)
        free(self.skip)
        free(self.matched_before)
        free(self.row_sizes)
        free(self.heads)
        free(self.wanted)
        free(self.spilled)
        free(self.spilled_hashes)
        free(self.pair_rows)
        free(self.pair_build)

    cdef void begin(self, bint emit_unmatched, bint mark_build, bint unique, bint count_bytes) noexcept nogil:
        self._position = 0
        self._chain = NULL
        self._emit_unmatched = emit_unmatched
        self._mark_build = mark_build
        self._unique = unique
        self._count_bytes = count_bytes

    cdef int64_t next_pairs(self) noexcept nogil:
        self.pair_count = 0
        self.null_count = 0
        if self._unique:
            self._next_single()
        else:
            self._next_chained()
        return self.pair_count

    # At most one pair for each probe row.
    cdef void _next_single(self) noexcept nogil:
        cdef int64_t position = self._position
        cdef int64_t pairs = 0
        cdef int64_t nulls = 0
        cdef int64_t bytes_taken = 0
        cdef uint8_t* head
        while position < self.count:
            head = self.heads[position]
            if self.skip[position] or (head == NULL and (not self._emit_unmatched or self.matched_before[position])):
                position += 1
                continue
            if head == NULL:
                nulls += 1
            else:
                if self._count_bytes:
                    bytes_taken += row_size(head)
                    if bytes_taken > OUTPUT_BYTES and pairs > 0:
                        break
                if self._mark_build:
                    row_link(head)[0] |= LINK_MATCHED
            self.pair_rows[pairs] = self.start + position
            self.pair_build[pairs] = head
            pairs += 1
            position += 1
        self._position = position
        self.pair_count = pairs
        self.null_count = nulls
        self.contiguous = pairs > 0 and self.pair_rows[pairs - 1] - self.pair_rows[0] == pairs - 1

    # All pairs along the chains.
    cdef void _next_chained(self) noexcept nogil:
        cdef int64_t pairs = 0
        cdef int64_t bytes_taken = 0
        cdef int64_t position
        cdef bint repeated = False
        cdef uint8_t* row
        while self._position < self.count and pairs < OUTPUT_ROWS:
            position = self._position
            row = self._chain if self._chain != NULL else self.heads[position]
            if self.skip[position] or (row == NULL and (not self._emit_unmatched or self.matched_before[position])):
                self._position += 1
                continue
            bytes_taken += self.row_sizes[position] + (<int64_t>row_size(row) if row != NULL else 0)
            if bytes_taken > OUTPUT_BYTES and pairs > 0:
                break
            self.pair_rows[pairs] = self.start + position
            self.pair_build[pairs] = row
            if pairs > 0 and self.pair_rows[pairs - 1] == self.pair_rows[pairs]:
                repeated = True
            pairs += 1
            if row == NULL:
                self.null_count += 1
                self._position += 1
                continue
            self._chain = <uint8_t*>(row_link(row)[0] & LINK_POINTER)
            if self._mark_build:
                row_link(row)[0] |= LINK_MATCHED
            if self._chain == NULL:
                self._position += 1
        self.pair_count = pairs
        self.contiguous = (not repeated and pairs > 0
                           and self.pair_rows[pairs - 1] - self.pair_rows[0] == pairs - 1)
