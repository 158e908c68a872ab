"""Run-time filters: which sources leave out rows because a join will have no partner for them.

    source ─► projections, filters ─► probe side of a join ◄─ build side: complete before the first row is read
       ▲                                     │
       └──── keys of the build side ─────────┘

A join that drops probe rows without match makes a filter of each key that its probe rows have from a column of a source
as it was read. What lies between may drop and rename columns, drop rows, and group them by that column; it may be the
probe side of other joins, where no row of their build sides comes out for itself: a result without the rows that
have a key is that of its probe side without them. The column has the type of the key there, or it would be computed.
Nothing passes numbers that are drawn for rows by their place.

The source is read by the join's own task, or by the tasks that send the join its probe rows, PIPELINED: hashed by their
key, in turn, or as they are. Then it waits for the build side (``operators.filter_registry``), where all of them run in
one process. Joins between pass filters on to the tasks that send them rows: of a fact table that is joined with one
table after the other, only rows are read that all of them have a partner for; each source of a union has the filters.

It pays where few rows are kept, and where there are enough rows to spare: KEPT_SHARE_MAX and SOURCE_ROWS_MIN. The share
that is kept is that of the build side's different keys in all keys that there are, on the side that has more of them.

Expectations may be wrong, those of what joins leave most of all. So a build side of few rows beside the source's makes
its filter in any case, if it is more than a table as it lies there. A larger one that is more than a table as it lies
there may turn out to be small: how many rows it has is seen when it is complete, and up to ``RuntimeFilter.rows_max``
the join makes the filter that was not expected to pay; of a build side that is divided among subtasks, each with its
part of them. One that keeps too much is switched off where it is applied (``records.adaptive_key_filter``).

Source: Flink's FlinkRuntimeFilterProgram, the dynamic filters of Trino.
Held by: tests/optimizer/test_runtime_filters.py
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from engine.formats.registry import format_of
from engine.graph.expression import ColumnRef
from engine.graph.operator_descriptor import (
    FilterOperator,
    HashAggregateOperator,
    HashJoinOperator,
    ProjectOperator,
    SourceOperator,
)
from engine.graph.runtime_filter import RuntimeFilter
from engine.graph.ship_strategy import ShipStrategy
from engine.optimizer.physical_plan import Channel, PhysicalNode
from engine.statistics.estimates import Estimates

if TYPE_CHECKING:
    from engine.join.join_type import Emission

#: largest share of a source's rows that a filter is expected to keep
KEPT_SHARE_MAX: Final = 0.5
#: ratio of a build side's rows to the source's up to which a filter costs less than it may save, whatever is expected
CHEAP_SHARE: Final = 0.01
#: rows of a source below which a filter does not pay
SOURCE_ROWS_MIN: Final = 100_000
#: rows of a build side beyond which collecting its keys is expensive; as many as a filter takes
BUILD_ROWS_MAX: Final = 2_000_000


#: ship strategies with which probe rows may come from other tasks
_SHIPPED: Final = (ShipStrategy.FORWARD, ShipStrategy.PARTITION_HASH, ShipStrategy.PARTITION_FORCED_REBALANCE)


class Place(NamedTuple):
    """A column of a source, and the joins between, which pass filters on to it."""

    source: int
    column: str
    joins: tuple[int, ...]
    #: True if its rows are stored on their way to the join
    is_stored: bool


def with_runtime_filters(nodes: Sequence[PhysicalNode]) -> tuple[PhysicalNode, ...]:
    """Return the nodes with filters in the joins that make them and in the sources that apply them."""
    readers = Counter(channel.source for node in nodes for channel in node.inputs)
    #: filters by the number of the join that makes them, of the source that applies them, and of joins between
    made: dict[int, list[RuntimeFilter]] = {}
    applied: dict[int, list[RuntimeFilter]] = {}
    passed: dict[int, list[RuntimeFilter]] = {}
    for node in nodes:
        for key, place in keys_of_sources(nodes, readers, node):
            rows_max = rows_max_of(nodes, node, key, place)
            if rows_max is not None and _is_divided(node):
                rows_max //= node.parallelism
            if rows_max != 0:
                found = RuntimeFilter(node.id, node.descriptor.name, key, place.column, rows_max)
                made.setdefault(node.id, []).append(found)
                applied.setdefault(place.source, []).append(found)
                for join in place.joins:
                    passed.setdefault(join, []).append(found)
    return tuple(
        _with_filters(node, [*made.get(node.id, ()), *applied.get(node.id, ())], passed.get(node.id, ()))
        for node in nodes
    )


def _with_filters(
    node: PhysicalNode, filters: Sequence[RuntimeFilter], passed: Sequence[RuntimeFilter]
) -> PhysicalNode:
    operator = node.descriptor.operator
    if filters and isinstance(operator, HashJoinOperator | SourceOperator):
        operator = msgspec.structs.replace(operator, filters=(*operator.filters, *filters))
    if passed and isinstance(operator, HashJoinOperator):
        operator = msgspec.structs.replace(operator, passes=tuple(passed))
    return node if operator is node.descriptor.operator else node.with_operator(operator)


def keys_of_sources(
    nodes: Sequence[PhysicalNode], readers: Counter[int], node: PhysicalNode, *, is_stored: bool = False
) -> list[tuple[int, Place]]:
    """Return the keys of a join that drops probe rows without match, with the places that these have them from.

    is_stored: places of which the rows are stored on their way; else those of which they are not.
    """
    join = node.descriptor.operator
    if not isinstance(join, HashJoinOperator) or join.null_aware or not join.left_keys:
        return []
    if _emission(join).unmatched_probe:
        return []
    # each source of a union leaves out its own rows
    probe = probe_channels(join, node)
    keys = join.right_keys if join.build_left else join.left_keys
    return [
        (key, place)
        for channel in probe
        for key, name in enumerate(keys)
        for place in _places_of(nodes, readers, channel, name)
        if place.is_stored == is_stored
    ]


def _places_of(nodes: Sequence[PhysicalNode], readers: Counter[int], channel: Channel, name: str) -> Iterator[Place]:
    """Yield the sources of a channel's column, each of which is read for this channel alone."""
    #: channels, the column's name there, the joins that pass filters on to them, and whether rows are stored since
    above: list[tuple[Channel, str, tuple[int, ...], bool]] = [(channel, name, (), False)]
    while above:
        channel, name, joins, is_stored = above.pop()
        if channel.ship_strategy not in _SHIPPED or readers[channel.source] != 1:
            continue
        is_stored = is_stored or not channel.is_pipelined
        found = _made_of(nodes, readers, nodes[channel.source], name)
        if found is None:
            continue
        node, made_of = found
        operator = node.descriptor.operator
        if isinstance(operator, SourceOperator):
            yield Place(node.id, made_of, joins, is_stored)
        elif isinstance(operator, HashJoinOperator):
            own_name = probe_column(operator, node, made_of)
            if own_name is not None:
                below = reversed(probe_channels(operator, node))
                above += [(each, own_name, (*joins, node.id), is_stored) for each in below]


