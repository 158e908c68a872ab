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

"arguments" is a projection that makes the key columns and ``__arg{i}`` for each call; it is left out where the input
is just that, or where the aggregate needs no columns at all (``count()`` of everything).

Memory weights: how much managed memory an operator wishes for, as a share of a slot, from what it will hold:
between WEIGHT_MIN (estimates can be wrong) and 1.
"""

from __future__ import annotations

import msgspec

from engine.graph.expression import ColumnRef, NamedExpression
from engine.graph.operator_descriptor import (
    FilterOperator,
    HashAggregateOperator,
    IdentityOperator,
    OperatorDescriptor,
    PhysicalOperator,
    ProjectOperator,
    PythonOperator,
    SinkOperator,
    SourceOperator,
)
from engine.graph.plan import (
    Aggregate,
    CoGroup,
    Filter,
    GroupReduce,
    Join,
    Limit,
    Partition,
    Plan,
    Project,
    PythonFunction,
    Sink,
    Sort,
    Source,
)
from engine.graph.ship_strategy import ShipStrategy
from engine.optimizer.candidates import FORWARD, Candidate, Shipping
from engine.optimizer.function_planning import GroupPhases, input_count, python_operator
from engine.optimizer.join_translation import held_estimates, join_translation, share_of_left
from engine.optimizer.operator_names import operator_name
from engine.optimizer.partition_planning import channel_descriptor
from engine.optimizer.physical_plan import Channel, PhysicalNode
from engine.optimizer.rejection_reasons import rejected_alternatives
from engine.optimizer.replication import is_replicated
from engine.optimizer.settings import OptimizerSettings
from engine.optimizer.sort_planning import STRATEGIES, sort_operators
from engine.optimizer.sorted_aggregates import STRATEGIES as SORTED_AGGREGATE_STRATEGIES
from engine.optimizer.sorted_aggregates import sorted_aggregate_operators
from engine.statistics.costs import NO_COST
from engine.statistics.estimates import Estimates

WEIGHT_MIN = 0.25


class PhysicalPlanBuilder:
    """Turns the chosen candidates into physical nodes, each candidate once."""

    def __init__(self, plan: Plan, settings: OptimizerSettings) -> None:
        self._sink_index = {node_id: index for index, node_id in enumerate(plan.sinks)}
        self._settings = settings
        self._nodes: list[PhysicalNode] = []
        self._built: dict[int, int] = {}

    def build(self, roots: list[Candidate]) -> list[PhysicalNode]:
        """Return the physical nodes of all sinks in topological order."""
        for root in roots:
            self._build(root)
        return self._nodes

    def _build(self, root: Candidate) -> None:
        stack = [(root, False)]
        while stack:
            candidate, inputs_done = stack.pop()
            if id(candidate) in self._built:
                continue
            if inputs_done:
                self._built[id(candidate)] = self._translate(candidate)
            else:
                stack.append((candidate, True))
                stack.extend((each.candidate, False) for each in reversed(candidate.inputs))

    def _translate(self, candidate: Candidate) -> int:
        match candidate.node.operator:
            case Source() as source:
                return self._plain(candidate, SourceOperator(source.spec, is_replicated(candidate), source.rate_limit))
            case Project(expressions=expressions):
                return self._plain(candidate, ProjectOperator(expressions))
            case Filter(predicate=predicate):
                return self._plain(candidate, FilterOperator(predicate))
            case PythonFunction() as function:
                return self._plain(candidate, python_operator(function))
            case GroupReduce() | CoGroup():
                return self._groups(candidate, candidate.node.operator)
            case Sink(spec=sink):
                return self._plain(candidate, SinkOperator(self._sink_index[candidate.node.id], sink))
            case Join() as join:
                return self._join(candidate, join)
            case Aggregate() as aggregate:
                return self._aggregate(candidate, aggregate)
            case Sort() | Limit():
                return self._sort(candidate) if candidate.combined is None else self._sorted_aggregate(candidate)
            case Partition(kind="CUSTOM") as partition:
                return self._custom_partition(candidate, partition)
            case _:
                return self._plain(candidate, IdentityOperator())

    def _channels(self, candidate: Candidate) -> tuple[Channel, ...]:
        is_join = isinstance(candidate.node.operator, Join | PythonFunction)
        return tuple(
            _channel(self._built[id(each.candidate)], position if is_join else 0, each.shipping)
            for position, each in enumerate(candidate.inputs)
        )

    def _input_node(self, candidate: Candidate) -> PhysicalNode:
        return self._nodes[self._built[id(candidate.inputs[0].candidate)]]

    def _weight(self, held: Estimates, parallelism: int) -> float:
        if not held.is_size_known:
            return 1.0
        return min(1.0, max(WEIGHT_MIN, held.size_bytes / parallelism / self._settings.managed_bytes_per_slot))

    def _partial_weight(self, groups: Estimates) -> float:
        """Return the weight of a first phase: where it cannot hold all groups, most rows pass it whatever it has."""
        weight = self._weight(groups, 1)
        return weight if weight < 1.0 else WEIGHT_MIN

    def _plain(self, candidate: Candidate, operator: PhysicalOperator, weight: float = 0.0) -> int:
        channels = self._channels(candidate)
        count = len(channels) if isinstance(operator, PythonOperator) else min(1, len(channels))
        schemas = tuple(self._nodes[channel.source].descriptor.output_schema for channel in channels[:count])
        descriptor = OperatorDescriptor(
            candidate.node.id, operator_name(candidate.node), operator, schemas, candidate.node.schema, weight
        )
        return self._add(candidate, descriptor, channels)

    def _add(
        self, candidate: Candidate, descriptor: OperatorDescriptor, channels: tuple[Channel, ...], name: str = ""
    ) -> int:
        """Add the operator that finishes a candidate's work; it carries the costs."""
        report = candidate.report
        node = PhysicalNode(
            len(self._nodes),
            candidate.node.id,
            descriptor,
            candidate.parallelism,
            channels,
            candidate.estimates,
            name or candidate.strategy,
            candidate.alternative,
            candidate.own_costs,
            candidate.cumulative_costs,
            () if report is None else rejected_alternatives(candidate.alternative, report),
            "" if report is None else report.hint,
        )
        self._nodes.append(node)
        return node.id

    def _add_phase(
        self,
        candidate: Candidate,
        source: int,
        descriptor: OperatorDescriptor,
        estimates: Estimates,
        strategy: str = "",
    ) -> int:
        """Add a first phase that runs in the subtasks of its input."""
        below = self._nodes[source]
        node = PhysicalNode(
            len(self._nodes),
            candidate.node.id,
            descriptor,
            below.parallelism,
            (Channel(source, 0, ShipStrategy.FORWARD, FORWARD),),
            estimates,
            strategy,
            costs=NO_COST,
            cumulative_costs=below.cumulative_costs,
            is_local_phase=True,
        )
        self._nodes.append(node)
        return node.id

    def _join(self, candidate: Candidate, join: Join) -> int:
        left, right = (self._nodes[self._built[id(each.candidate)]] for each in candidate.inputs)
        schemas = (left.descriptor.output_schema, right.descriptor.output_schema)
        heavy = candidate.inputs[0].shipping.partitioner.heavy
        share = share_of_left(left.estimates, right.estimates)
        translated = join_translation(join, *schemas, candidate.node.schema, candidate.strategy, heavy, share)
        held, copies = held_estimates(candidate, left.estimates, right.estimates)
        weight = self._weight(held, max(1, candidate.parallelism // copies))
        node_id, name = candidate.node.id, operator_name(candidate.node)
        descriptor = OperatorDescriptor(node_id, name, translated.operator, schemas, translated.schema, weight)
        joined = self._add(candidate, descriptor, self._channels(candidate))
        if not translated.coalescing:
            return joined
        coalescing = ProjectOperator(translated.coalescing)
        descriptor = OperatorDescriptor(
            node_id, "coalesce keys", coalescing, (translated.schema,), candidate.node.schema
        )
        return self._add_phase(candidate, joined, descriptor, candidate.estimates)

    def _sort(self, candidate: Candidate) -> int:
        """Add the operators of a sort or a limit."""
        operator = candidate.node.operator
        below = self._input_node(candidate)
        is_top = isinstance(operator, Sort) and operator.limit is not None
        parallelism = below.parallelism if candidate.strategy == "SORT_RANGES" else 1
        weight = self._weight(candidate.estimates if is_top else below.estimates, parallelism)
        *phases, final = sort_operators(candidate, operator_name(candidate.node), weight)
        before, behind = STRATEGIES.get(candidate.strategy, ("", ""))
        source = below.id
        for phase in phases:
            source = self._add_phase(candidate, source, phase, candidate.estimates, before)
        return self._add(candidate, final, (_channel(source, 0, candidate.inputs[0].shipping),), behind)

    def _groups(self, candidate: Candidate, operator: GroupReduce | CoGroup) -> int:
        below = [self._nodes[self._built[id(each.candidate)]] for each in candidate.inputs]
        phases = GroupPhases(candidate, operator, below)
        grouped = []
        for side, source in enumerate(below[: input_count(operator)]):
            pairing = phases.pairing(side)
            phase = None if pairing is None else self._add_phase(candidate, source.id, pairing, source.estimates)
            grouped.append(source.id if phase is None else phase)
        if operator.keys:
            sort = phases.sort_node(len(self._nodes), grouped, self._weight(phases.held, candidate.parallelism))
            self._nodes.append(sort)
            grouped = [sort.id]
        return self._add(candidate, *phases.function(grouped[0]))

    def _custom_partition(self, candidate: Candidate, partition: Partition) -> int:
        below = self._input_node(candidate)
        descriptor = channel_descriptor(candidate, partition, below.descriptor.output_schema)
        source = self._add_phase(candidate, below.id, descriptor, below.estimates)
        schema = candidate.node.schema
        name = operator_name(candidate.node)
        identity = OperatorDescriptor(candidate.node.id, name, IdentityOperator(), (schema,), schema)
        return self._add(candidate, identity, (_channel(source, 0, candidate.inputs[0].shipping),))

    def _aggregate(self, candidate: Candidate, aggregate: Aggregate) -> int:
        name = operator_name(candidate.node)
        node_id = candidate.node.id
        source = self._arguments(candidate, aggregate)
        schema = self._nodes[source].descriptor.output_schema
        keys, calls = aggregate.keys, aggregate.calls
        if candidate.strategy == "SINGLE":
            weight = self._weight(candidate.estimates, candidate.parallelism)
            operator = HashAggregateOperator("single", keys, calls)
            descriptor = OperatorDescriptor(node_id, name, operator, (schema,), candidate.node.schema, weight)
            channel = _channel(source, 0, candidate.inputs[0].shipping)
            return self._add(candidate, descriptor, (channel,))
        local = self._partial(candidate, aggregate, source)
        final = OperatorDescriptor(
            node_id,
            name,
            HashAggregateOperator("final", keys, calls),
            (aggregate.state_schema,),
            candidate.node.schema,
            self._weight(candidate.estimates, candidate.parallelism),
        )
        return self._add(candidate, final, (_channel(local, 0, candidate.inputs[0].shipping),), "FINAL")

    def _partial(self, candidate: Candidate, aggregate: Aggregate, source: int, is_sorted_next: bool = False) -> int:
        """Add the first phase of an aggregate; returns its node."""
        partial = OperatorDescriptor(
            candidate.node.id,
            f"partial {operator_name(candidate.node)}",
            HashAggregateOperator("partial", aggregate.keys, aggregate.calls, is_sorted_next),
            (self._nodes[source].descriptor.output_schema,),
            aggregate.state_schema,
            self._partial_weight(candidate.estimates),
        )
        below = self._nodes[source]
        rows = min(below.estimates.rows, candidate.estimates.rows * below.parallelism)
        states = Estimates(rows, rows * max(1, aggregate.state_schema.row_width_bytes), "groups * subtasks")
        return self._add_phase(candidate, source, partial, states, "PARTIAL")

    def _sorted_aggregate(self, candidate: Candidate) -> int:
        """Add an aggregate whose states are sorted and combined in runs and merges."""
        grouping = candidate.combined
        assert grouping is not None
        aggregate = grouping.node.operator
        assert isinstance(aggregate, Aggregate)
        partial = self._partial(grouping, aggregate, self._arguments(grouping, aggregate), is_sorted_next=True)
        states = self._nodes[partial]
        weight = self._weight(states.estimates, states.parallelism)
        runs, merge = sorted_aggregate_operators(candidate, operator_name(candidate.node), weight)
        before, behind = SORTED_AGGREGATE_STRATEGIES
        source = self._add_phase(candidate, partial, runs, states.estimates, before)
        return self._add(candidate, merge, (_channel(source, 0, candidate.inputs[0].shipping),), behind)

    def _arguments(self, candidate: Candidate, aggregate: Aggregate) -> int:
        """Return the node that makes the input of the first phase: a new projection or the input itself."""
        below = self._input_node(candidate)
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
        return self._add_phase(candidate, below.id, descriptor, estimates)


def _channel(source: int, input_index: int, shipping: Shipping) -> Channel:
    return Channel(source, input_index, shipping.strategy, shipping.partitioner, shipping.costs, shipping.reason)
