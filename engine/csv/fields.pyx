"""The fields of one very long CSV record, found and copied chunk by chunk: the record is never in memory whole.

    scanner = FieldScanner(delimiter, quote)
    scanner.advance(chunk)* -> bytes of the chunk that belong to the record; less than all of it: its end was found
    scanner.fields          -> [(begin, end, size, is_quoted), ...] in bytes of the record: with quotes; without them
    scanner.is_ordinary     -> False: a quoted field goes on behind its closing quote, or a return stands alone
    scanner.unclosed        -> where a quoted field begins that goes on to the end of the file, or -1

    copier = QuotedCopier(quote)
    copier.copy(chunk, target) -> bytes written: what stands between the quotes, two quotes made one

                  quote          quote                quote
    BEGIN ────────────► QUOTED ────────► PENDING ──────────► QUOTED
      │ other                              │ delimiter, line end: the next field, the end of the record
      └─────► PLAIN ── delimiter, line end ┘

The rules are those of ``csv_scan`` and of Arrow's parser; what is not ordinary is left to it. Kernels run without the
GIL; data is borrowed for one call.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memchr

cdef enum:
    NEWLINE = 10
    RETURN = 13

cdef enum State:
    BEGIN = 0
    PLAIN = 1
    QUOTED = 2
    PENDING = 3                  # behind a quote within quotes: a closing one, or the first of two
    RETURNED = 4                 # behind a return, which the newline must follow
    OVER = 5
    STRANGE = 6


@cython.final
cdef class FieldScanner:
    """Finds the fields of one record; ``quote`` -1: nothing is quoted."""

    cdef int32_t _delimiter
    cdef int32_t _quote
    cdef State _state
    cdef int64_t _position       # of the next byte in the record
    cdef int64_t _begin          # of the field
    cdef int64_t _doubled        # quotes of the field that are written twice
    cdef bint _is_quoted
    cdef readonly list fields
    cdef readonly int64_t unclosed

    def __cinit__(self, int32_t delimiter, int32_t quote):
        self._delimiter = delimiter
        self._quote = quote
        self.fields = []
        self.unclosed = -1

    @property
    def is_ordinary(self):
        """Whether the fields are what Arrow's parser would find."""
        return self._state != STRANGE

    def advance(self, const uint8_t[::1] data not None):
        """Take the next bytes of the record and return how many of them it has, its line end included."""
        cdef int64_t size = data.shape[0]
        cdef int64_t position = 0
        while position < size and self._state < OVER:
            with nogil:
                position = self._pass_bytes(&data[0], position, size)
            if position < size:
                position = self._take(data[position], position)
        return position

    # To the next byte that may change the state.
    cdef int64_t _pass_bytes(self, const uint8_t* data, int64_t position, int64_t size) noexcept nogil:
        cdef const uint8_t* found
        cdef uint8_t byte
        if self._state == QUOTED:
            found = <const uint8_t*>memchr(data + position, self._quote, <size_t>(size - position))
            return self._moved(position, size if found == NULL else found - data)
        if self._state != PLAIN:
            return position
        cdef int64_t start = position
        while position < size:
            byte = data[position]
            if byte == self._delimiter or byte == NEWLINE or byte == RETURN:
                break
            position += 1
        return self._moved(start, position)

    cdef inline int64_t _moved(self, int64_t start, int64_t stop) noexcept nogil:
        self._position += stop - start
        return stop

    cdef int64_t _take(self, uint8_t byte, int64_t index) except -1:
        self._position += 1
        if self._state == QUOTED:
            self._state = PENDING
        elif self._state == PENDING and byte == self._quote:
            self._doubled += 1
            self._state = QUOTED
        elif self._state == BEGIN and byte == self._quote:
            self._is_quoted = True
            self._state = QUOTED
        elif self._state == RETURNED:
            self._state = OVER if byte == NEWLINE else STRANGE
        elif byte == self._delimiter:
            self._end_field()
            self._begin = self._position
        elif byte == NEWLINE or byte == RETURN:
            self._end_field()
            self._state = OVER if byte == NEWLINE else RETURNED
        else:
            self._state = STRANGE if self._state == PENDING else PLAIN
        return index + 1

    cdef int _end_field(self) except -1:
        cdef int64_t end = self._position - 1
        cdef int64_t size = end - self._begin - self._doubled - (2 if self._is_quoted else 0)
        self.fields.append((self._begin, end, size, bool(self._is_quoted)))
        self._doubled = 0
        self._is_quoted = False
        self._state = BEGIN
        return 0

    def finish(self):
        """End the record where the file ends, behind its last byte."""
        if self._state < RETURNED:
            if self._state == QUOTED:
                self._state = STRANGE
                self.unclosed = self._begin
                return
            self._position += 1
            self._end_field()
            self._state = OVER
        elif self._state == RETURNED:
            self._state = STRANGE


@cython.final
cdef class QuotedCopier:
    """Copies what stands between quotes."""

    cdef int32_t _quote
    cdef bint _is_pending        # the last byte was a quote, the first of two

    def __cinit__(self, int32_t quote):
        self._quote = quote

    def copy(self, const uint8_t[::1] data not None, uint8_t[::1] target not None):
        """Copy the next bytes to the begin of target, which has room for all of them; return how many were written."""
        cdef int64_t size = data.shape[0]
        cdef int64_t position, used
        cdef uint8_t byte
        if target.shape[0] < size:
            raise ValueError(f"{size} bytes do not fit into {target.shape[0]}")
        used = 0
        with nogil:
            for position in range(size):
                byte = data[position]
                if byte == self._quote and not self._is_pending:
                    self._is_pending = True
                    continue
                self._is_pending = False
                target[used] = byte
                used += 1
        return used
