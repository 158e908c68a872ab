"""Candidates to physical operators: one plan node becomes the operators that do its work.

    source, project, filter, python, sink    themselves
    union                                    identity over all inputs
    join                                     see join_translation.py
    aggregate   SINGLE                       arguments -> single
                PARTIAL_FINAL                arguments -> partial ═══ final
                in a sort                    see sorted_aggregates.py
    sort, limit                              see sort_planning.py
    reduce, co_group                         sort -> function (function_planning.py)
    partition   CUSTOM                       the user's function ═══ identity; else identity (partition_planning.py)

Each operator's entry (``operators``) adds its own; here they are asked in the order of the plan, each candidate once.

Held by: tests/optimizer/test_physical_operators.py
"""

from __future__ import annotations

from engine.graph.plan import Plan
from engine.optimizer.candidates import Candidate
from engine.optimizer.operator_entries.registry import entry_of
from engine.optimizer.operator_names import operator_name
from engine.optimizer.physical_plan import PhysicalNode
from engine.optimizer.physical_plan_builder import PhysicalPlanBuilder
from engine.optimizer.settings import OptimizerSettings


def physical_nodes(plan: Plan, roots: list[Candidate], settings: OptimizerSettings) -> list[PhysicalNode]:
    """Return the physical nodes of all sinks in topological order."""
    builder = PhysicalPlanBuilder(plan, settings, operator_name)
    for root in roots:
        stack = [(root, False)]
        while stack:
            candidate, inputs_done = stack.pop()
            if builder.is_built(candidate):
                continue
            if inputs_done:
                operator = candidate.node.operator
                builder.set_built(candidate, entry_of(operator).translate(builder, candidate, operator))
            else:
                stack.append((candidate, True))
                stack.extend((each.candidate, False) for each in reversed(candidate.inputs))
    return builder.nodes
