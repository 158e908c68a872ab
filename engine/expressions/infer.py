"""Types of expressions, known before any row is read.

Held by: tests/expressions/test_compile.py
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from engine.errors import SchemaError
from engine.expressions.binding import UNFIT
from engine.expressions.compile import column_index, compile_operand
from engine.expressions.literals import literal_scalar, make_literal
from engine.expressions.text import expression_text
from engine.expressions.text_moments import moments_for_texts
from engine.graph.expression import (
    Call,
    Case,
    Cast,
    ColumnRef,
    Expression,
    Literal,
    NamedExpression,
    children_of,
    depth_of,
    with_children,
)
from engine.graph.function_table import FUNCTION_TABLE, is_deterministic

#: limit of nested expressions: walks recurse, some with three calls a level, and Python allows a thousand
DEPTH_MAX = 200
#: types of functions, casts and cases by what they are over: the types of operands, and constants
_TYPES: Final[dict[tuple[Any, ...], pa.DataType]] = {}
_TYPES_MAX: Final = 4096
#: most bytes of constants that one of them has
_KEY_BYTES_MAX: Final = 8 << 10
#: batch over which constants are evaluated
_NO_COLUMNS: Final = pa.record_batch({"": pa.nulls(1)})


def infer_type(expression: Expression, schema: pa.Schema) -> pa.DataType:
    """Return the type of an expression over a schema; SchemaError when it has none, or is nested too deep to walk.

    One with another value each time is refused: only a projection takes it, which is evaluated once for each row.
    """
    if not isinstance(expression, ColumnRef | Literal) and not is_deterministic(expression):
        raise SchemaError(
            f"{expression_text(expression)}: rand(), uuid() and row_place() stand in select and with_columns only; "
            "make it a column first, with_columns(r=rand()), and use the column"
        )
    return _type_of(expression, schema)


def _type_of(expression: Expression, schema: pa.Schema) -> pa.DataType:
    if not isinstance(expression, ColumnRef | Literal):
        check_depth(expression)
    return _typed(expression, schema)[0]


def _typed(expression: Expression, schema: pa.Schema) -> tuple[pa.DataType, bool]:
    """Return the type of an expression, and whether it reads a column: else others may look at its value, too."""
    if isinstance(expression, ColumnRef):
        return schema.field(column_index(expression.name, schema)).type, True
    if isinstance(expression, Literal):
        return literal_scalar(expression).type, False
    key, reads_column = _key_of(expression, schema)
    known = _TYPES.get(key)
    if known is None:
        known = compile_operand(expression, schema).type
        if key:
            if len(_TYPES) >= _TYPES_MAX:
                _TYPES.clear()
            _TYPES[key] = known
    return known, reads_column


def _key_of(expression: Expression, schema: pa.Schema) -> tuple[tuple[Any, ...], bool]:
    """Return the key of an expression's type, () where there is none, and whether the expression reads a column."""
    match expression:
        case Call(function=function, options=options):
            parts: list[Any] = [function, repr(options) if options else ""]
        case Cast(type_ipc=type_ipc, widens=widens):
            parts = [type_ipc, widens]
        case Case(branches=branches):
            parts = [len(branches)]
        case _:
            return (), True
    reads_column, is_plain, size = False, True, 0
    for one in children_of(expression):
        data_type, reads = _typed(one, schema)
        if isinstance(one, Literal):
            size += len(one.ipc)
            parts.append(one.ipc)
            continue
        # equal nested types may differ in the metadata of their fields
        is_plain = is_plain and reads and not data_type.num_fields
        reads_column = reads_column or reads
        parts.append(data_type)
    return tuple(parts) if is_plain and size <= _KEY_BYTES_MAX else (), reads_column


def check_depth(expression: Expression) -> None:
    """Raise SchemaError for an expression that is nested too deep to walk."""
    depth = depth_of(expression)
    if depth > DEPTH_MAX:
        raise SchemaError(
            f"an expression is nested {depth} deep, at most {DEPTH_MAX} are possible: make a part of it a column by "
            "with_columns() first, use is_in() for many comparisons, or one when() for many cases"
        )


def infer_schema(named: Sequence[NamedExpression], schema: pa.Schema) -> pa.Schema:
    """Return the schema that a projection makes; a column that is only renamed keeps its nullability."""
    fields = []
    known = {field.name: field for field in schema} if len(named) > 1 else {}
    for one in named:
        if isinstance(one.expression, ColumnRef):
            name = one.expression.name
            field = known.get(name) or schema.field(column_index(name, schema))
            is_same = field.name == one.name and field.metadata is None
            fields.append(field if is_same else pa.field(one.name, field.type, field.nullable))
        else:
            fields.append(pa.field(one.name, _type_of(one.expression, schema)))
    return pa.schema(fields)


def check_predicate(expression: Expression, schema: pa.Schema) -> None:
    """Raise SchemaError when an expression is no condition over a schema."""
    data_type = infer_type(expression, schema)
    if not (pa.types.is_boolean(data_type) or pa.types.is_null(data_type)):
        raise SchemaError(f"{expression_text(expression)} is {data_type}; a condition must be a bool")


def with_constants(expression: Expression) -> Expression:
    """Return an expression with constants in place of what is computed of constants alone, so that statistics apply.

    What has no value (1 / 0) stays, and fails where a row is there to be computed.
    """
    return expression if depth_of(expression) > DEPTH_MAX else _with_constants(expression)


def _with_constants(expression: Expression) -> Expression:
    children = [_with_constants(child) for child in children_of(expression)]
    found = with_children(expression, children)
    if not children or not isinstance(expression, Call | Cast) or not all(isinstance(one, Literal) for one in children):
        return found
    if not is_deterministic(found) or (isinstance(found, Call) and found.function not in FUNCTION_TABLE):
        return found
    try:
        value = compile_operand(found, _NO_COLUMNS.schema).evaluate(_NO_COLUMNS)
        constant = value if isinstance(value, pa.Scalar) else value[0]
        return make_literal(constant) if constant.is_valid and _is_plain(constant.type) else found
    except (SchemaError, *UNFIT):
        return found


def _is_plain(data_type: pa.DataType) -> bool:
    """Whether statistics are of values of a type."""
    return not pa.types.is_nested(data_type) and not pa.types.is_interval(data_type)


def with_typed_texts(expression: Expression, schema: pa.Schema) -> Expression:
    """Return an expression with texts beside dates and times as what they are compared as, so that estimates know them.

    It means the same without: texts are typed where an expression is compiled, too.
    """
    children = [with_typed_texts(child, schema) for child in children_of(expression)]
    if isinstance(expression, Call) and any(isinstance(each, Literal) and type(each.value) is str for each in children):
        operands = [compile_operand(child, schema) for child in children]
        typed = moments_for_texts(FUNCTION_TABLE[expression.function], operands)
        children = [
            child if now is before or now.constant is None else make_literal(now.constant)
            for child, before, now in zip(children, operands, typed, strict=True)
        ]
    return with_children(expression, children)
