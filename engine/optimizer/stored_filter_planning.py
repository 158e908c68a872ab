"""Stored filters: run-time filters of joins whose probe rows are stored before the join reads them.

    source ──► (joins) ──BATCH──► probe side of a join ◄──BATCH── build side: its tasks end before the source begins
       ▲                                                              │
       └── BATCH ── filters of its keys ◄─────────────────────────────┘

What is stored is complete before anything reads it. So a source whose rows are stored for a join may as well wait until
the build side is complete, and then leave out what has no partner there. Which keys these are, and when that pays, is
the business of ``runtime_filter_planning``; here the tasks that make the build side make the filters, too, as one more
result, and the source has it as an input. The filter comes of rows that lie where they were made, not where the join
has them: a part of the keys from each subtask.

A build side that the join takes as it is made runs together with the join. It is stored, too, if that costs little
beside what the filter spares, ``STORED_SHARE_MAX``. What would make tasks wait for each other in a circle is left out.

Held by: tests/optimizer/test_stored_filters.py
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from engine.graph.exchange_mode import DataExchangeMode, ExecutionMode, exchange_mode
from engine.graph.operator_descriptor import HashJoinOperator, KeyFilterOperator, OperatorDescriptor, SourceOperator
from engine.graph.pipelined_regions import RegionEdge, cyclic_components, pipelined_components
from engine.graph.runtime_filter import FILTER_ROWS, RuntimeFilter
from engine.graph.ship_strategy import PartitionerSpec, ShipStrategy
from engine.optimizer.exchange_planning import cut, region_edges
from engine.optimizer.physical_plan import Channel, PhysicalNode
from engine.optimizer.runtime_filter_planning import BUILD_ROWS_MAX, kept_share, keys_of_sources, rows_max_of
from engine.statistics.estimates import Estimates

#: largest ratio of a build side's bytes that are stored for a filter to the source's bytes that it spares
STORED_SHARE_MAX: Final = 0.25
#: bytes of a filter for each key, as far as is known before there is one
_BYTES_PER_KEY: Final = 2


class _Wanted(NamedTuple):
    """Filters of keys of a join's build side for one source."""

    join: int
    #: position of the channel among the join's inputs that the build side comes through
    build: int
    source: int
    #: (column of the build side, column of the source, limit of a subtask's rows) of each key
    keys: tuple[tuple[str, str, int | None], ...]


def with_stored_filters(nodes: Sequence[PhysicalNode], mode: ExecutionMode) -> tuple[PhysicalNode, ...]:
    """Return the nodes with stored filters where they pay: build sides that make them, sources that read them."""
    if mode not in (ExecutionMode.BATCH, ExecutionMode.BATCH_FORCED):
        return tuple(nodes)
    planned = list(nodes)
    taken: list[_Wanted] = []
    waits: list[RegionEdge] = []
    for wanted in _wanted(nodes):
        channel, tried = nodes[wanted.join].inputs[wanted.build], list(planned)
        if channel.is_pipelined:
            cut(tried, (wanted.join, wanted.build), "its keys filter the other input's source")
        wait = RegionEdge(channel.source, wanted.source, is_pipelined=False)
        edges = [*region_edges(tried), *waits, wait]
        if not cyclic_components(pipelined_components(len(nodes), edges), edges):
            planned = tried
            taken.append(wanted)
            waits.append(wait)
    return _inserted(planned, taken, mode) if taken else tuple(nodes)


def _wanted(nodes: Sequence[PhysicalNode]) -> Iterable[_Wanted]:
    """Yield the filters that would pay."""
    readers = Counter(channel.source for node in nodes for channel in node.inputs)
    for node in nodes:
        join = node.descriptor.operator
        built = [position for position, each in enumerate(node.inputs) if node.absorbs(each.input_index)]
        if not isinstance(join, HashJoinOperator) or len(built) != 1:
            continue
        names = join.left_keys if join.build_left else join.right_keys
        by_source: dict[int, list[tuple[str, str, int | None]]] = defaultdict(list)
        for key, place in keys_of_sources(nodes, readers, node, is_stored=True):
            rows_max = rows_max_of(nodes, node, key, place)
            if rows_max is not None:
                rows_max //= nodes[node.inputs[built[0]].source].parallelism
            if rows_max != 0:
                by_source[place.source].append((names[key], place.column, rows_max))
        for source, keys in by_source.items():
            wanted = _Wanted(node.id, built[0], source, tuple(keys))
            if _pays(nodes, wanted):
                yield wanted


