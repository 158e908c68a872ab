"""Meaning: expressions over a schema as a key of what is kept of them, such as their type or what they compile to.

    Meaning(expressions, schema)     .may_be_kept: whether it is small, and the same each time

Two are equal when the bytes of their expressions are (1, 1.0 and True are three), and their schemas to the metadata.

Held by: tests/expressions/test_evaluate.py
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
import pyarrow as pa

from engine.graph.expression import Expression
from engine.graph.function_table import is_deterministic

#: largest size of one that is kept, encoded
_KEPT_BYTES_MAX: Final = 32 << 10
_KEPT_COLUMNS_MAX: Final = 100
_encoder: Final = msgspec.msgpack.Encoder()


class Meaning:
    """The key of compiled expressions: the expressions and their schema."""

    __slots__ = ("_encoded", "expressions", "schema")

    def __init__(self, expressions: Sequence[Expression], schema: pa.Schema) -> None:
        self.expressions = expressions
        self.schema = schema
        self._encoded = _bytes_of(expressions)

    @property
    def encoded_bytes(self) -> int:
        """The size of the expressions, encoded."""
        return len(self._encoded)

    @property
    def may_be_kept(self) -> bool:
        """Whether the program may be kept: the expressions are few, and deterministic."""
        is_small = 0 < len(self._encoded) <= _KEPT_BYTES_MAX and len(self.schema) <= _KEPT_COLUMNS_MAX
        return is_small and all(map(is_deterministic, self.expressions))

    def __hash__(self) -> int:
        return hash(self._encoded)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Meaning)
            and self._encoded == other._encoded
            and bool(self.schema.equals(other.schema, check_metadata=True))
        )


def _bytes_of(expressions: Sequence[Expression]) -> bytes:
    try:
        return _encoder.encode(expressions)
    except (UnicodeEncodeError, OverflowError):  # its compilation reports what is wrong
        return b""
