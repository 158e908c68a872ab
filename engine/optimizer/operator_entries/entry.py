"""OperatorEntry: all that the planner knows of one kind of operator of a plan, in one place.

    stage of the planner      asks the entry                            without an answer of its own
    rewriting                 columns_used, prune                       (must be said), nothing is narrowed
                              take_filter, take_limit                   nothing passes it
                              order_use                                 it sees the order of its input
    estimates                 estimate, with what becomes of columns    (must be said)
    samples of keys           origins                                   the origin of values is unknown
    alternatives              candidates                                (must be said; ``RowWiseEntry`` has one)
    physical plan             translate                                 (must be said)
    explain                   name, details                             (must be said), none

What has a default is always right, at worst slower. An entry has no state; ``registry`` holds one of each.

Held by: tests/optimizer/test_registry.py
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from engine.graph.expression import Expression
from engine.graph.operator_descriptor import PhysicalOperator
from engine.graph.plan import Plan, PlanNode
from engine.graph.plan_schema import PlanSchema
from engine.optimizer.candidates import Candidate
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.physical_plan_builder import PhysicalPlanBuilder
from engine.optimizer.settings import OptimizerSettings
from engine.statistics.estimates import Estimates

Op = TypeVar("Op")


class OrderUse(Enum):
    """The uses that operators make of the order of their input."""

    #: result depends on the order, or is in it
    SEEN = "seen"
    #: result does not depend on the order of its input
    LOST = "lost"
    #: result is in the order of its input and depends on it in no other way
    PASSED_ON = "passed on"


class Planning(NamedTuple):
    """The context in which candidates are made."""

    plan: Plan
    settings: OptimizerSettings
    name_of: Callable[[PlanNode], str]


class OperatorEntry(ABC, Generic[Op]):
    """The optimizer's knowledge of one kind of operator."""

    #: the struct of ``engine.graph.plan`` that this is the entry of
    operator: ClassVar[type[Any]]

    # ---- words

    @abstractmethod
    def name(self, operator: Op) -> str:
        """Return the name of an operator in vertices, logs and explain when the user gave it none."""

    def details(self, operator: PhysicalOperator) -> Sequence[str]:
        """Return the lines of explain about a physical operator made from one of these."""
        return ()

    # ---- rewriting

    @abstractmethod
    def columns_used(
        self, plan: LogicalPlan, node: PlanNode, operator: Op, input_index: int, used: set[str]
    ) -> set[str]:
        """Return the columns of one input that a node needs so that its own ``used`` columns are right."""

    def prune(self, plan: LogicalPlan, node: PlanNode, operator: Op, used: set[str]) -> None:
        """Rebuild a node, whose inputs are pruned already, so that it keeps its ``used`` columns only."""

    def take_filter(self, plan: LogicalPlan, node: PlanNode, operator: Op, parts: list[Expression]) -> list[Expression]:
        """Put below a node what may pass of a filter of its result, and return that; parts cannot raise on it."""
        return []

    def take_limit(self, plan: LogicalPlan, node: PlanNode, operator: Op, limit: PlanNode) -> None:
        """Apply the limit of a node's result to it, or push the limit below it."""

    def order_use(self, operator: Op) -> OrderUse:
        """Return the operator's use of its input's order."""
        return OrderUse.SEEN

    # ---- estimates

    @abstractmethod
    def estimate(self, node: PlanNode, operator: Op, inputs: Sequence[Estimates]) -> Estimates:
        """Return rows, bytes and columns of a node's result."""

    def origins(self, operator: Op, key: Expression, inputs: Sequence[PlanSchema]) -> Sequence[tuple[int, Expression]]:
        """Return the origins of a key's values in the result: (input, expression over it) each."""
        return ()

    # ---- alternatives

    @abstractmethod
    def candidates(
        self, planning: Planning, node: PlanNode, operator: Op, estimates: Estimates, inputs: list[list[Candidate]]
    ) -> list[Candidate]:
        """Return the ways to compute a node, from those to compute its inputs; at least one."""

    # ---- physical plan

    @abstractmethod
    def translate(self, builder: PhysicalPlanBuilder, candidate: Candidate, operator: Op) -> int:
        """Add the physical operators of a chosen candidate and return the id of the last one."""
