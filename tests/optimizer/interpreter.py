"""Runs plans on lists of dicts in plain Python: the logical plan, and the physical plan subtask by subtask."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from engine.graph.expression import AggregateCall, Call, Case, Cast, ColumnRef, Expression, Literal
from engine.graph.operator_descriptor import (
    FilterOperator,
    HashAggregateOperator,
    HashJoinOperator,
    JoinOperator,
    KeyFilterOperator,
    LimitOperator,
    MergeRunsOperator,
    ProjectOperator,
    SortMergeJoinOperator,
    SortOperator,
    SourceOperator,
)
from engine.graph.plan import Aggregate, Filter, Join, Limit, PartialAggregate, Plan, Project, Sort, Source
from engine.graph.said_operators import JoinType
from engine.graph.ship_strategy import PartitionerSpec
from engine.graph.sort_key import SortKey
from engine.graph.source_spec import ParquetSource, SourceSpec
from engine.optimizer.physical_plan import OptimizedPlan, PhysicalNode

Row = dict[str, Any]
Rows = list[Row]
Tables = dict[str, Rows]


class RaisedError(Exception):
    """An expression raised, as division by zero does."""


def evaluate(expression: Expression, row: Row) -> Any:
    match expression:
        case ColumnRef(name=name):
            return row[name]
        case Literal(value=value):
            return value
        case Case(branches=branches, otherwise=otherwise):
            for when, then in branches:
                if evaluate(when, row) is True:
                    return evaluate(then, row)
            return None if otherwise is None else evaluate(otherwise, row)
        case Call(function=function, arguments=arguments):
            return _call(function, [evaluate(argument, row) for argument in arguments])
        case Cast(operand=operand, type_text="int64"):
            value = evaluate(operand, row)
            return None if value is None else int(value)
    raise AssertionError(expression)


def _call(function: str, values: list[Any]) -> Any:
    if function == "is_null":
        return values[0] is None
    if function == "is_not_null":
        return values[0] is not None
    if function == "coalesce":
        return next((value for value in values if value is not None), None)
    if function == "and":
        return False if False in values else None if None in values else True
    if function == "or":
        return True if True in values else None if None in values else False
    if None in values:
        return None
    if function == "divide":
        if values[1] == 0:
            raise RaisedError
        return values[0] // values[1]
    simple = {
        "equal": lambda a, b: a == b,
        "less": lambda a, b: a < b,
        "greater": lambda a, b: a > b,
        "add": lambda a, b: a + b,
        "not": lambda a: not a,
    }
    return simple[function](*values)


def read(spec: SourceSpec, tables: Tables) -> Rows:
    predicate = spec.predicate if isinstance(spec, ParquetSource) else None
    rows = [row for row in tables[spec.paths[0]] if predicate is None or evaluate(predicate, row) is True]
    return [{name: row[name] for name in spec.columns} for row in rows]


def sort_rows(rows: Rows, keys: tuple[SortKey, ...], limit: int | None) -> Rows:
    ordered = list(rows)
    for key in reversed(keys):
        ordered.sort(key=lambda row: (row[key.column] is not None, row[key.column] or 0), reverse=key.descending)
    return ordered if limit is None else ordered[:limit]


def aggregate_value(call: AggregateCall, values: list[Any]) -> Any:
    known = [value for value in values if value is not None]
    match call.function:
        case "count_all":
            return len(values)
        case "count":
            return len(known)
        case "sum":
            return sum(known) if known else None
        case "min":
            return min(known, default=None)
        case "max":
            return max(known, default=None)
    raise AssertionError(call)


def group(rows: Rows, keys: tuple[str, ...]) -> dict[tuple[Any, ...], Rows]:
    groups: dict[tuple[Any, ...], Rows] = {} if keys else {(): []}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return groups


def joined(
    join: Join | JoinOperator, lefts: Rows, rights: Rows, left_keys: tuple[str, ...], right_keys: tuple[str, ...]
) -> list[tuple[Row | None, Row | None]]:
    """Return the pairs of a join of any type, with its condition."""
    null_aware = getattr(join, "null_aware", False)
    if null_aware and rights:
        if any(right[right_keys[0]] is None for right in rights):
            return []
        lefts = [left for left in lefts if left[left_keys[0]] is not None]

    def meets(left: Row, right: Row) -> bool:
        if not all(left[a] is not None and left[a] == right[b] for a, b in zip(left_keys, right_keys, strict=True)):
            return False
        return join.condition is None or evaluate(join.condition, {**right, **left}) is True

    return join_pairs(join.how, lefts, rights, meets)


def join_pairs(
    how: JoinType, lefts: Rows, rights: Rows, meets: Callable[[Row, Row], bool]
) -> list[tuple[Row | None, Row | None]]:
    pairs: list[tuple[Row | None, Row | None]] = []
    matched_rights = set()
    for left in lefts:
        matches = [index for index, right in enumerate(rights) if meets(left, right)]
        matched_rights.update(matches)
        if how in (JoinType.SEMI, JoinType.ANTI):
            if bool(matches) is (how is JoinType.SEMI):
                pairs.append((left, None))
            continue
        pairs.extend((left, rights[index]) for index in matches)
        if not matches and how in (JoinType.LEFT, JoinType.FULL):
            pairs.append((left, None))
    if how in (JoinType.RIGHT, JoinType.FULL):
        pairs.extend((None, right) for index, right in enumerate(rights) if index not in matched_rights)
    return pairs


def run_plan(plan: Plan, tables: Tables) -> list[Rows]:
    """Return the rows of every sink."""
    done: list[Rows] = []
    for node in plan.nodes:
        inputs = [done[source] for source in node.inputs]
        match node.operator:
            case Source(spec=spec):
                rows = read(spec, tables)
            case Project(expressions=expressions):
                rows = [{each.name: evaluate(each.expression, row) for each in expressions} for row in inputs[0]]
            case Filter(predicate=predicate):
                rows = [row for row in inputs[0] if evaluate(predicate, row) is True]
            case Join() as join:
                rows = []
                for left, right in joined(join, *inputs, join.left_keys, join.right_keys):
                    row: Row = dict.fromkeys(node.schema.names)
                    row.update(right or {})
                    row.update(left or {})
                    if join.coalesce_keys and left is None:
                        row.update((a, right[b]) for a, b in zip(join.left_keys, join.right_keys, strict=True))
                    rows.append({name: row[name] for name in node.schema.names})
            case Aggregate(of_states=True) as aggregate:
                rows = _aggregate("final", aggregate.keys, aggregate.calls, inputs[0], node.schema.names)
            case PartialAggregate(keys=keys, calls=calls, of_states=of_states):
                rows = inputs[0] if of_states else _with_arguments(calls, inputs[0])
                rows = _aggregate("combine" if of_states else "partial", keys, calls, rows, node.schema.names)
            case Aggregate(keys=keys, calls=calls):
                rows = []
                for key, members in group(inputs[0], keys).items():
                    row = dict(zip(keys, key, strict=True))
                    for call in calls:
                        values = [1 if call.argument is None else evaluate(call.argument, each) for each in members]
                        row[call.name] = aggregate_value(call, values)
                    rows.append(row)
            case Sort(keys=keys, limit=limit):
                rows = sort_rows(inputs[0], keys, limit)
            case Limit(count=count):
                rows = inputs[0][:count]
            case _:
                rows = [row for part in inputs for row in part]
        assert all(tuple(row) == node.schema.names for row in rows), node
        done.append(rows)
    return [done[sink] for sink in plan.sinks]


def run_physical(optimized: OptimizedPlan, tables: Tables) -> list[Rows]:
    """Return the rows of every sink, in the order of their subtasks."""
    done: list[list[Rows]] = []
    for node in optimized.nodes:
        inputs = _inputs(node, done)
        outputs = [run_subtask(node, subtask, inputs, tables) for subtask in range(node.parallelism)]
        for rows in outputs:
            assert all(set(row) == set(node.descriptor.output_schema.names) for row in rows), node
        done.append(outputs)
    by_plan_node = {node.plan_node: node.id for node in optimized.nodes}
    return [[row for rows in done[by_plan_node[sink]] for row in rows] for sink in optimized.plan.sinks]


def _inputs(node: PhysicalNode, done: list[list[Rows]]) -> list[list[Rows]]:
    """Return for each input index the rows of each subtask."""
    count = max((channel.input_index for channel in node.inputs), default=-1) + 1
    inputs: list[list[Rows]] = [[[] for _ in range(node.parallelism)] for _ in range(count)]
    for channel in node.inputs:
        for producer, rows in enumerate(done[channel.source]):
            for position, row in enumerate(rows):
                for target in targets(channel.partitioner, producer, position, row, node.parallelism):
                    inputs[channel.input_index][target].append(row)
    return inputs


def targets(partitioner: PartitionerSpec, producer: int, position: int, row: Row, parallelism: int) -> list[int]:
    match partitioner.kind:
        case "FORWARD":
            return [producer]
        case "GLOBAL" | "SORTED_RUNS":
            # All rows in one range is a valid choice of bounds.
            return [0]
        case "BROADCAST":
            return list(range(parallelism))
        case "REBALANCE":
            return [position % parallelism]
        case "HASH":
            key = tuple(row[name] for name in partitioner.keys)
            if partitioner.spread_nulls and None in key:
                return [position % parallelism]
            return [hash(key) % parallelism]
    raise AssertionError(partitioner)


def run_subtask(
    node: PhysicalNode, subtask: int, inputs: Sequence[Sequence[Rows] | Mapping[int, Rows]], tables: Tables
) -> Rows:
    """Return the rows of a subtask; ``inputs``: of each, the rows of subtasks by number, of all up to this one."""
    rows = inputs[0][subtask] if inputs else []
    names = node.descriptor.output_schema.names
    match node.descriptor.operator:
        case SourceOperator(spec=spec):
            return read(spec, tables)[subtask :: node.parallelism]
        case KeyFilterOperator():
            return []  # sources leave out nothing here: joins drop what filters would
        case ProjectOperator(expressions=expressions):
            return [{each.name: evaluate(each.expression, row) for each in expressions} for row in rows]
        case FilterOperator(predicate=predicate):
            return [row for row in rows if evaluate(predicate, row) is True]
        case LimitOperator(count=count):
            return rows[:count]
        case SortOperator(keys=keys, limit=limit):
            return sort_rows(rows, keys, limit)
        case MergeRunsOperator(keys=keys):
            return sort_rows(rows, keys, None)
        case HashJoinOperator() | SortMergeJoinOperator() as join:
            schemas = node.descriptor.input_schemas
            sides = [rows, inputs[1][subtask]]
            if isinstance(join, HashJoinOperator) and join.shares_marks:
                # Subtasks know together what was matched: rows come from any of them, here all from the last one.
                if subtask < node.parallelism - 1:
                    return []
                probe = 1 if join.build_left else 0
                sides[probe] = [row for each in range(node.parallelism) for row in inputs[probe][each]]
            pairs = joined(join, *sides, join.left_keys, join.right_keys)
            return [
                {
                    name: None if pair[side] is None else pair[side][schemas[side].names[index]]
                    for name, (side, index) in zip(names, join.output, strict=True)
                }
                for pair in pairs
            ]
        case HashAggregateOperator() as aggregate:
            return _aggregate(aggregate.phase, aggregate.keys, aggregate.calls, rows, names)
        case _:
            return rows


_MERGE = {"count_all": "sum", "count": "sum", "sum": "sum", "min": "min", "max": "max"}


def _with_arguments(calls: tuple[AggregateCall, ...], rows: Rows) -> Rows:
    arguments = {f"__arg{index}": call.argument for index, call in enumerate(calls) if call.argument is not None}
    return [{**row, **{name: evaluate(each, row) for name, each in arguments.items()}} for row in rows]


def _aggregate(
    phase: str, keys: tuple[str, ...], calls: tuple[AggregateCall, ...], rows: Rows, names: tuple[str, ...]
) -> Rows:
    """Return groups of a phase; where states are made, each row of the first half is a group of its own."""
    results: Rows = []
    is_partial = phase in ("partial", "combine")
    parts = [*([row] for row in rows[: len(rows) // 2]), rows[len(rows) // 2 :]] if is_partial else [rows]
    for part in parts:
        groups = group(part, keys)
        if is_partial and not part:
            groups = {}
        for key, members in groups.items():
            values = list(key)
            for index, call in enumerate(calls):
                if phase in ("combine", "final"):
                    states = [row[f"__state{index}_0"] for row in members]
                    merged = AggregateCall(_MERGE[call.function], None, call.name)
                    value = aggregate_value(merged, states)
                    values.append(0 if value is None and call.function.startswith("count") else value)
                else:
                    arguments = [1 if call.argument is None else row[f"__arg{index}"] for row in members]
                    values.append(aggregate_value(call, arguments))
            results.append(dict(zip(names, values, strict=True)))
    return results
