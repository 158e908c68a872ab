"""Functions over groups, and functions with broadcast data sets: candidates, operators, exchanges.

    reduce       input ──HASH by keys──► sort by keys ──► function
                 without keys: input ──to one subtask──► function
    co_group     left  ──► pair columns ──HASH──┐
                 right ──► pair columns ──HASH──┴─► sort by keys and side ──► function
    broadcasts   data set ══BROADCAST, BLOCKING══► function

A co_group's sides are sorted as one: each becomes rows of the plan's ``pair_schema``, which has the columns of both.
Where an input lies grouped by the keys already it is not shipped. A broadcast data set is complete before its
function starts, so nothing that feeds both can wait for itself.

    group_candidate, with_broadcasts      when candidates are compared
    GroupPhases, python_operator          when the plan becomes physical
    broadcast_channels                    when exchange modes are decided
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from engine.graph.operator_descriptor import OperatorDescriptor, ProjectOperator, PythonOperator, SortOperator
from engine.graph.plan import CoGroup, GroupReduce, PlanNode, PythonFunction
from engine.graph.ship_strategy import PartitionerSpec, ShipStrategy
from engine.graph.sort_key import SortKey
from engine.optimizer.candidates import FORWARD, Candidate, CandidateInput, Shipping, cheapest, move
from engine.optimizer.physical_plan import Channel, PhysicalNode
from engine.optimizer.physical_plan_builder import channel_of
from engine.optimizer.settings import OptimizerSettings
from engine.optimizer.sort_planning import in_order
from engine.statistics.costs import NO_COST, broadcast_cost, local_cost, repartition_cost
from engine.statistics.estimates import Estimates

_BROADCAST = PartitionerSpec("BROADCAST")


def input_count(operator: GroupReduce | CoGroup) -> int:
    """Return the number of inputs that are grouped; those behind them are broadcast."""
    return 2 if isinstance(operator, CoGroup) else 1


def group_candidate(
    node: PlanNode,
    operator: GroupReduce | CoGroup,
    estimates: Estimates,
    inputs: list[list[Candidate]],
    settings: OptimizerSettings,
) -> Candidate:
    """Return the candidate of a function over groups; there is one."""
    parallelism = (node.parallelism or settings.parallelism) if operator.keys else 1
    count = input_count(operator)
    sources = [cheapest(candidates) for candidates in inputs[:count]]
    costs = NO_COST
    for source in sources:
        memory = settings.page_budget.operator_bytes if operator.keys else 0
        costs += local_cost(source.estimates, memory, parallelism, keeps_rows=bool(operator.keys))
    channels = tuple(CandidateInput(source, _shipping(operator, source, parallelism)) for source in sources)
    strategy = "SORTED_GROUPS" if operator.keys else "ONE_GROUP"
    candidate = Candidate(node, estimates, parallelism, channels, strategy, costs=costs)
    return with_broadcasts(candidate, inputs[count:])


def _shipping(operator: GroupReduce | CoGroup, source: Candidate, parallelism: int) -> Shipping:
    is_grouped = isinstance(operator, GroupReduce) and source.properties.groups(operator.keys)
    if parallelism == 1 or (is_grouped and source.parallelism == parallelism):
        shipping = move(source, parallelism)
    else:
        costs = repartition_cost(source.estimates, parallelism)
        shipping = Shipping(ShipStrategy.PARTITION_HASH, PartitionerSpec("HASH", operator.keys), costs)
    # Sorting by the keys is stable: rows of a group stay in an order that the input has.
    return shipping if isinstance(operator, CoGroup) else in_order(source, shipping)


def with_broadcasts(candidate: Candidate, broadcasts: Sequence[list[Candidate]]) -> Candidate:
    """Return a candidate that also takes broadcast data sets."""
    added = []
    for candidates in broadcasts:
        source = cheapest(candidates)
        costs = broadcast_cost(source.estimates, candidate.parallelism)
        added.append(CandidateInput(source, Shipping(ShipStrategy.BROADCAST, _BROADCAST, costs)))
    return msgspec.structs.replace(candidate, inputs=(*candidate.inputs, *added)) if added else candidate


def python_operator(
    function: PythonFunction, keys: tuple[str, ...] = (), views: tuple[tuple[tuple[str, str], ...], ...] = ()
) -> PythonOperator:
    """Return a plan's function as an operator."""
    fields = (function.kind, function.function, function.function_name, function.file, function.line)
    return PythonOperator(
        *fields,
        keys=keys or function.keys,
        channel_count=function.channel_count,
        views=views,
        broadcasts=function.broadcasts,
        arguments=function.arguments,
        policy=function.policy,
        not_null=function.not_null,
    )


