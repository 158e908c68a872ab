"""Schemas that the script does not give: of Python rows, and of what a function returns.

    schema_of_rows(rows, what)                  names and types of rows that are there
    function_schema(kind, fn, schema, first_rows)
        schema given           ──► it
        return type hints      ──► NamedTuple, TypedDict, dataclass, tuple[int, str]; Iterator[...] of them for flat_map
        the first rows         ──► the function is called with them in a worker, once, and its rows are looked at
        else                   ──► SchemaError that says what to pass

Names are those of dicts and of rows with names; plain tuples have column_0, column_1 and so on, as files have. What the
first rows decided is told, as a schema to be copied into the program: a later row that does not fit fails the job.

The first calls are a job like any other (``engine.functions.first_calls``): what a function does for very long is told
of and ended there. Only kinds that ``first_calls`` knows are called so; hints work for all of them.

Held by: tests/integration/test_schema_inference.py
"""

from __future__ import annotations

import dataclasses
import datetime
import inspect
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
import pyarrow as pa

from engine.errors import SchemaError
from engine.expressions.column_names import column_field
from engine.functions.first_calls import KINDS, RESULT_SCHEMA, first_calls
from engine.functions.function_error import UserFunctionError
from engine.functions.python_functions import check_function, is_async, python_function
from engine.functions.row import Row
from engine.functions.user_function import function_of, is_rich
from engine.graph.call_policy import CallPolicy
from engine.graph.plan import PythonFunction
from engine.records.plain_scalars import array_of
from engine.user_warnings import warn_user

_TEXT_MAX: Final = 80
_CONVERSION_ERRORS: Final = (pa.ArrowException, OverflowError, TypeError, ValueError)
_HINTS: Final[dict[Any, pa.DataType]] = {
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bool: pa.bool_(),
    bytes: pa.binary(),
    datetime.date: pa.date32(),
    datetime.datetime: pa.timestamp("us"),
    datetime.time: pa.time64("us"),
    datetime.timedelta: pa.duration("us"),
}
_DECIMAL_DIGITS: Final = 38
#: calls of pyarrow for types that it shows by another name
_TYPE_TEXTS: Final = {
    pa.bool_(): "pa.bool_()",
    pa.float16(): "pa.float16()",
    pa.float32(): "pa.float32()",
    pa.float64(): "pa.float64()",
    pa.date32(): "pa.date32()",
    pa.date64(): "pa.date64()",
    pa.uuid(): "pa.uuid()",
}


def schema_text(schema: pa.Schema) -> str:
    """Return a schema as a program writes it."""
    types_text = ", ".join(f'("{field.name}", {_type_text(field.type)})' for field in schema)
    return f"pa.schema([{types_text}])"


def _type_text(data_type: pa.DataType) -> str:
    types = pa.types
    if types.is_struct(data_type):
        fields = ", ".join(f'("{field.name}", {_type_text(field.type)})' for field in data_type)
        return f"pa.struct([{fields}])"
    if types.is_map(data_type):
        return f"pa.map_({_type_text(data_type.key_type)}, {_type_text(data_type.item_type)})"
    if types.is_fixed_size_list(data_type):
        return f"pa.list_({_type_text(data_type.value_type)}, {data_type.list_size})"
    if types.is_list(data_type) or types.is_large_list(data_type):
        call = "list_" if types.is_list(data_type) else "large_list"
        return f"pa.{call}({_type_text(data_type.value_type)})"
    if types.is_timestamp(data_type):
        zone = f', tz="{data_type.tz}"' if data_type.tz else ""
        return f'pa.timestamp("{data_type.unit}"{zone})'
    if types.is_time(data_type) or types.is_duration(data_type):
        name = str(data_type).partition("[")[0]
        return f'pa.{name}("{data_type.unit}")'
    if types.is_decimal(data_type):
        return f"pa.decimal{data_type.bit_width}({data_type.precision}, {data_type.scale})"
    if types.is_fixed_size_binary(data_type):
        return f"pa.binary({data_type.byte_width})"
    return _TYPE_TEXTS.get(data_type) or f"pa.{data_type}()"


# rows ------------------------------------------------------------------------------------------------------------


