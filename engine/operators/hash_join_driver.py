"""HashJoinDriver: the build input to its end, then the probe input against it.

    build input ─► join ─┬─ for this subtask alone
                         └─ broadcast: for all subtasks of the process, which drop their rows (``shared_builds``)
    probe input ─► join ─► output, in the end what was spilled (of pages, by a SpillRouter, before they are decoded)
    or a feed: rows that this task reads itself (``chained_source``)

Where the plan says so, the keys of the build side are a filter of the rows that are read for the probe side
(``runtime_filters``).

The filter is there before the table: until that is filled, a subtask that waits for another one's reads ahead.

Subtasks that borrow take no memory of their own. Where the build side does not fit the first one's pool, each has its
own, copied from the first one's pages and files, and spills by itself.

Where build rows carry matched bits, and the plan has them broadcast all the same (``shares_marks``), every subtask
marks the same rows, and the last one emits those without a match, and what was spilled. A subtask whose rows are not
needed any more goes on probing, for the marks.

Source: Flink's HashJoin drivers; one table for all slots of a process is ours.

Held by: tests/integration/test_joins.py
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from engine.errors import ProducerFailedError
from engine.exchange.elements import OversizedRow, RowPage
from engine.expressions.schema_bridge import to_arrow_schema
from engine.graph.operator_descriptor import HashJoinOperator
from engine.join.borrowed_build import borrow_build, can_be_borrowed, copy_build, finish_borrowed
from engine.join.hash_join import HashJoin
from engine.join.join_spec import JoinInput, JoinSpec
from engine.join.spill_router import SpillRouter
from engine.memory.budget import Kind, process_budget
from engine.operators.awaited_filters import filters_of_consumers
from engine.operators.chained_source import ChainedSource
from engine.operators.filter_exchange import batches_of, told_filters
from engine.operators.heavy_copies import copied_keys
from engine.operators.kept_keys import KeptKeys
from engine.operators.pair_conditions import pair_condition
from engine.operators.runtime_filters import KEY_BYTES_MAX, KEYS_MAX, RuntimeFilters, beside, make_filters
from engine.operators.spill_accounts import FurtherSpill
from engine.operators.task_inputs import TaskInput, is_remote
from engine.records.arrow_batch import batch_bytes
from engine.records.bounded_batches import SmallBatches, put_together
from engine.records.opened_batch import opened

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from engine.exchange.side_partition import SidePartition
    from engine.graph.deployment import InputChannelDescriptor
    from engine.graph.operator_descriptor import OperatorDescriptor
    from engine.iomanager.spill_space import SpillSpace
    from engine.memory.budget import Reservation
    from engine.memory.page_pool import PagePool
    from engine.operators.drivers import BatchInput
    from engine.operators.operator import Output, TaskContext
    from engine.operators.shared_builds import Member

#: limit of build rows in memory with debug.force-spill
FORCED_ROW_LIMIT = 8
#: limit of rows of the probe side that are read while another subtask fills the table
AHEAD_BYTES_MAX = 16 << 20

_END = object()


class HashJoinDriver:
    """Builds from one input, probes with the other, or with what feeds it."""

    def __init__(
        self,
        descriptor: OperatorDescriptor,
        inputs: dict[int, TaskInput],
        feed: BatchInput | None = None,
        build_feed: ChainedSource | None = None,
    ) -> None:
        operator = descriptor.operator
        assert isinstance(operator, HashJoinOperator)
        self._descriptor = descriptor
        self._operator = operator
        self._build: TaskInput | ChainedSource = build_feed or inputs[operator.first_input]
        self._probe: BatchInput = feed or inputs[1 - operator.first_input]
        self._build_rows = 0
        self._join: HashJoin | None = None
        self._member: Member | None = None
        self._router: SpillRouter | None = None
        #: filters that this subtask has made
        self._filters: RuntimeFilters | None = None
        #: filters of joins behind this one, for its producers
        self._passed: RuntimeFilters | None = None
        #: producers of this process that have them, and what those of others read; None: there are none
        self._offered: list[InputChannelDescriptor] = []
        self._told: SidePartition | None = None
        #: rows of the probe side that were read while there was no table, their memory, and what gives the others
        self._ahead: list[pa.RecordBatch] = []
        self._ahead_memory: Reservation | None = None
        self._further: Iterator[pa.RecordBatch] | None = None

    @property
    def rows_in(self) -> int:
        """Rows taken from both inputs so far."""
        return self._build_rows + self._probe.rows_in + (self._router.row_count if self._router else 0)

    @property
    def bytes_in(self) -> int:
        """Bytes taken from both inputs so far."""
        return self._build.bytes_in + self._probe.bytes_in + (self._router.size_bytes if self._router else 0)

    def open(self, context: TaskContext, output: Output) -> None:
        """Take the join's memory; a subtask that waits for the build side of another one takes none yet."""
        self._context = context
        self._output = output
        self._spec = self._join_spec()
        task = context.descriptor
        emits = self._spec.emission(build_is_left=self._spec.build_is_left)
        marks = self._operator.shares_marks and (emits.matched_build or emits.unmatched_build)
        if self._build.is_broadcast and task.parallelism > 1:
            assert marks or not (emits.matched_build or emits.unmatched_build), "each subtask would return the rows"
            key = (task.job_id, task.attempt.vertex, task.attempt.attempt_number)
            markers = task.parallelism if marks else 0
            self._member = context.services.shared_builds.enter(key, markers)
            if marks and self._member is None:
                raise ProducerFailedError("another subtask that marks the same rows of the join has failed")
        if isinstance(self._probe, TaskInput) and (self._operator.filters or self._operator.passes):
            self._told = told_filters(context, self._probe.channels)
        if self._member is None or self._member.is_builder:
            self._join = self._own_join()

    def run(self) -> None:
        """Build, probe, then the spilled partitions."""
        join = self._join
        member = self._member
        if member is not None:
            join = self._build_shared(member) if member.is_builder else self._build_like_another(member)
        else:
            assert join is not None, "join is closed"
            self._collect(join)
            self._filter_probe(self._filters)
            join.fill_table()
        self._probe_with(join)
        if member is not None and member.is_builder:
            member.wait_for_copies(self._context.check_cancelled)
        if member is not None and member.marks:
            self._finish_marked(member)
        elif not self._output.is_satisfied:
            self._emit(put_together(join.finish_probe()))

    def _finish_marked(self, member: Member) -> None:
        """Emit what is known when all subtasks have probed, if this is the last one."""
        owner = member.end_probe(self._context.check_cancelled)
        if owner is None or self._output.is_satisfied:
            return
        if member.further is not None:
            self._context.take_over(member.further, self._descriptor)
        self._emit(put_together(finish_borrowed(owner)))

    def _filter_probe(self, filters: RuntimeFilters | None) -> None:
        """Have the rows of the probe side filtered where they are read: by this task itself, or by others."""
        wanted = self._operator.filters
        if isinstance(self._probe, TaskInput):
            board = self._context.services.filter_registry
            if self._operator.passes:
                self._passed, _ = filters_of_consumers(self._context)
                filters = beside(filters, self._passed)
            has_some = wanted or self._operator.passes
            self._offered = [channel for channel in self._probe.channels if has_some and not is_remote(channel)]
            for channel in self._offered:
                board.offer(channel.partition, channel.subpartition_index, filters)
            if self._told is not None:
                self._told.complete(batches_of(filters))
        elif filters is not None and isinstance(self._probe, ChainedSource):
            self._probe.filter_by(filters, wanted)

    def _probe_with(self, join: HashJoin) -> None:
        self._router = router = SpillRouter(join) if join.partitions_spilled else None
        # Of a batch a join may leave a few rows. The first ones are passed on at once, for consumers of few rows.
        output, check_cancelled = self._output, self._context.check_cancelled
        small, takes_opened, has_begun = SmallBatches(rows_min=1), output.takes_opened, False
        for batch in self._probe_batches(router):
            if not has_begun and self._keeps_groups_whole(join):
                output.say_whole_groups()
            has_begun = True
            # A satisfied limit does not stop an input whose producers run on: it is drained.
            if not output.is_satisfied:
                for result in join.probe(opened(batch) if takes_opened else batch):
                    for made in small.add(result):
                        check_cancelled()
                        if not output.is_satisfied:
                            output.process(made)
            elif self._member is not None and self._member.marks:
                for _ in join.probe(batch):  # for the sake of the rows that it marks
                    pass
            elif not self._probe.is_drained:
                break
            elif router is not None:
                router.drops_all = True
        self._emit(small.rest())

    def _keeps_groups_whole(self, join: HashJoin) -> bool:
        """Return whether of each row of the probe side, which is a whole group, at most one comes out."""
        return join.has_unique_keys and isinstance(self._probe, TaskInput) and self._probe.has_whole_groups

    def _read_ahead(self, member: Member) -> None:
        """Read rows of the probe side that this task reads itself, as long as there is no table and room for them."""
        if not isinstance(self._probe, ChainedSource):
            return
        size_bytes = 0
        self._ahead_memory = process_budget.reserve(Kind.ARROW)
        self._further = self._probe.batches()
        while size_bytes < AHEAD_BYTES_MAX and member.is_awaited and self._ahead_memory.resize(size_bytes):
            batch = next(self._further, None)
            if batch is None:
                break
            self._context.check_cancelled()
            self._ahead.append(batch)
            size_bytes += batch_bytes(batch)

    def _probe_batches(self, router: SpillRouter | None) -> Iterator[pa.RecordBatch]:
        if self._further is None:
            return self._probe.batches(router)
        return self._begun_batches(self._further)

    def _begun_batches(self, further: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        while self._ahead:
            yield self._ahead.pop(0)
        if self._ahead_memory is not None:
            self._ahead_memory.close()
        yield from further

    def close(self) -> None:
        """Give pages and files back."""
        if self._ahead_memory is not None:
            self._ahead_memory.close()
        member, join = self._member, self._join
        if member is not None and member.is_builder and not member.is_shared:
            # Subtasks that copy read what the join is about to give back.
            member.leave()
        if join is not None:
            self._join = None
            join.close()
        if member is not None:
            member.leave()
        for channel in self._offered:
            self._context.services.filter_registry.withdraw(channel.partition, channel.subpartition_index)
        if self._told is not None:
            self._context.services.partition_manager.release(self._told.id)
        for filters in (self._filters, self._passed):
            if filters is not None:
                filters.close()

    def _own_join(self) -> HashJoin:
        self._pool = self._context.page_pool(self._descriptor)
        self._space = self._context.spill_space(self._descriptor)
        return self._new_join(self._pool, self._space)

    def _new_join(self, pool: PagePool, space: SpillSpace) -> HashJoin:
        return HashJoin(self._spec, pool, space, self._context.value_owner(self._descriptor))

    def _join_spec(self) -> JoinSpec:
        operator = self._operator
        context = self._context
        left, right = map(to_arrow_schema, self._descriptor.input_schemas)
        return JoinSpec(
            how=operator.how,
            left=JoinInput(left, tuple(map(left.get_field_index, operator.left_keys))),
            right=JoinInput(right, tuple(map(right.get_field_index, operator.right_keys))),
            output=tuple(operator.output),
            output_schema=to_arrow_schema(self._descriptor.output_schema),
            build_is_left=operator.build_left,
            condition=pair_condition(operator.condition, left, right, context.check_cancelled),
            null_aware=operator.null_aware,
            replicated=copied_keys(operator, left, context.descriptor.subtask_index, context.descriptor.parallelism),
            row_limit=FORCED_ROW_LIMIT if context.force_spill else None,
        )

    def _collect(self, join: HashJoin) -> None:
        """Take the build side, and make its filters: rows of the probe side are read while the table is filled."""
        operator = self._operator
        makes = operator.filters and not self._spec.emission(build_is_left=operator.build_left).unmatched_probe
        side = self._spec.left if operator.build_left else self._spec.right
        keys = {side.keys[each.key] for each in operator.filters} if makes else ()
        with closing(KeptKeys(side.schema, keys, KEYS_MAX, KEY_BYTES_MAX)) as kept:
            self._take_build_rows(join, kept)
            join.end_build()
            if makes:
                sharers = 1 if self._told is None else self._context.descriptor.parallelism
                self._filters = make_filters(join, operator.filters, sharers, kept)

    def _take_build_rows(self, join: HashJoin, kept: KeptKeys) -> None:
        for element in self._build.elements_together():
            if isinstance(element, list):
                kept.give_up()
                try:
                    join.add_build_pages(element)
                finally:
                    for page in element:
                        page.recycle()
            elif isinstance(element, OversizedRow):
                kept.give_up()
                join.add_build_rows(element.take())
            else:
                join.add_build_batch(element)
                kept.add(element)
            self._build_rows = join.build_rows

    def _build_shared(self, member: Member) -> HashJoin:
        owner = self._join
        assert owner is not None, "join is closed"
        try:
            self._collect(owner)
            member.tell(self._filters)
            self._filter_probe(self._filters)
            owner.fill_table()
        except BaseException as error:
            member.fail(error)
            raise
        if not member.marks and not can_be_borrowed(owner):
            member.offer_copy(owner)
            return owner
        pool, space = self._pool, self._space

        filters, self._filters = self._filters, None

        def give_back() -> None:
            if filters is not None:
                filters.close()
            owner.close()
            space.close()
            pool.close()

        self._join = None
        self._context.hand_over(pool, space)
        member.share(owner, give_back, FurtherSpill(space))
        return self._borrow(owner)

    def _borrow(self, owner: HashJoin) -> HashJoin:
        self._join = join = self._new_join(owner.pool, self._context.spill_space(self._descriptor))
        borrow_build(join, owner, self._member.turn if self._member is not None and self._member.marks else None)
        return join

    def _build_like_another(self, member: Member) -> HashJoin:
        """Drop the rows, which the builder has as well, and borrow or copy the builder's."""
        assert isinstance(self._build, TaskInput), "no other subtask builds from what this one reads itself"
        for element in self._build.elements():
            if isinstance(element, RowPage):
                element.recycle()
        self._context.waits_for = "the same table that another subtask builds"
        self._filter_probe(member.wait_for_filters(self._context.check_cancelled))
        self._read_ahead(member)
        owner = member.wait(self._context.check_cancelled)
        self._context.waits_for = ""
        self._build_rows = owner.build_rows
        if member.is_shared:
            return self._borrow(owner)
        self._join = join = self._own_join()
        chunks = copy_build(join, owner)
        while member.step(lambda: next(chunks, _END) is not _END):
            self._context.check_cancelled()
        member.end_copy()
        join.finish_build()
        return join

    def _emit(self, results: Iterable[pa.RecordBatch]) -> None:
        for result in results:
            self._context.check_cancelled()
            if self._output.is_satisfied:
                return
            self._output.process(result)
