"""MomentReader: dates and timestamps from texts, by the steps of a format (``time_directives``).

    reader = MomentReader(steps)
    reader.read(texts) -> (micros, is_right)       microseconds since 1970, less the offset; null where not right

    "31/3/24" ── day: 31, "/", month: 3, "/", short_year: 24 ──► Parts ──► 2024-03-31
    "110224"  ── day: 11, month: 02 ...; where a later step finds nothing, a number is tried with fewer digits

A step is a name, so many digits within bounds, or a text, of which ASCII letters count in either case. A part that is
said twice says the same. What is not said is 1900, January, the 1st, midnight. The day follows from the day of the
year, else from month and day, else from a week and a day of the week; then all that is said must be true of it: there
is no Feb 31, no 13 o'clock PM, and no Monday that is a Tuesday.

Invariants: runs without the GIL; a step has at most six numbers of digits to try, and stands once in a format.

Held by: tests/expressions/test_time_directives.py
"""

from libc.stdint cimport INT64_MIN, int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free

import cython
import pyarrow as pa

from engine.expressions.civil_days cimport (
    Day,
    civil_from_days,
    days_from_civil,
    days_of_month,
    iso_week_of,
    week_of,
    weekday_of,
)
from engine.records.arrow_functions import pc

#: fields of a text, in the order of Parts; later ones set several fields or none
cdef enum:
    YEAR
    SHORT_YEAR
    MONTH
    DAY
    YEAR_DAY
    WEEKDAY  # 0 on Monday
    SUNDAY_WEEK
    MONDAY_WEEK
    ISO_YEAR
    ISO_WEEK
    HOUR
    HALF_HOUR
    HALF  # 0 AM, 1 PM
    MINUTE
    SECOND
    MICRO
    OFFSET  # microseconds
    FIELDS
    LITERAL
    SPACE
    ZONE
    MONTH_NAME
    MONTH_LETTERS
    DAY_NAME
    DAY_LETTERS
    ISO_WEEKDAY
    SUNDAY_WEEKDAY

#: step -> field, minimum, maximum, digits
_NUMBERS = {
    "year": (YEAR, 0, 9999, 4),
    "short_year": (SHORT_YEAR, 0, 99, 2),
    "month": (MONTH, 1, 12, 2),
    "day": (DAY, 1, 31, 2),
    "year_day": (YEAR_DAY, 1, 366, 3),
    "iso_weekday": (ISO_WEEKDAY, 1, 7, 1),
    "weekday": (SUNDAY_WEEKDAY, 0, 6, 1),
    "sunday_week": (SUNDAY_WEEK, 0, 53, 2),
    "monday_week": (MONDAY_WEEK, 0, 53, 2),
    "iso_week": (ISO_WEEK, 1, 53, 2),
    "iso_year": (ISO_YEAR, 0, 9999, 4),
    "hour": (HOUR, 0, 23, 2),
    "half_hour": (HALF_HOUR, 1, 12, 2),
    "minute": (MINUTE, 0, 59, 2),
    "second": (SECOND, 0, 61, 2),
    "fraction": (MICRO, 0, 999999, 6),
}
_OTHERS = {
    "literal": LITERAL,
    "space": SPACE,
    "zone": ZONE,
    "offset": OFFSET,
    "half": HALF,
    "month_name": MONTH_NAME,
    "month_letters": MONTH_LETTERS,
    "day_name": DAY_NAME,
    "day_letters": DAY_LETTERS,
}
#: fields that need all of their digits
_WHOLE = ("year", "short_year", "iso_year")

cdef int64_t NOT_SAID = INT64_MIN

cdef enum:
    FIRST_YEAR = 1900
    #: two-digit year from which the century is the 20th
    PIVOT = 69

cdef int64_t SECOND_MICROS = 1000000
cdef int64_t DAY_MICROS = 86400 * SECOND_MICROS
cdef const char** MONTHS = [
    "january", "february", "march", "april", "may", "june", "july",
    "august", "september", "october", "november", "december",
]
cdef const char** DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


