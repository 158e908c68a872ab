"""Constants of expressions: Python values as exact Arrow scalars, and as plain data that travels in a plan.

    make_literal(value, type=None) -> Literal        literal_scalar(Literal) -> pa.Scalar

An ``int`` is int64 (uint64 when only that holds it), a ``float`` float64, a ``str`` string, None the null type; dates,
times, decimals, bytes and lists have the type that pyarrow gives them. The exact value is a record batch of one row
in Arrow IPC form; simple values stand beside it in the clear, for estimates and for the text of the expression.

Held by: tests/expressions/test_compile.py
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from engine.errors import SchemaError
from engine.graph.expression import Literal
from engine.records.plain_scalars import scalar_of
from engine.records.python_values import shown_value
from engine.records.value_check import check_values

_TEXT_MAX = 60
_END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"
#: errors of Arrow for a value that it rejects: of no type, too large, or no Unicode
_UNFIT = (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, OverflowError, ValueError)


def _infer_scalar(value: Any) -> pa.Scalar:
    if isinstance(value, pa.Scalar):
        return value
    if isinstance(value, bool):
        return scalar_of(value, pa.bool_())
    if isinstance(value, int):
        if -(2**63) <= value < 2**63:
            return scalar_of(value, pa.int64())
        if 0 <= value < 2**64:
            return pa.scalar(value, pa.uint64())
        raise SchemaError(f"the integer {value} does not fit into 64 bits; use a Decimal or a float")
    if callable(value):
        raise SchemaError(f"lit({_short(value)}): a function is no constant{_remedy(value)}")
    try:
        scalar = scalar_of(value)
        # Values of pandas are also Python's, with microseconds; their nanoseconds need a type of their own.
        if isinstance(value, datetime.datetime) and getattr(value, "nanosecond", False) and scalar.is_valid:
            return scalar_of(value, pa.timestamp("ns", scalar.type.tz))
        if isinstance(value, datetime.timedelta) and getattr(value, "nanoseconds", False) and scalar.is_valid:
            return scalar_of(value, pa.duration("ns"))
        return scalar
    except _UNFIT as error:
        raise SchemaError(f"lit({_short(value)}): cannot be a constant: {error}{_remedy(value)}") from None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _TEXT_MAX else f"{text[:_TEXT_MAX]}..."


def _remedy(value: Any) -> str:
    """Return advice about a value that does not fit."""
    if isinstance(value, datetime.timedelta):
        return "; a duration is 64 bits of microseconds: give it a coarser unit, lit(value, pa.duration('s'))"
    if isinstance(value, str):
        return "; it is no Unicode text, which Arrow's strings are: pass bytes"
    if callable(value):
        return "; @udf makes a function usable in expressions, and map(function) makes rows of rows"
    return ""


def literal_text(scalar: pa.Scalar) -> str:
    """Return a constant as a person would write it, of bounded length."""
    value = shown_value(scalar)
    text = str(value) if not isinstance(value, str | bytes) else repr(value)
    return text if len(text) <= _TEXT_MAX else f"{text[:_TEXT_MAX]}..."


def refuse_texts_alone(function: str, values: Sequence[Any]) -> None:
    """Raise SchemaError where all values are plain texts, which are constants: columns are meant."""
    if values and all(isinstance(value, str) for value in values):
        raise SchemaError(
            f"{function}({', '.join(map(repr, values))}): a text is a constant here, the same in each row; write "
            f"col({values[0]!r}) for the column, or lit({values[0]!r})"
        )


def make_literal(value: Any, data_type: pa.DataType | None = None) -> Literal:
    """Return the constant of a Python value; one that Arrow does not know raises SchemaError."""
    if data_type is None and (type(value) is int or (type(value) is str and len(value) <= _TEXT_MAX)):
        return _kept_literal(value)
    return _new_literal(value, data_type)


def _new_literal(value: Any, data_type: pa.DataType | None = None) -> Literal:
    if data_type is None or (isinstance(value, pa.Scalar) and value.type == data_type):
        scalar = _infer_scalar(value)
    else:
        try:
            if not isinstance(value, pa.Scalar | datetime.timedelta):  # a coarser unit is what helps with large ones
                check_values([value], data_type)
            scalar = scalar_of(value, data_type)
        except _UNFIT as error:
            raise SchemaError(f"lit({_short(value)}): is not {data_type}: {error}{_remedy(value)}") from None
    plain = shown_value(scalar)
    in_clear = plain if isinstance(plain, bool | int | float | str) else None
    return Literal(ipc=_scalar_to_ipc(scalar), text=literal_text(scalar), value=in_clear)


#: cache of constants: queries and their steps have the same ones again and again
_kept_literal: Final = lru_cache(maxsize=1024)(_new_literal)


def _scalar_to_ipc(scalar: pa.Scalar) -> bytes:
    """Return a stream of one batch. A filter may have tens of thousands of constants: the schema is written once."""
    array = pa.repeat(scalar, 1) if scalar.is_valid else pa.nulls(1, scalar.type)
    schema, schema_message = _schema_of(scalar.type)
    batch = pa.RecordBatch.from_arrays([array], schema=schema)
    if not schema_message:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, schema) as writer:
            writer.write_batch(batch)
        return bytes(sink.getvalue())
    return schema_message + bytes(batch.serialize()) + _END_OF_STREAM


@lru_cache(maxsize=64)
def _schema_of(data_type: pa.DataType) -> tuple[pa.Schema, bytes]:
    """Return the schema of a constant, and its message; empty where dictionaries stand between that and the values."""
    schema = pa.schema([pa.field("", data_type)])
    return schema, b"" if _has_dictionaries(data_type) else schema.serialize().to_pybytes()


@lru_cache(maxsize=64)
def _schema_from(message: bytes) -> pa.Schema | None:
    schema = pa.ipc.read_schema(pa.py_buffer(message))
    return None if _has_dictionaries(schema.field(0).type) else schema


def _has_dictionaries(data_type: pa.DataType) -> bool:
    return pa.types.is_dictionary(data_type) or any(
        _has_dictionaries(data_type.field(index).type) for index in range(data_type.num_fields)
    )


@lru_cache(maxsize=1 << 16)
def _scalar_from_ipc(ipc: bytes) -> pa.Scalar:
    # A message: a mark, the length of what describes it, that.
    schema_end = 8 + int.from_bytes(ipc[4:8], "little")
    schema = _schema_from(ipc[:schema_end])
    if schema is None:
        with pa.ipc.open_stream(pa.py_buffer(ipc)) as reader:
            return reader.read_next_batch().column(0)[0]
    return pa.ipc.read_record_batch(pa.py_buffer(ipc[schema_end:]), schema).column(0)[0]


def literal_scalar(literal: Literal) -> pa.Scalar:
    """Return the exact value of a constant."""
    return _scalar_from_ipc(literal.ipc)
