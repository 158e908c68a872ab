"""Frame: what the expressions of one SELECT look at, while it is bound; and what a query is bound in.

    Session     one statement: tables, names of columns, the moment at which it is bound
    Context     where a query stands: names of WITH, and the query around it that it may look at
    Frame       rows so far, and the names of their columns; what is bound of subqueries is joined to the rows

A query that looks at columns of a query around it is bound within a ``Dependent`` (``dependent.py``): its frames carry
the columns that they have of the rows outside.

Held by: tests/sql/test_subqueries.py
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
from sqlglot import exp

from engine.api.data_set import DataSet
from engine.api.kept_statements import Repeats
from engine.column_expressions.expression import Expr
from engine.column_expressions.expressions import col
from engine.column_expressions.udfs import Udf
from engine.dialects.parser import nodes_in, sentence
from engine.errors import NotYetSupportedError, PlanError
from engine.expressions.argument_kinds import is_list
from engine.expressions.infer import infer_type
from engine.expressions.literals import literal_scalar
from engine.formats.table_target import TableTarget
from engine.graph.expression import ColumnRef, Expression, Literal, Over, has_window, replaced
from engine.near_names import did_you_mean
from engine.records.key_types import is_key_type
from engine.sql.scopes import AmbiguousNameError, ColumnNames, Named, Scope
from engine.sql_values.data_types import shown_type

_SHOWN_NAMES = 12
#: mark of a name that stands for what a query says of the groups of one around it
OF_GROUPS = "of_groups"


class Bound(NamedTuple):
    """A query as rows: the columns that it has, the names it gives them, and those of rows outside that it carries."""

    data: DataSet
    columns: tuple[str, ...]
    names: tuple[str, ...]
    carried: Mapping[str, str] = {}


@dataclass(frozen=True)
class Session:
    """One statement."""

    text: str
    #: function from the name of a table, as it is written, to its rows; None for no table
    table: Callable[[exp.Table], DataSet | None]
    table_names: Sequence[str]
    from_arrow: Callable[[pa.Table], DataSet]
    #: function that binds a query where it stands
    bind_query: Callable[[exp.Expr, Context], Bound]
    #: function that makes the binder of a frame's expressions
    expressions: Callable[[Frame], Binder]
    moment: datetime
    #: values of parameters, by name; $1 has the name 1
    parameters: Mapping[str, Any] = field(default_factory=dict)
    #: functions of the user, by name in lower case
    functions: Mapping[str, Udf] = field(default_factory=dict)
    #: function from the name of a table to the table that a statement may change; None for one that does not change
    target: Callable[[exp.Table], TableTarget | None] = lambda _: None
    repeats: Repeats = field(default_factory=Repeats)
    names: ColumnNames = field(default_factory=ColumnNames)
    #: queries of WITH that are used several times, by their node
    known: dict[int, Bound] = field(default_factory=dict)


@dataclass(frozen=True)
class Context:
    """The place of a query: names of WITH, and the query around it that it may look at."""

    session: Session
    #: queries of WITH, by name in lower case, with the context in which they were written; or rows that are bound
    ctes: Mapping[str, tuple[exp.CTE, Context] | Bound] = field(default_factory=dict)
    dependent: Dependent | None = None
    #: numbers of the queries around this one, up to the one that depends on rows outside
    path: tuple[int, ...] = ()

    def within(self, node: exp.Expr) -> Context:
        """Return the context of a query that is a part of this one."""
        return replace(self, path=(*self.path, id(node)))


class Groups(Protocol):
    """The groups of a SELECT: what expressions over them mean."""

    def found(self, binder: Binder, node: exp.Expr) -> Expr | None:
        """Return the column that an expression is of groups, None for one that is made of such."""
        ...

    def key_column(self, named: Named, parts: Sequence[exp.Identifier]) -> Expr:
        """Return the column that a column of rows is of groups."""
        ...

    def of_no_rows(self, value: Expr) -> Expr:
        """Return the value of an expression over all rows as one group, where there are none."""
        ...


class Binder(Protocol):
    """The binder of a frame's expressions, as those see it that bind a part of them."""

    frame: Frame

    def bind(self, node: exp.Expr) -> Expr:
        """Return an expression."""
        ...

    def all(self, nodes: Sequence[exp.Expr]) -> list[Expr]:
        """Return the expressions of several nodes."""
        ...

    def condition(self, node: exp.Expr, what: str) -> Expr:
        """Return a condition."""
        ...

    def alias(self, name: str) -> Expr | None:
        """Return the expression that has a name in the list of SELECT."""
        ...

    def type_of(self, value: Expr) -> pa.DataType:
        """Return the type of an expression."""
        ...

    def said(self, node: exp.Expr, words: str) -> str:
        """Return a sentence with the place of a node."""
        ...


