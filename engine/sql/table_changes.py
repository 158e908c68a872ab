"""MERGE INTO, UPDATE and DELETE of tables of Delta and Iceberg: bound here, and run at once, each by one commit.

    MERGE INTO lake.sales.orders AS t USING (SELECT ...) AS s ON t.id = s.id
      WHEN MATCHED AND s.gone THEN DELETE  WHEN MATCHED THEN UPDATE SET paid = t.paid + s.paid
      WHEN NOT MATCHED THEN INSERT (id, paid) VALUES (s.id, s.paid)  WHEN NOT MATCHED BY SOURCE THEN DELETE
    UPDATE delta."orders/" SET paid = 0 WHERE city = 'Bonn'
    DELETE FROM orders WHERE paid < 0

    tables      lake.sales.orders of an attached catalog, delta."path", 'path' of a Delta table, and a registered name
                that is a Delta table as read_delta returns it
    MERGE       several clauses of one kind become one, whose values are chosen by their conditions; ``merge_into``

The result is one row: rows inserted, updated and deleted, files rewritten, and the version. Queries within the
conditions and values are refused by name: USING may be a query.

Held by: tests/sql/test_table_changes.py
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
from sqlglot import exp

from engine.api.data_set import DataSet
from engine.api.environment import Environment
from engine.api.expression import Expr
from engine.api.expressions import col, lit, when
from engine.api.merge_clauses import SOURCE, TARGET
from engine.api.merge_plan import MergeResult, merged
from engine.api.row_changes import changed
from engine.errors import NotYetSupportedError, PlanError
from engine.formats.table_target import TableTarget
from engine.graph.expression import ColumnRef, Expression, columns_of, has_window, replaced
from engine.sql.dialect import did_you_mean, sentence
from engine.sql.expression_binder import Expressions
from engine.sql.frames import Context, Frame
from engine.sql.from_binder import conjuncts_of, rows_of
from engine.sql.join_binder import crossed
from engine.sql.named_queries import with_named
from engine.sql.relations import Rows
from engine.sql.scopes import Named, matching

CHANGES = exp.Merge | exp.Update | exp.Delete


class _Table(NamedTuple):
    """A table that changes: where it is, and the names of its columns in expressions."""

    target: TableTarget
    rows: Rows

    @property
    def names(self) -> list[str]:
        """The columns."""
        return [one.name for one in self.rows.scope.tables[0].columns]

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
        raise NotYetSupportedError(sentence(statement, f"{call} of what is no table", context.session.text))
    rows = rows_of(node, context)
    target = context.session.target(node)
    if target is None:
        name = ".".join(part.name for part in node.parts)
        said = f"{call} of {name}: it is no table of Delta or of an attached catalog, and only such tables change"
        raise PlanError(sentence(node, said, context.session.text))
    return _Table(target, rows)


def _bound(node: exp.Expr, rows: Rows, context: Context, names: dict[str, str], *, is_condition: bool = False) -> Expr:
    """Return an expression over some rows, its columns under other names."""
    inner = node.find(exp.Subquery, exp.Select, exp.Exists)
    if inner is not None:
        said = "a query within a condition or value of a change (MERGE may have it in USING)"
        raise NotYetSupportedError(sentence(node, said, context.session.text))
    frame = Frame(context, rows.data, rows.scope)
    binder = Expressions(frame)
    found = binder.condition(node, "a condition") if is_condition else binder.bind(node)
    if has_window(found.expression):
        raise NotYetSupportedError(sentence(node, "a window function in a change", context.session.text))

    def renamed(part: Expression) -> Expression | None:
        return ColumnRef(names[part.name]) if isinstance(part, ColumnRef) else None

    return Expr(replaced(found.expression, renamed))


def _column(node: exp.Expr, names: Sequence[str], context: Context) -> str:
    """Return the column of the table that is assigned to."""
    name = node.name
    found = matching(name, [Named(one, one) for one in names])
    if len(found) != 1:
        said = f"the table has no column {name}{did_you_mean(name, names)} (it has {', '.join(names)})"
        raise PlanError(sentence(node, said, context.session.text))
    return found[0].name


def _changed(statement: exp.Expr, context: Context, table: _Table, environment: Environment, call: str) -> MergeResult:
    where = statement.args.get("where")
    own = table.own()
    condition = None if where is None else _bound(where.this, table.rows, context, own, is_condition=True)
    if isinstance(statement, exp.Delete):
        return changed(environment, table.target, condition, None, call)
    values = {
        _column(each.this, table.names, context): _bound(each.expression, table.rows, context, own)
        for each in statement.expressions
    }
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
        self._names = {one.column: f"{SOURCE}#{number}" for number, one in enumerate(shown)}
        #: column of the source, as it is merged, by its name in lower case
        self._by_name = {one.name.lower(): self._names[one.column] for one in shown}

    def run(self) -> MergeResult:
        """Run it."""
        keys = self._keys()
        steps = {kind: self._steps(kind) for kind in ("matched", "new", "alone")}
        source = self._source.data.select(
            **{new.removeprefix(SOURCE): col(old) for old, new in self._names.items()}, **keys
        )
        clauses = (
            _folded(steps["matched"], "set"),
            _folded(steps["new"], "values"),
            _folded(steps["alone"], "set"),
        )
        return merged(source, self._table.target, tuple(keys), clauses)

    def _said(self, node: exp.Expr, words: str) -> str:
        return sentence(node, words, self._context.session.text)

    def _keys(self) -> dict[str, Expr]:
        """Return the key columns, and their values of the source. Raises: NotYetSupportedError."""
        names = {**self._table.own(TARGET), **{column: column for column in self._names}}
        keys: dict[str, Expr] = {}
        for part in conjuncts_of(self._statement.args["on"]):
            sides = [part.this, part.expression] if isinstance(part, exp.EQ) else []
            found = [_bound(side, self._pair(), self._context, names) for side in sides]
            pairs = [(found[0], found[1]), (found[1], found[0])] if found else []
            pair = next((pair for pair in pairs if self._is_key(*pair)), None)
            if pair is None:
                said = "ON of MERGE has equalities of a column of the table and a value of the source, joined by AND"
                raise NotYetSupportedError(self._said(part, said))
            column = pair[0].expression
            assert isinstance(column, ColumnRef)
            keys[column.name.removeprefix(TARGET)] = pair[1]
        return keys

    def _is_key(self, column: Expr, value: Expr) -> bool:
        """Return whether one of two values is a column of the table, and the other one of the source alone."""
        expression, names = column.expression, {*columns_of(value.expression)}
        is_column = isinstance(expression, ColumnRef) and expression.name.startswith(TARGET)
        return is_column and bool(names) and names <= {*self._names}

    def _pair(self) -> Rows:
        return crossed(self._table.rows, self._source, self._context)

    def _steps(self, kind: str) -> list[_Step]:
        """Return the clauses of a kind, in their order."""
        found = []
        for each in self._statement.args["whens"].expressions:
            is_matched, is_alone = bool(each.args.get("matched")), bool(each.args.get("source"))
            if kind == ("matched" if is_matched else "alone" if is_alone else "new"):
                found.append(self._step(each, kind))
        return found

    def _step(self, clause: exp.When, kind: str) -> _Step:
        condition = clause.args.get("condition")
        where = None if condition is None else self._value(condition, kind, is_condition=True)
        then = clause.args["then"]
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

    def _value(self, node: exp.Expr, kind: str, *, is_condition: bool = False) -> Expr:
        """Return an expression over the sides that have a row in clauses of a kind."""
        rows = {"new": self._source, "alone": self._table.rows}.get(kind) or self._pair()
        names = {**self._table.own(TARGET), **self._names}
        return _bound(node, rows, self._context, names, is_condition=is_condition)

    def _assigned(self, then: exp.Update, kind: str) -> dict[str, Expr]:
        parts = then.args.get("expressions") or [exp.Star()]
        if any(isinstance(part, exp.Star) for part in parts):
            return self._same_names(then)
        return {
            _column(each.this, self._table.names, self._context): self._value(each.expression, kind) for each in parts
        }

    def _inserted(self, then: exp.Insert) -> dict[str, Expr]:
        if not isinstance(then.expression, exp.Tuple):
            return self._same_names(then)
        columns = then.this.expressions if isinstance(then.this, exp.Tuple) else []
        names = [_column(each, self._table.names, self._context) for each in columns] or self._table.names
        values = then.expression.expressions
        if len(names) != len(values):
            raise PlanError(self._said(then, f"{len(values)} values for {len(names)} columns of INSERT"))
        return {name: self._value(value, "new") for name, value in zip(names, values, strict=True)}

    def _same_names(self, node: exp.Expr) -> dict[str, Expr]:
        """Return the columns of the source that the table has, too."""
        found = {name: col(self._by_name[name.lower()]) for name in self._table.names if name.lower() in self._by_name}
        if not found:
            raise PlanError(self._said(node, "the source has no column of the table"))
        return found


def _folded(steps: Sequence[_Step], setting: str) -> Any:
    """Return one clause of ``merge_into`` for all of a kind: the first whose condition is true counts."""
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
    clause[setting] = {name: _chosen([(step, _of(step, name, setting)) for step in steps], None) for name in names}
    if len(changing) < len(acting):
        clause["delete"] = _chosen([(step, lit(step.values is None)) for step in steps], lit(False))
    return clause


def _of(step: _Step, name: str, setting: str) -> Expr | None:
    """Return the value of a column in a clause: the old one, or null, where it says none."""
    if step.values is not None and name in step.values:
        return step.values[name]
    return col(TARGET + name) if setting == "set" else None


def _chosen(cases: Sequence[tuple[_Step, Expr | None]], otherwise: Expr | None) -> Expr:
    """Return the value of the first case whose condition is true."""
    found = lit(None) if otherwise is None else otherwise
    for step, value in reversed(cases):
        result = lit(None) if value is None else value
        found = result if step.condition is None else when(step.condition).then(result).otherwise(found)
    return found
