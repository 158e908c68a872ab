"""Data sets within expressions: ``data.scalar()`` is a value, ``col("k").is_in(data)`` a test.

    filter(col("x") > other.scalar())      rows ──cross join──► rows, value ──► filter ──► columns as they were
    filter(col("k").is_in(other))          semi join; ``~col("k").is_in(other)`` an anti join, SQL's NOT IN
    with_columns(m=col("k").is_in(other))  left join with the different values of other: true, false, null for unknown

The joins are those of queries beside rows (``apply.py``). An expression holds a number of the data set: the
Environment's, and then that of the operator's input (``with_inputs``).

Held by: tests/integration/test_data_set_values.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from engine.errors import SchemaError
from engine.expressions.infer import infer_type
from engine.expressions.text import expression_text
from engine.graph.expression import (
    Call,
    ColumnRef,
    Expression,
    FromDataSet,
    children_of,
    conjuncts,
    has_data_set,
    has_window,
    replaced,
)
from engine.graph.said_operators import Apply, ApplyUse
from engine.lowering.apply import applied
from engine.lowering.exact_keys import as_equals_compares
from engine.lowering.logical_node import LogicalNode
from engine.lowering.projections import free_name

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
            value = ColumnRef(other.schema.names[0])
            said = Apply(ApplyUse.VALUE, name, value=value, words="scalar(): a data set")
        else:
            said = Apply(ApplyUse.IN, name, tested=(_compared(part.tested, node, other),))
        node = applied(node, other, said)

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
            said = Apply(ApplyUse.IN, is_not=is_not, tested=(_compared(test.tested, node, other),))
            node = applied(node, other, said)
        else:
            rest = part if rest is None else Call("and", (rest, part))
    return node, rest


def _compared(tested: Expression, node: LogicalNode, other: LogicalNode) -> tuple[Expression, Expression]:
    """Return a value and the column of a data set. Raises: SchemaError where ``==`` does not compare them."""
    own, values = infer_type(tested, node.schema), other.schema.field(0)
    column = ColumnRef(values.name)
    if as_equals_compares((tested, own), (column, values.type)) is None:
        raise SchemaError(
            f"{expression_text(tested)}.is_in(data_set): the value is {own}, the data set's {values.name!r} is"
            f" {values.type}; they have no common type: cast one of them"
        )
    return tested, column


def _parts(expression: Expression) -> list[FromDataSet]:
    """Return the data sets in an expression; SchemaError for one within another."""
    if isinstance(expression, FromDataSet):
        if expression.tested is not None and has_data_set(expression.tested):
            raise SchemaError("is_in(data_set) of a value of another data set; make the value a column first")
        return [expression]
    return [part for child in children_of(expression) for part in _parts(child)]
