"""Data sets within expressions: ``data.scalar()`` is a value, ``col("k").is_in(data)`` a test.

    filter(col("x") > other.scalar())      rows ──cross join──► rows, value ──► filter ──► columns as they were
    filter(col("k").is_in(other))          semi join; ``~col("k").is_in(other)`` an anti join, SQL's NOT IN
    with_columns(m=col("k").is_in(other))  left join with the different values of other: true, false, null for unknown

An expression holds a number of the data set: the Environment's, and then that of the operator's input
(``with_inputs``). What stands for a data set becomes a column of a join.

Held by: tests/integration/test_data_set_values.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import pyarrow as pa

from engine.errors import SchemaError
from engine.expressions.infer import infer_type
from engine.expressions.literals import make_literal
from engine.expressions.text import expression_text
from engine.graph.expression import (
    AggregateCall,
    Call,
    ColumnRef,
    Expression,
    FromDataSet,
    NamedExpression,
    children_of,
    conjuncts,
    has_data_set,
    has_window,
    replaced,
)
from engine.graph.plan import Aggregate, JoinType, Limit, Project
from engine.lowering.aggregate_nodes import aggregate_node
from engine.lowering.exact_keys import as_equals_compares
from engine.lowering.join_keys import JoinKeys
from engine.lowering.joins import join_node
from engine.lowering.logical_node import LogicalNode
from engine.lowering.projections import columns_as_they_are, free_name, project_node
from engine.lowering.terms import call, case, is_there

#: function from a number to the node of its data set
Known = Callable[[int], LogicalNode]


class Resolved(NamedTuple):
    """A node with a column for each value of a data set, and expressions over it."""

    node: LogicalNode
    expressions: list[Expression]


def with_inputs(expressions: Sequence[Expression], known: Known) -> tuple[list[Expression], list[LogicalNode]]:
    """Return expressions that speak of data sets by their places among the inputs behind the first, and these."""
    places: dict[int, int] = {}

    def numbered(part: Expression) -> Expression | None:
        if not isinstance(part, FromDataSet):
            return None
        tested = None if part.tested is None else replaced(part.tested, numbered)
        return FromDataSet(places.setdefault(part.number, len(places) + 1), tested)

    found = [replaced(expression, numbered) for expression in expressions]
    return found, list(map(known, places))


def with_values(inputs: Sequence[LogicalNode], expressions: Sequence[Expression]) -> Resolved:
    """Return the first input with what expressions want of the others as columns, and the expressions over these."""
    node = inputs[0]
    # a list, for expressions have no hash
    parts: list[FromDataSet] = []
    names: list[str] = []
    for part in (part for expression in expressions for part in _parts(expression)):
        if part in parts:
            continue
        name = free_name(f"__value{len(names)}", node.schema)
        parts.append(part)
        names.append(name)
        other = inputs[part.number]
        if part.tested is None:
            node = join_node(node, one_value(other, name, "scalar(): a data set"), JoinType.CROSS, JoinKeys())
        else:
            node = with_mark(node, part.tested, other, name)

    def column(part: Expression) -> Expression | None:
        return ColumnRef(names[parts.index(part)]) if isinstance(part, FromDataSet) else None

    return Resolved(node, [replaced(expression, column) for expression in expressions])


def filtered_by_membership(
    inputs: Sequence[LogicalNode], predicate: Expression
) -> tuple[LogicalNode, Expression | None]:
    """Return the first input's rows that meet the memberships in others of a conjunction, and what is left of it."""
    node = inputs[0]
    rest: Expression | None = None
    if has_window(predicate):
        # which looks at the rows that a test would leave out
        return node, predicate
    for part in conjuncts(predicate):
        is_not = isinstance(part, Call) and part.function == "not"
        test = part.arguments[0] if isinstance(part, Call) and is_not else part
        if isinstance(test, FromDataSet) and test.tested is not None and not has_data_set(test.tested):
            other = inputs[test.number]
            keys = JoinKeys([_compared(test.tested, node, other)])
            node = join_node(node, other, JoinType.ANTI if is_not else JoinType.SEMI, keys, null_aware=is_not)
        else:
            rest = part if rest is None else Call("and", (rest, part))
    return node, rest


