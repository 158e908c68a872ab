"""Splits that have no row for a filter, left out before a job runs, by bounds of their values.

    possible_splits(source, schema, predicate, find_bounds) -> source with the others, of any format that knows bounds
    possible_rows(bounds, predicate, schema)  -> for each row of bounds whether a row may meet the predicate
    may_be_between(bounds, {"x": (1, 9)})     -> ... whether a row may have values between these
    with_splits(source, spec, bounds, what)   -> source with fewer splits, and the statistics of these

Bounds are a row for each split (``statistics.bounds_predicate``); what is not known is null, or no column. The
predicate is written anew over them, each of its parts for itself: one that is not understood leaves the others.

Held by: tests/formats/test_new_format.py
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import pyarrow as pa

from engine.errors import EngineError
from engine.expressions.evaluate import evaluate
from engine.expressions.schema_bridge import to_arrow_schema
from engine.graph.expression import Expression, columns_of, conjuncts
from engine.graph.plan import Source
from engine.graph.plan_schema import PlanSchema
from engine.graph.source_spec import ColumnStatistics, SourceSpec
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of
from engine.statistics.bounds_predicate import ROW_COUNT, highest, lowest, may_be_true, null_count
from engine.statistics.column_statistics import plain_bound

#: function like ``SourceFormat.bounds``
FindBounds = Callable[[Any, pa.Schema, Sequence[str]], "pa.Table | None"]


def possible_splits(
    source: Source, schema: PlanSchema, predicate: Expression | None, find_bounds: FindBounds
) -> Source:
    """Return a source without the splits that bounds rule out; what cannot be read is left to the job."""
    spec = source.spec
    if predicate is None or not spec.splits:
        return source
    arrow_schema, names = to_arrow_schema(schema), list(dict.fromkeys(columns_of(predicate)))
    with suppress(OSError, pa.ArrowException, EngineError):
        known = find_bounds(spec, arrow_schema, names)
        if known is None or (known.num_columns and known.num_rows != len(spec.splits)):
            return source
        mask = possible_rows(_completed(known, source, arrow_schema, names), predicate, arrow_schema)
        kept = tuple(one for one, is_kept in zip(spec.splits, mask.to_pylist(), strict=True) if is_kept)
        if len(kept) < len(spec.splits):
            left = known.filter(mask) if kept else None
            return with_splits(source, msgspec.structs.replace(spec, splits=kept), left, "splits")
    return source


def _completed(known: pa.Table, source: Source, schema: pa.Schema, names: list[str]) -> pa.RecordBatch:
    """Return bounds with nulls for what a format does not know."""
    splits = source.spec.splits
    columns: dict[str, pa.Array] = {name: known.column(name).combine_chunks() for name in known.column_names}
    if ROW_COUNT not in columns:
        counts = [split.row_count if split.row_count >= 0 else None for split in splits]
        columns[ROW_COUNT] = pa.array(counts, pa.int64())
    for name in names:
        data_type = schema.field(name).type
        facts = {lowest(name): data_type, highest(name): data_type, null_count(name): pa.int64()}
        columns |= {fact: pa.nulls(len(splits), facts[fact]) for fact in facts if fact not in columns}
    return pa.RecordBatch.from_pydict(columns)


def possible_rows(bounds: pa.RecordBatch, predicate: Expression, schema: pa.Schema) -> pa.BooleanArray:
    """Return a mask: whether one of the rows that a row of bounds stands for may meet a predicate."""
    floats = {field.name for field in schema if pa.types.is_floating(field.type)}
    possible = pa.repeat(scalar_of(True), bounds.num_rows)
    for part in conjuncts(predicate):
        rewritten = may_be_true(part, floats)
        if rewritten is None:
            continue
        try:
            found = evaluate(rewritten, bounds)
        except (EngineError, pa.ArrowException):
            continue  # of values that the job may never meet
        possible = pc.and_(possible, pc.fill_null(found, scalar_of(True)))
    return possible


def may_be_between(known: pa.Table, bounds: Mapping[str, tuple[Any, Any]]) -> pa.BooleanArray:
    """Return a flag for each row of bounds: rows may have values of columns between a lowest and a highest one."""
    may: Any = pa.chunked_array([pa.repeat(scalar_of(True), known.num_rows)])
    for name, (low, high) in bounds.items():
        if lowest(name) not in known.column_names:
            continue
        ends = known.column(lowest(name)), known.column(highest(name))
        with suppress(pa.ArrowException, OverflowError):  # the column has no such values
            least, greatest = (scalar_of(value, ends[0].type) for value in (low, high))
            is_between = pc.and_kleene(pc.less_equal(ends[0], greatest), pc.greater_equal(ends[1], least))
            may = pc.and_(may, pc.fill_null(is_between, scalar_of(True)))
    return may.combine_chunks()


def with_splits(source: Source, spec: SourceSpec, bounds: pa.Table | None, what: str) -> Source:
    """Return a source with fewer splits, and the statistics of these: rows, bytes, and bounds that are known."""
    known = source.statistics
    count = len(source.spec.splits)
    if all(split.row_count >= 0 for split in spec.splits):
        rows: float | None = float(sum(split.row_count for split in spec.splits))
        share = rows / known.row_count if rows and known.row_count else 0.0
    else:
        share = _bytes(spec) / max(1, _bytes(source.spec))
        rows = None if known.row_count is None else share * known.row_count
    statistics = msgspec.structs.replace(
        known,
        row_count=rows,
        size_bytes=None if known.size_bytes is None else share * known.size_bytes,
        origin=f"{known.origin}, {len(spec.splits)} of {count} {what}",
        columns={name: _with_bounds(column, name, bounds) for name, column in known.columns.items()},
    )
    return msgspec.structs.replace(source, spec=spec, statistics=statistics)


def _bytes(spec: SourceSpec) -> int:
    return sum(split.size_bytes for split in spec.splits)


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
