"""Row groups that have no row for a filter, left out before a job runs, and bounds of those that are there.

    possible(source, schema, predicate, ignored) -> source with the other row groups, and statistics of those
    bounds(spec, schema, names)                  -> a row for each split; None where footers are not looked at

The footers' bounds decide (``row_group_bounds``). A row group that is left out is neither read nor planned for: fewer
subtasks, smaller estimates, samples of the rest. Tasks look themselves at a source that several operators read,
each with its own filter, at one of very many files, and at a single row group.

A file that cannot be read is left to the job, but for one of very many whose footers were not read before.

Held by: tests/sources/test_possible_splits.py
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from engine.errors import EngineError
from engine.expressions.schema_bridge import to_arrow_schema
from engine.formats.split_pruning import possible_rows, with_splits
from engine.graph.expression import Expression, columns_of
from engine.graph.plan import Source
from engine.graph.plan_schema import PlanSchema
from engine.graph.source_spec import ParquetSource, SourceSplit
from engine.parquet.footers import read_footer
from engine.parquet.row_group_bounds import bounds_of, possible_groups
from engine.parquet.unread_files import with_footers

#: files whose footers are read again for a plan
FILES_MAX: Final = 64


def possible(source: Source, schema: PlanSchema, predicate: Expression | None, ignored: Collection[str]) -> Source:
    """Return a source with the row groups in which a row may meet a predicate.

    Raises: PlanError, DataError, SchemaError (of files whose footers were not read yet).
    """
    spec = source.spec
    assert isinstance(spec, ParquetSource)
    if spec.is_unread:
        source = _with_footers(source, spec, to_arrow_schema(schema), predicate, ignored)
    if predicate is not None and _is_worth_a_look(source.spec.splits):
        with suppress(OSError, pa.ArrowException, EngineError):
            return _with_possible_groups(source, to_arrow_schema(schema), predicate)
    return source


def bounds(spec: ParquetSource, schema: pa.Schema, names: Sequence[str]) -> pa.Table | None:
    """Return bounds of columns for each split, from footers; None where they are of one row group, or of many files."""
    if spec.is_unread or not _is_worth_a_look(spec.splits):
        return None
    paths = dict.fromkeys(split.path for split in spec.splits)
    # Each split is one row group.
    groups = {path: [split.start for split in spec.splits if split.path == path] for path in paths}
    return pa.Table.from_batches([bounds_of(read_footer(path), groups[path], names, schema) for path in paths])


def _is_worth_a_look(splits: Sequence[SourceSplit]) -> bool:
    """Return whether there are several row groups, in a few files."""
    return len(splits) > 1 and len({split.path for split in splits}) <= FILES_MAX


def _with_footers(
    source: Source, spec: ParquetSource, schema: pa.Schema, predicate: Expression | None, ignored: Collection[str]
) -> Source:
    """Return a source with what the footers of its files say, which were not read before."""
    known = source.statistics
    read, statistics, found = with_footers(spec, schema, ignored, predicate)
    if statistics is not None:
        left = f", {known.origin.rpartition(', ')[2]}" if "," in known.origin else ""
        known = msgspec.structs.replace(
            statistics, origin=statistics.origin + left, columns={**statistics.columns, **known.columns}
        )
    source = msgspec.structs.replace(source, spec=read, statistics=known)
    if predicate is None or found is None:
        return source
    mask = possible_rows(found, predicate, schema)
    kept = [split for split, is_possible in zip(read.splits, mask.to_pylist(), strict=True) if is_possible]
    return _with_groups(source, kept, pa.Table.from_batches([found]).filter(mask) if kept else None)


def _with_possible_groups(source: Source, schema: pa.Schema, predicate: Expression) -> Source:
    splits: list[SourceSplit] = []
    footers: list[tuple[pq.FileMetaData, list[int]]] = []
    for path in dict.fromkeys(split.path for split in source.spec.splits):
        listed = [split for split in source.spec.splits if split.path == path]
        footer = read_footer(path)
        # Each of them is one row group.
        found = set(possible_groups(footer, [split.start for split in listed], predicate, schema))
        kept = [split for split in listed if split.start in found]
        splits += kept
        if kept:
            footers.append((footer, [split.start for split in kept]))
    is_less = 0 < len(splits) < len(source.spec.splits)
    known = [bounds_of(footer, groups, columns_of(predicate), schema) for footer, groups in footers if is_less]
    return _with_groups(source, splits, pa.Table.from_batches(known) if known else None)


def _with_groups(source: Source, kept: Sequence[SourceSplit], known: pa.Table | None) -> Source:
    """Return a source with some of its row groups, and how many are left out."""
    pruned = len(source.spec.splits) - len(kept)
    spec = msgspec.structs.replace(source.spec, splits=tuple(kept), pruned_groups=pruned)
    return with_splits(source, spec, known, "row groups") if pruned else msgspec.structs.replace(source, spec=spec)
