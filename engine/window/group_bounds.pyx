"""Bounds of groups of rows: partitions, and peers (rows equal in the order).

    starts = GroupStart(threshold)      starts.of(block) -> Positions         of the group that each row is in
    ends = GroupEnd(threshold)          ends.of(block, queue) -> Positions    behind the last row of its group
    numbers = GroupNumber(outer, threshold)      numbers.of(block)            1 for the first group of its partition

A row begins a group where its level is at most the threshold (``row_block.pxd``). Blocks come in order, each once.
Starts need what came before; ends look ahead, in the blocks of the queue, as far as its rows go: ``of`` gives None when
they do not go far enough, and is asked again when there are more. The scan goes on where it ended, so each row is
looked at once. Groups that end in their block are known without a call: there may be one for each row.
``known_only=False`` takes what is known: rows whose group has not ended get OPEN_END.
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t

from engine.window.row_block cimport Positions, RowBlock, new_positions

cdef int64_t NO_END = 0x7FFFFFFFFFFFFFFF

#: the end of a group that has none yet
OPEN_END = NO_END


@cython.final
cdef class GroupStart:
    """Args: threshold: levels up to it begin a group."""

    cdef uint8_t _threshold
    cdef int64_t _start

    def __cinit__(self, uint8_t threshold):
        self._threshold = threshold

    def of(self, RowBlock block not None):
        """Return the begin of each row's group."""
        cdef Positions found = new_positions(block)
        cdef int64_t index
        cdef int64_t start = self._start
        cdef const uint8_t* levels = block.levels
        with nogil:
            for index in range(found.count):
                if levels[index] <= self._threshold:
                    start = found.start + index
                found.values[index] = start
        self._start = start
        return found


@cython.final
cdef class GroupNumber:
    """Args: outer: levels up to it begin to count anew; threshold: levels up to it begin a group."""

    cdef uint8_t _outer
    cdef uint8_t _threshold
    cdef int64_t _number

    def __cinit__(self, uint8_t outer, uint8_t threshold):
        self._outer = outer
        self._threshold = threshold

    def of(self, RowBlock block not None):
        """Return the number of each row's group in its partition, from 1."""
        cdef Positions found = new_positions(block)
        cdef int64_t index
        cdef int64_t number = self._number
        cdef const uint8_t* levels = block.levels
        with nogil:
            for index in range(found.count):
                if levels[index] <= self._outer:
                    number = 1
                elif levels[index] <= self._threshold:
                    number += 1
                found.values[index] = number
        self._number = number
        return found


@cython.final
cdef class GroupEnd:
    """Args: threshold: levels up to it begin a group."""

    cdef uint8_t _threshold
    cdef int64_t _end           # scanned so far; unless it is the end of all rows there are, the start of a group
    cdef RowBlock _block        # that _end is in
    cdef Positions _found       # being filled
    cdef int64_t _filled        # rows of it

    def __cinit__(self, uint8_t threshold):
        self._threshold = threshold

    def of(self, RowBlock block not None, queue, bint known_only=True):
        """Return the end of each row's group, or None when that is not known yet."""
        cdef int64_t filled
        if self._found is None or self._found.start != block.start:
            self._found = new_positions(block)
            self._filled = 0
        while self._filled < self._found.count:
            if self._end <= block.start + self._filled:
                self._fill_inside(block)
                self._end = block.stop
                self._block = block
            if not self._scan(queue):
                if known_only:
                    return None
                filled = self._filled
                self._fill(NO_END)
                self._filled = filled       # asked again, they may have one
                return self._found
            self._fill(self._end)
        return self._found

    cdef void _fill_inside(self, RowBlock block):
        """Give rows their ends that lie in the block: of all groups that begin in it but the last one."""
        cdef int64_t index
        cdef int64_t filled = self._filled
        cdef const uint8_t* levels = block.levels
        with nogil:
            for index in range(filled + 1, self._found.count):
                if levels[index] <= self._threshold:
                    while filled < index:
                        self._found.values[filled] = block.start + index
                        filled += 1
        self._filled = filled

    cdef bint _scan(self, queue) except -1:
        """Move the end to the next start of a group; False when that is not there yet."""
        cdef int64_t stop = queue.stop
        cdef int64_t end = self._end
        while end < stop:
            if self._block is None or not self._block.start <= end < self._block.stop:
                self._block = queue.block_at(end)
            with nogil:
                while end < self._block.stop and self._block.levels[end - self._block.start] > self._threshold:
                    end += 1
            self._end = end
            if end < self._block.stop:
                return True
        self._end = end
        return queue.has_ended

    cdef void _fill(self, int64_t end):
        """Give rows before an end, and in the block, that end."""
        cdef int64_t index
        cdef int64_t count = min(self._found.count, end - self._found.start)
        with nogil:
            for index in range(self._filled, count):
                self._found.values[index] = end
        self._filled = count
