"""Arrow scalars of Python's simple values, made from their bytes.

    scalar_of(value, data_type=None) -> pa.Scalar

``pa.scalar`` and ``pa.array`` look whether a value is one of pandas, and import pandas for that where it is installed,
which is a quarter of the time that a small job takes. A value whose bytes are known needs no look: bool, int, float,
str, None. Everything else goes to ``pa.scalar``. Empty arrays and nulls are ``pa.nulls(count, data_type)``.
"""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa


def scalar_of(value: Any, data_type: pa.DataType | None = None) -> pa.Scalar:
    """Return a scalar exactly as ``pa.scalar(value, data_type)`` does; what it raises is raised here too."""
    if value is None:
        return pa.nulls(1, data_type)[0]
    values = _value_buffers(value, data_type)
    if values is None:
        return pa.scalar(value, data_type)
    plain_type, buffers = values
    return pa.Array.from_buffers(plain_type, 1, [None, *map(pa.py_buffer, buffers)], null_count=0)[0]


def _value_buffers(value: Any, data_type: pa.DataType | None) -> tuple[pa.DataType, list[bytes]] | None:
    """Return type and buffers of one value; None when it is not simple or the type is not its own."""
    kind = type(value)
    if kind is bool and data_type in (None, pa.bool_()):
        return pa.bool_(), [bytes([value])]
    if kind is int and data_type in (None, pa.int64()) and -(2**63) <= value < 2**63:
        return pa.int64(), [struct.pack("=q", value)]
    if kind is float and data_type in (None, pa.float64()):
        return pa.float64(), [struct.pack("=d", value)]
    if kind is str and data_type in (None, pa.string(), pa.large_string()):
        try:
            text = value.encode()
        except UnicodeEncodeError:
            return None
        is_large = data_type == pa.large_string()
        return data_type or pa.string(), [struct.pack("=qq" if is_large else "=ii", 0, len(text)), text]
    return None
