"""Iceberg's partition transforms, as the library of the extra ``iceberg`` computes them over Arrow arrays.

    partition_transform(value, transform="bucket", width=16)     bucket truncate year month day hour identity void

A null stays null, and ``void`` is null of any value. Buckets are those of Murmur3, the same for int32 and int64.

Source: Iceberg's specification, "Partition Transforms" and "Appendix B: 32-bit Hash Requirements".
Held by: tests/iceberg_tables/test_transforms.py
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from engine.errors import ConfigurationError
from engine.expressions.binding import Binding, Datum, Operand, Options, as_array


def bind_partition_transform(operands: Sequence[Operand], options: Options) -> Binding:
    """Bind a transform of one value."""
    name, width = str(options["transform"]), int(options.get("width") or 0)
    if name == "identity":
        return Binding(lambda value: value, (None,))
    if name == "void":
        return Binding(_void, (None,))
    try:
        from pyiceberg_core import transform
    except ImportError:
        raise ConfigurationError(
            "partition_transform without the package pyiceberg-core; install it: pip install 'drey-engine[iceberg]'"
        ) from None
    function = getattr(transform, name)

    def transformed(value: Datum) -> Datum:
        array = _aligned(as_array(value, 1) if isinstance(value, pa.Scalar) else as_array(value, len(value)))
        found: pa.Array = function(array, width) if width else function(array)
        return found[0] if isinstance(value, pa.Scalar) else found

    return Binding(transformed, (None,))


def _aligned(array: pa.Array) -> pa.Array:
    """Return an array whose values lie at multiples of their width, without which the library ends in a panic."""
    if not pa.types.is_decimal(array.type):
        return array
    address = array.buffers()[1].address
    return array if address % (array.type.bit_width // 8) == 0 else pa.concat_arrays([array, array.slice(0, 0)])


def _void(value: Datum) -> Datum:
    return pa.scalar(None, value.type) if isinstance(value, pa.Scalar) else pa.nulls(len(value), value.type)
