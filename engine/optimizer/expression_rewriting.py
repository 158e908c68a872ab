"""Questions of rules about expressions: which can raise, and their form in terms of another input.

    cannot_raise(expression, schema) -> whether evaluating it on any row is safe
    column_behind(projection, name)  -> the input's column that a column of the result is
    substitute(expression, mapping)  -> the expression with columns replaced by expressions

``cannot_raise`` guards every rule that lets an expression see rows which it would not have seen as written: a division
by zero, an overflow or a cast that fails there would fail a job that is fine. The table of functions says which are
safe; a function with another value each time is not, since it must not be evaluated elsewhere or twice.

Held by: tests/optimizer/test_rules.py
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from engine.graph.expression import (
    Call,
    Case,
    Cast,
    ColumnRef,
    Expression,
    Literal,
    NamedExpression,
    children_of,
    with_children,
)
from engine.graph.function_table import SAFE_FUNCTIONS
from engine.graph.plan_schema import PlanSchema

_COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "between", "is_in")
#: Arrow's names of floating-point types
FLOATS = ("halffloat", "float", "double")
#: integer types with values that no float64 equals
_WIDE_INTEGERS = ("int64", "uint64")


def cannot_raise(expression: Expression, schema: PlanSchema) -> bool:
    """Whether an expression has a value for every row of a schema.

    Operands of a comparison are widened to a common type first, which can fail for a value: a large int64 is no
    float64, a negative number no uint64. So their types count, not only the functions.
    """
    match expression:
        case Cast():
            return False
        case Call(function=function, arguments=arguments):
            if function not in SAFE_FUNCTIONS or (function in _COMPARISONS and not _widens_safely(arguments, schema)):
                return False
        case Case(branches=branches, otherwise=otherwise):
            results = [then for _, then in branches]
            if not _same_type(results if otherwise is None else [*results, otherwise], schema):
                return False
    children = (child for child in children_of(expression) if not isinstance(child, Literal))
    return all(cannot_raise(child, schema) for child in children)


def _type_text(expression: Expression, schema: PlanSchema) -> str:
    """Return the type of a column or constant as far as it matters here, "" for others."""
    if isinstance(expression, ColumnRef):
        return schema.column(expression.name).type_text
    if isinstance(expression, Literal) and isinstance(expression.value, float):
        return "double"
    return ""


def _widens_safely(operands: tuple[Expression, ...], schema: PlanSchema) -> bool:
    types = {_type_text(operand, schema) for operand in operands}
    if types.intersection(FLOATS) and types.intersection(_WIDE_INTEGERS):
        return False
    columns = {_type_text(operand, schema) for operand in operands if isinstance(operand, ColumnRef)}
    return "uint64" not in columns or len(columns) == 1


def _same_type(results: list[Expression], schema: PlanSchema) -> bool:
    """Whether results need no widening: columns of one type, and constants only beside strings."""
    types = {_type_text(result, schema) for result in results if isinstance(result, ColumnRef)}
    constants = [result for result in results if isinstance(result, Literal) and result.value is not None]
    if len(types) != 1 or not all(isinstance(result, ColumnRef | Literal) for result in results):
        return False
    return not constants or (types == {"string"} and all(isinstance(each.value, str) for each in constants))


def substitute(expression: Expression, mapping: Mapping[str, Expression]) -> Expression:
    """Return an expression with its columns replaced; a column that is not in ``mapping`` stays."""
    match expression:
        case ColumnRef(name=name):
            return mapping.get(name, expression)
        case _:
            return with_children(expression, [substitute(part, mapping) for part in children_of(expression)])


def is_trivial(expression: Expression) -> bool:
    """Whether evaluating it twice costs nothing: a column or a constant."""
    return isinstance(expression, ColumnRef | Literal)


def column_projection(names: Iterable[str]) -> tuple[NamedExpression, ...]:
    """Return the expressions that keep those columns under their names."""
    return tuple(NamedExpression(name, ColumnRef(name)) for name in names)


def column_behind(expressions: Iterable[NamedExpression], name: str) -> str | None:
    """Return the input's column that a column of a projection is, None for one that is computed."""
    expression = mapping_of(expressions).get(name)
    return expression.name if isinstance(expression, ColumnRef) else None


def mapping_of(expressions: Iterable[NamedExpression]) -> dict[str, Expression]:
    """Return each output column of a projection in terms of its input."""
    return {named.name: named.expression for named in expressions}
