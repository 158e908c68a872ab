"""Window functions: candidates and operators.

    input ──HASH by partition keys──► sort by partition and order keys ──► window        SORTED_WINDOW
    input that lies in this order already ──► window                                    WINDOW

Rows are not moved where those of a partition are together: in one subtask, or hashed by some of the partition keys.
They are not sorted where each subtask has them in an order that begins with the partition keys, whichever comes first
and in whichever direction, and goes on with the order keys: after another window of the same order, or a sort in one
subtask.

Where only the first rows of each group are wanted (``rules.window_top``), runs of the sort keep no others, and where
that leaves few, producers sort theirs before they send them.

Without partition keys there is one partition, in one subtask, unless it is divided by ranges of its order, which is in
``window_ranges``. What has been sorted over subtasks is read one after the other, and not sorted again. An input up to
``SMALL_SORT_BYTES`` that is in one subtask stays there, too. Rows that are equal in all keys keep the order of the
input where it has one.

Source: Graefe, "Query evaluation techniques" (1993), on interesting orders.
"""

from __future__ import annotations

from typing import Final, Protocol

import msgspec

from engine.graph.operator_descriptor import OperatorDescriptor, SortOperator, WindowOperator
from engine.graph.plan import PlanNode, Window
from engine.graph.ship_strategy import PartitionerSpec, ShipStrategy
from engine.graph.sort_key import SortKey
from engine.graph.window import GroupLimit, WindowCall
from engine.optimizer.candidates import FORWARD, Candidate, CandidateInput, Shipping, move
from engine.optimizer.physical_plan import Channel, PhysicalNode
from engine.optimizer.physical_plan_builder import PhysicalPlanBuilder, channel_of
from engine.optimizer.properties import RANDOM, hashed_by
from engine.optimizer.settings import OptimizerSettings
from engine.optimizer.sort_planning import SMALL_SORT_BYTES, in_order
from engine.statistics.costs import NO_COST, local_cost, repartition_cost
from engine.statistics.estimates import Estimates

#: weight of functions whose result depends on rows up to the current one
LIGHT_WEIGHT: Final = 0.05
#: weight of functions that wait for the end of the partition, or read earlier rows
HEAVY_WEIGHT: Final = 0.25
#: share of the rows left below which producers limit their groups
TOP_SHARE: Final = 0.25
_ENDS_WITH_PARTITION: Final = frozenset({"percent_rank", "cume_dist", "ntile"})


class SortedUse(Protocol):
    """An operator that needs the rows of each group together and in order."""

    @property
    def partition_by(self) -> tuple[str, ...]:
        """Keys of the groups."""

    @property
    def order_by(self) -> tuple[SortKey, ...]:
        """Order within a group."""

    @property
    def top(self) -> GroupLimit | None:
        """Rows beyond it are not wanted."""


def window_candidate(
    node: PlanNode, window: SortedUse, estimates: Estimates, source: Candidate, settings: OptimizerSettings
) -> Candidate:
    """Return the candidate of window functions over this input."""
    parallelism = _parallelism(node, window, source, settings)
    shipping = _shipping(window, source, parallelism)
    moves = shipping.strategy.is_network
    keeps_order = not moves or (parallelism == 1 and shipping.partitioner.in_order)
    wants_none = not window.partition_by and not window.order_by
    order = order_within(window, source.sorted_by) if keeps_order or wants_none else None
    is_sorted = order is not None
    if order is None:
        order = (*(SortKey(key) for key in window.partition_by), *window.order_by)
    memory = settings.page_budget.operator_bytes
    costs = local_cost(source.estimates, memory, parallelism, keeps_rows=not is_sorted)
    if not is_sorted and source.estimates.is_size_known:
        # written into pages and sorted, before the window reads it
        costs = msgspec.structs.replace(costs, cpu=3 * source.estimates.size_bytes)
    properties = hashed_by(window.partition_by) if window.partition_by and moves else RANDOM
    return Candidate(
        node,
        estimates,
        parallelism,
        (CandidateInput(source, shipping),),
        "WINDOW" if is_sorted else "SORTED_WINDOW",
        costs=costs,
        properties=properties if moves else source.properties,
        sorted_by=order,
    )


def _parallelism(node: PlanNode, window: SortedUse, source: Candidate, settings: OptimizerSettings) -> int:
    if not window.partition_by:
        return 1
    if node.parallelism is not None:
        return node.parallelism
    if source.parallelism == 1:
        is_small = source.estimates.is_size_known and source.estimates.size_bytes <= SMALL_SORT_BYTES
        if is_small or order_within(window, source.sorted_by) is not None:
            return 1
    return settings.parallelism


