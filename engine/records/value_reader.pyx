"""Values of Arrow columns as Python's, each made when it is asked for.

    column = ColumnValues(name, array)     once for a batch
    column.value(row)                      a value; ``value_at`` is the same without a message
    refilled(number, column, row)          a number without other references becomes that of another row, where it can
    python_values(name, column)            all of them

    bool, integers, float, double          from their bytes
    string, binary, of either size         from offsets and bytes
    date, timestamp without a zone, time of day, duration of microseconds or more
    anything else                          a list, which pyarrow makes at once (python_values.py)

What comes out is what ``pyarrow.Array.to_pylist`` gives. A value that Python does not have is a DataError in the words
of ``made_values``.

Held by: tests/records/test_value_reader.py
"""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.datetime cimport date_new, datetime_new, import_datetime, time_new, timedelta_new
from cpython.float cimport PyFloat_FromDouble
from cpython.long cimport PyLong_FromLongLong
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t

import pyarrow as pa

from engine.records.python_values import made_values

import_datetime()

cdef extern from "Python.h":
    object PyLong_FromUnsignedLongLong(unsigned long long value)

cdef int64_t US_OF_DAY = 86_400_000_000
#: days of 0001-01-01 and 9999-12-31
cdef int64_t FIRST_DAY = -719_162
cdef int64_t LAST_DAY = 2_932_896
#: limit of days in a timedelta
cdef int64_t DURATION_DAYS_MAX = 999_999_999

cdef dict UNITS_US = {"s": 1_000_000, "ms": 1000, "us": 1}
cdef dict KINDS = {
    data_type.id: kind for data_type, kind in (
        (pa.null(), AS_NULL), (pa.bool_(), AS_BOOL), (pa.int8(), AS_INT8), (pa.int16(), AS_INT16),
        (pa.int32(), AS_INT32), (pa.int64(), AS_INT64), (pa.uint8(), AS_UINT8), (pa.uint16(), AS_UINT16),
        (pa.uint32(), AS_UINT32), (pa.uint64(), AS_UINT64), (pa.float32(), AS_FLOAT), (pa.float64(), AS_DOUBLE),
        (pa.string(), AS_TEXT), (pa.large_string(), AS_LARGE_TEXT), (pa.binary(), AS_BYTES),
        (pa.large_binary(), AS_LARGE_BYTES), (pa.binary(1), AS_FIXED_BYTES), (pa.date32(), AS_DAYS),
        (pa.timestamp("us"), AS_MOMENT), (pa.time32("s"), AS_TIME32), (pa.time64("us"), AS_TIME64),
        (pa.duration("us"), AS_DURATION),
    )
}
cdef frozenset TIMES = frozenset({AS_MOMENT, AS_TIME32, AS_TIME64, AS_DURATION})


cdef class ColumnValues:
    """A column whose values are read. Thread: any, with the GIL."""

    def __cinit__(self, str name, array):
        data_type = array.type
        if isinstance(data_type, pa.DictionaryType):
            array = array.dictionary_decode()
            data_type = array.type
        cdef int32_t kind = KINDS.get(data_type.id, AS_OBJECT)
        cdef ValueColumn* column = &self.column
        self.name, self.array = name, array
        if isinstance(data_type, pa.BaseExtensionType):
            kind = AS_OBJECT
        if kind in TIMES:
            column.unit = UNITS_US.get(data_type.unit, 0)
            if column.unit == 0 or (kind == AS_MOMENT and data_type.tz is not None):
                kind = AS_OBJECT
        elif kind == AS_FIXED_BYTES:
            column.unit = data_type.byte_width
        column.kind = kind
        if kind == AS_OBJECT:
            self.leave_to_arrow()
            return
        if kind == AS_NULL:
            return
        buffers = array.buffers()
        self.owners = buffers
        column.offset = array.offset
        if array.null_count:
            column.validity = <const uint8_t*><uintptr_t>buffers[0].address
        if buffers[1] is not None:
            column.values = <const uint8_t*><uintptr_t>buffers[1].address
        if len(buffers) > 2 and buffers[2] is not None:
            column.texts = <const uint8_t*><uintptr_t>buffers[2].address

    cdef object value(self, int64_t row):
        """Return a value; DataError names the column where Python has none for it."""
        try:
            return value_at(&self.column, row)
        except (ValueError, OverflowError):
            self.leave_to_arrow()
        return value_at(&self.column, row)

    cdef int leave_to_arrow(self) except -1:
        """Let pyarrow make all values: DataError if the column has one that Python does not have."""
        self.owners = made_values(self.name, self.array)
        self.column.objects = <void*>self.owners
        self.column.kind = AS_OBJECT
        return 0

    def values(self):
        """Return all values."""
        cdef int64_t row, rows = len(self.array)
        cdef list found = []
        if self.column.kind == AS_OBJECT:
            return self.owners
        for row in range(rows):
            found.append(self.value(row))
        return found


