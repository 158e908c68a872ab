"""BatchBuilder: a record batch of buffers and of columns of another batch, passed to pyarrow in one call.

    builder = BatchBuilder.begin(schema, row_count)
    values = builder.allocate(size)                              written by a kernel
    builder.set_values(column, null_count, validity, offsets, values)
    builder.set_column(column, source, source_column, start)     by reference, from an ArrowBatch
    builder.set_child(column, source, source_column, start)      the same, from an OpenedBatch
    builder.set_dictionary(column, array)                        what codes stand for, which set_values has set
    builder.set_array(column, array)                             what others have made
    batch = builder.build()
    batch = builder.build_like(batch)                            an opened one if that one is

Arrays and a batch made of them by pyarrow's functions are checked one by one, and each check gives the GIL away: two
tasks that make batches at the same time pass it to and fro. Here the batch goes over as one structure of the Arrow C
data interface, whose makers answer for it: values match the schema, a column has row_count of them.

The columns of a batch have one life: one of them that is kept keeps the others, and a source batch that one refers to.

Invariants: what a batch refers to is given back when pyarrow drops the last of its columns, in whatever thread.
Source: the Arrow C data interface, release callbacks.

Held by: tests/records/test_row_codec.py
"""

cimport cython
from cpython.ref cimport PyObject, Py_INCREF, Py_XDECREF
from libc.stdint cimport int32_t, int64_t, uint8_t, uintptr_t
from libc.stdlib cimport calloc, free, malloc

import pyarrow as pa

from engine.memory.blocks cimport give_block, next_of, take_block
from engine.records.arrow_batch cimport ArrowBatch
from engine.records.arrow_c_data cimport ArrowArray
from engine.records.opened_batch cimport OpenedBatch, note_batch, opened_batch, unshown_batch

cdef extern from "Python.h":
    int Py_IsInitialized() noexcept nogil

cdef extern from *:
    """
    static int64_t drey_count_up(int64_t* count) { return __atomic_add_fetch(count, 1, __ATOMIC_RELAXED); }
    static int64_t drey_count_down(int64_t* count) { return __atomic_sub_fetch(count, 1, __ATOMIC_ACQ_REL); }
    """
    int64_t count_up "drey_count_up" (int64_t* count) noexcept nogil
    int64_t count_down "drey_count_down" (int64_t* count) noexcept nogil

cdef enum:
    BUFFERS_MAX = 3             # validity, offsets, values
    BOUNDARY = 64

cdef object import_batch = pa.RecordBatch._import_from_c

cdef struct Source:
    Block* block
    Source* following

# In one block with its columns, their buffers and the pointers to them.
cdef struct Block:
    ArrowArray batch
    ArrowArray opened           # the same, which the import leaves as it is
    PyObject* kept              # list of what else the columns lie in; NULL: nothing
    uint8_t* memory             # chain of blocks (memory.blocks) that they lie in
    Source* sources             # batches that were made here, in which they lie
    int64_t holders             # the batch, and those whose columns lie in it
    const void* no_validity     # of the batch itself: NULL
    ArrowArray** children


cdef int64_t padded(int64_t size) noexcept nogil:
    return (size + BOUNDARY - 1) & ~<int64_t>(BOUNDARY - 1)


cdef void _release_column(ArrowArray* array) noexcept nogil:
    array.release = NULL


cdef void _release_coded(ArrowArray* array) noexcept nogil:
    if array.dictionary.release != NULL:
        array.dictionary.release(array.dictionary)
    free(array.dictionary)
    array.release = NULL


cdef void _forget(PyObject* kept) noexcept with gil:
    Py_XDECREF(kept)


cdef void _free_block(Block* block) noexcept nogil:
    cdef int64_t index
    cdef ArrowArray* column
    cdef uint8_t* memory = block.memory
    cdef uint8_t* following
    cdef Source* source = block.sources
    cdef Source* behind
    for index in range(block.batch.n_children):
        column = block.children[index]
        if column.release != NULL:
            column.release(column)
    # What is dropped after the interpreter stays: the process ends.
    if block.kept != NULL and Py_IsInitialized():
        _forget(block.kept)
    while memory != NULL:
        following = next_of(memory)[0]
        give_block(memory)
        memory = following
    while source != NULL:
        behind = source.following
        _let_go(source.block)
        free(source)
        source = behind
    free(block)


cdef void _let_go(Block* block) noexcept nogil:
    if count_down(&block.holders) == 0:
        _free_block(block)


cdef void _release_batch(ArrowArray* array) noexcept nogil:
    array.release = NULL
    _let_go(<Block*>array.private_data)


cdef bint any_values(const ArrowArray* batch) noexcept nogil:
    """Whether some column has values in memory: Arrow keeps what a batch was imported from as long as such columns."""
    cdef int64_t index
    for index in range(batch.n_children):
        if batch.children[index].n_buffers > 1 and batch.children[index].buffers[1] != NULL:
            return True
    return False


