"""MomentWriter: dates and timestamps as texts, by the steps of a format (``time_directives``).

    writer = MomentWriter(steps)
    writer.write(local, ticks, offsets, zones) -> string array

    local    local times as int64: so many ``ticks`` a day since 1970
    offsets  how far each is ahead of UTC, in the same ticks; None: not at all
    zones    the zone's name of each, a string array; None: no step writes it

    local ──► day, second, fraction ──► year, month, day ──► one step after another ──► bytes, offsets of texts

What is written has room before the first row: the most bytes of each step, for each row.

Invariants: runs without the GIL; nulls are written like values, and stay null. A second has a whole number of ticks, or
a day has one.

Held by: tests/expressions/test_time_directives.py
"""

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

import cython
import pyarrow as pa

from engine.expressions.civil_days cimport (
    Day,
    civil_from_days,
    days_from_civil,
    floor_quotient,
    iso_week_of,
    week_of,
    weekday_of,
)
from engine.records.arrow_functions import pc

cdef enum Part:
    LITERAL
    ZONE
    OFFSET
    COLON_OFFSET
    MONTH_NAME
    MONTH_LETTERS
    DAY_NAME
    DAY_LETTERS
    HALF
    YEAR  # from here on numbers
    SHORT_YEAR
    CENTURY
    MONTH
    DAY
    YEAR_DAY
    ISO_WEEKDAY
    WEEKDAY
    SUNDAY_WEEK
    MONDAY_WEEK
    ISO_WEEK
    ISO_YEAR
    SHORT_ISO_YEAR
    HOUR
    HALF_HOUR
    MINUTE
    SECOND
    FRACTION
    EPOCH

_PARTS = {
    "literal": LITERAL,
    "zone": ZONE,
    "offset": OFFSET,
    "colon_offset": COLON_OFFSET,
    "month_name": MONTH_NAME,
    "month_letters": MONTH_LETTERS,
    "day_name": DAY_NAME,
    "day_letters": DAY_LETTERS,
    "half": HALF,
    "year": YEAR,
    "short_year": SHORT_YEAR,
    "century": CENTURY,
    "month": MONTH,
    "day": DAY,
    "year_day": YEAR_DAY,
    "iso_weekday": ISO_WEEKDAY,
    "weekday": WEEKDAY,
    "sunday_week": SUNDAY_WEEK,
    "monday_week": MONDAY_WEEK,
    "iso_week": ISO_WEEK,
    "iso_year": ISO_YEAR,
    "short_iso_year": SHORT_ISO_YEAR,
    "hour": HOUR,
    "half_hour": HALF_HOUR,
    "minute": MINUTE,
    "second": SECOND,
    "fraction": FRACTION,
    "epoch": EPOCH,
}

#: bytes of the longest number, offset or name
cdef enum:
    LONGEST = 24
    DAY_SECONDS = 86400

cdef const char** MONTHS = [
    "January", "February", "March", "April", "May", "June", "July",
    "August", "September", "October", "November", "December",
]
cdef const char** DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]


cdef struct WriteStep:
    int part
    int32_t width  # least bytes
    uint8_t pad
    uint8_t letter_case  # 0: as it is, else '^' upper or 'P' lower
    int64_t text  # a literal's place among the texts, and its bytes
    int64_t size


cdef struct Moment:
    int64_t days  # since 1970
    int64_t second  # of the day
    int64_t micros  # of the second
    int64_t offset  # seconds
    Day day


cdef struct Ticks:
    int64_t per_day
    int64_t per_second  # 0: days


