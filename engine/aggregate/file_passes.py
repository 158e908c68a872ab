"""FilePasses: a file of states whose groups do not fit the table is read several times, and nothing is written.

    passes = FilePasses(table, rows, binding, key_count, table_bytes)
    passes.pay(file, level)                 whether to do so
    for part in passes.of(file, level):     the groups of one part of the keys after the other are in the table
        part is None, or a FilePart that cannot be divided further: it is not in the table

    file ─┬─► rows of part 0 of n ─► table ─► results        a row of another part is hashed and left, not decoded
          ├─► rows of part 1 of n ─► table ─► results
          └─► ...                        └── full: begin again with more parts

To read and hash a row takes a fifth of the time to write it, read it and find its group once more.

How many parts it takes is found by trying: a table too small is full early, so that the tries together cost little
more than a pass. The next file, which is of about the same kind, begins with what the last one took.

Invariants: a group is in one part only, and comes out when all of its states have been read, in their order.

Source: multi-pass hashing, beside the block nested loop join that partitions of a hash join end in.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from typing import NamedTuple

import pyarrow as pa

from engine.aggregate.group_input import StateBinding
from engine.aggregate.group_table import GroupTable
from engine.aggregate.table_insert import TableInsert
from engine.iomanager.spill_file import SpillFile
from engine.partitions.recursion import passes_pay
from engine.partitions.spilled_rows import SpilledRows

#: passes that are cheaper than to write a file once more
PASSES_CHEAP = 16
#: limit of partitions; with more, keys fall together under every hash
PARTS_MAX = 1 << 14
#: part of the memory that states fill; the rest is directory and page ends
_FILLED = 0.6


class FilePart(NamedTuple):
    """States of a file whose key falls into partition `part` of `parts` on a level."""

    file: SpillFile
    level: int
    part: int
    parts: int

    def read(self, rows: SpilledRows) -> Generator[pa.RecordBatch, None, None]:
        """Yield the rows as batches, in order."""
        return rows.read(self.file.reader(), self.level, self.part, self.parts)


class FilePasses:
    """Args: table: empty between files; binding: of states; table_bytes: memory of the table."""

    def __init__(
        self, table: GroupTable, rows: SpilledRows, binding: StateBinding, key_count: int, table_bytes: int
    ) -> None:
        self._table = table
        self._rows = rows
        self._binding = binding
        self._keys = list(range(key_count))
        self._table_bytes = _FILLED * table_bytes
        #: parts for each byte of the last file
        self._parts_per_byte = 0.0
        #: passes over files so far, those that were given up included
        self.pass_count = 0

    def pay(self, file: SpillFile, level: int) -> bool:
        """Return whether a file of a level is better read several times than parted again."""
        return passes_pay(file.raw_bytes / self._table_bytes, level, PASSES_CHEAP)

    def of(self, file: SpillFile, level: int) -> Iterator[FilePart | None]:
        """Fill the table part by part; see above. No other caller may empty it."""
        parts = max(1, round(self._parts_per_byte * file.raw_bytes))
        while not self._fill(FilePart(file, level, 0, parts)):
            if parts > PARTS_MAX:
                yield FilePart(file, level, 0, 1)
                return
            parts += parts // 2 + 1
        yield None
        self._parts_per_byte = parts / max(file.raw_bytes, 1)
        waiting = [FilePart(file, level, part, parts) for part in reversed(range(1, parts))]
        while waiting:
            part = waiting.pop()
            if self._fill(part):
                yield None
            elif part.parts > PARTS_MAX:
                yield part
            else:
                halves = [part._replace(part=2 * part.part + half, parts=2 * part.parts) for half in (1, 0)]
                waiting += halves

    def _fill(self, part: FilePart) -> bool:
        """Put the states of a part into the empty table; False: they do not fit. A lone group always does."""
        self.pass_count += 1
        self._table.reset(part.level, expected_groups=0)
        with closing(part.read(self._rows)) as batches:
            for states in batches:
                insert = TableInsert(self._table, self._table.open(self._keys, states, self._binding))
                while not insert.until_full():
                    if self._table.group_count > 1:
                        return False
        return True
