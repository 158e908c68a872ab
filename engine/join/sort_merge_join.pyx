"""SortMergeJoin: joins two inputs that come sorted by their keys, in memory that does not depend on the keys.

    join = SortMergeJoin(spec, space, group_bytes)
    for batch in join.join(left_rows, right_rows): ...              iterators of RowBatch, nulls first, ascending
    join.close()

    left  ─► rows  ┐                    groups inside both batches ─► pairs ─► condition ─► decoded: output
                   ├─► merge ─► stops ─┤
    right ─► rows  ┘                    a group that reaches a batch's end is *open*:
                                          right rows of the key fit group_bytes: kept, the left streams past them
                                          else: written to a file; the left comes in blocks of group_bytes, and the
                                          file is streamed past each block

Each batch carries a state for every row: when it has been merged to its end and its open group is through, its rows
without match (or, in a semi join, with one) are returned. The states of rows that lie in a file are carried from block
to block in a file as well (MatchedRows). Semi and anti joins without condition look at keys only and keep no groups.

Rows stay rows until they are given out: keys are compared where they lie, also outside of their rows, and of a pair the
columns of the output are decoded, no others. Very wide values are so read for pairs that are given out, one pair at a
time; those that a condition asks for, within a turn.

Memory: one batch of either side, at most group_bytes and a batch of an open group, 8192 pairs. Disk: an open group that
does not fit is written once and read once for each block of the other side.

Invariants: a null key matches nothing; no pair comes twice; output batches have at most 8192 rows and about 1 MiB of
them in binary form, or a single pair. Order of the output: none.

Limits: every join type with keys, not null-aware; one thread.

Source: Flink's AbstractSortMergeOuterJoinIterator and NonReusingMergeInnerJoinIterator; those keep one side of a group
in a BlockResettableIterator that spills; reading the other side in blocks is ours.
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc

from engine.iomanager.spill_writer cimport SpillWriter
from engine.join.join_side cimport JoinSide
from engine.join.key_groups cimport (
    PAIRS_BYTES,
    PAIRS_MAX,
    STOP_GROUPS_FULL,
    STOP_OPEN_GROUP,
    KeyGroups,
)
from engine.join.matched_rows cimport MatchedRows
from engine.join.pair_columns cimport PairColumns
from engine.join.row_stream cimport RowStream
from engine.join.sorted_batch cimport (
    ROW_ELSEWHERE,
    ROW_MATCHED,
    ROW_UNMATCHED,
    KeyOrder,
    SortedBatch,
    SortedSide,
    end_of_key,
)
from engine.records.outside_keys cimport raise_failed_comparison
from engine.records.row_batch cimport RowBatch, new_row_batch
from engine.records.row_codec cimport row_size
from engine.records.row_mask cimport Mask, mask_from

import pyarrow as pa

from engine.errors import SchemaError
from engine.join.join_type import Matched

cdef enum:
    STREAM_ROWS = 1024          # rows of a spilled group that are joined together


@cython.final
cdef class SortMergeJoin:
    """One subtask's merge of two sorted inputs.

    Args:
        spec: JoinSpec of a join with keys, not null-aware; its inputs are sorted by them, in that order.
        space: SpillSpace for groups that do not fit. Borrowed.
        group_bytes: rows of one key that are kept in memory, in binary form; spec.row_limit bounds their number.

    Raises:
        SchemaError: there are no keys to sort by, or they cannot be compared.
    """

    cdef SortedSide _left_side
    cdef SortedSide _right_side
    cdef KeyOrder _order
    cdef KeyGroups _groups
    cdef object _space
    cdef int64_t _group_bytes
    cdef int64_t _group_rows
    cdef object _condition
    cdef bint _returns_pairs
    cdef bint _looks_at_keys_only
    cdef int _left_returned             # RowState of the left rows that are returned alone, -1: none
    cdef int _right_returned
    cdef PairColumns _columns           # of the output
    cdef PairColumns _asked             # of the condition
    cdef object _schema
    cdef object _lefts                  # iterators
    cdef object _rights
    cdef SortedBatch _left              # None at the end
    cdef SortedBatch _right
    cdef RowStream _stream              # what close() ends when join() was left
    cdef MatchedRows _matched
    cdef uint8_t** _rows                # [2 * PAIRS_MAX] of pairs: left ones, then right ones
    cdef readonly int64_t left_rows
    cdef readonly int64_t right_rows
    cdef readonly int64_t spilled_groups
    cdef readonly int64_t block_passes  # times a spilled group was read

    def __cinit__(self, spec not None, space, int64_t group_bytes):
        rule, condition = spec.rule, spec.condition
        if not rule.has_keys or not spec.left.keys:
            raise SchemaError(f"a {spec.how.value} join has no keys to sort by")
        left = JoinSide(spec.left)
        right = JoinSide(spec.right)
        columns = [(int(side), int(column)) for side, column in spec.output]
        asked = [] if condition is None else [(int(side), int(column)) for side, column in condition.columns]
        self._left_side = SortedSide(0, left, {column for side, column in columns + asked if not side})
        self._right_side = SortedSide(1, right, {column for side, column in columns + asked if side})
        self._order = KeyOrder(left, right)
        self._columns = PairColumns(left, right, columns)
        self._asked = PairColumns(left, right, asked)
        self._space = space
        self._group_bytes = group_bytes
        self._group_rows = spec.row_limit or 0
        self._condition = condition
        self._returns_pairs = rule.matched is Matched.PAIRS
        self._looks_at_keys_only = not self._returns_pairs and condition is None
        self._left_returned = ROW_UNMATCHED if rule.unmatched_left else -1
        if rule.matched is Matched.LEFT_ONCE:
            self._left_returned = ROW_MATCHED
        self._right_returned = ROW_UNMATCHED if rule.unmatched_right else -1
        self._groups = KeyGroups(not self._returns_pairs)
        self._schema = spec.output_schema
        self._rows = <uint8_t**> malloc(2 * PAIRS_MAX * sizeof(uint8_t*))
        if self._rows == NULL:
            raise MemoryError("scratch of a sort-merge join")

    def __dealloc__(self):
        free(self._rows)

    def join(self, left_rows, right_rows):
        """Yield the output of two sorted inputs; once.

        Args: left_rows, right_rows: RowBatch after RowBatch, their rows good until close().
        Raises: SchemaError for rows of other types; what the inputs, the condition and the disk raise.
        """
        cdef int stop
        self._lefts = iter(left_rows)
        self._rights = iter(right_rows)
        self._next_left()
        self._next_right()
        while self._left is not None and self._right is not None:
            with nogil:
                stop = self._groups.merge(self._order, self._left, self._right)
            raise_failed_comparison()
            yield from self._join_groups(self._left, self._right)
            if stop == STOP_GROUPS_FULL:
                continue
            if stop == STOP_OPEN_GROUP:
                yield from self._join_open_group()
            if self._left is not None and self._left.position == self._left.count:
                yield from self._return_left(self._left)
                self._next_left()
            if self._right is not None and self._right.position == self._right.count:
                yield from self._return_right(self._right)
                self._next_right()
        while self._left is not None and self._left_returned == ROW_UNMATCHED:
            yield from self._return_left(self._left)
            self._next_left()
        if self._left is not None:
            yield from self._return_left(self._left)
        while self._right is not None and self._right_returned == ROW_UNMATCHED:
            yield from self._return_right(self._right)
            self._next_right()

    cdef int _next_left(self) except -1:
        self._left = None
        for batch in self._lefts:
            if batch.num_rows:
                self._left = self._left_side.open(batch, True)
                self.left_rows += self._left.count
                break
        return 0

    cdef int _next_right(self) except -1:
        self._right = None
        for batch in self._rights:
            if batch.num_rows:
                self._right = self._right_side.open(batch, True)
                self.right_rows += self._right.count
                break
        return 0

    # ------------------------------------------------------------------------------------------------------- output

    def _join_groups(self, SortedBatch left, SortedBatch right):
        """Yield the pairs of the groups found, and note which rows have a match."""
        cdef KeyGroups groups = self._groups
        if self._condition is None:
            with nogil:
                groups.mark_matched(left, right)
        if self._looks_at_keys_only:
            return
        groups.rewind()
        while groups.next_pairs(left, right) > 0:
            if self._condition is not None:
                self._confirm(left, right)
            if self._returns_pairs and groups.pair_count > 0:
                yield self._gather(left, right)

    cdef int _confirm(self, SortedBatch left, SortedBatch right) except -1:
        """Leave only the pairs that meet the condition."""
        cdef Mask mask
        arrays = self._taken(left, right, self._asked)
        if arrays:
            pairs = pa.RecordBatch.from_arrays(arrays, schema=self._condition.schema)
        else:
            pairs = pa.RecordBatch.from_struct_array(pa.array([{}] * self._groups.pair_count, pa.struct([])))
        mask = mask_from(self._condition.predicate(pairs))
        with nogil:
            self._groups.keep_pairs(left, right, mask.words)
        return 0

    cdef list _taken(self, SortedBatch left, SortedBatch right, PairColumns columns):
        """Columns of the pairs."""
        cdef KeyGroups groups = self._groups
        cdef int64_t index
        with nogil:
            for index in range(groups.pair_count):
                self._rows[index] = left.rows[groups.left_rows[index]]
                self._rows[PAIRS_MAX + index] = right.rows[groups.right_rows[index]]
        return columns.of_pairs(self._rows, self._rows + PAIRS_MAX, groups.pair_count)

    cdef object _gather(self, SortedBatch left, SortedBatch right):
        return pa.RecordBatch.from_arrays(self._taken(left, right, self._columns), schema=self._schema)

    def _return_left(self, SortedBatch batch):
        """Yield the rows of a merged batch that are returned alone."""
        if self._left_returned >= 0:
            yield from self._return_rows(batch, self._left_returned)

    def _return_right(self, SortedBatch batch):
        if self._right_returned >= 0:
            yield from self._return_rows(batch, self._right_returned)

    def _return_rows(self, SortedBatch batch, int state):
        cdef int64_t begin = 0
        cdef int64_t count = 0
        cdef int64_t used
        while True:
            with nogil:
                count = 0
                used = 0
                while begin < batch.count and count < PAIRS_MAX:
                    if batch.states[begin] == state:
                        used += batch.sizes[begin]
                        if count > 0 and used > PAIRS_BYTES:
                            break
                        self._rows[count] = batch.rows[begin]
                        count += 1
                    begin += 1
            if count == 0:
                return
            arrays = self._columns.of_rows(batch.side, self._rows, count)
            yield pa.RecordBatch.from_arrays(arrays, schema=self._schema)
            del arrays

    # -------------------------------------------------------------------------------------------------- open groups

    def _join_open_group(self):
        """Join all rows of the key at which both batches stand, however many batches they are in."""
        cdef SortedBatch key = self._right
        cdef int64_t key_row = key.position
        cdef list kept = []
        if self._looks_at_keys_only:
            yield from self._match_open_group(key, key_row)
            return
        if self._keep_right(key, key_row, kept):
            yield from self._stream_left(key, key_row, kept)
        else:
            yield from self._join_spilled_group(key, key_row, kept)

    def _match_open_group(self, SortedBatch key, int64_t key_row):
        """Mark the left rows of the key; the right rows of a semi or anti join are not returned."""
        cdef int64_t end
        while self._left is not None:
            end = self._end(self._left, key, key_row)
            self._groups.set_group(self._left.position, end, 0, 1)
            self._groups.mark_matched(self._left, key)
            self._left.position = end
            if end < self._left.count:
                break
            yield from self._return_left(self._left)
            self._next_left()
        while self._right is not None:
            self._right.position = self._end(self._right, key, key_row)
            if self._right.position < self._right.count:
                break
            self._next_right()

    cdef int64_t _end(self, SortedBatch batch, SortedBatch key, int64_t key_row) except -1:
        cdef int64_t end
        with nogil:
            end = end_of_key(self._order, batch, batch.position, key, key_row)
        raise_failed_comparison()
        return end

    # Collect the ranges (batch, begin, end) of the right rows of a key. False: they are more than may be kept.
    cdef bint _keep_right(self, SortedBatch key, int64_t key_row, list kept) except -1:
        cdef int64_t end
        cdef int64_t kept_bytes = 0
        cdef int64_t kept_rows = 0
        while self._right is not None:
            end = self._end(self._right, key, key_row)
            if end > self._right.position:
                kept.append((self._right, self._right.position, end))
                kept_bytes += self._right.total_bytes
                kept_rows += end - self._right.position
                self._right.position = end
            if end < self._right.count:
                return True
            self._next_right()
            if self._right is not None and self._is_too_much(kept_bytes, kept_rows):
                return False
        return True

    cdef bint _is_too_much(self, int64_t kept_bytes, int64_t kept_rows) noexcept:
        return kept_bytes > self._group_bytes or (self._group_rows > 0 and kept_rows > self._group_rows)

    def _stream_left(self, SortedBatch key, int64_t key_row, list kept):
        """Join the left rows of a key with the right rows that are kept."""
        cdef SortedBatch right
        cdef int64_t begin, end, right_begin, right_end
        while self._left is not None:
            begin = self._left.position
            end = self._end(self._left, key, key_row)
            for right, right_begin, right_end in kept:
                self._groups.set_group(begin, end, right_begin, right_end)
                yield from self._join_groups(self._left, right)
            self._left.position = end
            if end < self._left.count:
                break
            yield from self._return_left(self._left)
            self._next_left()
        for right, right_begin, right_end in kept:
            if right is not self._right:
                yield from self._return_right(right)

    def _join_spilled_group(self, SortedBatch key, int64_t key_row, list kept):
        """Join a key whose right rows do not fit: they go to a file, the left comes in blocks."""
        cdef SortedBatch left
        cdef bint last = False
        cdef SpillWriter writer = self._space.writer("join-group", block_size=self._block_size())
        self.spilled_groups += 1
        yield from self._spill_right(key, key_row, kept, writer)
        file = writer.finish()
        if self._right_returned == ROW_UNMATCHED:
            self._matched = MatchedRows(self._space)
        while not last:
            block = []
            last = self._next_left_block(key, key_row, block)
            if not block and self._matched is None:
                break
            yield from self._stream_file(file, block, last)
            for left, _, _ in block:
                if left is not self._left:
                    yield from self._return_left(left)
        file.delete()
        if self._matched is not None:
            self._matched.release()
            self._matched = None

    def _block_size(self):
        return max(1024, min(256 << 10, self._group_bytes // 4))

    def _spill_right(self, SortedBatch key, int64_t key_row, list kept, SpillWriter writer):
        """Write the kept right rows and all that follow; what is done with of their batches is returned."""
        cdef SortedBatch right
        cdef int64_t begin, end
        for right, begin, end in kept:
            self._write_rows(right, begin, end, writer)
            yield from self._return_right(right)
        kept.clear()
        while self._right is not None:
            begin = self._right.position
            end = self._end(self._right, key, key_row)
            self._write_rows(self._right, begin, end, writer)
            self._right.position = end
            if end < self._right.count:
                break
            yield from self._return_right(self._right)
            self._next_right()

    cdef int _write_rows(self, SortedBatch batch, int64_t begin, int64_t end, SpillWriter writer) except -1:
        cdef int64_t index
        with nogil:
            for index in range(begin, end):
                writer.write(batch.rows[index], row_size(batch.rows[index]))
                batch.states[index] = ROW_ELSEWHERE
        return 0

    # Collect ranges of left rows of the key; True when these are the last.
    cdef bint _next_left_block(self, SortedBatch key, int64_t key_row, list block) except -1:
        cdef int64_t end
        cdef int64_t kept_bytes = 0
        cdef int64_t kept_rows = 0
        while self._left is not None:
            end = self._end(self._left, key, key_row)
            if end > self._left.position:
                block.append((self._left, self._left.position, end))
                kept_bytes += self._left.total_bytes
                kept_rows += end - self._left.position
                self._left.position = end
            if end < self._left.count:
                return True
            self._next_left()
            if self._left is not None and self._is_too_much(kept_bytes, kept_rows):
                return False
        return True

    def _stream_file(self, file, list block, bint last):
        """Join a block of left rows with the right rows in a file."""
        cdef SortedBatch left, right
        cdef RowBatch chunk
        cdef int64_t begin, end, count
        self.block_passes += 1
        if self._matched is not None:
            self._matched.begin_pass(last)
        self._stream = RowStream(file)
        while True:
            chunk = new_row_batch(self._right_side.side.codec, STREAM_ROWS)
            count = self._stream.next_rows(chunk.rows, STREAM_ROWS, PAIRS_BYTES)
            if count == 0:
                break
            chunk.end(count)
            right = self._right_side.open(chunk, False)
            if self._matched is not None:
                self._matched.read(right.states, count)
            for left, begin, end in block:
                self._groups.set_group(begin, end, 0, count)
                yield from self._join_groups(left, right)
            if self._matched is not None and last:
                yield from self._return_right(right)
            elif self._matched is not None:
                self._matched.write(right.states, right.states, count)
        self._stream.close()
        self._stream = None

    def close(self):
        """End what an unfinished join still reads; idempotent. Its files go with the spill space."""
        self._left = None
        self._right = None
        if self._stream is not None:
            self._stream.close()
            self._stream = None
        if self._matched is not None:
            self._matched.release()
            self._matched = None
