"""Scan of CSV records: finds their begins and ends without parsing.

A quote opens only at the begin of a field (after a delimiter, a line end, or at the begin of the file); inside, two
quotes are one, and everything up to the closing quote belongs to the field, line ends included. After the closing
quote and anywhere else a quote is an ordinary character. So one bit of state tells whether a line end ends a record:

                 quote after , \\n \\r or at begin
      OUTSIDE ────────────────────────────────────► QUOTED ──quote──► PENDING ──quote──► QUOTED
         ▲                                                               │ any other
         └───────────────────────────────────────────────────────────────┘

    contains_byte(data, byte)                      is there any quote at all
    last_record_end(data, delimiter, quote)        block cutting: end of the last whole record
    ends_quoted(data, delimiter, quote)            whether the last record lacks a closing quote
    record_offsets(data, delimiter, quote)         where each record begins (error search)
    count_line_ends(data)                          physical lines
    RecordScanner(delimiter, quote)                state over the chunks of a file (exact splits)
        .advance(data)  .next_record_end(data)  .is_quoted

Blocks of 64 bytes are passed with bit masks (``quote_mask``) as long as quotes stand only where they belong; the state
machine does the rest. Blocks and splits are cut after ``\\n`` only; a lone ``\\r`` ends a record as well, but nothing
is cut there. ``quote`` -1: no quoting. Kernels run without the GIL; data is borrowed for one call.

Source: RFC 4180 and the rules of Arrow's CSV parser, which reads what is cut here.
Held by: tests/csv/test_reader.py
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memchr

cdef extern from "<string.h>" nogil:
    void* memrchr(const void* data, int character, size_t size)

from engine.csv.field_start cimport NEWLINE, RETURN, opens_field
from engine.csv.quote_mask cimport pass_blocks

cdef enum:
    BLOCK = 64

cdef struct ScanState:
    uint8_t is_quoted        # inside a quoted field
    uint8_t is_pending       # the last byte was a quote inside a quoted field: closing, or the first of two
    uint8_t previous         # the byte before the current position


# Walk [start, stop) byte run by byte run. With stop_at_first: return the position after the first newline outside
# quotes, else -1 at the end. Otherwise walk to the end and return the position after the last such newline, or -1. The
# caller guarantees 0 <= start <= stop <= size of data.
cdef int64_t walk_runs(ScanState* state, const uint8_t* data, int64_t start, int64_t stop, int32_t delimiter,
                       int32_t quote, bint stop_at_first) noexcept nogil:
    cdef int64_t position = start
    cdef int64_t last_end = -1
    cdef int64_t run_end
    cdef const uint8_t* found
    cdef uint8_t before
    while position < stop:
        if state.is_pending:
            state.is_pending = 0
            state.previous = <uint8_t>quote
            if data[position] == quote:
                position += 1
            else:
                state.is_quoted = 0
            continue
        if state.is_quoted:
            found = <const uint8_t*>memchr(data + position, quote, stop - position)
            if found == NULL:
                break
            position = found - data + 1
            state.is_pending = 1
            continue
        found = NULL
        if quote >= 0:
            found = <const uint8_t*>memchr(data + position, quote, stop - position)
        run_end = stop if found == NULL else found - data
        if run_end > position:
            before = data[run_end - 1]
            if stop_at_first:
                found = <const uint8_t*>memchr(data + position, NEWLINE, run_end - position)
            else:
                found = <const uint8_t*>memrchr(data + position, NEWLINE, run_end - position)
            if found != NULL:
                last_end = found - data + 1
                if stop_at_first:
                    state.previous = NEWLINE
                    return last_end
            state.previous = before
        position = run_end
        if position < stop:
            if opens_field(state.previous, delimiter):
                state.is_quoted = 1
            state.previous = <uint8_t>quote
            position += 1
    return last_end


# As walk_runs without stop_at_first, in blocks of 64 bytes wherever quotes stand only where they belong.
cdef int64_t walk(ScanState* state, const uint8_t* data, int64_t start, int64_t stop, int32_t delimiter,
                  int32_t quote) noexcept nogil:
    cdef int64_t position = start
    cdef int64_t last_end = -1
    cdef int64_t end, passed, run_stop
    cdef uint8_t quoted, previous
    if quote < 0:
        return walk_runs(state, data, start, stop, delimiter, quote, False)
    while position < stop:
        passed = 0
        # An ordinary quote before this position would look like a closing one to the blocks.
        if stop - position >= BLOCK and (state.is_quoted or state.previous != quote):
            quoted = state.is_quoted and not state.is_pending
            previous = <uint8_t>quote if state.is_pending else state.previous
            end = -1
            passed = pass_blocks(data + position, stop - position, delimiter, quote, &quoted, &previous, &end)
            if passed:
                if end >= 0:
                    last_end = position + end
                state.is_pending = not quoted and previous == quote
                state.is_quoted = quoted or state.is_pending
                state.previous = previous
                position += passed
        if position < stop:
            # A stray quote, or the rest of the data.
            run_stop = min(stop, position + BLOCK)
            end = walk_runs(state, data, position, run_stop, delimiter, quote, False)
            if end >= 0:
                last_end = end
            position = run_stop
    return last_end


# Position after the record that begins at start; size when it is the last. A lone return ends a record here, too.
cdef int64_t record_end(const uint8_t* data, int64_t start, int64_t size, int32_t delimiter,
                        int32_t quote) noexcept nogil:
    cdef int64_t position = start
    cdef uint8_t previous = NEWLINE
    cdef bint quoted = False
    cdef uint8_t byte
    while position < size:
        byte = data[position]
        position += 1
        if quoted:
            if byte == quote:
                if position < size and data[position] == quote:
                    position += 1
                else:
                    quoted = False
            previous = byte
            continue
        if byte == NEWLINE:
            return position
        if byte == RETURN:
            if position < size and data[position] == NEWLINE:
                position += 1
            return position
        if byte == quote and opens_field(previous, delimiter):
            quoted = True
        previous = byte
    return size


cdef int64_t line_ends(const uint8_t* data, int64_t size) noexcept nogil:
    cdef int64_t count = 0
    cdef int64_t position
    for position in range(size):
        if data[position] == NEWLINE:
            count += 1
        elif data[position] == RETURN and not (position + 1 < size and data[position + 1] == NEWLINE):
            count += 1
    return count


def contains_byte(const uint8_t[::1] data not None, int byte):
    """Return whether ``byte`` (0..255) occurs in ``data``."""
    cdef int64_t size = data.shape[0]
    cdef const void* found
    if not 0 <= byte <= 255:
        raise ValueError(f"byte {byte} is not in 0..255")
    if size == 0:
        return False
    with nogil:
        found = memchr(&data[0], byte, size)
    return found != NULL


def last_record_end(const uint8_t[::1] data not None, int delimiter, int quote):
    """Return the end of the last whole record (after its newline) of data that begins with a record; 0: none."""
    cdef int64_t size = data.shape[0]
    cdef int64_t end
    cdef ScanState state
    if size == 0:
        return 0
    state.is_quoted = 0
    state.is_pending = 0
    state.previous = NEWLINE
    with nogil:
        end = walk(&state, &data[0], 0, size, delimiter, quote)
    return 0 if end < 0 else end


def ends_quoted(const uint8_t[::1] data not None, int delimiter, int quote):
    """Return whether data that begins with a record ends within quotes."""
    cdef ScanState state
    if data.shape[0] == 0:
        return False
    state.is_quoted = 0
    state.is_pending = 0
    state.previous = NEWLINE
    with nogil:
        walk(&state, &data[0], 0, data.shape[0], delimiter, quote)
    return bool(state.is_quoted and not state.is_pending)


def first_record_end(const uint8_t[::1] data not None, int delimiter, int quote):
    """Return the end of the first record of ``data`` (after its line end), or its size."""
    if data.shape[0] == 0:
        return 0
    return record_end(&data[0], 0, data.shape[0], delimiter, quote)


def record_offsets(const uint8_t[::1] data not None, int delimiter, int quote):
    """Return the list of positions where records begin, and the size of ``data`` as the last item."""
    cdef int64_t size = data.shape[0]
    cdef int64_t position = 0
    offsets = [0]
    while position < size:
        with nogil:
            position = record_end(&data[0], position, size, delimiter, quote)
        offsets.append(position)
    return offsets


def count_line_ends(const uint8_t[::1] data not None):
    """Return the number of line ends: ``\\n``, ``\\r\\n`` and a lone ``\\r`` are one each."""
    cdef int64_t count
    if data.shape[0] == 0:
        return 0
    with nogil:
        count = line_ends(&data[0], data.shape[0])
    return count


@cython.final
cdef class RecordScanner:
    """Quote state over consecutive chunks of a file, from its begin.

    ``delimiter`` is a byte, ``quote`` a byte or -1. Not thread-safe.
    """

    cdef ScanState _state
    cdef int32_t _delimiter
    cdef int32_t _quote

    def __cinit__(self, int delimiter, int quote):
        self._delimiter = delimiter
        self._quote = quote
        self._state.is_quoted = 0
        self._state.is_pending = 0
        self._state.previous = NEWLINE

    @property
    def is_quoted(self):
        """Whether what was passed ends within quotes."""
        return bool(self._state.is_quoted and not self._state.is_pending)

    def advance(self, const uint8_t[::1] data not None):
        """Pass over the next bytes."""
        if data.shape[0] == 0:
            return
        with nogil:
            walk(&self._state, &data[0], 0, data.shape[0], self._delimiter, self._quote)

    def next_record_end(self, const uint8_t[::1] data not None):
        """Return the position in ``data`` after the first newline that ends a record, having passed it; -1: none."""
        cdef int64_t end
        if data.shape[0] == 0:
            return -1
        with nogil:
            end = walk_runs(&self._state, &data[0], 0, data.shape[0], self._delimiter, self._quote, True)
        return end
