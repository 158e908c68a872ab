"""Folders that are named after values and have no row for a filter, left out before a job runs.

    possible(source, schema, predicate) -> source with the other files, and statistics of those

What the predicate says of columns of the files is asked of the inner source's entry.

Held by: tests/sources/test_possible_splits.py
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

import msgspec
import pyarrow as pa

from engine.connectors.path_source import path_names, path_table, with_inner, with_split_list
from engine.errors import EngineError
from engine.expressions.evaluate import evaluate
from engine.formats.registry import format_of
from engine.graph.expression import Expression, columns_of, conjunction, conjuncts
from engine.graph.plan import Source
from engine.graph.plan_schema import PlanSchema
from engine.graph.source_spec import PathSource
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of


def possible(source: Source, schema: PlanSchema, predicate: Expression | None) -> Source:
    """Return a source with the splits in which a row may meet a predicate. Raises: what the inner source's does."""
    if predicate is not None:
        with suppress(OSError, pa.ArrowException, EngineError):
            source = _with_possible_folders(source, predicate)
    spec = source.spec
    assert isinstance(spec, PathSource)
    own_names = set(path_names(spec))
    of_files = None if predicate is None or spec.absent else _over_files(predicate, own_names)
    of_inner = schema.select(name for name in schema.names if name not in own_names)
    inner = msgspec.structs.replace(source, spec=spec.inner)
    found = format_of(spec.inner).possible(inner, of_inner, of_files, own_names)
    return source if found is inner else msgspec.structs.replace(found, spec=with_inner(spec, found.spec))


def _over_files(predicate: Expression, own_names: Collection[str]) -> Expression | None:
    """Return the part of a predicate that looks at columns of files alone."""
    parts = [part for part in conjuncts(predicate) if not set(own_names) & set(columns_of(part))]
    return conjunction(parts) if parts else None


def _with_possible_folders(source: Source, predicate: Expression) -> Source:
    """Return a source without the folders whose values rule the predicate out."""
    spec = source.spec
    assert isinstance(spec, PathSource)
    paths = list(dict.fromkeys(split.path for split in spec.splits))
    table = path_table(spec, paths)
    mask = pa.repeat(scalar_of(True), len(paths))
    for part in conjuncts(predicate):
        if set(columns_of(part)) <= set(table.schema.names):
            with suppress(pa.ArrowException, EngineError):
                mask = pc.and_(mask, pc.fill_null(evaluate(part, table), scalar_of(False)))
    kept = {path for path, is_possible in zip(paths, mask.to_pylist(), strict=True) if is_possible}
    return source if len(kept) == len(paths) else _with_files(source, spec, kept, len(paths))


def _with_files(source: Source, spec: PathSource, kept: set[str], file_count: int) -> Source:
    """Return a source of folders with some of its files."""
    splits = [split for split in spec.splits if split.path in kept]
    known = source.statistics
    share = sum(split.size_bytes for split in splits) / max(1, sum(split.size_bytes for split in spec.splits))
    statistics = msgspec.structs.replace(
        known,
        row_count=None if known.row_count is None else share * known.row_count,
        size_bytes=None if known.size_bytes is None else share * known.size_bytes,
        origin=f"{known.origin}, {len(kept)} of {file_count} files",
        is_exact=False,
    )
    return msgspec.structs.replace(source, spec=with_split_list(spec, splits), statistics=statistics)
