"""Days of the calendar: months added to days, the month that a day lies in.

    add_months(days, months) -> pa.Array          int64 each; the day of the month at most the last one of its month
    month_places(days) -> months, places          the month of each day as a number, and its place there from 0

    day number ──► year, month, day ──► month + n ──► the same day, or the month's last ──► day number

Invariants: runs without the GIL; what lies under nulls is computed, too, so the caller sets them. Days lie within
±2**40 and months within ±2**40 (``calendar_functions`` sees to it), so that nothing overflows.

Held by: tests/expressions/test_calendar_functions.py
"""

from libc.stdint cimport int64_t

import pyarrow as pa

from engine.expressions.civil_days cimport Day, civil_from_days, days_from_civil, days_of_month, floor_quotient


cdef inline int64_t months_later(int64_t number, int64_t months) noexcept nogil:
    cdef Day day = civil_from_days(number)
    cdef int64_t total = day.year * 12 + day.month - 1 + months
    cdef int64_t year = floor_quotient(total, 12)
    cdef int64_t month = total - year * 12 + 1
    cdef int64_t last = days_of_month(year, month)
    return days_from_civil(year, month, day.day if day.day < last else last)


cdef const int64_t* _values(array) except? NULL:
    if array.type != pa.int64():
        raise ValueError(f"days as {array.type}")
    return (<const int64_t*> <size_t> array.buffers()[1].address) + <int64_t> array.offset


def add_months(days not None, months not None):
    """Return days that many months later."""
    cdef int64_t count = len(days)
    cdef int64_t index
    cdef const int64_t* numbers
    cdef const int64_t* added
    cdef int64_t* found
    if len(months) != count:
        raise ValueError(f"{len(months)} months for {count} days")
    if count == 0:
        return pa.nulls(0, pa.int64())
    numbers, added = _values(days), _values(months)
    buffer = pa.allocate_buffer(count * 8)
    found = <int64_t*> <size_t> buffer.address
    with nogil:
        for index in range(count):
            found[index] = months_later(numbers[index], added[index])
    return pa.Array.from_buffers(pa.int64(), count, [None, buffer], null_count=0)


def month_places(days not None):
    """Return the month of each day as a number, and its index in the month, from 0."""
    cdef int64_t count = len(days)
    cdef int64_t index
    cdef const int64_t* numbers
    cdef int64_t* months
    cdef int64_t* places
    cdef Day day
    if count == 0:
        return pa.nulls(0, pa.int64()), pa.nulls(0, pa.int64())
    numbers = _values(days)
    buffers = [pa.allocate_buffer(count * 8), pa.allocate_buffer(count * 8)]
    months = <int64_t*> <size_t> buffers[0].address
    places = <int64_t*> <size_t> buffers[1].address
    with nogil:
        for index in range(count):
            day = civil_from_days(numbers[index])
            months[index] = day.year * 12 + day.month - 1
            places[index] = day.day - 1
    return tuple(pa.Array.from_buffers(pa.int64(), count, [None, each], null_count=0) for each in buffers)
