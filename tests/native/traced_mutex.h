/* Included first in every native module of the coverage build: whoever waits for a mutex lets the GIL go meanwhile.

   A kernel that is traced takes the GIL at each of its lines, also between lock and unlock. A thread that holds the GIL
   and waits for that mutex would never get it. In other builds no line between the two needs the GIL. */

#ifndef DREY_TRACED_MUTEX_H
#define DREY_TRACED_MUTEX_H

#ifndef PY_SSIZE_T_CLEAN
#define PY_SSIZE_T_CLEAN
#endif
#include <Python.h>
#include <pthread.h>

static inline int drey_traced_lock(pthread_mutex_t* mutex)
{
    PyThreadState* state;
    int result;
    if (pthread_mutex_trylock(mutex) == 0)
        return 0;
    if (!PyGILState_Check())
        return pthread_mutex_lock(mutex);
    state = PyEval_SaveThread();
    result = pthread_mutex_lock(mutex);
    PyEval_RestoreThread(state);
    return result;
}

#define pthread_mutex_lock drey_traced_lock

#endif
