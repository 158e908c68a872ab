"""Splits that have no row for the filters above them: row groups of Parquet, files in folders named after values.

    with_possible_splits(plan, filters) -> Plan whose sources have the other splits, and statistics of those

Looked at is what the footers say (``parquet.group_bounds``), so a row group that is left out is neither read nor
planned for: fewer subtasks, smaller estimates, samples of the rest. Tasks look themselves at a source that several
operators read, each with its own filter, at one of very many files, and at a single row group.

A file that cannot be read is left to the job.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa

from engine.errors import EngineError
from engine.expressions.schema_bridge import to_arrow_schema
from engine.graph.expression import Expression, columns_of, conjunction, conjuncts
from engine.graph.plan import Plan, PlanNode, Source
from engine.graph.source_spec import ColumnStatistics, ParquetSource, PathSource, SourceSplit
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of
from engine.statistics.bounds_predicate import highest, lowest
from engine.statistics.column_statistics import plain_bound

if TYPE_CHECKING:
    import pyarrow.parquet as pq

#: files whose footers are read again for a plan
FILES_MAX: Final = 64


def with_possible_splits(plan: Plan, filters: Mapping[int, Expression]) -> Plan:
    """Return the plan without the row groups that have no row which its filters would leave.

    filters: by the ids of sources, those that alone read them.
    """
    nodes = list(plan.nodes)
    for source_id, predicate in filters.items():
        if _is_of_folders(nodes[source_id]):
            with suppress(OSError, pa.ArrowException, EngineError):
                nodes[source_id] = _with_possible_folders(nodes[source_id], predicate)
    nodes = [_with_footers(node, filters.get(node.id)) if _is_of_folders(node) else node for node in nodes]
    for source_id, predicate in filters.items():
        if _is_worth_a_look(nodes[source_id]):
            with suppress(OSError, pa.ArrowException, EngineError):
                nodes[source_id] = _with_possible(nodes[source_id], predicate)
    return msgspec.structs.replace(plan, nodes=tuple(nodes))


def _is_of_folders(node: PlanNode) -> bool:
    return isinstance(node.operator, Source) and isinstance(node.operator.spec, PathSource)


def _is_worth_a_look(node: PlanNode) -> bool:
    """Whether a source has several row groups, in a few files, maybe in folders that are named after values."""
    if not isinstance(node.operator, Source) or not isinstance(node.operator.spec, ParquetSource | PathSource):
        return False
    splits = node.operator.spec.splits
    return len(splits) > 1 and len({split.path for split in splits}) <= FILES_MAX


def _with_possible(node: PlanNode, predicate: Expression) -> PlanNode:
    """Return a source with the splits in which a row may meet a predicate."""
    # Most jobs of a small process read no Parquet.
    from engine.parquet.footers import read_footer  # noqa: PLC0415
    from engine.parquet.group_bounds import bounds_of, possible_groups  # noqa: PLC0415

    source = node.operator
    assert isinstance(source, Source)
    if isinstance(source.spec, PathSource):
        return _with_possible_inside(node, source, source.spec, predicate)
    assert isinstance(source.spec, ParquetSource)
    schema = to_arrow_schema(node.schema)
    splits: list[SourceSplit] = []
    footers: list[tuple[pq.FileMetaData, list[int]]] = []
    for path in dict.fromkeys(split.path for split in source.spec.splits):
        listed = [split for split in source.spec.splits if split.path == path]
        footer = read_footer(path)
        # Each of them is one row group.
        possible = set(possible_groups(footer, [split.start for split in listed], predicate, schema))
        kept = [split for split in listed if split.start in possible]
        splits += kept
        if kept:
            footers.append((footer, [split.start for split in kept]))
    pruned = len(source.spec.splits) - len(splits)
    spec = msgspec.structs.replace(source.spec, splits=tuple(splits), pruned_groups=pruned)
    changed = msgspec.structs.replace(source, spec=spec)
    if pruned:
        bounds = [bounds_of(footer, groups, columns_of(predicate), schema) for footer, groups in footers]
        changed = _with_statistics(changed, len(source.spec.splits), pa.Table.from_batches(bounds) if bounds else None)
    return msgspec.structs.replace(node, operator=changed)


def _with_possible_folders(node: PlanNode, predicate: Expression) -> PlanNode:
    """Return a source without the folders whose values rule the predicate out."""
    from engine.connectors.path_source import path_table  # noqa: PLC0415 - as above
    from engine.expressions.evaluate import evaluate  # noqa: PLC0415

    source = node.operator
    assert isinstance(source, Source)
    assert isinstance(source.spec, PathSource)
    paths = list(dict.fromkeys(split.path for split in source.spec.splits))
    table = path_table(source.spec, paths)
    possible = pa.repeat(scalar_of(True), len(paths))
    for part in conjuncts(predicate):
        if set(columns_of(part)) <= set(table.schema.names):
            with suppress(pa.ArrowException, EngineError):
                possible = pc.and_(possible, pc.fill_null(evaluate(part, table), scalar_of(False)))
    kept = {path for path, is_possible in zip(paths, possible.to_pylist(), strict=True) if is_possible}
    return node if len(kept) == len(paths) else _with_files(node, source, source.spec, kept)


def _with_footers(node: PlanNode, predicate: Expression | None) -> PlanNode:
    """Return a source of folders with what the footers of its files say, where these were not read yet."""
    source = node.operator
    assert isinstance(source, Source)
    spec, known = source.spec, source.statistics
    if not isinstance(spec, PathSource) or not isinstance(spec.inner, ParquetSource) or not spec.inner.is_unread:
        return node
    from engine.connectors.path_source import path_names, with_inner  # noqa: PLC0415 - as above
    from engine.parquet.group_bounds import possible_rows  # noqa: PLC0415
    from engine.parquet.unread_files import with_footers  # noqa: PLC0415

    own = set(path_names(spec))
    schema = pa.schema([field for field in to_arrow_schema(node.schema) if field.name not in own])
    of_files = None if predicate is None else _over_files(predicate, own)
    inner, statistics, bounds = with_footers(spec.inner, schema, own, of_files)
    if statistics is not None:
        left = f", {known.origin.rpartition(', ')[2]}" if "," in known.origin else ""
        known = msgspec.structs.replace(
            statistics, origin=statistics.origin + left, columns={**statistics.columns, **known.columns}
        )
    source = msgspec.structs.replace(source, spec=inner, statistics=known)
    if of_files is not None and bounds is not None:
        source = _with_mask(source, possible_rows(bounds, of_files, schema), bounds)
    assert isinstance(source.spec, ParquetSource)
    spec = with_inner(spec, source.spec)
    return msgspec.structs.replace(node, operator=msgspec.structs.replace(source, spec=spec))


def _with_mask(source: Source, possible: pa.BooleanArray, bounds: pa.RecordBatch) -> Source:
    """Return a Parquet source with the splits for which a mask is true."""
    splits = source.spec.splits
    kept = tuple(split for split, is_possible in zip(splits, possible.to_pylist(), strict=True) if is_possible)
    pruned = len(splits) - len(kept)
    changed = msgspec.structs.replace(
        source, spec=msgspec.structs.replace(source.spec, splits=kept, pruned_groups=pruned)
    )
    rest = pa.Table.from_batches([bounds]).filter(possible)
    return _with_statistics(changed, len(splits), rest if kept else None) if pruned else changed


def _over_files(predicate: Expression, own_names: Collection[str]) -> Expression | None:
    """Return the part of a predicate that looks at columns of files alone."""
    parts = [part for part in conjuncts(predicate) if not set(own_names) & set(columns_of(part))]
    return conjunction(parts) if parts else None


def _with_possible_inside(node: PlanNode, source: Source, spec: PathSource, predicate: Expression) -> PlanNode:
    """Return a source of folders without row groups that filters on columns of the files rule out."""
    from engine.connectors.path_source import path_names, with_inner  # noqa: PLC0415 - as above

    own_names = set(path_names(spec))
    of_files = _over_files(predicate, own_names)
    if of_files is None or spec.absent or not isinstance(spec.inner, ParquetSource):
        return node
    own = node.schema.select(name for name in node.schema.names if name not in own_names)
    inner = msgspec.structs.replace(node, operator=msgspec.structs.replace(source, spec=spec.inner), schema=own)
    if not _is_worth_a_look(inner):
        return node
    found = _with_possible(inner, of_files).operator
    assert isinstance(found, Source)
    return msgspec.structs.replace(node, operator=msgspec.structs.replace(found, spec=with_inner(spec, found.spec)))


def _with_files(node: PlanNode, source: Source, spec: PathSource, kept: set[str]) -> PlanNode:
    """Return a source of folders with some of its files."""
    from engine.connectors.path_source import with_split_list  # noqa: PLC0415 - as above

    paths = {split.path for split in spec.splits}
    splits = [split for split in spec.splits if split.path in kept]
    known = source.statistics
    share = sum(split.size_bytes for split in splits) / max(1, sum(split.size_bytes for split in spec.splits))
    statistics = msgspec.structs.replace(
        known,
        row_count=None if known.row_count is None else share * known.row_count,
        size_bytes=None if known.size_bytes is None else share * known.size_bytes,
        origin=f"{known.origin}, {len(kept)} of {len(paths)} files",
        is_exact=False,
    )
    changed = msgspec.structs.replace(source, spec=with_split_list(spec, splits), statistics=statistics)
    return msgspec.structs.replace(node, operator=changed)


def _with_statistics(source: Source, group_count: int, bounds: pa.Table | None) -> Source:
    """Return a source with the statistics of the splits that are left: rows, bytes, and bounds that are known."""
    known = source.statistics
    rows = float(sum(split.row_count for split in source.spec.splits))
    share = rows / known.row_count if known.row_count else 0.0
    columns = {name: _with_bounds(column, name, bounds) for name, column in known.columns.items()}
    statistics = msgspec.structs.replace(
        known,
        row_count=rows,
        size_bytes=None if known.size_bytes is None else share * known.size_bytes,
        origin=f"{known.origin}, {len(source.spec.splits)} of {group_count} row groups",
        columns=columns,
    )
    return msgspec.structs.replace(source, statistics=statistics)


def _with_bounds(column: ColumnStatistics, name: str, bounds: pa.Table | None) -> ColumnStatistics:
    if bounds is None or lowest(name) not in bounds.schema.names or column.minimum is None:
        return column
    low, high = _whole(bounds, lowest(name), pc.min), _whole(bounds, highest(name), pc.max)
    if low is None or high is None:
        return column
    return msgspec.structs.replace(column, minimum=low, maximum=high)


def _whole(bounds: pa.Table, name: str, function: Any) -> bool | int | float | str | None:
    """Return the lowest or highest of all bounds; None where one is missing, or is no simple value."""
    values: pa.ChunkedArray = bounds.column(name)
    try:
        return None if values.null_count else plain_bound(function(values).as_py())
    except (ValueError, OverflowError):
        return None  # a moment that Python has not
