"""The registry of operators: one entry for each operator that a plan may hold.

    entry_of(Filter(...)) -> the FilterEntry

Every stage of the planner asks the entry; none knows the operators by itself. An entry is loaded when a plan has its
operator: most plans have a handful, and some entries bring rooms of their own along.

Held by: tests/optimizer/test_registry.py
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any, Final

from engine.errors import PlanError
from engine.graph.plan import (
    Aggregate,
    AsofJoin,
    CoGroup,
    Explode,
    Filter,
    GroupReduce,
    Join,
    Limit,
    Operator,
    PartialAggregate,
    Partition,
    Project,
    PythonFunction,
    Sink,
    Sort,
    SortedAggregate,
    Source,
    Union,
    Window,
)
from engine.optimizer.operator_entries.entry import OperatorEntry

#: operator: module of this package, class
PLACES: Final[dict[type[Operator], tuple[str, str]]] = {
    Source: ("source", "SourceEntry"),
    Project: ("project", "ProjectEntry"),
    Filter: ("filter", "FilterEntry"),
    PythonFunction: ("python_function", "PythonFunctionEntry"),
    GroupReduce: ("group_functions", "GroupReduceEntry"),
    CoGroup: ("group_functions", "CoGroupEntry"),
    Join: ("join", "JoinEntry"),
    AsofJoin: ("asof_join", "AsofJoinEntry"),
    Aggregate: ("aggregate", "AggregateEntry"),
    PartialAggregate: ("partial_aggregate", "PartialAggregateEntry"),
    Union: ("union", "UnionEntry"),
    Partition: ("partition", "PartitionEntry"),
    Sort: ("sort", "SortEntry"),
    Window: ("window", "WindowEntry"),
    Explode: ("explode", "ExplodeEntry"),
    SortedAggregate: ("sorted_aggregate", "SortedAggregateEntry"),
    Limit: ("limit", "LimitEntry"),
    Sink: ("sink", "SinkEntry"),
}


def entry_of(operator: Operator) -> OperatorEntry[Any]:
    """Return the entry of an operator."""
    return entry_of_type(type(operator))


@cache
def entry_of_type(operator: type[Operator]) -> OperatorEntry[Any]:
    """Return the entry of an operator's type; PlanError for one that has to be lowered first."""
    if operator not in PLACES:
        raise PlanError(f"{operator.__name__} is as users say it; engine.lowering makes operators of it first")
    module, name = PLACES[operator]
    entry: OperatorEntry[Any] = getattr(importlib.import_module(f"engine.optimizer.operator_entries.{module}"), name)()
    return entry