def _shipping(window: SortedUse, source: Candidate, parallelism: int) -> Shipping:
    is_grouped = source.parallelism == 1 or source.properties.groups(window.partition_by)
    if parallelism == 1 or (is_grouped and source.parallelism == parallelism):
        shipping = move(source, parallelism)
    else:
        share = source.estimates.heaviest_share(window.partition_by)
        costs = repartition_cost(source.estimates, parallelism, share)
        shipping = Shipping(ShipStrategy.PARTITION_HASH, PartitionerSpec("HASH", window.partition_by), costs)
    return in_order(source, shipping)


def order_within(window: SortedUse, order: tuple[SortKey, ...]) -> tuple[SortKey, ...] | None:
    """Return the part of an order by which a window's rows are sorted already; None: they are not."""
    count = len(window.partition_by)
    first, rest = order[:count], order[count : count + len(window.order_by)]
    if {key.column for key in first} == set(window.partition_by) and rest == window.order_by:
        return (*first, *rest)
    return None


def window_weight(calls: tuple[WindowCall, ...], held: float) -> float:
    """Return the weight of window functions; held: that of a sort of the same rows."""
    return min(HEAVY_WEIGHT, held) if any(_keeps_rows(call) for call in calls) else LIGHT_WEIGHT


def _keeps_rows(call: WindowCall) -> bool:
    if call.frame is None:
        return call.function in _ENDS_WITH_PARTITION or call.count > 0
    is_running = call.frame.start is None and call.frame.end == 0
    return not is_running


def add_window(builder: PhysicalPlanBuilder, candidate: Candidate, window: Window) -> int:
    """Add the sort, where one is needed, and the window functions."""
    below, channel = sorted_input(builder, candidate, window)
    partition = tuple(key.column for key in candidate.sorted_by[: len(window.partition_by)])
    descriptor = OperatorDescriptor(
        candidate.node.id,
        builder.name_of(candidate.node),
        WindowOperator(partition, window.order_by, window.calls),
        (below.descriptor.output_schema,),
        candidate.node.schema,
        window_weight(window.calls, builder.weight(below.estimates, candidate.parallelism)),
    )
    return builder.add(candidate, descriptor, (channel,), "WINDOW")


def sorted_input(builder: PhysicalPlanBuilder, candidate: Candidate, window: SortedUse) -> tuple[PhysicalNode, Channel]:
    """Add the sort of the input, where one is needed; return what is sorted, and the way of its rows."""
    below = builder.input_node(candidate)
    schema = below.descriptor.output_schema
    channel = channel_of(below.id, 0, candidate.inputs[0].shipping)
    if not candidate.strategy.startswith("SORTED"):
        return below, channel
    order = (*(SortKey(key) for key in window.partition_by), *window.order_by)
    name = f"{_top_text(window)}sort for {builder.name_of(candidate.node)}"
    weight = builder.weight(below.estimates, candidate.parallelism)
    sort = OperatorDescriptor(candidate.node.id, name, SortOperator(order, top=window.top), (schema,), schema, weight)
    if _cuts_before_shipping(window, candidate):
        # the first rows of each producer's groups travel
        before = msgspec.structs.replace(sort, name=f"local {name}")
        below = builder.node(builder.add_phase(candidate, below.id, before, below.estimates, "LOCAL_TOP"))
        channel = channel_of(below.id, 0, candidate.inputs[0].shipping)
    # the costs of shipping and sorting are those of the window
    sorting = PhysicalNode(
        builder.next_id,
        candidate.node.id,
        sort,
        candidate.parallelism,
        (channel,),
        below.estimates,
        "SORT",
        costs=NO_COST,
        cumulative_costs=below.cumulative_costs,
    )
    return below, Channel(builder.add_node(sorting), 0, ShipStrategy.FORWARD, FORWARD)


def _top_text(window: SortedUse) -> str:
    return "" if window.top is None else f"{window.top.function} up to {window.top.count}: "


def _cuts_before_shipping(window: SortedUse, candidate: Candidate) -> bool:
    """Whether so few rows of each group are wanted that producers sort theirs, too, to send only those."""
    below = candidate.inputs[0]
    if window.top is None or not below.shipping.strategy.is_network:
        return False
    groups = 1.0
    for key in window.partition_by:
        groups *= below.candidate.estimates.distinct(key) or below.candidate.estimates.rows
    return groups * window.top.count * below.candidate.parallelism < TOP_SHARE * below.candidate.estimates.rows


def sorted_columns(order: tuple[SortKey, ...], names: dict[str, str]) -> tuple[SortKey, ...]:
    """Return the order that a projection keeps: up to the first key that it drops, under the new names."""
    kept: list[SortKey] = []
    for key in order:
        if key.column not in names:
            break
        kept.append(msgspec.structs.replace(key, column=names[key.column]))
    return tuple(kept)