class GroupPhases:
    """The operators of one function over groups.

    Args:
        candidate: the way it runs.
        operator: of the candidate's node.
        sources: the physical nodes of its inputs, broadcast ones too.
        name: what the function is called.
    """

    def __init__(
        self, candidate: Candidate, operator: GroupReduce | CoGroup, sources: list[PhysicalNode], name: str
    ) -> None:
        self._candidate = candidate
        self._operator = operator
        self._sources = sources
        self._name = name
        self._count = input_count(operator)
        self._schema = operator.pair_schema if isinstance(operator, CoGroup) else sources[0].descriptor.output_schema

    def pairing(self, side: int) -> OperatorDescriptor | None:
        """Return the operator that makes pair columns of one input; None for a reduce, which needs none."""
        operator = self._operator
        if not isinstance(operator, CoGroup):
            return None
        project = ProjectOperator(operator.right_columns if side else operator.left_columns)
        below = self._sources[side].descriptor.output_schema
        return OperatorDescriptor(self._candidate.node.id, "pair columns", project, (below,), self._schema)

    @property
    def held(self) -> Estimates:
        """The rows that the sort holds."""
        inputs = [source.estimates for source in self._sources[: self._count]]
        if len(inputs) == 1:
            return inputs[0]
        rows = sum(each.rows for each in inputs)
        size = rows * self._schema.row_width_bytes
        return Estimates(rows, size, "rows of both inputs")

    def sort_node(self, node_id: int, grouped: Sequence[int], weight: float) -> PhysicalNode:
        """Return the sort that brings the rows of a group together; ``grouped``: the nodes it reads."""
        keys = tuple(SortKey(key) for key in self._operator.keys)
        if isinstance(self._operator, CoGroup):
            # behind the keys lies the side: left rows of a key come first
            keys += (SortKey(self._schema.names[len(keys)]),)
        names = ", ".join(self._operator.keys)
        if isinstance(self._operator, CoGroup):
            names = ", ".join(name for name, column in self._operator.views[0] if column in self._operator.keys)
        descriptor = OperatorDescriptor(
            self._candidate.node.id, f"group by {names}", SortOperator(keys), (self._schema,), self._schema, weight
        )
        channels = tuple(
            channel_of(source, 0, each.shipping) for source, each in zip(grouped, self._candidate.inputs, strict=False)
        )
        parallelism = self._candidate.parallelism
        below = NO_COST
        for source in self._sources[: self._count]:
            below += source.cumulative_costs
        # The costs of shipping and sorting are those of the function: it has no other way.
        return PhysicalNode(
            node_id,
            self._candidate.node.id,
            descriptor,
            parallelism,
            channels,
            self.held,
            "SORT",
            cumulative_costs=below,
        )

    def function(self, source: int) -> tuple[OperatorDescriptor, tuple[Channel, ...]]:
        """Return the function and its channels: from ``source``, the sort if there is one, and the broadcasts."""
        operator = self._operator
        views = operator.views if isinstance(operator, CoGroup) else ()
        descriptor = OperatorDescriptor(
            self._candidate.node.id,
            self._name,
            python_operator(operator.function, operator.keys, views),
            (self._schema, *(below.descriptor.output_schema for below in self._sources[self._count :])),
            self._candidate.node.schema,
        )
        shipping = self._candidate.inputs[0].shipping
        first = Channel(source, 0, ShipStrategy.FORWARD, FORWARD) if operator.keys else channel_of(source, 0, shipping)
        broadcasts = zip(self._sources[self._count :], self._candidate.inputs[self._count :], strict=True)
        others = (channel_of(below.id, index, each.shipping) for index, (below, each) in enumerate(broadcasts, 1))
        return descriptor, (first, *others)


def broadcast_channels(nodes: Sequence[PhysicalNode]) -> list[tuple[int, int]]:
    """Return the channels (consumer, position) through which functions get broadcast data sets."""
    return [
        (node.id, position)
        for node in nodes
        for position, channel in enumerate(node.inputs)
        if isinstance(node.descriptor.operator, PythonOperator) and channel.input_index
    ]