@cython.final
cdef class BatchBuilder:
    """One record batch while it is made. Made by ``BatchBuilder.begin`` (Cython) only."""

    def __dealloc__(self):
        if self._block != NULL:
            _free_block(<Block*>self._block)

    @staticmethod
    cdef BatchBuilder begin(object schema, int64_t row_count):
        cdef BatchBuilder builder = BatchBuilder.__new__(BatchBuilder)
        cdef int32_t column_count = <int32_t>len(schema)
        cdef size_t column_size = sizeof(ArrowArray) + sizeof(ArrowArray*) + BUFFERS_MAX * sizeof(void*)
        cdef Block* block = <Block*>calloc(sizeof(Block) + <size_t>column_count * column_size, 1)
        cdef const void** buffers
        cdef int32_t index
        if block == NULL:
            raise MemoryError("the columns of a batch")
        block.holders = 1
        builder._block = block
        builder._schema = schema
        builder._column_count = column_count
        builder._row_count = row_count
        builder._kept = []
        builder._columns = <ArrowArray*>(block + 1)
        block.children = <ArrowArray**>(builder._columns + column_count)
        buffers = <const void**>(block.children + column_count)
        for index in range(column_count):
            block.children[index] = &builder._columns[index]
            builder._columns[index].buffers = buffers + index * BUFFERS_MAX
        block.batch.length = row_count
        block.batch.n_buffers = 1
        block.batch.buffers = &block.no_validity
        block.batch.n_children = column_count
        block.batch.children = block.children
        block.batch.release = _release_batch
        block.batch.private_data = block
        return builder

    cdef uint8_t* allocate(self, int64_t size) except NULL:
        cdef Block* block = <Block*>self._block
        cdef uint8_t* memory = take_block(size)
        if memory == NULL:
            raise MemoryError(f"{size} bytes for the columns of a batch")
        next_of(memory)[0] = block.memory
        block.memory = memory
        return memory

    cdef int set_values(self, int32_t column, int64_t null_count, uint8_t* validity, uint8_t* offsets,
                        uint8_t* values) except -1:
        cdef ArrowArray* array = &self._columns[column]
        array.length = self._row_count
        array.null_count = null_count
        array.release = _release_column
        array.buffers[0] = validity if null_count else NULL
        if offsets != NULL:
            array.buffers[1] = offsets
            array.buffers[2] = values
            array.n_buffers = 3
        elif values != NULL:
            array.buffers[1] = values
            array.n_buffers = 2
        else:
            array.n_buffers = 0
        return 0

    cdef int set_column(self, int32_t column, ArrowBatch source, int32_t source_column, int64_t start) except -1:
        # As it was opened: views may have been replaced since.
        return self.set_child(column, source._opened, source_column, start)

    cdef int set_child(self, int32_t column, OpenedBatch source, int32_t source_column, int64_t start) except -1:
        cdef ArrowArray* array = &self._columns[column]
        cdef const ArrowArray* batch = source.array
        cdef const ArrowArray* taken = batch.children[source_column]
        self._keep(source)
        array[0] = taken[0]
        array.offset += batch.offset + start
        array.length = self._row_count
        if array.null_count != 0 and taken.length != self._row_count:
            array.null_count = -1
        array.release = _release_column
        array.private_data = NULL
        return 0

    cdef int _keep(self, OpenedBatch source) except -1:
        """Keep a batch to which columns refer: its block, which needs no GIL to be let go, or else the object."""
        cdef Block* block = <Block*>self._block
        cdef Block* of_source
        cdef Source* link
        if not source.is_noted:
            if not self._kept or self._kept[len(self._kept) - 1] is not source:
                self._kept.append(source)
            return 0
        of_source = <Block*>source.array.private_data
        if block.sources != NULL and block.sources.block == of_source:
            return 0
        link = <Source*>malloc(sizeof(Source))
        if link == NULL:
            raise MemoryError("a batch that another one refers to")
        count_up(&of_source.holders)
        link[0] = Source(of_source, block.sources)
        block.sources = link
        return 0

    cdef int set_dictionary(self, int32_t column, object values) except -1:
        cdef ArrowArray* array = &self._columns[column]
        array.dictionary = <ArrowArray*>calloc(1, sizeof(ArrowArray))
        if array.dictionary == NULL:
            raise MemoryError("a dictionary of a batch")
        array.release = _release_coded
        values._export_to_c(<uintptr_t>array.dictionary)
        if self._dictionaries is None:
            self._dictionaries = {}
        self._dictionaries[column] = values
        return 0

    cdef int set_array(self, int32_t column, object array) except -1:
        array._export_to_c(<uintptr_t>&self._columns[column])
        return 0

    cdef object build(self):
        cdef Block* block = <Block*>self._finished()
        batch = import_batch(<uintptr_t>&block.batch, self._schema)
        if self._row_count and any_values(&block.opened):
            note_batch(batch, self._schema, &block.opened)
        return batch

    cdef object build_like(self, object batch):
        return self.build_unshown() if type(batch) is OpenedBatch else self.build()

    cdef OpenedBatch build_unshown(self):
        cdef Block* block
        if self._row_count == 0 or not any_values(&(<Block*>self._block).batch):
            return opened_batch(self.build())
        block = <Block*>self._finished()
        return unshown_batch(self._schema, &block.batch, &block.opened, self._dictionaries)

    cdef void* _finished(self) except NULL:
        """The block, which its batch releases from now on, whatever comes."""
        cdef Block* block = <Block*>self._block
        self._block = NULL
        if self._kept:
            block.kept = <PyObject*>self._kept
            Py_INCREF(self._kept)
        block.opened = block.batch
        return block
