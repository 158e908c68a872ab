"""SortWorker: sorts and spills in a thread of its own what is full, while its caller fills other memory.

    worker.submit(sorter, spill) ... worker.wait(sorter)          the sorter is the worker's in between
    worker.close()                                                always; joins the thread

    caller    │ fill A │ fill B ────────│ wait │ fill A ──────────│ fill B ...
    worker             │ sort A │       │ spill A │ sort, spill B │ sort, spill A ...

The first full memory is only sorted: as long as everything fits nothing is written. When the second one is full too,
the first is spilled, and from then on each is sorted and spilled at once. Jobs are done in the order in which they
came, so runs are in order of arrival.

What goes wrong in a job is raised by the caller's next ``submit`` or ``wait``; jobs behind it are dropped, their rows
with them. A job looks at no cancellation itself: a cancelled SpillSpace makes its next write fail. The thread begins
with the first job and ends with ``close``, which waits for the job under work.

``busy_ns`` - ``waited_ns`` is what overlapped.

Source: the sorting and spilling threads of Flink's UnilateralSortMerger; here one thread, and no queue of buffers.
"""

cimport cython
from libc.stdint cimport int64_t

from engine.memory.status cimport STATUS_OK
from engine.records.byte_kernels cimport prefetch
from engine.records.outside_keys cimport raise_failed_comparison
from engine.records.row_combiner cimport RowCombiner
from engine.sort.record_sorter cimport RecordSorter
from engine.sort.sorted_run cimport RunWriter
from engine.sort.sorted_runs cimport SortedRuns

import threading
import time

from engine.errors import MemoryBudgetError

cdef enum:
    AHEAD = 8               # rows fetched before they are written


cdef int sort_rows(RecordSorter sorter, RowCombiner combiner) except -1:
    cdef int status
    cdef int failure = 0
    with nogil:
        status = sorter.sort()
        if status == STATUS_OK and combiner is not None:
            failure = sorter.combine(combiner)
        if status == STATUS_OK and sorter.cut is not None:
            sorter.row_count = sorter.cut.apply(sorter.entries, sorter.row_count, &sorter.used_bytes)
    raise_failed_comparison()
    if failure != 0:
        combiner.raise_failure(failure)
    if status != STATUS_OK:
        raise MemoryBudgetError(f"no memory for the index of {sorter.row_count} rows in {sorter._pool!r}")
    return 0


cdef int spill_rows(RecordSorter sorter, int64_t count, SortedRuns runs) except -1:
    cdef RunWriter writer = runs.next_run()
    cdef int64_t index
    with nogil:
        for index in range(count):
            if index + AHEAD < count:
                prefetch(sorter.entries[index + AHEAD].row)
            writer.write(sorter.entries[index].row)
    sorter.clear()
    runs.end_run(writer)
    return 0


@cython.final
cdef class SortWorker:
    """Args: runs: where spilled runs go."""

    def __cinit__(self, SortedRuns runs not None):
        self._runs = runs
        self._jobs = []
        self._changed = threading.Condition()

    cdef int submit(self, RecordSorter sorter, bint spill) except -1:
        with self._changed:
            self._raise_error()
            self._jobs.append((sorter, spill))
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="drey-sort", daemon=True)
                self._thread.start()
            self._changed.notify_all()
        return 0

    cdef int wait(self, RecordSorter sorter) except -1:
        cdef int64_t began = time.perf_counter_ns()
        with self._changed:
            while self._has_job(sorter):
                self._changed.wait()
            self.waited_ns += time.perf_counter_ns() - began
            self._raise_error()
        return 0

    def _has_job(self, sorter):
        return any([sorter is None or job[0] is sorter for job in self._jobs])

    def _raise_error(self):
        if self._error is not None:
            raise self._error

    def _work(self):
        """Do jobs until close. The thread's target."""
        while True:
            with self._changed:
                while not self._jobs and not self._is_closed:
                    self._changed.wait()
                if not self._jobs:
                    return
                sorter, spill = self._jobs[0]
            began = time.perf_counter_ns()
            try:
                self._execute(sorter, spill)
            except BaseException as error:      # the root of a thread: the caller raises it
                self._error = error
            with self._changed:
                self.busy_ns += time.perf_counter_ns() - began
                if self._error is None:
                    self._jobs.pop(0)
                else:
                    self._jobs.clear()
                self._changed.notify_all()

    cdef int _execute(self, RecordSorter sorter, bint spill) except -1:
        if not sorter.is_sorted:
            sort_rows(sorter, self._runs.combiner)
        if spill:
            spill_rows(sorter, sorter.row_count, self._runs)
        return 0

    def close(self):
        """Wait for the job under work, drop the others and join the thread; idempotent."""
        with self._changed:
            self._is_closed = True
            del self._jobs[1:]
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
