"""RangeJoin: joins rows that have an interval with the rows of the other side whose value, the point, lies in it.

    join = RangeJoin(spec, where, space, block_bytes)
    for batch in join.join(left_rows, right_rows): ...      iterators of RowBatch, nulls first, ascending

    points       | 1 3 4 | 7 8 9 | ...          sorted by equal keys and the point, a block of block_bytes at a time
    intervals    [0,2) [2,8) [3,4) [8,9) ...    sorted by equal keys and where they begin

Each interval is looked up in the block by two binary searches: its points lie side by side. One that begins behind the
block waits for the next one; one that may go on behind it is carried over in a file, and looked up there again. Such an
interval has all points of the block behind its begin, so the work is that of both sorts and of the pairs. A condition
beside the range is asked about candidate pairs. That all points of an interval have a match is noted in constant work,
so semi and anti joins without a condition make no pairs.

Memory: a batch of either side, block_bytes and a batch, 8192 pairs. Disk: intervals that are carried over, twice.

Invariants: a null key, point or bound matches nothing; no pair comes twice; output batches have at most 8192 rows and
about 1 MiB of them in binary form, or a single pair. Order of the output: none.

Limits: every join type but cross takes keys; a join without equal keys is inner (or cross) here.

Source: block-wise band joins (DeWitt, Naughton, Schneider, "An evaluation of non-equijoin algorithms", 1991).
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free

from engine.iomanager.spill_writer cimport SpillWriter
from engine.join.join_side cimport JoinSide
from engine.join.key_groups cimport PAIRS_BYTES, PAIRS_MAX
from engine.join.pair_columns cimport PairColumns
from engine.join.point_block cimport PointBlock
from engine.join.row_stream cimport RowStream
from engine.join.sorted_batch cimport (
    ROW_ELSEWHERE,
    ROW_MATCHED,
    ROW_UNMATCHED,
    KeyOrder,
    SortedBatch,
    SortedSide,
)
from engine.join.span_pairs cimport Span, SpanPairs
from engine.records.comparator cimport KeyEquality
from engine.records.outside_keys cimport raise_failed_comparison
from engine.records.row_batch cimport RowBatch, new_row_batch
from engine.records.row_codec cimport row_size
from engine.records.row_mask cimport Mask, mask_from

import pyarrow as pa

from engine.errors import SchemaError
from engine.join.join_spec import JoinInput
from engine.join.join_type import Matched

cdef enum:
    STREAM_ROWS = 1024          # carried rows that are looked up together


@cython.final
cdef class RangeJoin:
    """One subtask's join by a range.

    Args:
        spec: JoinSpec, not null-aware. Points are sorted by keys and point, intervals by keys and their first bound.
        where: RangeSpec.
        space: SpillSpace for intervals that are carried over. Borrowed.
        block_bytes: points that are kept in memory, in binary form; spec.row_limit bounds their number.
    """

    cdef SortedSide _points             # by keys and point
    cdef SortedSide _lowers             # by keys and lower bound; None: there is none
    cdef SortedSide _uppers
    cdef KeyOrder _to_lower             # points with lower bounds
    cdef KeyOrder _to_upper
    cdef KeyEquality _keys              # points with intervals, by equal keys alone; None: there are none
    cdef bint _lower_is_inclusive
    cdef bint _upper_is_inclusive
    cdef bint _is_point_left
    cdef bint _returns_pairs
    cdef bint _skips_matched            # a left row that has a match needs no more pairs
    cdef int _points_returned           # RowState of the points that are returned alone, -1: none
    cdef int _intervals_returned
    cdef object _condition
    cdef PairColumns _columns
    cdef PairColumns _asked
    cdef object _schema
    cdef object _space
    cdef int64_t _block_bytes
    cdef int64_t _block_rows
    cdef PointBlock _block
    cdef bint _is_last                  # there are no points behind the block
    cdef object _point_batches          # iterators
    cdef object _interval_batches
    cdef SortedBatch _next_points       # None at the end
    cdef SortedBatch _lower             # the intervals, by each of their bounds; both None at the end
    cdef SortedBatch _upper
    cdef list _carried                  # [(state, file)]
    cdef list _writers                  # by state
    cdef RowStream _stream              # what close() ends when join() was left
    cdef SpanPairs _pairs               # of the intervals that are looked up
    cdef uint8_t** _rows                # [2 * PAIRS_MAX] left ones, then right ones
    cdef readonly int64_t candidate_pairs
    cdef readonly int64_t blocks
    cdef readonly int64_t carried_rows

    def __cinit__(self, spec not None, where not None, space, int64_t block_bytes):
        rule = spec.rule
        left, right = JoinSide(spec.left), JoinSide(spec.right)
        self._is_point_left = where.is_point_left
        self._set_sides(spec, where)
        self._condition = spec.condition
        asked = () if self._condition is None else self._condition.columns
        asked = [(int(side), int(column)) for side, column in asked]
        self._columns = PairColumns(left, right, [(int(side), int(column)) for side, column in spec.output])
        self._asked = PairColumns(left, right, asked)
        self._schema = spec.output_schema
        self._space = space
        self._block_bytes = block_bytes
        self._block_rows = spec.row_limit or 0
        self._returns_pairs = rule.matched is Matched.PAIRS
        self._skips_matched = not self._returns_pairs
        left_returned = ROW_UNMATCHED if rule.unmatched_left else -1
        if rule.matched is Matched.LEFT_ONCE:
            left_returned = ROW_MATCHED
        right_returned = ROW_UNMATCHED if rule.unmatched_right else -1
        self._points_returned = left_returned if self._is_point_left else right_returned
        self._intervals_returned = right_returned if self._is_point_left else left_returned
        self._block = PointBlock()
        self._carried = []
        self._pairs = SpanPairs(self._skips_matched, self._is_point_left)
        self._rows = <uint8_t**> calloc(2 * PAIRS_MAX, sizeof(uint8_t*))
        if self._rows == NULL:
            raise MemoryError("scratch of a range join")

    cdef int _set_sides(self, spec, where) except -1:
        """Say by which columns points and bounds compare, and which of their values are given out."""
        points, intervals = (spec.left, spec.right) if where.is_point_left else (spec.right, spec.left)
        named = list(spec.output) + ([] if spec.condition is None else list(spec.condition.columns))
        given = [{int(column) for side, column in named if (side == 0) == is_left} for is_left in (True, False)]
        point_given, interval_given = given if where.is_point_left else (given[1], given[0])
        if where.lower is None and where.upper is None:
            raise SchemaError("a range join has no bound")
        point_side = JoinSide(JoinInput(points.schema, (*points.keys, where.point)))
        self._points = SortedSide(0, point_side, point_given)
        if where.lower is not None:
            side = JoinSide(JoinInput(intervals.schema, (*intervals.keys, where.lower)))
            self._lowers = SortedSide(1, side, interval_given)
            self._to_lower = KeyOrder(point_side, side)
        if where.upper is not None:
            side = JoinSide(JoinInput(intervals.schema, (*intervals.keys, where.upper)))
            self._uppers = SortedSide(1, side, interval_given)
            self._to_upper = KeyOrder(point_side, side)
        if points.keys:
            interval_side = JoinSide(intervals)
            self._keys = KeyEquality(point_side.codec, list(points.keys), interval_side.codec, list(intervals.keys))
        self._lower_is_inclusive = where.lower_is_inclusive
        self._upper_is_inclusive = where.upper_is_inclusive
        return 0

    def __dealloc__(self):
        free(self._rows)

    def join(self, left_rows, right_rows):
        """Yield the output of two sorted inputs; once.

        Args: left_rows, right_rows: RowBatch after RowBatch, their rows good until close().
        Raises: SchemaError for rows of other types; what the inputs, the condition and the disk raise.
        """
        self._point_batches, self._interval_batches = map(iter, (left_rows, right_rows))
        if not self._is_point_left:
            self._point_batches, self._interval_batches = self._interval_batches, self._point_batches
        self._go_to_next_points()
        self._go_to_next_intervals()
        while self._next_points is not None and self._is_wanted():
            yield from self._fill_block()
            if self._block.count == 0 and not self._is_last:
                continue
            self.blocks += 1
            self._writers = [None, None]
            yield from self._join_carried()
            yield from self._join_intervals()
            self._carried = [
                (state, writer.finish()) for state, writer in enumerate(self._writers) if writer is not None
            ]
            if self._points_returned >= 0:
                yield from self._return_points()
        self._block.clear()
        while self._lower is not None or self._upper is not None:
            intervals = self._intervals()
            yield from self._return_intervals(intervals, intervals.position, intervals.count)
            self._go_to_next_intervals()

    cdef bint _is_wanted(self) noexcept:
        """Whether the points that are left may give output."""
        cdef bint has_intervals = self._lower is not None or self._upper is not None or bool(self._carried)
        return has_intervals or self._points_returned == ROW_UNMATCHED

    cdef int _go_to_next_points(self) except -1:
        self._next_points = None
        for batch in self._point_batches:
            if batch.num_rows:
                self._next_points = self._points.open(batch, True)
                break
        return 0

    cdef int _go_to_next_intervals(self) except -1:
        self._lower = self._upper = None
        for batch in self._interval_batches:
            if batch.num_rows:
                self._open_intervals(batch)
                break
        return 0

    cdef int _open_intervals(self, RowBatch batch) except -1:
        if self._lowers is not None:
            self._lower = self._lowers.open(batch, True)
        if self._uppers is not None:
            self._upper = self._uppers.open(batch, True)
        return 0

    cdef SortedBatch _intervals(self):
        """The intervals that are open: their states and sizes."""
        return self._lower if self._lower is not None else self._upper

    def _fill_block(self):
        """Take as many points as fit; yield those that are null where they are wanted."""
        cdef SortedBatch batch
        cdef int64_t index
        self._block.clear()
        while self._next_points is not None:
            batch = self._next_points
            self._block.append(batch)
            self._go_to_next_points()
            if self._points_returned == ROW_UNMATCHED:
                with nogil:
                    for index in range(batch.count):
                        batch.states[index] = ROW_UNMATCHED if batch.null_keys[index] else ROW_ELSEWHERE
                yield from self._return_batch(batch, 0, batch.count, ROW_UNMATCHED, not self._is_point_left)
            if self._block.total_bytes > self._block_bytes or 0 < self._block_rows <= self._block.count:
                break
        self._is_last = self._next_points is None

    # ---------------------------------------------------------------------------------------------------- intervals

    def _join_carried(self):
        """Look up the intervals that may go on from the block before."""
        cdef RowBatch chunk
        cdef SortedBatch lower = self._lower
        cdef SortedBatch upper = self._upper
        cdef SortedBatch intervals
        cdef int64_t count, index
        cdef uint8_t state
        carried, self._carried = self._carried, []
        for state, file in carried:
            self._stream = RowStream(file)
            while True:
                chunk = new_row_batch(self._bounds().side.codec, STREAM_ROWS)
                count = self._stream.next_rows(chunk.rows, STREAM_ROWS, PAIRS_BYTES)
                if count == 0:
                    break
                chunk.end(count)
                self._open_intervals(chunk)
                intervals = self._intervals()
                with nogil:
                    for index in range(count):
                        intervals.states[index] = state
                yield from self._join_open(True)
            self._stream.close()
            self._stream = None
            file.delete()
        self._lower, self._upper = lower, upper

    cdef SortedSide _bounds(self):
        return self._lowers if self._lowers is not None else self._uppers

    def _join_intervals(self):
        """Look up the intervals that begin in the block or before it."""
        cdef SortedBatch intervals
        while self._lower is not None or self._upper is not None:
            intervals = self._intervals()
            yield from self._join_open(False)
            if intervals.position < intervals.count:
                break
            self._go_to_next_intervals()

    def _join_open(self, bint is_carried):
        """Join the open intervals, up to the first that begins behind the block."""
        cdef SortedBatch intervals = self._intervals()
        cdef bint is_through = False
        while not is_through and intervals.position < intervals.count:
            with nogil:
                is_through = self._find_spans(self._pairs, intervals, is_carried)
            raise_failed_comparison()
            yield from self._join_spans(intervals)
            self._carry_over(intervals)
            yield from self._return_intervals(intervals, self._pairs.begin, self._pairs.end)
            intervals.position = self._pairs.end

    # Find the points of the next intervals; True: the one behind them begins behind the block.
    cdef bint _find_spans(self, SpanPairs pairs, SortedBatch intervals, bint is_carried) noexcept nogil:
        cdef int64_t place = intervals.position
        cdef int64_t begin, end
        cdef int64_t count = self._block.count
        pairs.begin = place
        while place < intervals.count and place - pairs.begin < PAIRS_MAX:
            if ((self._lower is not None and self._lower.null_keys[place])
                    or (self._upper is not None and self._upper.null_keys[place])):
                pairs.spans[place - pairs.begin] = Span(0, 0, False)
                place += 1
                continue
            begin = self._begin_of(intervals, place)
            if begin == count and not self._is_last and not is_carried:
                pairs.end = place
                return True
            end = self._end_of(intervals, place)
            pairs.spans[place - pairs.begin] = Span(begin, max(begin, end), end == count and not self._is_last)
            place += 1
        pairs.end = place
        return False

    cdef int64_t _begin_of(self, SortedBatch intervals, int64_t place) noexcept nogil:
        if self._lower is not None:
            return self._block.first_from(
                self._to_lower, self._lower.prefixes[place], intervals.rows[place], self._lower_is_inclusive, 0)
        if self._keys is not None:
            return self._block.first_of_keys(self._keys, intervals.rows[place], True)
        return 0

    cdef int64_t _end_of(self, SortedBatch intervals, int64_t place) noexcept nogil:
        if self._upper is not None:
            return self._block.first_from(
                self._to_upper, self._upper.prefixes[place], intervals.rows[place], not self._upper_is_inclusive, 0)
        if self._keys is not None:
            return self._block.first_of_keys(self._keys, intervals.rows[place], False)
        return self._block.count

    cdef int _carry_over(self, SortedBatch intervals) except -1:
        """Write the intervals that may have points in the next block."""
        cdef int64_t index
        cdef int state
        cdef SpillWriter writer
        for state in (ROW_UNMATCHED, ROW_MATCHED):
            if state == ROW_MATCHED and self._skips_matched and not self._is_point_left:
                # what is returned of it is known
                continue
            if not self._pairs.goes_on(intervals, state):
                continue
            if self._writers[state] is None:
                block_size = max(1024, min(256 << 10, self._block_bytes // 4))
                self._writers[state] = self._space.writer("join-intervals", block_size=block_size)
            writer = self._writers[state]
            with nogil:
                for index in range(self._pairs.begin, self._pairs.end):
                    if self._pairs.spans[index - self._pairs.begin].goes_on and intervals.states[index] == state:
                        writer.write(intervals.rows[index], row_size(intervals.rows[index]))
                        intervals.states[index] = ROW_ELSEWHERE
                        self.carried_rows += 1
        return 0

    # -------------------------------------------------------------------------------------------------------- pairs

    def _join_spans(self, SortedBatch intervals):
        """Yield the pairs of the spans, and note which rows have a match."""
        cdef SpanPairs pairs = self._pairs
        cdef int64_t count
        if self._condition is None:
            with nogil:
                pairs.mark_matched(self._block, intervals)
            if not self._returns_pairs:
                return
        pairs.rewind()
        while True:
            with nogil:
                count = pairs.next_pairs(self._block, intervals)
            if count == 0:
                return
            self.candidate_pairs += count
            if self._condition is not None:
                self._confirm(intervals)
            if self._returns_pairs and pairs.count > 0:
                yield pa.RecordBatch.from_arrays(self._taken(intervals, self._columns), schema=self._schema)

    cdef list _taken(self, SortedBatch intervals, PairColumns columns):
        """Columns of the pairs."""
        cdef SpanPairs pairs = self._pairs
        cdef uint8_t** points = self._rows if self._is_point_left else self._rows + PAIRS_MAX
        cdef uint8_t** others = self._rows + PAIRS_MAX if self._is_point_left else self._rows
        cdef int64_t index
        with nogil:
            for index in range(pairs.count):
                points[index] = self._block.rows[pairs.points[index]]
                others[index] = intervals.rows[pairs.intervals[index]]
        return columns.of_pairs(self._rows, self._rows + PAIRS_MAX, pairs.count)

    cdef int _confirm(self, SortedBatch intervals) except -1:
        """Leave only the pairs that meet the condition."""
        cdef Mask mask
        asked = pa.RecordBatch.from_arrays(self._taken(intervals, self._asked), schema=self._condition.schema)
        mask = mask_from(self._condition.predicate(asked))
        with nogil:
            self._pairs.keep_pairs(self._block, intervals, mask.words)
        return 0

    # ------------------------------------------------------------------------------------------------------- output

    def _return_intervals(self, SortedBatch intervals, int64_t begin, int64_t end):
        if self._intervals_returned >= 0:
            yield from self._return_batch(intervals, begin, end, self._intervals_returned, self._is_point_left)

    def _return_batch(self, SortedBatch batch, int64_t begin, int64_t end, int state, int side):
        """Yield the rows of a batch in a state; side: 0 left, 1 right."""
        cdef int64_t count
        while begin < end:
            with nogil:
                count = self._choose_rows(batch.rows, batch.sizes, batch.states, &begin, end, state)
            if count:
                yield self._alone(count, side)

    def _return_points(self):
        """Yield the points of the block that come out alone."""
        cdef int64_t begin = 0
        cdef int64_t count
        with nogil:
            self._block.count_covers()
        while begin < self._block.count:
            with nogil:
                count = self._choose_rows(self._block.rows, self._block.sizes, self._block.states, &begin,
                                          self._block.count, self._points_returned)
            if count:
                yield self._alone(count, not self._is_point_left)

    cdef int64_t _choose_rows(self, uint8_t** rows, uint32_t* sizes, uint8_t* states, int64_t* begin, int64_t end,
                              int state) noexcept nogil:
        """Take the next rows in a state, begin moves behind them; return how many."""
        cdef int64_t count = 0
        cdef int64_t used = 0
        while begin[0] < end and count < PAIRS_MAX:
            if states[begin[0]] == state:
                used += sizes[begin[0]]
                if count > 0 and used > PAIRS_BYTES:
                    break
                self._rows[count] = rows[begin[0]]
                count += 1
            begin[0] += 1
        return count

    cdef object _alone(self, int64_t count, int side):
        return pa.RecordBatch.from_arrays(self._columns.of_rows(side, self._rows, count), schema=self._schema)

    def close(self):
        """End what an unfinished join still reads; idempotent. Its files go with the spill space."""
        self._next_points = None
        self._lower = self._upper = None
        self._block.clear()
        if self._stream is not None:
            self._stream.close()
            self._stream = None
