"""Days of the calendar: months added to days, the month that a day lies in.

    add_months(days, months) -> pa.Array          int64 each; the day of the month at most the last one of its month
    month_places(days) -> months, places          the month of each day as a number, and its place there from 0
    days_of_dates(years, months, days)            days, and whether there is such a date, as int8
    business_marks(days, week, holidays)          int8, 1 on business days; ``week``: bits of worked days from Monday on
    business_counts(begins, ends, week, ...)      business days from one day on to another, which does not count
    moved_by_business_days(days, counts, ...)     days moved by business days, first forward or backward to one

    day number ──► year, month, day ──► month + n ──► the same day, or the month's last ──► day number

Invariants: runs without the GIL; what lies under nulls is computed, too, so the caller sets them. Days lie within
±2**40 and months within ±2**40 (``calendar_functions`` sees to it), so that nothing overflows.

Held by: tests/expressions/test_calendar_functions.py
"""

from libc.stdint cimport int8_t, int64_t

import pyarrow as pa

from engine.expressions.civil_days cimport (
    Day, civil_from_days, days_from_civil, days_of_month, floor_quotient, weekday_of,
)

cdef enum:
    YEARS_MAX = 5_000_000


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


def days_of_dates(years not None, months not None, days not None):
    """Return the days of dates, and whether there are such dates."""
    cdef int64_t index, count = len(years)
    if len(months) != count or len(days) != count:
        raise ValueError(f"{len(months)} months and {len(days)} days for {count} years")
    if count == 0:
        return pa.nulls(0, pa.int64()), pa.nulls(0, pa.int8())
    cdef const int64_t* year = _values(years)
    cdef const int64_t* month = _values(months)
    cdef const int64_t* day = _values(days)
    buffer, marks = pa.allocate_buffer(count * 8), pa.allocate_buffer(count)
    cdef int64_t* found = <int64_t*> <size_t> buffer.address
    cdef int8_t* fits = <int8_t*> <size_t> marks.address
    with nogil:
        for index in range(count):
            fits[index] = (
                -YEARS_MAX <= year[index] <= YEARS_MAX and 1 <= month[index] <= 12
                and 1 <= day[index] <= days_of_month(year[index], month[index])
            )
            found[index] = days_from_civil(year[index], month[index], day[index]) if fits[index] else 0
    numbers = pa.Array.from_buffers(pa.int64(), count, [None, buffer], null_count=0)
    return numbers, pa.Array.from_buffers(pa.int8(), count, [None, marks], null_count=0)


cdef struct Week:
    int bits  # worked days, from Monday on
    int worked  # how many they are
    const int64_t* holidays  # worked days of the week that are none, in order
    int64_t holiday_count


cdef Week _week(int bits, holidays) except *:
    cdef Week found
    found.bits = bits
    found.worked = bin(bits).count("1")
    found.holiday_count = len(holidays)
    found.holidays = _values(holidays) if len(holidays) else NULL
    return found


cdef inline int64_t holidays_before(const Week* week, int64_t day) noexcept nogil:
    """Return the number of holidays before a day."""
    cdef int64_t low = 0, high = week.holiday_count, middle
    while low < high:
        middle = (low + high) // 2
        if week.holidays[middle] < day:
            low = middle + 1
        else:
            high = middle
    return low


cdef inline bint is_business_day(const Week* week, int64_t day) noexcept nogil:
    cdef int64_t at
    if not week.bits >> weekday_of(day) & 1:
        return False
    at = holidays_before(week, day)
    return at == week.holiday_count or week.holidays[at] != day


cdef inline int64_t business_days(const Week* week, int64_t begin, int64_t end) noexcept nogil:
    """Return the number of business days from one day to before a later one."""
    cdef int64_t weeks = (end - begin) // 7, found, day
    found = weeks * week.worked - (holidays_before(week, end) - holidays_before(week, begin))
    for day in range(begin + weeks * 7, end):
        found += week.bits >> weekday_of(day) & 1
    return found


cdef inline int64_t moved_day(const Week* week, int64_t day, int64_t count, bint is_forward) noexcept nogil:
    """Return the business day so many business days later, or earlier."""
    cdef int64_t step = 1 if is_forward else -1, weeks, ahead
    while not is_business_day(week, day):
        day += step
    step = 1 if count > 0 else -1
    count *= step
    while count > 0:
        weeks = count // week.worked
        if weeks:
            ahead = day + 7 * weeks * step
            count -= weeks * week.worked
            if step > 0:
                count += holidays_before(week, ahead + 1) - holidays_before(week, day + 1)
            else:
                count += holidays_before(week, day) - holidays_before(week, ahead)
            day = ahead
            continue
        day += step
        count -= is_business_day(week, day)
    return day


def business_marks(days not None, int bits, holidays not None):
    """Return 1 for business days, 0 for others, as int8."""
    cdef int64_t index, count = len(days)
    if count == 0:
        return pa.nulls(0, pa.int8())
    cdef Week week = _week(bits, holidays)
    cdef const int64_t* numbers = _values(days)
    buffer = pa.allocate_buffer(count)
    cdef int8_t* found = <int8_t*> <size_t> buffer.address
    with nogil:
        for index in range(count):
            found[index] = is_business_day(&week, numbers[index])
    return pa.Array.from_buffers(pa.int8(), count, [None, buffer], null_count=0)


def business_counts(begins not None, ends not None, int bits, holidays not None):
    """Return the numbers of business days from days, which count, to others, which do not; negative backward."""
    cdef int64_t index, count = len(begins)
    if len(ends) != count:
        raise ValueError(f"{len(ends)} ends for {count} begins")
    if count == 0:
        return pa.nulls(0, pa.int64())
    cdef Week week = _week(bits, holidays)
    cdef const int64_t* begin = _values(begins)
    cdef const int64_t* end = _values(ends)
    buffer = pa.allocate_buffer(count * 8)
    cdef int64_t* found = <int64_t*> <size_t> buffer.address
    with nogil:
        for index in range(count):
            if begin[index] <= end[index]:
                found[index] = business_days(&week, begin[index], end[index])
            else:
                found[index] = -business_days(&week, end[index] + 1, begin[index] + 1)
    return pa.Array.from_buffers(pa.int64(), count, [None, buffer], null_count=0)


def moved_by_business_days(days not None, counts not None, int bits, holidays not None, bint is_forward):
    """Return days moved by business days; one that is none goes forward or backward to the next one before."""
    cdef int64_t index, count = len(days)
    if len(counts) != count:
        raise ValueError(f"{len(counts)} counts for {count} days")
    if count == 0:
        return pa.nulls(0, pa.int64())
    cdef Week week = _week(bits, holidays)
    cdef const int64_t* numbers = _values(days)
    cdef const int64_t* moved = _values(counts)
    buffer = pa.allocate_buffer(count * 8)
    cdef int64_t* found = <int64_t*> <size_t> buffer.address
    with nogil:
        for index in range(count):
            found[index] = moved_day(&week, numbers[index], moved[index], is_forward)
    return pa.Array.from_buffers(pa.int64(), count, [None, buffer], null_count=0)
