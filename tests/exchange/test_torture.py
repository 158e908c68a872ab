"""Many producers and consumers at once, some of them cancelled or failing at random moments."""

from __future__ import annotations

import random
import time
from typing import Any

import pyarrow as pa
import pytest

from engine.errors import IllegalTransitionError, PartitionReleasedError, ProducerFailedError, TaskCancelledError
from engine.exchange.page_reader import gate_batches
from tests.exchange.world import BLOCKING, PIPELINED, World, descriptor, partition_id
from tests.property.matrix import IS_TORTURE

SCHEMA = pa.schema([("k", pa.int64()), ("s", pa.string())])
PRODUCERS = CONSUMERS = 3
BATCHES = 12


def batch_of(chance: random.Random, start: int) -> pa.RecordBatch:
    texts = ["x" * (9000 if chance.random() < 0.01 else chance.randrange(60)) for _ in range(200)]
    return pa.record_batch({"k": list(range(start, start + 200)), "s": texts}, schema=SCHEMA)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(400 if IS_TORTURE else 16))
def test_everything_arrives_or_everybody_ends_with_a_reason(world: World, seed: int) -> None:
    chance = random.Random(seed)
    result_type = chance.choice([PIPELINED, BLOCKING])
    kind = chance.choice(["HASH", "REBALANCE", "BROADCAST"])
    ending = chance.choice(["well", "cancel", "fail"])
    bounds = chance.choice([None, (1, 1), (CONSUMERS + 1, 8)])
    partitions: list[Any] = []
    identities = [partition_id(subtask) for subtask in range(PRODUCERS)]
    gates = [world.gate(identities, index) for index in range(CONSUMERS)]
    received: list[list[int]] = [[] for _ in range(CONSUMERS)]

    def produce(subtask: int, batches: list[pa.RecordBatch]) -> None:
        described = descriptor(CONSUMERS, kind, ["k"], result_type, identities[subtask])
        partition = world.partition(described, bounds)
        partitions.append(partition)
        writer = world.writer(partition, SCHEMA, timeout_ms=chance.choice([-1, 0, 1]))
        try:
            for batch in batches:
                writer.emit(batch)
            writer.finish()
        finally:
            writer.close()

    def consume(index: int) -> None:
        try:
            for batch in gate_batches(gates[index], SCHEMA):
                received[index].extend(batch["k"].to_pylist())
        finally:
            gates[index].close()

    for index in range(CONSUMERS):
        world.run(lambda index=index: consume(index))
    for subtask in range(PRODUCERS):
        batches = [batch_of(chance, (subtask * BATCHES + number) * 200) for number in range(BATCHES)]
        world.run(lambda subtask=subtask, batches=batches: produce(subtask, batches))
    if ending != "well":
        time.sleep(chance.random() * 0.02)
        end_early(world, chance, ending, partitions, gates)
    world.join()
    if ending == "well":
        assert world.failures == []
        copies = CONSUMERS if kind == "BROADCAST" else 1
        everything = sorted(key for channel in received for key in channel)
        assert everything == sorted(list(range(PRODUCERS * BATCHES * 200)) * copies)
    allowed: tuple[type[Exception], ...] = (TaskCancelledError, PartitionReleasedError, ProducerFailedError)
    if ending == "fail":  # the partition that was failed under its producer says so to it
        allowed += (IllegalTransitionError,)
    assert all(isinstance(failure, allowed) for failure in world.failures), world.failures


def end_early(world: World, chance: random.Random, ending: str, partitions: list[Any], gates: Any) -> None:
    while len(partitions) < PRODUCERS:
        time.sleep(0.001)
    if ending == "cancel":
        for gate in chance.sample(gates, len(gates)):
            chance.choice([gate.cancel, gate.close])()
        for partition in partitions:
            partition.cancel()
        return
    partitions[0].fail(ValueError("injected"))
    for partition in partitions[1:]:
        partition.cancel()
    for gate in gates:
        gate.cancel()