def python_values(str name not None, column not None):
    """Return a column, which may be chunked, as Python values; DataError names the column where Python has none."""
    if isinstance(column, pa.ChunkedArray):
        return [value for chunk in column.chunks for value in ColumnValues(name, chunk).values()]
    return ColumnValues(name, column).values()


@cython.cdivision(True)
cdef object value_at(const ValueColumn* column, int64_t row):
    """Return a value; ValueError (UnicodeDecodeError) or OverflowError where Python has none."""
    cdef int64_t place = row + column.offset
    cdef int64_t start
    cdef int32_t kind = column.kind
    if kind == AS_OBJECT:
        return (<list>column.objects)[row]
    if column.validity != NULL and not (column.validity[place >> 3] >> (place & 7)) & 1:
        return None
    if kind == AS_INT64:
        return PyLong_FromLongLong((<const int64_t*>column.values)[place])
    if kind == AS_TEXT:
        start = (<const int32_t*>column.values)[place]
        return PyUnicode_DecodeUTF8(
            <const char*>column.texts + start, (<const int32_t*>column.values)[place + 1] - start, NULL)
    if kind == AS_DOUBLE:
        return PyFloat_FromDouble((<const double*>column.values)[place])
    if kind == AS_DAYS:
        return day_of((<const int32_t*>column.values)[place])
    if kind == AS_MOMENT:
        return moment_of((<const int64_t*>column.values)[place], column.unit)
    if kind == AS_INT32:
        return PyLong_FromLongLong((<const int32_t*>column.values)[place])
    if kind == AS_BOOL:
        return True if (column.values[place >> 3] >> (place & 7)) & 1 else False
    return other_value_at(column, place)


cdef object other_value_at(const ValueColumn* column, int64_t place):
    """Return a value of the types that are less often there."""
    cdef int64_t start
    cdef int32_t kind = column.kind
    if kind == AS_FLOAT:
        return PyFloat_FromDouble((<const float*>column.values)[place])
    if kind == AS_INT8:
        return PyLong_FromLongLong((<const int8_t*>column.values)[place])
    if kind == AS_INT16:
        return PyLong_FromLongLong((<const int16_t*>column.values)[place])
    if kind == AS_UINT8:
        return PyLong_FromLongLong(column.values[place])
    if kind == AS_UINT16:
        return PyLong_FromLongLong((<const uint16_t*>column.values)[place])
    if kind == AS_UINT32:
        return PyLong_FromLongLong((<const uint32_t*>column.values)[place])
    if kind == AS_UINT64:
        return PyLong_FromUnsignedLongLong((<const uint64_t*>column.values)[place])
    if kind == AS_LARGE_TEXT:
        start = (<const int64_t*>column.values)[place]
        return PyUnicode_DecodeUTF8(
            <const char*>column.texts + start, (<const int64_t*>column.values)[place + 1] - start, NULL)
    if kind == AS_BYTES:
        start = (<const int32_t*>column.values)[place]
        return PyBytes_FromStringAndSize(
            <const char*>column.texts + start, (<const int32_t*>column.values)[place + 1] - start)
    if kind == AS_LARGE_BYTES:
        start = (<const int64_t*>column.values)[place]
        return PyBytes_FromStringAndSize(
            <const char*>column.texts + start, (<const int64_t*>column.values)[place + 1] - start)
    if kind == AS_FIXED_BYTES:
        return PyBytes_FromStringAndSize(<const char*>column.values + place * column.unit, column.unit)
    if kind == AS_TIME32:
        return time_of((<const int32_t*>column.values)[place] * column.unit)
    if kind == AS_TIME64:
        return time_of((<const int64_t*>column.values)[place] * column.unit)
    if kind == AS_DURATION:
        return duration_of((<const int64_t*>column.values)[place], column.unit)
    return None


