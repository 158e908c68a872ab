# Days as dates of the calendar and back: the Gregorian one in all years (proleptic), as in Arrow, Python and SQL.
#
#     civil_from_days(number) -> year, month, day        days_from_civil(year, month, day) -> number, 0 is 1970-01-01
#
# Days lie within +-2**62 / 86400, so that nothing overflows.
# Source: Howard Hinnant, chrono-compatible low-level date algorithms.

from libc.stdint cimport int64_t


cdef struct Day:
    int64_t year
    int64_t month  # 1 to 12
    int64_t day  # 1 to 31


cdef inline int64_t floor_quotient(int64_t value, int64_t divisor) noexcept nogil:
    cdef int64_t quotient = value // divisor
    return quotient - 1 if value % divisor < 0 else quotient


cdef inline Day civil_from_days(int64_t number) noexcept nogil:
    cdef Day found
    cdef int64_t shifted = number + 719468
    cdef int64_t era = floor_quotient(shifted, 146097)
    cdef int64_t of_era = shifted - era * 146097
    cdef int64_t year = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    cdef int64_t of_year = of_era - (365 * year + year // 4 - year // 100)
    cdef int64_t month = (5 * of_year + 2) // 153
    found.day = of_year - (153 * month + 2) // 5 + 1
    found.month = month + 3 if month < 10 else month - 9
    found.year = year + era * 400 + (1 if found.month <= 2 else 0)
    return found


cdef inline int64_t days_from_civil(int64_t year, int64_t month, int64_t day) noexcept nogil:
    cdef int64_t shifted = year - (1 if month <= 2 else 0)
    cdef int64_t era = floor_quotient(shifted, 400)
    cdef int64_t of_era = shifted - era * 400
    cdef int64_t of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468


cdef inline int64_t days_of_month(int64_t year, int64_t month) noexcept nogil:
    if month == 2:
        return 29 if (year % 4 == 0 and year % 100 != 0) or year % 400 == 0 else 28
    return 30 if month == 4 or month == 6 or month == 9 or month == 11 else 31


cdef inline int64_t days_of_year(int64_t year) noexcept nogil:
    return 365 + (1 if days_of_month(year, 2) == 29 else 0)


cdef inline int64_t weekday_of(int64_t number) noexcept nogil:
    """The day of the week, 0 on Monday."""
    return number + 3 - floor_quotient(number + 3, 7) * 7


cdef inline int64_t iso_week_of(int64_t number, int64_t* year) noexcept nogil:
    """The ISO week of a day, and the year that it belongs to."""
    cdef int64_t thursday = number - weekday_of(number) + 3
    year[0] = civil_from_days(thursday).year
    return (thursday - days_from_civil(year[0], 1, 1)) // 7 + 1


cdef inline int64_t week_of(int64_t number, int64_t year, int64_t first_weekday) noexcept nogil:
    """The week of the year, where weeks begin on a day of the week and what is before the first one is week 0."""
    cdef int64_t of_week = (weekday_of(number) - first_weekday + 7) % 7
    return (number - days_from_civil(year, 1, 1) + 7 - of_week) // 7
