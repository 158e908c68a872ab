"""One build side for several joins of a process: borrowed where it is whole in memory, else copied.

    owner.add_build... ─► owner.finish_build() ─┬─ can_be_borrowed(owner)   borrow_build(join, owner): nothing is built
                                                └─ not                      for _ in copy_build(join, owner): ...
                                                                            join.finish_build()

A borrowing join reads the owner's directory, rows and Arrow columns. The owner stays open, in the phase BORROWED in
which it does not probe itself, until all borrowers are closed. Each borrower has scratch arrays of its own, so that
they may probe in different threads.

    borrow_build(join, owner, turn) ... all have probed ─► for batch in finish_borrowed(owner): ...

Build rows that carry a matched bit are borrowed so, if every probe row meets the same owner: borrowers set the bits by
atomic operations, and what is known when all have probed is the owner's. Probe rows of spilled partitions go to the
owner's files, one borrower at a time (``turn``).

A copy reads what the owner has in pages and in build files, while the owner may probe (its pages and build files stay
as they are until its finish_probe). It takes one step for each chunk of rows.
"""

from libc.stdint cimport int64_t
from libc.string cimport memset

from engine.join.entry_pages cimport EntryCursor, next_entries
from engine.join.hash_join cimport HashJoin
from engine.join.hash_partition cimport HashPartition
from engine.join.partition_set cimport CHUNK_ROWS
from engine.join.probe_matches cimport OUTPUT_BYTES
from engine.join.row_stream cimport RowStream

from engine.join.join_phase import JoinPhase


def can_be_borrowed(HashJoin owner not None):
    """Return whether all build rows are in the table, and stay as they are while they are probed."""
    if owner.phase is JoinPhase.PROBING:
        return owner._level.spilled_count == 0 and not owner._roles.marks_build()
    return owner.phase is JoinPhase.BORROWED


def borrow_build(HashJoin join not None, HashJoin owner not None, turn=None):
    """Let a join without build rows probe the owner's; both were made with the same arguments.

    turn: a lock, if build rows carry matched bits: of what is written where partitions are spilled.
    """
    owner._advance(JoinPhase.BORROWED)
    join._drop_level()
    join._roles.tables.borrow(owner._roles.tables)
    join._roles.output.share_columns(owner._roles.output)
    if join._roles.condition is not None:
        join._roles.condition.columns.share_columns(owner._roles.condition.columns)
    if turn is not None:
        join._prober.share_marks(owner._level if owner._level.spilled_count else None, turn)
    join._begin_probing(owner)


def finish_borrowed(HashJoin owner not None):
    """Yield unmatched build rows and the output of spilled partitions, when all borrowers have probed."""
    return owner.finish_shared()


def copy_build(HashJoin join not None, HashJoin owner not None):
    """Add the owner's build rows to a join that has none, a chunk at each step."""
    cdef HashPartition partition
    cdef EntryCursor cursor
    cdef RowStream stream
    cdef int64_t count
    for partition in owner._level.partitions[:owner._level.fan_out]:
        if partition.entries.spilled:
            stream = RowStream(partition.build_file)
            join._stream = stream
            while True:
                count = stream.next_rows(join._input.rows, CHUNK_ROWS, OUTPUT_BYTES)
                if count == 0:
                    break
                join._input.add_rows(count, False)
                yield
            stream.close()
            continue
        memset(&cursor, 0, sizeof(cursor))
        while True:
            with nogil:
                count = next_entries(&partition.entries, &cursor, join._input.rows, CHUNK_ROWS)
            if count == 0:
                break
            join._input.add_rows(count, False)
            yield
    join._count_build_like(owner)
