"""Expressions as plain typed data: what ``col``, ``lit`` and ``when`` build and what travels in a plan.

    ColumnRef(name)                      a column of the input
    Literal(ipc, text, value)            a constant: exact value as a one-element Arrow IPC batch
    Call(function, arguments, options)   every operator, method and function, by name
    Cast(operand, type_ipc, type_text)   conversion to an exact type
    Case(branches, otherwise)            when/then/otherwise

Users say these as well; ``engine.lowering`` takes them out of expressions before a plan is optimized:

    Over(function, ...)                  a window function
    Aggregated(function, ...)            an aggregate of a group's rows
    FromDataSet(number, tested)          the value of a data set, or whether it has one
    PythonCall(function, arguments)      a user's function of values

    conjuncts(a and b and c) -> (a, b, c)          conjunction((a, b, c)) -> a and b and c
    disjuncts, disjunction   the same of "or"

There is no pyarrow here: ``engine.expressions`` evaluates these over Arrow batches (and gives their types by
evaluating over an empty one); Spark and SQL translate them. Function names of ``Call`` are those of
``engine.expressions.function_registry``: add subtract multiply divide floor_divide modulo negate | equal not_equal less
less_equal greater greater_equal | and or not | is_null is_not_null is_in between | str_* dt_* ...

Held by: tests/optimizer/test_column_lineage.py
Held by: tests/optimizer/test_rules.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter, is_
from typing import Any, Final

import msgspec

from engine.graph.exact import Exact
from engine.graph.window import WindowFrame


class ColumnRef(Exact, frozen=True, tag="column", weakref=True):
    """A column of the input by name."""

    name: str


class Literal(Exact, frozen=True, tag="literal"):
    """A constant. ``value`` repeats simple ones (for estimates and text); ``ipc`` is exact for every type."""

    ipc: bytes
    text: str
    value: bool | int | float | str | None = None


class Call(Exact, frozen=True, tag="call", weakref=True):
    """A function over expressions; ``options`` are its constants (a pattern, a unit)."""

    function: str
    arguments: tuple[Expression, ...]
    options: dict[str, bool | int | float | str | None] = msgspec.field(default_factory=dict)


class Cast(Exact, frozen=True, tag="cast", weakref=True):
    """Conversion to the type of the single field in ``type_ipc`` (an Arrow IPC schema).

    widens: a cast that the engine adds; it gives the float nearest to an integer, where a cast that a user wrote must
    be exact.
    """

    operand: Expression
    type_ipc: bytes
    type_text: str
    widens: bool = False


class Case(Exact, frozen=True, tag="case", weakref=True):
    """First branch whose condition is true; null when none is and there is no otherwise."""

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression | None = None


class OrderedBy(Exact, frozen=True):
    """One key of the order within a window."""

    expression: Expression
    descending: bool = False
    nulls_last: bool = False


#: expression of a number that grows from row to row
ROW_PLACE: Final = Call("row_place", ())
#: function of the moment at which a job is submitted, which its plan has as a constant (``engine.lowering.job_moment``)
JOB_MOMENT: Final = "now"
#: function of an expression that is written in SQL, whose option ``text`` it is
SQL_TEXT: Final = "sql_text"
#: limit of parts that are chained
CHAINED_MAX: Final = 64
#: function of ``Over`` whose argument is an aggregate of groups
OF_GROUPS: Final = "of_groups"


class Over(Exact, frozen=True, tag="over"):
    """A window function for each row: lowered, a column of a Window operator below.

    ``argument`` and ``default`` may be None; ``default`` is the second argument of functions of two. ``count`` is the n
    of ntile, lag, lead and nth_value. ``frame`` None: as SQL has it. ``distinct``: equal values count once.
    ``ignore_nulls``: rows without a value are passed over. ``factor`` is that of running functions. Of ``OF_GROUPS``
    the argument is an Aggregated, computed for whole partitions as for groups.
    """

    function: str
    argument: Expression | None
    partition_by: tuple[Expression, ...] = ()
    order_by: tuple[OrderedBy, ...] = ()
    frame: WindowFrame | None = None
    count: int = 0
    default: Expression | None = None
    distinct: bool = False
    ignore_nulls: bool = False
    factor: float = 0.0


class Aggregated(Exact, frozen=True, tag="aggregated"):
    """An aggregate of the rows of a group: lowered, a column of what is computed for the groups.

    ``where``: rows for which it is not true do not count. ``distinct``: equal values count once. ``order_by``: of the
    values of a list. ``options``: constants, such as the share of a quantile.
    """

    function: str
    arguments: tuple[Expression, ...] = ()
    where: Expression | None = None
    distinct: bool = False
    order_by: tuple[OrderedBy, ...] = ()
    options: dict[str, bool | int | float | str | None] = msgspec.field(default_factory=dict)


class FromDataSet(Exact, frozen=True, tag="from_data_set"):
    """The only value of a data set, or whether a tested value is one of its values: lowered, a join.

    ``number``: which input of the operator it is; until there is an operator, the environment's number of the data set.
    """

    number: int
    tested: Expression | None = None


class PythonCall(Exact, frozen=True, tag="python_call"):
    """A user's function of values: lowered, a column that an operator below adds.

    ``kind``, ``function``, ``function_name``, ``file`` and ``line`` as in the plan's PythonFunction; ``type_ipc`` says
    what it returns, as in Cast.
    """

    kind: str
    function: bytes
    function_name: str
    file: str
    line: int
    type_ipc: bytes
    arguments: tuple[Expression, ...]


Expression = ColumnRef | Literal | Call | Cast | Case | Over | Aggregated | FromDataSet | PythonCall


class NamedExpression(Exact, frozen=True):
    """An expression and the name of the column it makes."""

    name: str
    expression: Expression


#: aggregates of conditions for any row, and for all: false is less than true
EXTREMES_OF_CONDITIONS: Final = {"any": "max", "all": "min"}
#: aggregates whose result depends on the order of rows
ORDER_DEPENDENT_AGGREGATES = frozenset({"first", "last"})


class AggregateCall(Exact, frozen=True):
    """One aggregate with states: ``function`` is one of ``engine.accumulators.aggregate_functions``, or count_all."""

    function: str
    #: argument; None for count_all (``count()``: rows)
    argument: Expression | None
    name: str


def children_of(expression: Expression) -> tuple[Expression, ...]:
    """Return the direct operands of an expression."""
    children = _CHILDREN.get(type(expression))
    return () if children is None else children(expression)


def _of_case(case: Case) -> tuple[Expression, ...]:
    operands = tuple(part for branch in case.branches for part in branch)
    return operands if case.otherwise is None else (*operands, case.otherwise)


def _of_over(over: Over) -> tuple[Expression, ...]:
    optional = tuple(one for one in (over.argument, over.default) if one is not None)
    return (*optional, *over.partition_by, *(key.expression for key in over.order_by))


#: functions that return an expression's operands, by its type: plans ask for them a thousand times
_CHILDREN: Final[dict[type, Callable[[Any], tuple[Expression, ...]]]] = {
    Call: attrgetter("arguments"),
    PythonCall: attrgetter("arguments"),
    Cast: lambda cast: (cast.operand,),
    Case: _of_case,
    Over: _of_over,
    FromDataSet: lambda found: () if found.tested is None else (found.tested,),
}


def parts_of(expression: Expression) -> tuple[Expression, ...]:
    """Return the operands of an expression, those of an aggregate too."""
    if not isinstance(expression, Aggregated):
        return children_of(expression)
    where = () if expression.where is None else (expression.where,)
    return (*expression.arguments, *where, *(key.expression for key in expression.order_by))


def first_column(expression: Expression) -> str | None:
    """Return the name of the column that an expression reads first, those of aggregates too; None: it reads none."""
    waiting = [expression]
    while waiting:
        part = waiting.pop()
        if isinstance(part, ColumnRef):
            return part.name
        waiting.extend(parts_of(part)[::-1])
    return None


def with_children(expression: Expression, operands: Sequence[Expression]) -> Expression:
    """Return an expression over other direct operands, in the order of ``children_of``; itself over its own."""
    if all(map(is_, operands, children_of(expression))):
        return expression
    match expression:
        case Call() | PythonCall():
            return msgspec.structs.replace(expression, arguments=tuple(operands))
        case Cast():
            return msgspec.structs.replace(expression, operand=operands[0])
        case Case(branches=branches, otherwise=otherwise):
            pairs = tuple((operands[2 * index], operands[2 * index + 1]) for index in range(len(branches)))
            return Case(pairs, None if otherwise is None else operands[-1])
        case Over():
            return _over_children(expression, list(operands))
        case FromDataSet():
            return msgspec.structs.replace(expression, tested=operands[0] if operands else None)
        case _:
            return expression


def _over_children(over: Over, operands: list[Expression]) -> Over:
    argument = None if over.argument is None else operands.pop(0)
    default = None if over.default is None else operands.pop(0)
    keys, rest = operands[: len(over.partition_by)], operands[len(over.partition_by) :]
    order = [msgspec.structs.replace(key, expression=one) for key, one in zip(over.order_by, rest, strict=True)]
    return msgspec.structs.replace(
        over, argument=argument, default=default, partition_by=tuple(keys), order_by=tuple(order)
    )


def columns_of(expression: Expression) -> Iterator[str]:
    """Return the names of the columns an expression reads, in order of appearance, possibly repeated."""
    if type(expression) is ColumnRef:
        return iter((expression.name,))
    found: list[str] = []
    stack: list[Expression] = [expression]
    while stack:
        one = stack.pop()
        if type(one) is ColumnRef:
            found.append(one.name)
        elif (children := _CHILDREN.get(type(one))) is not None:
            stack.extend(children(one)[::-1])
    return iter(found)


def conjuncts(predicate: Expression) -> tuple[Expression, ...]:
    """Return the parts of a predicate that must all be true, left to right."""
    return _split("and", predicate)


def disjuncts(predicate: Expression) -> tuple[Expression, ...]:
    """Return the parts of a predicate of which one must be true, left to right."""
    return _split("or", predicate)


def _split(function: str, predicate: Expression) -> tuple[Expression, ...]:
    if type(predicate) is not Call or predicate.function != function:
        return (predicate,)
    parts: list[Expression] = []
    waiting: list[Expression] = [predicate]
    while waiting:
        part = waiting.pop()
        if type(part) is Call and part.function == function:
            waiting.extend(part.arguments[::-1])
        else:
            parts.append(part)
    return tuple(parts)


def conjunction(parts: Iterable[Expression]) -> Expression:
    """Return the predicate that is true where all parts are; there must be at least one."""
    return joined("and", parts)


def disjunction(parts: Iterable[Expression]) -> Expression:
    """Return the predicate that is true where one of the parts is; there must be at least one."""
    return joined("or", parts)


def joined(function: str, parts: Iterable[Expression]) -> Expression:
    """Return parts joined from the left; very many as a balanced tree, which recursion can walk."""
    level = list(parts)
    while len(level) > CHAINED_MAX:
        pairs = [Call(function, pair) for pair in zip(level[::2], level[1::2], strict=False)]
        level = [*pairs, *level[2 * len(pairs) :]]
    first, *others = level
    for part in others:
        first = Call(function, (first, part))
    return first


def reads_columns(expression: Expression) -> bool:
    """Whether an expression reads a column, or the moment that a job decides: it has no value before."""
    return _has(expression, ColumnRef) or _calls(expression, JOB_MOMENT)


def is_said(expression: Expression) -> bool:
    """Whether an expression has parts that are lowered: windows, values of data sets, users' functions."""
    return _has(expression, (Over, FromDataSet, PythonCall))


