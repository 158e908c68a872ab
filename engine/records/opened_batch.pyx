"""OpenedBatch: where the columns of a batch lie, without a call of Arrow's where the batch was made here.

    batch_builder ─► note_batch(batch, schema, array)        a place for each of the batches that were made last
    kernels ───────► opened_batch(batch) ─► types, array     noted: from there; else Arrow exports them
    dictionary_of(batch, column)                             what the codes of a column stand for, None: it has none
    opened(batch), shown(batch)                              as an opened batch, as one of Arrow's
    batch_builder ─► unshown_batch(...)                      a batch that only kernels look at: Arrow does not know it

A batch that goes from operator to operator is opened by each of them. To export it takes Arrow ten microseconds with
the GIL held, and releases and takes it again. The structures that a batch was imported from say the same.

A batch that kernels make for one another, such as what a filter looks at, is no batch of Arrow's until somewhere an
attribute is asked for that only these have. So is one that goes from operator to operator, where all of them as far as
a table of groups or the pages of an exchange take opened batches (``Output.takes_opened``): what kernels make of an
opened batch is one. ``shown`` makes it Arrow's, for its functions.

Invariants: a note does not keep its batch; it holds for the batch that its weak reference still gives, which keeps the
structures. Thread: any; an opened batch one at a time. Source: the Arrow C data interface.

Held by: tests/records/test_opened_batch.py
"""

cimport cython
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport int32_t, uintptr_t

from weakref import ref

import pyarrow as pa

from engine.records.arrow_c_data cimport ArrowArray, ArrowSchema

cdef object import_batch = pa.RecordBatch._import_from_c

cdef enum:
    PLACES = 509


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
    if type(batch) is OpenedBatch:
        return (<OpenedBatch>batch).is_noted
    return note.subject is not None and note.subject() is batch


cdef object schema_of(object batch):
    cdef Note note = <Note>batch_notes[place_of(batch)]
    if type(batch) is OpenedBatch:
        return batch.schema
    return note.kept if note.subject is not None and note.subject() is batch else batch.schema


@cython.final
cdef class OpenedBatch:
    """See the module's text; to those that ask it is a pyarrow.RecordBatch."""

    def __dealloc__(self):
        if self._owned.release != NULL:
            self._owned.release(&self._owned)

    @property
    def num_rows(self):
        """Number of rows."""
        return self.array.length

    @property
    def num_columns(self):
        """Number of columns."""
        return self.array.n_children

    @property
    def schema(self):
        """The pyarrow.Schema."""
        return self._batch.schema if self._schema is None else self._schema

    def __getattr__(self, str name):
        return getattr(self.record_batch(), name)

    def __getitem__(self, key):
        return self.record_batch()[key]

    def __len__(self):
        return self.array.length

    cdef object record_batch(self):
        cdef ArrowArray owned = self._owned
        if self._batch is None:
            self._owned.release = NULL      # the import releases it, whatever comes
            self._batch = import_batch(<uintptr_t>&owned, self._schema)
            note_batch(self._batch, self._schema, self.array)
        return self._batch

    cdef object dictionary(self, int32_t column):
        found = None if self._dictionaries is None else self._dictionaries.get(column)
        return self.record_batch().column(column).dictionary if found is None else found


cdef OpenedBatch opened_batch(object batch):
    cdef Note note
    cdef OpenedBatch opened
    if type(batch) is OpenedBatch:
        return <OpenedBatch>batch
    note = <Note>batch_notes[place_of(batch)]
    opened = OpenedBatch.__new__(OpenedBatch)
    opened._batch = batch
    if note.subject is not None and note.subject() is batch:
        opened.array, opened.is_noted = note.array, True
        opened._schema = note.kept
        opened._owners = schema_capsule = capsule_of(note.kept)
    else:
        schema_capsule, array_capsule = batch.__arrow_c_array__()
        opened.array = <const ArrowArray*>PyCapsule_GetPointer(array_capsule, b"arrow_array")
        opened._owners = (schema_capsule, array_capsule)
    opened.types = <const ArrowSchema*>PyCapsule_GetPointer(schema_capsule, b"arrow_schema")
    return opened


cdef OpenedBatch unshown_batch(object schema, ArrowArray* owned, const ArrowArray* array, dict dictionaries):
    cdef OpenedBatch opened = OpenedBatch.__new__(OpenedBatch)
    opened._owned = owned[0]
    opened.array, opened.is_noted = array, True
    opened._schema, opened._dictionaries = schema, dictionaries
    opened._owners = capsule_of(schema)
    opened.types = <const ArrowSchema*>PyCapsule_GetPointer(opened._owners, b"arrow_schema")
    return opened


cdef object shown_batch(object batch):
    return (<OpenedBatch>batch).record_batch() if type(batch) is OpenedBatch else batch


def dictionary_of(batch not None, int32_t column):
    """Return the values that the codes of a column stand for; None: it does not come as codes."""
    cdef OpenedBatch opened = opened_batch(batch)
    return None if opened.types.children[column].dictionary == NULL else opened.dictionary(column)


def shown(batch not None):
    """Return the pyarrow.RecordBatch of an OpenedBatch, or the batch itself."""
    return shown_batch(batch)


def opened(batch not None):
    """Return a batch of which kernels make opened batches; it stands in for the batch otherwise."""
    return opened_batch(batch)
