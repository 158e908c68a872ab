"""SortMergeJoinDriver: sorts both inputs by their keys, then merges them.

    left input ─► ExternalSorter ─┐
                                  ├─► SortMergeJoin, RangeJoin, AsofJoin ─► output
    right input ─► ExternalSorter ┘

The left input is taken to its end before the right one. Rows stay rows until they are given out as pairs. The memory
is divided before anything is taken: GROUP_SHARE of the pages for groups of equal keys (copies of rows that were on
disk, for which the pools leave out as many pages), the rest for the two sorters, by what is expected of
the inputs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.closing import close_all
from engine.exchange.elements import OversizedRow, RowPage
from engine.expressions.schema_bridge import to_arrow_schema
from engine.graph.operator_descriptor import AsofJoinOperator, RangeJoinOperator, SortMergeJoinOperator
from engine.graph.said_operators import JoinType
from engine.graph.sort_key import SortKey
from engine.join.asof_choice import AsofRule
from engine.join.asof_join import AsofJoin
from engine.join.join_spec import JoinInput, JoinSpec
from engine.join.range_join import RangeJoin
from engine.join.range_spec import range_spec
from engine.join.sort_merge_join import SortMergeJoin
from engine.operators.pair_conditions import pair_condition
from engine.records.batch_limits import BATCH_BYTES_MAX, BATCH_ROWS_MAX
from engine.sort.external_sorter import ExternalSorter

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from engine.graph.operator_descriptor import OperatorDescriptor
    from engine.operators.operator import Output, TaskContext
    from engine.operators.task_inputs import TaskInput
    from engine.records.row_batch import RowBatch

#: divisor of the pages: 1/8 of them hold groups of equal keys
GROUP_SHARE = 8
#: rows of a batch, and rows of one key that are kept in memory, with debug.force-spill
FORCED_BATCH_ROWS = 8
FORCED_GROUP_ROWS = 4


class SortMergeJoinDriver:
    """The head of a join of two inputs that are sorted for it."""

    def __init__(self, descriptor: OperatorDescriptor, inputs: dict[int, TaskInput]) -> None:
        operator = descriptor.operator
        assert isinstance(operator, SortMergeJoinOperator | RangeJoinOperator | AsofJoinOperator)
        self._descriptor = descriptor
        self._operator = operator
        self._inputs = (inputs[0], inputs[1])
        self._sorted_rows = [0, 0]
        self._sorters: list[ExternalSorter] = []
        self._join: SortMergeJoin | RangeJoin | AsofJoin | None = None

    @property
    def rows_in(self) -> int:
        """Rows taken from both inputs so far."""
        return sum(self._sorted_rows)

    @property
    def bytes_in(self) -> int:
        """Bytes taken from both inputs so far."""
        return sum(each.bytes_in for each in self._inputs)

    def open(self, context: TaskContext, output: Output) -> None:
        """Take the memory of both sorts and make the merge."""
        operator = self._operator
        schemas = [to_arrow_schema(schema) for schema in self._descriptor.input_schemas]
        keys = _sort_columns(operator)
        self._context = context
        self._output = output
        left_pool, right_pool, group_bytes = context.two_page_pools(self._descriptor, operator.left_share, GROUP_SHARE)
        for schema, names, pool in zip(schemas, keys, (left_pool, right_pool), strict=True):
            sort_keys = tuple(SortKey(name) for name in names)
            space = context.spill_space(self._descriptor)
            self._sorters.append(ExternalSorter(schema, sort_keys, pool, space, force_spill=context.force_spill))
        self._batch_rows = FORCED_BATCH_ROWS if context.force_spill else BATCH_ROWS_MAX
        self._batch_bytes = min(BATCH_BYTES_MAX, group_bytes)
        left, right = schemas
        self._join = self._merge(left, right, group_bytes)

    def _merge(self, left: pa.Schema, right: pa.Schema, group_bytes: int) -> SortMergeJoin | RangeJoin | AsofJoin:
        operator = self._operator
        spec = self._join_spec(left, right)
        if isinstance(operator, AsofJoinOperator):
            return AsofJoin(spec, AsofRule(operator.direction, operator.is_strict, operator.tolerance), group_bytes)
        space = self._context.spill_space(self._descriptor)
        if isinstance(operator, RangeJoinOperator):
            return RangeJoin(spec, range_spec(operator.range, left, right), space, group_bytes)
        return SortMergeJoin(spec, space, group_bytes)

    def _join_spec(self, left: pa.Schema, right: pa.Schema) -> JoinSpec:
        operator = self._operator
        context = self._context
        how, condition = JoinType.LEFT, None
        if not isinstance(operator, AsofJoinOperator):
            how, condition = operator.how, operator.condition
        return JoinSpec(
            how=how,
            left=JoinInput(left, tuple(left.get_field_index(name) for name in operator.left_keys)),
            right=JoinInput(right, tuple(right.get_field_index(name) for name in operator.right_keys)),
            output=tuple(operator.output),
            output_schema=to_arrow_schema(self._descriptor.output_schema),
            condition=pair_condition(condition, left, right, context.check_cancelled),
            row_limit=FORCED_GROUP_ROWS if context.force_spill else None,
        )

    def run(self) -> None:
        """Sort the left, sort the right, merge."""
        assert self._join is not None, "join is closed"
        for side in (0, 1):
            self._sort(side)
        for result in self._join.join(self._sorted(0), self._sorted(1)):
            self._context.check_cancelled()
            if self._output.is_satisfied:
                break
            self._output.process(result)

    def _sort(self, side: int) -> None:
        sorter = self._sorters[side]
        for element in self._inputs[side].elements():
            add_element(sorter, element)
            self._sorted_rows[side] = sorter.rows_in
        sorter.finish()

    def _sorted(self, side: int) -> Iterator[RowBatch]:
        for rows in self._sorters[side].row_batches(self._batch_rows, self._batch_bytes):
            self._context.check_cancelled()
            yield rows

    def close(self) -> None:
        """Give pages and files back."""
        join, self._join = self._join, None
        sorters, self._sorters = self._sorters, []
        close_all([*(() if join is None else (join.close,)), *(sorter.close for sorter in sorters)])


def add_element(sorter: ExternalSorter, element: pa.RecordBatch | RowPage | OversizedRow) -> None:
    """Have a sort take what an input brings; a page is recycled."""
    if isinstance(element, RowPage):
        try:
            sorter.add_page(element.segment, element.size)
        finally:
            element.recycle()
    elif isinstance(element, OversizedRow):
        sorter.add_rows(element.take())
    else:
        sorter.add_batch(element)


def _sort_columns(
    operator: SortMergeJoinOperator | RangeJoinOperator | AsofJoinOperator,
) -> tuple[tuple[str, ...], ...]:
    """Return the columns by which the left and the right are sorted."""
    if not isinstance(operator, RangeJoinOperator):
        return operator.left_keys, operator.right_keys
    where = operator.range
    columns = (where.point, where.begin) if where.is_point_left else (where.begin, where.point)
    return (*operator.left_keys, columns[0]), (*operator.right_keys, columns[1])
