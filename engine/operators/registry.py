"""The registry of operators: the class that runs each operator descriptor, and the driver that leads a chain.

A class is loaded when a task has an operator of it. Most jobs need two or three of them, and with the rooms behind them
(join, sort, aggregate, functions) they would take a small job as long to load as it runs.

Held by: tests/api/test_import.py
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from engine.formats.registry import format_of, sink_format_of
from engine.graph.operator_descriptor import (
    AsofJoinOperator,
    ExplodeOperator,
    FilterOperator,
    HashAggregateOperator,
    HashJoinOperator,
    IdentityOperator,
    KeyFilterOperator,
    LimitOperator,
    MergeRunsOperator,
    OperatorDescriptor,
    PartitionedAggregateOperator,
    PartitionedAsofOperator,
    PhysicalOperator,
    ProjectOperator,
    PythonOperator,
    RangeJoinOperator,
    RangeWindowsOperator,
    SinkOperator,
    SortedAggregateOperator,
    SortMergeJoinOperator,
    SortOperator,
    SortRunsOperator,
    SourceOperator,
    WindowOperator,
)
from engine.operators.drivers import BatchInput, Driver, InputDriver, SourceDriver

if TYPE_CHECKING:
    from engine.operators.operator import ChainedOperator
    from engine.operators.task_inputs import TaskInput

#: steps of a chain: module of engine, class; a room above this one may have the operator of what it does
_CLASSES: Final[dict[type[PhysicalOperator], tuple[str, str]]] = {
    IdentityOperator: ("operators.row_wise", "Identity"),
    ProjectOperator: ("operators.row_wise", "Project"),
    FilterOperator: ("operators.row_wise", "Filter"),
    LimitOperator: ("operators.row_wise", "Limit"),
    KeyFilterOperator: ("operators.stored_filters", "KeyFilters"),
    ExplodeOperator: ("operators.explode_operator", "Explode"),
    SortOperator: ("operators.sort_operator", "Sort"),
    SortRunsOperator: ("operators.sort_exchange", "SortRuns"),
    HashAggregateOperator: ("aggregate.aggregate_operator", "Aggregate"),
    WindowOperator: ("operators.sorted_rows", "Window"),
    SortedAggregateOperator: ("operators.sorted_rows", "SortedAggregate"),
    PartitionedAggregateOperator: ("operators.partitioned_aggregate", "PartitionedAggregate"),
    PythonOperator: ("operators.python_operator", "PythonFunctionOperator"),
    SinkOperator: ("operators.sink_operator", "FileSink"),
}
#: drivers, which lead a chain and read inputs
_DRIVERS: Final[dict[type[PhysicalOperator], tuple[str, str]]] = {
    MergeRunsOperator: ("operators.sort_exchange", "MergeRunsDriver"),
    RangeWindowsOperator: ("operators.range_windows", "RangeWindowsDriver"),
    SortMergeJoinOperator: ("operators.sort_merge_driver", "SortMergeJoinDriver"),
    RangeJoinOperator: ("operators.sort_merge_driver", "SortMergeJoinDriver"),
    AsofJoinOperator: ("operators.sort_merge_driver", "SortMergeJoinDriver"),
    PartitionedAsofOperator: ("operators.partitioned_asof_driver", "PartitionedAsofDriver"),
    HashJoinOperator: ("operators.hash_join_driver", "HashJoinDriver"),
}


@cache
def _loaded(place: tuple[str, str]) -> Callable[..., Any]:
    module, name = place
    loaded: Callable[..., Any] = getattr(importlib.import_module(f"engine.{module}"), name)
    return loaded


def make_operator(descriptor: OperatorDescriptor) -> ChainedOperator:
    """Return the operator of a descriptor."""
    operator: ChainedOperator = _loaded(_CLASSES[type(descriptor.operator)])(descriptor)
    return operator


def is_led(head: OperatorDescriptor) -> bool:
    """Whether the first operator of a chain is its driver, and no step of the chain."""
    return head.operator.traits.is_driver


def reads_below(head: OperatorDescriptor) -> bool:
    """Whether the driver of a chain looks at rows below its range of sorted runs, too."""
    return isinstance(head.operator, RangeWindowsOperator)


def make_driver(
    head: OperatorDescriptor,
    inputs: dict[int, TaskInput],
    operators: Sequence[ChainedOperator],
    feed: BatchInput | None = None,
    build_feed: BatchInput | None = None,
) -> Driver:
    """Return the driver in front of the chained operators."""
    operator = head.operator
    if isinstance(operator, SourceOperator):
        return SourceDriver(head, filters=tuple(inputs.values()))
    if type(operator) in _DRIVERS:
        # a hash join alone is fed by sources beside it
        fed = (feed, build_feed) if isinstance(operator, HashJoinOperator) else ()
        driver: Driver = _loaded(_DRIVERS[type(operator)])(head, inputs, *fed)
        return driver
    if isinstance(operator, PythonOperator) and operator.broadcasts:
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
        place = _CLASSES.get(type(operator)) or _DRIVERS.get(type(operator))
        if place is not None:
            _loaded(place)
        modules: tuple[str, ...] = ()
        if isinstance(operator, SourceOperator):
            modules = format_of(operator.spec).modules
        elif isinstance(operator, SinkOperator):
            modules = sink_format_of(operator.spec).modules
        for module in modules:
            if module not in sys.modules:
                importlib.import_module(module)
