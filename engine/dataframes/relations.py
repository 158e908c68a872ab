"""Joins, sorts, groups and unions: by Spark's operators where types and expressions allow, else by key as fragments.

Held by: tests/dataframes/test_places.py
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from engine.dataframes.frame import Fragments, Frame, carrier_names, spark_schema
from engine.dataframes.keyed_fragments import keyed
from engine.dataframes.native_aggregates import native_aggregate
from engine.dataframes.native_expressions import native_column
from engine.expressions.infer import infer_type
from engine.expressions.schema_bridge import to_arrow_schema, to_column_info
from engine.graph.expression import ColumnRef, Expression, NamedExpression
from engine.graph.plan import (
    Aggregate,
    AsofJoin,
    CoGroup,
    Filter,
    GroupReduce,
    Join,
    JoinType,
    PlanNode,
    Project,
    Sort,
    SortedAggregate,
    Window,
)
from engine.graph.plan_schema import PlanSchema

_HOW: Final = {
    JoinType.INNER: "inner",
    JoinType.LEFT: "left",
    JoinType.RIGHT: "right",
    JoinType.FULL: "full",
    JoinType.SEMI: "left_semi",
    JoinType.ANTI: "left_anti",
    JoinType.CROSS: "inner",
}


@dataclass(frozen=True)
class Relations:
    """Makes frames of nodes from the frames of their inputs, in which nothing waits."""

    session: SparkSession
    fragments: Fragments
    partitions: int

    def project(self, frame: Frame, operator: Project) -> Frame | None:
        """Return a projection by Spark, or None."""
        columns = [_native(frame, each.expression) for each in operator.expressions]
        if any(column is None for column in columns):
            return None
        made = frame.data.select(*(column for column in columns if column is not None))
        return Frame(made.toDF(*(f"c{place}" for place in range(len(columns)))), frame.base)

    def filter(self, frame: Frame, operator: Filter) -> Frame | None:
        """Return a filter by Spark, or None."""
        condition = _native(frame, operator.predicate)
        return None if condition is None else Frame(frame.data.filter(condition), frame.base)

    def sort(self, frame: Frame, operator: Sort) -> Frame:
        """Return rows in an order."""
        order = []
        for key in operator.keys:
            column = frame.column(key.column)
            if key.descending:
                order.append(column.desc_nulls_last() if key.nulls_last else column.desc_nulls_first())
            else:
                order.append(column.asc_nulls_last() if key.nulls_last else column.asc_nulls_first())
        data = frame.data.orderBy(*order)
        return Frame(data if operator.limit is None else data.limit(operator.limit), frame.base)

    def aggregate(self, frame: Frame, node: PlanNode, operator: Aggregate) -> Frame:
        """Return groups."""
        arguments = [None if call.argument is None else _native(frame, call.argument) for call in operator.calls]
        types = [
            None if call.argument is None else infer_type(call.argument, frame.arrow_schema) for call in operator.calls
        ]
        above = frame
        if any(
            call.argument is not None and column is None for call, column in zip(operator.calls, arguments, strict=True)
        ):
            above = self._with_arguments(frame, node, operator)
            arguments = [
                None if call.argument is None else above.column(f"__arg{index}")
                for index, call in enumerate(operator.calls)
            ]
        schema = to_arrow_schema(node.schema)
        made = [
            native_aggregate(call.function, argument, data_type, schema.field(call.name).type)
            for call, argument, data_type in zip(operator.calls, arguments, types, strict=True)
        ]
        if any(column is None for column in made):
            return self.by_key(node, [frame], [frame.columns(operator.keys)])
        keys = above.names(operator.keys)
        if not made:
            return Frame(above.data.select(*keys).distinct().toDF(*carrier_names(node.schema)), node.schema)
        rows = above.data.groupBy(*keys).agg(
            *(column.alias(f"a{index}") for index, column in enumerate(made) if column is not None)
        )
        order = [*operator.keys, *(call.name for call in operator.calls)]
        columns = [*keys, *(f"a{index}" for index in range(len(made)))]
        wanted = (f"{columns[order.index(name)]} AS c{place}" for place, name in enumerate(node.schema.names))
        return Frame(rows.selectExpr(*wanted), node.schema)

    def _with_arguments(self, frame: Frame, node: PlanNode, operator: Aggregate) -> Frame:
        """Return keys and arguments as columns, which the engine computes."""
        expressions = [NamedExpression(key, ColumnRef(key)) for key in operator.keys]
        for index, call in enumerate(operator.calls):
            if call.argument is not None:
                expressions.append(NamedExpression(f"__arg{index}", call.argument))
        project = PlanNode(0, Project(tuple(expressions)), (), operator.argument_schema)
        return frame.with_waiting(project).computed(self.fragments)

    def join(self, node: PlanNode, operator: Join, left: Frame, right: Frame) -> Frame:
        """Return a join: Spark's, or the engine's over rows with equal keys."""
        (left_data, lefts), (right_data, rights) = _apart(left, "l"), _apart(right, "r")
        condition = self._condition(operator, left, right, lefts, rights)
        if operator.null_aware or (operator.condition is not None and condition is None):
            keys = [left.columns(operator.left_keys), right.columns(operator.right_keys)]
            return self.by_key(node, [left, right], [[], []] if operator.null_aware else keys)
        pairs = zip(operator.left_keys, operator.right_keys, strict=True)
        tests = [F.expr(f"{lefts[one]} = {rights[other]}") for one, other in pairs]
        if condition is not None:
            tests.append(condition)
        if not tests:
            joined = left_data.crossJoin(right_data)
        else:
            joined = left_data.join(right_data, reduce(and_, tests), _HOW[operator.how])
        columns = _joined(operator, lefts, rights)
        return Frame(joined.selectExpr(*(f"{text} AS c{place}" for place, text in enumerate(columns))), node.schema)

    def _condition(
        self, operator: Join, left: Frame, right: Frame, lefts: Mapping[str, str], rights: Mapping[str, str]
    ) -> Column | None:
        if operator.condition is None:
            return None
        types = {each.name: each for each in right.arrow_schema} | {each.name: each for each in left.arrow_schema}
        columns = {name: F.col(text) for name, text in {**rights, **lefts}.items()}
        return native_column(operator.condition, pa.schema(list(types.values())), columns)

    def by_key(self, node: PlanNode, frames: Sequence[Frame], keys: Sequence[Sequence[Column]]) -> Frame:
        """Return what the engine makes of rows with equal keys."""
        return keyed(self.fragments, frames, keys, node, self.partitions)

    def grouped(
        self, node: PlanNode, operator: GroupReduce | SortedAggregate | Window | AsofJoin | CoGroup, frames: list[Frame]
    ) -> Frame:
        """Return what an operator that has no other form makes."""
        match operator:
            case Window():
                keys = [frames[0].columns(operator.partition_by)]
            case AsofJoin():
                keys = [frames[0].columns(operator.left_by), frames[1].columns(operator.right_by)]
            case CoGroup():
                sides = zip(frames, (operator.left_columns, operator.right_columns), strict=True)
                pairs = [self._with_keys(frame, operator.keys, columns) for frame, columns in sides]
                frames, keys = [frame for frame, _ in pairs], [found for _, found in pairs]
            case _:
                keys = [frames[0].columns(operator.keys)]
        return self.by_key(node, frames, keys)

    def _with_keys(
        self, frame: Frame, names: Sequence[str], columns: Sequence[NamedExpression]
    ) -> tuple[Frame, list[Column]]:
        """Return the keys of a side in the type of both sides, and rows that have them, maybe behind the others."""
        expressions = {each.name: each.expression for each in columns}
        found = [_native(frame, expressions[name]) for name in names]
        native = [column for column in found if column is not None]
        if len(native) == len(names):
            return frame, native
        schema = frame.arrow_schema
        made = [NamedExpression(f"__key{place}", expressions[name]) for place, name in enumerate(names)]
        types = [to_column_info(pa.field(each.name, infer_type(each.expression, schema))) for each in made]
        own = tuple(NamedExpression(name, ColumnRef(name)) for name in frame.base.names)
        project = PlanNode(0, Project((*own, *made)), (), PlanSchema((*frame.base.columns, *types)))
        above = frame.with_waiting(project).computed(self.fragments)
        return Frame(above.data, frame.base), above.columns([each.name for each in made])

    def union(self, node: PlanNode, frames: Sequence[Frame]) -> Frame:
        """Return the rows of all inputs."""
        data = frames[0].data
        for frame in frames[1:]:
            data = data.unionAll(frame.data)
        return Frame(
            data.select(*(F.col(each.name).cast(each.dataType) for each in spark_schema(node.schema))), node.schema
        )


def _apart(frame: Frame, prefix: str) -> tuple[DataFrame, dict[str, str]]:
    """Return rows with names that the other side of a join has not, and those names by ours.

    As texts: a column as an object costs several questions to the JVM.
    """
    names = [f"{prefix}c{place}" for place in range(len(frame.base.names))]
    return frame.data.toDF(*names), dict(zip(frame.base.names, names, strict=True))


def _joined(operator: Join, lefts: Mapping[str, str], rights: Mapping[str, str]) -> list[str]:
    """Return the columns of a join's output, as Spark writes them."""
    if operator.how in (JoinType.SEMI, JoinType.ANTI):
        return list(lefts.values())
    if not operator.coalesce_keys:
        return [*lefts.values(), *rights.values()]
    columns = dict(lefts)
    for one, other in zip(operator.left_keys, operator.right_keys, strict=True):
        columns[one] = f"coalesce({lefts[one]}, {rights[other]})"
    return [*columns.values(), *(text for name, text in rights.items() if name not in operator.right_keys)]


def _native(frame: Frame, expression: Expression) -> Column | None:
    return native_column(expression, frame.arrow_schema, frame.carriers)