class OuterColumnError(Exception):
    """A query looks at a column of rows outside that it does not carry yet."""

    def __init__(self, dependent: Dependent, path: tuple[int, ...], column: str) -> None:
        super().__init__(column)
        self.dependent = dependent
        self.path = path
        self.column = column


class Frame:
    """The rows and names that the expressions of one SELECT look at."""

    def __init__(self, context: Context, data: DataSet, scope: Scope, carried: Mapping[str, str] | None = None) -> None:
        self.context = context
        self.session = context.session
        self.data = data
        self.scope = scope
        #: columns of rows outside, by their name there
        self.carried = dict(carried or {})
        #: expressions of the list of SELECT, by their name in lower case
        self.aliases: dict[str, exp.Expr] = {}
        self.windows: dict[str, exp.Window] = {}
        self.grouping: Groups | None = None
        #: rows outside whose columns conditions may look at, as they are
        self.beside: DataSet | None = None
        #: the other side of a join, whose columns its condition looks at
        self.pair: DataSet | None = None
        #: conditions of WHERE that the rows meet already, by their node
        self.applied: set[int] = set()
        #: expressions that are bound already, by their node
        self.bound: dict[int, Expr] = {}
        #: description of the place that takes no aggregate, for errors
        self.place = ""
        self._resolving: list[str] = []
        #: columns that functions of the user have made, by their call
        self._called: list[tuple[Expression, str]] = []
        self._types: dict[int, tuple[Any, pa.DataType]] = {}

    @property
    def binder(self) -> Binder:
        """The binder of its expressions, which knows the frame: kept there it would be garbage that is collected."""
        return self.session.expressions(self)

    def unique(self, name: str) -> str:
        """Return a name that no other column of the query has."""
        return self.session.names.unique(name)

    @property
    def schema(self) -> pa.Schema:
        """The columns that expressions may have."""
        own = self.data.schema
        for other in (self.pair, self.beside):
            if other is not None:
                own = pa.schema([*own, *(one for one in other.schema if own.get_field_index(one.name) < 0)])
        return own

    def type_of(self, value: Expr) -> pa.DataType:
        """Return the type of an expression. Raises: SchemaError."""
        expression = value.expression
        if isinstance(expression, ColumnRef):
            for schema in [one.schema for one in (self.data, self.pair, self.beside) if one is not None]:
                if (place := schema.get_field_index(expression.name)) >= 0:
                    return schema.field(place).type
            return self.schema.field(expression.name).type
        if isinstance(expression, Literal):
            return literal_scalar(expression).type
        # types of columns do not change while a SELECT is bound: more of them are added
        known = self._types.get(id(expression))
        if known is None:
            known = self._types[id(expression)] = (expression, self._inferred(expression))
        return known[1]

    def _inferred(self, expression: Expression) -> pa.DataType:
        """Return the type of an expression; a function over a window in it is a column of its own type."""
        if not has_window(expression):
            return infer_type(expression, self.schema)
        found: dict[str, pa.DataType] = {}

        def column(part: Expression) -> Expression | None:
            if not isinstance(part, Over):
                return None
            name = f"window {len(found)}"
            found[name] = self.data.with_columns(**{name: Expr(part)}).schema.field(name).type
            return ColumnRef(name)

        replaced_windows = replaced(expression, column)
        return infer_type(replaced_windows, pa.schema([*self.schema, *found.items()]))

    def with_column(self, value: Expr, name: str = "value") -> str:
        """Return the name of a column that is a value; it is made where there is none."""
        if isinstance(value.expression, ColumnRef):
            return value.expression.name
        made = self.unique(name)
        self.data = self.data.with_columns(**{made: value})
        return made

    def called(self, call: Expr) -> Expr:
        """Return the call of a function of the user: a column, made once. Raises: NotYetSupportedError in a join."""
        if self.pair is not None or self.beside is not None:
            raise NotYetSupportedError("functions of Python in conditions of joins and between queries")
        made = (name for known, name in self._called if known == call.expression and name in self.data.columns)
        name = next(made, None) or self.with_column(call, "call")
        self._called.append((call.expression, name))
        return col(name)

    # names -----------------------------------------------------------------------------------------------------

    def find(self, parts: Sequence[exp.Identifier]) -> tuple[Named, Sequence[exp.Identifier]] | None:
        """Return the column of a name with dots, and the fields that follow it; None where no table has it."""
        if len(parts) > 1:
            table = self.scope.table(parts[0].name)
            found = table.named(parts[1].name) if table is not None else []
            if found:
                return found[0], parts[2:]
            if table is not None:
                return None
        found_one = self.scope.column(parts[0].name)
        if found_one is None or (len(parts) > 1 and self._is_table_outside(found_one, parts)):
            return None
        return found_one, parts[1:]

    def _is_table_outside(self, named: Named, parts: Sequence[exp.Identifier]) -> bool:
        """Return whether a name with dots is that of a table outside, and no field of a column of its own."""
        schema, dependent = self.data.schema, self.context.dependent
        if dependent is None or named.column not in schema.names or pa.types.is_struct(schema.field(named.column).type):
            return False
        return dependent.outer.knows(meant_outside(parts))

    def knows(self, parts: Sequence[exp.Identifier]) -> bool:
        """Return whether a name is one of its columns, or of several."""
        try:
            return self.find(parts) is not None
        except AmbiguousNameError:
            return True

    def has(self, node: exp.Expr) -> bool:
        """Return whether a node reads columns of it."""
        columns = nodes_in(node, exp.Column)
        return any(self.knows([one.args[key] for key in ("table", "this") if one.args.get(key)]) for one in columns)

    def outer_column(self, parts: Sequence[exp.Identifier]) -> tuple[Expr, Sequence[exp.Identifier]] | None:
        """Return a column of rows outside as an expression, None where there is none."""
        dependent = self.context.dependent
        found = self.outside(parts)
        if dependent is None or found is None:
            return None
        value, rest = found
        name = dependent.column_of(value)
        if name in self.carried:
            return col(self.carried[name]), rest
        if self.beside is not None:
            return col(name), rest
        raise OuterColumnError(dependent, self.context.path, name)

    def outside(self, parts: Sequence[exp.Identifier]) -> tuple[Expr, Sequence[exp.Identifier]] | None:
        """Return a name as the frame around this one knows it, None where there is none."""
        dependent = self.context.dependent
        return None if dependent is None else dependent.outer.column(meant_outside(parts))

    def fall_back(self) -> None:
        """Have the query that depends on rows outside be bound in another way."""
        dependent = self.context.dependent
        assert dependent is not None, "what carries columns depends on rows outside"
        raise OuterColumnError(dependent, self.context.path, next(iter(self.carried)))

    def column(self, parts: Sequence[exp.Identifier]) -> tuple[Expr, Sequence[exp.Identifier]] | None:
        """Return a column of a frame or of those around it, as an expression, and the fields that follow it."""
        of_groups = parts[0].meta.get(OF_GROUPS)
        if of_groups is not None:
            return (self.binder.bind(of_groups), ()) if self.has(of_groups) else self.outer_column(parts)
        try:
            found = self.find(parts)
        except AmbiguousNameError:
            raise PlanError(
                sentence(
                    parts[0],
                    f"column {parts[0].name} is in several tables; write which one, as in "
                    f"{self.scope.tables[0].name}.{parts[0].name}",
                    self.session.text,
                )
            ) from None
        if found is not None:
            named, rest = found
            if self.grouping is not None:
                return self.grouping.key_column(named, parts), rest
            return col(named.column), rest
        return self.outer_column(parts)

    def unknown(self, parts: Sequence[exp.Identifier]) -> PlanError:
        """Return the error about a name that no table has."""
        dependent, outer = self.context.dependent, meant_outside(parts)
        if outer is not parts and dependent is not None:
            return dependent.outer.unknown(outer)
        name = ".".join(part.name for part in parts)
        known = list(dict.fromkeys(one.name for one in self.scope.columns))
        if len(parts) > 1 and (table := self.scope.table(parts[0].name)) is not None:
            known = [one.name for one in table.columns]
        shown = known[:_SHOWN_NAMES]
        more = f" and {len(known) - len(shown)} more" if len(known) > len(shown) else ""
        there = f" (there are {', '.join(shown)}{more})" if known else ""
        quoted = parts[-1].args.get("quoted")
        hint = f"; a text stands in single quotes: '{parts[-1].name}'" if quoted and len(parts) == 1 else ""
        said = f"no column {name}{did_you_mean(parts[-1].name, known, likeness=0.5)}{there}{hint}"
        return PlanError(sentence(parts[0], said, self.session.text))


