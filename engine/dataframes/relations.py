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

from engine.accumulators.aggregate_functions import result_schema
from engine.dataframes.frame import Fragments, Frame, spark_schema
from engine.dataframes.keyed_fragments import keyed
from engine.dataframes.native_aggregates import Aggregating, native_aggregate
from engine.dataframes.native_expressions import native_column
from engine.expressions.infer import infer_schema, infer_type
from engine.expressions.literals import make_literal
from engine.expressions.schema_bridge import to_column_info, to_plan_schema
from engine.graph.expression import (
    EXTREMES_OF_CONDITIONS,
    AggregateCall,
    Aggregated,
    Case,
    ColumnRef,
    Expression,
    NamedExpression,
)
from engine.graph.plan import (
    Aggregate,
    AsofJoin,
    CoGroup,
    Filter,
    GroupReduce,
    Join,
    PlanNode,
    Project,
    Sort,
    SortedAggregate,
    Window,
)
from engine.graph.plan_schema import PlanSchema
from engine.graph.said_operators import JoinType
from engine.graph.sort_key import SortKey
from engine.lowering.projections import columns_as_they_are
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
        """Return groups of a lowered aggregate."""
        keys = columns_as_they_are(operator.keys)
        leaves = [
            (call.name, Aggregated(call.function, () if call.argument is None else (call.argument,)))
            for call in operator.calls
        ]
        groups = self.groups(frame, keys, leaves)
        if groups is None:
            return self.by_key(node, [frame], [frame.columns_of(operator.keys)])
        return self.projected(groups, node, columns_as_they_are(node.schema.names))

    def groups(
        self,
        frame: Frame,
        keys: Sequence[NamedExpression],
        leaves: Sequence[tuple[str, Aggregated]],
        sets: Sequence[Sequence[str]] | None = None,
        number: pa.Field | None = None,
    ) -> Frame | None:
        """Return keys and aggregates by name, of each of some sets of keys; None where Spark has not all of them.

        What Spark does not compute of the keys and arguments, the engine computes below. ``number``: the column that
        has the number of the set.
        """
        if sets is not None and (len({*map(tuple, sets)}) < len(sets) or not hasattr(frame.data, "groupingSets")):
            return None
        arguments = [(f"__argument{place}", _argument(one)) for place, (_, one) in enumerate(leaves)]
        named = [*keys, *(NamedExpression(name, value) for name, value in arguments if value is not None)]
        below = self.projected(frame, _project(named, frame), named).computed(self.fragments) if named else frame
        schema = below.arrow_schema
        calls = [
            AggregateCall(_function(one), None if value is None else ColumnRef(name), leaf)
            for (leaf, one), (name, value) in zip(leaves, arguments, strict=True)
        ]
        types = [None if value is None else schema.field(name).type for name, value in arguments]
        result = result_schema([schema.field(key.name) for key in keys], calls, types)
        made = [
            native_aggregate(
                call.function,
                None if call.argument is None else below.column(name),
                data_type,
                result.field(call.name).type,
                Aggregating(is_distinct=one.distinct),
            )
            for call, (name, _), data_type, (_, one) in zip(calls, arguments, types, leaves, strict=True)
        ]
        native = [column for column in made if column is not None]
        if len(native) < len(made):
            return None
        own = [below.name(key.name) for key in keys]
        names = self.fragments.new_names(len(native))
        columns = [column.alias(name) for column, name in zip(native, names, strict=True)]
        if sets is not None:
            places = [[own[place] for place, key in enumerate(keys) if key.name in one] for one in sets]
            return self._of_sets(below, result, own, places, columns, number)
        data = below.data.groupBy(*own).agg(*columns) if columns else below.data.select(*own).distinct()
        return Frame.of(data, to_plan_schema(result), (*own, *names))

    def _of_sets(
        self,
        below: Frame,
        result: pa.Schema,
        keys: Sequence[str],
        sets: Sequence[Sequence[str]],
        columns: Sequence[Column],
        number: pa.Field | None,
    ) -> Frame:
        """Return the groups of sets of keys: those that have keys in one pass, the one of all rows beside them.

        Of no rows the group of all is one row, which Spark's sets do not have.
        """
        fields = [field.with_nullable(True) for field in result]
        wanted, made, numbers = list(keys), list(columns), list[Column]()
        if number is not None:
            fields.insert(len(keys), number)
            number_type = spark_schema(to_plan_schema(pa.schema([number])))[0].dataType
            made.insert(0, F.grouping_id().cast(number_type).alias(self.fragments.new_names(1)[0]))
            numbers.append(F.lit((1 << len(keys)) - 1).cast(number_type))
        parts = []
        if keyed := [[F.col(name) for name in one] for one in sets if one]:
            parts.append(below.data.groupingSets(keyed, *map(F.col, wanted)).agg(*made))
        if [] in sets:
            types = spark_schema(to_plan_schema(pa.schema(fields[: len(keys)])))
            every = below.data.agg(*columns)
            parts.append(every.select(*(F.lit(None).cast(each.dataType) for each in types), *numbers, "*"))
        names = self.fragments.new_names(len(fields))
        return Frame.of(reduce(DataFrame.unionAll, parts).toDF(*names), to_plan_schema(pa.schema(fields)), names)

    def projected(self, frame: Frame, node: PlanNode, named: Sequence[NamedExpression]) -> Frame:
        """Return columns as those of a node, by Spark where it computes all of them, else by the engine later."""
        operator = Project(tuple(named))
        found = self.project(frame, node, operator)
        return frame.with_waiting(PlanNode(node.id, operator, (), node.schema)) if found is None else found

    def join(self, node: PlanNode, operator: Join, left: Frame, right: Frame) -> Frame:
        """Return a join: Spark's, or the engine's over rows with equal keys."""
        right = self._apart(right, left)
        condition = self._condition(operator, left, right)
        if operator.null_aware and operator.condition is None:
            return self._not_in(node, operator, left, right)
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

    def _not_in(self, node: PlanNode, operator: Join, left: Frame, right: Frame) -> Frame:
        """Return the rows of the left whose key is certainly none of the right's: none where one of those is null."""
        (own,), (other,) = operator.left_keys, operator.right_keys
        rows, values = self.fragments.new_names(2)
        facts = right.data.agg(F.count(F.lit(1)).alias(rows), F.count(right.column(other)).alias(values))
        is_known = (F.col(rows) == F.col(values)) & left.column(own).isNotNull()
        beside = left.data.crossJoin(F.broadcast(facts)).filter((F.col(rows) == 0) | is_known)
        data = beside.join(right.data, F.expr(f"{left.name(own)} = {right.name(other)}"), "left_anti")
        names = tuple(left.name(name) for name in node.schema.names)
        return Frame(data, node.schema, names, (*left.columns, rows, values))

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


def _project(named: Sequence[NamedExpression], frame: Frame) -> PlanNode:
    """Return a node of columns over those of a frame."""
    return PlanNode(0, Project(tuple(named)), (), to_plan_schema(infer_schema(named, frame.arrow_schema)))


def _function(one: Aggregated) -> str:
    """Return the aggregate with states that a user's is, over arguments that are null where its filter is not true."""
    if one.where is not None and one.function == "count_all":
        return "count"
    return EXTREMES_OF_CONDITIONS.get(one.function, one.function)


def _argument(one: Aggregated) -> Expression | None:
    """Return the argument of an aggregate, null where the filter is not true; None without any."""
    argument = one.arguments[0] if one.arguments else None
    if one.where is None:
        return argument
    return Case(((one.where, make_literal(1) if argument is None else argument),))