cdef struct ReadStep:
    int field
    int64_t least
    int64_t most
    int32_t digits_min
    int32_t digits_max
    bint may_be_padded  # whether a space may stand for the first digit
    int64_t text  # a literal's place among the texts, and its bytes
    int64_t size


cdef struct Program:
    const ReadStep* steps
    int64_t count
    const uint8_t* texts


cdef struct Parts:
    int64_t values[FIELDS]  # NOT_SAID, or what the text says


cdef struct Text:
    const uint8_t* data
    int64_t size


cdef inline uint8_t lower(uint8_t letter) noexcept nogil:
    return letter + 32 if 65 <= letter <= 90 else letter


cdef bint put(Parts* parts, int field, int64_t value) noexcept nogil:
    """Store the value of a part; false where it had another value."""
    if parts.values[field] != NOT_SAID:
        return parts.values[field] == value
    parts.values[field] = value
    return True


cdef int64_t space_at(const Text* text, int64_t place) noexcept nogil:
    """The bytes of the space at a place, 0: there is none. Spaces are those of Unicode."""
    cdef uint8_t first, second, third
    if place >= text.size:
        return 0
    first = text.data[place]
    if first == 32 or 9 <= first <= 13 or 28 <= first <= 31:
        return 1
    if first < 0xC2 or place + 1 >= text.size:
        return 0
    second = text.data[place + 1]
    if first == 0xC2:
        return 2 if second == 0x85 or second == 0xA0 else 0
    if place + 2 >= text.size:
        return 0
    third = text.data[place + 2]
    if first == 0xE2 and second == 0x80:
        return 3 if third <= 0x8A or third == 0xA8 or third == 0xA9 or third == 0xAF else 0
    if first == 0xE2 and second == 0x81:
        return 3 if third == 0x9F else 0
    if first == 0xE1:
        return 3 if second == 0x9A and third == 0x80 else 0
    return 3 if first == 0xE3 and second == 0x80 and third == 0x80 else 0


cdef int64_t name_at(const Text* text, int64_t place, const char** names, int64_t count, bint is_whole) noexcept nogil:
    """Return the index of the name at a position, or of its first three letters; -1: there is none."""
    cdef int64_t index, at
    for index in range(count):
        at = 0
        while names[index][at] and (is_whole or at < 3):
            if place + at >= text.size or lower(text.data[place + at]) != <uint8_t> names[index][at]:
                break
            at += 1
        if at and (not names[index][at] or (at == 3 and not is_whole)):
            return index
    return -1


cdef inline int64_t digits_at(const Text* text, int64_t place, int64_t count) noexcept nogil:
    """The number that some digits are, -1 where one of them is none."""
    cdef int64_t number = 0, index
    if place + count > text.size:
        return -1
    for index in range(place, place + count):
        if text.data[index] < 48 or text.data[index] > 57:
            return -1
        number = number * 10 + text.data[index] - 48
    return number


cdef int64_t offset_at(const Text* text, int64_t place, int64_t* micros) noexcept nogil:
    """Read ``Z``, ``+0130``, ``+01:30``, also with seconds and their fraction; return its bytes, 0: there is none."""
    cdef int64_t at = place, hours, minutes, seconds = 0, fraction = 0, factor = 100000
    cdef bint has_colons
    micros[0] = 0
    if at < text.size and text.data[at] == 90:
        return 1
    if at >= text.size or (text.data[at] != 43 and text.data[at] != 45):
        return 0
    hours = digits_at(text, at + 1, 2)
    has_colons = at + 3 < text.size and text.data[at + 3] == 58
    at += 4 if has_colons else 3
    minutes = digits_at(text, at, 2)
    if hours < 0 or hours > 23 or minutes < 0 or minutes > 59:
        return 0
    at += 2
    if has_colons and at < text.size and text.data[at] == 58:
        seconds = digits_at(text, at + 1, 2)
        at += 3 if 0 <= seconds <= 59 else 0
    elif not has_colons:
        seconds = digits_at(text, at, 2)
        at += 2 if 0 <= seconds <= 59 else 0
    if seconds < 0 or seconds > 59:
        seconds = 0
    elif at - place >= 7 and at + 1 < text.size and text.data[at] == 46 and digits_at(text, at + 1, 1) >= 0:
        at += 1
        while factor and digits_at(text, at, 1) >= 0:
            fraction += digits_at(text, at, 1) * factor
            factor //= 10
            at += 1
    micros[0] = ((hours * 60 + minutes) * 60 + seconds) * SECOND_MICROS + fraction
    if text.data[place] == 45:
        micros[0] = -micros[0]
    return at - place


