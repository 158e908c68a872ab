"""Functions over groups: reduce, and co_group over two inputs. Rows of a group are brought together by a sort.

How they run is in ``function_planning``. What comes out is taken as one row for each group of each input.

Held by: tests/optimizer/test_function_planning.py
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

from engine.graph.operator_descriptor import PhysicalOperator
from engine.graph.plan import CoGroup, GroupReduce, PlanNode
from engine.optimizer.candidates import Candidate
from engine.optimizer.function_planning import GroupPhases, group_candidate, input_count
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.operator_entries.entry import OperatorEntry, Planning
from engine.optimizer.operator_entries.python_function import function_details
from engine.optimizer.physical_plan_builder import PhysicalPlanBuilder
from engine.optimizer.short_text import short
from engine.statistics.estimates import GROUP_EXPONENT, Estimates, sized

G = TypeVar("G", GroupReduce, CoGroup)


class _GroupFunctionEntry(OperatorEntry[G]):
    """The entry of functions over groups of one input or two."""

    def details(self, operator: PhysicalOperator) -> Sequence[str]:
        """Return the place of the function in the script."""
        return function_details(operator)

    def columns_used(
        self, plan: LogicalPlan, node: PlanNode, operator: G, input_index: int, used: set[str]
    ) -> set[str]:
        """Return all columns: it is unknown which of them a function reads."""
        return set(plan.node(node.inputs[input_index]).schema.names)

    def estimate(self, node: PlanNode, operator: G, inputs: Sequence[Estimates]) -> Estimates:
        """Return one row for each group of each input."""
        rows = 0.0
        for source in inputs[: input_count(operator)]:
            counts = [source.distinct(key) for key in operator.keys]
            known = math.prod(count for count in counts if count is not None)
            rows += min(source.rows, known if None not in counts else source.rows**GROUP_EXPONENT)
        return sized(node.schema, rows, {}, "a row for each group: default for a function")

    def candidates(
        self, planning: Planning, node: PlanNode, operator: G, estimates: Estimates, inputs: list[list[Candidate]]
    ) -> list[Candidate]:
        """Return the one way to run it."""
        return [group_candidate(node, operator, estimates, inputs, planning.settings)]

    def translate(self, builder: PhysicalPlanBuilder, candidate: Candidate, operator: G) -> int:
        """Add the pairing of a co_group's rows, the sort, and the function."""
        below = [builder.input_node(candidate, index) for index in range(len(candidate.inputs))]
        phases = GroupPhases(candidate, operator, below, builder.name_of(candidate.node))
        grouped = []
        for side, source in enumerate(below[: input_count(operator)]):
            pairing = phases.pairing(side)
            phase = None if pairing is None else builder.add_phase(candidate, source.id, pairing, source.estimates)
            grouped.append(source.id if phase is None else phase)
        if operator.keys:
            weight = builder.weight(phases.held, candidate.parallelism)
            grouped = [builder.add_node(phases.sort_node(builder.next_id, grouped, weight))]
        return builder.add(candidate, *phases.function(grouped[0]))


class GroupReduceEntry(_GroupFunctionEntry[GroupReduce]):
    """The entry of ``reduce``."""

    operator = GroupReduce

    def name(self, operator: GroupReduce) -> str:
        """Return the function's name and the keys."""
        keys = ["by", ", ".join(operator.keys)] if operator.keys else []
        return short(" ".join(["reduce", operator.function.function_name, *keys]))


class CoGroupEntry(_GroupFunctionEntry[CoGroup]):
    """The entry of ``co_group``."""

    operator = CoGroup

    def name(self, operator: CoGroup) -> str:
        """Return the function's name."""
        return f"co_group {operator.function.function_name}"
