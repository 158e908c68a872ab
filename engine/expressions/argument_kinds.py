"""Kinds of arguments in the table of functions: which types a kind takes, and which it widens to.

    number      integers as int64 (uint64 stays), floats (float16 as float32), decimals
    float       float32 stays, every other number is float64
    integer     int64
    bool text binary moment list map struct      just these; a list of fixed size is a list
    constant    a value that is the same for all rows
    any         everything

Null is of every kind. What a kind does not take raises NoMatchError with what helps.

Held by: tests/expressions/test_function_table.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa

from engine.expressions.binding import Binding, Datum, NoMatchError, Operand, Options
from engine.expressions.common_type import is_fixed_bytes, is_number, result_type_of
from engine.graph.function_row import VALUES, FunctionRow
from engine.records.plain_types import span_remedy

_INT64: Final = pa.int64()
_FLOAT64: Final = pa.float64()


def is_text(data_type: pa.DataType) -> bool:
    """Return whether values are strings."""
    return bool(pa.types.is_string(data_type) or pa.types.is_large_string(data_type))


def is_list(data_type: pa.DataType) -> bool:
    """Return whether values are lists, of whatever length."""
    types = pa.types
    return bool(types.is_list(data_type) or types.is_large_list(data_type) or types.is_fixed_size_list(data_type))


def number(data_type: pa.DataType) -> pa.DataType:
    """Return the type in which a function works on a number."""
    if pa.types.is_null(data_type):
        return _INT64
    if not is_number(data_type):
        remedy = span_remedy(data_type) or "cast to pa.int64(), pa.float64() or a decimal first"
        raise NoMatchError(f"it works on numbers; {remedy}")
    if pa.types.is_integer(data_type):
        return data_type if pa.types.is_uint64(data_type) else _INT64
    return pa.float32() if pa.types.is_float16(data_type) else data_type


def _float(data_type: pa.DataType) -> pa.DataType:
    wanted = number(data_type)
    return wanted if pa.types.is_float32(wanted) else _FLOAT64


def _integer(data_type: pa.DataType) -> pa.DataType:
    if not (pa.types.is_integer(data_type) or pa.types.is_null(data_type)):
        raise NoMatchError("it works on integers; cast to pa.int64() first")
    return _INT64


def _bool(data_type: pa.DataType) -> pa.DataType:
    if not (pa.types.is_boolean(data_type) or pa.types.is_null(data_type)):
        raise NoMatchError("it works on bools: compare first, as in col('a') > 1")
    return pa.bool_()


def text(data_type: pa.DataType) -> pa.DataType:
    """Return the type in which a function works on a string."""
    if pa.types.is_null(data_type):
        return pa.string()
    if not is_text(data_type):
        raise NoMatchError(".str works on strings; cast to pa.string() first")
    return data_type


def _binary(data_type: pa.DataType) -> pa.DataType:
    """Strings count as their bytes."""
    if pa.types.is_null(data_type):
        return pa.binary()
    if is_text(data_type) or pa.types.is_binary(data_type) or pa.types.is_large_binary(data_type):
        return data_type
    if not is_fixed_bytes(data_type):
        raise NoMatchError("it works on binary values and strings; cast to pa.string() or pa.binary() first")
    return pa.binary()


def _list(data_type: pa.DataType) -> pa.DataType:
    if pa.types.is_null(data_type):
        return pa.list_(pa.null())
    if not is_list(data_type):
        raise NoMatchError(".list works on lists: array(...) and .str.split(...) make some")
    return pa.list_(data_type.value_type) if pa.types.is_fixed_size_list(data_type) else data_type


def _map(data_type: pa.DataType) -> pa.DataType:
    if not pa.types.is_map(data_type):
        raise NoMatchError(".map works on maps: map_from(keys, values) makes one")
    return data_type


def _struct(data_type: pa.DataType) -> pa.DataType:
    if not pa.types.is_struct(data_type):
        raise NoMatchError("field() works on structs: struct(name=...) makes one")
    return data_type


_KINDS: Final[dict[str, Callable[[pa.DataType], pa.DataType]]] = {
    "number": number,
    "float": _float,
    "integer": _integer,
    "bool": _bool,
    "text": text,
    "binary": _binary,
    "list": _list,
    "map": _map,
    "struct": _struct,
}


def type_of_kind(kind: str, data_type: pa.DataType) -> pa.DataType | None:
    """Return the type that an argument of a kind is cast to, None: as it is; NoMatchError where it is of another."""
    resolve = _KINDS.get(kind)
    wanted = data_type if resolve is None else resolve(data_type)
    return None if wanted == data_type else wanted


def common(operands: Sequence[Operand]) -> pa.DataType:
    """Return the common type of operands as that of a result; NoMatchError where they have none."""
    data_type = result_type_of([operand.type for operand in operands])
    if data_type is None:
        raise NoMatchError("they have no common type: cast some of them")
    return data_type


def bind_by_kinds(
    row: FunctionRow, kernel: Callable[..., Datum], operands: Sequence[Operand], options: Options
) -> Binding:
    """Return the binding of an Arrow function: arguments as their kinds say, options by name."""
    types = tuple(type_of_kind(row.kind(index), operand.type) for index, operand in enumerate(operands))
    if options:
        given = dict(options)
        return Binding(lambda *data: kernel(*data, **given), types, can_raise=row.fails == VALUES)
    return Binding(kernel, types, can_raise=row.fails == VALUES)
