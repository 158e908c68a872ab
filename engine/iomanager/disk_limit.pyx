"""DiskLimit: what the files of one folder may take together, counted across the tasks of a process.

    limit = DiskLimit(folder, size_bytes)           of a process's own folder; 0 bytes: counted, without a limit
    share = limit.share(job_id)                     of all files of a job there
    share.reserve(4096) ... share.give_back(4096)   before bytes are written; when they are gone, or were not written

Bytes are those that writers asked for, not blocks of the disk. A folder is made empty when its process starts, and
removed with it or by the next one that starts there: so a count begins at 0, and a process that was killed leaves none.

A limit that is used up is met as a disk that is full (EDQUOT): a file goes on in another folder, or its task fails.

Thread: any. Memory: a share lives as long as a file of its job.

Held by: tests/iomanager/test_disk_limit.py
"""

cimport cython
from libc.errno cimport EDQUOT
from libc.stdint cimport INT64_MAX, int64_t

from engine.iomanager.open_files cimport OpenFile

import os
import weakref

from engine.shown_sizes import size_text

cdef extern from *:
    """
    #include <errno.h>
    #include <stdint.h>
    #include <sys/uio.h>

    static int drey_take_bytes(int64_t* used, int64_t limit, int64_t size)
    {
        int64_t before = __atomic_load_n(used, __ATOMIC_RELAXED);
        do {
            if (before > limit - size)
                return EDQUOT;
        } while (!__atomic_compare_exchange_n(used, &before, before + size, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
        return 0;
    }

    static void drey_add_bytes(int64_t* used, int64_t size)
    {
        __atomic_add_fetch(used, size, __ATOMIC_RELAXED);
    }

    static int64_t drey_read_bytes(int64_t* used)
    {
        return __atomic_load_n(used, __ATOMIC_RELAXED);
    }

    /* Write header and payload at an offset, all of it; 0 or errno. */
    static int drey_write_block(int fd, const void* header, size_t header_size, const void* payload,
                                size_t payload_size, int64_t offset)
    {
        struct iovec parts[2] = {{(void*) header, header_size}, {(void*) payload, payload_size}};
        int first = 0;
        while (first < 2) {
            ssize_t written = pwritev(fd, parts + first, 2 - first, offset);
            if (written < 0) {
                if (errno == EINTR)
                    continue;
                return errno;
            }
            if (written == 0 && parts[first].iov_len > 0)
                return EIO;
            offset += written;
            while (first < 2 && (size_t) written >= parts[first].iov_len) {
                written -= parts[first].iov_len;
                first++;
            }
            if (first < 2) {
                parts[first].iov_base = (char*) parts[first].iov_base + written;
                parts[first].iov_len -= written;
            }
        }
        return 0;
    }
    """
    int drey_take_bytes(int64_t* used, int64_t limit, int64_t size) noexcept nogil
    void drey_add_bytes(int64_t* used, int64_t size) noexcept nogil
    int64_t drey_read_bytes(int64_t* used) noexcept nogil
    int drey_write_block(
        int fd, const void* header, size_t header_size, const void* payload, size_t payload_size, int64_t offset
    ) noexcept nogil


@cython.final
cdef class DiskLimit:

    def __init__(self, folder, int64_t size_bytes=0):
        """Args: size_bytes: 0: no limit."""
        self.folder = str(folder)
        self.size_bytes = size_bytes
        self._shares = weakref.WeakValueDictionary()

    def share(self, str job_id not None):
        """Return the share of a job."""
        share = self._shares.get(job_id)
        if share is None:
            share = new_share(job_id, self)
            share = self._shares.setdefault(job_id, share)
        return share

    @property
    def used_bytes(self):
        """Bytes that are taken now."""
        return drey_read_bytes(&self._used)

    @property
    def left_bytes(self):
        """Bytes that may still be taken; 2**63 - 1 without a limit."""
        return limit_of(self) - drey_read_bytes(&self._used)

    def job_bytes(self):
        """Return the bytes of each job that has some, largest first."""
        shares = [(share.used_bytes, share.job_id) for share in list(self._shares.values())]
        return {job_id: used for used, job_id in sorted(shares, reverse=True) if used > 0}

    def text(self, int64_t need_bytes):
        """Return the text of an error about a limit that does not have so many bytes left: which jobs have them."""
        jobs = self.job_bytes()
        parts = [f"job {job_id} has {size_text(used)}" for job_id, used in list(jobs.items())[:3]]
        if len(jobs) > 3:
            parts.append(f"{len(jobs) - 3} more jobs have {size_text(sum(list(jobs.values())[3:]))}")
        return (
            f"of the limit of {size_text(self.size_bytes)} in {self.folder} {size_text(max(self.left_bytes, 0))} are "
            f"left, {size_text(need_bytes)} are needed{' (' + ', '.join(parts) + ')' if parts else ''}"
        )

    def __repr__(self):
        return f"<DiskLimit {self.folder!r}: {self.used_bytes} of {self.size_bytes} bytes>"


@cython.final
cdef class DiskShare:

    def __init__(self):
        raise TypeError("a DiskShare comes from DiskLimit.share()")

    cdef int take(self, int64_t size) noexcept nogil:
        cdef int error = drey_take_bytes(&self.limit._used, limit_of(self.limit), size)
        if error == 0:
            drey_add_bytes(&self._used, size)
        return error

    cdef void give(self, int64_t size) noexcept nogil:
        drey_add_bytes(&self._used, -size)
        drey_add_bytes(&self.limit._used, -size)

    cdef int write(
        self, OpenFile file, const void* header, int64_t header_size, const void* payload, int64_t payload_size,
        int64_t offset,
    ) noexcept nogil:
        cdef int error = self.take(header_size + payload_size)
        cdef int descriptor
        if error != 0:
            return error
        descriptor = file.take()
        if descriptor >= 0:
            error = drey_write_block(descriptor, header, <size_t> header_size, payload, <size_t> payload_size, offset)
            file.put()
        else:
            error = descriptor
        if error != 0:
            self.give(header_size + payload_size)
        return error

    @property
    def used_bytes(self):
        """Bytes that the job has now."""
        return drey_read_bytes(&self._used)

    def reserve(self, int64_t size_bytes):
        """Take bytes. Raises: OSError with EDQUOT when so many are not left, as of a file system with a limit."""
        if self.take(size_bytes) != 0:
            raise OSError(EDQUOT, os.strerror(EDQUOT), self.limit.folder)

    def give_back(self, int64_t size_bytes):
        """Give bytes back that were reserved."""
        self.give(size_bytes)

    def __repr__(self):
        return f"<DiskShare of job {self.job_id}: {self.used_bytes} bytes of {self.limit!r}>"


cdef inline int64_t limit_of(DiskLimit limit) noexcept nogil:
    return limit.size_bytes if limit.size_bytes > 0 else INT64_MAX


cdef DiskShare new_share(str job_id, DiskLimit limit):
    cdef DiskShare share = DiskShare.__new__(DiskShare)
    share.job_id = job_id
    share.limit = limit
    return share
