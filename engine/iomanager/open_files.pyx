"""OpenFile: a file of ours that is opened when it is used, so that any number of files needs few descriptors.

    file = OpenFile(path, is_new=True)        makes it, for this user alone
    with file as descriptor: ...              pread and pwrite; any thread, several at a time
    file.close()                              when the last user has returned it; it is not borrowed after that
    shed()                                    closes unused files

A descriptor that was given back stays open until there are more than may be: a quarter of what the process may open
(``ulimit -n``), OPEN_MAX at most. Then the least recently used one is closed; a later user opens the file again, by
its name. Where the system refuses a descriptor, unused ones are closed one by one before that is an error.

The name is good as long as the file is ours: files lie in the process's own folder, which no other user may write, and
a file is removed only after ``close``. Readers check what they read.

A close that fails means on some file systems that what was written is lost: the next borrower of the file gets its
error.

Source: Postgres's virtual file descriptors (fd.c) and RocksDB's table cache.
Held by: tests/iomanager/test_open_files.py
"""

cimport cython

import os

cdef extern from *:
    """
    #include <errno.h>
    #include <fcntl.h>
    #include <pthread.h>
    #include <sys/resource.h>
    #include <unistd.h>

    #define DREY_OPEN_MAX 4096
    #define DREY_OPEN_MIN 8
    #define DREY_NEW_FILE (O_CREAT | O_EXCL)

    static pthread_mutex_t drey_files_mutex = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t drey_files_changed = PTHREAD_COND_INITIALIZER;
    static drey_open_file* drey_oldest = NULL;      /* of those that are open and not used */
    static drey_open_file* drey_newest = NULL;
    static long drey_open_count = 0;

    static long drey_open_most(void)
    {
        struct rlimit limit;
        long most = DREY_OPEN_MAX;
        if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 4 < (rlim_t) most)
            most = (long) (limit.rlim_cur / 4);
        return most < DREY_OPEN_MIN ? DREY_OPEN_MIN : most;
    }

    static void drey_unlink(drey_open_file* file)
    {
        *(file->older != NULL ? &file->older->newer : &drey_oldest) = file->newer;
        *(file->newer != NULL ? &file->newer->older : &drey_newest) = file->older;
        file->older = file->newer = NULL;
    }

    static void drey_link(drey_open_file* file)
    {
        file->older = drey_newest;
        file->newer = NULL;
        *(drey_newest != NULL ? &drey_newest->newer : &drey_oldest) = file;
        drey_newest = file;
    }

    /* Close an unused file that is in no list. The lock is held, but not meanwhile. */
    static void drey_close(drey_open_file* file)
    {
        int fd = file->fd;
        int error;
        file->fd = -1;
        file->is_busy = 1;
        pthread_mutex_unlock(&drey_files_mutex);
        error = close(fd) == 0 || errno == EINTR ? 0 : errno;
        pthread_mutex_lock(&drey_files_mutex);
        drey_open_count--;
        file->is_busy = 0;
        if (error != 0)
            file->error = error;
        pthread_cond_broadcast(&drey_files_changed);
    }

    /* Close the least recently used file; 0: all are in use. */
    static int drey_close_oldest(void)
    {
        drey_open_file* file = drey_oldest;
        if (file == NULL)
            return 0;
        drey_unlink(file);
        drey_close(file);
        return 1;
    }

    static int drey_borrow(drey_open_file* file, int flags)
    {
        int fd;
        pthread_mutex_lock(&drey_files_mutex);
        while (file->is_busy)
            pthread_cond_wait(&drey_files_changed, &drey_files_mutex);
        if (file->is_ended || file->error != 0) {
            fd = file->is_ended ? -EBADF : -file->error;
        } else if (file->fd >= 0) {
            if (file->users++ == 0)
                drey_unlink(file);
            fd = file->fd;
        } else {
            file->is_busy = 1;
            while (drey_open_count >= drey_open_most() && drey_close_oldest())
                ;
            do {
                pthread_mutex_unlock(&drey_files_mutex);
                do
                    fd = open(file->path, flags | O_RDWR | O_CLOEXEC, 0600);
                while (fd < 0 && errno == EINTR);
                fd = fd < 0 ? -errno : fd;
                pthread_mutex_lock(&drey_files_mutex);
            } while ((fd == -EMFILE || fd == -ENFILE) && drey_close_oldest());
            file->is_busy = 0;
            if (fd >= 0) {
                file->fd = fd;
                file->users = 1;
                drey_open_count++;
            }
            pthread_cond_broadcast(&drey_files_changed);
        }
        pthread_mutex_unlock(&drey_files_mutex);
        return fd;
    }

    static void drey_give_back(drey_open_file* file)
    {
        pthread_mutex_lock(&drey_files_mutex);
        if (--file->users == 0) {
            if (file->is_ended) {
                drey_close(file);
            } else {
                drey_link(file);
                while (drey_open_count > drey_open_most() && drey_close_oldest())
                    ;
            }
        }
        pthread_mutex_unlock(&drey_files_mutex);
    }

    /* End borrowing of a file, and close it when it is unused; errno of the close, 0 while it is used. */
    static int drey_end(drey_open_file* file)
    {
        int error;
        pthread_mutex_lock(&drey_files_mutex);
        while (file->is_busy)
            pthread_cond_wait(&drey_files_changed, &drey_files_mutex);
        file->is_ended = 1;
        if (file->users == 0 && file->fd >= 0) {
            drey_unlink(file);
            drey_close(file);
        }
        error = file->error;
        file->error = 0;
        pthread_mutex_unlock(&drey_files_mutex);
        return error;
    }

    static int drey_shed(void)
    {
        int count = 0;
        pthread_mutex_lock(&drey_files_mutex);
        while (drey_close_oldest())
            count++;
        pthread_mutex_unlock(&drey_files_mutex);
        return count;
    }
    """
    int drey_borrow(drey_open_file* file, int flags) noexcept nogil
    void drey_give_back(drey_open_file* file) noexcept nogil
    int drey_end(drey_open_file* file) noexcept nogil
    int drey_shed() noexcept nogil
    long drey_open_most() noexcept nogil
    long drey_open_count
    int DREY_NEW_FILE


