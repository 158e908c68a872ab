"""selector_for: the channel selector that a PartitionerSpec names.

Held by: tests/exchange/test_channel_selector.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.errors import PlanError
from engine.exchange.channel_selector import (
    BroadcastSelector,
    ChannelSelector,
    ForwardSelector,
    GlobalSelector,
    RebalanceSelector,
    RescaleSelector,
    ShuffleSelector,
)
from engine.exchange.heavy_hashes import heavy_hashes
from engine.exchange.key_selector import CustomSelector, HashSelector, KeyGroupSelector
from engine.graph.ship_strategy import PartitionerSpec

if TYPE_CHECKING:
    import pyarrow as pa

_WITHOUT_STATE: Final[dict[str, type[ChannelSelector]]] = {
    "GLOBAL": GlobalSelector,
    "FORWARD": ForwardSelector,
    "RESCALE": RescaleSelector,
    "BROADCAST": BroadcastSelector,
}
_WITH_SEED: Final[dict[str, type[ShuffleSelector] | type[RebalanceSelector]]] = {
    "SHUFFLE": ShuffleSelector,
    "REBALANCE": RebalanceSelector,
}


def selector_for(
    spec: PartitionerSpec,
    schema: pa.Schema,
    channel_count: int,
    subtask_index: int = 0,
    seed: int | None = None,
) -> ChannelSelector:
    """Return the selector of a partitioner.

    Args:
        spec: kind and keys.
        schema: of the rows that travel.
        channel_count: channels of this subtask's output.
        subtask_index: of the producer; with ``seed``, producers still begin at different channels.
        seed: makes SHUFFLE and REBALANCE repeatable; random when None.

    Raises:
        PlanError: an unknown kind, or keys missing.
        SchemaError: a key column that does not exist.
    """
    kind = spec.kind
    if kind in _WITHOUT_STATE:
        return _WITHOUT_STATE[kind](channel_count)
    if kind in _WITH_SEED:
        return _WITH_SEED[kind](channel_count, None if seed is None else seed + subtask_index)
    if kind == "HASH":
        heavy = heavy_hashes(schema, spec.keys, spec.heavy)
        return HashSelector(channel_count, schema, spec.keys, spec.spread_nulls, heavy.spread, heavy.replicated)
    if kind == "KEYGROUP":
        return KeyGroupSelector(channel_count, schema, spec.keys, spec.max_parallelism)
    if kind == "CUSTOM":
        if len(spec.keys) != 1:
            raise PlanError("custom partitioning needs the column that says where rows go")
        return CustomSelector(channel_count, spec.keys[0])
    raise PlanError(f"unknown partitioner {kind!r}")
