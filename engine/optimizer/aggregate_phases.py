"""First phases of an aggregate: its arguments as columns, and partial states of the groups of each subtask.

    input ─► arguments ─► single
             arguments ─► partial ═══ final
    states ─► combine ═══ final                             what a ``PartialAggregate`` below has made
             arguments ─► partial ─► sorted runs ═══ merge        (sorted_aggregates.py)

"arguments" is a projection that makes the key columns and ``__arg{i}`` for each call; it is left out where the input
is just that, or where the aggregate needs no columns at all (``count()`` of everything).

Held by: tests/optimizer/test_physical_operators.py
"""

from __future__ import annotations

import msgspec

from engine.graph.expression import ColumnRef, NamedExpression
from engine.graph.operator_descriptor import HashAggregateOperator, OperatorDescriptor, ProjectOperator
from engine.graph.plan import Aggregate, PartialAggregate
from engine.optimizer.candidates import Candidate
from engine.optimizer.physical_plan_builder import PhysicalPlanBuilder
from engine.statistics.estimates import Estimates

#: expected share of states left below which they are combined before an exchange
COMBINED_SHARE_MAX = 0.5


def first_phase(aggregate: Aggregate | PartialAggregate) -> str:
    """Return the phase that gives out states."""
    return "combine" if aggregate.of_states else "partial"


def add_input(builder: PhysicalPlanBuilder, candidate: Candidate, aggregate: Aggregate | PartialAggregate) -> int:
    """Return the node that makes the input of the first phase."""
    return builder.input_node(candidate).id if aggregate.of_states else add_arguments(builder, candidate, aggregate)


def add_arguments(builder: PhysicalPlanBuilder, candidate: Candidate, aggregate: Aggregate | PartialAggregate) -> int:
    """Return the node that makes the input of the first phase of rows: a new projection or the input itself."""
    below = builder.input_node(candidate)
    arguments = [
        NamedExpression(f"__arg{index}", call.argument)
        for index, call in enumerate(aggregate.calls)
        if call.argument is not None
    ]
    wanted = aggregate.argument_schema
    if not wanted.columns or (not arguments and wanted.names == below.descriptor.output_schema.names):
        return below.id
    expressions = (*(NamedExpression(key, ColumnRef(key)) for key in aggregate.keys), *arguments)
    descriptor = OperatorDescriptor(
        candidate.node.id,
        "aggregate arguments",
        ProjectOperator(expressions),
        (below.descriptor.output_schema,),
        wanted,
    )
    size = below.estimates.rows * wanted.row_width_bytes
    estimates = msgspec.structs.replace(below.estimates, size_bytes=size, origin="rows of the input")
    return builder.add_phase(candidate, below.id, descriptor, estimates)


def add_partial(
    builder: PhysicalPlanBuilder, candidate: Candidate, aggregate: Aggregate, *, is_sorted_next: bool = False
) -> int:
    """Add the first phase of an aggregate, with its arguments; return its node.

    Of states there is none where it would not make them fewer.
    """
    below = builder.node(add_input(builder, candidate, aggregate))
    fewest = candidate.estimates.rows * below.parallelism
    if aggregate.of_states and fewest > COMBINED_SHARE_MAX * below.estimates.rows:
        return below.id
    # where it cannot hold all groups, most rows pass it whatever memory it has
    weight = builder.weight(candidate.estimates, 1)
    partial = OperatorDescriptor(
        candidate.node.id,
        f"partial {builder.name_of(candidate.node)}",
        HashAggregateOperator(
            first_phase(aggregate),
            aggregate.keys,
            aggregate.calls,
            is_sorted_next,
            expects_no_fewer=fewest >= below.estimates.rows,
            rows_expected=int(below.estimates.rows / below.parallelism),
        ),
        (below.descriptor.output_schema,),
        aggregate.state_schema,
        weight if weight < 1.0 else builder.WEIGHT_MIN,
    )
    rows = min(below.estimates.rows, fewest)
    states = Estimates(rows, rows * max(1, aggregate.state_schema.row_width_bytes), "groups * subtasks")
    return builder.add_phase(candidate, below.id, partial, states, "PARTIAL")
