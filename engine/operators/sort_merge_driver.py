"""SortMergeJoinDriver: sorts both inputs by their keys, then merges them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import NotYetSupportedError

if TYPE_CHECKING:
    from engine.graph.operator_descriptor import OperatorDescriptor
    from engine.operators.operator import Output, TaskContext
    from engine.operators.task_inputs import TaskInput


class SortMergeJoinDriver:
    """The head of a sort-merge join."""

    def __init__(self, descriptor: OperatorDescriptor, inputs: dict[int, TaskInput]) -> None:
        self._inputs = inputs
        raise NotYetSupportedError("the join hint REPARTITION_SORT_MERGE")

    @property
    def rows_in(self) -> int:
        """Rows taken from both inputs so far."""
        return sum(each.rows_in for each in self._inputs.values())

    @property
    def bytes_in(self) -> int:
        """Bytes taken from both inputs so far."""
        return sum(each.bytes_in for each in self._inputs.values())

    def open(self, context: TaskContext, output: Output) -> None:
        """Take the join's memory."""

    def run(self) -> None:
        """Sort and merge."""

    def close(self) -> None:
        """Give pages and files back."""