@cython.final
cdef class OpenFile:

    def __cinit__(self, path, bint is_new=False):
        """Args: is_new: make the file, which must not be there; else it is opened by its first user.

        Raises: OSError when it cannot be made.
        """
        cdef int descriptor
        self.path = str(path)
        self._path = os.fsencode(self.path)
        self.file.path = self._path
        self.file.fd = -1
        if is_new:
            with nogil:
                descriptor = drey_borrow(&self.file, DREY_NEW_FILE)
            self._checked(descriptor)
            self.put()

    def __dealloc__(self):
        if self.file.path != NULL:
            drey_end(&self.file)

    cdef int take(self) noexcept nogil:
        return drey_borrow(&self.file, 0)

    cdef void put(self) noexcept nogil:
        drey_give_back(&self.file)

    def _checked(self, int descriptor):
        if descriptor < 0:
            raise OSError(-descriptor, os.strerror(-descriptor), self.path)
        return descriptor

    def __enter__(self):
        """Return a descriptor. Raises: OSError."""
        cdef int descriptor
        with nogil:
            descriptor = self.take()
        return self._checked(descriptor)

    def __exit__(self, error_type, error, traceback):
        with nogil:
            self.put()

    @property
    def is_open(self):
        """Whether it has a descriptor now."""
        return self.file.fd >= 0

    def close(self):
        """End borrowing; it is closed when the last user has returned it. Idempotent. Thread: any.

        Raises: OSError: what was written may be lost.
        """
        cdef int error
        with nogil:
            error = drey_end(&self.file)
        if error != 0:
            raise OSError(error, os.strerror(error), self.path)

    def __repr__(self):
        return f"<OpenFile {self.path!r}: {'open' if self.is_open else 'closed'}>"


def shed():
    """Close the unused files; return their number. They are opened again when they are used."""
    cdef int count
    with nogil:
        count = drey_shed()
    return count


def open_file_count():
    """Return the number of open files, in use or not."""
    return drey_open_count


def open_file_limit():
    """Return the limit of files that stay open while no more are in use."""
    return drey_open_most()
