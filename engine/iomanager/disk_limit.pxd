# DiskLimit: what the files of one folder may take together; DiskShare: what those of one job have of it.

cimport cython
from libc.stdint cimport int64_t

from engine.iomanager.open_files cimport OpenFile


@cython.final
cdef class DiskLimit:
    cdef readonly str folder
    cdef readonly int64_t size_bytes        # 0: none
    cdef int64_t _used                      # changed atomically
    cdef object _shares                     # by job, those of which there are files


@cython.final
cdef class DiskShare:
    cdef readonly str job_id
    cdef readonly DiskLimit limit
    cdef int64_t _used                      # changed atomically
    cdef object __weakref__

    # Take bytes of the limit; 0, or EDQUOT when so many are not left. Any thread, with or without the GIL.
    cdef int take(self, int64_t size) noexcept nogil
    # Give bytes back that were taken.
    cdef void give(self, int64_t size) noexcept nogil
    # Take bytes for a block and write it at an offset; 0, errno with nothing taken, -errno when the file does not open.
    cdef int write(
        self, OpenFile file, const void* header, int64_t header_size, const void* payload, int64_t payload_size,
        int64_t offset,
    ) noexcept nogil