cdef bint put_number(Parts* parts, int field, int64_t number, int64_t digits) noexcept nogil:
    cdef int64_t index
    if field == ISO_WEEKDAY:
        return put(parts, WEEKDAY, number - 1)
    if field == SUNDAY_WEEKDAY:
        return put(parts, WEEKDAY, (number + 6) % 7)
    if field == MICRO:
        for index in range(6 - digits):
            number *= 10
    return put(parts, field, number)


cdef bint read_number(const Program* program, int64_t at, const Text* text, int64_t place, Parts* parts) noexcept nogil:
    """Read a number with as many digits as let the steps behind it succeed."""
    cdef const ReadStep* step = &program.steps[at]
    cdef int32_t digits
    cdef int64_t number
    cdef Parts tried
    for digits in range(step.digits_max, step.digits_min - 1, -1):
        number = digits_at(text, place, digits)
        if number < step.least or number > step.most:
            continue
        tried = parts[0]
        if put_number(&tried, step.field, number, digits) and read_from(program, at + 1, text, place + digits, &tried):
            parts[0] = tried
            return True
    if step.may_be_padded and place < text.size and text.data[place] == 32:
        number = digits_at(text, place + 1, 1)
        if number >= step.least and put_number(parts, step.field, number, 1):
            return read_from(program, at + 1, text, place + 2, parts)
    return False


cdef int64_t read_step(
    const Program* program, const ReadStep* step, const Text* text, int64_t place, Parts* parts
) noexcept nogil:
    """Read what is no number; return its bytes, 0: it is not there."""
    cdef int64_t index, size = 0
    if step.field == LITERAL:
        if place + step.size > text.size:
            return 0
        for index in range(step.size):
            if lower(text.data[place + index]) != lower(program.texts[step.text + index]):
                return 0
        return step.size
    if step.field == SPACE:
        while (index := space_at(text, place + size)) > 0:
            size += index
        return size
    if step.field == OFFSET:
        size = offset_at(text, place, &index)
        return size if size and put(parts, OFFSET, index) else 0
    if step.field == MONTH_NAME or step.field == MONTH_LETTERS:
        index = name_at(text, place, MONTHS, 12, step.field == MONTH_NAME)
        if index < 0 or not put(parts, MONTH, index + 1):
            return 0
        return name_size(MONTHS[index], step.field == MONTH_NAME)
    if step.field == DAY_NAME or step.field == DAY_LETTERS:
        index = name_at(text, place, DAYS, 7, step.field == DAY_NAME)
        if index < 0 or not put(parts, WEEKDAY, index):
            return 0
        return name_size(DAYS[index], step.field == DAY_NAME)
    if step.field == HALF:
        if place + 1 >= text.size or lower(text.data[place + 1]) != 109:
            return 0
        index = lower(text.data[place])
        return 2 if (index == 97 or index == 112) and put(parts, HALF, index == 112) else 0
    if place + 2 >= text.size:  # a zone: UTC or GMT
        return 0
    index = lower(text.data[place]) << 16 | lower(text.data[place + 1]) << 8 | lower(text.data[place + 2])
    return 3 if index == 0x757463 or index == 0x676D74 else 0


cdef int64_t name_size(const char* name, bint is_whole) noexcept nogil:
    cdef int64_t size = 0
    while name[size] and (is_whole or size < 3):
        size += 1
    return size