def name_outside(parts: Sequence[exp.Identifier], levels: int) -> exp.Identifier:
    """Return a name that stands for a column of the frame so many queries further out, and for none in between."""
    name = exp.to_identifier(f"{'.'.join(part.name for part in parts)} of {levels} around", quoted=True)
    name.meta.update(parts[0].meta, parts=tuple(parts), levels=levels)
    return name


def meant_outside(parts: Sequence[exp.Identifier]) -> Sequence[exp.Identifier]:
    """Return the name for the frame around, which is another one where a name stands for a column further out."""
    levels = parts[0].meta.get("levels", 0)
    if not levels:
        return parts
    meant: Sequence[exp.Identifier] = parts[0].meta["parts"]
    return [*(meant if levels == 1 else [name_outside(meant, levels - 1)]), *parts[1:]]


class Way(Enum):
    """The ways in which a query that looks at rows outside is bound."""

    CONDITIONS = "conditions"
    EQUALITIES = "equalities"
    DOMAIN = "domain"


class Dependent:
    """A query that may look at the rows of a frame around it."""

    def __init__(self, outer: Frame, way: Way, root: exp.Expr) -> None:
        self.outer = outer
        self.way = way
        self.root = id(root)
        #: flags of the use: the query is asked whether it has rows; it may say what it is of no rows
        self.is_existence = False
        self.takes_default = False
        self._needed: dict[int, list[str]] = {}
        #: conditions over both sides that the join with the rows outside has to meet
        self.conditions: list[Expr] = []
        #: groups of all rows, which are none for some of the rows outside
        self.defaults_of: Groups | None = None
        #: the value that the query has of no rows
        self.default: Expr | None = None

    @property
    def has_domain(self) -> bool:
        """Whether the columns of rows outside are joined to FROM."""
        return self.way is Way.DOMAIN

    def column_of(self, value: Expr) -> str:
        """Return the column of the rows outside that an expression is."""
        return self.outer.with_column(value, "outer")

    def need(self, path: Sequence[int], column: str) -> None:
        """Have the query at the end of a path carry a column; those around it take it from there."""
        if self.way is Way.DOMAIN and column in self._needed.get(path[-1], ()):
            raise NotYetSupportedError("sql: a function in FROM of values of rows outside; join the rows first")
        self._needed.setdefault(path[-1], []).append(column)

    def needed(self, node: exp.Expr) -> list[str]:
        """Return the columns of rows outside that a query has to carry."""
        return list(dict.fromkeys(self._needed.get(id(node), ())))

    def domain(self, columns: Sequence[str]) -> tuple[DataSet, dict[str, str]]:
        """Return the different values of columns of the rows outside, and the names that they have there."""
        for column in columns:
            data_type = self.outer.data.schema.field(column).type
            if not is_key_type(data_type):
                said = f"a query that looks at {column.partition('#')[0]} outside, a {shown_type(data_type)}"
                remedy = "write list_sum(l), list_filter(l, x -> ...) or FROM t, unnest(l) AS q (x)"
                raise NotYetSupportedError(f"{said} ({remedy if is_list(data_type) else 'write a part of it'})")
        names = {column: self.outer.unique(column.partition("#")[0]) for column in columns}
        values = self.outer.data.select([col(column).alias(name) for column, name in names.items()])
        return values.distinct(), names
