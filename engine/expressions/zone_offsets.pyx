"""ZoneOffsets: how far local time is ahead of UTC, for any moment; and the first moment of a local time.

    table = ZoneOffsets(starts, offsets, cycle_from)
    table.offsets(values, per_second)   -> for each moment (int64, UTC, so many a second) the offset, in that unit
    table.instants(local, per_second)   -> for each local time the first moment that is not before it
    table.places(values, per_second)    -> for each moment the place of its offset in the table
    beyond(values, limit)               -> whether a value lies further from 0 than limit

    offset   ───────o0──────┤────────o1───────┤──────o2──────┤ ...                 ┤ the same again, 400 years on
    UTC                  starts[1]         starts[2]      cycle_from      cycle_from + CYCLE

From ``cycle_from`` on changes of clocks follow a rule, and the calendar repeats after 400 years, weekdays too: so a
table of 400 years holds for all time. A local time that occurs twice is taken at its first occurrence, one that is
skipped at the end of the gap.

Invariants: starts ascend, starts[0] is never looked at; runs without the GIL; values under nulls do no harm.

Held by: tests/expressions/test_time_zones.py
"""

from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t
from libc.stdlib cimport free, malloc

import pyarrow as pa

cdef enum:
    MARGIN_SECONDS = 4 * 86400      # more than two offsets can differ by

#: seconds of 400 years: 146097 days
CYCLE_SECONDS = 146097 * 86400
cdef int64_t CYCLE = CYCLE_SECONDS


cdef inline int64_t floor_divided(int64_t value, int64_t divisor) noexcept nogil:
    cdef int64_t quotient = value // divisor        # C's division: towards zero
    return quotient - 1 if value % divisor < 0 else quotient


cdef const int64_t* int64_values(array) except? NULL:
    """Return the address of the values of an int64 array."""
    if array.type != pa.int64():
        raise TypeError(f"zone offsets of {array.type}")
    return (<const int64_t*> <size_t> array.buffers()[1].address) + <int64_t> array.offset


def beyond(values not None, int64_t limit):
    """Return whether a value of an int64 or int32 array lies beyond -limit or limit."""
    cdef int64_t count = len(values)
    cdef int64_t index, least = 0, most = 0
    cdef const int64_t* wide
    cdef const int* narrow
    cdef int small = 0, large = 0
    if count == 0:
        return False
    if values.type == pa.int32():
        narrow = (<const int*> <size_t> values.buffers()[1].address) + <int64_t> values.offset
        with nogil:
            for index in range(count):
                small = narrow[index] if narrow[index] < small else small
                large = narrow[index] if narrow[index] > large else large
        return small < -limit or large > limit
    wide = int64_values(values)
    with nogil:
        for index in range(count):
            least = wide[index] if wide[index] < least else least
            most = wide[index] if wide[index] > most else most
    return least < -limit or most > limit