cdef bint read_from(const Program* program, int64_t at, const Text* text, int64_t place, Parts* parts) noexcept nogil:
    """Read a text from a place and a step on to the end of both."""
    cdef int64_t size
    while at < program.count:
        if program.steps[at].digits_max:
            return read_number(program, at, text, place, parts)
        size = read_step(program, &program.steps[at], text, place, parts)
        if size == 0:
            return False
        place += size
        at += 1
    return place == text.size


cdef inline int64_t said(const Parts* parts, int field, int64_t otherwise) noexcept nogil:
    return otherwise if parts.values[field] == NOT_SAID else parts.values[field]


cdef inline bint agrees(const Parts* parts, int field, int64_t value) noexcept nogil:
    """Whether a part that is said is this."""
    return parts.values[field] == NOT_SAID or parts.values[field] == value


cdef int64_t year_of(const Parts* parts) noexcept nogil:
    cdef int64_t short_year = parts.values[SHORT_YEAR]
    if parts.values[YEAR] != NOT_SAID or short_year == NOT_SAID:
        return said(parts, YEAR, FIRST_YEAR)
    return short_year + (1900 if short_year >= PIVOT else 2000)


cdef bint day_of(const Parts* parts, int64_t* found) noexcept nogil:
    """Find the day since 1970; false where there is none that is all of what is said."""
    cdef int64_t year = year_of(parts), month = said(parts, MONTH, 1), day = said(parts, DAY, 1)
    cdef int64_t weekday = parts.values[WEEKDAY], first, days, iso_year = 0, iso_week
    cdef bint is_said = True
    cdef Day civil
    if year < 1 or not agrees(parts, SHORT_YEAR, year % 100):
        return False
    if parts.values[ISO_YEAR] != NOT_SAID and parts.values[DAY] == NOT_SAID and parts.values[YEAR_DAY] == NOT_SAID:
        first = days_from_civil(parts.values[ISO_YEAR], 1, 4)
        days = first - weekday_of(first) + 7 * (parts.values[ISO_WEEK] - 1) + weekday
        if parts.values[YEAR] == NOT_SAID and parts.values[SHORT_YEAR] == NOT_SAID:
            year = civil_from_days(days).year
    elif parts.values[YEAR_DAY] != NOT_SAID:
        days = days_from_civil(year, 1, 1) + parts.values[YEAR_DAY] - 1
    elif parts.values[DAY] != NOT_SAID or parts.values[MONTH] != NOT_SAID:
        if day > days_of_month(year, month):
            return False
        days = days_from_civil(year, month, day)
        is_said = parts.values[DAY] != NOT_SAID
    elif weekday != NOT_SAID and parts.values[SUNDAY_WEEK] != NOT_SAID:
        first = days_from_civil(year, 1, 1)
        days = first - (weekday_of(first) + 1) % 7 + 7 * (parts.values[SUNDAY_WEEK] - week_of(first, year, 6)) + (
            weekday + 1) % 7
    elif weekday != NOT_SAID and parts.values[MONDAY_WEEK] != NOT_SAID:
        first = days_from_civil(year, 1, 1)
        days = first - weekday_of(first) + 7 * (parts.values[MONDAY_WEEK] - week_of(first, year, 0)) + weekday
    else:
        days, is_said = days_from_civil(year, 1, 1), False
    found[0] = days
    if not is_said:
        return True  # a day of the week beside no day says nothing, as in Python
    civil, iso_week = civil_from_days(days), iso_week_of(days, &iso_year)
    return (
        1 <= civil.year <= 9999 and civil.year == year and agrees(parts, MONTH, civil.month)
        and agrees(parts, DAY, civil.day) and agrees(parts, WEEKDAY, weekday_of(days))
        and agrees(parts, ISO_YEAR, iso_year) and agrees(parts, ISO_WEEK, iso_week)
        and agrees(parts, SUNDAY_WEEK, week_of(days, year, 6)) and agrees(parts, MONDAY_WEEK, week_of(days, year, 0))
    )


