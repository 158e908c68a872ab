"""Joins, sorts, groups and unions: by Spark's operators where types and expressions allow, else by key as fragments.

Held by: tests/dataframes/test_places.py
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_
from typing import Final

import pyarrow as pa
import pyarrow.types as kinds
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from engine.dataframes.frame import Fragments, Frame, spark_schema
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
from engine.graph.sort_key import SortKey
from engine.optimizer.input_order import other_keys
from engine.optimizer.operator_entries.entry import OrderUse
from engine.optimizer.operator_entries.registry import entry_of

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

    def project(self, frame: Frame, node: PlanNode, operator: Project) -> Frame | None:
        """Return a projection by Spark, or None; columns that are there keep their names, and are not asked for."""
        made: dict[str, Column] = {}
        names: list[str] = []
        for each in operator.expressions:
            if isinstance(each.expression, ColumnRef) and frame.name(each.expression.name) not in names:
                names.append(frame.name(each.expression.name))
                continue
            column = _native(frame, each.expression)
            if column is None:
                return None
            names += self.fragments.new_names(1)
            made[names[-1]] = column
        if not made:
            return replace(frame, base=node.schema, names=tuple(names))
        # Beside those that are there: they need not be named, and Spark leaves out unused columns.
        data = frame.data.withColumns(made)
        return Frame(data, node.schema, tuple(names), (*frame.columns, *made), is_ordered=frame.is_ordered)

    def filter(self, frame: Frame, operator: Filter) -> Frame | None:
        """Return a filter by Spark, or None."""
        condition = _native(frame, operator.predicate)
        return None if condition is None else frame.with_data(frame.data.filter(condition))

    def sort(self, frame: Frame, operator: Sort) -> Frame:
        """Return rows in an order; ties that must be settled by all columns, for the order of files is unknown here."""
        order = []
        ties = other_keys(operator, frame.base) if operator.has_settled_ties else ()
        for key in (*operator.keys, *ties):
            column = frame.column(key.column)
            if key.descending:
                order.append(column.desc_nulls_last() if key.nulls_last else column.desc_nulls_first())
            else:
                order.append(column.asc_nulls_last() if key.nulls_last else column.asc_nulls_first())
        data = frame.data.orderBy(*order)
        return replace(frame, data=data if operator.limit is None else data.limit(operator.limit), is_ordered=True)

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
            return self.by_key(node, [frame], [frame.columns_of(operator.keys)])
        keys = [above.name(key) for key in operator.keys]
        names = self.fragments.new_names(len(made))
        by_name = dict(zip((*operator.keys, *(call.name for call in operator.calls)), (*keys, *names), strict=True))
        wanted = tuple(by_name[name] for name in node.schema.names)
        if not made:
            return Frame(above.data.select(*keys).distinct(), node.schema, wanted, tuple(keys))
        columns = [column.alias(name) for column, name in zip(made, names, strict=True) if column is not None]
        return Frame(above.data.groupBy(*keys).agg(*columns), node.schema, wanted, (*keys, *names))

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
        right = self._apart(right, left)
        condition = self._condition(operator, left, right)
        if operator.null_aware or (operator.condition is not None and condition is None):
            keys = [left.columns_of(operator.left_keys), right.columns_of(operator.right_keys)]
            return self.by_key(node, [left, right], [[], []] if operator.null_aware else keys)
        pairs = zip(operator.left_keys, operator.right_keys, strict=True)
        tests = [f"{left.name(one)} = {right.name(other)}" for one, other in pairs]
        on = [F.expr(" AND ".join(tests))] if tests else []
        if condition is not None:
            on.append(condition)
        if on:
            data = left.data.join(right.data, reduce(and_, on), _HOW[operator.how])
        else:
            data = left.data.crossJoin(right.data)
        found = dict(zip(left.base.names, left.names, strict=True))
        if operator.how in (JoinType.SEMI, JoinType.ANTI):
            columns = left.columns
        else:
            columns = (*left.columns, *right.columns)
            found = dict(zip(right.base.names, right.names, strict=True)) | found
        joined = Frame(data, node.schema, (), columns)
        if operator.coalesce_keys and operator.how in (JoinType.RIGHT, JoinType.FULL):
            joined = self._coalesced(joined, operator, left, right, found)
        # a plan may have left out columns of either side that are not used above
        return replace(joined, names=tuple(found[name] for name in node.schema.names))

    def _coalesced(self, joined: Frame, operator: Join, left: Frame, right: Frame, found: dict[str, str]) -> Frame:
        """Choose one column for each pair of keys, from a side with all of its rows, and name it in ``found``.

        Of equal zeros it is the left one, whatever its sign.
        """
        for one, other in zip(operator.left_keys, operator.right_keys, strict=True):
            has_zeros = kinds.is_floating(left.arrow_schema.field(one).type)
            if operator.how is JoinType.FULL or has_zeros:
                (name,) = self.fragments.new_names(1)
                data = joined.data.withColumn(name, F.expr(f"coalesce({left.name(one)}, {right.name(other)})"))
                joined, found[one] = replace(joined, data=data, columns=(*joined.columns, name)), name
            else:
                found[one] = right.name(other)
        return joined

    def _apart(self, frame: Frame, other: Frame) -> Frame:
        """Rename the columns of a frame so that another frame has none of their names."""
        if not set(frame.columns) & set(other.columns):
            return frame
        names = self.fragments.new_names(len(frame.names))
        return Frame.of(frame.exact().toDF(*names), frame.base, names)

    def _condition(self, operator: Join, left: Frame, right: Frame) -> Column | None:
        if operator.condition is None:
            return None
        types = {each.name: each for each in right.arrow_schema} | {each.name: each for each in left.arrow_schema}
        columns = {name: frame.column(name) for frame in (right, left) for name in frame.base.names}
        return native_column(operator.condition, pa.schema(list(types.values())), columns)

    def by_key(self, node: PlanNode, frames: Sequence[Frame], keys: Sequence[Sequence[Column]]) -> Frame:
        """Return the engine's result over rows with equal keys; they are in order where the result depends on it."""
        before: list[PlanNode] = []
        if (
            len(frames) == 1
            and frames[0].is_ordered
            and entry_of(node.operator).order_use(node.operator) is OrderUse.SEEN
        ):
            frames = [frames[0].numbered(self.fragments)]
            place = SortKey(frames[0].base.names[-1])
            before = [PlanNode(0, Sort((place,)), (), frames[0].base)]
        return keyed(self.fragments, frames, keys, [*before, node], self.partitions)

    def grouped(
        self, node: PlanNode, operator: GroupReduce | SortedAggregate | Window | AsofJoin | CoGroup, frames: list[Frame]
    ) -> Frame:
        """Return the result of an operator that has no other translation."""
        match operator:
            case Window():
                keys = [frames[0].columns_of(operator.partition_by)]
            case AsofJoin():
                keys = [frames[0].columns_of(operator.left_by), frames[1].columns_of(operator.right_by)]
            case CoGroup():
                sides = zip(frames, (operator.left_columns, operator.right_columns), strict=True)
                pairs = [self._with_keys(frame, operator.keys, columns) for frame, columns in sides]
                frames, keys = [frame for frame, _ in pairs], [found for _, found in pairs]
            case _:
                keys = [frames[0].columns_of(operator.keys)]
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
        keys = above.columns_of([each.name for each in made])
        return replace(above, base=frame.base, names=above.names[: len(own)]), keys

    def union(self, node: PlanNode, frames: Sequence[Frame]) -> Frame:
        """Return the rows of all inputs."""
        data = reduce(DataFrame.unionAll, (frame.exact() for frame in frames))
        names = self.fragments.new_names(len(node.schema.names))
        columns = (F.col(name) for name in frames[0].names)
        types = (each.dataType for each in spark_schema(node.schema))
        wanted = [
            column.cast(data_type).alias(name) for column, data_type, name in zip(columns, types, names, strict=True)
        ]
        return Frame.of(data.select(*wanted), node.schema, names)


def _native(frame: Frame, expression: Expression) -> Column | None:
    return native_column(expression, frame.arrow_schema, frame.carriers)
