"""Samples of what a plan reads, taken when it is known: columns of Parquet files, join keys better than others.

    with_samples(plan, filters) -> Plan with statistics of the columns that are read, of those that joins compare, and
                                   of what filters keep

Columns of a Parquet file are sampled if filters, joins, groups or orders look at them, or if their width is not known:
what is only added up or passed on changes no plan. Two sources at a time where they are read, for it is decompressing.
Heavy keys decide how a join is run, so more rows are looked at for them, and the sample leaves out what that tells.

A key is followed to the sources it comes from, through whatever keeps values or computes them. Sources that sampled all
of their parts when they were read need no more for a column, nor does a record data set whose manifest counted its
keys; Parquet does. A key that is computed from a source's columns is computed for a sample of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType

import msgspec

from engine.formats.registry import format_of
from engine.graph.expression import Cast, ColumnRef, Expression, columns_of, depth_of
from engine.graph.plan import Aggregate, Join, Plan, PlanNode, Sink, Source
from engine.graph.source_spec import ColumnStatistics, ComputedStatistics, SourceSpec
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.operator_entries.registry import entry_of
from engine.optimizer.rules.projection_pruning import used_columns
from engine.storage.known_objects import shared

#: number of rows below which the first sample is sufficient
ROWS_MIN = 8192
#: operands that a followed key may have: one that is computed from itself twice, time and again, is given up
_OPERANDS_MAX = 64
_SAMPLE_THREADS = 2
#: sources that were sampled before take less than this, all of a plan's
_KNOWN_S = 0.003


def with_samples(plan: Plan, filters: Mapping[int, Sequence[Expression]] = MappingProxyType({})) -> Plan:
    """Return the plan with better statistics of what it reads. Raises: DataError (a damaged page).

    filters: predicates over the columns of sources, by their ids.
    """
    keys = _compared(plan)
    logical = LogicalPlan(plan)
    used, weighed = used_columns(logical), _weighed(logical)

    def sampled(node: PlanNode) -> PlanNode:
        predicates = filters.get(node.id, ())
        tested: set[str] = set().union(*(columns_of(each) for each in predicates))
        better = _better_keys(node, keys.get(node.id, []))
        asked = tested | (weighed[node.id] - _answered(node, better))
        read = [column for column in node.schema.columns if column.name in used[node.id]]
        names = [column.name for column in read if column.name in asked or not column.width_is_exact]
        carried = {*names} - asked
        return _with_keys(_with_columns(node, names, predicates, carried), keys.get(node.id, []), better)

    sources = [node for node in plan.nodes if isinstance(node.operator, Source) and node.id in used]
    if not _has_choices(plan):
        sources = [node for node in sources if not _is_stored(node)]
    by_id = {node.id: node for node in _each(sampled, sources)}
    return msgspec.structs.replace(plan, nodes=tuple(by_id.get(node.id, node) for node in plan.nodes))


def _has_choices(plan: Plan) -> bool:
    """Return whether a sample can change a plan; else it is not worth requests to a store."""
    return any(len(node.inputs) > 1 or isinstance(node.operator, Aggregate) for node in plan.nodes)


def _is_stored(node: PlanNode) -> bool:
    """Return whether a source has files in a store."""
    return isinstance(node.operator, Source) and bool(format_of(node.operator.spec).stored(node.operator.spec))


def _each(sampled: Callable[[PlanNode], PlanNode], sources: Sequence[PlanNode]) -> list[PlanNode]:
    """Return all sources with samples; threads are started once one had to be read, which takes longer than that."""
    changed: list[PlanNode] = []
    waits_until_s = time.monotonic() + _KNOWN_S
    while len(changed) < len(sources) and (time.monotonic() < waits_until_s or len(sources) - len(changed) == 1):
        changed.append(sampled(sources[len(changed)]))
    if len(changed) < len(sources):
        with ThreadPoolExecutor(_SAMPLE_THREADS, "sample") as threads:
            changed.extend(threads.map(shared(sampled), sources[len(changed) :]))
    return changed


def _weighed(plan: LogicalPlan) -> dict[int, set[str]]:
    """Return the columns, by node, whose values decide the number of rows, or how they are divided."""
    order = plan.order()
    weighed: dict[int, set[str]] = {node.id: set() for node in order}
    for node in reversed(order):
        operator = node.operator
        for index, source in enumerate(node.inputs):
            if isinstance(operator, Aggregate):
                weighed[source] |= set(operator.keys)
            elif not isinstance(operator, Sink):
                weighed[source] |= entry_of(operator).columns_used(plan, node, operator, index, weighed[node.id])
    return weighed


def _compared(plan: Plan) -> dict[int, list[Expression]]:
    """Return the keys that joins compare, as expressions over the columns of each source."""
    wanted: dict[int, list[Expression]] = {}
    for node in plan.nodes:
        if isinstance(node.operator, Join):
            for source, names in zip(node.inputs, (node.operator.left_keys, node.operator.right_keys), strict=True):
                for name in names:
                    for found, key in _origins(plan.nodes, source, name):
                        wanted.setdefault(found, []).append(key)
    return wanted


def _with_columns(
    node: PlanNode, names: Collection[str], predicates: Sequence[Expression], carried: Collection[str]
) -> PlanNode:
    """Return a source with a sample of the columns that are read, and of what predicates keep."""
    source = node.operator
    assert isinstance(source, Source)
    statistics = format_of(source.spec).with_sample(source, node.schema, names, predicates, carried)
    if statistics is source.statistics:
        return node
    return msgspec.structs.replace(node, operator=msgspec.structs.replace(source, statistics=statistics))


def _better_keys(node: PlanNode, keys: Sequence[Expression]) -> dict[str, ColumnStatistics]:
    """Return distinct count and heavy keys of the columns that joins compare, where more than a sample is looked at."""
    source = node.operator
    assert isinstance(source, Source)
    rows = source.statistics.row_count or 0.0
    if rows <= ROWS_MIN:
        return {}
    entry = format_of(source.spec)
    found: dict[str, ColumnStatistics] = {}
    for name in dict.fromkeys(map(_column_of, keys)):
        if name is None:
            continue
        known = source.statistics.columns.get(name, ColumnStatistics())
        statistics = None if known.heavy_origin == "manifest" else entry.key_statistics(source.spec, name, rows)
        if statistics is not None:
            found[name] = statistics
    return found


def _answered(node: PlanNode, better: Collection[str]) -> set[str]:
    """Return the keys of which a sample would say nothing further: width and nulls are known."""
    source = node.operator
    assert isinstance(source, Source)
    known = source.statistics.columns
    return {name for name in better if name in known and known[name].null_fraction is not None}


def _with_keys(node: PlanNode, keys: Sequence[Expression], better: Mapping[str, ColumnStatistics]) -> PlanNode:
    """Return a source with what is known of its columns better, and of keys that are computed."""
    source = node.operator
    assert isinstance(source, Source)
    if not keys:
        return node
    columns = dict(source.statistics.columns)
    for name, found in better.items():
        columns[name] = msgspec.structs.replace(
            columns.get(name, ColumnStatistics()), distinct_count=found.distinct_count, heavy_keys=found.heavy_keys
        )
    computed = list(source.statistics.computed)
    for key in keys:
        if _column_of(key) is None and all(key != known.expression for known in computed):
            computed += _computed(source.spec, key, source.statistics.row_count or 0.0)
    statistics = msgspec.structs.replace(source.statistics, columns=columns, computed=tuple(computed))
    return msgspec.structs.replace(node, operator=msgspec.structs.replace(source, statistics=statistics))


def _computed(spec: SourceSpec, key: Expression, rows: float) -> list[ComputedStatistics]:
    """Return the statistics of a computed key, [] when they are unknown."""
    from engine.sources.computed_keys import computed_statistics

    found = computed_statistics(spec, key, rows)
    return [] if found is None else [ComputedStatistics(key, found)]


def _column_of(key: Expression) -> str | None:
    """Return the column whose statistics are the key's, too; None when the key is computed."""
    column = key.operand if isinstance(key, Cast) else key
    return column.name if isinstance(column, ColumnRef) else None


def _origins(nodes: Sequence[PlanNode], start: int, column: str) -> Iterator[tuple[int, Expression]]:
    """Yield (source node, expression over its columns) from which a column's values come."""
    stack: list[tuple[int, Expression]] = [(start, ColumnRef(column))]
    while stack:
        node_id, key = stack.pop()
        node = nodes[node_id]
        if isinstance(node.operator, Source):
            if any(True for _ in columns_of(key)):
                yield node_id, key
            continue
        schemas = [nodes[source].schema for source in node.inputs]
        for index, below in entry_of(node.operator).origins(node.operator, key, schemas):
            if sum(1 for _ in columns_of(below)) <= _OPERANDS_MAX and depth_of(below) <= _OPERANDS_MAX:
                stack.append((node.inputs[index], below))