def one_value(node: LogicalNode, name: str, what: str) -> LogicalNode:
    """Return one row with the only value of a node, null where it has no row; an error of the job where it has two.

    what: the subject of the error.
    """
    (column,) = node.schema.names
    if _has_one_row(node):
        return project_node(node, [NamedExpression(name, ColumnRef(column))], "scalar")
    rows = free_name("rows", node.schema)
    few = LogicalNode(Limit(2), (node,), node.schema)
    calls = (AggregateCall("first", ColumnRef(column), column), AggregateCall("count_all", None, rows))
    counted = aggregate_node(few, (), calls)
    said = f"{what} that stands for a value has more than one row"
    value = call("require", ColumnRef(column), call("less_equal", ColumnRef(rows), 1), message=said)
    return project_node(counted, [NamedExpression(name, value)], "scalar")


def _has_one_row(node: LogicalNode) -> bool:
    while isinstance(node.operator, Project):
        (node,) = node.inputs
    return isinstance(node.operator, Aggregate) and not node.operator.keys


def with_mark(node: LogicalNode, tested: Expression, other: LogicalNode, mark: str) -> LogicalNode:
    """Return a node with a column that says whether a value is one of the values of another node, as SQL's IN.

    Null where that is unknown: a null among the values, or the value itself, and there are any.
    """
    compared, value = _compared(tested, node, other)
    key, found, rows, values = (free_name(f"__{name}", node.schema) for name in ("key", "found", "rows", "values"))
    wanted = project_node(other, [NamedExpression(key, value)], "is_in")
    different = aggregate_node(wanted, (key,), ())
    flag = NamedExpression(found, make_literal(True, pa.bool_()))
    flagged = project_node(different, [NamedExpression(key, ColumnRef(key)), flag], "is_in")
    own = NamedExpression(free_name("__tested", node.schema), compared)
    values_beside = project_node(node, [*columns_as_they_are(node.schema.names), own], "is_in")
    joined = join_node(values_beside, flagged, JoinType.LEFT, JoinKeys([(ColumnRef(own.name), ColumnRef(key))]))
    calls = (AggregateCall("count_all", None, rows), AggregateCall("count", ColumnRef(key), values))
    counted = join_node(joined, aggregate_node(different, (), calls), JoinType.CROSS, JoinKeys())
    has_nulls = call("greater", ColumnRef(rows), ColumnRef(values))
    has_any = call("greater", ColumnRef(rows), 0)
    is_unknown = call("and", has_any, call("or", call("is_null", tested), has_nulls))
    unknown = make_literal(None, pa.bool_())
    is_in = case((is_there(ColumnRef(found)), True), (is_unknown, unknown), otherwise=False)
    kept = [*columns_as_they_are(node.schema.names), NamedExpression(mark, is_in)]
    return project_node(counted, kept, "is_in")


def _compared(tested: Expression, node: LogicalNode, other: LogicalNode) -> tuple[Expression, Expression]:
    """Return a value and the column of a data set as ``==`` compares them."""
    own, values = infer_type(tested, node.schema), other.schema.field(0)
    compared = as_equals_compares((tested, own), (ColumnRef(values.name), values.type))
    if compared is None:
        raise SchemaError(
            f"{expression_text(tested)}.is_in(data_set): the value is {own}, the data set's {values.name!r} is"
            f" {values.type}; they have no common type: cast one of them"
        )
    return compared


def _parts(expression: Expression) -> list[FromDataSet]:
    """Return the data sets in an expression; SchemaError for one within another."""
    if isinstance(expression, FromDataSet):
        if expression.tested is not None and has_data_set(expression.tested):
            raise SchemaError("is_in(data_set) of a value of another data set; make the value a column first")
        return [expression]
    return [part for child in children_of(expression) for part in _parts(child)]
