"""States that a sort combines, as its operators need them: the combiner of rows, and results of what is left.

Held by: tests/integration/test_sorted_aggregates.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.expressions.schema_bridge import to_arrow_schema
from engine.records.plain_types import plain_schema

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.accumulators.state_combiner import StateCombiner
    from engine.graph.operator_descriptor import GroupedStates, OperatorDescriptor


def state_combiner(groups: GroupedStates | None, descriptor: OperatorDescriptor) -> StateCombiner | None:
    """Return the combiner of an operator's input rows, None if they are not states."""
    if groups is None:
        return None
    from engine.accumulators.aggregate_layout import aggregate_layout
    from engine.accumulators.state_combiner import StateCombiner

    schema = plain_schema(to_arrow_schema(descriptor.input_schemas[0]))
    layout = aggregate_layout(schema, groups.keys, groups.calls, merging=True)
    return StateCombiner(schema, len(groups.keys), layout.merge_operations, layout.overflow_texts)


def state_results(
    groups: GroupedStates | None, descriptor: OperatorDescriptor
) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    """Return a function from combined states to results; batches that are not states stay as they are."""
    if groups is None:
        return lambda batch: batch
    from engine.accumulators.aggregate_layout import aggregate_layout
    from engine.accumulators.state_results import results_of_states

    schema = plain_schema(to_arrow_schema(descriptor.input_schemas[0]))
    columns = aggregate_layout(schema, groups.keys, groups.calls, merging=True).results
    output, key_count = plain_schema(to_arrow_schema(descriptor.output_schema)), len(groups.keys)
    return lambda batch: results_of_states(batch, key_count, columns, output)
