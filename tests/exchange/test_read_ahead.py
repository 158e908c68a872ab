"""A disk that is slow or stands still costs the channel that reads it, and no other one of the connection."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.errors import CorruptBlockError, PartitionReleasedError, ResourceError
from engine.exchange.buffer_pool import unpooled_buffer
from engine.exchange.elements import END_OF_PARTITION
from engine.exchange.input_gate import NOTHING_YET
from engine.exchange.page_reader import gate_batches
from engine.exchange.partition_file import PartitionFile
from engine.exchange.read_ahead import DISK_READERS_MAX, DiskReaders, ReadAhead
from engine.exchange.ready_queue import ReadyQueue
from engine.exchange.sorted_partition import RangeView
from tests.exchange.world import BLOCKING, descriptor, partition_id
from tests.rpc.served import until
from tests.transport.remote_world import RemoteWorld
from tests.transport.test_remote_channels import BATCHES, SCHEMA, batch_of, produce, rows_of

WAIT_S = 60


@pytest.fixture
def world(tmp_path: Path) -> Iterator[RemoteWorld]:
    world = RemoteWorld(tmp_path, with_unix=False)
    yield world
    world.close()


@pytest.fixture
def disk() -> Iterator[DiskReaders]:
    threads = threading.active_count()
    disk = DiskReaders()
    yield disk
    disk.close()
    assert threading.active_count() <= threads


class Disk:
    """Blocks of one file are read when they are let go; those of all others at once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.slow_file: PartitionFile | None = None
        self.let_go = threading.Semaphore(0)
        self.reads = 0
        #: whether all blocks would have to be waited for
        self.is_cold = False
        read, read_at_once = PartitionFile.read, PartitionFile.read_at_once

        def slow_read(file: PartitionFile, *arguments: Any) -> Any:
            if file is self.slow_file:
                assert self.let_go.acquire(timeout=WAIT_S)
                self.reads += 1
            return read(file, *arguments)

        def at_once(file: PartitionFile, *arguments: Any) -> Any:
            return None if file is self.slow_file or self.is_cold else read_at_once(file, *arguments)

        monkeypatch.setattr(PartitionFile, "read", slow_read)
        monkeypatch.setattr(PartitionFile, "read_at_once", at_once)


def stored(world: RemoteWorld, count: int, batches: Any) -> list[Any]:
    """Partitions that lie in files."""
    partitions = []
    for number in range(count):
        described = descriptor(1, "GLOBAL", result_type=BLOCKING, identity=partition_id(number))
        partition = world.far.partition(described)
        produce(world.far, partition, batches)
        partitions.append(partition)
    world.far.join(WAIT_S)
    for partition in partitions:
        partition.data.spill()
        assert partition.file_bytes > 0
    return partitions


def count_pages(gate: Any) -> int:
    count = 0
    while (page := gate.next()) is not None:
        page.recycle()
        count += 1
    return count


@pytest.mark.parametrize("is_cold", [False, True])
def test_while_one_file_stands_still_the_neighbours_get_all_they_ask_for(
    world: RemoteWorld, monkeypatch: pytest.MonkeyPatch, is_cold: bool
) -> None:
    disk = Disk(monkeypatch)
    disk.is_cold = is_cold
    slow, *others = stored(world, 3, [batch_of(1000 * number, 1000) for number in range(10)])
    disk.slow_file = slow.data._file
    gates = [world.gate([partition.id], 0) for partition in (slow, *others)]
    assert gates[0].poll(0) is NOTHING_YET
    until(lambda: world.far_plane.server._servers, "the connection")
    got = [count_pages(gate) for gate in gates[1:]]
    assert got == [partition.total_buffers for partition in others], "every page, and of the slow one none"
    assert gates[0].poll(0) is NOTHING_YET
    assert disk.reads == 0
    for _ in range(len(slow.data._file.entries[0])):
        disk.let_go.release()
    assert rows_of(gate_batches(gates[0], SCHEMA)) == rows_of([batch_of(1000 * number, 1000) for number in range(10)])
    for gate in gates:
        gate.close()


