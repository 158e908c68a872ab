"""The registry of operators: one entry for each operator that a plan may hold.

    entry_of(Filter(...)) -> the FilterEntry

Every stage of the planner asks the entry; none knows the operators by itself.
"""

from __future__ import annotations

from typing import Any

from engine.graph.plan import Operator
from engine.optimizer.operators.aggregate import AggregateEntry
from engine.optimizer.operators.asof_join import AsofJoinEntry
from engine.optimizer.operators.entry import OperatorEntry
from engine.optimizer.operators.explode import ExplodeEntry
from engine.optimizer.operators.filter import FilterEntry
from engine.optimizer.operators.group_functions import CoGroupEntry, GroupReduceEntry
from engine.optimizer.operators.join import JoinEntry
from engine.optimizer.operators.limit import LimitEntry
from engine.optimizer.operators.partial_aggregate import PartialAggregateEntry
from engine.optimizer.operators.partition import PartitionEntry
from engine.optimizer.operators.project import ProjectEntry
from engine.optimizer.operators.python_function import PythonFunctionEntry
from engine.optimizer.operators.sink import SinkEntry
from engine.optimizer.operators.sort import SortEntry
from engine.optimizer.operators.sorted_aggregate import SortedAggregateEntry
from engine.optimizer.operators.source import SourceEntry
from engine.optimizer.operators.union import UnionEntry
from engine.optimizer.operators.window import WindowEntry

ENTRIES: tuple[OperatorEntry[Any], ...] = (
    SourceEntry(),
    ProjectEntry(),
    FilterEntry(),
    PythonFunctionEntry(),
    GroupReduceEntry(),
    CoGroupEntry(),
    JoinEntry(),
    AsofJoinEntry(),
    AggregateEntry(),
    PartialAggregateEntry(),
    UnionEntry(),
    PartitionEntry(),
    SortEntry(),
    WindowEntry(),
    ExplodeEntry(),
    SortedAggregateEntry(),
    LimitEntry(),
    SinkEntry(),
)

_BY_OPERATOR = {entry.operator: entry for entry in ENTRIES}


def entry_of(operator: Operator) -> OperatorEntry[Any]:
    """Return the entry of an operator."""
    return _BY_OPERATOR[type(operator)]
