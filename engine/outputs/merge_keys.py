"""The keys of a merge: columns of both sides that can be compared, and between which values those of the source lie.

    check_keys(keys, table's schema, source's schema)     SchemaError, ConfigurationError
    are_comparable(one type, another)           whether there is a type that has all values of both
    bounds = key_bounds(source, keys)           lowest and highest value, of the source's type
    in_table(bounds, sides)                     the same as values of the table's, where it has them

Keys of different types match where both are the same value in a type that holds all values of both: numbers of
different width, decimals of different scale. A long and a double have none, and neither have a text and a number.

Held by: tests/delta_tables/test_merge_clauses.py
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from engine.column_expressions.expressions import max_, min_
from engine.errors import ConfigurationError, SchemaError
from engine.expressions.common_type import common_type

_CALL: Final = "merge_into"
#: bits of the largest integers of which a double has all
_DOUBLE_BITS: Final = 32

#: lowest and highest value, by column
Bounds = Mapping[str, tuple[Any, Any]]


def check_keys(keys: Sequence[str], table: pa.Schema, source: pa.Schema) -> None:
    """Raise an error for keys that are not there, are there twice, or cannot be compared."""
    if not keys:
        raise ConfigurationError(f"{_CALL}: on=[]: name the columns by which rows match")
    for number, key in enumerate(keys):
        for side, schema in (("the table", table), ("the data set", source)):
            if key not in schema.names:
                raise SchemaError(f"{_CALL}: on={key!r}: {side} has no such column; it has {schema.names}")
        if key in keys[:number]:
            raise ConfigurationError(f"{_CALL}: on={list(keys)!r}: {key!r} is there twice; name each column once")
        own, found = table.field(key).type, source.field(key).type
        if not are_comparable(own, found):
            raise SchemaError(
                f"{_CALL}: on={key!r}: it is {own} in the table and {found} in the data set, which cannot be"
                f" compared exactly; cast it: .with_columns({key}=col({key!r}).cast(...))"
            )


def are_comparable(left: pa.DataType, right: pa.DataType) -> bool:
    """Return whether there is a type that has all values of both."""
    common = common_type(left, right)
    if common is None or left == right or not pa.types.is_floating(common):
        return common is not None
    return all(
        pa.types.is_floating(each) or (pa.types.is_integer(each) and each.bit_width <= _DOUBLE_BITS)
        for each in (left, right)
    )


def key_bounds(source: Any, keys: Sequence[str]) -> Bounds:
    """Return the lowest and the highest value of each key that has an order; of nulls alone there are none."""
    ordered = [key for key in keys if _has_order(source.schema.field(key).type)]
    if not ordered:
        return {}
    asked = {f"{word} {key}": call(key) for key in ordered for word, call in (("low", min_), ("high", max_))}
    found = source.agg(**asked).to_arrow()
    bounds = {}
    for key in ordered:
        try:
            low, high = found.column(f"low {key}")[0].as_py(), found.column(f"high {key}")[0].as_py()
        except (ValueError, OverflowError):
            continue  # a moment that Python has not
        if low is not None:
            bounds[key] = low, high
    return bounds


def in_table(bounds: Bounds, table: pa.Schema, source: pa.Schema) -> Bounds:
    """Return bounds as values of a table's columns, without those for which it has none."""
    found = {}
    for key, pair in bounds.items():
        try:
            low, high = pa.array(pair, source.field(key).type).cast(table.field(key).type).to_pylist()
        except (pa.ArrowException, ValueError, OverflowError):
            continue
        found[key] = low, high
    return found


def _has_order(data_type: pa.DataType) -> bool:
    """Return whether the lowest and the highest value of a type rule out files."""
    simple = (pa.types.is_integer, pa.types.is_string, pa.types.is_date, pa.types.is_decimal)
    # Python has no moments of nanoseconds.
    is_moment = pa.types.is_timestamp(data_type) and data_type.unit != "ns"
    return is_moment or any(is_kind(data_type) for is_kind in simple)