def test_beside_a_slow_file_a_neighbour_keeps_its_rate_in_frames(
    world: RemoteWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One block of the slow file for every ten pages of the other one, which waits for nothing."""
    disk = Disk(monkeypatch)
    slow, fast = stored(world, 2, [batch_of(10_000 * number, 5000, 400) for number in range(4)])
    blocks = len(slow.data._file.entries[0])
    assert blocks > 5
    disk.slow_file = slow.data._file
    slow_gate, fast_gate = (world.gate([partition.id], 0) for partition in (slow, fast))
    counts = {"slow": 0, "fast": 0}

    def read_slow() -> None:
        counts["slow"] = count_pages(slow_gate)
        slow_gate.close()

    world.near.run(read_slow)
    given = 0
    while (page := fast_gate.next()) is not None:
        page.recycle()
        counts["fast"] += 1
        if counts["fast"] % 10 == 0 and given < 5:
            disk.let_go.release()
            given += 1
    fast_gate.close()
    assert counts["fast"] == fast.total_buffers
    assert disk.reads <= 5
    assert not counts["slow"], "the slow one is not through"
    for _ in range(blocks - given):
        disk.let_go.release()
    world.join()
    assert counts["slow"] == slow.total_buffers


def test_a_reader_may_leave_while_its_file_stands_still(world: RemoteWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(monkeypatch)
    slow, other = stored(world, 2, BATCHES)
    disk.slow_file = slow.data._file
    gate = world.gate([slow.id], 0)
    assert gate.poll(0) is NOTHING_YET
    gate.close()
    gate = world.gate([other.id], 0)
    assert rows_of(gate_batches(gate, SCHEMA)) == rows_of(BATCHES)
    gate.close()
    disk.let_go.release()


def test_damage_that_another_process_finds_names_the_partition_to_its_reader(
    world: RemoteWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    (stored_one,) = stored(world, 1, BATCHES)
    content = bytearray(stored_one.data._file.path.read_bytes())
    content[len(content) // 2] ^= 4
    stored_one.data._file.path.write_bytes(content)
    for is_cold in (False, True):
        Disk(monkeypatch).is_cold = is_cold
        gate = world.gate([stored_one.id], 0)
        with pytest.raises(ResourceError, match=r"CorruptBlockError: .* at offset") as caught:
            count_pages(gate)
        assert caught.value.partition == stored_one.id
        gate.close()


class Pages:
    """A range of three pages; each is read when it is let go."""

    def __init__(self) -> None:
        self.let_go = threading.Semaphore(0)
        self.left = 3
        self.closed = 0

    def fill(self, target: Any) -> int:
        assert self.let_go.acquire(timeout=WAIT_S)
        if not self.left:
            return 0
        assert not self.closed
        self.left -= 1
        target[:4] = b"rows"
        return 4

    def close(self) -> None:
        self.closed += 1


def test_a_range_is_opened_merged_and_closed_elsewhere(disk: DiskReaders) -> None:
    ready, pages, opened = ReadyQueue(1), Pages(), threading.Event()

    def open_pages() -> Pages:
        assert opened.wait(WAIT_S)
        return pages

    view = RangeView(open_pages, 512, disk, lambda: ready.push_channel(0))
    assert view.poll() == (None, False)
    opened.set()
    for _ in range(5):
        pages.let_go.release()
    got = []
    while True:
        element, _ = view.poll()
        if element is None:
            assert ready.pop_channel(WAIT_S * 1000) == 0
        elif element is END_OF_PARTITION:
            break
        else:
            got.append(element.to_bytes())
    assert got == [b"rows"] * 3
    view.release()
    view.release()
    assert pages.closed == 1


def test_a_range_that_is_let_go_while_it_is_merged_is_closed_afterwards(disk: DiskReaders) -> None:
    pages = Pages()
    view = RangeView(lambda: pages, 512, disk, lambda: None)
    assert view.poll() == (None, False)
    view.release()
    assert pages.closed == 0
    with pytest.raises(PartitionReleasedError):
        view.poll()
    for _ in range(4):
        pages.let_go.release()
    until(lambda: pages.closed == 1, "the end of the merge")


@pytest.mark.parametrize("is_elsewhere", [True, False])
def test_what_came_before_an_error_comes_first(disk: DiskReaders, is_elsewhere: bool) -> None:
    loads = iter([[unpooled_buffer(b"one"), unpooled_buffer(b"two")]])
    ready = ReadyQueue(1)

    def load() -> Any:
        for loaded in loads:
            return loaded
        raise CorruptBlockError("a block")

    ahead = ReadAhead(load, disk if is_elsewhere else None, lambda: ready.push_channel(0), lambda: None)
    got = []
    with pytest.raises(CorruptBlockError, match="a block"):
        while True:
            element, is_coming = ahead.take()
            assert is_coming
            if element is None:
                assert ready.pop_channel(WAIT_S * 1000) == 0
            else:
                got.append(element.to_bytes())
                element.recycle()
    assert got == [b"one", b"two"]
    ahead.release()


def test_so_many_files_may_stand_still(disk: DiskReaders) -> None:
    let_go = threading.Event()
    started = threading.Semaphore(0)

    def stand_still() -> None:
        started.release()
        assert let_go.wait(WAIT_S)

    for _ in range(DISK_READERS_MAX - 1):
        disk.run(stand_still)
    for _ in range(DISK_READERS_MAX - 1):
        assert started.acquire(timeout=WAIT_S)
    done = threading.Event()
    disk.run(done.set)
    assert done.wait(WAIT_S)
    let_go.set()


def test_nothing_is_read_after_the_end(disk: DiskReaders) -> None:
    disk.close()
    with pytest.raises(PartitionReleasedError, match="is closing"):
        disk.run(lambda: None)
