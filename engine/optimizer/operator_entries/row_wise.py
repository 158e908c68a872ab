"""RowWiseEntry: operators that make of each row of their input what they make of it, wherever the row is.

    parallelism   set by the user, else that of the input; an ordered input keeps its own
    strategies    none: rows stay in their subtask where the parallelism is the same

Held by: tests/optimizer/test_registry.py
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TypeVar

from engine.graph.plan import PlanNode
from engine.graph.ship_strategy import ShipStrategy
from engine.graph.sort_key import SortKey
from engine.optimizer.candidates import Candidate, CandidateInput, move
from engine.optimizer.function_planning import with_broadcasts
from engine.optimizer.operator_entries.entry import OperatorEntry, Planning
from engine.optimizer.properties import RANDOM, GlobalProperties, LocalProperties
from engine.optimizer.sort_planning import in_order
from engine.statistics.costs import local_cost
from engine.statistics.estimates import Estimates

Op = TypeVar("Op")


class RowWiseEntry(OperatorEntry[Op]):
    """An operator of rows, each for itself. Inputs behind the first are broadcast data sets."""

    @abstractmethod
    def properties(self, operator: Op, source: Candidate) -> GlobalProperties:
        """Return the partitioning of the result, given that rows stay in their subtask."""

    def candidates(
        self, planning: Planning, node: PlanNode, operator: Op, estimates: Estimates, inputs: list[list[Candidate]]
    ) -> list[Candidate]:
        """Return one candidate for each of the input."""
        return [with_broadcasts(self._candidate(node, operator, estimates, source), inputs[1:]) for source in inputs[0]]

    def _candidate(self, node: PlanNode, operator: Op, estimates: Estimates, source: Candidate) -> Candidate:
        parallelism = source.parallelism
        if node.parallelism is not None and (not source.is_ordered or node.parallelism == 1):
            parallelism = node.parallelism
        shipping = in_order(source, move(source, parallelism))
        stays = not shipping.strategy.is_network or shipping.partitioner.in_order
        return Candidate(
            node,
            estimates,
            parallelism,
            (CandidateInput(source, shipping),),
            costs=local_cost(source.estimates, 0, parallelism),
            properties=self.properties(operator, source) if stays else RANDOM,
            order=source.order if stays else LocalProperties(),
            sorted_by=self.order_kept(operator, source.sorted_by) if shipping.strategy is ShipStrategy.FORWARD else (),
        )

    def order_kept(self, operator: Op, order: tuple[SortKey, ...]) -> tuple[SortKey, ...]:
        """Return the order of a subtask's rows, by the names they have in the result."""
        return ()
