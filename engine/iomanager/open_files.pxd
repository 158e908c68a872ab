# OpenFile: a file that is open while it is used, and as long after it as there are descriptors for it.
#
#     borrow ─► descriptor ─► read, write ─► give_back         opened: least recently used ◄─► ... ◄─► just given back
#                                                                       closed when another one is wanted

cimport cython
from libc.stdint cimport int32_t

cdef extern from *:
    """
    #ifndef DREY_OPEN_FILES
    #define DREY_OPEN_FILES
    typedef struct drey_open_file {
        const char* path;
        int fd;                 /* -1: closed */
        int users;              /* that have borrowed it */
        int error;              /* errno of a close that failed: what was written may be lost */
        int is_busy;            /* a thread opens or closes it, outside of the lock */
        int is_ended;           /* it is not borrowed any more */
        struct drey_open_file* older;       /* among those that are open and not used */
        struct drey_open_file* newer;
    } drey_open_file;
    #endif
    """
    ctypedef struct drey_open_file:
        const char* path
        int fd
        int users
        int error


@cython.final
cdef class OpenFile:
    cdef readonly str path
    cdef bytes _path                    # what file.path points to
    cdef drey_open_file file

    # A descriptor, or -errno; with or without the GIL. Each is given back.
    cdef int take(self) noexcept nogil
    cdef void put(self) noexcept nogil
