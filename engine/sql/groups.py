"""The groups of a SELECT: its keys and aggregates as columns, and what an expression over groups means by them.

    SELECT k + 1, sum(v) * 2 FROM t GROUP BY k + 1 HAVING count(*) > 1
    keys k + 1 ─► "key"         aggregates sum(v) ─► "aggregate", count(*) ─► "aggregate#2"
    group_by(key).agg(aggregate, aggregate#2), and the list of SELECT over these columns

    GROUP BY ROLLUP(a, b)       sets (a, b), (a), (): a row of each, with the number of its set (grouping_sets.py)

A query that depends on rows outside has the columns that it carries of them among its keys. All rows as one group are
a row also where there are none, of each of the rows outside.

Held by: tests/sql/test_groups.py
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, product
from typing import Final

from sqlglot import exp

from engine.api.grouped_by import GroupingSets, group_keys
from engine.column_expressions.aggregates import Aggregate, count
from engine.column_expressions.expression import Expr
from engine.column_expressions.expressions import col, lit
from engine.column_expressions.row_functions import coalesce
from engine.dialects.parser import nodes_in
from engine.errors import NotYetSupportedError, PlanError, SchemaError
from engine.graph.expression import ColumnRef, Expression, columns_of, replaced
from engine.sql.aggregates import AggregateCall, aggregate, aggregates_in, call_of, empty_value, is_aggregate
from engine.sql.frames import Binder, Frame
from engine.sql.joins import JoinKey, joined
from engine.sql.scopes import Named
from engine.sql_values.constants import is_null

_SETS_MAX: Final = 64


class Grouping:
    """The groups of one SELECT; expressions that are bound while a frame has one are over groups."""

    def __init__(self, binder: Binder) -> None:
        self._binder = binder
        self._frame: Frame = binder.frame
        #: keys: what they are over rows, and the column that they are of groups
        self._keys: list[tuple[Expr, str]] = []
        self._kinds: set[type[exp.Expr]] = set()
        #: keys as they are written, with their column
        self._written: list[tuple[exp.Expr, str]] = []
        #: aggregates over rows by their expression, and their column
        self._aggregates: list[tuple[Expr, str]] = []
        self._empty: dict[str, Expr] = {}
        self._number: str | None = None
        self._is_made = False
        #: the rows that are grouped, and the columns of rows outside that they carry
        self._rows = (self._frame.data, self._frame.carried)
        #: columns of aggregates by their node
        self._by_node: dict[int, str] = {}

    # making ----------------------------------------------------------------------------------------------------

    def add_key(self, node: exp.Expr) -> str:
        """Return the column of a key; equal ones are one."""
        value = self._binder.bind(node)
        self._kinds.add(type(node.unnest()))
        name = next((name for known, name in self._keys if known.expression == value.expression), None)
        if name is None:
            name = self._frame.with_column(value, "key")
            self._keys.append((value, name))
        self._written.append((node.unnest(), name))
        return name

    def has_key(self, node: exp.Expr) -> bool:
        """Return whether an expression over rows is a key."""
        if type(node.unnest()) not in self._kinds or any(map(is_aggregate, nodes_in(node))):
            return False
        value = self._over_rows(node)
        return value is not None and any(known.expression == value.expression for known, _ in self._keys)

    def add_aggregates(self, node: exp.Expr) -> None:
        """Make columns of the aggregates in an expression."""
        for one in aggregates_in(node):
            self._added(one)

    def _added(self, node: exp.Expr) -> str:
        if id(node) in self._by_node:
            return self._by_node[id(node)]
        binder, frame, made = self._binder, self._frame, self._frame.grouping
        place, groups = frame.place, (frame.data, frame.carried)
        frame.place, frame.grouping = "an aggregate", None
        if self._is_made:
            frame.data, frame.carried = self._rows
        try:
            try:
                call = call_of(binder, node)
                self._check_is_of_rows(node, call)
                value = aggregate(binder, call)
            except (PlanError, SchemaError, NotYetSupportedError) as error:
                if str(error).startswith("sql: line"):
                    raise
                kind = NotYetSupportedError if isinstance(error, NotYetSupportedError) else PlanError
                raise kind(binder.said(node, str(error).removeprefix("sql: "))) from None
        finally:
            frame.grouping, frame.place = made, place
            if self._is_made:
                frame.data, frame.carried = groups
        for known, name in self._aggregates:
            if known.expression == value.expression:
                self._by_node[id(node)] = name
                return name
        name = self._frame.unique("aggregate")
        self._aggregates.append((value, name))
        self._empty[name] = empty_value(node)
        self._by_node[id(node)] = name
        return name

    def _check_is_of_rows(self, node: exp.Expr, call: AggregateCall) -> None:
        """Raise NotYetSupportedError for an aggregate of columns of rows outside alone, which are theirs to sum up."""
        parts = [[part for part in one.parts if isinstance(part, exp.Identifier)] for one in nodes_in(node, exp.Column)]
        read = {name for value in call.arguments for name in columns_of(value.expression)}
        is_own = any(self._frame.find(one) is not None for one in parts)
        if not is_own and read & set(self._frame.carried.values()):
            said = f"{call.name}() of columns of the query outside alone (it belongs to that query: write it there)"
            raise NotYetSupportedError(said)

    def make(self, sets: Sequence[Sequence[str]] | None) -> None:
        """Group the rows of the frame; ``sets``: keys of each grouping set, None for one of all keys."""
        frame = self._frame
        if sets is not None and len(sets) > 1:
            sets = self._apart_from_carried(sets)
        self._rows = (frame.data, frame.carried)
        keys, carried = [name for _, name in self._keys], list(frame.carried.values())
        aggregates = {name: Aggregate(value.expression) for value, name in self._aggregates}
        if sets is None or len(sets) == 1:
            self._make_one(keys if sets is None else sets[0], aggregates)
            return
        if not aggregates and not all(sets):
            # a set of no keys is one row, also where there are none: an aggregate makes it
            aggregates = {frame.unique("aggregate"): count()}
        all_keys = [*carried, *keys]
        self._number = frame.unique("grouping_id")
        wanted = [frozenset(all_keys.index(name) for name in (*carried, *one)) for one in sets]
        frame.data = GroupingSets(frame.data, group_keys(all_keys, frame.data.schema), wanted, self._number).agg(
            **aggregates
        )
        if carried and not all(sets):
            if sum(not one for one in sets) > 1:
                raise NotYetSupportedError("several grouping sets () in a query that depends on rows outside")
            self._keep_empty({**self._empty, self._number: lit(2 ** len(keys) - 1)}, takes_default=False)
        self._is_made, frame.grouping = True, self

    def _apart_from_carried(self, sets: Sequence[Sequence[str]]) -> list[list[str]]:
        """Return sets whose keys are no columns of rows outside: a set that has one not makes it null."""
        frame = self._frame
        apart = {name: frame.unique("key") for _, name in self._keys if name in frame.carried.values()}
        if apart:
            frame.data = frame.data.with_columns(**{name: col(key) for key, name in apart.items()})
            self._keys = [(value, apart.get(name, name)) for value, name in self._keys]
            self._written = [(node, apart.get(name, name)) for node, name in self._written]
        return [[apart.get(name, name) for name in one] for one in sets]

    def _make_one(self, own: Sequence[str], aggregates: dict[str, Aggregate]) -> None:
        frame = self._frame
        keys = list(dict.fromkeys((*frame.carried.values(), *own)))
        self._is_made, frame.grouping = True, self
        if not aggregates:
            if keys:
                frame.data = frame.data.select(keys).distinct()
                return
            aggregates = {frame.unique("aggregate"): count()}
        frame.data = frame.data.group_by(keys).agg(**aggregates)
        if not own and frame.carried:
            self._keep_empty(self._empty, takes_default=True)

    def _keep_empty(self, empty: Mapping[str, Expr], *, takes_default: bool) -> None:
        """Keep a row of rows outside that have no row here: of all rows as one group there is always one."""
        frame, dependent = self._frame, self._frame.context.dependent
        assert dependent is not None, "what carries columns depends on rows outside"
        if not dependent.has_domain:
            # the row outside finds none, and takes what the expression is of no rows
            if not (takes_default and dependent.takes_default and frame.context.path[-1] == dependent.root):
                frame.fall_back()
            dependent.defaults_of = self
            return
        outer = dict(frame.carried)
        domain, names = dependent.domain(tuple(outer))
        pairs = tuple(JoinKey(col(names[column]), col(name), null_safe=True) for column, name in outer.items())
        found = frame.unique("found")
        marked = frame.data.with_columns(**{found: lit(True)})
        joined_rows = joined(domain, marked, "left", pairs)
        known = {name: coalesce(col(name), value) for name, value in empty.items() if not is_null(value)}
        frame.data = joined_rows.with_columns(**known) if known else joined_rows
        frame.carried = {column: names[column] for column in outer}

    def of_no_rows(self, value: Expr) -> Expr:
        """Return the value of an expression over all rows as one group, where there are none."""

        def column(part: Expression) -> Expression | None:
            if isinstance(part, ColumnRef) and part.name in self._empty:
                empty = self._empty[part.name]
                if is_null(empty):
                    return lit(None, self._frame.type_of(Expr(part))).expression
                return empty.expression
            return None

        return Expr(replaced(value.expression, column))

    # expressions over groups -----------------------------------------------------------------------------------

    def found(self, binder: Binder, node: exp.Expr) -> Expr | None:
        """Return the column that an expression is of groups, None for one that is made of such."""
        if is_aggregate(node):
            return col(self._added_name(node))
        if isinstance(node, exp.Anonymous) and str(node.name).lower() in ("grouping", "grouping_id"):
            return self._set_number(binder, node)
        if type(node.unnest()) not in self._kinds or aggregates_in(node):
            return None
        value = self._over_rows(node)
        if value is None:
            return next((col(name) for known, name in self._written if known == node.unnest()), None)
        return next((col(name) for known, name in self._keys if known.expression == value.expression), None)

    def _added_name(self, node: exp.Expr) -> str:
        name = self._added(node)
        if self._is_made and name not in self._frame.data.columns:
            raise PlanError(self._binder.said(node, "an aggregate in this place"))
        return name

    def _over_rows(self, node: exp.Expr) -> Expr | None:
        """Return an expression over rows, None for one that is of groups alone."""
        frame = self._frame
        if nodes_in(node, exp.Window, exp.Query):
            return None
        made, groups = frame.grouping, (frame.data, frame.carried)
        frame.grouping = None
        if self._is_made:
            frame.data, frame.carried = self._rows
        try:
            return self._binder.bind(node)
        except Exception:
            return None
        finally:
            frame.grouping, (frame.data, frame.carried) = made, groups

    def key_column(self, named: Named, parts: Sequence[exp.Identifier]) -> Expr:
        """Return the column that a column of rows is of groups. Raises: PlanError for one that is no key."""
        wanted = col(named.column).expression
        for known, name in self._keys:
            if known.expression == wanted:
                return col(name)
        shown = ".".join(part.name for part in parts)
        if len(parts) == 1 and shown.lower() in self._frame.aliases and shown.lower() not in self._frame._resolving:
            aliased = self._binder.alias(shown)
            if aliased is not None:
                return aliased
        said = f"column {shown} is neither in GROUP BY nor in an aggregate"
        raise PlanError(self._binder.said(parts[0], said))

    def _set_number(self, _binder: Binder, node: exp.Anonymous) -> Expr:
        """Return grouping(a, b): a bit for each key, 1 where the set of the row has it not."""
        if self._number is None:
            return lit(0)
        keys = [*self._frame.carried.values(), *(name for _, name in self._keys)]
        found: Expr | None = None
        number = col(self._number).cast("int64")
        for one in node.expressions:
            value = self._over_rows(one)
            place = next((at for at, name in enumerate(keys) if value is not None and self._is_key(name, value)), None)
            if place is None:
                raise PlanError(self._binder.said(one, "grouping() of what is no key of GROUP BY"))
            bit = number.shift_right(lit(len(keys) - 1 - place)).bit_and(lit(1))
            found = bit if found is None else found * 2 + bit
        return lit(0) if found is None else found

    def _is_key(self, name: str, value: Expr) -> bool:
        return any(own == name and known.expression == value.expression for known, own in self._keys)


def sets_of(binder: Binder, grouping: Grouping, group: exp.Group, plain: Sequence[exp.Expr]) -> list[list[str]]:
    """Return the keys of each grouping set. Raises: PlanError for more than there may be."""
    # GROUP BY a, b WITH ROLLUP is GROUP BY ROLLUP (a, b)
    is_behind = any(not one.expressions for kind in ("rollup", "cube") for one in group.args.get(kind) or ())
    parts: list[list[list[str]]] = [] if is_behind else [[[grouping.add_key(one) for one in plain]]]

    def keys_of(node: exp.Expr) -> list[str]:
        inner = node.unnest()
        return [grouping.add_key(one) for one in (inner.expressions if isinstance(inner, exp.Tuple) else [inner])]

    def sets_in(node: exp.Expr) -> list[list[str]]:
        if isinstance(node, exp.Rollup):
            each = [keys_of(one) for one in node.expressions or plain]
            return [[name for one in each[:size] for name in one] for size in range(len(each), -1, -1)]
        if isinstance(node, exp.Cube):
            each = [keys_of(one) for one in node.expressions or plain]
            chosen = [one for size in range(len(each), -1, -1) for one in combinations(each, size)]
            return [[name for one in some for name in one] for some in chosen]
        if isinstance(node, exp.GroupingSets):
            return [one for inner in node.expressions for one in sets_in(inner)]
        return [keys_of(node)]

    for kind in ("rollup", "cube", "grouping_sets"):
        parts += [sets_in(node) for node in group.args.get(kind) or ()]
    found = [list(dict.fromkeys(name for part in chosen for name in part)) for chosen in product(*parts)]
    if group.args.get("all") is False:
        # GROUP BY DISTINCT: each set once, in whatever order its keys are written
        found = list({frozenset(one): one for one in found}.values())
    if len(found) > _SETS_MAX:
        raise PlanError(binder.said(group, f"{len(found)} grouping sets, an aggregate each; at most {_SETS_MAX}"))
    return found
