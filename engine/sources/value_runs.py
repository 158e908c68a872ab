"""Runs of splits that have values of their own: what splits say of a column by which rows are grouped.

    with_value_runs(plan) -> Plan whose sources know where a column can be cut (``Source.cuts``)

    row groups of a file    1..40  40..90 │ 91..120 │ 130..180  150..200 │ 201..260         cuts (2, 3, 5)

A column can be cut in front of a row group where all values before it are less than all from there on: no value is on
both sides. Files that are written in the order of a key, or day by day, have many such places. A query that groups by
the column needs no exchange then, and may give out the groups of a run as soon as the next one begins.

Looked at are columns of the names that an aggregate or a window of the plan groups by, and of those that they had
before projections gave them these. Nothing is concluded from a column that has nulls or no bounds, from floats (NaN has
none), or where a value lies in two files.

Held by: tests/sources/test_value_runs.py
"""

from __future__ import annotations

from contextlib import suppress
from itertools import accumulate
from typing import Any

import msgspec
import pyarrow as pa

from engine.errors import EngineError
from engine.expressions.schema_bridge import to_arrow_schema
from engine.formats.registry import format_of
from engine.graph.expression import ColumnRef
from engine.graph.plan import Aggregate, Plan, PlanNode, Project, Source, Window
from engine.statistics.bounds_predicate import highest, lowest, null_count


def with_value_runs(plan: Plan) -> Plan:
    """Return the plan with the cuts of the columns that it groups by; a file that cannot be read is left to the job."""
    names = _with_former({name for node in plan.nodes for name in _grouped_by(node)}, plan)
    if not names:
        return plan
    nodes = list(plan.nodes)
    for node in plan.nodes:
        if names & {*node.schema.names} and isinstance(node.operator, Source):
            with suppress(OSError, pa.ArrowException, EngineError):
                nodes[node.id] = _with_cuts(node, [name for name in node.schema.names if name in names])
    return msgspec.structs.replace(plan, nodes=tuple(nodes))


def _grouped_by(node: PlanNode) -> tuple[str, ...]:
    match node.operator:
        case Aggregate(keys=keys):
            return keys
        case Window(partition_by=keys):
            return keys
    return ()


def _with_former(names: set[str], plan: Plan) -> set[str]:
    """Return names of columns and those from which projections made them, wherever these are."""
    former: dict[str, set[str]] = {}
    for node in plan.nodes:
        for named in node.operator.expressions if isinstance(node.operator, Project) else ():
            if isinstance(named.expression, ColumnRef):
                former.setdefault(named.name, set()).add(named.expression.name)
    found, new = set(names), names
    while new:
        new = {name for each in new for name in former.get(each, ())} - found
        found |= new
    return found


def _with_cuts(node: PlanNode, names: list[str]) -> PlanNode:
    """Return a source with the cuts of columns that have some."""
    source = node.operator
    assert isinstance(source, Source)
    if not format_of(source.spec).tells_runs:
        return node
    schema = to_arrow_schema(node.schema)
    columns = [name for name in names if _is_exact(schema.field(name).type)]
    bounds = format_of(source.spec).bounds(source.spec, schema, columns)
    if bounds is None:
        return node
    paths = [split.path for split in source.spec.splits]
    first_of_files = {paths.index(path) for path in dict.fromkeys(paths)}
    cuts = {}
    for name in columns:
        if set(bounds.column(null_count(name)).to_pylist()) == {0}:
            found = _cuts(bounds.column(lowest(name)).to_pylist(), bounds.column(highest(name)).to_pylist())
            if found and first_of_files <= {0, *found}:
                cuts[name] = found
    return msgspec.structs.replace(node, operator=msgspec.structs.replace(source, cuts=cuts))


def _is_exact(data_type: pa.DataType) -> bool:
    """Whether all values of a type lie between the bounds that a file has of them."""
    is_number = pa.types.is_integer(data_type) or pa.types.is_decimal(data_type)
    return bool(is_number or pa.types.is_date(data_type) or pa.types.is_string(data_type))


def _cuts(lows: list[Any], highs: list[Any]) -> tuple[int, ...]:
    """Return the row groups in front of which a column can be cut."""
    if None in lows or None in highs:
        return ()
    before = list(accumulate(highs, max))
    behind = list(accumulate(reversed(lows), min))[::-1]
    return tuple(group for group in range(1, len(lows)) if before[group - 1] < behind[group])
