"""Estimates: rows, bytes and column statistics of every operator, and the words that say where they come from.

    operator       rows                                             bytes
    source         statistics, else bytes / width of a row          statistics, else rows * width
    project        input                                            rows * width of its columns
    filter         input * selectivity (selectivity.py)             rows * width
    map            input                                            rows * width of its schema
    flat_map       input * FLAT_MAP_EXPANSION                       rows * width of its schema
    filter(fn)     input * PYTHON_FILTER_SHARE                      rows * width
    reduce         a row for each group, as for an aggregate        rows * width of its schema
    co_group       a row for each group of either side              rows * width of its schema
    join           left * right / distinct keys (join_estimates.py) rows * width
    aggregate      product of distinct keys, else rows ** 0.75      rows * width
    union, limit, sort, sink, partition                             sum, at most n, input, input, input

Nothing is ever unknown and nothing is below one row, so costs always compare. A function's output is sized by rows
and by the width of its schema, which is always declared; taking over the bytes of the input instead, as a fix for the
estimator below might, is not offered: it is wrong wherever a function drops or adds a column, and its answer is the
same where it does not. What is wrong all the same is seen when the result is stored (``engine.adaptive``).

``legacy=True`` is the estimator of the engine this one is built after, kept to show what it does to plans: a
projection, map or flat map leaves its size unset, a flat map makes five rows of one. Then sizes are UNKNOWN, costs
are, and a join is repartitioned although one side is tiny.

Source: Flink's OptimizerNode.computeOperatorSpecificDefaultEstimates and FlatMapNode.
"""

from __future__ import annotations

import math

import msgspec

from engine.graph.plan import (
    Aggregate,
    CoGroup,
    Filter,
    GroupReduce,
    Join,
    Limit,
    Partition,
    Plan,
    PlanNode,
    Project,
    PythonFunction,
    Sink,
    Sort,
    Source,
    Union,
)
from engine.graph.plan_schema import PlanSchema
from engine.graph.source_spec import ColumnStatistics
from engine.optimizer import column_lineage
from engine.optimizer.join_estimates import join_rows
from engine.optimizer.selectivity import selectivity
from engine.statistics.estimates import UNKNOWN, Estimates, row_width

FLAT_MAP_EXPANSION = 2.0
LEGACY_FLAT_MAP_EXPANSION = 5.0
PYTHON_FILTER_SHARE = 0.5
#: groups of n rows when nothing is known of the keys: n ** 0.75
GROUP_EXPONENT = 0.75
#: rows of a source of which nothing at all is known
DEFAULT_SOURCE_ROWS = 1_000_000.0

_SMALL_DOMAINS = {"bool": 2.0, "int8": 256.0, "uint8": 256.0}


def estimate_plan(plan: Plan, *, legacy: bool = False) -> tuple[Estimates, ...]:
    """Return the estimates of every node, by node id."""
    found: list[Estimates] = []
    for node in plan.nodes:
        found.append(_estimate(node, [found[source] for source in node.inputs], legacy))
    return tuple(found)


def _estimate(node: PlanNode, inputs: list[Estimates], legacy: bool) -> Estimates:
    match node.operator:
        case Source():
            return _source(node, node.operator)
        case Project(expressions=expressions):
            columns = column_lineage.projected(expressions, inputs[0].columns, inputs[0].computed)
            sized = _sized(node.schema, inputs[0].rows, columns, "rows of the input", unset=legacy)
            computed = column_lineage.carried(expressions, inputs[0].computed)
            return msgspec.structs.replace(sized, computed=computed)
        case Filter(predicate=predicate):
            share, origin = selectivity(predicate, inputs[0].columns)
            kept = _scaled(inputs[0], share, f"{share:.3g} of the input: {origin}")
            return msgspec.structs.replace(kept, columns=column_lineage.filtered(predicate, kept.columns))
        case PythonFunction(kind=kind):
            return _python(node, kind, inputs[0], legacy)
        case GroupReduce(keys=keys):
            return _per_group(node, keys, inputs[:1], legacy)
        case CoGroup(keys=keys):
            return _per_group(node, keys, inputs[:2], legacy)
        case Join():
            return _join(node, node.operator, inputs[0], inputs[1])
        case Aggregate():
            return _aggregate(node, node.operator, inputs[0])
        case Union():
            rows = sum(each.rows for each in inputs)
            unset = any(not each.is_size_known for each in inputs)
            size = UNKNOWN if unset else sum(each.size_bytes for each in inputs)
            columns = column_lineage.merged([each.columns for each in inputs], [each.rows for each in inputs])
            return Estimates(rows, size, f"sum of {len(inputs)} inputs", columns)
        case Limit(count=count):
            return _limited(inputs[0], count, f"limit {count}")
        case Sort(limit=int(limit)):
            return _limited(inputs[0], limit, f"top {limit}")
        case Sort() | Sink() | Partition():
            return msgspec.structs.replace(inputs[0], origin="rows of the input")