def _pays(nodes: Sequence[PhysicalNode], wanted: _Wanted) -> bool:
    channel = nodes[wanted.join].inputs[wanted.build]
    build, source = nodes[channel.source], nodes[wanted.source]
    if not (build.estimates.is_size_known and source.estimates.is_size_known):
        return False
    # each of its subtasks reads all of the filter
    if _BYTES_PER_KEY * build.estimates.rows * source.parallelism > source.estimates.size_bytes:
        return False
    kept = min(kept_share(build.estimates, name, source.estimates, column) for name, column, _ in wanted.keys)
    spared = (1 - kept) * source.estimates.size_bytes
    return not channel.is_pipelined or build.estimates.size_bytes <= STORED_SHARE_MAX * spared


def _inserted(nodes: Sequence[PhysicalNode], taken: Sequence[_Wanted], mode: ExecutionMode) -> tuple[PhysicalNode, ...]:
    """Return the nodes with those that make filters, each before the source that reads it, and all numbered anew."""
    by_source: dict[int, list[_Wanted]] = defaultdict(list)
    for wanted in taken:
        by_source[wanted.source].append(wanted)
    needs = {node.id: [channel.source for channel in node.inputs] for node in nodes}
    for source, each in by_source.items():
        needs[source] += [_producer(nodes, wanted) for wanted in each]
    number: dict[int, int] = {}
    made: list[PhysicalNode] = []
    for node in _in_order(nodes, needs):
        changed = msgspec.structs.replace(
            node, inputs=tuple(msgspec.structs.replace(each, source=number[each.source]) for each in node.inputs)
        )
        for wanted in by_source[node.id]:
            made.append(_maker(nodes, wanted, number[_producer(nodes, wanted)], len(made), mode))
            changed = _with_filter_input(changed, made[-1], nodes[wanted.join], wanted)
        number[node.id] = len(made)
        made.append(msgspec.structs.replace(changed, id=len(made)))
    return tuple(made)


def _in_order(nodes: Sequence[PhysicalNode], needs: Mapping[int, Sequence[int]]) -> Iterator[PhysicalNode]:
    """Yield the nodes as they stand, but none before those that it needs."""
    done: set[int] = set()
    waiting = [node.id for node in reversed(nodes)]
    while waiting:
        if missing := [each for each in needs[waiting[-1]] if each not in done]:
            waiting.extend(reversed(missing))
        elif (last := waiting.pop()) not in done:
            done.add(last)
            yield nodes[last]


def _producer(nodes: Sequence[PhysicalNode], wanted: _Wanted) -> int:
    return nodes[wanted.join].inputs[wanted.build].source


def _maker(
    nodes: Sequence[PhysicalNode], wanted: _Wanted, producer: int, number: int, mode: ExecutionMode
) -> PhysicalNode:
    """Return the operator that makes filters of what a producer, numbered anew, sends to a join as well."""
    below, join = nodes[_producer(nodes, wanted)], nodes[wanted.join]
    columns = tuple(name for name, _, _ in wanted.keys)
    most = [BUILD_ROWS_MAX if rows_max is None else rows_max for _, _, rows_max in wanted.keys]
    operator = KeyFilterOperator(number, columns, max(most), below.parallelism)
    schema = below.descriptor.output_schema
    beside = exchange_mode(mode, ShipStrategy.FORWARD, breaks_pipeline=False)
    forward = Channel(producer, 0, ShipStrategy.FORWARD, PartitionerSpec("FORWARD"), exchange_mode=beside)
    rows = float(len(columns) * below.parallelism)
    return PhysicalNode(
        number,
        join.plan_node,
        OperatorDescriptor(
            join.descriptor.node_id, f"run-time filter on {', '.join(columns)}", operator, (schema,), FILTER_ROWS
        ),
        below.parallelism,
        (forward,),
        Estimates(rows, _BYTES_PER_KEY * below.estimates.rows * len(columns), "a filter of each subtask"),
    )


def _with_filter_input(source: PhysicalNode, maker: PhysicalNode, join: PhysicalNode, wanted: _Wanted) -> PhysicalNode:
    """Return a source that reads the filters of a maker."""
    operator, descriptor = source.descriptor.operator, source.descriptor
    assert isinstance(operator, SourceOperator), "filters are for a source"
    filters = [
        RuntimeFilter(maker.id, join.descriptor.name, key, column, rows_max, is_stored=True)
        for key, (_, column, rows_max) in enumerate(wanted.keys)
    ]
    channel = Channel(
        maker.id,
        len(source.inputs),
        ShipStrategy.BROADCAST,
        PartitionerSpec("BROADCAST"),
        exchange_mode=DataExchangeMode.BATCH,
        exchange_reason="filters are complete before the source is read",
    )
    return msgspec.structs.replace(
        source,
        inputs=(*source.inputs, channel),
        descriptor=msgspec.structs.replace(
            descriptor,
            operator=msgspec.structs.replace(operator, filters=(*operator.filters, *filters)),
            input_schemas=(*descriptor.input_schemas, FILTER_ROWS),
        ),
    )
