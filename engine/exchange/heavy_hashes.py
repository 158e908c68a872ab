"""Hashes of the heavy keys that a plan names by text.

    heavy_hashes(schema, keys, heavy) -> HeavyHashes(spread, replicated)      exchange and join ask for the same

Arrow casts each text to the type of the key column, here the type to which both sides of the join were widened. A text
that cannot be cast is no key of this column and is left out; the other side, of the same type, leaves it out as well.
Two texts of one value ("1" and "1.0" of doubles) that have both roles cancel each other, on both sides.

Held by: tests/exchange/test_heavy_keys.py
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from engine.exchange.key_selector import HashSelector
from engine.graph.ship_strategy import HeavyKeys, KeyText
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import array_of


class HeavyHashes(NamedTuple):
    """Hashes by which an exchange sends rows with the keys of a HeavyKeys."""

    spread: tuple[int, ...] = ()
    replicated: tuple[int, ...] = ()


def heavy_hashes(schema: pa.Schema, keys: Sequence[str], heavy: HeavyKeys | None) -> HeavyHashes:
    """Return the hashes of keys given by text.

    Args:
        schema: of the rows.
        keys: names of the key columns.
        heavy: None for none.
    """
    if heavy is None:
        return HeavyHashes()
    spread = _hashes(schema, keys, heavy.spread)
    replicated = _hashes(schema, keys, heavy.replicated)
    return HeavyHashes(_without(spread, replicated), _without(replicated, spread))


def _without(hashes: Sequence[int], others: Sequence[int]) -> tuple[int, ...]:
    return tuple(each for each in hashes if each not in others)


def _hashes(schema: pa.Schema, keys: Sequence[str], texts: Sequence[KeyText]) -> list[int]:
    """Return the hash of each text that is a key, each hash once."""
    fields = [schema.field(key) for key in keys]
    key_schema = pa.schema(fields)
    selector = HashSelector(1, key_schema, keys)
    hashes: list[int] = []
    for text in texts:
        try:
            texts_of_keys = (array_of([one], pa.string()) for one in text)
            values = [pc.cast(one, field.type) for one, field in zip(texts_of_keys, fields, strict=True)]
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            continue
        hashes += selector.hashes_of(pa.RecordBatch.from_arrays(values, schema=key_schema))
    return list(dict.fromkeys(hashes))
