# Values of Arrow columns as Python's, one at a time.

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t

cdef extern from *:
    """
    /* Set a number without other references to another one, of as many digits: 0 where it can't be. Up to 256 ints are
       shared, and are made by Python. */
    static int drey_refill_int(PyObject* number, int64_t value) {
    #if PYLONG_BITS_IN_DIGIT == 30 && !defined(Py_GIL_DISABLED)
        Py_ssize_t digits = value < ((int64_t)1 << 30) ? 1 : 2;
        digit* kept;
        if (value <= 256 || value >= ((int64_t)1 << 60) || !PyLong_CheckExact(number) || Py_REFCNT(number) != 1)
            return 0;
    #if PY_VERSION_HEX >= 0x030C0000
        if (((PyLongObject*)number)->long_value.lv_tag != (uintptr_t)digits << 3) return 0;
        kept = ((PyLongObject*)number)->long_value.ob_digit;
    #else
        if (Py_SIZE(number) != digits) return 0;
        kept = ((PyLongObject*)number)->ob_digit;
    #endif
        kept[0] = (digit)(value & ((1 << 30) - 1));
        if (digits == 2) kept[1] = (digit)(value >> 30);
        return 1;
    #else
        return 0;
    #endif
    }
    static int drey_refill_float(PyObject* number, double value) {
    #ifndef Py_GIL_DISABLED
        if (PyFloat_CheckExact(number) && Py_REFCNT(number) == 1) {
            ((PyFloatObject*)number)->ob_fval = value;
            return 1;
        }
    #endif
        return 0;
    }
    """
    bint drey_refill_int(PyObject* number, int64_t value) noexcept
    bint drey_refill_float(PyObject* number, double value) noexcept

cdef enum:
    AS_OBJECT
    AS_NULL
    AS_BOOL
    AS_INT8
    AS_INT16
    AS_INT32
    AS_INT64
    AS_UINT8
    AS_UINT16
    AS_UINT32
    AS_UINT64
    AS_FLOAT
    AS_DOUBLE
    AS_TEXT
    AS_LARGE_TEXT
    AS_BYTES
    AS_LARGE_BYTES
    AS_FIXED_BYTES
    AS_DAYS
    AS_MOMENT
    AS_TIME32
    AS_TIME64
    AS_DURATION


# A column that is read. It borrows its buffers, and its list of values, from the ColumnValues that has it.
cdef struct ValueColumn:
    int32_t kind
    # microseconds of one unit of a time; bytes of a value of fixed size
    int64_t unit
    int64_t offset
    const uint8_t* validity     # NULL: no value is null
    const uint8_t* values
    const uint8_t* texts
    void* objects               # list of the values, of types that pyarrow reads


cdef class ColumnValues:
    cdef ValueColumn column
    cdef object owners          # what the column borrows from
    cdef readonly str name
    cdef readonly object array
    cdef object value(self, int64_t row)
    cdef int leave_to_arrow(self) except -1


cdef object value_at(const ValueColumn* column, int64_t row)


cdef inline bint refilled(PyObject* former, const ValueColumn* column, int64_t row) noexcept:
    """Have a number that only the caller has be the value of another row; return whether that could be done."""
    cdef int64_t place = row + column.offset
    if column.validity != NULL or former == NULL:
        return False
    if column.kind == AS_INT64:
        return drey_refill_int(former, (<const int64_t*>column.values)[place])
    if column.kind == AS_DOUBLE:
        return drey_refill_float(former, (<const double*>column.values)[place])
    if column.kind == AS_INT32:
        return drey_refill_int(former, (<const int32_t*>column.values)[place])
    return False
