"""RowBase: a tuple whose items are also reached by name, natively: what Row (row.py) is made of.

    row["price"]   the class's ``_positions`` say where          row[3], row[1:]   as of any tuple
    row.missing    AttributeError names the columns that there are

A type in C, because a class in Python that defines ``__getitem__`` pays a call of Python for each ``row[3]``.

Held by: tests/functions/test_row.py
"""

cdef extern from *:
    """
    static PyObject* drey_positions_name;
    static PyObject* drey_fields_name;

    /* Raise "'name'; the row has a, b" in place of what is raised. */
    static void drey_refuse_name(PyObject* error, PyObject* row, PyObject* name) {
        PyErr_Clear();
        PyObject* fields = PyObject_GetAttr((PyObject*)Py_TYPE(row), drey_fields_name);
        PyObject* comma = fields ? PyUnicode_FromString(", ") : NULL;
        PyObject* names = comma ? PyUnicode_Join(comma, fields) : NULL;
        if (names) PyErr_Format(error, "%R; the row has %U", name, names);
        Py_XDECREF(names);
        Py_XDECREF(comma);
        Py_XDECREF(fields);
    }

    static PyObject* drey_row_subscript(PyObject* row, PyObject* key) {
        if (PyLong_CheckExact(key)) {
            Py_ssize_t position = PyLong_AsSsize_t(key);
            if (position >= 0 && position < PyTuple_GET_SIZE(row)) {
                PyObject* item = PyTuple_GET_ITEM(row, position);
                Py_INCREF(item);
                return item;
            }
            PyErr_Clear();
        } else if (PyUnicode_Check(key)) {
            PyObject* positions = PyObject_GetAttr((PyObject*)Py_TYPE(row), drey_positions_name);
            if (!positions) return NULL;
            PyObject* position = PyDict_GetItemWithError(positions, key);
            Py_DECREF(positions);
            if (position) return PyTuple_Type.tp_as_mapping->mp_subscript(row, position);
            if (!PyErr_Occurred()) drey_refuse_name(PyExc_KeyError, row, key);
            return NULL;
        }
        return PyTuple_Type.tp_as_mapping->mp_subscript(row, key);
    }

    static PyObject* drey_row_attribute(PyObject* row, PyObject* name) {
        PyObject* value = PyObject_GenericGetAttr(row, name);
        if (!value && PyErr_ExceptionMatches(PyExc_AttributeError))
            drey_refuse_name(PyExc_AttributeError, row, name);
        return value;
    }

    static PyType_Slot drey_row_slots[] = {
        {Py_mp_subscript, (void*)drey_row_subscript},
        {Py_tp_getattro, (void*)drey_row_attribute},
        {Py_tp_doc, (void*)"A tuple whose items are also reached by name."},
        {0, NULL},
    };
    static PyType_Spec drey_row_spec = {
        "engine.functions.row_base.RowBase", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, drey_row_slots,
    };

    static PyObject* drey_make_row_base(void) {
        drey_positions_name = PyUnicode_InternFromString("_positions");
        drey_fields_name = PyUnicode_InternFromString("_fields");
        if (!drey_positions_name || !drey_fields_name) return NULL;
        return PyType_FromSpecWithBases(&drey_row_spec, (PyObject*)&PyTuple_Type);
    }
    """
    object drey_make_row_base()

RowBase = drey_make_row_base()
