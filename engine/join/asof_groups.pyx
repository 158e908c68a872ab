"""AsofGroups: the as-of join of rows in any order that lie in memory, group by group.

    join = AsofGroups(spec, rule)                           keys: those that are equal, one at least, then the time
    join.reserve(rows)                                      of both sides, the most that will come at once
    for batch in join.join(left, right): ...                RowBatches; right: None where there is none
    join.join(...)                                          any number of times, once the one before is done
    join.close()                                            it may be used again

    left   b2 a1 a9 a4 ──► number of each row's group ──► a1 a9 a4 | b2 ──► a1 a4 a9 | b2 ─┐   (time, row) side by side
           (RowGroups)             0: a, 1: b              by counting   only what is       ├─► merged by times
    right  a0 c5 b1 a3 a6 ─────────────────────────────► a0 a3 a6 | b1    not in order yet ─┘

A sort of all rows by (keys, time) compares keys over and over; here a row's key is looked up once. Rows of a group are
mostly in order of time, as whoever wrote them saw them: then nothing is sorted. Right rows of groups without a left row
are dropped.

Invariants: each left row comes out once, groups in the order of their first left rows, rows of one in that of time,
and those with a null key behind all others, without a right row. Of right rows at one time the last in their order is
taken backward, the first forward.

Memory: SCRATCH_BYTES for a row, beside the rows, which stay where they are. It is kept from one join to the next, until
close(): the kernel clears what is given to it page by page, which costs as much as the join itself. Of rows that the
caches do not hold, most of the time is spent in waiting for them: whoever has more parts them by key first.

    scratch    left entries │ right entries │ of the side in work: prefixes, numbers │ then: what its sort needs

Thread: one.

Source: DuckDB's and Polars' as-of joins put rows together by hashes of their keys, too.

Held by: tests/join/test_asof_groups.py
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc

from engine.join.asof_output cimport AsofOutput
from engine.join.join_side cimport JoinSide
from engine.join.key_groups cimport PAIRS_MAX
from engine.join.row_groups cimport RowGroups
from engine.join.sorted_batch cimport comparator_of, prefixes_of
from engine.records.byte_kernels cimport prefetch
from engine.records.comparator cimport KeyEquality, RowComparator
from engine.records.normalized_key cimport NormalizedKey, may_differ
from engine.records.outside_keys cimport raise_failed_comparison
from engine.records.row_batch cimport RowBatch
from engine.sort.radix_sort cimport IndexEntry, sort_entries

from engine.errors import SchemaError
from engine.graph.plan import AsofDirection
from engine.join.join_spec import JoinInput

cdef enum:
    CHUNK_ROWS = 1024
    ENTRY_BYTES = sizeof(IndexEntry)

#: an entry, and in the same place one after the other a prefix with a number, and an entry that is being sorted
SCRATCH_BYTES = ENTRY_BYTES + ENTRY_BYTES


@cython.final
cdef class _GroupedRows:
    """Rows of one side, group by group, in order of time."""

    cdef JoinSide _side
    cdef NormalizedKey _prefixes        # of times that are not null
    cdef RowComparator _order           # of times
    cdef IndexEntry* entries            # in scratch of the join
    cdef int64_t* bounds                # [groups + 1] where each group begins
    cdef int64_t count                  # entries

    def __cinit__(self, JoinSide side not None, int32_t time):
        self._side = side
        self._prefixes = prefixes_of(side, [time])
        self._order = comparator_of(side, [time])

    def __dealloc__(self):
        self.clear()

    cdef void clear(self) noexcept nogil:
        free(self.bounds)
        self.entries = NULL
        self.bounds = NULL
        self.count = 0

    cdef int take(self, RowBatch batch, RowGroups groups, bint is_left, IndexEntry* entries,
                  IndexEntry* unused) except -1:
        """Put the rows of a batch group by group; left ones without a group behind the others.

        Args: entries, unused: room for as many as there are rows, each.
        """
        cdef int64_t count = 0 if batch is None else batch.count
        cdef uint64_t* prefixes = <uint64_t*> unused
        cdef int32_t* numbers = <int32_t*> (prefixes + count)
        cdef bint is_done = True
        self.clear()
        self.entries = entries
        with nogil:
            if count:
                is_done = self._look_at(batch, groups, is_left, numbers, prefixes)
            self.bounds = <int64_t*> calloc(<size_t> groups.group_count() + 2, sizeof(int64_t))
            if is_done and self.bounds != NULL and count:
                self._place(batch, groups.group_count(), is_left, numbers, prefixes)
                self._sort(groups.group_count(), unused)
        if not is_done or self.bounds == NULL:
            raise MemoryError("groups of an as-of join")
        raise_failed_comparison()
        return 0

    cdef bint _look_at(self, RowBatch batch, RowGroups groups, bint is_left, int32_t* numbers,
                       uint64_t* prefixes) noexcept nogil:
        """Find groups and prefixes of rows, a chunk while it is near; False: there is no memory."""
        cdef uint8_t nulls[CHUNK_ROWS]
        cdef int64_t begin = 0
        cdef int64_t size
        while begin < batch.count:
            size = min(<int64_t> CHUNK_ROWS, batch.count - begin)
            self._side.null_keys_of_rows(batch.rows + begin, size, nulls)
            if not is_left:
                groups.find(batch.rows + begin, size, nulls, numbers + begin)
            elif not groups.add(batch.rows + begin, size, nulls, numbers + begin):
                return False
            self._prefixes.prefixes_of_rows(batch.rows + begin, size, prefixes + begin)
            begin += size
        return True

    cdef void _place(self, RowBatch batch, int64_t group_count, bint is_left, int32_t* numbers,
                     const uint64_t* prefixes) noexcept nogil:
        """Count the rows of groups, and put each row behind those of its group."""
        cdef int64_t row, group
        cdef int64_t begin = 0
        cdef int64_t size
        for row in range(batch.count):
            if numbers[row] < 0:
                if not is_left:
                    continue
                numbers[row] = <int32_t> group_count
            self.bounds[numbers[row]] += 1
        for group in range(group_count + 1):
            size = self.bounds[group]
            self.bounds[group] = begin
            begin += size
        self.count = begin
        for row in range(batch.count):
            if numbers[row] >= 0:
                self.entries[self.bounds[numbers[row]]] = IndexEntry(prefixes[row], batch.rows[row])
                self.bounds[numbers[row]] += 1
        # each is where the next one begins
        for group in range(group_count + 1, 0, -1):
            self.bounds[group] = self.bounds[group - 1]
        self.bounds[0] = 0

    cdef bint _is_in_order(self, int64_t group) noexcept nogil:
        cdef int64_t index
        cdef uint64_t last, prefix
        for index in range(self.bounds[group] + 1, self.bounds[group + 1]):
            last, prefix = self.entries[index - 1].prefix, self.entries[index].prefix
            if last > prefix or (last == prefix and may_differ(&self._prefixes.ties, prefix) and (
                    self._order.compare(self.entries[index - 1].row, self.entries[index].row) > 0)):
                return False
        return True

    cdef void _sort(self, int64_t group_count, IndexEntry* scratch) noexcept nogil:
        cdef int64_t group
        for group in range(group_count):
            if not self._is_in_order(group):
                sort_entries(self.entries + self.bounds[group], scratch, self.bounds[group + 1] - self.bounds[group],
                             self._order, &self._prefixes.ties, None)


@cython.final
cdef class AsofGroups:
    """Args: spec: JoinSpec of a left join, the last key is the time; rule: AsofRule.

    Raises:
        SchemaError: there is no key beside the time, or keys cannot be compared.
    """

    cdef AsofOutput _output
    cdef RowGroups _groups
    cdef _GroupedRows _left
    cdef _GroupedRows _right
    cdef KeyEquality _time_order
    cdef bint _times_tie                # equal prefixes do not say that times are equal
    cdef bint _back_passes_equal        # a row at the very time is one before
    cdef bint _ahead_passes_equal       # a row at the very time is none behind
    cdef uint8_t** _lefts               # [PAIRS_MAX]
    cdef IndexEntry* _scratch
    cdef int64_t _room                  # rows that it is for
    cdef int64_t _position              # of the left
    cdef int64_t _group                 # where it stands
    cdef int64_t _back                  # first right row that is not before, and
    cdef int64_t _ahead                 # ... the first one behind

    def __cinit__(self, spec not None, rule not None):
        cdef JoinSide left, right
        if len(spec.left.keys) < 2:
            raise SchemaError("an as-of join of groups has no column that makes them")
        self._output = AsofOutput(spec, rule)
        left, right = self._output.left, self._output.right
        *left_by, left_time = spec.left.keys
        *right_by, right_time = spec.right.keys
        self._groups = RowGroups(JoinSide(JoinInput(spec.left.schema, tuple(left_by))),
                                 JoinSide(JoinInput(spec.right.schema, tuple(right_by))))
        self._left = _GroupedRows(left, left_time)
        self._right = _GroupedRows(right, right_time)
        self._time_order = KeyEquality(left.codec, [left_time], right.codec, [right_time])
        self._times_tie = not self._left._prefixes.decides
        self._back_passes_equal = not rule.strict
        self._ahead_passes_equal = rule.strict or rule.direction is AsofDirection.NEAREST
        self._lefts = <uint8_t**> calloc(PAIRS_MAX, sizeof(uint8_t*))
        if self._lefts == NULL:
            raise MemoryError("rows of an as-of join")

    def __dealloc__(self):
        free(self._lefts)
        free(self._scratch)

    def reserve(self, int64_t rows):
        """Have memory for so many rows of both sides; pages of it that nobody has written are not there yet."""
        if rows <= self._room:
            return
        free(self._scratch)
        self._room = 0
        self._scratch = <IndexEntry*> malloc(<size_t> rows * 2 * ENTRY_BYTES)
        if self._scratch == NULL:
            raise MemoryError("rows of an as-of join")
        self._room = rows

    def join(self, RowBatch left not None, RowBatch right):
        """Yield the output of all rows, which stay where they are until it ends.

        Raises: SchemaError for rows of other types; CorruptBlockError, SpillError for keys that lie outside.
        """
        self._check(left, self._output.left)
        self._check(right, self._output.right)
        self._take(left, right)
        self._position = self._group = self._back = self._ahead = 0
        while self._position < self._left.count:
            with nogil:
                self._merge()
            raise_failed_comparison()
            yield from self._output.batches()

    cdef int _take(self, RowBatch left, RowBatch right) except -1:
        """Put the rows of both sides group by group."""
        cdef int64_t right_count = 0 if right is None else right.count
        cdef IndexEntry* rights
        self.reserve(left.count + right_count)
        self._groups.clear()
        rights = self._scratch + left.count
        self._left.take(left, self._groups, True, self._scratch, rights + right_count)
        self._right.take(right, self._groups, False, rights, rights + right_count)
        return 0

    cdef int _check(self, RowBatch rows, JoinSide side) except -1:
        if rows is not None and rows.codec.schema.types != side.schema.types:
            raise SchemaError(f"rows of {rows.codec.schema.types} cannot be joined as rows of {side.schema.types}")
        return 0

    cdef void _merge(self) noexcept nogil:
        """Find the candidates of the next left rows."""
        cdef uint8_t** before = self._output.before
        cdef uint8_t** after = self._output.after
        cdef const int64_t* bounds = self._right.bounds
        cdef IndexEntry* rights = self._right.entries
        cdef int64_t end = min(self._left.count, self._position + PAIRS_MAX)
        cdef int64_t place = 0
        cdef const IndexEntry* left
        while self._position < end:
            while self._position == self._left.bounds[self._group + 1]:
                self._group += 1
                self._back = self._ahead = bounds[self._group]
            left = &self._left.entries[self._position]
            self._lefts[place] = left.row
            before[place] = after[place] = NULL
            prefetch(left.row)
            if self._group < self._groups.group_count():
                if self._output.looks_back:
                    self._back = self._passed(left, self._back, self._back_passes_equal)
                    if self._back > bounds[self._group]:
                        before[place] = rights[self._back - 1].row
                        prefetch(before[place])
                if self._output.looks_ahead:
                    self._ahead = self._passed(left, self._ahead, self._ahead_passes_equal)
                    if self._ahead < bounds[self._group + 1]:
                        after[place] = rights[self._ahead].row
                        prefetch(after[place])
            place += 1
            self._position += 1
        self._output.lefts = self._lefts
        self._output.count = place

    cdef inline int64_t _passed(self, const IndexEntry* left, int64_t position, bint passes_equal) noexcept nogil:
        """Go past right rows of the group that come before a left row."""
        cdef const IndexEntry* rights = self._right.entries
        cdef int64_t end = self._right.bounds[self._group + 1]
        cdef int compared
        while position < end:
            if rights[position].prefix > left.prefix:
                break
            if rights[position].prefix == left.prefix:
                compared = self._time_order.order_of(left.row, rights[position].row) if self._times_tie else 0
                if compared < 0 or (compared == 0 and not passes_equal):
                    break
            position += 1
        return position

    def close(self):
        """Forget all rows, and give the memory back; idempotent."""
        self._groups.clear()
        self._left.clear()
        self._right.clear()
        free(self._scratch)
        self._scratch = NULL
        self._room = 0
