"""Short names of operators for vertices, logs and explain: what the user called it, else what it does."""

from __future__ import annotations

from pathlib import PurePath

from engine.expressions.text import expression_text
from engine.graph.expression import ColumnRef
from engine.graph.plan import (
    Aggregate,
    CoGroup,
    Filter,
    GroupReduce,
    Join,
    Limit,
    Partition,
    PlanNode,
    Project,
    PythonFunction,
    Sink,
    Sort,
    Source,
    Union,
)
from engine.graph.source_spec import ArrowSource, CsvSource, ParquetSource, SourceSpec, TextSource

_TEXT_MAX = 60
_SOURCE_KINDS = {CsvSource: "csv", ArrowSource: "arrow", TextSource: "text", ParquetSource: "parquet"}


def _short(text: str) -> str:
    return text if len(text) <= _TEXT_MAX else f"{text[: _TEXT_MAX - 3]}..."


def operator_name(node: PlanNode) -> str:
    """Return the name of a plan node for people, one line, at most about 80 characters."""
    if node.name:
        return node.name
    match node.operator:
        case Source(spec=spec):
            return _short(_source_name(spec))
        case Project(expressions=expressions):
            computed = sum(1 for named in expressions if not isinstance(named.expression, ColumnRef))
            suffix = f", {computed} computed" if computed else ""
            return f"project {len(expressions)} column{'' if len(expressions) == 1 else 's'}{suffix}"
        case Filter(predicate=predicate):
            return _short(f"filter {expression_text(predicate)}")
        case PythonFunction(kind=kind, function_name=function_name):
            return f"{kind} {function_name}"
        case GroupReduce(keys=keys, function=function):
            return _short(" ".join(["reduce", function.function_name, *(["by", ", ".join(keys)] if keys else [])]))
        case CoGroup(function=function):
            return f"co_group {function.function_name}"
        case Join(how=how, left_keys=keys, null_aware=null_aware):
            kind = f"{'null-aware ' if null_aware else ''}{how.value}"
            return _short(f"{kind} join on {', '.join(keys)}") if keys else f"{kind} join"
        case Aggregate(keys=keys, calls=calls):
            what = "aggregate" if calls else "distinct"
            return _short(f"{what} by {', '.join(keys)}") if keys else what
        case Union():
            return "union"
        case Sort(keys=keys, limit=limit):
            names = ", ".join(f"{key.column}{' descending' if key.descending else ''}" for key in keys)
            return _short(f"top {limit} by {names}" if limit is not None else f"sort by {names}")
        case Partition(kind=kind, keys=keys):
            return _short(f"{kind.lower()} by {', '.join(keys)}") if keys else kind.lower()
        case Limit(count=count):
            return f"limit {count}"
        case Sink(spec=sink):
            return f"{sink.format} sink {PurePath(sink.path).name}"


def _source_name(spec: SourceSpec) -> str:
    kind = _SOURCE_KINDS[type(spec)]
    if not spec.paths:
        return f"{kind} source"
    first = PurePath(spec.paths[0])
    is_part = len(spec.paths) > 1 or first.name.startswith("part-")
    place = (first.parent.name or first.name) if is_part else first.name
    return f"{kind} source {place}"
