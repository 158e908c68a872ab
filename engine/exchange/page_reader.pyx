"""PageReader and gate_batches: row pages from a gate, decoded to Arrow batches of useful size.

    for batch in gate_batches(gate, schema): ...         until the end of all channels

    page (from any channel) ─copy─► staging area of about 1 MiB ─► rows ─decode─► RecordBatch (<= 32768 rows)
      └─► recycled at once

Pages of a repartitioning exchange are small when there are many channels; batches of a hundred rows would make every
operator after them slow. Copying a page costs a fraction of decoding it, and the producer has its buffer back before
anything is computed: however many pages a batch is made of, no pool runs dry, so no producer waits for a reader that
waits for more. What has been staged is decoded when the area or the row count is full, when the gate has nothing for
100 ms, before a batch by reference, and at the end.

Pages that are there are taken together (``page_runs``), without the GIL.

A row of more bytes than a batch may have is decoded where it lies, and forgotten before its batch is given out: it is
in memory twice for a moment, then once.

A router may take rows of pages before that (``RowRouter``): what it takes is neither staged nor decoded. Once it takes
all of them, what was staged before is passed on first, so that rows keep their order.

Rows keep the order in which the gate gave them. Batches by reference pass through untouched.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy

from engine.errors import CorruptBlockError
from engine.exchange.buffer_pool cimport Buffer
from engine.exchange.elements import OversizedRow
from engine.exchange.input_gate import NOTHING_YET
from engine.exchange.page_runs import PageRuns
from engine.records.outside_values cimport values_lie_outside
from engine.records.row_check cimport check_rows
from engine.records.row_codec cimport RowCodec, row_size, rows_of_page
from engine.records.row_router cimport RowRouter

cdef int64_t LINGER_MS = 100
cdef int64_t MIN_ROW_BYTES = 8
cdef enum:
    ADDED_MAX = 16                      # pages added at a time
cdef int64_t BRIEF_BYTES = 64 << 10     # are copied in less time than it takes to give the GIL away and get it back

cdef extern from "<stdlib.h>" nogil:
    int posix_memalign(void** memory, size_t alignment, size_t size)


@cython.final
cdef class PageReader:
    """Collects rows and decodes them. One per gate, used by one thread.

    Args:
        schema: pyarrow.Schema of the rows.
        max_rows: rows of a batch.
        max_bytes: bytes of rows that are staged, at least one page.
        router: see gate_batches.
    """

    cdef readonly object schema
    cdef readonly int64_t max_rows
    cdef readonly int64_t max_bytes
    cdef readonly int64_t staged_rows
    cdef readonly int64_t staged_bytes
    cdef RowRouter _router
    cdef RowCodec _codec
    cdef uint8_t* _staging
    cdef int64_t _staging_capacity
    cdef uint8_t** _rows                # addresses inside _staging
    cdef int64_t _row_capacity

    def __cinit__(self, schema not None, int64_t max_rows=32768, int64_t max_bytes=1 << 20, RowRouter router=None):
        self._router = router
        self.schema = schema
        self.max_rows = max_rows
        self.max_bytes = max_bytes
        self._codec = RowCodec(schema)

    def __dealloc__(self):
        free(self._staging)
        free(self._rows)

    def has_room_for(self, int64_t size):
        """Return whether a page of that many bytes can be staged now; an empty reader takes any."""
        return self.staged_bytes == 0 or (
            self.staged_bytes + size <= self.max_bytes and self.staged_rows < self.max_rows)

    def add(self, *pages):
        """Stage the rows of pages, at most ADDED_MAX. They are recycled in any case.

        Raises:
            CorruptBlockError: the bytes are not whole rows.
        """
        cdef const uint8_t* data[ADDED_MAX]
        cdef int64_t sizes[ADDED_MAX]
        cdef int32_t count = 0
        cdef Buffer page
        try:
            for page in pages[:ADDED_MAX]:
                data[count] = page.segment.data
                sizes[count] = page.size
                count += 1
            self._add_bytes(data, sizes, count)
        finally:
            for page in pages:
                page.give_back()

    def add_row(self, const uint8_t[::1] row not None):
        """Stage one row of any size."""
        cdef const uint8_t* data = &row[0]
        cdef int64_t size = row.shape[0]
        self._add_bytes(&data, &size, 1)

    def decode_row(self, const uint8_t[::1] row not None):
        """Return the batch of one row, decoded where it lies; None: it is to be staged, its values lie outside.

        Raises:
            CorruptBlockError: it is not one whole row.
        """
        cdef uint8_t* address = NULL
        if rows_of_page(&row[0], row.shape[0], &address, 1) != 1 or row_size(address) != <uint64_t>row.shape[0]:
            raise CorruptBlockError(f"{row.shape[0]} bytes are not one row of {self.schema.names}")
        check_rows(self._codec, &address, 1)
        return None if self._codec.bytes_outside(address) else self._codec.decode(&address, 1, NULL, 0)

    cdef int _add_bytes(self, const uint8_t** data, const int64_t* sizes, int32_t page_count) except -1:
        cdef int64_t count
        cdef int64_t size = 0
        cdef int32_t page
        for page in range(page_count):
            size += sizes[page]
        self._reserve(size)
        if size <= BRIEF_BYTES:
            count = self._stage(data, sizes, page_count)
        else:
            with nogil:
                count = self._stage(data, sizes, page_count)
        if count < 0:
            raise CorruptBlockError(f"a page of {sizes[-1 - count]} bytes does not consist of whole rows of "
                                    f"{self.schema.names}")
        if self._router is not None:
            count = self._router.route(self._rows + self.staged_rows, count)
            size = self._stage_rows(count)
        self.staged_rows += count
        self.staged_bytes += size
        return 0

    cdef int64_t _stage(self, const uint8_t** data, const int64_t* sizes, int32_t page_count) noexcept nogil:
        """Copy pages behind what is staged and find their rows; return their number, -1 - page for a damaged page.

        With a router, which may leave few of them, the rows are those in the pages, and nothing is copied yet.
        """
        cdef uint8_t* target = self._staging + self.staged_bytes
        cdef int64_t count = 0
        cdef int64_t page_rows
        cdef const uint8_t* rows
        cdef int32_t page
        for page in range(page_count):
            rows = data[page]
            if self._router is None:
                memcpy(target, rows, <size_t> sizes[page])
                rows = target
                target += sizes[page]
            page_rows = rows_of_page(rows, sizes[page], self._rows + self.staged_rows + count,
                                     self._row_capacity - self.staged_rows - count)
            if page_rows < 0:
                return -1 - page
            count += page_rows
        return count

    cdef int64_t _stage_rows(self, int64_t count) noexcept nogil:
        """Copy count rows of a page behind what is staged; return their bytes."""
        cdef uint8_t* target = self._staging + self.staged_bytes
        cdef uint8_t* row
        cdef int64_t index, size
        for index in range(self.staged_rows, self.staged_rows + count):
            row = self._rows[index]
            size = row_size(row)
            memcpy(target, row, <size_t> size)
            self._rows[index] = target
            target += size
        return target - (self._staging + self.staged_bytes)

    cdef int _reserve(self, int64_t size) except -1:
        """Make room for size more bytes; the staging area moves only while it is empty."""
        cdef int64_t wanted = max(self.staged_bytes + size, self.max_bytes)
        cdef void* memory = NULL
        if wanted > self._staging_capacity:
            if self.staged_bytes > 0:
                raise ValueError(f"{size} more bytes do not fit; take the batches first")
            if posix_memalign(&memory, 64, <size_t> wanted) != 0:
                raise MemoryError(f"no memory to decode a row of {size} bytes")
            free(self._staging)
            self._staging = <uint8_t*> memory
            self._staging_capacity = wanted
        wanted = self.staged_rows + size // MIN_ROW_BYTES
        if wanted > self._row_capacity:
            wanted = max(wanted, self.max_rows * 2)
            memory = realloc(self._rows, <size_t> wanted * sizeof(uint8_t*))
            if memory == NULL:
                raise MemoryError
            self._rows = <uint8_t**> memory
            self._row_capacity = wanted
        return 0

    def take_batches(self):
        """Decode everything staged: an iterable of pyarrow.RecordBatch, each of at most max_rows rows.

        A list, unless rows have wide values outside: then each batch is decoded when it is asked for.
        """
        cdef list batches = []
        cdef int64_t done = 0
        if values_lie_outside():            # their sizes are looked at before anything is decoded
            check_rows(self._codec, self._rows, self.staged_rows)
        if self._codec.rows_within(self._rows, self.staged_rows, self.max_bytes) < self.staged_rows or (
                self.staged_rows > 0 and self._codec.bytes_outside(self._rows[0]) > self.max_bytes):
            return self._take_wide()
        cdef int64_t count
        cdef int64_t pieces = (self.staged_rows + self.max_rows - 1) // self.max_rows
        while done < self.staged_rows:
            count = (self.staged_rows - done) // pieces     # equal pieces: no batch of a few rows at the end
            pieces -= 1
            batches.append(self._codec.decode(self._rows + done, count, NULL, 0))
            done += count
        self.staged_rows = 0
        self.staged_bytes = 0
        if self._staging_capacity > 4 * self.max_bytes:     # a huge row was here: do not keep its memory
            free(self._staging)
            self._staging = NULL
            self._staging_capacity = 0
        return batches


    cdef object _take_wide(self):
        """Return the staged rows as batches to come, and begin anew with other memory."""
        cdef WideBatches wide = WideBatches()
        wide.codec = self._codec
        wide.max_bytes = self.max_bytes
        wide.staging = self._staging
        wide.rows = self._rows
        wide.count = self.staged_rows
        self._staging = NULL
        self._rows = NULL
        self._staging_capacity = self._row_capacity = 0
        self.staged_rows = self.staged_bytes = 0
        return wide


@cython.final
cdef class WideBatches:
    """Iterator over staged rows with wide values outside, as many in a batch as are max_bytes: mostly one."""

    cdef RowCodec codec
    cdef uint8_t* staging
    cdef uint8_t** rows
    cdef int64_t count
    cdef int64_t done
    cdef int64_t max_bytes

    def __dealloc__(self):
        free(self.staging)
        free(self.rows)

    def __iter__(self):
        return self

    def __next__(self):
        cdef int64_t begin = self.done
        if begin == self.count:
            raise StopIteration
        cdef int64_t count = self.codec.rows_within(self.rows + begin, self.count - begin, self.max_bytes)
        self.done += count
        return self.codec.decode(self.rows + begin, count, NULL, 0)


def gate_batches(gate not None, schema not None, int64_t max_rows=32768, int64_t max_bytes=1 << 20,
                 RowRouter router=None):
    """Yield the batches of a gate, until all its channels have ended.

    Args:
        gate: InputGate.
        schema: pyarrow.Schema of its rows.
        max_rows, max_bytes: of a batch made of pages; a single larger row is a batch of its own.
        router: takes rows of pages that need not be decoded.

    Raises:
        What InputGate.next raises; CorruptBlockError.
    """
    cdef PageReader reader = PageReader(schema, max_rows, max_bytes, router)
    runs = PageRuns(gate, max_bytes // 2)
    while True:
        element = runs.poll(LINGER_MS if reader.staged_rows > 0 else -1)
        if isinstance(element, list):
            try:
                if router is not None and router.takes_all:
                    yield from reader.take_batches()        # what is staged came before these rows
                batches = () if reader.has_room_for(sum(map(len, element))) else reader.take_batches()
            except BaseException:
                for page in element:
                    page.recycle()
                raise
            reader.add(*element)            # before yielding: the producer has its buffers back
            yield from batches
            if reader.staged_rows >= max_rows:
                yield from reader.take_batches()
            continue
        yield from reader.take_batches()
        if element is None:
            return
        if isinstance(element, OversizedRow):
            batch = reader.decode_row(element.buffer) if element.size > max_bytes else None
            if batch is None:
                reader.add_row(element.buffer)
                yield from reader.take_batches()
            else:
                element.take()
                yield batch
        elif element is not NOTHING_YET:
            yield element
