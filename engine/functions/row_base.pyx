"""RowBase: a tuple whose items are also reached by name, natively: what Row (row.py) is made of.

    row["price"]                        the class's ``_positions`` say where        row[3], row[1:]   as of any tuple
    row.price                           a member of the class at the item's place: item_member(Row, "price", 0)

A type in C, because a class in Python that defines ``__getitem__`` pays a call of Python for each ``row[3]``. Members
are what ``__slots__`` of a class are, so the interpreter reads them in one instruction where an item getter costs a
call of 20 ns. They read where the item lies without looking at the length of the tuple: a row has as many items as its
class has ``_fields``, or is not made.

Held by: tests/functions/test_row.py
"""

cdef extern from *:
    """
    #include <stddef.h>
    #include <string.h>
    #include <structmember.h>
    static PyObject* drey_positions_name;
    static PyObject* drey_fields_name;

    static void drey_refuse_name(PyObject* row, PyObject* name) {
        PyObject* fields = PyObject_GetAttr((PyObject*)Py_TYPE(row), drey_fields_name);
        PyObject* comma = fields ? PyUnicode_FromString(", ") : NULL;
        PyObject* names = comma ? PyUnicode_Join(comma, fields) : NULL;
        if (names) PyErr_Format(PyExc_KeyError, "%R; the row has %U", name, names);
        Py_XDECREF(names);
        Py_XDECREF(comma);
        Py_XDECREF(fields);
    }

    static PyObject* drey_row_new(PyTypeObject* type, PyObject* args, PyObject* named) {
        PyObject* row = PyTuple_Type.tp_new(type, args, named);
        PyObject* fields = row ? PyObject_GetAttr((PyObject*)type, drey_fields_name) : NULL;
        Py_ssize_t count = fields ? PyObject_Size(fields) : -1;
        if (count >= 0 && count != PyTuple_GET_SIZE(row))
            PyErr_Format(PyExc_ValueError, "a row of %zd values, not %zd", count, PyTuple_GET_SIZE(row));
        Py_XDECREF(fields);
        if (PyErr_Occurred()) Py_CLEAR(row);
        return row;
    }

    static PyObject* drey_item_member(PyObject* row_class, const char* name, Py_ssize_t position) {
        /* The descriptor borrows both; they are never freed: classes of rows are few and kept. */
        PyMemberDef* member = PyMem_Calloc(1, sizeof(PyMemberDef));
        char* kept = member ? PyMem_Malloc(strlen(name) + 1) : NULL;
        if (!kept) {
            PyMem_Free(member);
            return PyErr_NoMemory();
        }
        member->name = strcpy(kept, name);
        member->type = T_OBJECT_EX;
        member->offset = (Py_ssize_t)(offsetof(PyTupleObject, ob_item) + (size_t)position * sizeof(PyObject*));
        member->flags = READONLY;
        return PyDescr_NewMember((PyTypeObject*)row_class, member);
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
            if (!PyErr_Occurred()) drey_refuse_name(row, key);
            return NULL;
        }
        return PyTuple_Type.tp_as_mapping->mp_subscript(row, key);
    }

    static PyType_Slot drey_row_slots[] = {
        {Py_mp_subscript, (void*)drey_row_subscript},
        {Py_tp_new, (void*)drey_row_new},
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
    object drey_item_member(object row_class, const char* name, Py_ssize_t position)

RowBase = drey_make_row_base()


def item_member(row_class not None, str name not None, Py_ssize_t position):
    """Return the attribute of a row class that reads the item at a position."""
    if not issubclass(row_class, RowBase) or not 0 <= position < len(row_class._fields):
        raise ValueError(f"no member {name!r} at {position} of {row_class}")
    return drey_item_member(row_class, name.encode(), position)
