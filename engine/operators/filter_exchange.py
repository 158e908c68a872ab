"""Filters of joins between processes: a join tells its own in a side partition, producers elsewhere read them.

    join      told = told_filters(context, channels) ─► told.complete(batches_of(filters)) ─► released with the join
    producer  read_filters(context, places) ─► filters of each place, to be closed; None: one of them has none

A row may be left out only where the filters of all consumers say so; a join that has none tells that. A batch holds
one filter. All that a producer reads has SENT_BYTES_MAX, whatever the number of consumers: each makes smaller ones.

Held by: tests/operators/test_filter_exchange.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from engine.closing import close_all
from engine.errors import CorruptBlockError
from engine.exchange.input_gate import InputGate, NothingYet
from engine.exchange.side_partition import SidePartition
from engine.graph.deployment import InputChannelDescriptor
from engine.graph.runtime_filter import filters_made_by
from engine.operators.runtime_filters import RuntimeFilters, reserved
from engine.operators.task_inputs import is_remote
from engine.records.key_filter_form import batch_of_filter, filter_of_batch

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engine.graph.deployment import ProducerPlace
    from engine.operators.operator import TaskContext
    from engine.records.key_filter import KeyFilter

#: milliseconds between two looks whether the task was cancelled
_CHECK_EVERY_MS: Final = 100
_PLACE: Final = ("join", "key")


def told_filters(context: TaskContext, channels: Iterable[InputChannelDescriptor]) -> SidePartition | None:
    """Return the partition for filters of a join with these producers, registered; None: all are in this process."""
    if not any(is_remote(channel) for channel in channels):
        return None
    told = SidePartition(filters_made_by(context.descriptor.attempt))
    context.services.partition_manager.register(told)
    return told


def batches_of(filters: RuntimeFilters | None) -> list[pa.RecordBatch]:
    """Return filters as batches, which have a copy of their bits."""
    if filters is None:
        return []
    return [_with_place(place, batch_of_filter(known)) for place, known in filters.filters.items()]


def placed_filter(batch: pa.RecordBatch) -> tuple[tuple[int, int], KeyFilter]:
    """Return the place and the filter of a batch of ``batches_of``; what is none raises ValueError or KeyError."""
    place = batch.column(0)[0].as_py(), batch.column(1)[0].as_py()
    return place, filter_of_batch(batch.drop_columns(list(_PLACE)))


def _with_place(place: tuple[int, int], batch: pa.RecordBatch) -> pa.RecordBatch:
    numbers = [pa.array([number], pa.int32()) for number in place]
    return pa.RecordBatch.from_arrays([*numbers, *batch.columns], names=[*_PLACE, *batch.schema.names])


def read_filters(context: TaskContext, places: Sequence[ProducerPlace]) -> list[RuntimeFilters] | None:
    """Wait for the filters of joins in other processes, and return those of each, to be closed; None: one has none.

    Raises:
        CorruptBlockError: what came is no filter.
        TaskCancelledError, PartitionNotFoundError, PartitionReleasedError, PartitionConnectionError: as of a gate.
    """
    services = context.services
    assert services.data_plane is not None, "another process is read"
    channels = [InputChannelDescriptor(each.partition, each.location, 0, each.address) for each in places]
    reads = services.data_plane.reads(services.network_pool, 1, None)
    gate = InputGate(channels, services.partition_manager, services.clock, reads)
    found: list[list[pa.RecordBatch]] = [[] for _ in places]
    try:
        while (element := gate.poll(_CHECK_EVERY_MS)) is not None:
            if isinstance(element, NothingYet):
                context.check_cancelled()
                continue
            assert isinstance(element, pa.RecordBatch), "filters are no rows"
            found[gate.channel_index].append(element)
    finally:
        gate.close()
    parts: list[RuntimeFilters] = []
    for place, batches in zip(places, found, strict=True):
        part = reserved(_filters_of(place, batches))
        if part is None:
            close_all(part.close for part in parts)
            return None
        parts.append(part)
    return parts


def _filters_of(place: ProducerPlace, batches: Sequence[pa.RecordBatch]) -> dict[tuple[int, int], KeyFilter]:
    try:
        return dict(map(placed_filter, batches))
    except (ValueError, KeyError, pa.ArrowInvalid) as error:
        raise CorruptBlockError(f"filters of a join, from {place.address}: {error}") from error
