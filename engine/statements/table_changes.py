"""MERGE INTO, UPDATE and DELETE of tables of Delta and Iceberg: bound here, and run at once, each by one commit.

    MERGE INTO lake.sales.orders AS t USING (SELECT ...) AS s ON t.id = s.id
      WHEN MATCHED AND s.gone THEN DELETE  WHEN MATCHED THEN UPDATE SET paid = t.paid + s.paid
      WHEN NOT MATCHED THEN INSERT (id, paid) VALUES (s.id, s.paid)  WHEN NOT MATCHED BY SOURCE THEN DELETE
    UPDATE delta."orders/" SET paid = 0 WHERE city = 'Bonn'
    DELETE FROM orders WHERE paid < 0

    tables      lake.sales.orders of an attached catalog, delta."path", and a registered name that is a Delta table
                as read_delta returns it, which has the new rows then
    MERGE       several clauses of one kind become one, whose values are chosen by their conditions; ``merge_into``

The result is one row: rows inserted, updated and deleted, files rewritten, and the version. Queries within the
conditions and values are refused by name: USING may be a query.

Held by: tests/sql/test_table_changes.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import pyarrow as pa
from sqlglot import exp

from engine.api.data_set import DataSet
from engine.api.environment import Environment
from engine.column_expressions.expression import Expr
from engine.column_expressions.expressions import col, lit, when
from engine.dialects.parser import place_of, sentence
from engine.errors import NotYetSupportedError, PlanError
from engine.expressions.infer import infer_type
from engine.expressions.literals import make_literal
from engine.formats.table_target import TableTarget, TableVersion
from engine.graph.expression import ColumnRef, Expression, columns_of, has_window, replaced
from engine.outputs.merge_clauses import SOURCE, TARGET
from engine.outputs.merge_keys import are_comparable
from engine.outputs.merge_plan import MergeResult, merged
from engine.outputs.row_changes import changed
from engine.sql.aggregates import aggregates_in
from engine.sql.frames import Context, Frame
from engine.sql.from_binder import conjuncts_of, rows_of
from engine.sql.join_binder import crossed
from engine.sql.named_queries import with_named
from engine.sql.relations import Rows
from engine.sql_values.data_types import shown_type
from engine.statements.assignments import Columns, all_true, check_target

#: functions that return another value each time
_BY_CHANCE: Final = ("rand", "random")
_BEGINS: Final = {"DELETE": "DELETE FROM name WHERE ...", "UPDATE": "UPDATE name SET a = 1 WHERE ..."}


class _Table(NamedTuple):
    """A table that changes: where it is, and the names of its columns in expressions."""

    target: TableTarget
    rows: Rows
    columns: Columns

    @property
    def names(self) -> list[str]:
        """The columns."""
        return self.columns.names

    def own(self, side: str = "") -> dict[str, str]:
        """Return the column of the table that each column of expressions is, the side in front."""
        return {one.column: side + one.name for one in self.rows.scope.tables[0].columns}


def run_change(statement: exp.Expr, context: Context, environment: Environment) -> DataSet:
    """Run a statement, and return what it has changed. Raises: PlanError, NotYetSupportedError."""
    call = statement.key.upper()
    if environment.target == "spark":
        raise NotYetSupportedError(f"sql: {call} on target spark; run it on local or cluster")
    for name in ("returning", "from_", "order", "limit", "joins"):
        if statement.args.get(name):
            said = f"{name.strip('_').upper()} of {call} (write MERGE INTO ... USING (SELECT ...))"
            raise NotYetSupportedError(sentence(statement, said, context.session.text))
    if isinstance(statement, exp.Delete) and statement.args.get("using"):
        said = "USING of DELETE (write MERGE INTO ... USING ... WHEN MATCHED THEN DELETE)"
        raise NotYetSupportedError(sentence(statement, said, context.session.text))
    context = with_named(statement, context)
    table = _table(statement, context, environment, call)
    if isinstance(statement, exp.Merge):
        found = _Merge(statement, context, table).run()
    else:
        found = _changed(statement, context, table, environment, call)
    return environment.from_arrow(pa.table({name: [value] for name, value in found._asdict().items()}))


def _table(statement: exp.Expr, context: Context, environment: Environment, call: str) -> _Table:
    """Return the table that a statement changes. Raises: PlanError for what is none."""
    node = statement.this
    if not isinstance(node, exp.Table):
        said = f"{call} of what is no table; write {_BEGINS.get(call, call)}"
        raise PlanError(sentence(statement, said, context.session.text))
    check_target(node, call, context.session.text)
    rows = rows_of(node, context)
    target = context.session.target(node)
    if target is None:
        name = ".".join(part.name for part in node.parts)
        said = f"{call} of {name}: it is no table of Delta or of an attached catalog, and only such tables change"
        raise PlanError(sentence(node, said, context.session.text))
    return _Table(target, rows, Columns(rows, node, context.session.text))


def _bound(node: exp.Expr, rows: Rows, context: Context, names: dict[str, str], word: str = "") -> Expr:
    """Return an expression over some rows, its columns under other names; ``word``: of the condition that it is."""
    inner = node.find(exp.Subquery, exp.Select, exp.Exists)
    if inner is not None:
        said = "a query within a condition or value of a change (MERGE may have it in USING)"
        raise NotYetSupportedError(sentence(node, said, context.session.text))
    if any(isinstance(one, exp.Rand) or one.name.lower() in _BY_CHANCE for one in node.find_all(exp.Func)):
        said = "a value that is another one each time in a change (MERGE may have it in USING)"
        raise NotYetSupportedError(sentence(node, said, context.session.text))
    is_word = isinstance(node, exp.Var | exp.Column) and node.name.upper() == "DEFAULT"
    if is_word and not node.args.get("table") and rows.scope.column(node.name) is None:
        raise NotYetSupportedError(sentence(node, "the word DEFAULT (write the value)", context.session.text))
    if aggregates_in(node):
        said = "an aggregate in a change; its value is not that of one row (MERGE may have it in a query of USING)"
        raise PlanError(sentence(node, said, context.session.text))
    frame = Frame(context, rows.data, rows.scope)
    binder = frame.binder
    found = all_true([binder.condition(one, word) for one in conjuncts_of(node)]) if word else binder.bind(node)
    if not names.keys() >= {*columns_of(found.expression)}:
        said = "a function of Python in a change (MERGE may have it in USING)"
        raise NotYetSupportedError(sentence(node, said, context.session.text))
    if has_window(found.expression):
        raise NotYetSupportedError(sentence(node, "a window function in a change", context.session.text))

    def renamed(part: Expression) -> Expression | None:
        return ColumnRef(names[part.name]) if isinstance(part, ColumnRef) else None

    return Expr(replaced(found.expression, renamed))


def _renamed(rows: Rows, names: dict[str, str]) -> pa.Schema:
    """Return the columns of rows under their names in expressions."""
    return pa.schema([field.with_name(names[field.name]) for field in rows.data.schema if field.name in names])


def _changed(statement: exp.Expr, context: Context, table: _Table, environment: Environment, call: str) -> MergeResult:
    where = statement.args.get("where")
    own = table.own()
    condition = None if where is None else _bound(where.this, table.rows, context, own, "WHERE")
    if isinstance(statement, exp.Delete):
        return changed(environment, table.target, condition, None, call)
    nodes = statement.expressions
    if not nodes or not all(isinstance(each, exp.EQ) for each in nodes):
        raise PlanError(sentence(statement, "UPDATE without a value; write SET a = 1, b = 2", context.session.text))
    names = table.columns.of([each.this for each in nodes])
    schema = _renamed(table.rows, own)
    values = {}
    for name, node in zip(names, (each.expression for each in nodes), strict=True):
        values[name] = table.columns.taken(name, _bound(node, table.rows, context, own), node, schema)
    return changed(environment, table.target, condition, values, call)


@dataclass
class _Step:
    """A clause: the rows that it is for, and their values; None: they go, or stay as they are."""

    condition: Expr | None
    values: dict[str, Expr] | None
    is_ignored: bool = False


class _Merge:
    """A MERGE while it is bound."""

    def __init__(self, statement: exp.Merge, context: Context, table: _Table) -> None:
        self._statement = statement
        self._context = context
        self._table = table
        self._source = rows_of(statement.args["using"], context)
        shown = list(self._source.scope.columns)
        seen = [*(one.name for one in shown), *table.names]
        self._names = {
            one.column: f"{SOURCE}{one.name}{f'#{number}' if seen.count(one.name) > 1 else ''}"
            for number, one in enumerate(shown)
        }
        #: column of the source, as it is merged, by its name in lower case
        self._by_name = {one.name.lower(): self._names[one.column] for one in shown}
        sides = [_renamed(table.rows, table.own(TARGET)), _renamed(self._source, self._names)]
        self._schema = pa.schema([field for side in sides for field in side])

    def run(self) -> MergeResult:
        """Run it."""
        keys = self._keys()
        steps = {kind: self._steps(kind) for kind in ("matched", "new", "alone")}
        source = self._source.data.select(
            **{new.removeprefix(SOURCE): col(old) for old, new in self._names.items()}, **keys
        )
        clauses = (
            _folded(steps["matched"], "set", _old),
            _folded(steps["new"], "values", self._default),
            _folded(steps["alone"], "set", _old),
        )
        return merged(source, self._table.target, tuple(keys), clauses)

    def _default(self, name: str) -> Expr:
        """Return the value of a new row in a column that another clause names, and its own does not."""
        value = self._version.default_of(name)
        return lit(None) if value is None else Expr(make_literal(value))

    @cached_property
    def _version(self) -> TableVersion:
        return self._table.target.at_present("MERGE", self._source.data._environment.configuration)

    def _said(self, node: exp.Expr, words: str) -> str:
        placed = node if place_of(node) is not None else self._statement
        return sentence(placed, words, self._context.session.text)

    def _keys(self) -> dict[str, Expr]:
        """Return the key columns, and their values of the source. Raises: NotYetSupportedError."""
        names = {**self._table.own(TARGET), **{column: column for column in self._names}}
        keys: dict[str, Expr] = {}
        on = self._statement.args.get("on")
        if not isinstance(on, exp.Expr):
            raise PlanError(self._said(self._statement, "MERGE without ON; write ON t.id = s.id, USING takes a table"))
        for part in conjuncts_of(on):
            sides = [part.this, part.expression] if isinstance(part, exp.EQ) else []
            found = [_bound(side, self._pair(), self._context, names) for side in sides]
            pairs = [(found[0], found[1]), (found[1], found[0])] if found else []
            pair = next((pair for pair in pairs if self._is_key(*pair)), None)
            if pair is None:
                said = "ON of MERGE with conditions that are not column of the table = value of the source"
                raise NotYetSupportedError(self._said(part, said))
            column = pair[0].expression
            assert isinstance(column, ColumnRef)
            name = column.name.removeprefix(TARGET)
            if name in keys:
                raise NotYetSupportedError(self._said(part, f"two values for the column {name} in ON of MERGE"))
            self._check_key(name, self._schema.field(column.name).type, pair[1], part)
            keys[name] = pair[1]
        return keys

    def _check_key(self, name: str, own: pa.DataType, value: Expr, node: exp.Expr) -> None:
        """Raise PlanError for a value of another kind than its key."""
        found = infer_type(value.expression, self._source.data.schema)
        if not are_comparable(own, found):
            shown = shown_type(own)
            said = f"the column {name} is {shown} and its value {shown_type(found)}, which cannot be compared exactly"
            raise PlanError(self._said(node, f"ON of MERGE: {said}; write CAST(... AS {shown})"))

    def _is_key(self, column: Expr, value: Expr) -> bool:
        """Return whether one of two values is a column of the table, and the other one of the source alone."""
        expression, names = column.expression, {*columns_of(value.expression)}
        is_column = isinstance(expression, ColumnRef) and expression.name.startswith(TARGET)
        return is_column and bool(names) and names <= {*self._names}

    def _pair(self) -> Rows:
        return crossed(self._table.rows, self._source, self._context)

    def _steps(self, kind: str) -> list[_Step]:
        """Return the clauses of a kind, in their order."""
        found: list[_Step] = []
        for number, each in enumerate(self._statement.args["whens"].expressions, 1):
            is_matched, is_alone = bool(each.args.get("matched")), bool(each.args.get("source"))
            if kind == ("matched" if is_matched else "alone" if is_alone else "new"):
                if found and found[-1].condition is None:
                    said = f"WHEN number {number} is never reached: the one of its kind before it has no condition"
                    raise PlanError(self._said(each, said))
                found.append(self._step(each, kind))
        return found

    def _step(self, clause: exp.When, kind: str) -> _Step:
        condition = clause.args.get("condition")
        where = None if condition is None else self._value(condition, kind, "WHEN")
        then = clause.args["then"]
        if then.args.get("where") is not None:
            raise PlanError(self._said(then.args["where"], "WHERE of a clause; write WHEN MATCHED AND condition THEN"))
        word = then.name.upper() if isinstance(then, exp.Var) else ""
        if word == "DO NOTHING":
            return _Step(where, None, is_ignored=True)
        if isinstance(then, exp.Insert) and kind == "new":
            return _Step(where, self._inserted(then))
        if isinstance(then, exp.Update) and kind != "new":
            return _Step(where, self._assigned(then, kind))
        if (word == "DELETE" or isinstance(then, exp.Delete)) and kind != "new":
            return _Step(where, None)
        raise PlanError(self._said(clause, "WHEN MATCHED and BY SOURCE take UPDATE and DELETE, NOT MATCHED INSERT"))

    def _value(self, node: exp.Expr, kind: str, word: str = "") -> Expr:
        """Return an expression over the sides that have a row in clauses of a kind."""
        rows = {"new": self._source, "alone": self._table.rows}.get(kind) or self._pair()
        if kind in ("new", "alone"):
            self._check_side(node, rows, kind)
        names = {**self._table.own(TARGET), **self._names}
        return _bound(node, rows, self._context, names, word)

    def _check_side(self, node: exp.Expr, rows: Rows, kind: str) -> None:
        """Raise PlanError for a column of the side that has no row in clauses of a kind."""
        side, what = ("target", "NOT MATCHED") if kind == "new" else ("source", "NOT MATCHED BY SOURCE")
        lacking = self._table.rows if kind == "new" else self._source
        for column in node.find_all(exp.Column):
            name = column.table
            if name and rows.scope.table(name) is None and lacking.scope.table(name) is not None:
                raise PlanError(self._said(column, f"{name}.{column.name} in WHEN {what}, where the {side} has no row"))

    def _assigned(self, then: exp.Update, kind: str) -> dict[str, Expr]:
        parts = then.args.get("expressions") or []
        if parts and all(isinstance(part, exp.Star) for part in parts):
            return self._same_names(then)
        if not parts or not all(isinstance(part, exp.EQ) for part in parts):
            raise PlanError(self._said(then, "UPDATE without a value; write SET a = s.a, b = 2, or SET *"))
        return self._values([part.this for part in parts], [part.expression for part in parts], kind)

    def _inserted(self, then: exp.Insert) -> dict[str, Expr]:
        if isinstance(then.this, exp.Star):
            return self._same_names(then)
        if not isinstance(then.expression, exp.Tuple):
            raise PlanError(self._said(then, "INSERT without values; write INSERT (a, b) VALUES (s.a, 2), or INSERT *"))
        columns = then.this.expressions if isinstance(then.this, exp.Tuple) else map(exp.column, self._table.names)
        return self._values(list(columns), then.expression.expressions, "new")

    def _values(self, columns: Sequence[exp.Expr], values: Sequence[exp.Expr], kind: str) -> dict[str, Expr]:
        """Return the values of columns."""
        names = self._table.columns.of(columns)
        if len(names) != len(values):
            raise PlanError(self._said(values[0], f"{len(values)} values for {len(names)} columns of INSERT"))
        taken = self._table.columns.taken
        return {
            name: taken(name, self._value(node, kind), node, self._schema)
            for name, node in zip(names, values, strict=True)
        }

    def _same_names(self, node: exp.Expr) -> dict[str, Expr]:
        """Return the columns of the source that the table has, too."""
        found = {name: col(self._by_name[name.lower()]) for name in self._table.names if name.lower() in self._by_name}
        if not found:
            raise PlanError(self._said(node, "the source has no column of the table"))
        return {name: self._table.columns.taken(name, value, node, self._schema) for name, value in found.items()}


def _old(name: str) -> Expr:
    return col(TARGET + name)


def _folded(steps: Sequence[_Step], setting: str, unsaid: Callable[[str], Expr]) -> Any:
    """Return one clause of ``merge_into`` for all of a kind: the first whose condition is true counts.

    ``unsaid``: returns the value of a column of which a clause says nothing.
    """
    acting = [step for step in steps if not step.is_ignored]
    if not acting:
        return "ignore"
    clause: dict[str, Any] = {}
    if not (steps[-1].condition is None and len(acting) == len(steps)):
        clause["where"] = _chosen([(step, lit(not step.is_ignored)) for step in steps], lit(False))
    changing = [step for step in acting if step.values is not None]
    if not changing:
        return {**clause, "delete": True}
    names = dict.fromkeys(name for step in changing for name in step.values or {})
    clause[setting] = {name: _chosen([(step, _of(step, name, unsaid)) for step in steps], lit(None)) for name in names}
    if len(changing) < len(acting):
        clause["delete"] = _chosen([(step, lit(step.values is None)) for step in steps], lit(False))
    return clause


def _of(step: _Step, name: str, unsaid: Callable[[str], Expr]) -> Expr:
    """Return the value of a column in a clause."""
    values = step.values or {}
    return values[name] if name in values else unsaid(name)


def _chosen(cases: Sequence[tuple[_Step, Expr]], otherwise: Expr) -> Expr:
    """Return the value of the first case whose condition is true."""
    found = otherwise
    for step, value in reversed(cases):
        found = value if step.condition is None else when(step.condition).then(value).otherwise(found)
    return found