def schema_of_rows(rows: Sequence[Any], what: str, *, is_all: bool = True) -> pa.Schema:
    """Return the schema of rows; ``is_all``: there are no others, so a column of nulls may be text.

    Raises: SchemaError naming the row or the column that has none.
    """
    names = _names_of(rows, what)
    columns = list(zip(*(_values(row, names, index, what) for index, row in enumerate(rows)), strict=True))
    fields = []
    for name, values in zip(names, columns, strict=True):
        try:
            data_type = array_of(values).type
        except _CONVERSION_ERRORS as error:
            reason = str(error).partition("\n")[0]
            raise SchemaError(
                f"{what}: column {name!r} has values of no one type ({reason}); make them alike, or pass schema="
            ) from None
        if pa.types.is_timestamp(data_type) and _are_mixed(values):
            raise SchemaError(
                f"{what}: column {name!r} has datetimes with a time zone and others without one; give all of them one:"
                " value.replace(tzinfo=timezone.utc)"
            )
        if pa.types.is_null(data_type):
            if not is_all:
                raise SchemaError(f"{what}: column {name!r} is null in all of the first {len(rows)} rows; pass schema=")
            data_type = pa.string()
        elif pa.types.is_decimal(data_type):
            data_type = pa.decimal128(_DECIMAL_DIGITS, data_type.scale)
        fields.append(column_field(name, data_type, what))
    return pa.schema(fields)


def _are_mixed(values: Iterable[Any]) -> bool:
    """Return whether some datetimes have a time zone and some have none, which Arrow takes for UTC."""
    return len({value.tzinfo is None for value in values if isinstance(value, datetime.datetime)}) > 1


def plain_rows(rows: Iterable[Any]) -> list[Any]:
    """Return rows with dataclass instances as dicts of their fields."""
    return [_plain(row) for row in rows]


def _plain(row: Any) -> Any:
    if dataclasses.is_dataclass(row) and not isinstance(row, type):
        return {field.name: getattr(row, field.name) for field in dataclasses.fields(row)}
    return row


def _names_of(rows: Sequence[Any], what: str) -> list[str]:
    if not rows:
        raise SchemaError(f"{what}: there are no rows that a schema could be inferred from; pass schema=")
    first = rows[0]
    if isinstance(first, Mapping):
        names = list(dict.fromkeys(name for row in rows if isinstance(row, Mapping) for name in row))
    elif isinstance(first, Row) or hasattr(first, "_fields"):
        names = list(first._fields)
    elif isinstance(first, Sequence) and not isinstance(first, str | bytes):
        names = [f"column_{index}" for index in range(len(first))]
    else:
        raise _no_row(first, 0, what)
    if not names or not all(isinstance(name, str) and name for name in names):
        raise SchemaError(f"{what}: row 0 has no columns, or names that are no text: {names!r}")
    return names


def _values(row: Any, names: list[str], index: int, what: str) -> Sequence[Any]:
    if isinstance(row, Mapping):
        missing = [name for name in names if name not in row]
        if missing:
            raise SchemaError(f"{what}: row {index} has no {', '.join(missing)}; give it as None, or call from_dicts")
        return [row[name] for name in names]
    if not isinstance(row, Sequence) or isinstance(row, str | bytes):
        raise _no_row(row, index, what)
    if len(row) != len(names):
        raise SchemaError(f"{what}: row {index} has {len(row)} values, the first one {len(names)}: {', '.join(names)}")
    return row


def _no_row(value: Any, index: int, what: str) -> SchemaError:
    shown = repr(value)
    shown = shown if len(shown) <= _TEXT_MAX else f"{shown[:_TEXT_MAX]}..."
    return SchemaError(
        f"{what}: {shown} ({type(value).__name__}, row {index}) is no row: a row is a dict such as {{'name': value}},"
        " a tuple or a list"
    )


# functions -------------------------------------------------------------------------------------------------------

#: kinds whose functions return rows one by one; others return iterables of rows
_ONE_BY_ONE: Final = frozenset({"map"})


#: function that runs a function over the first rows and returns its results
FirstResults = Callable[[PythonFunction, pa.Schema], pa.Table]


def function_schema(
    kind: str,
    function: Any,
    schema: Any,
    first_results: FirstResults,
    arguments: tuple[str, ...] = (),
    policy: CallPolicy | None = None,
) -> Any:
    """Return the schema of what a function of a kind returns: the one given, or what hints or the first rows say.

    ``first_results`` runs a function behind what comes before it; ``arguments``: columns whose values it is given, or
    by which rows are groups; ``policy``: whether the function may fail for some rows. Raises: SchemaError where nothing
    says the schema.
    """
    if schema is not None:
        return schema
    check_function(kind, function)
    call = function_of(kind, function)
    assert call is not None, "it was checked"
    hinted = _hinted_schema(call, is_iterable=kind not in _ONE_BY_ONE)
    if hinted is not None:
        return hinted
    if kind not in KINDS or is_rich(function) or is_async(kind, function):
        raise SchemaError(
            f"{kind}: schema= is missing: pass the pyarrow.Schema of what the function returns, such as"
            ' pa.schema([("name", pa.string())]), or give the function a return type such as a NamedTuple'
        )
    name = getattr(call, "__qualname__", type(call).__name__)
    operator = msgspec.structs.replace(python_function(kind, function), arguments=arguments, policy=policy)
    untyped = _untyped_hint(call, is_iterable=kind not in _ONE_BY_ONE)
    return _observed_schema(operator, f"{kind}({name})", first_results, untyped)


