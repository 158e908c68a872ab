# ProbeMatches: the matches of one chunk of probe rows, returned as bounded pairs.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

cdef enum:
    OUTPUT_ROWS = 32768             # rows of one output batch at most
    OUTPUT_BYTES = 1 << 20          # about its bytes; never less than one row
    WHOLE_BATCH_BYTES = 2 << 20     # build rows of so many bytes beside a probe batch: no reason to divide it

# What a join emits (join_type.Emission), for kernels.
cdef struct Emits:
    bint pairs
    bint matched_probe
    bint matched_build
    bint unmatched_probe
    bint unmatched_build

# Pairs of a probe row and a build row.
cdef struct PairRun:
    int64_t* rows                   # batch rows
    uint8_t** build                 # build rows, NULL where there is none
    int64_t count
    int64_t null_count              # pairs without a build row
    bint contiguous                 # rows are rows[0], rows[0] + 1, ...


@cython.final
cdef class ProbeMatches:
    # one chunk, filled by the join
    cdef int64_t start              # batch row of chunk row 0
    cdef int64_t count
    cdef uint64_t* hashes
    cdef uint8_t* null_flags
    cdef uint8_t* skip              # 1: answered elsewhere (spilled), or an unneeded null key
    cdef uint8_t* matched_before    # 1: matched in an earlier pass over the same rows, or a copied row
    cdef uint8_t* matched           # 1: matched in this pass
    cdef uint32_t* row_sizes        # bytes of the probe rows, where they can come out more than once
    cdef uint8_t** heads            # first build row of the key, or NULL
    cdef int64_t* wanted            # chunk rows to look up
    cdef int64_t wanted_count
    cdef int64_t* spilled           # batch rows whose partition is spilled
    cdef uint64_t* spilled_hashes
    cdef int64_t spilled_count

    # one output
    cdef PairRun pairs
    cdef PairRun candidates         # pairs that a condition must still confirm

    cdef Emits _emits
    cdef int64_t _position
    cdef int64_t _prefetched        # chains of chunk rows before this one are in the cache
    cdef int64_t _unmatched_position
    cdef uint8_t* _chain
    cdef uint8_t* _anchor           # the last row that stays in the chain, where the next one hangs
    cdef int64_t _turn              # candidates of one probe row in this round
    cdef bint _is_pending           # whether a probe row has candidates for the next round
    cdef int64_t _candidate_bytes
    cdef int64_t _pair_bytes
    cdef bint _emit_unmatched
    cdef bint _mark_build
    cdef bint is_shared             # whether other threads probe the same build rows
    cdef bint _unique
    cdef bint _count_bytes

    # Start returning the chunk's pairs. emit_unmatched: probe rows without match, if the join emits them, are known
    # now; unique: no build key occurs twice; count_bytes: build rows may be large.
    cdef void begin(self, const Emits* emits, bint emit_unmatched, bint unique, bint count_bytes) noexcept nogil
    # The next output in pairs, at most OUTPUT_ROWS and about OUTPUT_BYTES; returns the count, 0 at the end.
    cdef int64_t next_pairs(self) noexcept nogil
    # Whether next_pairs has nothing more to give.
    cdef bint is_through(self) noexcept nogil
    # matched[] of rows whose keys meet, where there is no condition.
    cdef void mark_matched(self) noexcept nogil

    # With a condition, in place of next_pairs: candidates, what of them is confirmed, and at the end the unmatched.
    # The caller has zeroed matched[] and puts out pairs when is_full() and at the end.
    cdef int reserve_candidates(self) except -1
    cdef int64_t next_candidates(self) noexcept nogil
    # flags: 1 for each candidate that is a match. Appends to pairs what is emitted.
    cdef void confirm(self, const uint8_t* flags) noexcept nogil
    # Whether pairs should go out before more are appended.
    cdef bint is_full(self) noexcept nogil
    # Append unmatched probe rows as far as there is room; returns the count of pairs, 0 at the end.
    cdef int64_t next_unmatched(self) noexcept nogil
    # Finish pairs for output; returns their count.
    cdef int64_t close_pairs(self) noexcept nogil
    # Forget the pairs that went out.
    cdef void clear_pairs(self) noexcept nogil

    cdef void _next_single(self) noexcept nogil
    cdef void _prefetch_window(self) noexcept nogil
    cdef void _next_chained(self) noexcept nogil
    cdef void _next_once(self) noexcept nogil
    cdef void _next_newly_matched(self) noexcept nogil
    cdef bint _take_candidate(self, int64_t position, uint8_t* row) noexcept nogil
    cdef void _next_along_chains(self) noexcept nogil
    cdef void _next_in_turn(self) noexcept nogil
    cdef void _append(self, int64_t row, uint8_t* build) noexcept nogil
