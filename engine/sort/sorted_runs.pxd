# SortedRuns: all sorted runs of one sorter, with the owners of their memory and files.

cimport cython
from libc.stdint cimport int64_t

from engine.iomanager.spill_writer cimport SpillWriter
from engine.records.comparator cimport RowComparator
from engine.records.normalized_key cimport NormalizedKey
from engine.records.row_codec cimport RowCodec
from engine.records.row_combiner cimport RowCombiner
from engine.sort.key_bytes cimport KeyBytes
from engine.sort.key_tail cimport KeyTail
from engine.sort.run_merger cimport RunMerger
from engine.sort.sorted_run cimport RunWriter, SortedRun

@cython.final
cdef class SortedRuns:
    cdef readonly object schema
    cdef readonly int64_t spilled_bytes     # bytes of rows written to disk so far, merges included
    cdef readonly int64_t run_count         # written to disk so far, merges included
    cdef RowCodec codec
    cdef NormalizedKey normalized_key
    cdef RowComparator comparator
    cdef KeyTail tail                   # None: prefixes decide, or there are no more keys
    cdef KeyBytes key_bytes
    cdef RowCombiner combiner               # None: rows of equal keys stay apart
    cdef list runs                          # SortedRun in order of arrival, those in memory last
    cdef object space
    cdef int64_t block_size                 # of runs on disk, bytes
    cdef SpillWriter _file                  # takes runs; None: the next one begins another file
    cdef list _runs_of_file                 # that are in it
    cdef object _partition                  # ResultPartitionId, or None
    cdef object _on_memory_free
    cdef object _on_release
    cdef object _changed                    # threading.Condition; guards the next three
    cdef int64_t _readers                   # threads that use rows in memory now
    cdef bint _is_spilling
    cdef bint _is_released

    # A writer of a run in a file of its own; add takes what it has finished.
    cdef RunWriter new_writer(self, str label)
    cdef int add(self, SortedRun run) except -1
    # A writer of the next run, in a file with its neighbours while they are small; end_run takes it.
    cdef RunWriter next_run(self)
    cdef int end_run(self, RunWriter writer) except -1
    # All runs are there: they can be read.
    cdef int end_file(self) except -1
    # A merge of slices; with a combiner rows of equal keys become one.
    cdef RunMerger merger(self, list slices, RowCombiner combiner)
    # Merge neighbouring runs on disk until so few are left that readers can merge the rest in that memory.
    cdef int merge_down(self, int64_t memory_bytes, int64_t reader_count, int64_t row_limit) except -1
    cdef int _spill_run(self, SortedRun run) except -1
    # Around the use of rows in memory, for one batch.
    cdef int begin_read(self) except -1
    cdef int end_read(self) except -1
