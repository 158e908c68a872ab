"""AsofGroups: the as-of join of rows in any order that lie in memory, group by group.

    join = AsofGroups(spec, rule)                           keys: those that are equal, one at least, then the time
    join.reserve(rows)                                      of both sides, the most that will come at once
    for batch in join.join(left, right): ...                RowPages; right: None where there is none
    join.join(...)                                          any number of times, once the one before is done
    join.close()                                            it may be used again

    left   b2 a1 a9 a4 ──► number of each row's group ──► a1 a9 a4 | b2 ──► a1 a4 a9 | b2 ─┐   (time, row) side by side
           (RowGroups)             0: a, 1: b              by counting   only what is       ├─► merged by times
    right  a0 c5 b1 a3 a6 ─────────────────────────────► a0 a3 a6 | b1    not in order yet ─┘

A sort of all rows by (keys, time) compares keys over and over; here a row's key is looked up once. Rows of a group are
mostly in order of time, as they were recorded: then nothing is sorted. Right rows of groups without a left row
are dropped.

Invariants: each left row comes out once, groups in the order of their first left rows, rows of one in that of time,
and those with a null key behind all others, without a right row. Of right rows at one time the last in their order is
taken backward, the first forward.

Memory: SCRATCH_BYTES for a row, beside the rows, which stay where they are. It is kept from one join to the next, until
close(): the kernel clears what is given to it page by page, which costs as much as the join itself. Of rows that the
caches do not hold, most of the time is spent in waiting for them: callers with more partition them by key first.

    scratch    left entries │ right entries │ of the side in work: prefixes, addresses, numbers
                                            │ ... and then: what its sort needs

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
from engine.join.row_groups cimport GROUP_CHUNK_ROWS, RowGroups
from engine.join.sorted_batch cimport comparator_of, prefixes_of
from engine.records.byte_kernels cimport prefetch
from engine.records.comparator cimport KeyEquality, RowComparator
from engine.records.normalized_key cimport NormalizedKey, may_differ
from engine.records.outside_keys cimport raise_failed_comparison
from engine.records.row_pages cimport RowPages
from engine.sort.radix_sort cimport IndexEntry, sort_entries

from engine.errors import CorruptBlockError, SchemaError
from engine.graph.plan import AsofDirection
from engine.join.join_spec import JoinInput

cdef enum:
    ENTRY_BYTES = sizeof(IndexEntry)
    LOOK_BYTES = 8 + 8 + 4

#: an entry, and in the same place one after the other what was seen of the row, and an entry that is being sorted
SCRATCH_BYTES = ENTRY_BYTES + LOOK_BYTES

# What was seen of rows, in their order.
cdef struct _RowLooks:
    uint64_t* prefixes
    uint8_t** rows
    int32_t* numbers


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

    cdef int take(self, RowPages pages, RowGroups groups, bint is_left, IndexEntry* entries,
                  IndexEntry* unused) except -1:
        """Put the rows of pages group by group; left ones without a group behind the others.

        Args: entries: room for all of them; unused: LOOK_BYTES for each row.
        """
        cdef int64_t count = 0 if pages is None else pages.row_count
        cdef _RowLooks looks
        cdef int64_t found = 0
        cdef bint has_memory = True
        looks.prefixes = <uint64_t*> unused
        looks.rows = <uint8_t**> (looks.prefixes + count)
        looks.numbers = <int32_t*> (looks.rows + count)
        self.clear()
        self.entries = entries
        with nogil:
            if count:
                pages.rewind()
                has_memory = self._look_at(pages, groups, is_left, &looks, &found)
            self.bounds = <int64_t*> calloc(<size_t> groups.count + 2, sizeof(int64_t))
            if self.bounds == NULL:
                has_memory = False
            elif has_memory and found == count:
                self._place(&looks, count, groups.count, is_left)
                self._sort(groups.count, unused)
        if not has_memory:
            raise MemoryError("groups of an as-of join")
        if found != count:
            raise CorruptBlockError("sizes of rows do not add up in a page of an as-of join")
        raise_failed_comparison()
        return 0

    cdef bint _look_at(self, RowPages pages, RowGroups groups, bint is_left, _RowLooks* looks,
                       int64_t* found) noexcept nogil:
        """Find rows, their groups and prefixes, a chunk while it is near; False: there is no memory."""
        cdef uint8_t nulls[GROUP_CHUNK_ROWS]
        cdef int64_t size = 0
        cdef int64_t at = 0
        while size >= 0 and at < pages.row_count:
            size = pages.next(looks.rows + at, min(<int64_t> GROUP_CHUNK_ROWS, pages.row_count - at))
            if size <= 0:
                break
            self._side.null_keys_of_rows(looks.rows + at, size, nulls)
            if not is_left:
                groups.find(looks.rows + at, size, nulls, looks.numbers + at)
            elif not groups.add(looks.rows + at, size, nulls, looks.numbers + at):
                return False
            self._prefixes.prefixes_of_rows(looks.rows + at, size, looks.prefixes + at)
            at += size
        found[0] = at
        return True

    cdef void _place(self, _RowLooks* looks, int64_t count, int64_t group_count, bint is_left) noexcept nogil:
        """Count the rows of groups, and put each row behind those of its group."""
        cdef int32_t* numbers = looks.numbers
        cdef int64_t row, group
        cdef int64_t begin = 0
        cdef int64_t size
        for row in range(count):
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
        for row in range(count):
            if numbers[row] >= 0:
                self.entries[self.bounds[numbers[row]]] = IndexEntry(looks.prefixes[row], looks.rows[row])
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
    cdef IndexEntry* _scratch           # SCRATCH_BYTES for each row
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
        """Have memory for so many rows of both sides; the system has no page of it before the first write."""
        if rows <= self._room:
            return
        free(self._scratch)
        self._room = 0
        self._scratch = <IndexEntry*> malloc(<size_t> rows * (ENTRY_BYTES + LOOK_BYTES))
        if self._scratch == NULL:
            raise MemoryError("rows of an as-of join")
        self._room = rows

    def join(self, RowPages left not None, RowPages right):
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

    cdef int _take(self, RowPages left, RowPages right) except -1:
        """Put the rows of both sides group by group."""
        cdef int64_t right_count = 0 if right is None else right.row_count
        cdef IndexEntry* rights
        self.reserve(left.row_count + right_count)
        self._groups.clear()
        rights = self._scratch + left.row_count
        self._left.take(left, self._groups, True, self._scratch, rights + right_count)
        self._right.take(right, self._groups, False, rights, rights + right_count)
        return 0

    cdef int _check(self, RowPages rows, JoinSide side) except -1:
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
            if self._group < self._groups.count:
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
