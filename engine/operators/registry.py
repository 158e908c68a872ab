"""Which class runs which operator descriptor, and which driver leads a chain.

A class is loaded when a task has an operator of it. Most jobs need two or three of them, and with the rooms behind them
(join, sort, aggregate, functions) they would take a small job as long to load as it runs.
"""

# ruff: noqa: PLC0415 - start-up time

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from engine.graph.operator_descriptor import (
    FilterOperator,
    HashAggregateOperator,
    HashJoinOperator,
    IdentityOperator,
    LimitOperator,
    MergeRunsOperator,
    OperatorDescriptor,
    PhysicalOperator,
    ProjectOperator,
    PythonOperator,
    SinkOperator,
    SortMergeJoinOperator,
    SortOperator,
    SortRunsOperator,
    SourceOperator,
)
from engine.graph.source_spec import ParquetSource
from engine.operators.drivers import BatchInput, Driver, InputDriver, SourceDriver

if TYPE_CHECKING:
    from engine.operators.hash_join_driver import HashJoinDriver
    from engine.operators.operator import ChainedOperator
    from engine.operators.sort_exchange import MergeRunsDriver
    from engine.operators.sort_merge_driver import SortMergeJoinDriver
    from engine.operators.task_inputs import TaskInput


def _row_wise(name: str) -> Callable[[], type[ChainedOperator]]:
    def load() -> type[ChainedOperator]:
        from engine.operators import row_wise

        loaded: type[ChainedOperator] = getattr(row_wise, name)
        return loaded

    return load


def _sort() -> type[ChainedOperator]:
    from engine.operators.sort_operator import Sort

    return Sort


def _sort_runs() -> type[ChainedOperator]:
    from engine.operators.sort_exchange import SortRuns

    return SortRuns


def _aggregate() -> type[ChainedOperator]:
    from engine.operators.aggregate_operator import Aggregate

    return Aggregate


def _function() -> type[ChainedOperator]:
    from engine.operators.python_operator import PythonFunctionOperator

    return PythonFunctionOperator


def _sink() -> type[ChainedOperator]:
    from engine.operators.sink_operator import FileSink

    return FileSink


def _merge_driver() -> type[MergeRunsDriver]:
    from engine.operators.sort_exchange import MergeRunsDriver

    return MergeRunsDriver


def _sort_merge_driver() -> type[SortMergeJoinDriver]:
    from engine.operators.sort_merge_driver import SortMergeJoinDriver

    return SortMergeJoinDriver


def _hash_join_driver() -> type[HashJoinDriver]:
    from engine.operators.hash_join_driver import HashJoinDriver

    return HashJoinDriver


_CLASSES: dict[type[PhysicalOperator], Callable[[], type[ChainedOperator]]] = {
    IdentityOperator: _row_wise("Identity"),
    ProjectOperator: _row_wise("Project"),
    FilterOperator: _row_wise("Filter"),
    LimitOperator: _row_wise("Limit"),
    SortOperator: _sort,
    SortRunsOperator: _sort_runs,
    HashAggregateOperator: _aggregate,
    PythonOperator: _function,
    SinkOperator: _sink,
}
_DRIVERS: dict[type[PhysicalOperator], Callable[[], type[Driver]]] = {
    MergeRunsOperator: _merge_driver,
    SortMergeJoinOperator: _sort_merge_driver,
    HashJoinOperator: _hash_join_driver,
}


def make_operator(descriptor: OperatorDescriptor) -> ChainedOperator:
    """Return the operator of a descriptor."""
    return _CLASSES[type(descriptor.operator)]()(descriptor)


def is_led(head: OperatorDescriptor) -> bool:
    """Whether the first operator of a chain is its driver, and no step of the chain."""
    return head.operator.traits.is_driver


def make_driver(
    head: OperatorDescriptor,
    inputs: dict[int, TaskInput],
    operators: Sequence[ChainedOperator],
    feed: BatchInput | None = None,
) -> Driver:
    """Return the driver in front of the chained operators."""
    match head.operator:
        case SourceOperator():
            return SourceDriver(head)
        case MergeRunsOperator():
            return _merge_driver()(head, inputs)
        case SortMergeJoinOperator():
            return _sort_merge_driver()(head, inputs)
        case HashJoinOperator():
            return _hash_join_driver()(head, inputs, feed)
        case PythonOperator(broadcasts=broadcasts) if broadcasts:
            from engine.operators.broadcast_driver import BroadcastDriver
            from engine.operators.python_operator import PythonFunctionOperator

            function = operators[0]
            assert isinstance(function, PythonFunctionOperator)
            return BroadcastDriver(inputs, function)
    return InputDriver(inputs[0])


def load_classes(descriptors: Iterable[OperatorDescriptor]) -> None:
    """Load what tasks with these operators will need, in a thread that has nothing else to do.

    Where several tasks load at one time, each waits for Python's lock after every file that it reads.
    """
    for descriptor in descriptors:
        operator = descriptor.operator
        load = _CLASSES.get(type(operator)) or _DRIVERS.get(type(operator))
        if load is not None:
            load()
        if isinstance(operator, SourceOperator) and isinstance(operator.spec, ParquetSource):
            from engine.parquet import reader as parquet_reader  # noqa: F401
        if isinstance(operator, SinkOperator) and operator.spec.format == "parquet":
            from engine.parquet import writer as parquet_writer  # noqa: F401
