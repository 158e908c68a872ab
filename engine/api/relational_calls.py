"""The relational calls of DataSet: columns, rows and their order, groups, and pairs with rows of another data set.

    select with_columns drop rename        projections
    filter distinct union limit sort top   operators of the plan
    group_by agg                           what group_by returns is in grouped_by.py
    join asof_join intersect except_       arguments of joins are checked in join_arguments.py

Held by: tests/api/test_data_set.py
Held by: tests/integration/test_join_forms.py
Held by: tests/integration/test_row_calls.py
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from engine.api.calls import Calls, row_count
from engine.api.column_sides import Sides, check_own_columns, column_of
from engine.api.other_options import with_other_options
from engine.api.spoken_texts import spoken
from engine.column_expressions.expression import Expr
from engine.column_expressions.named_columns import (
    column_name,
    column_names,
    columns_given,
    flattened,
    renamed,
    selected,
    with_columns,
)
from engine.column_expressions.python_habits import check_own, plain_truth
from engine.errors import SchemaError
from engine.expressions.column_names import check_columns
from engine.graph.expression import (
    ColumnRef,
    Expression,
    NamedExpression,
    OrderedBy,
    has_data_set,
)
from engine.graph.plan import Explode, Filter, Limit, Project, PythonFunction, Sort, Source, Window
from engine.graph.said_operators import JoinBy, JoinHint, JoinType, Page, SetOperation, SortBy
from engine.lowering.logical_node import LogicalNode
from engine.lowering.projections import columns_as_they_are, free_name, project_node
from engine.lowering.said_nodes import lowered
from engine.records.key_types import is_key_type, key_remedy
from engine.user_warnings import warn_user

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.api.grouped_by import GroupedBy
    from engine.choices import AsofDirection, JoinHintName, JoinHow, JoinValidate


def _has_order(node: LogicalNode) -> bool:
    """Whether the rows of a node are in the order of a sort, of files or of a number."""
    while isinstance(node.operator, Project | Filter | PythonFunction | Explode | Limit):
        node = node.inputs[0]
    return isinstance(node.operator, Sort | Source | Window)


def _one_condition(conditions: Sequence[Any]) -> Expr:
    """Return the only condition; SchemaError where a selector makes several of it."""
    if len(conditions) != 1:
        raise SchemaError(
            f"filter: the selector makes {len(conditions)} conditions, and does not say whether all of them or one must"
            " be true; write them with col(name), joined by & or |"
        )
    (found,) = conditions
    return found if isinstance(found, Expr) else Expr(ColumnRef(found))


def _keys_and_flags(given: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the keys of a sort, and the values of descending and nulls_last behind them."""
    count = next((place for place, each in enumerate(given) if _is_flag(each)), len(given))
    keys, flags = given[:count], given[count:]
    if not keys or len(flags) > 2 or not all(map(_is_flag, flags)):
        raise SchemaError("sort: name the keys, then True or False for descending and for nulls_last, or lists of them")
    return keys, flags


def _is_flag(given: Any) -> bool:
    return isinstance(given, bool) or (isinstance(given, list) and given != [] and all(map(_is_flag, given)))


def _given_keys(keys: Any, schema: pa.Schema) -> list[Any] | None:
    """Return keys of a join with selectors replaced by the columns of their side; None where there are none."""
    return None if keys is None else columns_given([keys], schema)


