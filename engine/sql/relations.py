"""Relations of Substrait as data sets.

    read         a data set of the catalog, its columns under names of their own, filtered
    project      positions; a projection where something is computed
    join         keys are the equalities between the sides, the rest is the condition
    aggregate    group_by().agg(), one for each grouping set
    sort, fetch  sort(), top(), limit()
    set          union() of columns by position

What stands in a query several times, as the planner leaves WITH, is one data set with several uses if it is mostly
aggregates, or joins. A query in an expression is a column that is joined to the rows: its value, whether it has rows,
whether a value is one of its values. Filters, the order of joins and what is pruned are the optimizer's: nothing here
looks for a better plan.

Held by: tests/sql/test_queries.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from engine.api.aggregates import count
from engine.api.data_set import DataSet
from engine.api.data_set_values import one_value
from engine.api.expression import Expr
from engine.api.expressions import col, lit
from engine.errors import NotYetSupportedError, PlanError
from engine.graph.expression import conjuncts
from engine.sql import joins
from engine.sql.coercions import Coercions
from engine.sql.column_names import ColumnNames, Relation, different_names
from engine.sql.constants import is_constant, scalar_of
from engine.sql.datafusion_planner import PlannedQuery
from engine.sql.expressions import ExpressionReader
from engine.sql.groups import grouped
from engine.sql.join_conditions import JoinCondition, JoinKey, join_condition, positions
from engine.sql.member_joins import members
from engine.sql.memberships import Memberships
from engine.sql.messages import messages_below
from engine.sql.never_true import has_no_rows
from engine.sql.null_aware import joins_of
from engine.sql.set_operations import with_counts
from engine.sql.types import arrow_type, own_names
from engine.sql.unnested import TABLE, Unnested
from engine.sql.using_joins import shown_columns

if TYPE_CHECKING:
    from substrait.algebra_pb2 import (
        AggregateRel,
        Expression,
        FetchRel,
        FilterRel,
        JoinRel,
        ProjectRel,
        ReadRel,
        Rel,
        SetRel,
        SortRel,
    )


FromArrow = Callable[[pa.Table], DataSet]


class RelationReader:
    """Reads the relations of one query."""

    def __init__(
        self,
        tables: Mapping[str, DataSet],
        query: PlannedQuery,
        from_arrow: FromArrow,
        coercions: Coercions | None = None,
    ) -> None:
        self._tables = tables
        self._query = query
        self._from_arrow = from_arrow
        self._names = ColumnNames()
        self._unnested = Unnested(self._names, from_arrow)
        self._join_count = 0
        #: relations by their message, with the number of their first join
        self._known: dict[bytes, tuple[Relation, int]] = {}
        self._memberships = Memberships(query.functions)
        self._coercions = coercions or Coercions(query.decimals)

    def root(self, relation: Rel, names: Sequence[str]) -> DataSet:
        """Return the data set of a whole query, its columns under the names that the query gives them."""
        found = self.read(relation)
        coercions = self._coercions.with_found()
        if coercions is not None:
            return RelationReader(self._tables, self._query, self._from_arrow, coercions).root(relation, names)
        self._memberships.check(self._query.marks)
        shown = shown_columns(names)
        seen = Relation(found.data, tuple(found.columns[place] for place in shown))
        return _renamed(seen, different_names([names[place] for place in shown]))

    def read(self, message: Rel) -> Relation:
        """Return a relation, the same one again for what was read before."""
        written = message.SerializeToString(deterministic=True)
        joins_before = self._join_count
        if written in self._known and self._query.marks is None and _is_kept(message):
            found, known_joins_before = self._known[written]
            self._join_count += sum(1 for _ in joins_of(message))
            if self._null_aware(joins_before) == self._null_aware(known_joins_before, self._join_count - joins_before):
                return self._again(found)
            self._join_count = joins_before
        found = self._read_one(message)
        self._known[written] = found, joins_before
        return found

    def _null_aware(self, start: int, count_: int | None = None) -> set[int]:
        """Return the joins of a relation that are NOT IN, among those from its first one to its last one."""
        end = self._join_count if count_ is None else start + count_
        return {number - start for number in self._query.null_aware if start <= number < end}

    def _again(self, found: Relation) -> Relation:
        """Return a relation under other names: it is computed once, and joined with itself as any other."""
        # count(*) sees none of its columns: one is there
        seen = found.columns or tuple(found.data.columns[:1])
        own = {column: self._names.unique(column.partition("#")[0]) for column in dict.fromkeys(seen)}
        data = found.data.select([col(column).alias(name) for column, name in own.items()])
        return Relation(data, tuple(own[column] for column in found.columns))

    def _read_one(self, message: Rel) -> Relation:
        kind = str(message.WhichOneof("rel_type"))
        reader = getattr(self, f"_{kind}", None)
        if reader is None:
            raise NotYetSupportedError(f"the SQL relation {kind}")
        relation = getattr(message, kind)
        found: Relation = reader(relation)
        if relation.common.WhichOneof("emit_kind") == "emit":
            return Relation(found.data, tuple(found.columns[index] for index in relation.common.emit.output_mapping))
        return found

    # rows in ---------------------------------------------------------------------------------------------------

    def _read(self, message: ReadRel) -> Relation:
        if message.WhichOneof("read_type") == "virtual_table":
            return self._values(message)
        name = message.named_table.names[-1]
        if name.startswith(TABLE) and name not in self._tables:
            return self._unnested.positions()
        if name not in self._tables:
            name = ".".join(message.named_table.names)
            raise NotYetSupportedError(f"the SQL table {name} (write (VALUES (1), (2)) AS t (k), or register one)")
        data = self._tables[name]
        columns = own_names(message.base_schema)
        if message.HasField("filter"):
            found = self._filtered(Relation(data, tuple(columns)), message.filter)
            data = found.data
        if message.HasField("projection"):
            columns = [columns[item.field] for item in message.projection.select.struct_items]
        # count(*) needs rows and none of their columns: one is there, which the query does not see
        own = {column: self._names.unique(column) for column in columns or data.columns[:1]}
        renamed = data.select([col(column).alias(name) for column, name in own.items()])
        return Relation(renamed, tuple(own.values()) if columns else ())

    def _values(self, message: ReadRel) -> Relation:
        """Return the rows of VALUES; a query without FROM has one, without columns."""
        reader = self._reader((), ())
        rows = [[reader.read(field) for field in row.fields] for row in message.virtual_table.expressions]
        if not all(is_constant(field) for row in rows for field in row):
            raise NotYetSupportedError("VALUES with what is no constant, in SQL")
        names = [self._names.unique(name) for name in own_names(message.base_schema)]
        types = [arrow_type(one) for one in message.base_schema.struct.types]
        # fields have names in the values alone
        types = [scalar_of(rows[0][at]).type if pa.types.is_struct(one) else one for at, one in enumerate(types)]
        columns = [pa.array([scalar_of(row[index]).as_py() for row in rows], one) for index, one in enumerate(types)]
        # a row needs a column to be there, which the query does not see
        held = (columns, names) if names else ([pa.nulls(len(rows))], [self._names.unique("row")])
        return Relation(self._from_arrow(pa.table(*held)), tuple(names))

    # rows as they come -----------------------------------------------------------------------------------------

    def _project(self, message: ProjectRel) -> Relation:
        found, reader = self._below(message.input, message.expressions)
        columns, computed = list(found.columns), {}
        for one in message.expressions:
            if one.WhichOneof("rex_type") == "selection":
                columns.append(found.columns[reader.position(one)])
                continue
            name = self._names.unique("computed")
            if self._query.marks:
                self._memberships.follow(one, found.columns, name)
            computed[name] = reader.read(one)
            columns.append(name)
        data = found.data.with_columns(**reader.before) if reader.before else found.data
        return Relation(data.with_columns(**computed) if computed else data, tuple(columns))

    def _filter(self, message: FilterRel) -> Relation:
        return self._filtered(self.read(message.input), message.condition)

    def _filtered(self, found: Relation, condition: Expression) -> Relation:
        joined, reader = self._with_scalars(found, [condition])
        parts = conjuncts(reader.read(condition).expression) if self._query.marks else ()
        kept = [Expr(part) for part in parts if not self._memberships.takes(Expr(part))]
        data = joined.data
        for part in kept if parts else [reader.read(condition)]:
            if not is_constant(part) or scalar_of(part).as_py() is not True:
                data = data.filter(part)
        return Relation(data, found.columns)

    def _sort(self, message: SortRel) -> Relation:
        keyed, names, descending, nulls_last = self._sort_keys(message)
        return Relation(keyed.data.sort(names, descending=descending, nulls_last=nulls_last), keyed.columns)

    def _fetch(self, message: FetchRel) -> Relation:
        count_, offset = self._bounds(message)
        if offset:
            return self._behind(message, count_, offset)
        if count_ is None:
            return self.read(message.input)
        if message.input.WhichOneof("rel_type") == "sort" and count_ > 0:
            keyed, names, descending, nulls_last = self._sort_keys(message.input.sort)
            return Relation(keyed.data.top(count_, names, descending, nulls_last), keyed.columns)
        found = self.read(message.input)
        return Relation(found.data.limit(count_), found.columns)

    def _behind(self, message: FetchRel, count_: int | None, offset: int) -> Relation:
        """Return rows behind the first ones: those are counted in the order that the query has."""
        below = message.input
        if below.WhichOneof("rel_type") == "fetch" and self._bounds(below.fetch) == ((count_ or 0) + offset, 0):
            # the planner keeps as many as both numbers together before it counts
            below = below.fetch.input
        if below.WhichOneof("rel_type") != "sort":
            found = self.read(below)
            return Relation(found.data.limit(count_, offset), found.columns)
        keyed, names, descending, nulls_last = self._sort_keys(below.sort)
        return Relation(keyed.data.sort(names, descending, nulls_last).limit(count_, offset), keyed.columns)

    def _bounds(self, message: FetchRel) -> tuple[int | None, int]:
        """Return the number of rows are wanted (None: all) after how many."""
        count_ = self._number(message.count_expr) if message.HasField("count_expr") else None
        offset = self._number(message.offset_expr) if message.HasField("offset_expr") else 0
        return count_, offset or 0

    def _number(self, message: Expression) -> int | None:
        is_query = message.WhichOneof("rex_type") == "subquery"
        value = None if is_query else self._reader((), ()).read(message)
        number = scalar_of(value).as_py() if value is not None and is_constant(value) else -1
        if number is not None and number < 0:
            raise PlanError("sql: LIMIT and OFFSET take a constant that is not negative")
        return number

    def _sort_keys(self, message: SortRel) -> tuple[Relation, list[str], list[bool], list[bool]]:
        """Return the input with a column for each key, the keys, and for each: descending, nulls last."""
        found, reader = self._below(message.input, [field.expr for field in message.sorts])
        data, names, descending, nulls_last = found.data, [], [], []
        for field in message.sorts:
            name = self._key_name(reader, field.expr)
            if name is None:
                name = self._names.unique("sort_key")
                data = data.with_columns(**{name: reader.read(field.expr)})
            direction = field.SortDirection.Name(field.direction)
            if name not in names:
                names.append(name)
                descending.append("DESC" in direction)
                nulls_last.append("NULLS_LAST" in direction)
        return Relation(data, found.columns), names, descending, nulls_last

    def _key_name(self, reader: ExpressionReader, message: Expression) -> str | None:
        """Return the name of a column as it is, None for what is computed."""
        return reader.read(message).output_name if message.WhichOneof("rex_type") == "selection" else None

    # rows of two -----------------------------------------------------------------------------------------------

    def _join(self, message: JoinRel) -> Relation:
        # counted before its inputs are read: null_aware.py counts them so
        number, self._join_count = self._join_count, self._join_count + 1
        left, right = self.read(message.left), self.read(message.right)
        on = message.expression if message.HasField("expression") else None
        left, right, values = self._sides_with_values(left, right, on)
        reader = self._reader(left.columns + right.columns, (left.data, right.data), values)
        if self._unnested.is_of(right):
            how = message.JoinType.Name(message.type).removeprefix("JOIN_TYPE_").lower()

            def read(*data: DataSet) -> Expr | None:
                return None if on is None else self._reader(left.columns + right.columns, data, values).read(on)

            return self._unnested.exploded(left, right, how, read)
        condition = join_condition(on, len(left.columns), reader, self._query.functions)
        kind = message.JoinType.Name(message.type).removeprefix("JOIN_TYPE_").lower()
        if kind in joins.BOTH_SIDES:
            return joins.pairs(left, right, joins.BOTH_SIDES[kind], condition)
        side, _, what = kind.partition("_")
        if side == "right":
            left, right, condition = right, left, condition.swapped()
        membership = self._memberships.of(right, condition)
        if membership is not None:
            return members(self._names, left, right, membership, what)
        if self._query.all_operations and what in ("semi", "anti"):
            return with_counts(self._names, left, right, condition, what)
        match what:
            case "semi":
                return joins.matching(left, right, condition)
            case "anti":
                is_null_aware = number in self._query.null_aware
                return joins.without_match(left, right, condition, is_null_aware)
            case "mark":
                return joins.marked(self._names, left, right, condition, self._query.marks_are_null_aware)
        raise NotYetSupportedError(f"the SQL join {kind}")

    def _set(self, message: SetRel) -> Relation:
        operation = message.SetOp.Name(message.op).removeprefix("SET_OP_").lower()
        if operation not in ("union_all", "union_distinct"):
            raise NotYetSupportedError(f"the SQL set operation {operation}")
        parts = [self.read(part) for part in self._with_rows(message.inputs)]
        names = [self._names.unique(name.partition("#")[0]) for name in parts[0].columns]
        # rows without columns have one that the query does not see
        hidden = [] if names else [lit(1).alias(self._names.unique("row"))]
        data = [_renamed(part, names) if names else part.data.select(hidden) for part in parts]
        union = data[0].union(*data[1:])
        return Relation(union.distinct() if operation == "union_distinct" else union, tuple(names))

    def _with_rows(self, inputs: Sequence[Rel]) -> Iterator[Rel]:
        """Yield the inputs of a union that may have rows, at least one."""
        is_read = [self._query.marks is not None or not has_no_rows(one, self._query.functions) for one in inputs]
        for place, one in enumerate(inputs):
            if is_read[place] or (place == 0 and not any(is_read)):
                yield one
            else:
                self._join_count += sum(1 for _ in joins_of(one))

    def _aggregate(self, message: AggregateRel) -> Relation:
        arguments = [one.value for measure in message.measures for one in measure.measure.arguments]
        filters = [measure.filter for measure in message.measures if measure.HasField("filter")]
        found, reader = self._below(message.input, [*message.grouping_expressions, *arguments, *filters])
        return grouped(self._names, found.data, message, reader, self._query.functions)

    # what expressions need -------------------------------------------------------------------------------------

    def _below(self, message: Rel, expressions: Sequence[Expression]) -> tuple[Relation, ExpressionReader]:
        return self._with_scalars(self.read(message), expressions)

    def _with_scalars(self, found: Relation, expressions: Sequence[Expression]) -> tuple[Relation, ExpressionReader]:
        """Return the relation with a column for each query that stands for a value, and the reader of expressions."""
        data, names = found.data, dict[bytes, str]()
        for query in self._value_queries(expressions):
            data = self._with_value(data, found.columns, query, names)
        reader = self._reader(found.columns, (data,), names)
        return Relation(data, found.columns), reader

    def _value_queries(self, expressions: Sequence[Expression]) -> list[Expression.Subquery]:
        return [query for one in expressions for query in _value_queries(one)] if self._query.has_values else []

    def _with_value(
        self, data: DataSet, columns: Sequence[str], query: Expression.Subquery, names: dict[bytes, str]
    ) -> DataSet:
        """Return the data with a column for what a query gives, whose name is added to ``names``."""
        written = query.SerializeToString(deterministic=True)
        if written in names:
            self._join_count += sum(1 for _ in joins_of(query))
            return data
        match query.WhichOneof("subquery_type"):
            case "scalar":
                row = self._one_row(query)
                data, names[written] = data.join(row.data, how="cross"), row.columns[0]
            case "set_predicate":
                row = self._whether_rows(query)
                data, names[written] = data.join(row.data, how="cross"), row.columns[0]
            case "in_predicate":
                (needle,) = query.in_predicate.needles
                value = self._reader(columns, (data,), names).read(needle)
                marked = self._whether_in(Relation(data, tuple(data.columns)), value, query)
                data, names[written] = marked.data, marked.columns[-1]
        return data

    def _one_row(self, query: Expression.Subquery) -> Relation:
        """Return the relation of a query that has one row: null where the query has none, an error where several."""
        found = self.read(query.scalar.input)
        value = found.data.select([found.columns[0]])
        name = self._names.unique("value")
        return Relation(value._with(one_value(value._node, name, "a SQL query")), (name,))

    def _whether_rows(self, query: Expression.Subquery) -> Relation:
        """Return one row: whether a query has rows."""
        found = self.read(query.set_predicate.tuples)
        name = self._names.unique("exists")
        counted = found.data.limit(1).group_by().agg(**{name: count()})
        return Relation(counted.select([(col(name) > 0).alias(name)]), (name,))

    def _whether_in(self, left: Relation, value: Expr, query: Expression.Subquery) -> Relation:
        """Return a relation with a last column: whether a value is one of those of a query, null where unknown."""
        values = self.read(query.in_predicate.haystack)
        condition = JoinCondition((JoinKey(value, col(values.columns[0]), null_safe=False),), None)
        membership = self._memberships.of(values, condition)
        if membership is not None:
            return members(self._names, left, values, membership, "mark")
        return joins.marked(self._names, left, values, condition, null_aware=True)

    def _sides_with_values(
        self, left: Relation, right: Relation, on: Expression | None
    ) -> tuple[Relation, Relation, dict[bytes, str]]:
        """Return the sides of a join with a column for each query that stands for a value in its condition."""
        names: dict[bytes, str] = {}
        columns = left.columns + right.columns
        for query in self._value_queries([on] if on is not None else []):
            read = {position < len(left.columns) for position in positions(query)}
            if read == {True, False}:
                raise NotYetSupportedError("sql: IN (SELECT ...) in ON over columns of both sides (write it in WHERE)")
            if read == {True}:
                left = left._replace(data=self._with_value(left.data, columns, query, names))
            else:
                right = right._replace(data=self._with_value(right.data, columns, query, names))
        return left, right, names

    def _reader(
        self,
        columns: Sequence[str],
        data: Sequence[DataSet],
        scalars: Mapping[bytes, str] | None = None,
    ) -> ExpressionReader:
        known = scalars or {}
        return ExpressionReader(
            columns,
            data,
            self._query.functions,
            lambda query: known[query.SerializeToString(deterministic=True)],
            self._coercions,
            self._names.unique,
            self._unnested.element,
        )


def _renamed(relation: Relation, names: Sequence[str]) -> DataSet:
    """Return the columns that a query sees, and no others, under other names."""
    return relation.data.select([col(own).alias(name) for own, name in zip(relation.columns, names, strict=True)])


def _is_kept(message: Any) -> bool:
    """Return whether a relation that stands in a query several times is one data set with several uses.

    Such is one whose tables are read below aggregates for the most part, and one of joins without aggregates, which the
    optimizer takes apart again where each use asks for few of its rows. Others are made again with less work than they
    are kept, for what is read by each use is pruned and filtered for it.
    """
    below = beside = joins = 0
    stack = [(message, False)]
    while stack:
        one, is_below = stack.pop()
        kind = one.DESCRIPTOR.name
        if kind == "ReadRel":
            below, beside = below + is_below, beside + (not is_below)
            continue
        joins += kind == "JoinRel"
        stack.extend((child, is_below or kind == "AggregateRel") for child in messages_below(one))
    return below > beside or (below == 0 and joins > 0)


def _value_queries(message: Expression) -> list[Expression.Subquery]:
    """Return the queries in an expression that stand for a value, each behind those that it looks at itself."""
    if message.DESCRIPTOR.name != "Subquery":
        return [query for child in messages_below(message) for query in _value_queries(child)]
    needles = message.in_predicate.needles if message.WhichOneof("subquery_type") == "in_predicate" else ()
    return [*(query for needle in needles for query in _value_queries(needle)), message]
