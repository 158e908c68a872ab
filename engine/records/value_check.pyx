"""ValueCheck: finds Python values that an Arrow type cannot hold, although Arrow would take them and lose a part.

    check_values([1.5], pa.int64())                 MisfitError: a fraction is no integer
    check_values([{"a": 1, "b": 2}], struct<a>)     MisfitError: the type has no member 'b'

    Arrow cuts in silence                           what is found here
    fractions for integers                          a fraction
    1e300 for float32, which becomes infinity       what is beyond the range
    a datetime for a date; microseconds for         a time of day; a part of a second that the unit has not
    timestamps, times and durations of seconds
    a moment with a zone for a type without; one    a zone; no zone
    without for a zone other than UTC
    members of a struct that the type lacks         the member
    a text for the list of its letters              a text
    True for a float                                a bool

What Arrow refuses by itself is not looked at. Values inside of lists, maps and structs are checked like others. What
is rounded to the nearest float loses nothing here.

A type is a tree of ValueCheck, made once. Values of the classes that are there most often take some nanoseconds each.

Held by: tests/records/test_value_check.py
"""

cimport cython
from cpython.datetime cimport (
    PyDate_CheckExact,
    PyDateTime_CheckExact,
    PyDelta_CheckExact,
    PyTime_CheckExact,
    datetime_microsecond,
    datetime_tzinfo,
    import_datetime,
    time_microsecond,
    time_tzinfo,
    timedelta_microseconds,
)
from cpython.dict cimport PyDict_CheckExact, PyDict_GetItem
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.list cimport PyList_CheckExact
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_CheckExact
from libc.math cimport HUGE_VAL, fabs
from libc.stdint cimport int64_t

from datetime import date, datetime, time, timedelta
from functools import lru_cache

import pyarrow as pa

from engine.records.arrow_functions import pc

import_datetime()

cdef enum:
    ANYTHING
    INTEGER
    FLOAT
    DATE
    MOMENT
    TIME
    DURATION
    LIST
    MAP
    STRUCT

#: numbers from which on values are nearer to infinity than to the largest float
_BEYOND = {pa.float16(): 65520.0, pa.float32(): 3.4028235677973366e38}
_MICROSECONDS = {"s": 10**6, "ms": 10**3, "us": 1, "ns": 1}
_NO_NUMBER = "a bool is no number"
_ZONE = "it has a time zone, and the type has none: value.replace(tzinfo=None) takes it away"


class MisfitError(pa.ArrowInvalid):
    """A value does not fit; raised where Arrow raises ArrowInvalid for those that it refuses."""

    def __init__(self, reason, index=-1):
        super().__init__(reason)
        self.reason = reason
        #: index of the value among those to convert; -1: none of them fits
        self.index = index


