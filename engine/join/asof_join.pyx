"""AsofJoin: gives each left row the right row that is nearest in time, in one pass over two sorted inputs.

    join = AsofJoin(spec, rule, held_bytes)                         keys: those that are equal, then the time
    for batch in join.join(left_rows, right_rows): ...              iterators of RowBatch, nulls first, ascending

    left   a1   a4   a9   b2                for a4, backward:  last = a3, next = a6
                |                           the cursor stands at the first right row that is later; it and the row
    right  a0 a3 | a6   b1 b7               that it passed last are the candidates, if they are of the same group
              ^    ^
           last    cursor

Groups are compared once for each of them on either side; within one the times decide, as far as they can by 64 bits of
each. One row of a group is looked at a time, so a group may be as large as it likes. Candidates are addresses: the
batches in which they lie are held until their left rows are given out, which happens when these are held_bytes. Where
distances decide (``AsofRule``), the times of both candidates are decoded, a batch at a time.

Memory: a batch of the left, one of the right, held_bytes and a batch more. Disk: none. Thread: one.

Invariants: each left row comes out once, in the order in which it came; null keys match nothing; of right rows at one
time the last in their order is taken backward, the first forward. Output batches have at most 8192 rows and about 1 MiB
of them in binary form, or a single row.

Source: the merge of pandas' asof kernels, with groups by order instead of by hash table.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free

from engine.join.join_side cimport JoinSide
from engine.join.key_groups cimport PAIRS_BYTES, PAIRS_MAX
from engine.join.pair_columns cimport PairColumns
from engine.join.sorted_batch cimport SortedBatch, SortedSide
from engine.records.comparator cimport KeyEquality
from engine.records.outside_keys cimport raise_failed_comparison

import pyarrow as pa

from engine.errors import SchemaError
from engine.graph.plan import AsofDirection

cdef int UNKNOWN = 2

# A right row, and in which batch it lies.
cdef struct Found:
    uint8_t* row                        # NULL: none
    uint32_t size                       # with what lies outside and is given out
    int64_t batch


@cython.final
cdef class AsofJoin:
    """One subtask's as-of join.

    Args:
        spec: JoinSpec of a left join; the last key is the time.
        rule: AsofRule.
        held_bytes: of right batches with candidates that are not given out yet.

    Raises:
        SchemaError: there are no keys, or they cannot be compared.
    """

    cdef SortedSide _left_side
    cdef SortedSide _right_side
    cdef KeyEquality _groups            # None: there is one group
    cdef KeyEquality _time_order
    cdef bint _times_tie                # equal prefixes do not say that times are equal
    cdef object _rule
    cdef bint _passes_equal             # the cursor goes past right rows at the very time
    cdef bint _looks_back
    cdef bint _looks_ahead
    cdef bint _skips_equal              # nearest, strict: the row passed last may be at the very time
    cdef PairColumns _columns
    cdef object _schema
    cdef int32_t _left_time
    cdef int32_t _right_time
    cdef int64_t _held_most
    cdef object _lefts
    cdef object _rights
    cdef SortedBatch _left
    cdef SortedBatch _right             # None at the end
    cdef int64_t _right_number
    cdef dict _held                     # number -> batch that candidates lie in
    cdef int64_t _held_bytes
    cdef int _relation                  # of the left's group to that where the right stands: < 0, 0, > 0, UNKNOWN
    cdef bint _is_last_of_group         # of the left's
    cdef Found _last                    # passed last
    cdef Found _less                    # passed last and earlier than the left row
    cdef Found* _before                 # [PAIRS_MAX] of the left rows from _begin on
    cdef Found* _after
    cdef uint8_t** _rows                # [PAIRS_MAX]
    cdef int64_t _begin                 # first left row that is not given out
    cdef readonly int64_t left_rows
    cdef readonly int64_t right_rows

    def __cinit__(self, spec not None, rule not None, int64_t held_bytes):
        if not spec.left.keys:
            raise SchemaError("an as-of join has no column to compare by")
        left = JoinSide(spec.left)
        right = JoinSide(spec.right)
        columns = [(int(side), int(column)) for side, column in spec.output]
        group_keys = len(spec.left.keys) - 1
        self._left_side = SortedSide(0, left, {column for side, column in columns if not side}, group_keys)
        self._right_side = SortedSide(1, right, {column for side, column in columns if side}, group_keys)
        *left_by, self._left_time = spec.left.keys
        *right_by, self._right_time = spec.right.keys
        self._time_order = KeyEquality(left.codec, [self._left_time], right.codec, [self._right_time])
        self._times_tie = not self._left_side.decides
        if left_by:
            self._groups = KeyEquality(left.codec, left_by, right.codec, right_by)
        self._columns = PairColumns(left, right, columns)
        self._schema = spec.output_schema
        self._rule = rule
        self._looks_back = rule.direction is not AsofDirection.FORWARD
        self._looks_ahead = rule.direction is not AsofDirection.BACKWARD
        self._skips_equal = self._looks_back and self._looks_ahead and rule.strict
        self._passes_equal = rule.strict if rule.direction is AsofDirection.FORWARD else not rule.strict
        self._passes_equal = self._passes_equal or self._skips_equal
        self._held_most = held_bytes
        self._held = {}
        self._before = <Found*> calloc(PAIRS_MAX, sizeof(Found))
        self._after = <Found*> calloc(PAIRS_MAX, sizeof(Found))
        self._rows = <uint8_t**> calloc(PAIRS_MAX, sizeof(uint8_t*))
        if self._before == NULL or self._after == NULL or self._rows == NULL:
            raise MemoryError("scratch of an as-of join")

    def __dealloc__(self):
        free(self._before)
        free(self._after)
        free(self._rows)

    def join(self, left_rows, right_rows):
        """Yield the output of two sorted inputs; once.

        Args: left_rows, right_rows: RowBatch after RowBatch, their rows good until close().
        Raises: SchemaError for rows of other types; what the inputs raise.
        """
        cdef bint is_complete
        self._rights = iter(right_rows)
        self._next_right()
        for batch in left_rows:
            if not batch.num_rows:
                continue
            self._left = self._left_side.open(batch, True)
            self.left_rows += self._left.count
            self._begin = 0
            while self._left.position < self._left.count:
                with nogil:
                    is_complete = self._merge(self._left, self._right)
                raise_failed_comparison()
                if not is_complete:
                    self._next_right()
                if self._left.position - self._begin == PAIRS_MAX or self._held_bytes > self._held_most:
                    yield from self._give_out()
            yield from self._give_out()
        self._left = None

    cdef int _next_right(self) except -1:
        """Go on to the next right batch; hold the one before if it may have candidates."""
        if self._right is not None:
            self._held[self._right_number] = self._right
            self._held_bytes += self._right.total_bytes
            if self._left is None or self._left.position == self._begin:
                self._let_go()
        self._right = None
        self._right_number += 1
        for batch in self._rights:
            if batch.num_rows:
                self._right = self._right_side.open(batch, True)
                self.right_rows += self._right.count
                break
        return 0

    cdef int _let_go(self) except -1:
        """Hold no batches but those of the rows that were passed last."""
        cdef SortedBatch batch
        for number in list(self._held):
            if number == self._last.batch or number == self._less.batch:
                continue
            batch = self._held.pop(number)
            self._held_bytes -= batch.total_bytes
        return 0

    # Find candidates of left rows; False: only the next right batch can tell for the row where the left stands.
    cdef bint _merge(self, SortedBatch left, SortedBatch right) noexcept nogil:
        cdef int64_t place
        cdef uint8_t* row
        while left.position < left.count and left.position - self._begin < PAIRS_MAX:
            place = left.position - self._begin
            row = left.rows[left.position]
            self._before[place].row = NULL
            self._after[place].row = NULL
            if left.null_keys[left.position]:
                left.position += 1
                continue
            if left.starts[left.position]:
                self._relation = UNKNOWN
                self._is_last_of_group = self._last.row != NULL and self._is_of_group(row, self._last.row)
            if self._skips_equal and self._is_last_of_group and self._time_order.order_of(row, self._last.row) > 0:
                self._less = self._last
            if right is not None:
                if not self._pass(left, right):
                    return False
                if self._looks_ahead and self._relation == 0:
                    self._after[place] = Found(
                        right.rows[right.position], right.sizes[right.position], self._right_number)
            if self._skips_equal:
                if self._less.row != NULL and self._is_of_group(row, self._less.row):
                    self._before[place] = self._less
            elif self._looks_back and self._is_last_of_group:
                self._before[place] = self._last
            left.position += 1
        return True

    # Go past right rows that come before the left row; False: past all of them.
    cdef bint _pass(self, SortedBatch left, SortedBatch right) noexcept nogil:
        cdef int64_t position = right.position
        cdef int64_t passed = -1
        cdef int64_t less = -1
        cdef int compared
        while position < right.count:
            if not right.null_keys[position]:
                if right.starts[position] or self._relation == UNKNOWN:
                    self._relation = 0 if self._groups is None else self._groups.order_of(
                        left.rows[left.position], right.rows[position])
                compared = self._relation if self._relation != 0 else self._compare_times(left, right, position)
                if compared < 0 or (compared == 0 and not self._passes_equal):
                    break
                passed = position
                if compared > 0:
                    less = position
                if self._relation == 0:
                    self._is_last_of_group = True
            position += 1
        right.position = position
        if passed >= 0:
            self._last = Found(right.rows[passed], right.sizes[passed], self._right_number)
        if less >= 0:
            self._less = Found(right.rows[less], right.sizes[less], self._right_number)
        return position < right.count

    cdef inline int _compare_times(self, SortedBatch left, SortedBatch right, int64_t position) noexcept nogil:
        cdef uint64_t one = left.prefixes[left.position]
        cdef uint64_t other = right.prefixes[position]
        if one != other:
            return -1 if one < other else 1
        return self._time_order.order_of(left.rows[left.position], right.rows[position]) if self._times_tie else 0

    cdef bint _is_of_group(self, const uint8_t* left, const uint8_t* right) noexcept nogil:
        return self._groups is None or self._groups.rows_equal(left, right)

    # ------------------------------------------------------------------------------------------------------- output

    def _give_out(self):
        """Yield the left rows whose candidates are known."""
        cdef int64_t count = self._left.position - self._begin
        cdef int64_t begin = 0
        cdef int64_t end
        cdef Found* chosen = self._before if self._looks_back else self._after
        if count and self._rule.measures:
            self._choose(count)
            chosen = self._before
        while begin < count:
            with nogil:
                end = self._end_of_batch(chosen, begin, count)
            arrays = self._columns.of_pairs(self._left.rows + self._begin + begin, self._rows, end - begin)
            yield pa.RecordBatch.from_arrays(arrays, schema=self._schema)
            del arrays
            begin = end
        self._begin = self._left.position
        self._let_go()

    cdef int64_t _end_of_batch(self, Found* chosen, int64_t begin, int64_t count) noexcept nogil:
        """Set the right rows of the next output batch; return its end."""
        cdef int64_t end = begin
        cdef int64_t used = 0
        while end < count:
            used += self._left.sizes[self._begin + end] + (chosen[end].size if chosen[end].row != NULL else 0)
            if end > begin and used > PAIRS_BYTES:
                break
            self._rows[end - begin] = chosen[end].row
            end += 1
        return end

    cdef int _choose(self, int64_t count) except -1:
        """Leave of the candidates before and after the chosen one, as the one before."""
        cdef int64_t index
        cdef const uint8_t* choices
        times = self._left_side.side.codec.decode(self._left.rows + self._begin, count, &self._left_time, 1).column(0)
        chosen = self._rule.choose(times, self._times(self._before, count), self._times(self._after, count))
        choices = <const uint8_t*> <uintptr_t> chosen.buffers()[1].address + <int64_t> chosen.offset
        with nogil:
            for index in range(count):
                if choices[index] == 0:
                    self._before[index].row = NULL
                elif choices[index] == 2:
                    self._before[index] = self._after[index]
        return 0

    cdef object _times(self, Found* found, int64_t count):
        cdef int64_t index
        with nogil:
            for index in range(count):
                self._rows[index] = found[index].row
        return self._right_side.side.codec.decode(self._rows, count, &self._right_time, 1).column(0)

    def close(self):
        """Let all batches go; idempotent."""
        self._left = None
        self._right = None
        self._held = {}
