"""Which class runs which operator descriptor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.graph.operator_descriptor import (
    FilterOperator,
    HashAggregateOperator,
    IdentityOperator,
    LimitOperator,
    OperatorDescriptor,
    PhysicalOperator,
    ProjectOperator,
    PythonOperator,
    SinkOperator,
    SortOperator,
    SortRunsOperator,
)
from engine.operators.blocking import Aggregate, Sort
from engine.operators.python_operator import PythonFunctionOperator
from engine.operators.row_wise import Filter, Identity, Limit, Project
from engine.operators.sink_operator import FileSink
from engine.operators.sort_exchange import SortRuns

if TYPE_CHECKING:
    from engine.operators.operator import ChainedOperator

_CLASSES: dict[type[PhysicalOperator], type[ChainedOperator]] = {
    IdentityOperator: Identity,
    ProjectOperator: Project,
    FilterOperator: Filter,
    LimitOperator: Limit,
    SortOperator: Sort,
    SortRunsOperator: SortRuns,
    HashAggregateOperator: Aggregate,
    PythonOperator: PythonFunctionOperator,
    SinkOperator: FileSink,
}


def make_operator(descriptor: OperatorDescriptor) -> ChainedOperator:
    """Return the operator of a descriptor."""
    return _CLASSES[type(descriptor.operator)](descriptor)
