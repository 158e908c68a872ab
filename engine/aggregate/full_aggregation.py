"""FullAggregation: the final and the single phase, in which each group comes out once, in more groups than fit.

    grouping = FullAggregation(spec, layout, pool, space, value_owner, router)
    grouping.add(batch)                         gives out nothing yet
    for results in grouping.finish(): ...
    grouping.close()

    input ──► level 0 (``aggregation_level``) ─┬──► results of partitions that are all in memory
                                               └──► parts that wait: partitions in files, or kept in memory as rows
                                                     │
              one part after the other (``recursion``):  ▼
              its groups are found among its rows (``partition_merger``), or
              it is read several times over, and nothing is written (``file_passes``), or
              it is a level of its own, one deeper ──► results, and parts again
              deeper than level_max: the table is frozen. Groups in it take what is theirs, all other states go to one
              more file, which the next pass reads. A pass completes at least one group, so this ends.

States of one group merge whenever they meet, and they meet in the order in which their rows came: files are written and
read in order.

Invariants: no state is in a file that is still to be read and in a result. Nothing is written more than twice, for
inputs up to some thousand times the memory.

Source: Graefe, "Query evaluation techniques for large databases" (1993), hybrid hashing; Flink's HashAgg with
BytesHashMap falls back to sorting where we recurse.

Held by: tests/aggregate/test_hash_aggregate.py
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from engine.accumulators.aggregate_layout import AggregateLayout, result_of_nothing
from engine.accumulators.state_results import results_of_states
from engine.aggregate.aggregate_spec import AggregateSpec
from engine.aggregate.aggregate_state import AggregateState
from engine.aggregate.aggregate_workspace import AggregateWorkspace
from engine.aggregate.aggregation_level import AggregationLevel
from engine.closing import close_all
from engine.iomanager.spill_file import SpillFile
from engine.iomanager.spill_space import SpillSpace
from engine.memory.page_pool import PagePool
from engine.memory.value_stores import ValueOwner
from engine.operators.helper_threads import HelperThreads
from engine.partitions.partition_router import PartitionRouter
from engine.partitions.recursion import WaitingPart
from engine.records.opened_batch import shown
from engine.records.plain_types import plain_batch
from engine.records.row_codec import RowCodec


class FullAggregation:
    """Args: as of ``AggregateWorkspace``."""

    def __init__(
        self,
        spec: AggregateSpec,
        layout: AggregateLayout,
        pool: PagePool,
        space: SpillSpace,
        value_owner: ValueOwner,
        helpers: HelperThreads | None = None,
    ) -> None:
        """Take two pages of the pool. Raises: MemoryBudgetError."""
        #: ``PartitionRouter`` that takes states as rows, if they come as such: final only
        self.router = PartitionRouter(RowCodec(spec.input_schema)) if _comes_as_states(spec, layout) else None
        self._work = AggregateWorkspace(spec, layout, pool, space, value_owner, helpers)
        self._level = AggregationLevel(self._work, 0, self.router)
        #: True if each of the states that come is all of its group
        self._takes_whole_groups = False

    @property
    def state(self) -> AggregateState:
        """All but PASSING_THROUGH."""
        return self._work.progress.state

    @property
    def group_count(self) -> int:
        """Groups given out so far."""
        return self._work.group_count

    @property
    def spilled_bytes(self) -> int:
        """Bytes of states written to files so far, before compression."""
        return self._work.spilled_bytes

    def take_whole_groups(self) -> None:
        """Expect states none of which has another one of its group; before the first batch."""
        self._takes_whole_groups = True

    def add(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Take rows of the input; nothing is given out, but of whole groups. Raises: DataError, SpillError."""
        if self._takes_whole_groups:
            return iter((self._results_of(batch),))
        self._level.add(batch, self._work.rows)
        return iter(())

    def _results_of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the results of states as they are."""
        layout, spec = self._work.layout, self._work.spec
        states = plain_batch(shown(batch)).select([*layout.key_columns, *layout.columns])
        self._work.group_count += states.num_rows
        return results_of_states(states, len(spec.keys), layout.results, spec.output_schema)

    def end_run(self) -> Iterator[pa.RecordBatch]:
        """Yield the results of all groups so far, if they are many and in memory: what follows has other ones."""
        return self._level.end_run()

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Yield the results. Without keys at least one row. Raises: as add, also CorruptBlockError."""
        work = self._work
        yield from self._level.finish()
        yield from work.recursion.results(self)
        if work.group_count == 0 and not work.spec.keys:
            work.group_count = 1
            yield result_of_nothing(work.layout, work.spec.output_schema)

    # ------------------------------------------------------------------------------------------- parts (``recursion``)

    def in_memory(self, part: WaitingPart) -> Iterator[pa.RecordBatch] | None:
        """Group states among themselves, or in a few passes by means of the empty table; None: they do not fit."""
        work, states = self._work, part.rows[0]
        groups = work.merger.groups_of(states)
        if groups is not None:
            work.group_count += groups.row_count
            return work.merger.results_of(groups)
        if isinstance(states, SpillFile) and part.level <= work.spec.level_max and work.passes.pay(states, part.level):
            return self._in_passes(states, part.level)
        return None

    def _in_passes(self, states: SpillFile, level: int) -> Iterator[pa.RecordBatch]:
        work = self._work
        for part in work.passes.of(states, level):
            yield from work.results() if part is None else self._frozen(part.read(work.state_rows))
        work.table.reset(level)

    def divided(self, part: WaitingPart) -> Iterator[pa.RecordBatch]:
        """Group states on a level of their own."""
        work = self._work
        work.table.reset(part.level, expected_groups=work.merger.groups_expected(part.rows[0]))
        self._level = AggregationLevel(work, part.level)
        for batch in self._batches(part):
            self._level.add(batch, work.states)
        work.merger.groups_per_row = self._level.groups_per_row
        yield from self._level.finish()

    def undivided(self, part: WaitingPart) -> Iterator[pa.RecordBatch]:
        """Group states with a table that is frozen."""
        return self._frozen(self._batches(part))

    def _batches(self, part: WaitingPart) -> Iterable[pa.RecordBatch]:
        states = part.rows[0]
        return self._work.state_rows.read(states.reader()) if isinstance(states, SpillFile) else states

    def _frozen(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Complete the groups that find room; all other states go to a file, with which the same is done."""
        work, level = self._work, self._work.spec.level_max + 1
        work.table.reset(level, frozen=True)
        for states in batches:
            self._add_frozen(states)
        yield from work.results()
        work.table.reset(level)
        work.queue([], level)

    def _add_frozen(self, states: pa.RecordBatch) -> None:
        """Merge states into groups that are in the table or find room; write all others to the next pass's file."""
        work = self._work
        opened = work.table.open(work.states.key_columns, states, work.states.binding)
        position = 0
        while position < states.num_rows:
            position = work.table.add(opened, position, False)
            if position < states.num_rows:
                work.table.seal()
                work.state_rows.write(states.slice(position, 1), work.files.writer(0))
                position += 1

    def close(self) -> None:
        """Give every page back and delete every file; idempotent, in every state."""
        self._work.progress.enter(AggregateState.CLOSED)
        close_all([self._level.close, self._work.close])


def _comes_as_states(spec: AggregateSpec, layout: AggregateLayout) -> bool:
    """Whether rows of the input are what rows of states are."""
    return (
        spec.phase == "final"
        and spec.input_schema.types == layout.state_schema.types
        and [*layout.key_columns, *layout.columns] == list(range(len(spec.input_schema)))
    )
