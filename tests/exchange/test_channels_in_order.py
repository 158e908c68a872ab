"""A gate whose channels are read one after the other."""

from __future__ import annotations

import random
import time
from typing import Any

import pyarrow as pa
import pytest

from engine.exchange.input_gate import NOTHING_YET, InputGate
from engine.graph.deployment import InputChannelDescriptor, PartitionLocation
from tests.exchange.world import BLOCKING, World, descriptor, partition_id

SCHEMA = pa.schema([("k", pa.int64())])


def ordered_gate(world: World, partitions: list[Any]) -> InputGate:
    channels = tuple(InputChannelDescriptor(each.id, PartitionLocation.LOCAL, 0) for each in partitions)
    return InputGate(channels, world.manager, in_order=True)


def write(world: World, partition: Any, keys: list[int], pause_s: float = 0.0) -> None:
    writer = world.writer(partition, SCHEMA)
    for key in keys:
        time.sleep(pause_s)
        writer.emit(pa.record_batch({"k": [key]}, schema=SCHEMA))
    writer.finish()


def keys_of(gate: InputGate) -> list[int]:
    found = []
    while (batch := gate.next()) is not None:
        found += batch["k"].to_pylist()  # type: ignore[union-attr]
    return found


@pytest.mark.parametrize("seed", range(5))
def test_channels_are_read_in_order_whoever_is_first(world: World, seed: int) -> None:
    rng = random.Random(seed)
    partitions = [world.partition(descriptor(1, "FORWARD", identity=partition_id(index))) for index in range(4)]
    sizes = [rng.choice([0, 1, 5]) for _ in partitions]
    gate = ordered_gate(world, partitions)
    for index in rng.sample(range(4), 4):
        keys = [10 * index + number for number in range(sizes[index])]
        world.run(lambda partition=partitions[index], keys=keys: write(world, partition, keys, rng.random() / 200))
    assert keys_of(gate) == [10 * index + number for index in range(4) for number in range(sizes[index])]
    world.join()
    assert gate.is_finished
    gate.close()


def test_a_channel_that_is_early_waits_for_its_turn(world: World) -> None:
    first, second = (world.partition(descriptor(1, "FORWARD", identity=partition_id(index))) for index in range(2))
    gate = ordered_gate(world, [first, second])
    write(world, second, [7, 8])
    assert gate.poll(20) is NOTHING_YET
    write(world, first, [1])
    assert keys_of(gate) == [1, 7, 8]
    gate.close()


def test_blocking_results_are_read_in_order_too(world: World) -> None:
    partitions = [
        world.partition(descriptor(1, "GLOBAL", result_type=BLOCKING, identity=partition_id(index)))
        for index in range(3)
    ]
    for index in (2, 0, 1):
        write(world, partitions[index], [index] * 3)
    gate = ordered_gate(world, partitions)
    pages = []
    while (page := gate.next()) is not None:
        pages.append(gate._turn)
        page.recycle()  # type: ignore[union-attr]
    assert pages == [0, 1, 2]
    gate.close()
    for partition in partitions:
        partition.release()