@with_other_options
class RelationalCalls(Calls):
    """Base of DataSet with the calls that SQL has too."""

    def __getitem__(self, item: Any) -> Any:
        """Return the column of that name as an expression, or with a list of names these columns as a data set."""
        if isinstance(item, str):
            check_columns([item], self.schema)
            return Expr(column_of(self._node, item))
        if isinstance(item, list | tuple):
            return self.select(*item)
        if isinstance(item, Expr):
            raise SchemaError(f"data_set[{item!r}]: rows are chosen with data_set.filter(...)")
        raise SchemaError(
            f"data_set[{item!r}]: rows have no numbers; data_set.limit(n) has the first rows, data_set.collect() all"
        )

    def select(self, *columns: Any, **named: Any) -> Self:
        """Select these columns, names, selectors or expressions, in this order; named ones come last.

        >>> rows({"k": [1], "x": [2]}).select("k", double=col("x") * 2).collect()
        [Row(k=1, double=4)]
        """
        return self._project(selected(self.schema, columns, named), "select")

    def with_columns(self, *columns: Expr, **named: Any) -> Self:
        """Return all columns and these; a new one replaces the column of the same name, in its place.

        Expressions see the columns as they were before. One over a selector is computed for each of its columns.

        >>> rows({"k": ["a"], "x": [1], "y": [2.5]}).with_columns(cs.numeric() * 2).collect()
        [Row(k='a', x=2, y=5.0)]
        """
        return self._project(with_columns(self.schema, columns, named), "with_columns")

    def _project(self, named: list[NamedExpression], what: str) -> Self:
        found, others = self._with_inputs([one.expression for one in named])
        named = [NamedExpression(one.name, value) for one, value in zip(named, found, strict=True)]
        return self._with(lowered(Project(tuple(named)), (self._node, *others), what))

    def _with_inputs(self, expressions: list[Expression]) -> tuple[list[Expression], list[LogicalNode]]:
        """Return expressions that speak of data sets by their places among inputs, and the nodes of these."""
        check_own_columns(expressions, self._node)
        expressions = spoken(expressions, self)
        if not any(map(has_data_set, expressions)):
            return expressions, []
        from engine.lowering.data_set_values import with_inputs

        return with_inputs(expressions, self._environment.node_of)

    def drop(self, *columns: Any) -> Self:
        """Return all columns except these."""
        dropped = self._names(list(columns), "drop")
        kept = columns_as_they_are(name for name in self.schema.names if name not in dropped)
        return self._with(project_node(self._node, kept, "drop"))

    def rename(self, names: Mapping[str, str] | Callable[[str], str] | None = None, **more: str) -> Self:
        """Return the columns under new names: ``rename({"old": "new"})``, ``rename(old="new")``, ``rename(str.lower)``.

        >>> rows({"K": [1], "X": [2]}).rename(str.lower).collect()
        [Row(k=1, x=2)]
        """
        return self._with(project_node(self._node, renamed(self.schema, names, more), "rename"))

    def filter(self, condition: Any, columns: Any = None) -> Self:
        """Return the rows for which a condition is true: an expression of bools, or a Python function of the row.

        With ``columns``, a name or a list of them, the function is called with the values of these instead of a row.

        ``col("a") is None`` is decided by Python and is always False; write ``col("a").is_null()``.
        """
        if isinstance(condition, Expr):
            condition = _one_condition(columns_given([condition], self.schema))
            (predicate,), others = self._with_inputs([condition.expression])
            return self._with(lowered(Filter(predicate), (self._node, *others)))
        if isinstance(condition, bool):
            raise plain_truth(condition, "filter")
        check_own(condition, "filter: ")
        from engine.functions.python_functions import python_function
        from engine.functions.user_function import function_of

        if function_of("filter", condition) is None:
            text = f"; a condition of SQL is expr({condition!r})" if isinstance(condition, str) else ""
            expected = "expected an expression such as col('a') > 1, or a function"
            raise SchemaError(f"filter({condition!r}): {expected}{text}")
        if columns is None:
            return self._same_rows(python_function("filter", condition))
        from engine.column_expressions.udfs import truth_of

        return self.filter(truth_of(condition, self._names(columns, "filter columns")))

    def distinct(self, subset: Any = None) -> Self:
        """Return each different row once; null equals null here.

        With ``subset``, names of columns: one row, any, of those that are equal in them (see ``drop_duplicates``).
        """
        from engine.lowering.aggregate_nodes import aggregate_node

        if subset is not None:
            return self._one_of_each(column_names(subset, "distinct", self.schema))
        for field in self.schema:
            if not is_key_type(field.type):
                raise SchemaError(
                    f"distinct: column {field.name!r} is {field.type}, which cannot be compared; drop it, or "
                    + key_remedy(field.type)
                )
        return self._with(aggregate_node(self._node, tuple(self.schema.names), ()))

    def _one_of_each(self, keys: list[str], order: Sequence[OrderedBy] = ()) -> Self:
        """Return the first row of those with equal keys, in an order."""
        from engine.column_expressions.windows import over_keys, row_number

        if not keys:
            raise SchemaError("distinct: subset= has no columns")
        return self.filter(row_number().over(keys, *over_keys(order)) == 1)

    def union(self, *others: Self) -> Self:
        """Return the rows of all, duplicates too (UNION ALL). Columns are matched by name and widened."""
        from engine.lowering.joins import union_node

        nodes = [self._partner(other, "union") for other in flattened(others)]
        return self._with(union_node([self._node, *nodes])) if nodes else self

    def limit(self, count: int | None, offset: int = 0) -> Self:
        """Return up to ``count`` rows after the first ``offset``: the first ones of a sort or of files, else any.

        None: all that are left. Pages of a sort fit together, also where keys are equal: each row is in one page, in
        every run and with any parallelism; columns without an order (lists, structs, maps) tell no rows apart. Rows
        that are passed over are counted in one task.

        >>> rows({"k": [1, 1, 1], "x": [3, 4, 5]}).sort("k").limit(2, offset=1).collect()
        [Row(k=1, x=4), Row(k=1, x=5)]
        """
        most = None if count is None else row_count(count, "limit")
        passed = row_count(offset, "limit offset")
        if not passed:
            return self if most is None else self._same_rows(Limit(most))
        if not _has_order(self._node):
            warn_user(
                f"limit(offset={passed}): rows behind a join, a group, a union or an exchange have no order, so that "
                "pages of them may have a row twice or never; sort() them first (in SQL: ORDER BY)"
            )
        return self._with(lowered(Page(most, passed), (self._node,)))

    def sort(
        self,
        by: Any,
        *more: Any,
        descending: bool | list[bool] = False,
        nulls_last: bool | list[bool] = False,
        maintain_order: bool = False,
    ) -> Self:
        """Return the rows in total order of one or several keys, names of columns or expressions, or a list of them.

        ``descending`` is one value for all keys or one for each; ``nulls_last`` does not depend on it. Both may stand
        behind the keys: ``sort("x", True)``. NaN is the largest number. Rows with equal keys keep the order of files;
        behind a join, a group or an exchange they have any, but where a limit takes some of them. ``maintain_order``:
        they keep the order in which ``collect()`` gives the rows of this data set.
        """
        by, flags = _keys_and_flags((by, *more))
        if flags:
            descending, nulls_last = flags[0], flags[1] if len(flags) > 1 else nulls_last
        if maintain_order:
            from engine.column_expressions.row_functions import row_place
            from engine.column_expressions.windows import flags_of_keys

            place, keys = free_name("__place", self.schema), columns_given(by, self.schema)
            found = [key.expression if isinstance(key, Expr) else ColumnRef(column_name(key, "sort")) for key in keys]
            falling = [*flags_of_keys(descending, "sort: descending", found), False]
            last = [*flags_of_keys(nulls_last, "sort: nulls_last", found), False]
            placed = self.with_columns(**{place: row_place()})
            return placed._sorted([*keys, place], falling, last, None, "sort").drop(place)
        return self._sorted(by, descending, nulls_last, None, "sort")

    def top(
        self, count: int, by: Any, descending: bool | list[bool] = True, nulls_last: bool | list[bool] = True
    ) -> Self:
        """Return ``count`` rows with the largest values of ``by``, largest first (``descending=False``: smallest)."""
        return self._sorted(by, descending, nulls_last, row_count(count, "top"), "top")

    def _sorted(
        self, by: Any, descending: bool | list[bool], nulls_last: bool | list[bool], count: int | None, what: str
    ) -> Self:
        """Return the rows in order, or the first of them."""
        keys = [
            key.expression if isinstance(key, Expr) else ColumnRef(column_name(key, what))
            for key in columns_given([by], self.schema)
        ]
        from engine.column_expressions.windows import flags_of_keys

        pairs = (("descending", descending), ("nulls_last", nulls_last))
        flags = [flags_of_keys(value, f"{what}: {option}", keys) for option, value in pairs]
        found, others = self._with_inputs(keys)
        said = SortBy(tuple(OrderedBy(*key) for key in zip(found, *flags, strict=True)), count)
        return self._with(lowered(said, (self._node, *others), what))

    def group_by(self, *keys: Any, **named: Any) -> GroupedBy[Self]:
        """Return the groups of rows with equal keys (names or expressions); without keys, one group.

        >>> rows({"x": [1, 2, 3]}).group_by(odd=col("x") % 2).agg(n=count()).sort("odd").collect()
        [Row(odd=0, n=1), Row(odd=1, n=2)]
        """
        from engine.api.grouped_by import GroupedBy
        from engine.column_expressions.aggregates import argument_expression

        check_own_columns([key.expression for key in keys if isinstance(key, Expr)], self._node)
        named_keys = [Expr(argument_expression(key, "group_by"), name) for name, key in named.items()]
        return GroupedBy(self, (*keys, *named_keys))

    def agg(self, *aggregates: Any, **named: Any) -> Self:
        """Return aggregates of all rows, as one row: ``agg(total=sum_("x"))`` is ``group_by().agg(total=...)``."""
        return self.group_by().agg(*aggregates, **named)

    def join(
        self,
        other: Self,
        on: Any = None,
        left_on: Any = None,
        right_on: Any = None,
        how: JoinHow = "inner",
        hint: JoinHint | JoinHintName | None = None,
        condition: Expr | None = None,
        null_aware: bool = False,
        suffix: str | None = None,
        null_safe: bool | list[bool] = False,
        validate: JoinValidate | None = None,
    ) -> Self:
        """Return the pairs of rows with equal keys; nulls match nothing.

        ``on`` (on both sides) gives one key column, ``left_on`` and ``right_on`` keep both; each is a name, an
        expression or a list of them. ``how`` in inner left right full semi anti cross, or as Spark and Polars spell
        them; semi and anti return the left columns, cross has no keys. A pair must also meet ``condition``, an
        expression over the columns of both sides, which may stand alone. ``suffix`` is put behind the names of right
        columns that the left has too; in a condition ``other["x"]`` is the right's. ``null_safe``: null equals null in
        the keys. ``null_aware`` makes ``how="anti"`` SQL's NOT IN. ``validate``: "1:1", "1:m" or "m:1" ends the job
        with an error where a key is there twice on a side that says 1.

        >>> left = env.from_rows([(1, "a"), (None, "b")], pa.schema([("k", pa.int64()), ("x", pa.string())]))
        >>> left.join(left, on="k", suffix="_right", null_safe=True).sort("k").collect()
        [Row(k=None, x='b', x_right='b'), Row(k=1, x='a', x_right='a')]
        """
        from engine.api.join_arguments import KeyArguments, join_condition, join_hint, join_keys, join_type

        right, kind = self._partner(other, "join"), join_type(how)
        sides = Sides(self._node, right, suffix)
        if null_aware and kind is not JoinType.ANTI:
            raise SchemaError(f"join null_aware=True is NOT IN and goes with how='anti', not {kind.value!r}")
        arguments = KeyArguments(
            _given_keys(on, self.schema),
            _given_keys(left_on, self.schema),
            _given_keys(right_on, right.schema),
            null_safe,
        )
        sides.check_no_condition(arguments.on)
        keys = join_keys(kind, arguments, has_condition=condition is not None)
        wanted = sides.condition(join_condition(condition), keys.shared_names)
        if null_aware and any(keys.null_safe):
            raise SchemaError(
                "join: null_aware=True takes a null as unknown, null_safe=True as a value; give one of them"
            )
        if validate is not None:
            from engine.api.join_checks import validated

            one, two = validated((self, other), keys, validate)
            placed = None if wanted is None else Expr(wanted)
            return one.join(two, on, left_on, right_on, how, hint, placed, null_aware, suffix, null_safe)
        if not keys.is_on:
            sides.check_keys(keys.pairs)
        flags = tuple(keys.null_safe)
        said = JoinBy(kind, tuple(keys.pairs), keys.is_on, flags, join_hint(hint), wanted, null_aware, suffix)
        return self._with(lowered(said, (self._node, right)))

    def asof_join(
        self,
        other: Self,
        on: Any = None,
        by: Any = None,
        direction: AsofDirection = "backward",
        tolerance: Any = None,
        allow_exact_matches: bool = True,
        left_on: Any = None,
        right_on: Any = None,
        suffix: str | None = None,
    ) -> Self:
        """Return all rows, each with the row of ``other`` that is nearest to it by ``on``; nulls where there is none.

        ``on`` is a column of both sides, mostly a time, and comes out once; ``left_on`` and ``right_on`` keep both.
        ``by``: columns that must be equal. ``direction``: "backward" takes the last row that is not later, "forward"
        the first that is not earlier, "nearest" the nearer of the two (the earlier one where both are as near).
        ``tolerance`` is how far away it may be: a number, a ``timedelta``, or a text such as "10 min".
        ``allow_exact_matches=False``: a row at the very time does not count. A null matches nothing. Of several rows of
        ``other`` at one time, backward takes the last in their order, forward the first, where one subtask reads them.

        >>> trades = env.from_arrow(pa.table({"at": [2, 5, 9], "sym": ["a", "b", "a"], "size": [10, 20, 30]}))
        >>> quotes = env.from_arrow(pa.table({"at": [1, 4, 8], "sym": ["a", "b", "b"], "bid": [1.5, 2.0, 2.5]}))
        >>> trades.asof_join(quotes, on="at", by="sym", tolerance=5).sort("at").collect()
        [Row(at=2, sym='a', size=10, bid=1.5), Row(at=5, sym='b', size=20, bid=2.0),
         Row(at=9, sym='a', size=30, bid=None)]
        """
        from engine.api.join_arguments import AsofArguments, asof_join_by

        right = self._partner(other, "asof_join")
        by = _given_keys(by, self.schema)
        arguments = AsofArguments(on, left_on, right_on, by, direction, tolerance, allow_exact_matches)
        return self._with(lowered(asof_join_by(arguments, suffix), (self._node, right)))

    def intersect(self, other: Self, all: bool = False) -> Self:  # noqa: A002
        """Return the rows that are in both, each different row once; ``all``: as often as in the one that has fewer.

        Columns are matched by name, and have the types of these rows; null equals null.

        >>> rows({"x": [1, 1, 2]}).intersect(rows({"x": [1, 1, 3]}), all=True).to_arrow().to_pylist()
        [{'x': 1}, {'x': 1}]
        """
        return self._matched(other, in_other=True, counts=all)

    def except_(self, other: Self, all: bool = False) -> Self:  # noqa: A002
        """Return the rows that are not in the other, each different row once; ``all``: as often as it has them more.

        Columns are matched by name, and have the types of these rows; null equals null.

        >>> rows({"x": [1, 2, 2, None]}).except_(rows({"x": [1, None]})).to_arrow().to_pylist()
        [{'x': 2}]
        """
        return self._matched(other, in_other=False, counts=all)

    def _matched(self, right: Self, *, in_other: bool, counts: bool) -> Self:
        """Return the rows that the right has, or has not; ``counts``: copies are counted."""
        partner = self._partner(right, "intersect" if in_other else "except_")
        return self._with(lowered(SetOperation(in_other, counts), (self._node, partner)))
