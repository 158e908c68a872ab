"""Types as users write them: pyarrow's, their names, Python's.

Held by: tests/api/test_expression.py
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from engine.errors import SchemaError

_PYTHON_TYPES: dict[Any, pa.DataType] = {int: pa.int64(), float: pa.float64(), str: pa.string(), bool: pa.bool_()}


def to_data_type(data_type: Any) -> pa.DataType:
    """Return a pyarrow type from itself, its name, or a Python type; SchemaError when it is none."""
    if isinstance(data_type, pa.DataType):
        return data_type
    if data_type in _PYTHON_TYPES:
        return _PYTHON_TYPES[data_type]
    try:
        return pa.type_for_alias(data_type)
    except (ValueError, TypeError, AttributeError):
        raise SchemaError(
            f"{data_type!r} is no type: use a pyarrow type such as pa.int64(), or its name such as 'int64'"
        ) from None