def _sized(
    schema: PlanSchema, rows: float, columns: dict[str, ColumnStatistics], origin: str, *, unset: bool = False
) -> Estimates:
    rows = max(1.0, rows)
    return Estimates(rows, UNKNOWN if unset else rows * row_width(schema, columns), origin, columns)


def _scaled(source: Estimates, share: float, origin: str) -> Estimates:
    rows = max(1.0, source.rows * share)
    size = rows / max(1.0, source.rows) * source.size_bytes if source.is_size_known else UNKNOWN
    return Estimates(rows, size, origin, source.columns, source.computed)


def _limited(source: Estimates, count: int, origin: str) -> Estimates:
    if source.rows <= count:
        return msgspec.structs.replace(source, origin="rows of the input")
    return _scaled(source, count / source.rows, origin)


def _source(node: PlanNode, source: Source) -> Estimates:
    statistics = source.statistics
    rows, size, origin = statistics.row_count, statistics.size_bytes, statistics.origin
    if size is None:
        from_splits = sum(max(0, split.size_bytes) for split in source.spec.splits)
        size = float(from_splits) if from_splits else None
    if rows is None:
        width = row_width(node.schema, statistics.columns)
        rows = DEFAULT_SOURCE_ROWS if size is None else size / width
        origin += ", rows by default" if size is None else f", rows of {width:.0f} bytes"
    columns = _calibrated(node.schema, rows, size, statistics.columns)
    if size is None:
        return msgspec.structs.replace(_sized(node.schema, rows, columns, origin), computed=statistics.computed)
    return Estimates(max(1.0, rows), max(1.0, size), origin, columns, statistics.computed)


def _calibrated(
    schema: PlanSchema, rows: float, size: float | None, known: dict[str, ColumnStatistics]
) -> dict[str, ColumnStatistics]:
    """Give columns of guessed width what is left of a row's measured bytes, in proportion to the guesses."""
    columns = {column.name: known.get(column.name, ColumnStatistics()) for column in schema.columns}
    guessed = [
        column
        for column in schema.columns
        if not column.width_is_exact and columns[column.name].average_width_bytes is None
    ]
    if size is None or rows < 1 or not guessed:
        return columns
    guess = sum(column.width_bytes for column in guessed)
    certain = row_width(schema, columns) - guess
    factor = min(100.0, max(0.1, (size / rows - certain) / max(1.0, guess)))
    for column in guessed:
        columns[column.name] = msgspec.structs.replace(
            columns[column.name], average_width_bytes=column.width_bytes * factor
        )
    return columns


def _python(node: PlanNode, kind: str, source: Estimates, legacy: bool) -> Estimates:
    if kind == "filter":
        return _scaled(source, PYTHON_FILTER_SHARE, f"{PYTHON_FILTER_SHARE:g} of the input: default for a function")
    if kind == "flat_map":
        factor = LEGACY_FLAT_MAP_EXPANSION if legacy else FLAT_MAP_EXPANSION
        return _sized(node.schema, source.rows * factor, {}, f"{factor:g} * input: default for flat_map", unset=legacy)
    return _sized(node.schema, source.rows, {}, f"rows of the input ({kind})", unset=legacy)


def _per_group(node: PlanNode, keys: tuple[str, ...], inputs: list[Estimates], legacy: bool) -> Estimates:
    """Return one row for each group of each input."""
    rows = 0.0
    for source in inputs:
        counts = [source.distinct(key) for key in keys]
        known = math.prod(count for count in counts if count is not None)
        rows += min(source.rows, known if None not in counts else source.rows**GROUP_EXPONENT)
    return _sized(node.schema, rows, {}, "a row for each group: default for a function", unset=legacy)


def _join(node: PlanNode, join: Join, left: Estimates, right: Estimates) -> Estimates:
    columns = column_lineage.joined(join, left.columns, right.columns, left.rows, right.rows)
    rows, origin = join_rows(join, left, right, columns)
    unset = not (left.is_size_known and right.is_size_known)
    kept = {name: columns[name] for name in node.schema.names if name in columns}
    computed = left.computed if left.rows >= right.rows else ()
    return msgspec.structs.replace(_sized(node.schema, rows, kept, origin, unset=unset), computed=computed)


def _aggregate(node: PlanNode, aggregate: Aggregate, source: Estimates) -> Estimates:
    if not aggregate.keys:
        return _sized(node.schema, 1.0, {}, "one group")
    groups, unknown = 1.0, []
    for key in aggregate.keys:
        distinct = source.distinct(key) or _SMALL_DOMAINS.get(node.schema.column(key).type_text)
        if distinct is None:
            unknown.append(key)
        else:
            groups *= distinct
    origin = "distinct keys"
    if unknown:
        groups *= source.rows**GROUP_EXPONENT
        origin = f"rows ** {GROUP_EXPONENT:g}: distinct {', '.join(unknown)} unknown"
    columns = {key: source.columns[key] for key in aggregate.keys if key in source.columns}
    # after grouping no key combination is heavy
    columns = {key: msgspec.structs.replace(known, heavy_keys=()) for key, known in columns.items()}
    unset = not source.is_size_known
    return _sized(node.schema, min(groups, source.rows), columns, origin, unset=unset)
