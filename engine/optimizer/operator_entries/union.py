"""A union: the rows of all inputs, each through an edge of its own into one input.

    parallelism   set by the user, else the largest of the inputs

Held by: tests/optimizer/test_physical_operators.py
Held by: tests/optimizer/test_rules.py
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.graph.expression import Expression
from engine.graph.operator_descriptor import IdentityOperator
from engine.graph.plan import PlanNode, Union
from engine.graph.plan_schema import PlanSchema
from engine.optimizer import column_lineage
from engine.optimizer.candidates import Candidate, CandidateInput, cheapest, move
from engine.optimizer.input_changes import filter_input, follow_input, narrow_input
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.operator_entries.entry import OperatorEntry, OrderUse, Planning
from engine.optimizer.physical_plan_builder import PhysicalPlanBuilder
from engine.optimizer.properties import RANDOM
from engine.statistics.estimates import UNKNOWN, Estimates


class UnionEntry(OperatorEntry[Union]):
    """The entry of unions."""

    operator = Union

    def name(self, operator: Union) -> str:
        """Return the operator's name."""
        return "union"

    def columns_used(
        self, plan: LogicalPlan, node: PlanNode, operator: Union, input_index: int, used: set[str]
    ) -> set[str]:
        """Return the columns that consumers use."""
        return set(used)

    def prune(self, plan: LogicalPlan, node: PlanNode, operator: Union, used: set[str]) -> None:
        """Give all inputs equal columns."""
        for input_index in range(len(node.inputs)):
            narrow_input(plan, plan.node(node.id), input_index, used)
        follow_input(plan, plan.node(node.id))

    def take_filter(
        self, plan: LogicalPlan, node: PlanNode, operator: Union, parts: list[Expression]
    ) -> list[Expression]:
        """Push all parts into every branch."""
        for input_index in range(len(node.inputs)):
            filter_input(plan, node, input_index, parts)
        return parts

    def order_use(self, operator: Union) -> OrderUse:
        """Rows of its inputs mix."""
        return OrderUse.LOST

    def estimate(self, node: PlanNode, operator: Union, inputs: Sequence[Estimates]) -> Estimates:
        """Return the sum of the inputs."""
        rows = sum(each.rows for each in inputs)
        unset = any(not each.is_size_known for each in inputs)
        size = UNKNOWN if unset else sum(each.size_bytes for each in inputs)
        columns = column_lineage.merged([each.columns for each in inputs], [each.rows for each in inputs])
        return Estimates(rows, size, f"sum of {len(inputs)} inputs", columns)

    def origins(
        self, operator: Union, key: Expression, inputs: Sequence[PlanSchema]
    ) -> Sequence[tuple[int, Expression]]:
        """Values are those of all inputs."""
        return [(index, key) for index in range(len(inputs))]

    def candidates(
        self, planning: Planning, node: PlanNode, operator: Union, estimates: Estimates, inputs: list[list[Candidate]]
    ) -> list[Candidate]:
        """Return the union of the cheapest candidates of its inputs (their properties seldom agree)."""
        sources = [cheapest(candidates) for candidates in inputs]
        parallelism = node.parallelism or max(source.parallelism for source in sources)
        shippings = [move(source, parallelism) for source in sources]
        properties = sources[0].properties
        for source, shipping in zip(sources, shippings, strict=True):
            if shipping.strategy.is_network or source.properties != properties:
                properties = RANDOM
        pairs = zip(sources, shippings, strict=True)
        channels = tuple(CandidateInput(source, shipping) for source, shipping in pairs)
        return [Candidate(node, estimates, parallelism, channels, properties=properties)]

    def translate(self, builder: PhysicalPlanBuilder, candidate: Candidate, operator: Union) -> int:
        """Add an operator that reads all inputs as one."""
        return builder.add_plain(candidate, IdentityOperator(), are_apart=False)