def has_window(expression: Expression) -> bool:
    """Whether there is a window function in an expression."""
    return _has(expression, Over)


def has_python(expression: Expression) -> bool:
    """Whether there is a user's function in an expression."""
    return _has(expression, PythonCall)


def has_aggregate(expression: Expression) -> bool:
    """Whether there is an aggregate in an expression."""
    return _has(expression, Aggregated)


def has_data_set(expression: Expression) -> bool:
    """Whether an expression has a part that stands for a data set."""
    return _has(expression, FromDataSet)


def _has(expression: Expression, kind: type[Expression] | tuple[type[Expression], ...]) -> bool:
    stack = [expression]
    while stack:
        one = stack.pop()
        if isinstance(one, kind):
            return True
        children = _CHILDREN.get(type(one))
        if children is not None:
            stack.extend(children(one))
    return False


def has_sql_text(expression: Expression) -> bool:
    """Whether a part of an expression is written in SQL: ``expr(text)``."""
    return _calls(expression, SQL_TEXT)


def _calls(expression: Expression, function: str) -> bool:
    stack = [expression]
    while stack:
        one = stack.pop()
        if type(one) is Call and one.function == function:
            return True
        stack.extend(children_of(one))
    return False


def replaced(expression: Expression, replace: Callable[[Expression], Expression | None]) -> Expression:
    """Return an expression with parts replaced, those nearest to the root first: by what is returned for them."""
    found = replace(expression)
    if found is not None:
        return found
    return with_children(expression, [replaced(child, replace) for child in children_of(expression)])


def depth_of(expression: Expression) -> int:
    """Return the depth of an expression: 1 for a column. Does not recurse, so any depth can be asked for."""
    depth, level = 0, [expression]
    while level:
        depth += 1
        level = [child for one in level for child in children_of(one)]
    return depth