cdef int64_t number_of(int part, const Moment* moment) noexcept nogil:
    cdef int64_t year = moment.day.year, weekday = weekday_of(moment.days), week
    if part == YEAR:
        return year
    if part == SHORT_YEAR:
        return year - floor_quotient(year, 100) * 100
    if part == CENTURY:
        return floor_quotient(year, 100)
    if part == MONTH:
        return moment.day.month
    if part == DAY:
        return moment.day.day
    if part == YEAR_DAY:
        return moment.days - days_from_civil(year, 1, 1) + 1
    if part == ISO_WEEKDAY:
        return weekday + 1
    if part == WEEKDAY:
        return (weekday + 1) % 7
    if part == SUNDAY_WEEK:
        return week_of(moment.days, year, 6)
    if part == MONDAY_WEEK:
        return week_of(moment.days, year, 0)
    if part == HOUR:
        return moment.second // 3600
    if part == HALF_HOUR:
        return (moment.second // 3600 + 11) % 12 + 1
    if part == MINUTE:
        return moment.second // 60 % 60
    if part == SECOND:
        return moment.second % 60
    if part == FRACTION:
        return moment.micros
    if part == EPOCH:
        return moment.days * DAY_SECONDS + moment.second - moment.offset
    week = iso_week_of(moment.days, &year)
    if part == ISO_WEEK:
        return week
    return year if part == ISO_YEAR else year - floor_quotient(year, 100) * 100


cdef uint8_t* write_number(int64_t number, const WriteStep* step, uint8_t* out) noexcept nogil:
    cdef uint8_t digits[LONGEST]
    cdef int32_t count = 0, least = step.width
    cdef int64_t rest = -number if number < 0 else number
    while rest > 0 or count == 0:
        digits[count] = <uint8_t> (48 + rest % 10)
        rest //= 10
        count += 1
    if number < 0:
        if step.pad == 48:  # the sign stands before zeros, and counts with the year's four digits as none
            out[0] = 45
            out += 1
        else:
            digits[count] = 45
            count += 1
    while least > count:
        out[0] = step.pad
        out += 1
        least -= 1
    while count > 0:
        count -= 1
        out[0] = digits[count]
        out += 1
    return out


cdef uint8_t* write_offset(int64_t seconds, bint has_colon, uint8_t* out) noexcept nogil:
    """Write an offset as Python does: with seconds where there are some."""
    cdef int64_t size = -seconds if seconds < 0 else seconds
    cdef int64_t parts[3]
    cdef int index
    out[0] = 45 if seconds < 0 else 43
    out += 1
    parts[0], parts[1], parts[2] = size // 3600, size // 60 % 60, size % 60
    for index in range(3 if parts[2] else 2):
        if index and has_colon:
            out[0] = 58
            out += 1
        out[0] = <uint8_t> (48 + parts[index] // 10)
        out[1] = <uint8_t> (48 + parts[index] % 10)
        out += 2
    return out


cdef uint8_t* write_name(const char* name, int32_t most, const WriteStep* step, uint8_t* out) noexcept nogil:
    """Write a name, or its first letters, in the case of the step."""
    cdef int32_t size = 0, index
    cdef uint8_t letter
    while size < most and name[size]:
        size += 1
    for index in range(step.width - size):
        out[index] = step.pad
    if step.width > size:
        out += step.width - size
    for index in range(size):
        letter = <uint8_t> name[index]
        if step.letter_case == 94 and 97 <= letter <= 122:
            letter -= 32
        elif step.letter_case == 80 and 65 <= letter <= 90:
            letter += 32
        out[index] = letter
    return out + size


cdef uint8_t* write_step(
    const WriteStep* step, const uint8_t* texts, const Moment* moment, uint8_t* out
) noexcept nogil:
    if step.part >= YEAR:
        return write_number(number_of(step.part, moment), step, out)
    if step.part == LITERAL:
        memcpy(out, texts + step.text, <size_t> step.size)
        return out + step.size
    if step.part == OFFSET or step.part == COLON_OFFSET:
        return write_offset(moment.offset, step.part == COLON_OFFSET, out)
    if step.part == MONTH_NAME or step.part == MONTH_LETTERS:
        return write_name(MONTHS[moment.day.month - 1], 9 if step.part == MONTH_NAME else 3, step, out)
    if step.part == HALF:
        return write_name("PM" if moment.second >= 43200 else "AM", 2, step, out)
    return write_name(DAYS[weekday_of(moment.days)], 9 if step.part == DAY_NAME else 3, step, out)


cdef inline Moment moment_of(int64_t value, int64_t offset, const Ticks* ticks) noexcept nogil:
    cdef Moment found
    cdef int64_t rest
    found.days = floor_quotient(value, ticks.per_day)
    found.day = civil_from_days(found.days)
    found.second = found.micros = found.offset = 0
    if ticks.per_second:
        rest = value - found.days * ticks.per_day
        found.second = rest // ticks.per_second
        found.micros = rest - found.second * ticks.per_second
        if ticks.per_second > 1000000:
            found.micros = found.micros // (ticks.per_second // 1000000)
        else:
            found.micros = found.micros * (1000000 // ticks.per_second)
        found.offset = offset // ticks.per_second
    return found


cdef const int64_t* numbers_of(array) except? NULL:
    if array.type != pa.int64():
        raise ValueError(f"moments as {array.type}")
    return (<const int64_t*> <size_t> array.buffers()[1].address) + <int64_t> array.offset


@cython.final
cdef class MomentWriter:
    """Args:
        steps: those of a format. Thread: any.
    """

    cdef WriteStep* _steps
    cdef int64_t _count
    cdef bytes _texts
    cdef int64_t _longest  # bytes of a text but for names of zones
    cdef int64_t _zones  # steps that write one

    def __cinit__(self, steps not None):
        cdef WriteStep* step
        self._steps = <WriteStep*> calloc(len(steps) + 1, sizeof(WriteStep))
        if self._steps == NULL:
            raise MemoryError()
        self._texts = b""
        for each in steps:
            step = &self._steps[self._count]
            text = each.text.encode()
            step.part, step.width = _PARTS[each.part], each.width
            step.pad, step.letter_case = ord(each.pad or " "), ord(each.case or "\0")
            step.text, step.size = len(self._texts), len(text)
            self._texts += text
            self._longest += len(text) if step.part == LITERAL else max(LONGEST, each.width + 1)
            self._zones += step.part == ZONE
            self._count += 1

    def __dealloc__(self):
        free(self._steps)

    def write(self, local not None, int64_t ticks_per_day, offsets, zones):
        """Return the texts of local times, as strings; ArrowCapacityError where they are more than 2 GiB."""
        cdef int64_t count = len(local), row, place, written = 0
        cdef const int64_t* values
        cdef const int64_t* ahead = NULL
        cdef const int32_t* zone_ends = NULL
        cdef const uint8_t* zone_texts = NULL
        cdef const uint8_t* texts = self._texts
        cdef const WriteStep* step
        cdef uint8_t* room
        cdef uint8_t* out
        cdef int32_t* ends
        cdef Moment moment
        cdef Ticks ticks
        if count == 0:
            return pa.array([], pa.string())
        values = numbers_of(local)
        if offsets is not None:
            ahead = numbers_of(offsets)
        longest = self._longest
        if self._zones:
            longest += self._zones * (pc.max(pc.binary_length(zones)).as_py() or 0)
            _, found_ends, found_texts = zones.buffers()
            zone_ends = (<const int32_t*> <size_t> found_ends.address) + <int64_t> zones.offset
            zone_texts = NULL if found_texts is None else <const uint8_t*> <size_t> found_texts.address
        if longest * count > INT32_MAX:
            raise pa.ArrowCapacityError(f"{count} texts of up to {longest} bytes are more than one column can hold")
        ticks.per_day, ticks.per_second = ticks_per_day, ticks_per_day // DAY_SECONDS
        buffer, offset_buffer = pa.allocate_buffer(longest * count), pa.allocate_buffer(4 * (count + 1))
        room = <uint8_t*> <size_t> buffer.address
        ends = <int32_t*> <size_t> offset_buffer.address
        with nogil:
            out = room
            ends[0] = 0
            for row in range(count):
                moment = moment_of(values[row], 0 if ahead == NULL else ahead[row], &ticks)
                for place in range(self._count):
                    step = &self._steps[place]
                    if step.part == ZONE:
                        written = zone_ends[row + 1] - zone_ends[row]
                        memcpy(out, zone_texts + zone_ends[row], <size_t> written)
                        out += written
                    else:
                        out = write_step(step, texts, &moment, out)
                ends[row + 1] = <int32_t> (out - room)
            written = out - room
        bitmap = None if local.null_count == 0 else pc.is_valid(local).buffers()[1]
        return pa.Array.from_buffers(
            pa.string(), count, [bitmap, offset_buffer, buffer.slice(0, written)], local.null_count
        )