cdef bint moment_of(const Parts* parts, int64_t* found) noexcept nogil:
    """Find the microseconds since 1970; false where there are none."""
    cdef int64_t days = 0, half = parts.values[HALF], hour = parts.values[HOUR]
    if not day_of(parts, &days) or said(parts, SECOND, 0) > 59:
        return False
    if hour == NOT_SAID:
        hour = said(parts, HALF_HOUR, 12) % 12
        if half == 1 and parts.values[HALF_HOUR] != NOT_SAID:
            hour += 12
    elif not agrees(parts, HALF, hour // 12) or not agrees(parts, HALF_HOUR, (hour + 11) % 12 + 1):
        return False
    found[0] = (
        days * DAY_MICROS
        + ((hour * 60 + said(parts, MINUTE, 0)) * 60 + said(parts, SECOND, 0)) * SECOND_MICROS
        + said(parts, MICRO, 0)
    )
    if parts.values[OFFSET] != NOT_SAID:
        found[0] -= parts.values[OFFSET]
    return True


cdef bint read_text(const Program* program, const Text* text, int64_t* found) noexcept nogil:
    cdef Parts parts
    cdef int field
    for field in range(FIELDS):
        parts.values[field] = NOT_SAID
    return read_from(program, 0, text, 0, &parts) and moment_of(&parts, found)


@cython.final
cdef class MomentReader:
    """Args:
        steps: those of a format. Thread: any.
    """

    cdef ReadStep* _steps
    cdef int64_t _count
    cdef bytes _texts

    def __cinit__(self, steps not None):
        cdef ReadStep* step
        self._steps = <ReadStep*> calloc(len(steps) + 1, sizeof(ReadStep))
        if self._steps == NULL:
            raise MemoryError()
        self._texts = b""
        for each in steps:
            step = &self._steps[self._count]
            if each.part in _NUMBERS:
                step.field, step.least, step.most, step.digits_max = _NUMBERS[each.part]
                step.may_be_padded = each.pad == " " or step.field == DAY  # as in Python
                step.digits_min = step.digits_max if each.part in _WHOLE else 1
            else:
                text = each.text.encode()
                step.field, step.text, step.size = _OTHERS[each.part], len(self._texts), len(text)
                self._texts += text
            self._count += 1

    def __dealloc__(self):
        free(self._steps)

    def read(self, texts not None):
        """Return the microseconds since 1970 of string or large string arrays, and which of them are right."""
        cdef int64_t count = len(texts), row, begin
        cdef bint is_wide = texts.type == pa.large_string()
        cdef const uint8_t* data = NULL
        cdef const int32_t* narrow = NULL
        cdef const int64_t* wide = NULL
        cdef int64_t* found
        cdef uint8_t* right
        cdef Text text
        cdef Program program
        if not is_wide and texts.type != pa.string():
            raise ValueError(f"texts as {texts.type}")
        if count == 0:
            return pa.array([], pa.int64()), pa.array([], pa.bool_())
        _, offsets, values = texts.buffers()
        if values is not None:
            data = <const uint8_t*> <size_t> values.address
        if is_wide:
            wide = (<const int64_t*> <size_t> offsets.address) + <int64_t> texts.offset
        else:
            narrow = (<const int32_t*> <size_t> offsets.address) + <int64_t> texts.offset
        room, marks = pa.allocate_buffer(8 * count), pa.allocate_buffer(count)
        found, right = <int64_t*> <size_t> room.address, <uint8_t*> <size_t> marks.address
        program.steps, program.count, program.texts = self._steps, self._count, self._texts
        with nogil:
            for row in range(count):
                begin = wide[row] if is_wide else narrow[row]
                text.data = data + begin
                text.size = (wide[row + 1] if is_wide else narrow[row + 1]) - begin
                found[row] = 0
                right[row] = read_text(&program, &text, &found[row])
        flags = pa.Array.from_buffers(pa.uint8(), count, [None, marks], null_count=0)
        is_right = pc.and_(pc.equal(flags, 1), pc.is_valid(texts))
        bitmap = None if pc.all(is_right).as_py() else is_right.buffers()[1]
        return pa.Array.from_buffers(pa.int64(), count, [bitmap, room]), is_right