def probe_channels(join: HashJoinOperator, node: PhysicalNode) -> list[Channel]:
    """Return the channels of a join's probe side: several are the inputs of a union."""
    return [channel for channel in node.inputs if channel.input_index != join.first_input]


def _made_of(
    nodes: Sequence[PhysicalNode], readers: Counter[int], node: PhysicalNode, name: str
) -> tuple[PhysicalNode, str] | None:
    """Return the node below projections and filters of its task, and the column's name there."""
    while True:
        operator = node.descriptor.operator
        match operator:
            case ProjectOperator(expressions=expressions) if operator.traits.is_repeatable:
                computed = next(each.expression for each in expressions if each.name == name)
                if not isinstance(computed, ColumnRef):
                    return None
                name = computed.name
            case FilterOperator():
                pass
            case HashAggregateOperator(phase="partial" | "combine", keys=keys) if name in keys:
                pass  # a group goes with all of its rows
            case ProjectOperator():
                return None
            case _:
                return node, name
        if not _is_beside(nodes, readers, node.inputs[0], node):
            return None
        node = nodes[node.inputs[0].source]


def _emission(join: HashJoinOperator) -> Emission:
    from engine.join.join_type import emission

    return emission(join.how, build_is_left=join.build_left)


def _is_beside(nodes: Sequence[PhysicalNode], readers: Counter[int], channel: Channel, node: PhysicalNode) -> bool:
    is_forward = channel.is_pipelined and channel.ship_strategy is ShipStrategy.FORWARD
    return is_forward and readers[channel.source] == 1 and nodes[channel.source].parallelism == node.parallelism


