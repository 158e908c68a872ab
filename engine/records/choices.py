"""Choices between values of any type, of which the result has the same type.

    if_else(condition, one, other)      coalesce(one, other...)

Arrow's kernels know no extension types, no constants with null children, and make wide decimals of narrow ones.

Held by: tests/types_table/test_types_table.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from engine.records.arrow_functions import pc
from engine.records.stored_types import stored


def if_else(condition: Any, one: Any, other: Any) -> Any:
    """Return one where the condition is true, and other where it is false."""
    return _chosen(lambda *values: pc.if_else(condition, *values), (one, other), condition)


def coalesce(*values: Any) -> Any:
    """Return the first value that is not null."""
    return _chosen(pc.coalesce, values)


def _chosen(kernel: Callable[..., Any], values: Sequence[Any], *beside: Any) -> Any:
    data_type = values[0].type
    if pa.types.is_nested(data_type) and any(isinstance(each, pa.Scalar) for each in values):
        size = next((len(each) for each in (*values, *beside) if isinstance(each, pa.Array)), 0)
        values = [pa.repeat(each, size) if size and isinstance(each, pa.Scalar) else each for each in values]
    found = kernel(*map(stored, values))
    return found if found.type == data_type else found.cast(data_type)
