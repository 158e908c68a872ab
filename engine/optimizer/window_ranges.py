"""Window functions over all rows, in several subtasks: each has a range of the order keys.

    input ──► sorted runs of each subtask ═══ ranges of the order keys ═══► merge and window        RANGES_WINDOW

Only without partition keys, and for functions that can begin behind rows which others have: those that look no further
back than to how many rows there were, and aggregates of everything up to the row.

    row_number, rank                                        how many rows lie below
    count sum avg min max stddev variance, running          ... and their values
    last_value, running                                     nothing

Rows that are equal in all order keys are in one range. So a function whose peers are equal in fewer of them stays in
one subtask, as do the others, small inputs, and those that are in an order already.
"""

from __future__ import annotations

from typing import Final

import msgspec

from engine.graph.operator_descriptor import OperatorDescriptor, RangeWindowsOperator, SortRunsOperator
from engine.graph.plan import PlanNode, Sort, Window
from engine.graph.window import WindowCall
from engine.optimizer.candidates import Candidate
from engine.optimizer.physical_plan_builder import PhysicalPlanBuilder, channel_of
from engine.optimizer.settings import OptimizerSettings
from engine.optimizer.sort_planning import MERGE_WEIGHT, sort_candidate
from engine.optimizer.window_planning import order_within
from engine.statistics.estimates import Estimates

STRATEGY: Final = "RANGES_WINDOW"
_RUNNING_AGGREGATES: Final = frozenset({"count", "sum", "avg", "min", "max", "stddev", "variance"})


def ranges_candidate(
    node: PlanNode, window: Window, estimates: Estimates, source: Candidate, settings: OptimizerSettings
) -> Candidate | None:
    """Return the candidate of a window in ranges of its order; None where it does not work, or does not pay."""
    if window.partition_by or not window.order_by or window.top is not None:
        return None
    if source.is_ordered or order_within(window, source.sorted_by) is not None:
        return None
    if not all(_begins_anywhere(call, len(window.order_by)) for call in window.calls):
        return None
    ranges = sort_candidate(node, Sort(window.order_by), estimates, source, settings)
    return msgspec.structs.replace(ranges, strategy=STRATEGY) if ranges.strategy == "SORT_RANGES" else None


def _begins_anywhere(call: WindowCall, key_count: int) -> bool:
    if call.function == "row_number":
        return True
    if call.frame is None:
        return call.function == "rank" and call.order_count == key_count
    if call.frame.start is not None or call.frame.end != 0 or call.frame.part:
        return False
    if call.frame.kind == "range" and call.order_count != key_count:
        return False
    return call.function in _RUNNING_AGGREGATES or call.function in ("count_all", "last_value")


def add_ranges(builder: PhysicalPlanBuilder, candidate: Candidate, window: Window) -> int:
    """Add the sorted runs, and what merges them with the window functions."""
    below = builder.input_node(candidate)
    schema, node_id, name = below.descriptor.output_schema, candidate.node.id, builder.name_of(candidate.node)
    weight = builder.weight(below.estimates, below.parallelism)
    keys = window.order_by
    runs = OperatorDescriptor(node_id, f"sorted runs of {name}", SortRunsOperator(keys), (schema,), schema, weight)
    windows = RangeWindowsOperator(keys, window.calls)
    final = OperatorDescriptor(node_id, name, windows, (schema,), candidate.node.schema, MERGE_WEIGHT)
    source = builder.add_phase(candidate, below.id, runs, below.estimates, "SORT_RUNS")
    return builder.add(candidate, final, (channel_of(source, 0, candidate.inputs[0].shipping),), "MERGE_RUNS")
