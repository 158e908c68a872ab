"""Sums of one column plus constants: sum(x + 1), sum(x + 2), sum(x - 3) are computed from sum(x) and count(x).

    shared_sums(outputs, schema) -> outputs

    sum(x + c)   ──►   sum(x) + count(x) * c          each with the filter of the sum, which is a part of what is shared

Done where three sums or more over a column would be states of their own: two are no more than their sum and count.
Limits: of integers up to 32 bits and constants as small, whose sums stay within 64 bits below two thousand million rows
either way. Both are null where no row has a value.

Source: DuckDB's sum rewriter does the same.
Held by: tests/api/test_shared_sums.py
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
from msgspec.structs import replace

from engine.expressions.literals import make_literal
from engine.graph.expression import Aggregated, Call, Cast, ColumnRef, Expression, Literal, NamedExpression, replaced

_SUMS_MIN: Final = 3
_NARROW: Final = frozenset({pa.int8(), pa.int16(), pa.int32()})
_CONSTANT_MAX: Final = (1 << 31) - 1
_SIGNS: Final = {"add": 1, "subtract": -1}

#: column and constant
Term = tuple[ColumnRef, int]


def shared_sums(outputs: Sequence[NamedExpression], schema: pa.Schema) -> Sequence[NamedExpression]:
    """Return expressions of aggregates of the rows of a schema, sums over the same column computed from one sum."""
    sums: list[tuple[ColumnRef, Expression | None, set[int]]] = []

    def noted(part: Expression) -> Expression | None:
        if not isinstance(part, Aggregated):
            return None
        term = _term(part, schema)
        if term is not None:
            column, constant = term
            known = next((one for one in sums if one[:2] == (column, part.where)), None)
            if known is None:
                sums.append((column, part.where, {constant}))
            else:
                known[2].add(constant)
        return part

    for output in outputs:
        replaced(output.expression, noted)
    shared = [(column, where) for column, where, constants in sums if len(constants) >= _SUMS_MIN]
    if not shared:
        return outputs

    def written(part: Expression) -> Expression | None:
        if not isinstance(part, Aggregated):
            return None
        term = _term(part, schema)
        return part if term is None or (term[0], part.where) not in shared else _from_sum(part, *term)

    return [NamedExpression(output.name, replaced(output.expression, written)) for output in outputs]


def _term(one: Aggregated, schema: pa.Schema) -> Term | None:
    """Return the term of a sum over a column of narrow integers and a constant; None: it is another sum."""
    if one.function != "sum" or one.distinct or len(one.arguments) != 1:
        return None
    argument = one.arguments[0]
    if (column := _narrow(argument, schema)) is not None:
        return column, 0
    if not isinstance(argument, Call) or argument.function not in _SIGNS:
        return None
    left, right = argument.arguments
    if argument.function == "add" and isinstance(left, Literal):
        left, right = right, left
    column = _narrow(left, schema)
    if column is None or not isinstance(right, Literal) or type(right.value) is not int:
        return None
    return None if abs(right.value) > _CONSTANT_MAX else (column, _SIGNS[argument.function] * right.value)


def _narrow(value: Expression, schema: pa.Schema) -> ColumnRef | None:
    """Return the column of narrow integers that a value is, as it is or as int64."""
    if isinstance(value, Cast) and value.type_text == "int64":
        value = value.operand
    if not isinstance(value, ColumnRef) or schema.get_field_index(value.name) < 0:
        return None
    return value if schema.field(value.name).type in _NARROW else None


def _from_sum(one: Aggregated, column: ColumnRef, constant: int) -> Expression:
    total = replace(one, arguments=(column,))
    if constant == 0:
        return total
    count = replace(one, function="count", arguments=(column,))
    return Call("add", (total, Call("multiply", (count, make_literal(constant, pa.int64())))))