cdef class ZoneOffsets:
    """Args:
        starts: from when on each offset holds, seconds since 1970 in UTC; the first one holds ever before.
        offsets: seconds that local time is ahead.
        cycle_from: what is later follows from 400 years behind it, which must be in the table; None: the last offset
            holds for ever.
    """

    cdef int64_t* _starts
    cdef int64_t* _offsets
    cdef int64_t _count
    cdef int64_t _cycle_from

    def __cinit__(self, list starts not None, list offsets not None, cycle_from):
        self._count = len(starts)
        if self._count == 0 or len(offsets) != self._count:
            raise ValueError("a zone has an offset")
        self._starts = <int64_t*> malloc(<size_t> self._count * sizeof(int64_t))
        self._offsets = <int64_t*> malloc(<size_t> self._count * sizeof(int64_t))
        if self._starts == NULL or self._offsets == NULL:
            raise MemoryError()
        for index in range(self._count):
            self._starts[index] = starts[index]
            self._offsets[index] = offsets[index]
        self._starts[0] = INT64_MIN
        self._cycle_from = INT64_MAX if cycle_from is None else cycle_from

    def __dealloc__(self):
        free(self._starts)
        free(self._offsets)

    cdef int64_t _turns(self, int64_t second) noexcept nogil:
        """Return the periods of 400 years that a second lies behind the end of the table."""
        if second < self._cycle_from:
            return 0
        return (second - self._cycle_from) // CYCLE

    cdef int64_t _index(self, int64_t second) noexcept nogil:
        """The last offset that holds at a second of the table."""
        cdef int64_t low = 0
        cdef int64_t high = self._count
        cdef int64_t middle
        while high - low > 1:
            middle = (low + high) >> 1
            if self._starts[middle] <= second:
                low = middle
            else:
                high = middle
        return low

    cdef void _offsets_of(self, const int64_t* values, int64_t count, int64_t per_second,
                          bint as_places, int64_t* found) noexcept nogil:
        """Find for each moment its offset, or the place of that."""
        cdef int64_t index, at, second
        cdef int64_t from_second = 0
        cdef int64_t to_second = 0          # the offset of the row before holds in between
        cdef int64_t offset = 0
        for index in range(count):
            second = floor_divided(values[index], per_second)
            if second >= self._cycle_from:
                second -= self._turns(second) * CYCLE
            if second < from_second or second >= to_second:
                at = self._index(second)
                from_second = self._starts[at]
                to_second = self._starts[at + 1] if at + 1 < self._count else INT64_MAX
                offset = at if as_places else self._offsets[at] * per_second
            found[index] = offset

    cdef void _instants_of(self, const int64_t* values, int64_t count, int64_t per_second,
                          int64_t* found) noexcept nogil:
        cdef int64_t index, at, second, turns, instant
        for index in range(count):
            second = floor_divided(values[index], per_second)
            turns = self._turns(second - MARGIN_SECONDS) if second > INT64_MIN + MARGIN_SECONDS else 0
            second -= turns * CYCLE
            at = self._index(second - MARGIN_SECONDS if second > INT64_MIN + MARGIN_SECONDS else second)
            while at + 1 < self._count and second - self._offsets[at] >= self._starts[at + 1]:
                at += 1
            instant = second - self._offsets[at]
            if at > 0 and instant < self._starts[at]:
                instant = self._starts[at]
            # What local time and moment have in common is below a second: there is none, floors are whole ones.
            found[index] = (instant + turns * CYCLE) * per_second

    def offsets(self, values not None, int64_t per_second):
        """Return the offsets of moments, in their own unit."""
        return self._found_of(values, per_second, False)

    def places(self, values not None, int64_t per_second):
        """Return the places of the offsets of moments in the table, from 0."""
        return self._found_of(values, per_second, True)

    cdef _found_of(self, values, int64_t per_second, bint as_places):
        cdef const int64_t* moments
        cdef int64_t* found
        cdef int64_t count = len(values)
        if count == 0:
            return pa.nulls(0, pa.int64())
        moments = int64_values(values)
        buffer = pa.allocate_buffer(count * 8)
        found = <int64_t*> <size_t> buffer.address
        with nogil:
            self._offsets_of(moments, count, per_second, as_places, found)
        return pa.Array.from_buffers(pa.int64(), count, [None, buffer], null_count=0)

    def instants(self, local not None, int64_t per_second):
        """Return the first moments of local times, which are whole seconds."""
        cdef const int64_t* times
        cdef int64_t* found
        cdef int64_t count = len(local)
        if count == 0:
            return pa.nulls(0, pa.int64())
        times = int64_values(local)
        buffer = pa.allocate_buffer(count * 8)
        found = <int64_t*> <size_t> buffer.address
        with nogil:
            self._instants_of(times, count, per_second, found)
        return pa.Array.from_buffers(pa.int64(), count, [None, buffer], null_count=0)
