"""LZ4 for blocks, through the lz4 package.

The package's extension module is the LZ4 library with a Python face, and it exports the library's own stable C
functions. They are looked up once and called directly: an I/O thread then never waits for the GIL, which a busy task
thread may keep for milliseconds. Where a build of the package hides them, the Python face is called instead, with the
GIL taken for the call (the package frees it while it works).

    native_lz4()        whether the direct way is in use
    use_package(bool)   force the Python face (for the test that both give the same)

Source: LZ4 block format; LZ4_compress_default, LZ4_decompress_safe of lz4.h.

Held by: tests/iomanager/test_block_format.py
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.memoryview cimport PyMemoryView_FromMemory
from cpython.buffer cimport PyBUF_READ
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

import lz4.block

cdef extern from "<dlfcn.h>" nogil:
    const int RTLD_NOW
    const int RTLD_LOCAL
    void* dlopen(const char* path, int mode)
    void* dlsym(void* library, const char* name)

ctypedef int (*CompressFunction)(const char* source, char* target, int size, int capacity) noexcept nogil
ctypedef int (*DecompressFunction)(const char* source, char* target, int size, int capacity) noexcept nogil

cdef int64_t SIZE_MAX = (1 << 31) - (1 << 16)

cdef CompressFunction compress_function = NULL
cdef DecompressFunction decompress_function = NULL
cdef bint direct = False


cdef int64_t lz4_compress(const uint8_t* source, int64_t size, uint8_t* target, int64_t capacity) noexcept nogil:
    if size < 1 or size > SIZE_MAX or capacity < 1:
        return 0
    if direct:
        return compress_function(<const char*> source, <char*> target, <int> size, <int> min(capacity, SIZE_MAX))
    with gil:
        return compress_by_package(source, size, target, capacity)


cdef int lz4_decompress(const uint8_t* source, int64_t size, uint8_t* target, int64_t raw_size) noexcept nogil:
    if size < 1 or size > SIZE_MAX or raw_size > SIZE_MAX:
        return -1
    if direct:
        if decompress_function(<const char*> source, <char*> target, <int> size, <int> raw_size) == raw_size:
            return 0
        return -1
    with gil:
        return decompress_by_package(source, size, target, raw_size)


cdef int64_t compress_by_package(const uint8_t* source, int64_t size, uint8_t* target, int64_t capacity) noexcept:
    cdef bytes result
    try:
        result = lz4.block.compress(PyMemoryView_FromMemory(<char*> source, size, PyBUF_READ), store_size=False)
    except (lz4.block.LZ4BlockError, MemoryError):
        return 0
    if PyBytes_GET_SIZE(result) > capacity:
        return 0
    memcpy(target, PyBytes_AS_STRING(result), <size_t> PyBytes_GET_SIZE(result))
    return PyBytes_GET_SIZE(result)


cdef int decompress_by_package(const uint8_t* source, int64_t size, uint8_t* target, int64_t raw_size) noexcept:
    cdef bytes result
    try:
        view = PyMemoryView_FromMemory(<char*> source, size, PyBUF_READ)
        result = lz4.block.decompress(view, uncompressed_size=raw_size)
    except (lz4.block.LZ4BlockError, ValueError, MemoryError):
        return -1
    if PyBytes_GET_SIZE(result) != raw_size:
        return -1
    memcpy(target, PyBytes_AS_STRING(result), <size_t> raw_size)
    return 0


def native_lz4():
    """Return whether the library's functions are called directly."""
    return direct


def use_package(bint package):
    """Go through the package's Python face (True) or directly where that is possible (False)."""
    global direct
    direct = not package and compress_function != NULL and decompress_function != NULL


cdef int find_functions() except -1:
    global compress_function, decompress_function
    cdef bytes path = lz4.block._block.__file__.encode()
    cdef void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL)       # it is loaded already: this only counts a reference
    if library != NULL:
        compress_function = <CompressFunction> dlsym(library, "LZ4_compress_default")
        decompress_function = <DecompressFunction> dlsym(library, "LZ4_decompress_safe")
    return 0


find_functions()
use_package(False)