cdef inline int64_t floor_divided(int64_t value, int64_t by) noexcept nogil:
    cdef int64_t quotient = value // by
    return quotient - 1 if value % by < 0 else quotient


cdef inline void date_parts(int64_t days, int32_t* year, int32_t* month, int32_t* day) noexcept nogil:
    """The proleptic Gregorian date of days since 1970-01-01, in eras of 400 years that begin with March.

    Source: Howard Hinnant, chrono-Compatible Low-Level Date Algorithms.
    """
    cdef int64_t shifted = days + 719_468
    cdef int64_t era = floor_divided(shifted, 146_097)
    cdef int64_t day_of_era = shifted - era * 146_097
    cdef int64_t year_of_era = (
        day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    cdef int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    cdef int64_t month_of_year = (5 * day_of_year + 2) // 153
    day[0] = <int32_t>(day_of_year - (153 * month_of_year + 2) // 5 + 1)
    month[0] = <int32_t>(month_of_year + 3 if month_of_year < 10 else month_of_year - 9)
    year[0] = <int32_t>(year_of_era + era * 400 + (1 if month[0] <= 2 else 0))


cdef object day_of(int64_t days):
    cdef int32_t year, month, day
    if not FIRST_DAY <= days <= LAST_DAY:
        raise OverflowError("date value out of range")
    date_parts(days, &year, &month, &day)
    return date_new(year, month, day)


cdef object moment_of(int64_t value, int64_t unit_us):
    cdef int32_t year, month, day
    cdef int64_t of_day = US_OF_DAY // unit_us
    cdef int64_t days = floor_divided(value, of_day)
    cdef int64_t passed_us = (value - days * of_day) * unit_us
    cdef int64_t seconds = passed_us // 1_000_000
    if not FIRST_DAY <= days <= LAST_DAY:
        raise OverflowError("date value out of range")
    date_parts(days, &year, &month, &day)
    return datetime_new(
        year, month, day, <int>(seconds // 3600), <int>(seconds // 60 % 60), <int>(seconds % 60),
        <int>(passed_us % 1_000_000), None)


cdef object time_of(int64_t value_us):
    cdef int64_t seconds = value_us // 1_000_000
    if not 0 <= value_us < US_OF_DAY:
        raise ValueError("hour must be in 0..23")
    return time_new(
        <int>(seconds // 3600), <int>(seconds // 60 % 60), <int>(seconds % 60), <int>(value_us % 1_000_000), None)


cdef object duration_of(int64_t value, int64_t unit_us):
    cdef int64_t of_day = US_OF_DAY // unit_us
    cdef int64_t days = floor_divided(value, of_day)
    cdef int64_t passed_us = (value - days * of_day) * unit_us
    if not -DURATION_DAYS_MAX <= days <= DURATION_DAYS_MAX:
        raise OverflowError("days out of range")
    return timedelta_new(<int>days, <int>(passed_us // 1_000_000), <int>(passed_us % 1_000_000))
