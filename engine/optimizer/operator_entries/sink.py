"""A sink: every column and the order of its input go outside.

Held by: tests/optimizer/test_physical_operators.py
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

import msgspec

from engine.graph.operator_descriptor import SinkOperator
from engine.graph.plan import PlanNode, Sink
from engine.optimizer.candidates import Candidate
from engine.optimizer.input_order import lies_as_in_files
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.operator_entries.row_wise import RowWiseEntry
from engine.optimizer.physical_plan_builder import PhysicalPlanBuilder
from engine.optimizer.properties import GlobalProperties
from engine.optimizer.sort_planning import in_turn
from engine.statistics.estimates import Estimates


class SinkEntry(RowWiseEntry[Sink]):
    """The entry of sinks."""

    operator = Sink

    def name(self, operator: Sink) -> str:
        """Return the format and the last part of the path."""
        return f"{operator.spec.format} sink {PurePath(operator.spec.path).name}"

    def columns_used(
        self, plan: LogicalPlan, node: PlanNode, operator: Sink, input_index: int, used: set[str]
    ) -> set[str]:
        """Return all columns."""
        return set(plan.node(node.inputs[input_index]).schema.names)

    def estimate(self, node: PlanNode, operator: Sink, inputs: Sequence[Estimates]) -> Estimates:
        """Return the rows of the input."""
        return msgspec.structs.replace(inputs[0], origin="rows of the input")

    def properties(self, operator: Sink, source: Candidate) -> GlobalProperties:
        """Rows lie as they did."""
        return source.properties

    def _candidate(self, node: PlanNode, operator: Sink, estimates: Estimates, source: Candidate) -> Candidate:
        """Return a candidate; a single file has its rows as the files have them that they come from."""
        found = super()._candidate(node, operator, estimates, source)
        if not operator.spec.is_single_file or not lies_as_in_files(source):
            return found
        (channel,) = found.inputs
        shipping = in_turn(source, channel.shipping)
        return msgspec.structs.replace(found, inputs=(msgspec.structs.replace(channel, shipping=shipping),))

    def translate(self, builder: PhysicalPlanBuilder, candidate: Candidate, operator: Sink) -> int:
        """Add the sink."""
        return builder.add_plain(candidate, SinkOperator(builder.sink_index(candidate.node), operator.spec))
