# HashPartition: one partition of a hash join's build side, and the probe rows that wait for it.

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from engine.iomanager.spill_writer cimport SpillWriter
from engine.join.entry_pages cimport EntryPages
from engine.memory.page_pool cimport PagePool


@cython.final
cdef class HashPartition:
    cdef EntryPages entries
    cdef PagePool _pool
    cdef object _space              # SpillSpace
    cdef str _label
    cdef int64_t _block_size        # bytes of one block of its files
    cdef SpillWriter _writer        # where the open page goes: the build file, later the probe file
    cdef readonly object build_file
    cdef readonly object probe_file
    cdef readonly int64_t build_rows
    cdef readonly int64_t build_bytes    # of rows, without links
    cdef readonly int64_t probe_rows
    cdef readonly int64_t probe_bytes

    # Write resident rows to the build file. Until finish_spill they lie in their pages, without links.
    cdef int begin_spill(self) except -1
    # Free all pages but one; rows follow through that page from now on.
    cdef int finish_spill(self) except -1
    # Write the open page of a spilled partition and empty it.
    cdef int flush(self) except -1
    # Write rows that never were in the page (larger than it).
    cdef int write_through(self, const uint8_t* row, int64_t size) except -1
    # No more build rows: close the build file; what is placed from now on are probe rows.
    cdef int finish_build(self) except -1
    cdef int finish_probe(self) except -1
    # Pages that spilling it would bring back.
    cdef int64_t pages_to_gain(self) noexcept nogil
    # Give every page back. Files belong to the pair (or to the space, when the join is given up).
    cdef int release(self) except -1
    cdef int _count_written(self, int64_t rows, int64_t size_bytes) except -1
