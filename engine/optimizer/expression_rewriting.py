"""What rules ask of expressions: which can raise, how they split, and what they are in terms of another input.

    conjuncts(a and b and c)        -> (a, b, c)          conjunction((a, b, c)) -> a and b and c
    cannot_raise(expression)        -> whether evaluating it on any row is safe
    substitute(expression, mapping) -> the expression with columns replaced by expressions

``cannot_raise`` guards every rule that lets an expression see rows which it would not have seen as written: a division
by zero, an overflow or a cast that fails there would fail a job that is fine. It is a list of what is safe; all else,
also what is added later, counts as able to raise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from engine.graph.expression import Call, Case, Cast, ColumnRef, Expression, Literal, NamedExpression, children_of

#: functions that return a value or null for every input of their types
SAFE_FUNCTIONS = frozenset(
    {
        "equal",
        "not_equal",
        "less",
        "less_equal",
        "greater",
        "greater_equal",
        "and",
        "or",
        "not",
        "is_null",
        "is_not_null",
        "is_in",
        "between",
        "str_length",
        "str_upper",
        "str_lower",
        "str_strip",
        "str_starts_with",
        "str_ends_with",
        "dt_year",
        "dt_month",
        "dt_day",
        "dt_hour",
        "dt_minute",
        "dt_second",
    }
)


def cannot_raise(expression: Expression) -> bool:
    """Whether an expression has a value for every row of its input's types."""
    if isinstance(expression, Cast):
        return False
    if isinstance(expression, Call) and expression.function not in SAFE_FUNCTIONS:
        return False
    return all(cannot_raise(child) for child in children_of(expression))


def conjuncts(predicate: Expression) -> tuple[Expression, ...]:
    """Return the parts of a predicate that must all be true, left to right."""
    if isinstance(predicate, Call) and predicate.function == "and":
        return tuple(part for argument in predicate.arguments for part in conjuncts(argument))
    return (predicate,)


def conjunction(parts: Iterable[Expression]) -> Expression:
    """Return the predicate that is true where all parts are; there must be at least one."""
    first, *others = parts
    for part in others:
        first = Call("and", (first, part))
    return first


def substitute(expression: Expression, mapping: Mapping[str, Expression]) -> Expression:
    """Return an expression with its columns replaced; a column that is not in ``mapping`` stays."""
    match expression:
        case ColumnRef(name=name):
            return mapping.get(name, expression)
        case Call(arguments=arguments):
            changed = tuple(substitute(argument, mapping) for argument in arguments)
            return msgspec.structs.replace(expression, arguments=changed)
        case Cast(operand=operand):
            return msgspec.structs.replace(expression, operand=substitute(operand, mapping))
        case Case(branches=branches, otherwise=otherwise):
            return Case(
                tuple((substitute(when, mapping), substitute(then, mapping)) for when, then in branches),
                None if otherwise is None else substitute(otherwise, mapping),
            )
        case _:
            return expression


def is_trivial(expression: Expression) -> bool:
    """Whether evaluating it twice costs nothing: a column or a constant."""
    return isinstance(expression, ColumnRef | Literal)


def column_projection(names: Iterable[str]) -> tuple[NamedExpression, ...]:
    """Return the expressions that keep those columns under their names."""
    return tuple(NamedExpression(name, ColumnRef(name)) for name in names)


def mapping_of(expressions: Iterable[NamedExpression]) -> dict[str, Expression]:
    """Return what each output column of a projection is in terms of its input."""
    return {named.name: named.expression for named in expressions}
