"""add_piece: the content of a buffer behind other bytes, copied without the GIL.

    whole = bytearray();  add_piece(whole, buffer)*;  whole     of a row or a batch that is larger than a buffer

A batch of some megabytes is a hundred buffers, and the memory that it is copied to is new: the kernel clears each page
of it at the first byte.

Thread: that of the bytes.

Held by: tests/exchange/test_row_pieces.py
"""

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_Resize
from libc.string cimport memcpy

from engine.exchange.buffer_pool cimport Buffer
from engine.memory.segment cimport MemorySegment

from engine.errors import IllegalTransitionError


def add_piece(bytearray whole not None, Buffer piece not None):
    """Copy a buffer's content behind bytes of which there are no views.

    Raises:
        IllegalTransitionError: the buffer was recycled.
    """
    cdef MemorySegment segment = piece.segment
    cdef Py_ssize_t size = piece.size
    cdef Py_ssize_t before = len(whole)
    cdef char* target
    if segment is None:
        raise IllegalTransitionError("a recycled buffer cannot be read")
    PyByteArray_Resize(whole, before + size)
    target = PyByteArray_AS_STRING(whole) + before
    with nogil:
        memcpy(target, segment.data, <size_t>size)
