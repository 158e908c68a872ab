"""SharedParts: parts that stand more than once in the expressions of a projection, each computed once for a batch.

    shared = SharedParts(expressions)
    key = shared.key_of(part)           None: the part stands once
    shared.known(key), shared.kept(key, operand)
    with shared.values_of(batch): ...   in this thread, values of that batch are kept until the end

    [extract(s) == "a", length(extract(s))]      extract(s) is asked for twice and computed once

Values are kept by the first use, and for the batch as a whole: a branch of ``when`` that sees some of its rows
computes its own, so that nothing fails in a row which is not selected. What is random is not shared. Native steps know
by themselves what was computed (``program_builder``): this is for what Arrow's functions compute.

Held by: tests/expressions/test_shared_parts.py
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec
import pyarrow as pa

from engine.expressions.binding import Datum, Operand
from engine.graph.expression import Call, Case, Cast, Expression, children_of
from engine.graph.function_table import is_deterministic

#: limit of the parts of all expressions together that are compared
_PARTS_MAX: Final = 1000
_encoder: Final = msgspec.msgpack.Encoder()


class _Kept(threading.local):
    """Values of one batch in one thread."""

    batch: pa.RecordBatch | None = None
    values: dict[bytes, Datum]


class SharedParts:
    """Immutable but for the operands that it is given while a projection is compiled."""

    def __init__(self, expressions: Sequence[Expression]) -> None:
        self._kept = _Kept()
        self._operands: dict[bytes, Operand] = {}
        parts = _parts_of(expressions)
        counts = Counter(_encoder.encode(part) for part in parts) if len(parts) <= _PARTS_MAX else Counter()
        self._repeated = {key for key, count in counts.items() if count > 1}

    def key_of(self, part: Expression) -> bytes | None:
        """Return the key under which a part is cached, None where it is computed at each place."""
        if not self._repeated or not isinstance(part, Call | Cast | Case):
            return None
        key = _encoder.encode(part)
        return key if key in self._repeated and is_deterministic(part) else None

    @property
    def is_needed(self) -> bool:
        """Whether a part stands in several places, so that its values are kept for a batch."""
        return bool(self._operands)

    def known(self, key: bytes) -> Operand | None:
        """Return the operand of a part, None before it was compiled."""
        return self._operands.get(key)

    def kept(self, key: bytes, operand: Operand) -> Operand:
        """Return the operand that computes once for a batch, for this part wherever it stands."""
        if operand.constant is None:
            operand = msgspec.structs.replace(operand, evaluate=self._once(key, operand.evaluate))
        self._operands[key] = operand
        return operand

    def _once(self, key: bytes, evaluate: Callable[[pa.RecordBatch], Datum]) -> Callable[[pa.RecordBatch], Datum]:
        kept = self._kept

        def evaluate_once(batch: pa.RecordBatch) -> Datum:
            if kept.batch is not batch:
                return evaluate(batch)
            if key not in kept.values:
                kept.values[key] = evaluate(batch)
            return kept.values[key]

        return evaluate_once

    @contextlib.contextmanager
    def values_of(self, batch: pa.RecordBatch) -> Iterator[None]:
        """Keep values of a batch meanwhile."""
        self._kept.batch, self._kept.values = batch, {}
        try:
            yield
        finally:
            self._kept.batch, self._kept.values = None, {}


def _parts_of(expressions: Sequence[Expression]) -> list[Expression]:
    parts: list[Expression] = []
    level = list(expressions)
    while level and len(parts) <= _PARTS_MAX:
        parts += [part for part in level if isinstance(part, Call | Cast | Case)]
        level = [child for part in level for child in children_of(part)]
    return parts
