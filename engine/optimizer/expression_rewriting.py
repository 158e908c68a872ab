"""Questions of rules about expressions: which can raise, and their form in terms of another input.

    cannot_raise(expression, schema) -> whether evaluating it on any row is safe
    column_behind(projection, name)  -> the input's column that a column of the result is
    strict_columns(expression)       -> columns for whose nulls the expression is null
    substitute(expression, mapping)  -> the expression with columns replaced by expressions
    truth_of_constants(expression)   -> what a comparison of constants is; None for anything else

``cannot_raise`` guards every rule that lets an expression see rows which it would not have seen as written: a division
by zero, an overflow or a cast that fails there would fail a job that is fine. The table of functions says which are
safe; a function with another value each time is not, since it must not be evaluated elsewhere or twice.

Held by: tests/optimizer/test_rules.py
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from engine.graph.expression import (
    Call,
    Case,
    Cast,
    ColumnRef,
    Expression,
    Literal,
    NamedExpression,
    children_of,
    disjuncts,
    with_children,
)
from engine.graph.function_table import SAFE_FUNCTIONS
from engine.graph.plan_schema import PlanSchema

_ORDERS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "equal": operator.eq, "not_equal": operator.ne, "less": operator.lt, "less_equal": operator.le,
    "greater": operator.gt, "greater_equal": operator.ge,
}  # fmt: skip
_COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "between", "is_in")
#: Arrow's names of floating-point types
FLOATS = ("halffloat", "float", "double")
#: functions that return null for a null argument
_STRICT: Final = frozenset({"add", "subtract", "multiply", "divide", "negate"})
#: integer types with values that no float64 equals
_WIDE_INTEGERS = ("int64", "uint64")


def cannot_raise(expression: Expression, schema: PlanSchema) -> bool:
    """Whether an expression has a value for every row of a schema.

    Operands of a comparison are widened to a common type first, which can fail for a value: a large int64 is no
    float64, a negative number no uint64. So their types count, not only the functions.
    """
    kind = type(expression)
    if kind is ColumnRef or kind is Literal:
        return True
    if isinstance(expression, Call):
        function, arguments = expression.function, expression.arguments
        if function not in SAFE_FUNCTIONS or (function in _COMPARISONS and not _widens_safely(arguments, schema)):
            return False
    elif isinstance(expression, Case):
        results = [then for _, then in expression.branches]
        otherwise = expression.otherwise
        if not _same_type(results if otherwise is None else [*results, otherwise], schema):
            return False
    elif kind is Cast:
        return False
    for child in children_of(expression):
        if type(child) is not ColumnRef and type(child) is not Literal and not cannot_raise(child, schema):
            return False
    return True


def truth_of_constants(expression: Expression) -> bool | None:
    """Return the truth of a comparison of texts, or of integers, that are all constants; None where it is not known."""
    match expression:
        case Call(function="not", arguments=(negated,)):
            truth = truth_of_constants(negated)
            return None if truth is None else not truth
        case Call(function="or"):
            truths = [truth_of_constants(part) for part in disjuncts(expression)]
            return True if True in truths else None if None in truths else False
        case Call(function="is_in", arguments=(tested, *values)) if _are_alike((tested, *values)):
            return any(_value(tested) == _value(value) for value in values)
        case Call(function=function, arguments=(left, right)) if function in _ORDERS and _are_alike((left, right)):
            return _ORDERS[function](_value(left), _value(right))
    return None


def _are_alike(constants: Sequence[Expression]) -> bool:
    """Whether all are constants of one simple kind, whose values say in Python what they say in Arrow."""
    kinds = {type(one.value) if isinstance(one, Literal) else None for one in constants}
    return kinds in ({str}, {int})


def _value(constant: Expression) -> Any:
    assert isinstance(constant, Literal), "it was found to be a constant"
    return constant.value


def _widens_safely(operands: tuple[Expression, ...], schema: PlanSchema) -> bool:
    columns = {schema.column(operand.name).type_text for operand in operands if type(operand) is ColumnRef}
    if columns.isdisjoint(_WIDE_INTEGERS):
        return True
    has_float = not columns.isdisjoint(FLOATS) or any(_is_float(operand) for operand in operands)
    return not has_float and ("uint64" not in columns or len(columns) == 1)


def _is_float(operand: Expression) -> bool:
    return isinstance(operand, Literal) and isinstance(operand.value, float)


def _same_type(results: list[Expression], schema: PlanSchema) -> bool:
    """Whether results need no widening: columns of one type, and constants only beside strings."""
    types = {schema.column(result.name).type_text for result in results if isinstance(result, ColumnRef)}
    constants = [result for result in results if isinstance(result, Literal) and result.value is not None]
    if len(types) != 1 or not all(isinstance(result, ColumnRef | Literal) for result in results):
        return False
    return not constants or (types == {"string"} and all(isinstance(each.value, str) for each in constants))


def substitute(expression: Expression, mapping: Mapping[str, Expression]) -> Expression:
    """Return an expression with its columns replaced; a column that is not in ``mapping`` stays."""
    if type(expression) is ColumnRef:
        return mapping.get(expression.name, expression)
    if type(expression) is Literal:
        return expression
    return with_children(expression, [substitute(part, mapping) for part in children_of(expression)])


def strict_columns(expression: Expression) -> list[str]:
    """Return columns for whose nulls an expression is null."""
    match expression:
        case ColumnRef(name=name):
            return [name]
        case Cast(operand=operand):
            return strict_columns(operand)
        case Call(function=function, arguments=arguments) if function in _STRICT:
            return [name for argument in arguments for name in strict_columns(argument)]
    return []


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
