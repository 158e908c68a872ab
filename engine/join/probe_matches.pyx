"""ProbeMatches: the matches of one chunk of probe rows, returned as bounded pairs (probe row, build row).

    (join fills hashes, skip, heads) ─► begin(...) ─► next_pairs() ─► pairs ... ─► next_pairs() == 0
    with a condition                    begin(...) ─► next_candidates() ─► confirm(flags) ... ─► 0 ─► next_unmatched()

A probe row's matches are the chain that begins at its head. Position and chain survive between two calls, so one probe
row with millions of matches comes out as many outputs, each bounded by rows and bytes. When no build key occurs twice
(a dimension table) there are no chains: one tight loop yields at most one pair for each probe row, in probe order.
Chains lead anywhere in memory, so those of 256 probe rows are prefetched side by side before they are walked.

    every pair               all pairs along the chains, probe rows without match between them
    left once, left probed   whether there is a head decides; a condition is asked about a few pairs of each row at a
                             time, until it confirms one
    left once, left built    rows of the chain that carry no matched bit yet; the bit of the head stands for its chain,
                             so each chain is walked once, however many probe rows have its key

Bytes: with chains a pair counts the sizes of both rows. Without them a probe row comes out once, its bytes are bounded
by its batch, and only build rows count, where they can be large at all.

Thread: one at a time; all memory is of fixed size.

Held by: tests/join/test_hash_join.py
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc

from engine.join.entry_pages cimport LINK_MATCHED, LINK_SIZE, mark_link, next_of_key, row_link, skip_rows
from engine.join.partition_set cimport CHUNK_ROWS
from engine.records.byte_kernels cimport prefetch
from engine.records.row_codec cimport row_size

cdef enum:
    FIRST_TURN = 4                  # candidates of a probe row that needs one match, in the first round
    WINDOW_ROWS = 256               # probe rows whose chains are prefetched at one time
    ROWS_AHEAD = 24                 # rows between one that is asked for and one whose size is read
    WINDOW_DEPTH = 8                # rows of a chain that are: all of them together stay in the cache


@cython.final
cdef class ProbeMatches:
    """Scratch and position of one probing thread."""

    def __cinit__(self):
        # What is written before it is read has no zeros: to write them touches two megabytes for a join of ten rows.
        self.hashes = <uint64_t*>malloc(CHUNK_ROWS * sizeof(uint64_t))
        self.null_flags = <uint8_t*>calloc(CHUNK_ROWS, 1)
        self.skip = <uint8_t*>calloc(CHUNK_ROWS, 1)
        self.matched_before = <uint8_t*>calloc(CHUNK_ROWS, 1)
        self.matched = <uint8_t*>calloc(CHUNK_ROWS, 1)
        self.row_sizes = <uint32_t*>malloc(CHUNK_ROWS * sizeof(uint32_t))
        self.heads = <uint8_t**>malloc(CHUNK_ROWS * sizeof(uint8_t*))
        self.wanted = <int64_t*>malloc(CHUNK_ROWS * sizeof(int64_t))
        self.spilled = <int64_t*>malloc(CHUNK_ROWS * sizeof(int64_t))
        self.spilled_hashes = <uint64_t*>malloc(CHUNK_ROWS * sizeof(uint64_t))
        self.pairs.rows = <int64_t*>malloc(OUTPUT_ROWS * sizeof(int64_t))
        self.pairs.build = <uint8_t**>malloc(OUTPUT_ROWS * sizeof(uint8_t*))
        if (self.hashes == NULL or self.null_flags == NULL or self.skip == NULL or self.matched_before == NULL
                or self.matched == NULL or self.row_sizes == NULL or self.heads == NULL or self.wanted == NULL
                or self.spilled == NULL or self.spilled_hashes == NULL or self.pairs.rows == NULL
                or self.pairs.build == NULL):
            raise MemoryError("scratch of a join's probe side")

    def __dealloc__(self):
        free(self.hashes)
        free(self.null_flags)
        free(self.skip)
        free(self.matched_before)
        free(self.matched)
        free(self.row_sizes)
        free(self.heads)
        free(self.wanted)
        free(self.spilled)
        free(self.spilled_hashes)
        free(self.pairs.rows)
        free(self.pairs.build)
        free(self.candidates.rows)
        free(self.candidates.build)

    cdef void begin(self, const Emits* emits, bint emit_unmatched, bint unique, bint count_bytes) noexcept nogil:
        self._emits = emits[0]
        self._position = 0
        self._prefetched = 0
        self._unmatched_position = 0
        self._chain = NULL
        self._anchor = NULL
        self._turn = FIRST_TURN
        self._is_pending = False
        self._emit_unmatched = emit_unmatched and emits.unmatched_probe
        self._mark_build = emits.unmatched_build or emits.matched_build
        self._unique = unique
        self._count_bytes = count_bytes
        self.clear_pairs()

    cdef int64_t next_pairs(self) noexcept nogil:
        self.clear_pairs()
        if not self._emits.pairs:
            if self._mark_build:
                self._next_newly_matched()
            else:
                self._next_once()
            self.close_pairs()
        elif self._unique:
            self._next_single()
        else:
            self._next_chained()
        return self.pairs.count

    cdef bint is_through(self) noexcept nogil:
        return self._position == self.count and self._chain == NULL

    cdef void clear_pairs(self) noexcept nogil:
        self.pairs.count = 0
        self.pairs.null_count = 0
        self._pair_bytes = 0

    cdef int64_t close_pairs(self) noexcept nogil:
        self.pairs.contiguous = _is_run(&self.pairs)
        return self.pairs.count

    cdef inline void _append(self, int64_t row, uint8_t* build) noexcept nogil:
        self.pairs.rows[self.pairs.count] = row
        self.pairs.build[self.pairs.count] = build
        self.pairs.count += 1
        self.pairs.null_count += build == NULL

    cdef void mark_matched(self) noexcept nogil:
        cdef int64_t position
        for position in range(self.count):
            self.matched[position] = self.heads[position] != NULL

    # At most one pair for each probe row.
    cdef void _next_single(self) noexcept nogil:
        cdef int64_t* rows = self.pairs.rows
        cdef uint8_t** build = self.pairs.build
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
                    if position + ROWS_AHEAD < self.count:
                        prefetch(self.heads[position + ROWS_AHEAD])
                    bytes_taken += row_size(head)
                    if bytes_taken > OUTPUT_BYTES and pairs > 0:
                        break
                if self._mark_build:
                    mark_link(row_link(head), self.is_shared)
            rows[pairs] = self.start + position
            build[pairs] = head
            pairs += 1
            position += 1
        self._position = position
        self.pairs.count = pairs
        self.pairs.null_count = nulls
        self.pairs.contiguous = pairs > 0 and rows[pairs - 1] - rows[0] == pairs - 1

    # The chains of the next probe rows, all a step further at a time: the misses of a round overlap, where the steps of
    # one chain wait for each other.
    cdef void _prefetch_window(self) noexcept nogil:
        cdef uint8_t* rows[WINDOW_ROWS]
        cdef int64_t count = 0
        cdef int64_t depth, index, left
        cdef uint8_t* row
        for index in range(self._prefetched, min(self._prefetched + WINDOW_ROWS, self.count)):
            rows[count] = self.heads[index]
            count += self.heads[index] != NULL
        for index in range(count):
            prefetch(rows[index] - LINK_SIZE)
        self._prefetched += WINDOW_ROWS
        for depth in range(WINDOW_DEPTH):
            left = 0
            for index in range(count):
                row = next_of_key(rows[index])
                rows[left] = row
                left += row != NULL
                prefetch(row - LINK_SIZE if row != NULL else <uint8_t*>&rows[left])
            count = left
            if count == 0:
                break

    # All pairs along the chains.
    cdef void _next_chained(self) noexcept nogil:
        cdef int64_t* rows = self.pairs.rows
        cdef uint8_t** build = self.pairs.build
        cdef int64_t pairs = 0
        cdef int64_t bytes_taken = 0
        cdef int64_t position
        cdef bint repeated = False
        cdef uint8_t* row
        while self._position < self.count and pairs < OUTPUT_ROWS:
            position = self._position
            if position == self._prefetched:
                self._prefetch_window()
            row = self._chain if self._chain != NULL else self.heads[position]
            if self.skip[position] or (row == NULL and (not self._emit_unmatched or self.matched_before[position])):
                self._position += 1
                continue
            bytes_taken += self.row_sizes[position] + (<int64_t>row_size(row) if row != NULL else 0)
            if bytes_taken > OUTPUT_BYTES and pairs > 0:
                break
            rows[pairs] = self.start + position
            build[pairs] = row
            if pairs > 0 and rows[pairs - 1] == rows[pairs]:
                repeated = True
            pairs += 1
            if row == NULL:
                self.pairs.null_count += 1
                self._position += 1
                continue
            self._chain = next_of_key(row)
            if self._mark_build:
                mark_link(row_link(row), self.is_shared)
            if self._chain == NULL:
                self._position += 1
        self.pairs.count = pairs
        self.pairs.contiguous = not repeated and pairs > 0 and rows[pairs - 1] - rows[0] == pairs - 1

    # Probe rows by whether they have a match.
    cdef void _next_once(self) noexcept nogil:
        cdef int64_t position
        cdef bint emitted
        for position in range(self._position, self.count):
            emitted = self._emits.matched_probe if self.heads[position] != NULL else self._emit_unmatched
            if emitted and not self.skip[position] and not self.matched_before[position]:
                self._append(self.start + position, NULL)
        self._position = self.count

    # Build rows that get their first match now.
    cdef void _next_newly_matched(self) noexcept nogil:
        cdef int64_t bytes_taken = 0
        cdef int64_t position
        cdef uint8_t* row
        while self._position < self.count and self.pairs.count < OUTPUT_ROWS:
            position = self._position
            row = self._chain
            if row == NULL:
                row = self.heads[position]
                if self.skip[position] or row == NULL or row_link(row)[0] & LINK_MATCHED:
                    self._position += 1
                    continue
            if self._emits.matched_build and self.pairs.count > 0 and bytes_taken + row_size(row) > OUTPUT_BYTES:
                break
            if not mark_link(row_link(row), self.is_shared) and self._chain == NULL:
                self._position += 1  # another thread has begun this chain
                continue
            if self._emits.matched_build:
                bytes_taken += row_size(row)
                self._append(self.start + position, row)
            self._chain = next_of_key(row)
            if self._chain == NULL:
                self._position += 1

    # ------------------------------------------------------------------ with a condition

    cdef int reserve_candidates(self) except -1:
        self.candidates.rows = <int64_t*>malloc(OUTPUT_ROWS * sizeof(int64_t))
        self.candidates.build = <uint8_t**>malloc(OUTPUT_ROWS * sizeof(uint8_t*))
        if self.candidates.rows == NULL or self.candidates.build == NULL:
            raise MemoryError("candidates of a join with a condition")
        return 0

    cdef int64_t next_candidates(self) noexcept nogil:
        self.candidates.count = 0
        self.candidates.null_count = 0
        self._candidate_bytes = 0
        if self._mark_build or self._emits.pairs:
            self._next_along_chains()
        else:
            self._next_in_turn()
        self.candidates.contiguous = _is_run(&self.candidates)
        return self.candidates.count

    # Whether there is room for a candidate; takes it then.
    cdef inline bint _take_candidate(self, int64_t position, uint8_t* row) noexcept nogil:
        cdef int64_t found = self.candidates.count
        if found == OUTPUT_ROWS - self.pairs.count:
            return False
        self._candidate_bytes += self.row_sizes[position] + <int64_t>row_size(row)
        if self._candidate_bytes > OUTPUT_BYTES - self._pair_bytes and found > 0:
            return False
        self.candidates.rows[found] = self.start + position
        self.candidates.build[found] = row
        self.candidates.count = found + 1
        return True

    # All pairs. Where build rows are wanted once, those that have matched leave the chain as they are met; its head
    # stays, for the directory points to it.
    cdef void _next_along_chains(self) noexcept nogil:
        cdef bint build_only = not self._emits.pairs
        cdef uint8_t* row
        while self._position < self.count:
            if self._position == self._prefetched:
                self._prefetch_window()
            row = self._chain
            if row == NULL:
                self._anchor = NULL
                row = self.heads[self._position]
                if row == NULL or self.skip[self._position]:
                    self._position += 1
                    continue
            if build_only and row_link(row)[0] & LINK_MATCHED:
                if self._anchor != NULL:
                    skip_rows(row_link(self._anchor), <uint64_t>next_of_key(row))
                else:
                    self._anchor = row
            elif not self._take_candidate(self._position, row):
                self._chain = row
                return
            else:
                self._anchor = row
            self._chain = next_of_key(row)
            if self._chain == NULL:
                self._position += 1

    # Pairs of the probe rows that have no match yet, in rounds: a few of each row, twice as many in the next round.
    # heads[] move along their chains.
    cdef void _next_in_turn(self) noexcept nogil:
        cdef int64_t position, taken
        while True:
            while self._position < self.count:
                position = self._position
                if self.skip[position] or self.matched[position] or self.matched_before[position]:
                    self.heads[position] = NULL
                taken = 0
                while self.heads[position] != NULL and taken < self._turn:
                    if not self._take_candidate(position, self.heads[position]):
                        return
                    self.heads[position] = next_of_key(self.heads[position])
                    taken += 1
                self._is_pending = self._is_pending or self.heads[position] != NULL
                self._position += 1
            if self.candidates.count > 0 or not self._is_pending:
                return
            self._position = 0
            self._is_pending = False
            self._turn = min(2 * self._turn, <int64_t>OUTPUT_ROWS)

    cdef void confirm(self, const uint8_t* flags) noexcept nogil:
        cdef int64_t index, position
        cdef uint8_t* row
        cdef bint emitted, is_first
        for index in range(self.candidates.count):
            if not flags[index]:
                continue
            row = self.candidates.build[index]
            position = self.candidates.rows[index] - self.start
            emitted = self._emits.pairs
            if self._mark_build:
                is_first = mark_link(row_link(row), self.is_shared)
                emitted = emitted or (self._emits.matched_build and is_first)
            elif self._emits.matched_probe:
                emitted = not self.matched[position]
                row = NULL
            self.matched[position] = 1
            if emitted:
                self._append(self.candidates.rows[index], row)
                self._pair_bytes += self.row_sizes[position] + (<int64_t>row_size(row) if row != NULL else 0)

    cdef bint is_full(self) noexcept nogil:
        return self.pairs.count > OUTPUT_ROWS // 2 or self._pair_bytes > OUTPUT_BYTES // 2

    cdef int64_t next_unmatched(self) noexcept nogil:
        cdef int64_t position = self._unmatched_position
        if self._emit_unmatched:
            while position < self.count and self.pairs.count < OUTPUT_ROWS:
                if not (self.skip[position] or self.matched[position] or self.matched_before[position]):
                    self._append(self.start + position, NULL)
                position += 1
        self._unmatched_position = position
        return self.close_pairs()


# Whether the pairs are a run of probe rows, each once.
cdef bint _is_run(const PairRun* pairs) noexcept nogil:
    cdef int64_t index
    if pairs.count == 0 or pairs.rows[pairs.count - 1] - pairs.rows[0] != pairs.count - 1:
        return False
    for index in range(1, pairs.count):
        if pairs.rows[index] != pairs.rows[index - 1] + 1:
            return False
    return True