def probe_column(join: HashJoinOperator, node: PhysicalNode, name: str) -> str | None:
    """Return the column of a join's probe side that an output column equals, row by row; None: there is none."""
    emits = _emission(join)
    if emits.unmatched_build or emits.matched_build or join.null_aware:
        return None
    side, index = join.output[node.descriptor.output_schema.names.index(name)]
    own = node.descriptor.input_schemas[side].names[index]
    if side != join.first_input:
        return own
    # of a pair the keys of both sides are equal
    build_keys, probe_keys = (join.left_keys, join.right_keys) if join.build_left else (join.right_keys, join.left_keys)
    if emits.unmatched_probe or own not in build_keys:
        return None
    return probe_keys[build_keys.index(own)]


def rows_max_of(nodes: Sequence[PhysicalNode], node: PhysicalNode, key: int, place: Place) -> int | None:
    """Return the limit of the rows of a build side for a filter: None: no limit, 0: no filter."""
    join = node.descriptor.operator
    assert isinstance(join, HashJoinOperator)
    source = nodes[place.source].estimates
    built = [channel for channel in node.inputs if channel.input_index == join.first_input]
    build = nodes[built[0].source].estimates
    name = (join.left_keys if join.build_left else join.right_keys)[key]
    if source.rows < SOURCE_ROWS_MIN:
        return 0
    is_small = build.rows <= min(BUILD_ROWS_MAX, source.rows)
    if is_small and kept_share(build, name, source, place.column) <= KEPT_SHARE_MAX:
        return None
    if all(_is_whole_table(nodes, channel) for channel in built):
        return 0
    if build.rows <= CHEAP_SHARE * source.rows:
        return None
    return int(KEPT_SHARE_MAX * _key_count(build, name, source, place.column))


def _is_divided(node: PhysicalNode) -> bool:
    """Whether the subtasks of a join have a part of the build side each."""
    built = [each for each in node.inputs if node.absorbs(each.input_index)]
    return any(channel.ship_strategy is not ShipStrategy.BROADCAST for channel in built)


def _is_whole_table(nodes: Sequence[PhysicalNode], channel: Channel) -> bool:
    """Whether all rows of a source come through a channel: as many as its estimate says."""
    while isinstance((operator := nodes[channel.source].descriptor.operator), ProjectOperator):
        channel = nodes[channel.source].inputs[0]
    if not isinstance(operator, SourceOperator):
        return False
    return format_of(operator.spec).predicate(operator.spec) is None


def _key_count(build: Estimates, key: str, source: Estimates, column: str) -> float:
    """Return the number of keys there are, on the side that has more of them; 0.0: nothing is known."""
    known = (build.columns.get(key), source.columns.get(column))
    return max((each.distinct_count or 0.0 for each in known if each is not None), default=0.0)


def kept_share(build: Estimates, key: str, source: Estimates, column: str) -> float:
    """Return the share of a source's rows that have a partner on a build side, as far as is known: 1.0 at most."""
    count = _key_count(build, key, source, column)
    return min(1.0, (build.distinct(key) or build.rows) / max(1.0, count)) if count else 1.0
