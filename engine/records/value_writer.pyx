"""Python values become values of Arrow columns, one at a time.

    target = ColumnTarget(field)
    target.begin(capacity)              room for so many rows
    target.add(value, row)              rows from 0 on; True: the value waits in ``unfit``
    array = target.finish(rows)         the column

    values     int64 of an int, string of a str, ... of exactly that class, None     written into Arrow's buffers
    unfit      anything else: Decimal, lists, numpy's numbers, a bool as int64       pyarrow converts them, or refuses
               None where the column is not nullable                                 refused

From the first unfit value on, values are kept as they are and converted all at once (``array_of``): what comes out is
what pyarrow says, and refused is what it refuses, or would cut in silence (value_check.pyx).

Held by: tests/functions/test_row_appender.py
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE
from cpython.datetime cimport (
    PyDate_CheckExact,
    PyDateTime_CheckExact,
    PyDelta_CheckExact,
    PyTime_CheckExact,
    date_day,
    date_month,
    date_year,
    datetime_day,
    datetime_hour,
    datetime_microsecond,
    datetime_minute,
    datetime_month,
    datetime_second,
    datetime_tzinfo,
    datetime_year,
    import_datetime,
    time_hour,
    time_microsecond,
    time_minute,
    time_second,
    time_tzinfo,
    timedelta_days,
    timedelta_microseconds,
    timedelta_seconds,
)
from cpython.exc cimport PyErr_Clear
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.long cimport PyLong_CheckExact
from cpython.unicode cimport PyUnicode_CheckExact
from libc.math cimport HUGE_VAL, fabs
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint64_t, uintptr_t
from libc.string cimport memcpy, memset

import pyarrow as pa

from engine.records import plain_scalars
from engine.records.value_check import MisfitError, check_values, check_zeros

import_datetime()

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size)

cdef enum:
    TEXT_BYTES_FIRST = 8192

#: limit up to which integers are exact doubles
cdef int64_t DOUBLE_WHOLE_MAX = 1 << 53
cdef int64_t FLOAT_WHOLE_MAX = 1 << 24
#: number from which on values are nearer to infinity than to the largest float32
cdef double FLOAT_BEYOND = 3.4028235677973366e38
cdef int64_t TEXTS_MAX = (1 << 31) - 1
cdef int64_t US_OF_DAY = 86_400_000_000

cdef dict INTEGERS = {
    pa.int8().id: (FROM_INT1, -(2**7), 2**7 - 1), pa.int16().id: (FROM_INT2, -(2**15), 2**15 - 1),
    pa.int32().id: (FROM_INT4, -(2**31), 2**31 - 1), pa.int64().id: (FROM_INT8, -(2**63), 2**63 - 1),
    pa.uint8().id: (FROM_INT1, 0, 2**8 - 1), pa.uint16().id: (FROM_INT2, 0, 2**16 - 1),
    pa.uint32().id: (FROM_INT4, 0, 2**32 - 1), pa.uint64().id: (FROM_INT8, 0, 2**63 - 1),
}
cdef dict OTHERS = {
    pa.bool_().id: FROM_BOOL, pa.float32().id: FROM_FLOAT, pa.float64().id: FROM_DOUBLE, pa.string().id: FROM_TEXT,
    pa.large_string().id: FROM_LARGE_TEXT, pa.binary().id: FROM_BYTES, pa.large_binary().id: FROM_LARGE_BYTES,
    pa.date32().id: FROM_DATE, pa.timestamp("us").id: FROM_MOMENT, pa.time32("s").id: FROM_TIME4,
    pa.time64("us").id: FROM_TIME8, pa.duration("us").id: FROM_DURATION,
}
#: microseconds of each unit; for smaller units, the negated number of units in a microsecond
cdef dict UNITS_US = {"s": 1_000_000, "ms": 1000, "us": 1, "ns": -1000}


def described(field):
    """Return the name of a column for messages; one without a name is the only result of a function."""
    column = f"column {field.name!r} of type {field.type}" if field.name else f"its type {field.type}"
    return column + ("" if field.nullable else ", which is not nullable")


def array_of(values, field):
    """Return values as an array of the field, as pyarrow converts them; MisfitError for what would lose something."""
    if not field.nullable and any(value is None for value in values):
        raise MisfitError("it is null", next(index for index, value in enumerate(values) if value is None))
    check_values(values, field.type)
    array = plain_scalars.array_of(values, field.type)
    if pa.types.is_decimal(field.type):
        check_zeros(values, array)
    return array


@cython.final
cdef class ColumnTarget:
    """A column that values are added to. Thread: any, with the GIL."""

    def __cinit__(self, field):
        cdef TargetColumn* column = &self.column
        data_type = field.type
        self.field = field
        column.is_nullable = field.nullable
        if isinstance(data_type, pa.BaseExtensionType):
            return
        if data_type.id in INTEGERS:
            column.kind, column.least, column.most = INTEGERS[data_type.id]
            return
        column.kind = OTHERS.get(data_type.id, FROM_OBJECT)
        if column.kind in (FROM_MOMENT, FROM_TIME4, FROM_TIME8, FROM_DURATION):
            column.least = UNITS_US[data_type.unit]
            if column.kind == FROM_MOMENT and data_type.tz is not None:
                column.kind = FROM_OBJECT

    cdef void begin(self, int64_t capacity) except *:
        """Begin a batch of at most so many rows, more than none."""
        cdef TargetColumn* column = &self.column
        self.unfit = None
        column.capacity, column.nulls, column.text_bytes = capacity, 0, 0
        column.validity = NULL
        self.buffers = None
        if column.kind == FROM_OBJECT:
            return
        values = pa.allocate_buffer(self.values_bytes(capacity), resizable=True)
        column.values = <uint8_t*><uintptr_t>values.address
        self.buffers = [None, values]
        if column.kind == FROM_BOOL:
            memset(column.values, 0, <size_t>self.values_bytes(capacity))
        elif FROM_TEXT <= column.kind <= FROM_LARGE_BYTES:
            memset(column.values, 0, 8)
            column.text_capacity = TEXT_BYTES_FIRST
            self.buffers.append(pa.allocate_buffer(column.text_capacity, resizable=True))
            column.texts = <uint8_t*><uintptr_t>self.buffers[2].address

    cdef int64_t values_bytes(self, int64_t rows):
        """Return the bytes that the values, or the offsets, of so many rows take."""
        cdef int32_t kind = self.column.kind
        if kind == FROM_BOOL:
            return (rows + 63) // 64 * 8
        if kind == FROM_INT1:
            return rows
        if kind == FROM_INT2:
            return 2 * rows
        if kind in (FROM_INT4, FROM_FLOAT, FROM_DATE, FROM_TIME4):
            return 4 * rows
        if kind in (FROM_TEXT, FROM_BYTES):
            return 4 * rows + 4
        if kind in (FROM_LARGE_TEXT, FROM_LARGE_BYTES):
            return 8 * rows + 8
        return 8 * rows

    cdef bint add(self, object value, int64_t row) except -1:
        """Add the value of a row; return whether it waits for being converted."""
        cdef TargetColumn* column = &self.column
        cdef int32_t kind = column.kind
        cdef int64_t number
        cdef int overflow = 0
        cdef Py_ssize_t size = 0
        cdef const char* text
        if self.unfit is not None or kind == FROM_OBJECT:
            return self.keep(value, row)
        if value is None:
            return self.add_null(row) if column.is_nullable else self.keep(value, row)
        if FROM_INT1 <= kind <= FROM_INT8:
            if not PyLong_CheckExact(value):
                return self.keep(value, row)
            number = PyLong_AsLongLongAndOverflow(value, &overflow)
            if overflow or not column.least <= number <= column.most:
                return self.keep(value, row)
            if kind == FROM_INT8:
                (<int64_t*>column.values)[row] = number
            elif kind == FROM_INT4:
                (<int32_t*>column.values)[row] = <int32_t>number
            elif kind == FROM_INT2:
                (<int16_t*>column.values)[row] = <int16_t>number
            else:
                (<int8_t*>column.values)[row] = <int8_t>number
            return False
        if kind == FROM_TEXT or kind == FROM_LARGE_TEXT:
            if not PyUnicode_CheckExact(value):
                return self.keep(value, row)
            text = PyUnicode_AsUTF8AndSize(value, &size)
            if text == NULL:
                PyErr_Clear()  # lone surrogates: pyarrow will say so
                return self.keep(value, row)
            return self.add_text(text, size, row) and self.keep(value, row)
        if kind == FROM_BYTES or kind == FROM_LARGE_BYTES:
            if not PyBytes_CheckExact(value):
                return self.keep(value, row)
            return self.add_text(PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value), row) and self.keep(value, row)
        if kind == FROM_DOUBLE or kind == FROM_FLOAT:
            return self.add_fraction(value, row)
        if kind == FROM_BOOL:
            if value is True:
                column.values[row >> 3] |= <uint8_t>(1 << (row & 7))
                return False
            return value is not False and self.keep(value, row)
        return self.add_time(value, row)

    cdef bint keep(self, object value, int64_t row) except -1:
        """Keep a value as it is, and all behind it."""
        if self.unfit is None:
            self.unfit = []
            self.column.fit = row
        self.unfit.append(value)
        return True

    cdef bint add_null(self, int64_t row) except -1:
        cdef TargetColumn* column = &self.column
        if column.kind == FROM_OBJECT or self.unfit is not None:
            return self.keep(None, row)
        if column.validity == NULL:
            self.buffers[0] = pa.allocate_buffer((column.capacity + 63) // 64 * 8, resizable=True)
            column.validity = <uint8_t*><uintptr_t>self.buffers[0].address
            memset(column.validity, 0xFF, <size_t>((column.capacity + 63) // 64 * 8))
        column.validity[row >> 3] &= <uint8_t>~(1 << (row & 7))
        column.nulls += 1
        if FROM_TEXT <= column.kind <= FROM_LARGE_BYTES:
            self.end_text(row)
        elif column.kind != FROM_BOOL:
            # what is null has no value, and bytes of other times shall not leave the process
            memset(column.values + self.values_bytes(row), 0, <size_t>self.values_bytes(1))
        return False

    cdef bint add_text(self, const char* text, int64_t size, int64_t row) except -1:
        """Add bytes that are valid in the column; return whether there is no room for them."""
        cdef TargetColumn* column = &self.column
        cdef int64_t needed = column.text_bytes + size
        if needed > column.text_capacity:
            if needed > TEXTS_MAX and (column.kind == FROM_TEXT or column.kind == FROM_BYTES):
                return True
            column.text_capacity = max(2 * column.text_capacity, needed)
            self.buffers[2].resize(column.text_capacity, shrink_to_fit=False)
            column.texts = <uint8_t*><uintptr_t>self.buffers[2].address
        memcpy(column.texts + column.text_bytes, text, <size_t>size)
        column.text_bytes = needed
        self.end_text(row)
        return False

    cdef void end_text(self, int64_t row) noexcept:
        cdef TargetColumn* column = &self.column
        if column.kind == FROM_TEXT or column.kind == FROM_BYTES:
            (<int32_t*>column.values)[row + 1] = <int32_t>column.text_bytes
        else:
            (<int64_t*>column.values)[row + 1] = column.text_bytes

    cdef bint add_fraction(self, object value, int64_t row) except -1:
        cdef TargetColumn* column = &self.column
        cdef bint is_float = column.kind == FROM_FLOAT
        cdef int64_t most = FLOAT_WHOLE_MAX if is_float else DOUBLE_WHOLE_MAX
        cdef int64_t number
        cdef int overflow = 0
        cdef double fraction
        if PyFloat_CheckExact(value):
            fraction = PyFloat_AS_DOUBLE(value)
        elif PyLong_CheckExact(value):
            number = PyLong_AsLongLongAndOverflow(value, &overflow)
            if overflow or not -most <= number <= most:
                return self.keep(value, row)
            fraction = <double>number
        else:
            return self.keep(value, row)
        if is_float:
            if fabs(fraction) >= FLOAT_BEYOND and fabs(fraction) != HUGE_VAL:
                return self.keep(value, row)
            (<float*>column.values)[row] = <float>fraction
        else:
            (<double*>column.values)[row] = fraction
        return False

    @cython.cdivision(True)
    cdef bint add_time(self, object value, int64_t row) except -1:
        cdef TargetColumn* column = &self.column
        cdef int32_t kind = column.kind
        cdef int64_t unit_us = column.least
        cdef int64_t passed_us
        if kind == FROM_DATE:
            if not PyDate_CheckExact(value):
                return self.keep(value, row)
            (<int32_t*>column.values)[row] = <int32_t>days_of(date_year(value), date_month(value), date_day(value))
            return False
        if kind == FROM_MOMENT:
            if not PyDateTime_CheckExact(value) or datetime_tzinfo(value) is not None:
                return self.keep(value, row)
            passed_us = days_of(datetime_year(value), datetime_month(value), datetime_day(value)) * US_OF_DAY + us_of(
                datetime_hour(value), datetime_minute(value), datetime_second(value), datetime_microsecond(value))
        elif kind == FROM_DURATION:
            if not PyDelta_CheckExact(value) or not -100_000_000 < timedelta_days(value) < 100_000_000:
                return self.keep(value, row)
            passed_us = timedelta_days(value) * US_OF_DAY + us_of(
                0, 0, timedelta_seconds(value), timedelta_microseconds(value))
        else:
            if not PyTime_CheckExact(value) or time_tzinfo(value) is not None:
                return self.keep(value, row)
            passed_us = us_of(time_hour(value), time_minute(value), time_second(value), time_microsecond(value))
        if unit_us < 0:
            if not -(2**63 - 1) // 1000 < passed_us < (2**63 - 1) // 1000:
                return self.keep(value, row)
            passed_us *= -unit_us
        elif passed_us % unit_us:
            return self.keep(value, row)
        else:
            passed_us //= unit_us
        if kind == FROM_TIME4:
            (<int32_t*>column.values)[row] = <int32_t>passed_us
        else:
            (<int64_t*>column.values)[row] = passed_us
        return False

    cdef void take_back(self, int64_t row) except *:
        """Forget the value of a row, the last one that was added."""
        cdef TargetColumn* column = &self.column
        if self.unfit is not None:
            self.unfit.pop()
            if not self.unfit:
                self.unfit = None
            return
        if column.validity != NULL and not (column.validity[row >> 3] >> (row & 7)) & 1:
            column.validity[row >> 3] |= <uint8_t>(1 << (row & 7))
            column.nulls -= 1
        if column.kind == FROM_BOOL:
            column.values[row >> 3] &= <uint8_t>~(1 << (row & 7))
        elif column.kind == FROM_TEXT or column.kind == FROM_BYTES:
            column.text_bytes = (<int32_t*>column.values)[row]
        elif column.kind == FROM_LARGE_TEXT or column.kind == FROM_LARGE_BYTES:
            column.text_bytes = (<int64_t*>column.values)[row]

    cdef object finish(self, int64_t rows):
        """Return the column of so many rows; what pyarrow raises where an unfit value is none of the column's."""
        cdef TargetColumn* column = &self.column
        cdef int64_t fit = rows if self.unfit is None else column.fit
        if column.kind == FROM_OBJECT or (self.unfit is not None and fit == 0):
            return array_of(self.unfit or [], self.field)
        buffers = self.buffers
        self.buffers = None
        buffers[1].resize(self.values_bytes(fit), shrink_to_fit=False)
        if len(buffers) == 3:
            buffers[2].resize(column.text_bytes, shrink_to_fit=False)
        array = pa.Array.from_buffers(self.field.type, fit, buffers, column.nulls)
        if self.unfit is None:
            return array
        return pa.concat_arrays([array, array_of(self.unfit, self.field)])


cdef inline int64_t us_of(int64_t hours, int64_t minutes, int64_t seconds, int64_t microseconds) noexcept nogil:
    return ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + microseconds


@cython.cdivision(True)
cdef inline int64_t days_of(int64_t year, int64_t month, int64_t day) noexcept nogil:
    """Days from 1970-01-01 to a date from year 1 on, in eras of 400 years that begin with March.

    Source: Howard Hinnant, chrono-Compatible Low-Level Date Algorithms.
    """
    cdef int64_t shifted = year - 1 if month <= 2 else year
    cdef int64_t era = shifted // 400
    cdef int64_t year_of_era = shifted - era * 400
    cdef int64_t day_of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468
