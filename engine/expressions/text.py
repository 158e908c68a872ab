"""An expression as short text: for names of columns that the user did not name, for explain and for messages.

    price * (1 - discount)      year(day) >= 1997      when(x > 0).then('plus').otherwise('minus')

Column names stand bare when they are identifiers, else as ``col('...')``.

Held by: tests/column_expressions/test_expression.py
"""

from __future__ import annotations

from engine.expressions.lambda_bodies import body_of
from engine.graph.expression import (
    OF_GROUPS,
    Aggregated,
    Call,
    Case,
    Cast,
    ColumnRef,
    Expression,
    FromDataSet,
    Literal,
    OrderedBy,
    Over,
    PythonCall,
    depth_of,
)

#: function -> (operator, precedence): a larger number binds tighter, in Python's order
_INFIX = {
    "or": ("|", 2),
    "and": ("&", 3),
    "equal": ("==", 1),
    "not_equal": ("!=", 1),
    "less": ("<", 1),
    "less_equal": ("<=", 1),
    "greater": (">", 1),
    "greater_equal": (">=", 1),
    "add": ("+", 5),
    "subtract": ("-", 5),
    "multiply": ("*", 6),
    "divide": ("/", 6),
    "floor_divide": ("//", 6),
    "modulo": ("%", 6),
}
_PREFIX = {"negate": "-", "not": "~"}
_PREFIX_STRENGTH = 7
_TEXT_MAX = 200
#: depth above which expressions are refused where they are used
_DEPTH_MAX = 250


def quotient_of(case: Case) -> Call | None:
    """Return the floored quotient that SQL's division of integers is made of; None for another choice."""
    match case:
        case Case(
            branches=((_, Call(function="add", arguments=(floored, _))),),
            otherwise=Call(function="floor_divide") as quotient,
        ) if floored == quotient:
            return quotient
    return None


def _is_quotient(expression: Expression, left: Expression, right: Expression) -> bool:
    """Return whether it is what SQL's division of integers is made of."""
    return isinstance(expression, Case) and quotient_of(expression) == Call("floor_divide", (left, right))


def _date_parts(call: Call) -> tuple[Expression, ...]:
    """Return year, month and day of the date that SQL's make_date() is made of; nothing for another call."""
    match call:
        case Call(function="require", arguments=(Call(function="str_to_date", arguments=(written,)), _)):
            parts = []
            while isinstance(written, Call) and written.arguments:
                *others, last = written.arguments
                parts += [last.operand] if isinstance(last, Cast) else []
                written = others[0] if others else last
            return tuple(reversed(parts)) if len(parts) == 3 else ()
    return ()


def _call_text(call: Call) -> tuple[str, int]:
    if parts := _date_parts(call):
        return f"make_date({', '.join(_text(part, 0) for part in parts)})", 9
    match call:
        case Call(function="subtract", arguments=(left, Call(function="multiply", arguments=(right, quotient)))) if (
            _is_quotient(quotient, left, right)
        ):
            call = Call("modulo", (left, right))
    if call.function in _INFIX:
        operator, strength = _INFIX[call.function]
        left, right = call.arguments
        return f"{_text(left, strength)} {operator} {_text(right, strength + 1)}", strength
    if call.function in _PREFIX:
        return f"{_PREFIX[call.function]}{_text(call.arguments[0], _PREFIX_STRENGTH)}", _PREFIX_STRENGTH
    arguments = [_text(argument, 0) for argument in call.arguments]
    if call.function == "by_value":
        given = dict(call.options)
        call = Call(str(given.pop("function")), call.arguments, given)
        del given["varying"]
    if call.function == "is_in":
        return f"is_in({arguments[0]}, [{', '.join(arguments[1:])}])", 9
    options = dict(call.options)
    if "body" in options:
        arguments.append(f"-> {_text(body_of(str(options.pop('body'))), 0)}")
        options.pop("has_initial", None)
    arguments += [repr(value) for value in options.values() if value is not None and value is not False]
    name = call.function.removeprefix("str_").removeprefix("dt_")
    return f"{name}({', '.join(arguments)})", 9


def _text(expression: Expression, strength: int) -> str:
    own = 9
    match expression:
        case ColumnRef(name=name):
            text = name if name.isidentifier() else f"col({name!r})"
        case Literal(text=text):
            pass
        case Cast(operand=operand, type_text=type_text):
            text = f"cast({_text(operand, 0)} as {type_text})"
        case Case() if (quotient := quotient_of(expression)) is not None:
            text, own = _call_text(Call("divide", quotient.arguments))
        case Case(branches=branches, otherwise=otherwise):
            text = ".".join(f"when({_text(test, 0)}).then({_text(value, 0)})" for test, value in branches)
            if otherwise is not None:
                text += f".otherwise({_text(otherwise, 0)})"
        case Over():
            text = _over_text(expression)
        case Aggregated():
            text = _aggregated_text(expression)
        case PythonCall(function_name=name, arguments=arguments):
            text = f"{name.rpartition('.')[2]}({', '.join(_text(argument, 0) for argument in arguments)})"
        case FromDataSet(tested=tested):
            text = "data_set.scalar()" if tested is None else f"{_text(tested, 9)}.is_in(data_set)"
        case Call():
            text, own = _call_text(expression)
    return f"({text})" if own < strength else text


def _over_text(over: Over) -> str:
    """Return a window function as SQL writes it."""
    given = [] if over.argument is None else [_text(over.argument, 0)]
    given += [str(over.count)] if over.count else []
    given += [] if over.default is None else [_text(over.default, 0)]
    given += ["ignore nulls"] if over.ignore_nulls else []
    given += [f"factor {over.factor:g}"] if over.factor else []
    within = []
    if over.partition_by:
        within.append(f"partition by {', '.join(_text(key, 0) for key in over.partition_by)}")
    if over.order_by:
        within.append(_order_text(over.order_by))
    if over.frame is not None:
        exclude = over.frame.exclude and f" exclude {over.frame.exclude}"
        within.append(f"{over.frame.kind} {over.frame.start} to {over.frame.end}{exclude}")
    if over.function == OF_GROUPS:
        return f"{given[0]} over ({' '.join(within)})"
    function = "count" if over.function == "count_all" else over.function
    different = "distinct " if over.distinct else ""
    return f"{function}({different}{', '.join(given)}) over ({' '.join(within)})"


def _order_text(keys: tuple[OrderedBy, ...]) -> str:
    texts = (f"{_text(key.expression, 0)}{' descending' * key.descending}" for key in keys)
    return f"order by {', '.join(texts)}"


def _aggregated_text(one: Aggregated) -> str:
    """Return an aggregate as it is written, its filter as in SQL."""
    given = [_text(argument, 0) for argument in one.arguments]
    given += [repr(value) for value in one.options.values() if value is not None and value is not False]
    order = f" {_order_text(one.order_by)}" if one.order_by else ""
    where = f" filter (where {_text(one.where, 0)})" if one.where is not None else ""
    function = "count" if one.function == "count_all" else one.function
    return f"{function}({'distinct ' * one.distinct}{', '.join(given)}{order}){where}"


def expression_text(expression: Expression) -> str:
    """Return an expression as text of bounded length."""
    if (depth := depth_of(expression)) > _DEPTH_MAX:
        return f"(an expression that is nested {depth} deep)"
    text = _text(expression, 0)
    return text if len(text) <= _TEXT_MAX else f"{text[:_TEXT_MAX]}..."
