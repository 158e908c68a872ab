# Monitor: one pthread mutex and one condition, the way every queue and pool of this room blocks.
#
#     monitor_lock(&m) ─► look at or change the guarded fields ─► monitor_wait(&m, until)* ─► monitor_unlock(&m)
#
# Between lock and unlock there are only C statements: no Python object is made or dropped and the GIL is neither taken
# nor given. So a thread that holds the GIL may lock (it waits for nanoseconds), and only monitor_wait needs the GIL to
# be given up beforehand. Times are nanoseconds of the monotonic clock.
#
# Where many threads wait for things of their own under one monitor, each has a Condition of its own: to wake them all
# for what one of them can have costs as much as there are threads.

from libc.stdint cimport int64_t

cdef extern from *:
    """
    #include <errno.h>
    #include <pthread.h>
    #include <stdint.h>
    #include <time.h>

    typedef struct {
        pthread_mutex_t mutex;
        pthread_cond_t changed;
    } DreyMonitor;

    static inline void drey_condition_init(pthread_cond_t* condition)
    {
        pthread_condattr_t attributes;
        pthread_condattr_init(&attributes);
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        pthread_cond_init(condition, &attributes);
        pthread_condattr_destroy(&attributes);
    }

    static inline void drey_monitor_init(DreyMonitor* monitor)
    {
        pthread_mutex_init(&monitor->mutex, NULL);
        drey_condition_init(&monitor->changed);
    }

    static inline void drey_monitor_destroy(DreyMonitor* monitor)
    {
        pthread_cond_destroy(&monitor->changed);
        pthread_mutex_destroy(&monitor->mutex);
    }

    static inline void drey_monitor_lock(DreyMonitor* monitor) { pthread_mutex_lock(&monitor->mutex); }
    static inline void drey_monitor_unlock(DreyMonitor* monitor) { pthread_mutex_unlock(&monitor->mutex); }
    static inline void drey_monitor_notify(DreyMonitor* monitor) { pthread_cond_broadcast(&monitor->changed); }

    /* Wait for a notification, until the given time or (negative) for ever; 1 when the time has passed. */
    static inline int drey_condition_wait(pthread_cond_t* condition, DreyMonitor* monitor, int64_t until_ns)
    {
        struct timespec until;
        if (until_ns < 0) {
            pthread_cond_wait(condition, &monitor->mutex);
            return 0;
        }
        until.tv_sec = until_ns / 1000000000;
        until.tv_nsec = until_ns % 1000000000;
        return pthread_cond_timedwait(condition, &monitor->mutex, &until) == ETIMEDOUT;
    }

    static inline int drey_monitor_wait(DreyMonitor* monitor, int64_t until_ns)
    {
        return drey_condition_wait(&monitor->changed, monitor, until_ns);
    }

    static inline int64_t drey_monotonic_ns(void)
    {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
    }
    """
    ctypedef struct Monitor "DreyMonitor":
        pass
    ctypedef struct Condition "pthread_cond_t":
        pass
    void condition_init "drey_condition_init" (Condition* condition) noexcept nogil
    void condition_destroy "pthread_cond_destroy" (Condition* condition) noexcept nogil
    void condition_notify "pthread_cond_signal" (Condition* condition) noexcept nogil
    bint condition_wait "drey_condition_wait" (Condition* condition, Monitor* monitor, int64_t until_ns) noexcept nogil
    void monitor_init "drey_monitor_init" (Monitor* monitor) noexcept nogil
    void monitor_destroy "drey_monitor_destroy" (Monitor* monitor) noexcept nogil
    void monitor_lock "drey_monitor_lock" (Monitor* monitor) noexcept nogil
    void monitor_unlock "drey_monitor_unlock" (Monitor* monitor) noexcept nogil
    void monitor_notify "drey_monitor_notify" (Monitor* monitor) noexcept nogil
    bint monitor_wait "drey_monitor_wait" (Monitor* monitor, int64_t until_ns) noexcept nogil
    int64_t monotonic_ns "drey_monotonic_ns" () noexcept nogil

# The moment that lies timeout_ms from now; -1 (for ever) for a negative time-out.
cdef inline int64_t deadline_ns(int64_t timeout_ms) noexcept nogil:
    if timeout_ms < 0:
        return -1
    return monotonic_ns() + timeout_ms * 1000000
