/* Faults of the calls that files of ours are read and written by, in a process that has this loaded (LD_PRELOAD).
 *
 *     FAULTY_IO=seed,short,interrupted,open,close       per cent of the calls; open and close name an errno besides:
 *                                                       5:24 is EMFILE of every twentieth open
 *
 * Only files whose path has ".spill" or ".shuffle." in it are concerned. Beside its faults each call gives other threads
 * a turn now and then. What the faults were is written to standard error at the end: a test has to see some.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define FILES 65536

static unsigned seed = 1, shortened, interrupted, refused, refused_errno, unclosed, unclosed_errno;
static unsigned char is_ours[FILES];
static unsigned counts[4];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void begin(void)
{
    const char* text = getenv("FAULTY_IO");
    if (text != NULL)
        sscanf(text, "%u,%u,%u,%u:%u,%u:%u", &seed, &shortened, &interrupted, &refused, &refused_errno, &unclosed,
               &unclosed_errno);
}

__attribute__((destructor)) static void end(void)
{
    fprintf(stderr, "faults: %u short, %u interrupted, %u opens, %u closes\n", counts[0], counts[1], counts[2],
            counts[3]);
}

static unsigned chosen(void)
{
    unsigned number;
    pthread_mutex_lock(&mutex);
    number = (unsigned) rand_r(&seed);
    pthread_mutex_unlock(&mutex);
    if (number % 7 == 0)
        sched_yield();
    return number;
}

static int happens(unsigned per_cent, int which)
{
    if (per_cent == 0 || chosen() / 16 % 100 >= per_cent)
        return 0;
    __sync_fetch_and_add(&counts[which], 1);
    return 1;
}

static int faulty_open(const char* path, int flags, mode_t mode)
{
    int (*real)(const char*, int, ...) = dlsym(RTLD_NEXT, "open64");
    int ours = strstr(path, ".spill") != NULL || strstr(path, ".shuffle.") != NULL;
    int fd;
    if (ours && happens(refused, 2)) {
        errno = (int) refused_errno;
        return -1;
    }
    fd = real(path, flags, mode);
    if (fd >= 0 && fd < FILES)
        is_ours[fd] = (unsigned char) ours;
    return fd;
}

static mode_t mode_of(int flags, va_list list)
{
    return flags & O_CREAT ? va_arg(list, mode_t) : 0;
}

#define OPEN(name)                                \
    int name(const char* path, int flags, ...)    \
    {                                             \
        va_list list;                             \
        mode_t mode;                              \
        va_start(list, flags);                    \
        mode = mode_of(flags, list);              \
        va_end(list);                             \
        return faulty_open(path, flags, mode);    \
    }
OPEN(open)
OPEN(open64)

int close(int fd)
{
    int (*real)(int) = dlsym(RTLD_NEXT, "close");
    int ours = fd >= 0 && fd < FILES && is_ours[fd];
    int done;
    if (ours)
        is_ours[fd] = 0;
    done = real(fd);
    if (ours && done == 0 && happens(unclosed, 3)) {
        errno = (int) unclosed_errno;
        return -1;
    }
    return done;
}

/* A call on so many parts, which becomes one on less, or none. */
#define TRANSFER(name)                                                                       \
    ssize_t name(int fd, const struct iovec* parts, int count, off_t offset)                 \
    {                                                                                        \
        ssize_t (*real)(int, const struct iovec*, int, off_t) = dlsym(RTLD_NEXT, #name);     \
        struct iovec part;                                                                   \
        if (fd < 0 || fd >= FILES || !is_ours[fd])                                           \
            return real(fd, parts, count, offset);                                           \
        if (happens(interrupted, 1)) {                                                       \
            errno = EINTR;                                                                   \
            return -1;                                                                       \
        }                                                                                    \
        if (parts[0].iov_len > 1 && happens(shortened, 0)) {                                 \
            part = parts[0];                                                                 \
            part.iov_len = 1 + chosen() % (part.iov_len - 1);                                \
            return real(fd, &part, 1, offset);                                               \
        }                                                                                    \
        return real(fd, parts, count, offset);                                               \
    }
TRANSFER(preadv)
TRANSFER(preadv64)
TRANSFER(pwritev)
TRANSFER(pwritev64)
