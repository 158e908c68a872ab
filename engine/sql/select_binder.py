"""One SELECT as rows, in the order in which its parts mean something.

    FROM ─► WHERE ─► GROUP BY, aggregates ─► HAVING ─► list of SELECT, windows ─► QUALIFY ─► DISTINCT ─► ORDER BY, LIMIT

A name that no table has may be one of the list of SELECT, wherever it stands.

Held by: tests/sql/test_queries.py
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from engine.column_expressions.expression import Expr
from engine.column_expressions.expressions import col
from engine.column_expressions.windows import row_number
from engine.dialects.parser import nodes_in, sentence
from engine.errors import NotYetSupportedError, PlanError
from engine.graph.expression import ColumnRef, columns_of
from engine.sql import dependent as dependents
from engine.sql.aggregates import OrderKey, aggregates_in
from engine.sql.dependent import default_of
from engine.sql.frames import Bound, Context, Frame, OuterColumnError, Way
from engine.sql.from_binder import conjuncts_of, frame_of
from engine.sql.groups import Grouping, sets_of
from engine.sql.lateral_binder import list_of, parts_of, zipped
from engine.sql.ordering import bounds, in_order, order_key, ordinal
from engine.sql.outer_groups import lift_aggregates, lift_keys
from engine.sql.scopes import Named, matching
from engine.sql.select_list import Item, expanded, is_unnest
from engine.sql_values.constants import computed, is_constant, scalar_of

#: names of the list of SELECT that one GROUP BY spells out, names within them included
_NAMES_MAX: Final = 1000


def bind_select(node: exp.Select, context: Context, is_whole: bool) -> Bound:
    """Return a SELECT as rows."""
    _check(node, context)
    context = context.within(node)
    return _Select(node, frame_of(node, context), is_whole).bound()


def _check(node: exp.Select, context: Context) -> None:
    for one in ("laterals", "match", "connect", "cluster", "distribute", "sort", "settings", "into"):
        if node.args.get(one):
            raise NotYetSupportedError(sentence(node, f"{one.upper()} in a SELECT", context.session.text))


class _Select:
    """The state of one SELECT while it is bound."""

    def __init__(self, node: exp.Select, frame: Frame, is_whole: bool) -> None:
        self._node = node
        self._frame = frame
        self._binder = frame.binder
        self._is_whole = is_whole
        self._items: list[Item] = []
        self._having: Expr | None = None

    def bound(self) -> Bound:
        """Return the rows."""
        node, frame = self._node, self._frame
        if not node.expressions:
            raise PlanError(sentence(node, "SELECT without columns", frame.session.text))
        frame.windows = {one.name.lower(): one for one in node.args.get("windows") or ()}
        self._items = list(expanded(node, frame))
        frame.aliases = {
            one.name.lower(): one.node for one in reversed(self._items) if one.has_alias and one.node is not None
        }
        self._where()
        self._unnested()
        self._groups()
        having = node.args.get("having")
        if having is not None:
            self._filter(having.this, "HAVING")
        columns = self._values()
        self._qualified(columns)
        found = self._last_steps(columns)
        frame.grouping = None  # it knows the frame: together they would be garbage that is collected
        return found

    # list of SELECT --------------------------------------------------------------------------------------------

    def _values(self) -> list[tuple[str, str]]:
        """Return names and columns of the list; what is computed becomes a column."""
        frame = self._frame
        aliases, frame.aliases = frame.aliases, {}
        values = []
        for one in self._items:
            values.append(self._column(one) if one.node is None else self._binder.bind(one.node))
            if one.has_alias and one.node is not None:
                # a name stands for what is written before it
                frame.aliases.setdefault(one.name.lower(), one.node)
        frame.aliases = aliases
        columns: list[tuple[str, str]] = []
        made: dict[str, Expr] = {}
        for one, value in zip(self._items, values, strict=True):
            if isinstance(value.expression, ColumnRef):
                columns.append((one.name, value.expression.name))
                continue
            known = next((name for name, other in made.items() if other.expression == value.expression), None)
            name = known or frame.unique(one.name or "value")
            made[name] = value
            columns.append((one.name, name))
        if made:
            frame.data = frame.data.with_columns(**made)
        self._defaults(values)
        return columns

    def _column(self, one: Item) -> Expr:
        grouping = self._frame.grouping
        if grouping is None:
            return col(one.column)
        return grouping.key_column(Named(one.name, one.column), [exp.to_identifier(one.name)])

    def _defaults(self, values: Sequence[Expr]) -> None:
        """Note the value of the query for rows outside that have no row in it."""
        dependent = self._frame.context.dependent
        if dependent is None or dependent.defaults_of is None or dependent.defaults_of is not self._frame.grouping:
            return
        grouping = dependent.defaults_of
        if self._having is not None:
            met = default_of(grouping, self._having)
            if is_constant(met) and scalar_of(met).as_py() is not True:
                return
        # a group that is left out is null, and would be taken for one of no rows
        if len(values) != 1 or any(self._node.args.get(one) for one in ("having", "qualify", "limit", "offset")):
            self._frame.fall_back()
        value = default_of(grouping, values[0])
        if not is_constant(value):
            self._frame.fall_back()
        dependent.default = value

    def _unnested(self) -> None:
        """Take apart the list of an unnest() in the list of SELECT: a row for each element."""
        nodes = [item.node for item in self._items if item.node is not None]
        found = [one for node in nodes for one in nodes_in(node, exp.Anonymous) if is_unnest(one)]
        if not found:
            return
        frame, binder = self._frame, self._binder
        if self._node.args.get("group") is not None or any(map(aggregates_in, nodes)):
            raise NotYetSupportedError(binder.said(found[0], "unnest() beside GROUP BY; write it in a query of FROM"))
        values = [list_of(binder, node.expressions[0]) for node in found]
        name = frame.unique("element")
        data = frame.data.with_columns(**{name: zipped(values)}).explode(name, keep_empty=False)
        frame.data, parts = parts_of(data, name, len(values), frame.session.names)
        frame.bound |= {id(node): col(part) for node, part in zip(found, parts, strict=True)}

    # rows ------------------------------------------------------------------------------------------------------

    def _where(self) -> None:
        where = self._node.args.get("where")
        if where is None:
            return
        parts = [part for part in conjuncts_of(where.this) if id(part) not in self._frame.applied]
        dependent = self._frame.context.dependent
        if dependent is not None and dependent.way is Way.EQUALITIES:
            parts = [part for part in parts if not self._stands_for(part)]
        # conditions that filter before those that join
        for part in sorted(parts, key=lambda one: bool(nodes_in(one, exp.Query))):
            self._filter(part, "WHERE")

    def _filter(self, node: exp.Expr, word: str) -> None:
        """Filter the rows by a condition."""
        frame = self._frame
        data = frame.data
        try:
            self._filter_here(node, word)
        except OuterColumnError as error:
            dependent = frame.context.dependent
            if error.dependent is not dependent or not self._takes_conditions(word):
                raise
            frame.data = data
            assert dependent is not None, "there are rows outside"
            frame.beside = dependent.outer.data
            try:
                dependent.conditions.append(self._binder.condition(node, word))
            except (OuterColumnError, NotYetSupportedError):
                raise error from None
            finally:
                frame.beside = None

    def _filter_here(self, node: exp.Expr, word: str) -> None:
        frame, binder = self._frame, self._binder
        frame.place = word if word == "WHERE" else ""
        for one in aggregates_in(node) if word == "WHERE" else ():
            raise PlanError(binder.said(one, "an aggregate in WHERE; write it in HAVING"))
        try:
            if dependents.filtered(binder, node):
                return
            condition = binder.condition(node, word)
        finally:
            frame.place = ""
        if word == "HAVING":
            self._having = condition if self._having is None else self._having & condition
        if is_constant(condition) and scalar_of(condition).as_py() is True:
            return
        frame.data = frame.data.filter(condition)

    def _takes_conditions(self, word: str) -> bool:
        """Return whether conditions over rows outside may be those of the join with them."""
        dependent, node = self._frame.context.dependent, self._node
        if dependent is None or dependent.way is not Way.CONDITIONS or dependent.root != id(node) or word != "WHERE":
            return False
        if any(node.args.get(one) is not None for one in ("group", "having", "qualify", "offset")):
            return False
        distinct = node.args.get("distinct")
        if distinct is not None and distinct.args.get("on") is not None:
            return False
        limit = node.args.get("limit")
        if limit is not None:
            is_some = isinstance(limit.expression, exp.Literal) and str(limit.expression.this).strip("0") != ""
            if not (dependent.is_existence and is_some):
                return False
        return not any(
            aggregates_in(one) or nodes_in(one, exp.Window) or any(map(is_unnest, nodes_in(one, exp.Anonymous)))
            for one in node.expressions
        )

    def _stands_for(self, node: exp.Expr) -> bool:
        """Return whether a condition makes a column stand for one of rows outside: inner = outer."""
        test = node.unnest()
        frame, dependent = self._frame, self._frame.context.dependent
        if not isinstance(test, exp.EQ) or dependent is None:
            return False
        for inner, outer in ((test.this, test.expression), (test.expression, test.this)):
            column = outer.unnest()
            if not isinstance(column, exp.Column) or nodes_in(inner, exp.Query):
                continue
            parts = [part for part in (column.args.get("table"), column.this) if part is not None]
            if not all(isinstance(part, exp.Identifier) for part in parts) or frame.find(parts) is not None:
                continue
            found = frame.outside(parts)
            if found is None or found[1]:
                continue
            name = dependent.column_of(found[0])
            if name in frame.carried:
                continue
            data = frame.data
            try:
                value = self._binder.bind(inner)
            except OuterColumnError:
                frame.data = data
                continue
            if next(iter(columns_of(value.expression)), None) is None:
                continue
            column_name = frame.with_column(value, "key")
            if column_name in frame.carried.values():
                # a column stands for two of the rows outside, each of which is a key
                column_name = frame.unique("key")
                frame.data = frame.data.with_columns(**{column_name: value})
            frame.carried[name] = column_name
            return True
        return False

    # groups ----------------------------------------------------------------------------------------------------

    def _groups(self) -> None:
        node, _frame, binder = self._node, self._frame, self._binder
        group = node.args.get("group")
        nodes = [one.node for one in self._items if one.node is not None]
        others = [node.args[one].this for one in ("having", "qualify") if node.args.get(one) is not None]
        order = node.args.get("order")
        others += [one.this for one in order.expressions] if order is not None else []
        with_queries = [one for one in (*nodes, *others) if nodes_in(one, exp.Query)]
        of_queries = lift_aggregates(self._frame, with_queries)
        has_aggregates = bool(of_queries) or any(aggregates_in(one) for one in (*nodes, *others))
        if group is None and not has_aggregates and node.args.get("having") is None:
            return
        grouping = Grouping(binder)
        sets: list[list[str]] | None = None
        if group is not None:
            self._spell_out(group)
            plain = self._keys(group)
            if group.args.get("totals"):
                raise NotYetSupportedError(
                    sentence(group, "GROUP BY ... WITH TOTALS; write GROUP BY ROLLUP (...)", self._frame.session.text)
                )
            if any(group.args.get(one) for one in ("rollup", "cube", "grouping_sets")):
                sets = sets_of(binder, grouping, group, plain)
            else:
                for key in plain:
                    grouping.add_key(key)
        lift_keys(self._frame, with_queries, grouping.has_key)
        for one in (*nodes, *others, *of_queries):
            grouping.add_aggregates(one)
        grouping.make(sets)

    def _keys(self, group: exp.Group) -> list[exp.Expr]:
        """Return the keys of GROUP BY: numbers and names of the list of SELECT are what stands there."""
        if group.args.get("all"):
            return [self._key(one) for one in self._items if one.node is None or not aggregates_in(one.node)]
        keys: list[exp.Expr] = []
        for node in group.expressions:
            place = ordinal(node, len(self._items), self._frame.context)
            if place is not None:
                keys.append(self._key(self._items[place]))
                continue
            inner = node.unnest()
            if isinstance(inner, exp.Tuple):
                if not inner.expressions:
                    continue
                keys += inner.expressions
                continue
            keys.append(node)
        return keys

    def _spell_out(self, group: exp.Group) -> None:
        """Put the expressions of the list of SELECT in the place of their names, where no column has the name."""
        frame, seen = self._frame, 0
        waiting = nodes_in(group, exp.Column)
        while waiting and seen < _NAMES_MAX:
            column, seen = waiting.pop(), seen + 1
            meant = frame.aliases.get(column.name.lower())
            if meant is None or isinstance(meant, exp.Column) or column.args.get("table") is not None:
                continue
            if frame.find([column.this]) is None and not aggregates_in(meant):
                spelled = meant.copy()
                column.replace(spelled)
                waiting += nodes_in(spelled, exp.Column)

    def _key(self, one: Item) -> exp.Expr:
        if one.node is not None:
            return one.node
        node = exp.column(one.name)
        self._frame.bound[id(node)] = col(one.column)
        return node

    # the end ---------------------------------------------------------------------------------------------------

    def _qualified(self, columns: list[tuple[str, str]]) -> None:
        qualify = self._node.args.get("qualify")
        if qualify is None:
            return
        frame = self._frame
        condition = self._binder.condition(qualify.this, "QUALIFY")
        name = frame.with_column(condition, "qualified")
        frame.data = frame.data.filter(col(name))

    def _last_steps(self, columns: list[tuple[str, str]]) -> Bound:
        node, frame = self._node, self._frame
        order, limit, offset = bounds(node, frame.context)
        distinct = node.args.get("distinct")
        own = list(dict.fromkeys((*(column for _, column in columns), *frame.carried.values())))
        keys: list[OrderKey] = []
        if distinct is not None and distinct.args.get("on") is None:
            if not self._is_condition_query():
                keys = self._order(order, columns, of_columns=True)
                frame.data = frame.data.select(own).distinct()
        else:
            keys = self._order(order, columns, of_columns=False)
            if distinct is not None:
                self._first_of(distinct.args["on"], keys)
        if self._is_condition_query():
            limit, offset = None, 0
        data = in_order(frame, keys, limit, offset, self._is_whole)
        return Bound(
            data, tuple(column for _, column in columns), tuple(name for name, _ in columns), dict(frame.carried)
        )

    def _is_condition_query(self) -> bool:
        """Return whether the rows are only asked whether they meet conditions of a join."""
        dependent = self._frame.context.dependent
        return dependent is not None and dependent.root == id(self._node) and bool(dependent.conditions)

    def _first_of(self, on: exp.Expr, keys: Sequence[OrderKey]) -> None:
        """Keep the first row of each group: DISTINCT ON."""
        frame = self._frame
        nodes = on.expressions if isinstance(on, exp.Tuple) else [on]
        parts = [*(col(name) for name in frame.carried.values()), *self._binder.all(nodes)]
        kept = [key for key in keys if not is_constant(key.value)]
        number = row_number().over(
            partition_by=parts,
            order_by=[key.value for key in kept] or parts[:1],
            descending=[key.descending for key in kept] or False,
            nulls_last=[key.nulls_last for key in kept] or False,
        )
        name = frame.unique("number")
        frame.data = frame.data.with_columns(**{name: number}).filter(col(name) == 1)

    def _order(
        self, order: exp.Order | None, columns: Sequence[tuple[str, str]], *, of_columns: bool
    ) -> list[OrderKey]:
        """Return the keys of ORDER BY: names of the list of SELECT come first, then columns of the rows."""
        keys: list[OrderKey] = []
        for one in order.expressions if order is not None else ():
            node = one.this
            if isinstance(node, exp.Var) and node.name.upper() == "ALL":
                keys += [order_key(one, col(column)) for _, column in columns]
                continue
            if isinstance(node, exp.Collate):
                self._binder.bind(node)
            keys.append(order_key(one, self._order_value(node, columns, of_columns)))
        return keys

    def _order_value(self, node: exp.Expr, columns: Sequence[tuple[str, str]], of_columns: bool) -> Expr:
        frame = self._frame
        place = ordinal(node, len(columns), frame.context)
        if place is not None:
            return col(columns[place][1])
        if isinstance(node, exp.Column) and not node.table:
            named = matching(node.name, [Named(name, column) for name, column in columns])
            if named:
                return col(named[0].column)
        value = computed(self._binder.bind(node))
        shown = {column for _, column in columns}
        if not of_columns or is_constant(value):
            return value
        if isinstance(value.expression, ColumnRef) and value.expression.name in shown:
            return value
        same = [
            column
            for item, (_, column) in zip(self._items, columns, strict=True)
            if item.node is not None and self._binder.bind(item.node).expression == value.expression
        ]
        if same:
            return col(same[0])
        if set(columns_of(value.expression)) <= shown:
            return value
        raise PlanError(self._binder.said(node, "ORDER BY of SELECT DISTINCT takes columns of its list"))
