"""Partitions are found by attempt and data set, and leave with their attempt."""

from __future__ import annotations

import pytest

from engine.errors import IllegalTransitionError, PartitionNotFoundError
from engine.exchange.partition_life import PartitionState
from engine.exchange.ready_queue import ReadyQueue
from tests.exchange.world import World, descriptor, partition_id


def test_partitions_are_found_by_attempt_and_data_set(world: World) -> None:
    first = world.partition(descriptor(identity=partition_id(0, output=0)))
    second = world.partition(descriptor(identity=partition_id(0, output=1)))
    other = world.partition(descriptor(identity=partition_id(1)))
    assert world.manager.attempts == (first.id.producer, other.id.producer)
    assert world.manager.find(second.id) is second
    assert set(world.manager.partition_ids) == {first.id, second.id, other.id}


def test_an_attempt_leaves_with_all_its_partitions(world: World) -> None:
    first = world.partition(descriptor(identity=partition_id(0, output=0)))
    second = world.partition(descriptor(identity=partition_id(0, output=1)))
    other = world.partition(descriptor(identity=partition_id(1)))
    world.manager.release_partitions_produced_by(first.id.producer)
    assert first.id.producer not in world.manager.attempts
    assert (first.state, second.state) == (PartitionState.RELEASED, PartitionState.RELEASED)
    assert other.state is PartitionState.PRODUCING
    world.manager.release_partitions_produced_by(first.id.producer)


def test_an_old_attempt_s_partition_is_refused(world: World) -> None:
    world.partition(descriptor(identity=partition_id(0, attempt=1)))
    with pytest.raises(PartitionNotFoundError, match="v0-0-0"):
        world.manager.create_view(partition_id(0, attempt=0), 0, ReadyQueue(1), 0)
    world.manager.create_view(partition_id(0, attempt=1), 0, ReadyQueue(1), 0)
    assert PartitionNotFoundError.retryable


def test_registering_twice_is_refused(world: World) -> None:
    partition = world.partition(descriptor())
    with pytest.raises(IllegalTransitionError, match="registered already"):
        world.manager.register(partition)


def test_the_row_of_an_attempt_is_gone_with_its_last_partition(world: World) -> None:
    partition = world.partition(descriptor())
    world.manager.release(partition.id)
    world.manager.release(partition.id)
    assert world.manager.attempts == ()


def test_those_who_wait_are_told_at_registration_unless_they_gave_up(world: World) -> None:
    told: list[str] = []
    give_up = lambda: told.append("no")  # noqa: E731 - the same object is forgotten again
    world.manager.notify_registered(partition_id(), lambda: told.append("yes"))
    world.manager.notify_registered(partition_id(), give_up)
    world.manager.forget(partition_id(), give_up)
    assert told == []
    world.partition(descriptor())
    assert told == ["yes"]
    world.manager.notify_registered(partition_id(), lambda: told.append("at once"))
    assert told == ["yes", "at once"]
