"""HashPartition: one partition of a hash join's build side, resident or spilled, and its probe file.

   RESIDENT ─begin_, finish_spill()─► SPILLED (build file) ─finish_build()─► SPILLED (probe file) ─finish_probe()─► pair
       │ place_row                        place_row, flush                       place_row, flush
       └─finish_build()─► RESIDENT (its rows are in the table)

Resident rows lie as entries (link and row) in pages of the pool. Spilling strips the links in place, page by page, and
writes plain rows, so a build file and a probe file hold nothing but rows of their side's schema. A spilled partition
keeps exactly one page as write buffer, for build rows first and for probe rows later: Flink's hybrid hash join does the
same, and it is why the pool must have one page for each partition.

Rows larger than a page: resident in ``take_large`` memory; spilled ones go straight to the file.

Source: ``org.apache.flink.table.runtime.hashtable.BinaryHashPartition``.

Held by: tests/join/test_hash_join_spill.py
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free
from libc.string cimport memset

from engine.iomanager.spill_writer cimport SpillWriter
from engine.join.entry_pages cimport LINK_SIZE, open_page, release_entries, strip_links
from engine.memory.page_pool cimport PagePool


@cython.final
cdef class HashPartition:
    """One partition; the methods are for the join's kernels (see the .pxd)."""

    def __cinit__(self, PagePool pool not None, space, str label not None, int64_t block_size):
        memset(&self.entries, 0, sizeof(self.entries))
        self.entries.page_size = pool.page_size
        self.entries.link_size = LINK_SIZE
        self._pool = pool
        self._space = space
        self._label = label
        self._block_size = block_size

    def __dealloc__(self):
        free(self.entries.pages)
        free(self.entries.large)

    @property
    def spilled(self):
        """Whether the build rows are in a file."""
        return bool(self.entries.spilled)

    cdef int64_t pages_to_gain(self) noexcept nogil:
        cdef int64_t large_pages = (self.entries.large_bytes + self.entries.page_size - 1) // self.entries.page_size
        return max(<int64_t>0, self.entries.page_count - 1) + large_pages

    cdef int begin_spill(self) except -1:
        cdef int64_t index
        self._writer = self._space.writer(f"{self._label}-build", block_size=self._block_size)
        for index in range(self.entries.page_count):
            with nogil:
                strip_links(&self.entries.pages[index])
                if self.entries.pages[index].used > 0:
                    self._writer.write(self.entries.pages[index].memory, self.entries.pages[index].used)
        for index in range(self.entries.large_count):
            with nogil:
                self._writer.write(self.entries.large[index].memory + LINK_SIZE,
                                   self.entries.large[index].size - LINK_SIZE)
        self.build_rows += self.entries.row_count
        self.build_bytes += self.entries.row_bytes
        return 0

    cdef int finish_spill(self) except -1:
        release_entries(&self.entries, self._pool, True)
        self.entries.spilled = True
        self.entries.link_size = 0
        return 0

    cdef int flush(self) except -1:
        if self.entries.page_count == 0 or self.entries.pages[0].used == 0:
            return 0
        with nogil:
            self._writer.write(self.entries.pages[0].memory, self.entries.pages[0].used)
        self._count_written(self.entries.row_count, self.entries.row_bytes)
        self.entries.pages[0].used = 0
        self.entries.row_count = 0
        self.entries.row_bytes = 0
        return 0

    cdef int write_through(self, const uint8_t* row, int64_t size) except -1:
        with nogil:
            self._writer.write(row, size)
        self._count_written(1, size)
        return 0

    cdef int _count_written(self, int64_t rows, int64_t size_bytes) except -1:
        if self.build_file is None:
            self.build_rows += rows
            self.build_bytes += size_bytes
        else:
            self.probe_rows += rows
            self.probe_bytes += size_bytes
        return 0

    cdef int finish_build(self) except -1:
        if not self.entries.spilled:
            self.build_rows = self.entries.row_count
            self.build_bytes = self.entries.row_bytes
            return 0
        self.flush()
        self.build_file = self._writer.finish()
        self._writer = self._space.writer(f"{self._label}-probe", block_size=self._block_size)
        return 0

    cdef int finish_probe(self) except -1:
        if not self.entries.spilled:
            return 0
        self.flush()
        self.probe_file = self._writer.finish()
        self._writer = None
        release_entries(&self.entries, self._pool, False)
        return 0

    cdef int release(self) except -1:
        release_entries(&self.entries, self._pool, False)
        self._writer = None
        return 0
