"""Kernels of engine/records made callable for tests and benchmarks. Test-only; lists in, lists out."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

from engine.records.arrow_batch cimport ArrowBatch
from engine.records.comparator cimport KeyEquality, RowComparator
from engine.records.hashing cimport hash_batch, hash_rows, null_keys_of_batch, null_keys_of_rows
from engine.records.normalized_key cimport NormalizedKey, may_differ
from engine.records.outside_keys cimport raise_failed_comparison
from engine.records.row_codec cimport RowCodec, rows_of_page


cdef class Rows:
    """A page of rows with their addresses, and columns as C integers."""

    cdef const uint8_t[::1] page
    cdef uint8_t** rows
    cdef int64_t count

    def __cinit__(self, const uint8_t[::1] page not None):
        self.page = page
        self.rows = <uint8_t**>malloc(page.shape[0] + 8)
        self.count = rows_of_page(&page[0], page.shape[0], self.rows, page.shape[0]) if page.shape[0] else 0
        assert self.count >= 0

    def __dealloc__(self):
        free(self.rows)


cdef class Columns:
    cdef int32_t* indexes
    cdef int32_t count

    def __cinit__(self, columns):
        self.count = len(columns)
        self.indexes = <int32_t*>calloc(self.count + 1, sizeof(int32_t))
        for position, column in enumerate(columns):
            self.indexes[position] = column

    def __dealloc__(self):
        free(self.indexes)


def kind_of_columns(batch):
    """Return (kind, width, null count, child count) of each column."""
    cdef ArrowBatch opened = ArrowBatch.open(batch)
    cdef int32_t index
    return [(opened.columns[index].kind, opened.columns[index].width, opened.columns[index].null_count,
             opened.columns[index].child_count) for index in range(opened.column_count)]


def page_row_count(const uint8_t[::1] page not None, int64_t capacity):
    """Return what rows_of_page says."""
    cdef uint8_t** rows = <uint8_t**>malloc(page.shape[0] + 8)
    try:
        return rows_of_page(&page[0], page.shape[0], rows, capacity) if page.shape[0] else 0
    finally:
        free(rows)


def encode_range(RowCodec codec not None, batch, int64_t start, int64_t count):
    """Return rows start .. start + count as a list of bytes, written into memory that held 0xFF."""
    cdef ArrowBatch opened = ArrowBatch.open(batch)
    codec.accept(opened)
    cdef uint32_t* sizes = <uint32_t*>malloc(count * 4 + 4)
    cdef uint8_t** targets = <uint8_t**>malloc(count * 8 + 8)
    cdef int64_t row
    codec.measure(opened, start, count, sizes)
    pages = [bytearray(b"\xff" * sizes[row]) for row in range(count)]
    for row in range(count):
        targets[row] = <uint8_t*>(<bytearray>pages[row])
    codec.encode(opened, start, count, sizes, targets)
    free(sizes)
    free(targets)
    return [bytes(page) for page in pages]


def decode_picked(RowCodec codec not None, page, picks, columns=None):
    """Decode the rows at these positions of a page, None for a missing row."""
    cdef Rows rows = Rows(page)
    cdef uint8_t** picked = <uint8_t**>malloc(len(picks) * 8 + 8)
    cdef Columns chosen = Columns(columns or [])
    cdef int64_t index = 0
    try:
        for index, pick in enumerate(picks):
            picked[index] = NULL if pick is None else rows.rows[<int64_t>pick]
        return codec.decode(picked, len(picks), NULL if columns is None else chosen.indexes, chosen.count)
    finally:
        free(picked)


def hashes_of_batch(batch, columns, int64_t start=0, count=None, RowCodec mover=None):
    """Return the hashes of rows start .. start + count of a batch, after a codec has moved wide values outside."""
    cdef ArrowBatch opened = ArrowBatch.open(batch)
    if mover is not None:
        mover.move_outside(opened)
    cdef Columns keys = Columns(columns)
    cdef int64_t rows = opened.row_count - start if count is None else count
    cdef uint64_t* hashes = <uint64_t*>malloc(rows * 8 + 8)
    try:
        hash_batch(opened, keys.indexes, keys.count, start, rows, hashes)
        return (<uint8_t*>hashes)[:rows * 8]
    finally:
        free(hashes)


def hashes_of_rows(RowCodec codec not None, page, columns):
    """Return the hashes of the rows of a page."""
    cdef Rows rows = Rows(page)
    cdef Columns keys = Columns(columns)
    cdef uint64_t* hashes = <uint64_t*>malloc(rows.count * 8 + 8)
    try:
        hash_rows(codec, keys.indexes, keys.count, rows.rows, rows.count, hashes)
        return (<uint8_t*>hashes)[:rows.count * 8]
    finally:
        free(hashes)


def null_keys(RowCodec codec not None, batch, columns):
    """Return (flags, count) from the batch and from its rows."""
    cdef ArrowBatch opened = ArrowBatch.open(batch)
    cdef Rows rows = Rows(codec.to_rows(batch))
    cdef Columns keys = Columns(columns)
    cdef uint8_t* flags = <uint8_t*>malloc(rows.count + 1)
    try:
        found = null_keys_of_batch(opened, keys.indexes, keys.count, 0, opened.row_count, flags)
        of_batch = (list(flags[:rows.count]), found)
        found = null_keys_of_rows(codec, keys.indexes, keys.count, rows.rows, rows.count, flags)
        return of_batch, (list(flags[:rows.count]), found)
    finally:
        free(flags)


def rows_equal(KeyEquality equality not None, left_page, right_page):
    """Return for each pair (left row, right row) whether the keys are equal."""
    cdef Rows left = Rows(left_page)
    cdef Rows right = Rows(right_page)
    equal = [[equality.rows_equal(left.rows[one], right.rows[other]) for other in range(right.count)]
             for one in range(left.count)]
    raise_failed_comparison()
    return equal


def batch_equals_rows(KeyEquality equality not None, batch, right_page, RowCodec mover=None):
    """Return for each pair (batch row, right row) whether the keys are equal; mover as in hashes_of_batch."""
    cdef ArrowBatch opened = ArrowBatch.open(batch)
    if mover is not None:
        mover.move_outside(opened)
    cdef Rows right = Rows(right_page)
    cdef int64_t pairs = opened.row_count * right.count
    cdef int64_t* batch_rows = <int64_t*>malloc(pairs * 8 + 8)
    cdef uint8_t** candidates = <uint8_t**>malloc(pairs * 8 + 8)
    cdef uint8_t* flags = <uint8_t*>malloc(pairs + 1)
    cdef int64_t pair
    try:
        for pair in range(pairs):
            batch_rows[pair] = pair // right.count
            candidates[pair] = right.rows[pair % right.count]
        equality.batch_equals_rows(opened, batch_rows, candidates, pairs, flags)
        raise_failed_comparison()
        return [[bool(flags[one * right.count + other]) for other in range(right.count)]
                for one in range(opened.row_count)]
    finally:
        free(batch_rows)
        free(candidates)
        free(flags)


def compare_all(RowComparator comparator not None, page):
    """Return the sign of the comparison of each pair of rows."""
    cdef Rows rows = Rows(page)
    cdef int order
    result = []
    for one in range(rows.count):
        line = []
        for other in range(rows.count):
            order = comparator.compare(rows.rows[<int64_t>one], rows.rows[<int64_t>other])
            line.append((order > 0) - (order < 0))
        result.append(line)
    raise_failed_comparison()
    return result


def prefixes(NormalizedKey key not None, page):
    """Return the prefix of each row."""
    cdef Rows rows = Rows(page)
    cdef uint64_t* found = <uint64_t*>malloc(rows.count * 8 + 8)
    cdef int64_t row
    try:
        key.prefixes_of_rows(rows.rows, rows.count, found)
        return [found[row] for row in range(rows.count)]
    finally:
        free(found)


def is_open(NormalizedKey key not None, uint64_t prefix):
    """Return whether rows of a prefix may differ."""
    return may_differ(&key.ties, prefix) != 0


cdef double _now() noexcept nogil:
    cdef timespec moment
    clock_gettime(CLOCK_MONOTONIC, &moment)
    return moment.tv_sec * 1e9 + moment.tv_nsec


def nanoseconds_per_row(RowCodec codec not None, batch, columns, int32_t repeats):
    """Return the least nanoseconds per row of open, measure, encode, decode, hash of batch, hash of rows."""
    cdef ArrowBatch opened = ArrowBatch.open(batch)
    cdef Columns keys = Columns(columns)
    cdef int64_t count = opened.row_count
    cdef uint32_t* sizes = <uint32_t*>malloc(count * 4)
    cdef uint64_t* hashes = <uint64_t*>malloc(count * 8)
    cdef Rows rows = Rows(bytearray(codec.to_rows(batch)))
    cdef double[7] best
    cdef double[7] marks
    cdef int32_t repeat, step
    for step in range(7):
        best[step] = 1e18
    for repeat in range(repeats):
        marks[0] = _now()
        opened = ArrowBatch.open(batch)
        codec.accept(opened)
        marks[1] = _now()
        codec.measure(opened, 0, count, sizes)
        marks[2] = _now()
        codec.encode(opened, 0, count, sizes, rows.rows)
        marks[3] = _now()
        codec.decode(rows.rows, count, NULL, 0)
        marks[4] = _now()
        hash_batch(opened, keys.indexes, keys.count, 0, count, hashes)
        marks[5] = _now()
        hash_rows(codec, keys.indexes, keys.count, rows.rows, count, hashes)
        marks[6] = _now()
        for step in range(6):
            best[step] = min(best[step], marks[step + 1] - marks[step])
    free(sizes)
    free(hashes)
    return {name: round(best[step] / count, 2)
            for step, name in enumerate(("open", "measure", "encode", "decode", "hash batch", "hash rows"))}
