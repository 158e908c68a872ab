"""SortedRuns: the sorted runs of one sorter, in memory and on disk, and their life after it.

    runs = sorter.take_runs()  ─► runs.samples(256) ─► MergedBatches over ranges of it * ─► runs.release()
                                  runs.spill()         from any thread that needs the memory

    │ run 0 on disk │ run 1 on disk │ ... │ run n in memory │      in order of arrival

Readers use rows in memory between ``begin_read`` and ``end_read``, which enclose one batch. ``spill`` waits for those
that are inside, holds newcomers up, writes what is in memory to files and lets them go on there, so memory can be
called back at any time, also while a reader waits for its own consumer between two batches. ``release`` frees what
is left when the last reader has left its batch; a later one gets PartitionReleasedError.

Neighbouring runs lie in one file until it has FILE_BYTES: readers of hundreds of small runs open few files. A file is
deleted as soon as all of its runs are merged away; the others by ``release``, or by the space's close.

Invariant: runs in memory come last, so a merge of neighbours on disk keeps the order of arrival.

Source: Flink's SpillableSubpartition has the same three faces for buffers; here for rows.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from engine.records.comparator cimport RowComparator
from engine.records.normalized_key cimport NormalizedKey
from engine.records.row_codec cimport RowCodec
from engine.records.row_combiner cimport RowCombiner
from engine.records.whole_rows cimport whole_size, write_whole
from engine.sort.key_bytes cimport KeyBytes
from engine.sort.key_tail cimport key_tail
from engine.sort.run_merger cimport RunMerger
from engine.sort.sorted_run cimport RunSlice, RunWriter, SortedRun, whole_run

import threading

from engine.closing import close_all
from engine.errors import PartitionReleasedError, ResourceError
from engine.sort.merge_plan import fan_in, merge_steps

cdef enum:
    FILE_BYTES = 16 << 20       # of rows, from which on the next run begins another file

cdef double GOLDEN_RATIO = 0.618033988749895        # its multiples lie all over, whatever their number


@cython.final
cdef class SortedRuns:
    """Args: schema, keys: of the rows; space: SpillSpace; block_size: of runs on disk, bytes.

    combiner: of rows with equal keys.
    """

    def __cinit__(self, schema, keys, space, int64_t block_size, RowCombiner combiner=None):
        cdef int32_t index
        self.combiner = combiner
        self.schema = schema
        self.codec = RowCodec(schema)
        self.normalized_key = NormalizedKey(self.codec, keys)
        self.comparator = RowComparator(self.codec, keys)
        self.tail = key_tail(self.codec, self.normalized_key, keys)
        exchanged = set() if combiner is None or combiner.keeps_size else set(range(len(schema)))
        for index in range(self.comparator.column_count):
            exchanged.discard(self.comparator.keys[index].column)
        self.codec.let_outside(space, exchanged)
        self.key_bytes = KeyBytes(schema, keys)
        self.runs = []
        self._runs_of_file = []
        self.space = space
        self.block_size = block_size
        self._changed = threading.Condition()

    @property
    def row_count(self):
        """Rows of all runs."""
        return sum([(<SortedRun> run).row_count for run in self.runs])

    @property
    def row_bytes(self):
        """Bytes of all rows in binary form."""
        return sum([(<SortedRun> run).row_bytes for run in self.runs])

    @property
    def reader_bytes(self):
        """Bytes of blocks that a reader of all runs holds: for each run on disk one in use and what is read ahead."""
        return self.block_size * sum([1 + (<SortedRun> run).read_ahead for run in self.runs
                                      if (<SortedRun> run).memory is None])

    @property
    def runs_in_memory(self):
        """Return the number of runs that hold pages."""
        return sum([(<SortedRun> run).memory is not None for run in self.runs])

    @property
    def is_released(self):
        """Whether release() has been called."""
        return self._is_released

    # ------------------------------------------------------------------------------------------------ for the sorter

    cdef RunWriter new_writer(self, str label):
        return RunWriter(self.space.writer(label, block_size=self.block_size), self.key_bytes)

    cdef RunWriter next_run(self):
        if self._file is None:
            self._file = self.space.writer("runs", block_size=self.block_size)
        return RunWriter(self._file, self.key_bytes)

    cdef int end_run(self, RunWriter writer) except -1:
        cdef SortedRun run = writer.end()
        self._runs_of_file.append(run)
        self.add(run)
        if self._file.raw_bytes >= FILE_BYTES:
            self.end_file()
        return 0

    cdef int end_file(self) except -1:
        cdef SortedRun run
        if self._file is None:
            return 0
        file = self._file.finish()
        self._file = None
        file.share(len(self._runs_of_file))
        for run in self._runs_of_file:
            run.file = file
        self._runs_of_file = []
        return 0

    cdef int add(self, SortedRun run) except -1:
        self.runs.append(run)
        if run.memory is None:
            self.run_count += 1
            self.spilled_bytes += run.row_bytes
        return 0

    cdef RunMerger merger(self, list slices, RowCombiner combiner):
        return RunMerger(slices, self.normalized_key, self.comparator, self.codec, combiner)

    cdef int merge_down(self, int64_t memory_bytes, int64_t reader_count, int64_t row_limit) except -1:
        cdef RunMerger merger
        cdef RunWriter writer
        cdef SortedRun run
        sizes = [(<SortedRun> run).row_bytes for run in self.runs if (<SortedRun> run).memory is None]
        blocks = [max(self.block_size, (<SortedRun> run).largest_row) for run in self.runs
                  if (<SortedRun> run).memory is None]
        for start, count in merge_steps(sizes, fan_in(memory_bytes, blocks, reader_count)):
            parts = self.runs[start:start + count]
            merger = self.merger([whole_run(<SortedRun> run) for run in parts], self.combiner)
            try:
                writer = self.new_writer("merged run")
                merger.write_to(writer, row_limit)
            finally:
                merger.close()
            run = writer.finish()
            self.runs[start:start + count] = [run]
            self.run_count += 1
            self.spilled_bytes += run.row_bytes
            for part in parts:
                part.delete()

    # ------------------------------------------------------------------------------------------------- for the readers

    def samples(self, int64_t count):
        """Return (keys, weights): keys of rows of all runs, each with the bytes of rows it stands for.

        Args: count: about how many of each run in memory, and some four times as many of all runs on disk.
        """
        keys, weights = [], []
        on_disk = len(self.runs) - self.runs_in_memory
        for number, run in enumerate(self.runs):
            most = count if (<SortedRun> run).memory is not None else 4 * count // max(on_disk, 1)
            run_keys, run_weights = run.samples(self.key_bytes, most, number * GOLDEN_RATIO % 1)
            keys += run_keys
            weights += run_weights
        return keys, weights

    def slices(self, bytes lower, bytes upper):
        """Return the RunSlices of the rows whose key bytes are at least lower and below upper (None: no bound)."""
        cdef RunSlice slice
        cdef SortedRun run
        self.begin_read()
        try:
            found = []
            for run in self.runs:
                slice = whole_run(run)
                try:
                    if lower is not None:
                        slice.begin = run.row_of_bound(lower, self.key_bytes)
                    if upper is not None:
                        slice.end = run.row_of_bound(upper, self.key_bytes)
                except ResourceError as error:
                    run.blame(error)
                    raise
                if slice.begin < slice.end:
                    found.append(slice)
            return found
        finally:
            self.end_read()

    def count_below(self, bytes bound):
        """Return the number of rows that have key bytes below a bound (None: there is none, so no rows)."""
        if bound is None:
            return 0
        return sum([(<RunSlice> slice).end - (<RunSlice> slice).begin for slice in self.slices(None, bound)])

    def range_pages(self, bytes lower, bytes upper):
        """Return RangePages: the rows of a range in order, for another process."""
        return RangePages(self, lower, upper)

    cdef int begin_read(self) except -1:
        with self._changed:
            while self._is_spilling:
                self._changed.wait()
            if self._is_released:
                error = PartitionReleasedError("the sorted runs were released and cannot be read")
                error.partition = self._partition
                raise error
            self._readers += 1
        return 0

    cdef int end_read(self) except -1:
        with self._changed:
            self._readers -= 1
            if self._readers == 0:
                self._changed.notify_all()
        return 0

    # ------------------------------------------------------------------------------------------------------ for others

    def owned_by(self, on_memory_free, on_release):
        """Set two callbacks, called once each: no run holds pages any more, and the files are gone, too."""
        self._on_memory_free = on_memory_free
        self._on_release = on_release

    def belong_to(self, partition):
        """Set the result partition that errors of reading name."""
        cdef SortedRun run
        self._partition = partition
        self.space.partition = partition
        for run in self.runs:
            run.partition = partition

    def produced_by(self, int64_t producer):
        """Set the number of the subtask that produced all runs."""
        cdef SortedRun run
        for run in self.runs:
            run.producer = producer

    def spill(self):
        """Write the runs in memory to files and give their pages back. Thread: any; idempotent.

        Raises: SpillError, DiskFullError; the runs then stay in memory.
        """
        if not self._enter_alone():
            return
        try:
            for run in self.runs:
                if (<SortedRun> run).memory is not None:
                    self._spill_run(run)
            self._memory_is_free()
        finally:
            with self._changed:
                self._is_spilling = False
                self._changed.notify_all()

    def _enter_alone(self):
        """Wait for the readers and keep others out; False when there is nothing to do any more."""
        with self._changed:
            while self._is_spilling:
                self._changed.wait()
            if self._is_released:
                return False
            self._is_spilling = True
            while self._readers > 0:
                self._changed.wait()
        return True

    cdef int _spill_run(self, SortedRun run) except -1:
        cdef RunWriter writer = self.new_writer("run")
        cdef RunMerger merger = self.merger([whole_run(run)], None)     # rows keep their numbers
        cdef SortedRun written
        try:
            merger.write_to(writer, run.row_count)
            written = writer.finish()
        except BaseException:
            writer._writer.discard()            # the next one may ask again, and a full disk needs the room
            raise
        finally:
            merger.close()
        run.take_file(written)
        self.spilled_bytes += written.row_bytes
        return 0

    def release(self):
        """Give pages back and delete files; idempotent. Waits for readers to end their batch. Thread: any."""
        if not self._enter_alone():
            return
        file, self._file = self._file, None
        on_release, self._on_release = self._on_release, None
        close_all([
            *([] if file is None else [file.discard]), *(run.delete for run in self.runs), self._memory_is_free,
            self._say_released, *([] if on_release is None else [on_release]),
        ])

    def _say_released(self):
        with self._changed:
            self._is_released = True
            self._is_spilling = False
            self._changed.notify_all()

    def _memory_is_free(self):
        on_memory_free, self._on_memory_free = self._on_memory_free, None
        if on_memory_free is not None:
            on_memory_free()


@cython.final
cdef class RangePages:
    """Args: runs: read as long as this is; lower, upper: key bytes, lower <= key < upper; None: no bound."""

    cdef SortedRuns _runs
    cdef RunMerger _merger          # None: no row in the range, or closed

    def __cinit__(self, SortedRuns runs not None, bytes lower=None, bytes upper=None):
        self._runs = runs
        slices = runs.slices(lower, upper)
        if slices:
            runs.begin_read()
            try:
                self._merger = runs.merger(slices, runs.combiner)
            finally:
                runs.end_read()

    def fill(self, uint8_t[::1] target not None):
        """Copy as many whole rows as fit: their bytes, 0 at the end, or minus the bytes of one that needs more.

        A row with values outside comes on its own, and has them inside.
        """
        cdef const uint8_t* row
        cdef int64_t used = 0
        if self._merger is None or target.shape[0] == 0:
            return 0
        self._runs.begin_read()
        try:
            self._merger.follow_to_disk()
            used = self._merger.fill(&target[0], target.shape[0])
            row = self._merger.waiting()
            if used > 0 or row == NULL:
                return used
            used = whole_size(self._runs.codec, row)
            if used > target.shape[0]:
                return -used
            write_whole(self._runs.codec, row, &target[0])
            self._merger.drop_waiting()
        finally:
            self._runs.end_read()
        return used

    def close(self):
        """Close the files; idempotent. The runs stay."""
        merger, self._merger = self._merger, None
        if merger is not None:
            merger.close()
