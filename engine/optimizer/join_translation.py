"""A join as physical operators: what the driver returns, and the projection behind a full join.

    left, right ──► HashJoin | SortMergeJoin | RangeJoin ──► output columns, each from one side
    full join with on=:   ──► output columns and __right{i} for each key ──► coalesce(key, __right{i}) ──► output

A driver takes each output column from one side. A coalesced key comes from the side whose rows are all there: the
right one in a right join, else the left. In a full join neither is, so both keys are returned and a projection, chained
to the join, takes the one that is there.

Held by: tests/optimizer/test_join_rules.py
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from engine.graph.expression import Call, Case, ColumnRef, NamedExpression
from engine.graph.operator_descriptor import HashJoinOperator, RangeJoinOperator, SortMergeJoinOperator
from engine.graph.plan import Join
from engine.graph.plan_schema import PlanSchema
from engine.graph.said_operators import JoinType
from engine.graph.ship_strategy import HeavyKeys
from engine.optimizer.candidates import Candidate
from engine.optimizer.join_alternatives import SORTING, LocalStrategy
from engine.optimizer.range_planning import find_range
from engine.statistics.estimates import Estimates

#: bounds of each sort's share of a sort-merge join's memory
LEFT_SHARE_BOUNDS = (0.2, 0.8)


class TranslatedJoin(NamedTuple):
    """The operators of one join."""

    operator: HashJoinOperator | SortMergeJoinOperator | RangeJoinOperator
    #: schema of the driver's rows
    schema: PlanSchema
    #: projection from the driver's rows to the join's output, () when they are equal
    coalescing: tuple[NamedExpression, ...]


def join_translation(
    join: Join,
    left: PlanSchema,
    right: PlanSchema,
    output: PlanSchema,
    strategy: str,
    heavy: HeavyKeys | None = None,
    left_share: float = 0.5,
    *,
    shares_marks: bool = False,
) -> TranslatedJoin:
    """Return the operators of a join of two inputs; it returns only the columns of ``output``.

    heavy: keys that are split, as the left channel has them; left_share: of the memory of a sort-merge join.
    """
    columns = join_output(join, left, right, output)
    schema = output
    coalescing: tuple[NamedExpression, ...] = ()
    if join.how is JoinType.FULL and join.coalesce_keys:
        schema, columns, coalescing = _with_both_keys(join, right, output, columns)
    if strategy == LocalStrategy.RANGE_MERGE:
        found = find_range(join, left, right)
        assert found is not None, "a range join without a range"
        ranged = RangeJoinOperator(
            join.how, join.left_keys, join.right_keys, found.range, columns, found.rest, left_share
        )
        return TranslatedJoin(ranged, schema, coalescing)
    if strategy == LocalStrategy.SORT_MERGE:
        operator = SortMergeJoinOperator(join.how, join.left_keys, join.right_keys, columns, join.condition, left_share)
        return TranslatedJoin(operator, schema, coalescing)
    build_left = strategy == LocalStrategy.HASH_BUILD_FIRST
    return TranslatedJoin(
        HashJoinOperator(
            join.how,
            join.left_keys,
            join.right_keys,
            build_left,
            columns,
            join.condition,
            join.null_aware,
            heavy,
            shares_marks=shares_marks,
        ),
        schema,
        coalescing,
    )


def join_output(join: Join, left: PlanSchema, right: PlanSchema, output: PlanSchema) -> tuple[tuple[int, int], ...]:
    """Return (side, index in that side's schema) for each output column of a join, 0 left and 1 right."""
    right_of = dict(zip(join.left_keys, join.right_keys, strict=True))
    columns = []
    for name in output.names:
        if join.how is JoinType.RIGHT and join.coalesce_keys and name in right_of:
            columns.append((1, right.index(right_of[name])))
        elif name in left.names:
            columns.append((0, left.index(name)))
        else:
            columns.append((1, right.index(name)))
    return tuple(columns)


def _with_both_keys(
    join: Join, right: PlanSchema, output: PlanSchema, columns: tuple[tuple[int, int], ...]
) -> tuple[PlanSchema, tuple[tuple[int, int], ...], tuple[NamedExpression, ...]]:
    """Return schema and columns with the right keys added, and the expressions that make one key of two."""
    schema = list(output.columns)
    added = list(columns)
    expressions = {name: NamedExpression(name, ColumnRef(name)) for name in output.names}
    for index, (left_key, right_key) in enumerate(zip(join.left_keys, join.right_keys, strict=True)):
        if left_key not in output.names:
            continue
        name = f"__right{index}"
        schema.append(msgspec.structs.replace(output.column(left_key), name=name, nullable=True))
        added.append((1, right.index(right_key)))
        key = ColumnRef(left_key)
        taken = Case(((Call("is_null", (key,)), ColumnRef(name)),), key)
        expressions[left_key] = NamedExpression(left_key, taken)
    if len(added) == len(columns):
        return output, columns, ()
    return PlanSchema(tuple(schema)), tuple(added), tuple(expressions.values())


def share_of_left(left: Estimates, right: Estimates) -> float:
    """Return the left's part of the bytes of both sides, within LEFT_SHARE_BOUNDS: estimates can be wrong."""
    if not (left.is_size_known and right.is_size_known):
        return 0.5
    least, most = LEFT_SHARE_BOUNDS
    return min(most, max(least, round(left.size_bytes / (left.size_bytes + right.size_bytes), 2)))


def held_estimates(candidate: Candidate, left: Estimates, right: Estimates) -> tuple[Estimates, int]:
    """Return (rows that a join holds in memory, number of their copies over all subtasks)."""
    if candidate.strategy in SORTING:
        if not (left.is_size_known and right.is_size_known):
            return (right if left.is_size_known else left), 1
        return Estimates(left.rows + right.rows, left.size_bytes + right.size_bytes, "both sides"), 1
    held = left if candidate.strategy == LocalStrategy.HASH_BUILD_FIRST else right
    return held, candidate.parallelism if candidate.alternative.startswith("BROADCAST") else 1
