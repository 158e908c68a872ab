# ProbeMatches: the matches of one chunk of probe rows, handed out as bounded pairs.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

cdef enum:
    OUTPUT_ROWS = 8192              # rows of one output batch at most
    OUTPUT_BYTES = 1 << 20          # about its bytes; never less than one row


@cython.final
cdef class ProbeMatches:
    # one chunk, filled by the join
    cdef int64_t start              # batch row of chunk row 0
    cdef int64_t count
    cdef uint64_t* hashes
    cdef uint8_t* null_flags
    cdef uint8_t* skip              # 1: answered elsewhere (spilled), or a null key that nobody wants
    cdef uint8_t* matched_before    # 1: matched in an earlier pass over the same rows
    cdef uint32_t* row_sizes        # bytes of the probe rows, where they can come out more than once
    cdef uint8_t** heads            # first build row of the key, or NULL
    cdef int64_t* wanted            # chunk rows to look up
    cdef int64_t wanted_count
    cdef int64_t* spilled           # batch rows whose partition is spilled
    cdef uint64_t* spilled_hashes
    cdef int64_t spilled_count

    # one output, filled by next_pairs
    cdef int64_t* pair_rows         # batch rows
    cdef uint8_t** pair_build       # build rows, NULL where there is none
    cdef int64_t pair_count
    cdef int64_t null_count         # pairs without a build row
    cdef bint contiguous            # pair_rows are pair_rows[0], pair_rows[0] + 1, ...

    cdef int64_t _position
    cdef uint8_t* _chain
    cdef bint _emit_unmatched
    cdef bint _mark_build
    cdef bint _unique
    cdef bint _count_bytes

    # Start handing out the chunk. unique: no build key occurs twice; count_bytes: build rows may be large.
    cdef void begin(self, bint emit_unmatched, bint mark_build, bint unique, bint count_bytes) noexcept nogil
    # The next pairs, at most OUTPUT_ROWS and about OUTPUT_BYTES; returns their count, 0 at the end.
    cdef int64_t next_pairs(self) noexcept nogil

    cdef void _next_single(self) noexcept nogil
    cdef void _next_chained(self) noexcept nogil
