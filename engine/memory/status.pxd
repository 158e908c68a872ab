# Status codes that kernels return, and the debug assertion.
#
# A kernel (``noexcept nogil``) cannot raise; what can go wrong in it is one of these. The boundary function turns
# a code into an exception. ``ASSERT`` aborts in the debug build only: it is for programmer errors that no input
# can reach.

cdef extern from *:
    """
    #include <assert.h>
    #define DREY_ASSERT(condition) assert(condition)
    """
    void ASSERT "DREY_ASSERT" (bint condition) noexcept nogil

cdef enum Status:
    STATUS_OK = 0        # done
    STATUS_FULL = 1      # no page left in the owner's budget
    STATUS_END = 2       # nothing more to read
    STATUS_CORRUPT = 3   # bytes that no writer of ours produced
