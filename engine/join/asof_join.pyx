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
batches in which they lie are held until their left rows are given out (``AsofOutput``), which happens when these are
held_bytes.

Memory: a batch of the left, one of the right, held_bytes and a batch more. Disk: none. Thread: one.

Invariants: each left row comes out once, in the order in which it came; null keys match nothing; of right rows at one
time the last in their order is taken backward, the first forward.

Source: the merge of pandas' asof kernels, with groups by order instead of by hash table.
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t

from engine.join.asof_output cimport AsofOutput
from engine.join.join_side cimport JoinSide
from engine.join.key_groups cimport PAIRS_MAX
from engine.join.sorted_batch cimport SortedBatch, SortedSide
from engine.records.comparator cimport KeyEquality
from engine.records.outside_keys cimport raise_failed_comparison

from engine.graph.plan import AsofDirection

cdef int UNKNOWN = 2

# A right row, and in which batch it lies.
cdef struct Found:
    uint8_t* row                        # NULL: none
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
    cdef AsofOutput _output
    cdef bint _passes_equal             # the cursor goes past right rows at the very time
    cdef bint _skips_equal              # nearest, strict: the row passed last may be at the very time
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
    cdef int64_t _begin                 # first left row that is not given out
    cdef readonly int64_t left_rows
    cdef readonly int64_t right_rows

    def __cinit__(self, spec not None, rule not None, int64_t held_bytes):
        self._output = AsofOutput(spec, rule)
        left, right = self._output.left, self._output.right
        columns = [(int(side), int(column)) for side, column in spec.output]
        group_keys = len(spec.left.keys) - 1
        self._left_side = SortedSide(0, left, {column for side, column in columns if not side}, group_keys)
        self._right_side = SortedSide(1, right, {column for side, column in columns if side}, group_keys)
        *left_by, left_time = spec.left.keys
        *right_by, right_time = spec.right.keys
        self._time_order = KeyEquality(left.codec, [left_time], right.codec, [right_time])
        self._times_tie = not self._left_side.decides
        if left_by:
            self._groups = KeyEquality(left.codec, left_by, right.codec, right_by)
        self._skips_equal = rule.direction is AsofDirection.NEAREST and rule.strict
        self._passes_equal = rule.strict if rule.direction is AsofDirection.FORWARD else not rule.strict
        self._passes_equal = self._passes_equal or self._skips_equal
        self._held_most = held_bytes
        self._held = {}

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
            self._output.before[place] = NULL
            self._output.after[place] = NULL
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
                if self._output.looks_ahead and self._relation == 0:
                    self._output.after[place] = right.rows[right.position]
            if self._skips_equal:
                if self._less.row != NULL and self._is_of_group(row, self._less.row):
                    self._output.before[place] = self._less.row
            elif self._output.looks_back and self._is_last_of_group:
                self._output.before[place] = self._last.row
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
            self._last = Found(right.rows[passed], self._right_number)
        if less >= 0:
            self._less = Found(right.rows[less], self._right_number)
        return position < right.count

    cdef inline int _compare_times(self, SortedBatch left, SortedBatch right, int64_t position) noexcept nogil:
        cdef uint64_t one = left.prefixes[left.position]
        cdef uint64_t other = right.prefixes[position]
        if one != other:
            return -1 if one < other else 1
        return self._time_order.order_of(left.rows[left.position], right.rows[position]) if self._times_tie else 0

    cdef bint _is_of_group(self, const uint8_t* left, const uint8_t* right) noexcept nogil:
        return self._groups is None or self._groups.rows_equal(left, right)

    def _give_out(self):
        """Yield the left rows whose candidates are known."""
        self._output.lefts = self._left.rows + self._begin
        self._output.count = self._left.position - self._begin
        yield from self._output.batches()
        self._begin = self._left.position
        self._let_go()

    def close(self):
        """Let all batches go; idempotent."""
        self._left = None
        self._right = None
        self._held = {}