def _observed_schema(function: PythonFunction, what: str, first_results: FirstResults, untyped: str) -> pa.Schema:
    """Return the schema of a function's first results. ``untyped``: why its return type says none, "" without one."""
    observed = first_results(first_calls(function, _Observer(what)), RESULT_SCHEMA).to_pylist()
    if not observed:
        raise SchemaError(f"{what}: there are no rows that a schema could be inferred from; pass schema=")
    (result,) = observed
    if result["error"]:
        raise SchemaError(result["error"] + untyped)
    schema = pa.ipc.read_schema(pa.py_buffer(result["result"]))
    warn_user(
        f"{what}: no schema= was passed, so the function was called with the first {result['row_count']} rows to infer"
        f" it{untyped}; pass schema={schema_text(schema)}"
    )
    return schema


class _Observer:
    """Makes a schema of a function's first results, in the worker; what the rows hold needs no way back."""

    def __init__(self, what: str) -> None:
        self._what = what

    def result(self, made: list[Any]) -> bytes:
        """Return the schema as bytes; SchemaError where the rows have none."""
        return bytes(schema_of_rows(plain_rows(made), self._what, is_all=False).serialize())

    def error(self, failure: UserFunctionError) -> str:
        """Return the text shown where the function failed."""
        return (
            f"{self._what}: {failure.type_name}: {failure.message}, raised in {failure.file}, line {failure.line}, for"
            f" {failure.row}, one of the first rows, which decide the schema that was not passed"
        )


def _row_hints(call: Callable[..., Any], *, is_iterable: bool) -> dict[str, Any]:
    """Return the type hints of the columns that the return type of a function has, none where it has none."""
    hint = _return_hint(call)
    if is_iterable:
        arguments = typing.get_args(hint)
        hint = arguments[0] if arguments else None
    return {} if hint is None else _named_hints(hint) or {}


def _untyped_hint(call: Callable[..., Any], *, is_iterable: bool) -> str:
    """Return the column of a return type whose type columns cannot have, "" for none."""
    for name, hint in _row_hints(call, is_iterable=is_iterable).items():
        if _hinted_type(hint) is None:
            text = hint.__name__ if isinstance(hint, type) and not typing.get_args(hint) else str(hint)
            return f" (its return type does not say of which type the column {name!r} is: {text})"
    return ""


def _hinted_schema(call: Callable[..., Any], *, is_iterable: bool) -> pa.Schema | None:
    """Return the schema that the return type of a function says, None where it does not."""
    named = _row_hints(call, is_iterable=is_iterable)
    found = {name: _hinted_type(each) for name, each in named.items()}
    if not found or None in found.values():
        return None
    return pa.schema([column_field(name, data_type, "schema") for name, data_type in found.items()])


def hinted_type(hint: Any) -> pa.DataType | None:
    """Return the type of values that a type hint says, None where it says none."""
    return _hinted_type(hint)


def hinted_value_type(function: Any) -> pa.DataType | None:
    """Return the type of the value that the return type of a function says, None where it does not."""
    return _hinted_type(_return_hint(function))


def _return_hint(call: Any) -> Any:
    target = call if inspect.isroutine(call) else type(call).__call__
    try:
        return typing.get_type_hints(target).get("return")
    except (NameError, TypeError, AttributeError):
        return None


def _named_hints(hint: Any) -> dict[str, Any] | None:
    if typing.get_origin(hint) is tuple:
        parts = typing.get_args(hint)
        return None if Ellipsis in parts else {f"column_{index}": part for index, part in enumerate(parts)}
    if (isinstance(hint, type) and hasattr(hint, "_fields")) or typing.is_typeddict(hint):
        return typing.get_type_hints(hint)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        hints = typing.get_type_hints(hint)
        return {field.name: hints[field.name] for field in dataclasses.fields(hint)}
    return None


def _hinted_type(hint: Any) -> pa.DataType | None:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        parts = [part for part in typing.get_args(hint) if part is not type(None)]
        return _hinted_type(parts[0]) if len(parts) == 1 else None
    if typing.get_origin(hint) is list:
        inner = _hinted_type(typing.get_args(hint)[0])
        return None if inner is None else pa.list_(inner)
    return _HINTS.get(hint) if isinstance(hint, type) else None