@cython.final
cdef class ValueCheck:
    """A check of values of a type. Thread: any, with the GIL."""

    cdef int kind
    cdef object data_type
    cdef double beyond
    cdef int64_t unit_us
    cdef bint has_zone
    cdef bint is_utc
    cdef tuple names
    cdef frozenset known
    cdef tuple parts  # a check for each part of a nested type
    cdef tuple are_nullable

    def __cinit__(self, data_type):
        types = pa.types
        self.data_type = data_type
        self.parts = self.names = self.are_nullable = ()
        self.beyond = HUGE_VAL
        if types.is_integer(data_type):
            self.kind = INTEGER
        elif types.is_floating(data_type):
            self.kind = FLOAT
            self.beyond = _BEYOND.get(data_type, HUGE_VAL)
        elif types.is_date(data_type):
            self.kind = DATE
        elif types.is_timestamp(data_type) or types.is_time(data_type) or types.is_duration(data_type):
            self.kind = MOMENT if types.is_timestamp(data_type) else TIME if types.is_time(data_type) else DURATION
            self.unit_us = _MICROSECONDS[data_type.unit]
            zone = data_type.tz if types.is_timestamp(data_type) else None
            self.has_zone, self.is_utc = zone is not None, zone == "UTC"
        elif types.is_list(data_type) or types.is_large_list(data_type) or types.is_fixed_size_list(data_type):
            self.kind, self.parts = LIST, (_check_of(data_type.value_type),)
        elif types.is_map(data_type):
            self.kind, self.parts = MAP, (_check_of(data_type.key_type), _check_of(data_type.item_type))
        elif types.is_struct(data_type):
            self.kind, self.names = STRUCT, tuple(field.name for field in data_type)
            self.known = frozenset(self.names)
            self.parts = tuple(_check_of(field.type) for field in data_type)
            self.are_nullable = tuple(field.nullable for field in data_type)

    cdef object reason(self, object value):
        """Return the reason why a value does not fit, None where it does."""
        cdef int kind = self.kind
        if value is None or kind == ANYTHING:
            return None
        if kind == INTEGER:
            return None if PyLong_CheckExact(value) else _reason_of_number(value)
        if kind == FLOAT:
            return self.reason_of_float(value)
        if kind == LIST:
            return self.reason_of_list(value)
        if kind == STRUCT:
            return self.reason_of_struct(value)
        if kind == MAP:
            return self.reason_of_map(value)
        return self.reason_of_time(value)

    cdef object reason_of_float(self, object value):
        cdef double number
        if PyFloat_CheckExact(value):
            number = fabs(PyFloat_AS_DOUBLE(value))
            if number < self.beyond or number == HUGE_VAL or number != number:
                return None
            return f"it is beyond the range of {self.data_type}"
        if PyLong_CheckExact(value):
            return None
        if type(value).__name__ in ("bool", "bool_"):
            return _NO_NUMBER
        if self.beyond == HUGE_VAL or not hasattr(value, "__float__"):
            return None
        return self.reason_of_float(float(value))

    cdef object reason_of_time(self, object value):
        cdef int kind = self.kind
        if PyLong_CheckExact(value):
            return None
        if kind == DATE:
            return None if PyDate_CheckExact(value) else _reason_of_date(value)
        if kind == MOMENT and isinstance(value, datetime):
            if (datetime_tzinfo(value) is not None) != self.has_zone and not self.is_utc:
                return _ZONE if not self.has_zone else self.without_zone()
            return self.reason_of_part(datetime_microsecond(value), value, PyDateTime_CheckExact(value))
        if kind == TIME and isinstance(value, time):
            if time_tzinfo(value) is not None:
                return _ZONE
            return self.reason_of_part(time_microsecond(value), value, PyTime_CheckExact(value))
        if kind == DURATION and isinstance(value, timedelta):
            return self.reason_of_part(timedelta_microseconds(value), value, PyDelta_CheckExact(value))
        return None

    cdef object without_zone(self):
        zone = self.data_type.tz
        return f"it has no time zone: value.replace(tzinfo=ZoneInfo({zone!r})) gives it the one of the type"

    cdef object reason_of_part(self, int64_t microseconds, object value, bint is_plain):
        """Whether the unit has the part of a second; those of pandas have nanoseconds besides."""
        unit = self.data_type.unit
        nanoseconds = 0 if is_plain else getattr(value, "nanosecond", 0) or getattr(value, "nanoseconds", 0)
        if microseconds % self.unit_us or (nanoseconds and unit != "ns"):
            return f"the type has no part of a second smaller than {unit}"
        return None

    cdef object reason_of_list(self, object value):
        cdef ValueCheck part = <ValueCheck>self.parts[0]
        if isinstance(value, str | bytes | bytearray):
            return "a text is no list"
        if part.kind == ANYTHING:
            return None
        if not PyList_CheckExact(value) and not PyTuple_CheckExact(value):
            value = value.tolist() if hasattr(value, "tolist") else list(value) if hasattr(value, "__iter__") else ()
            if not isinstance(value, list):
                return None
        for item in value:
            reason = part.reason(item)
            if reason is not None:
                return reason
        return None

    cdef object reason_of_map(self, object value):
        try:
            for key, item in value.items() if hasattr(value, "items") else value:
                reason = (<ValueCheck>self.parts[0]).reason(key) or (<ValueCheck>self.parts[1]).reason(item)
                if reason is not None:
                    return reason
        except (TypeError, ValueError):
            return None  # no pairs, which Arrow refuses
        return None

    cdef object reason_of_struct(self, object value):
        cdef Py_ssize_t index
        cdef PyObject* found
        if not PyDict_CheckExact(value):
            value = _members(value, self.names)
            if value is None:
                return None
        for name in value:
            if name not in self.known:
                return f"the type has no member {name!r}"
        for index in range(len(self.names)):
            found = PyDict_GetItem(value, self.names[index])
            if found == NULL or <object>found is None:
                if not self.are_nullable[index]:
                    return f"its member {self.names[index]!r} is null, and not nullable"
                continue
            reason = (<ValueCheck>self.parts[index]).reason(<object>found)
            if reason is not None:
                return f"in its member {self.names[index]!r}: {reason}"
        return None


@lru_cache(maxsize=1024)
def _check_of(data_type):
    """Return the check of a type."""
    return ValueCheck(data_type.value_type if pa.types.is_dictionary(data_type) else data_type)


cdef object _reason_of_number(object value):
    """Return the reason why a value of another type than int is no integer."""
    if isinstance(value, int | str | bytes) or not hasattr(value, "__int__"):
        return None
    try:
        return None if value == int(value) else "a fraction is no integer"
    except (ValueError, OverflowError, ArithmeticError, TypeError):
        return None  # NaN and infinity, which Arrow refuses


cdef object _reason_of_date(object value):
    """Return the reason why a value is not a plain date."""
    if not isinstance(value, datetime):
        return None
    if value.tzinfo is not None:
        return "it is a moment with a time zone: value.date() is the date there"
    if value.hour or value.minute or value.second or value.microsecond or getattr(value, "nanosecond", 0):
        return "it has a time of day: value.date() has none"
    return None


cdef object _members(object value, tuple names):
    """Return the members of a struct by name; None for what is none."""
    if isinstance(value, dict):
        return dict(value)
    if isinstance(value, tuple):
        return dict(zip(names, value)) if len(value) == len(names) else None
    if isinstance(value, list):
        try:
            return dict(value)
        except (TypeError, ValueError):
            return None
    return None


def may_lose(data_type):
    """Whether Arrow takes values for the type that lose a part."""
    return (<ValueCheck>_check_of(data_type)).kind != ANYTHING


def check_values(values, data_type):
    """Raise MisfitError for the first value that would lose something as one of the type."""
    cdef ValueCheck check = _check_of(data_type)
    cdef Py_ssize_t index = 0
    if check.kind == ANYTHING:
        return
    for value in values:
        reason = check.reason(value)
        if reason is not None:
            raise MisfitError(reason, index)
        index += 1


def check_zeros(values, array):
    """Raise MisfitError for the first decimal that Arrow has made 0 of and that is none.

    It does so where a value has 39 digits more behind the point than the type, and some other numbers of them.
    """
    zeros = pc.equal(array, 0)
    if not pc.any(zeros).as_py():
        return
    for index, is_zero in enumerate(zeros.to_pylist()):
        if is_zero and values[index] != 0:
            raise MisfitError(f"the type has no more than {array.type.scale} digits behind the point", index)
