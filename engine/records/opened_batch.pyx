"""OpenedBatch: where the columns of a batch lie, without a call of Arrow's where the batch was made here.

    batch_builder ─► note_batch(batch, schema, array)        a place for each of the batches that were made last
    kernels ───────► opened_batch(batch) ─► schema, array    noted: from there; else Arrow exports them

A batch that goes from operator to operator is opened by each of them. To export it takes Arrow ten microseconds with
the GIL held, and releases and takes it again. The structures that a batch was imported from say the same.

Invariants: a note does not keep its batch; it holds for the batch that its weak reference still gives, which keeps the
structures. Thread: any. Source: the Arrow C data interface.

Held by: tests/records/test_opened_batch.py
"""

cimport cython
from cpython.pycapsule cimport PyCapsule_GetPointer

from weakref import ref

from engine.records.arrow_c_data cimport ArrowArray, ArrowSchema

cdef enum:
    PLACES = 61


@cython.final
cdef class Note:
    """The structures of a batch, or the capsule of a schema; a note is replaced as a whole."""

    cdef object subject             # weak reference; None: there is none
    cdef object kept                # of a batch its schema, of a schema its capsule
    cdef const ArrowArray* array


cdef list batch_notes = [Note() for _ in range(PLACES)]
cdef list schema_notes = [Note() for _ in range(PLACES)]


cdef inline Py_ssize_t place_of(object subject):
    return (<Py_ssize_t><void*>subject >> 4) % PLACES


cdef Note noted(list notes, object subject, object kept, const ArrowArray* array):
    cdef Note note = Note.__new__(Note)
    note.subject, note.kept, note.array = ref(subject), kept, array
    notes[place_of(subject)] = note
    return note


cdef object capsule_of(object schema):
    """The capsule of a schema, which is exported once."""
    cdef Note note = <Note>schema_notes[place_of(schema)]
    if note.subject is None or note.subject() is not schema:
        note = noted(schema_notes, schema, schema.__arrow_c_schema__(), NULL)
    return note.kept


cdef int note_batch(object batch, object schema, const ArrowArray* array) except -1:
    noted(batch_notes, batch, schema, array)
    return 0


cdef bint is_noted(object batch):
    cdef Note note = <Note>batch_notes[place_of(batch)]
    return note.subject is not None and note.subject() is batch


cdef object schema_of(object batch):
    cdef Note note = <Note>batch_notes[place_of(batch)]
    return note.kept if note.subject is not None and note.subject() is batch else batch.schema


cdef OpenedBatch opened_batch(object batch):
    cdef Note note = <Note>batch_notes[place_of(batch)]
    cdef OpenedBatch opened = OpenedBatch.__new__(OpenedBatch)
    if note.subject is not None and note.subject() is batch:
        opened.array, opened.is_noted = note.array, True
        schema_capsule = capsule_of(note.kept)
        opened._owners = (batch, schema_capsule)
    else:
        schema_capsule, array_capsule = batch.__arrow_c_array__()
        opened.array = <const ArrowArray*>PyCapsule_GetPointer(array_capsule, b"arrow_array")
        opened._owners = (schema_capsule, array_capsule)
    opened.schema = <const ArrowSchema*>PyCapsule_GetPointer(schema_capsule, b"arrow_schema")
    return opened
