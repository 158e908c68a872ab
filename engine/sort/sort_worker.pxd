# SortWorker: the thread of one sorter that sorts and spills full memories while the next one fills.

cimport cython
from libc.stdint cimport int64_t

from engine.records.row_combiner cimport RowCombiner
from engine.sort.record_sorter cimport RecordSorter
from engine.sort.sorted_runs cimport SortedRuns

@cython.final
cdef class SortWorker:
    cdef readonly int64_t busy_ns           # time of work on this thread
    cdef readonly int64_t waited_ns         # time that callers waited for it
    cdef SortedRuns _runs
    cdef object _changed                    # threading.Condition; guards the rest
    cdef object _thread                     # None before the first job
    cdef list _jobs                         # (RecordSorter, bint spill), the first one under work
    cdef object _error                      # what a job met; later jobs are dropped
    cdef bint _is_closed

    # Have rows sorted and, with spill, written as the next run and forgotten. Raises what an earlier job met.
    cdef int submit(self, RecordSorter sorter, bint spill) except -1
    # Wait until no job is left for a sorter (None: for any). Raises what a job met.
    cdef int wait(self, RecordSorter sorter) except -1
    cdef int _execute(self, RecordSorter sorter, bint spill) except -1

# Sort the rows in memory; with a combiner those of equal keys become one.
cdef int sort_rows(RecordSorter sorter, RowCombiner combiner) except -1
# Write the first `count` sorted rows as the next run and forget all.
cdef int spill_rows(RecordSorter sorter, int64_t count, SortedRuns runs) except -1
