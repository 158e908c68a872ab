"""Filters of joins in other processes, over real sockets: what is told is read, and what cannot be is said."""

import threading
from types import SimpleNamespace

import pyarrow as pa
import pytest

from engine.clock import SystemClock
from engine.errors import CorruptBlockError, PartitionReleasedError, TaskCancelledError
from engine.graph.deployment import InputChannelDescriptor, PartitionLocation, ProducerPlace
from engine.graph.runtime_filter import filters_made_by
from engine.memory.budget import Budget, Kind
from engine.operators import runtime_filters
from engine.operators.filter_exchange import batches_of, read_filters, told_filters
from engine.operators.runtime_filters import RuntimeFilters
from engine.records.key_filter import key_filter
from tests.exchange.world import partition_id
from tests.transport.remote_world import RemoteWorld

NUMBERS = key_filter([pa.array(range(0, 5_000_000, 5))], 1 << 20)
WORDS = key_filter([pa.array(["a", "b"])], 1 << 20)
ATTEMPTS = [partition_id(subtask).producer for subtask in range(2)]


@pytest.fixture
def world(tmp_path, monkeypatch):
    budget = Budget()
    monkeypatch.setattr(runtime_filters, "process_budget", budget)
    world = RemoteWorld(tmp_path)
    yield world
    for attempt in ATTEMPTS:
        world.far.manager.release(filters_made_by(attempt))
    assert (world.far.manager.partition_ids, budget.held(Kind.ARROW)) == ((), 0)
    world.close()


def _context(world, attempt=None, check=lambda: None):
    near = attempt is None
    services = SimpleNamespace(
        data_plane=world.near_plane if near else world.far_plane,
        network_pool=world.near.network if near else world.far.network,
        partition_manager=world.near.manager if near else world.far.manager,
        clock=SystemClock(),
    )
    return SimpleNamespace(services=services, descriptor=SimpleNamespace(attempt=attempt), check_cancelled=check)


def _places(world, count=2):
    address = world.far_plane.address
    return [ProducerPlace(filters_made_by(each), PartitionLocation.REMOTE, address) for each in ATTEMPTS[:count]]


def _told(world, attempt):
    channel = InputChannelDescriptor(partition_id(), PartitionLocation.REMOTE, 0, "unix:/elsewhere")
    return told_filters(_context(world, attempt), [channel])


def test_a_join_whose_producers_are_all_here_tells_others_nothing(world):
    here = InputChannelDescriptor(partition_id(), PartitionLocation.LOCAL, 0)
    assert told_filters(_context(world, ATTEMPTS[0]), [here]) is None


def test_filters_of_all_joins_are_read_however_late_they_come(world):
    first = _told(world, ATTEMPTS[0])
    first.complete(batches_of(RuntimeFilters({(3, 0): NUMBERS, (3, 1): WORDS})))
    timer = threading.Timer(
        0.3, lambda: _told(world, ATTEMPTS[1]).complete(batches_of(RuntimeFilters({(3, 1): WORDS})))
    )
    timer.start()
    parts = read_filters(_context(world), _places(world))
    timer.join()
    assert [set(part.filters) for part in parts] == [{(3, 0), (3, 1)}, {(3, 1)}]
    asked = pa.array([0, 1, 4_999_995, 5_000_000])
    assert parts[0].filters[3, 0].mask(asked).array().to_pylist() == [True, False, True, False]
    together = runtime_filters.together(parts)
    assert set(together.filters) == {(3, 1)}
    for each in (*parts, together):
        each.close()


def test_one_join_without_filters_leaves_none(world):
    _told(world, ATTEMPTS[0]).complete(batches_of(RuntimeFilters({(3, 0): NUMBERS})))
    _told(world, ATTEMPTS[1]).complete(batches_of(None))
    assert read_filters(_context(world), _places(world)) is None


def test_filters_for_which_there_is_no_memory_are_none(world, monkeypatch):
    _told(world, ATTEMPTS[0]).complete(batches_of(RuntimeFilters({(3, 0): NUMBERS})))
    runtime_filters.process_budget.set_limit(Kind.ARROW, 1000)
    monkeypatch.setattr(RuntimeFilters, "reserve", lambda _self: False)
    assert read_filters(_context(world), _places(world, 1)) is None


def test_a_task_that_is_cancelled_waits_no_longer(world):
    _told(world, ATTEMPTS[0])
    looks = iter([None, None])

    def check():
        if next(looks, "cancelled") == "cancelled":
            raise TaskCancelledError("cancelled")

    with pytest.raises(TaskCancelledError):
        read_filters(_context(world, check=check), _places(world, 1))


def test_a_join_that_ends_without_a_word_is_an_error(world):
    told = _told(world, ATTEMPTS[0])
    threading.Timer(0.2, told.release).start()
    with pytest.raises(PartitionReleasedError):
        read_filters(_context(world), _places(world, 1))


def test_what_is_no_filter_is_refused_with_its_sender(world):
    _told(world, ATTEMPTS[0]).complete([pa.RecordBatch.from_pydict({"join": [1], "key": [0], "bits": [b"x"]})])
    with pytest.raises(CorruptBlockError, match=r"filters of a join, from unix:.*has other columns"):
        read_filters(_context(world), _places(world, 1))
