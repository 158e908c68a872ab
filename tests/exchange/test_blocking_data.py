"""Data of a BLOCKING subpartition: memory first, then all on disk; every view reads the same bytes."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.errors import IllegalTransitionError, PartitionReleasedError, ProducerFailedError, SpillError
from engine.exchange.blocking_data import BlockingData, BlockingView, DataState
from engine.exchange.buffer_pool import Buffer, unpooled_buffer
from engine.exchange.elements import END_OF_PARTITION
from engine.exchange.partition_file import PartitionFile
from engine.exchange.ready_queue import ReadyQueue


def make(folder: Path, subpartitions: int = 2) -> BlockingData:
    numbers = iter(range(100))
    return BlockingData(
        subpartitions, lambda: PartitionFile(folder / f"{next(numbers)}.shuffle.data", bytes(16), subpartitions)
    )


def view(data: BlockingData, subpartition: int = 0) -> BlockingView:
    return data.open_view(subpartition, ReadyQueue(1), 0)


def read(reader: BlockingView) -> list[bytes]:
    contents = []
    while True:
        element, _ = reader.poll()
        assert element is not None
        if element is END_OF_PARTITION:
            reader.release()
            return contents
        contents.append(element.to_bytes())
        element.recycle()


def test_every_view_gives_the_same_bytes_for_the_same_data(tmp_path: Path) -> None:
    data = make(tmp_path)
    content = [[b"%d-%d" % (subpartition, number) for number in range(30)] for subpartition in range(2)]
    for number in range(30):
        for subpartition in range(2):
            data.add(unpooled_buffer(content[subpartition][number]), subpartition)
    data.finish()
    in_memory = [read(view(data, subpartition)) for subpartition in range(2)]
    half_way = view(data, 1)
    first = [half_way.poll()[0] for _ in range(7)]
    assert data.spill() == 60
    assert data.state is DataState.FILE
    from_file = [read(view(data, subpartition)) for subpartition in range(2)]
    again = [read(view(data, subpartition)) for subpartition in range(2)]
    assert in_memory == from_file == again == content
    assert [buffer.to_bytes() for buffer in first] + read(half_way) == content[1]
    for buffer in first:
        buffer.recycle()
    data.release()
    assert list(tmp_path.iterdir()) == []


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 2), max_size=40), st.integers(0, 40))
def test_order_is_kept_and_memory_is_empty_after_pressure_at_any_moment(
    tmp_path: Path, targets: list[int], spill_at: int
) -> None:
    data = make(tmp_path, 3)
    expected: list[list[bytes]] = [[], [], []]
    for number, target in enumerate(targets):
        if number == spill_at:
            data.spill()
        buffer = unpooled_buffer(b"%d" % number)
        expected[target].append(buffer.to_bytes())
        data.add(buffer, target)
        if number >= spill_at:
            assert data.held_count == 0  # never two sources
            assert buffer.is_recycled
    data.finish()
    assert [read(view(data, subpartition)) for subpartition in range(3)] == expected
    data.release()


def test_nothing_is_readable_before_finish_and_the_view_is_notified_then(tmp_path: Path) -> None:
    data = make(tmp_path)
    ready = ReadyQueue(1)
    reader = data.open_view(0, ready, 0)
    data.add(unpooled_buffer(b"x"), 0)
    assert ready.pop_channel(0) == 0
    assert reader.poll() == (None, False)
    data.finish()
    assert ready.pop_channel(0) == 0
    assert read(reader) == [b"x"]
    data.release()


def test_while_spilling_a_view_returns_nothing_and_data_afterwards(tmp_path: Path) -> None:
    entered, leave = threading.Event(), threading.Event()

    def slow_file() -> PartitionFile:
        entered.set()
        assert leave.wait(60)
        return PartitionFile(tmp_path / "slow.shuffle.data", bytes(16), 1)

    data = BlockingData(1, slow_file)
    data.add(unpooled_buffer(b"x"), 0)
    data.finish()
    ready = ReadyQueue(1)
    reader = data.open_view(0, ready, 0)
    assert ready.pop_channel(0) == 0
    thread = threading.Thread(target=data.spill)
    thread.start()
    assert entered.wait(60)
    assert data.state is DataState.SPILLING
    assert reader.poll() == (None, False)
    leave.set()
    thread.join()
    assert ready.pop_channel(0) == 0
    assert read(reader) == [b"x"]
    assert (tmp_path / "slow.shuffle.index").exists()
    data.release()


def test_a_spill_that_fails_keeps_everything_in_memory(tmp_path: Path) -> None:
    def no_file() -> PartitionFile:
        raise SpillError("no disk")

    data = BlockingData(1, no_file)
    data.add(unpooled_buffer(b"x"), 0)
    with pytest.raises(SpillError):
        data.spill()
    assert data.state is DataState.MEMORY
    data.finish()
    assert read(view(data)) == [b"x"]
    data.release()


def test_adding_after_finish_or_release_raises_and_recycles(tmp_path: Path) -> None:
    data = make(tmp_path)
    data.finish()
    late: list[Buffer] = [unpooled_buffer(b"x"), unpooled_buffer(b"y")]
    with pytest.raises(IllegalTransitionError):
        data.add(late[0], 0)
    data.release()
    with pytest.raises(PartitionReleasedError):
        data.add(late[1], 0)
    assert all(buffer.is_recycled for buffer in late)
    with pytest.raises(PartitionReleasedError):
        view(data)


def test_a_view_of_released_or_failed_data_raises(tmp_path: Path) -> None:
    data = make(tmp_path)
    data.add(unpooled_buffer(b"x"), 0)
    data.spill()
    reader = view(data)
    data.fail(ValueError("broken"))
    with pytest.raises(ProducerFailedError, match="broken"):
        reader.poll()
    other = make(tmp_path)
    reader = view(other)
    other.release()
    with pytest.raises(PartitionReleasedError):
        reader.poll()
    data.release()


def test_memory_of_a_file_view_is_gone_after_release(tmp_path: Path) -> None:
    data = make(tmp_path)
    for _ in range(10):
        data.add(unpooled_buffer(bytes(1000)), 0)
    data.spill()
    data.finish()
    reader = view(data)
    first, more = reader.poll()
    assert more
    first.recycle()
    reader.release()
    with pytest.raises(PartitionReleasedError):
        data.release()
        reader.poll()


@pytest.mark.parametrize("end", [BlockingData.release, lambda data: data.fail(OSError("the producer's"))])
def test_readers_hear_of_the_end_though_the_file_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: Any
) -> None:
    def refuse(_file: PartitionFile) -> None:
        raise OSError("it cannot be removed")

    data = make(tmp_path)
    data.add(unpooled_buffer(b"row"), 0)
    data.spill()
    ready = ReadyQueue(1)
    data.open_view(0, ready, 0)
    while ready.pop_channel(0) == 0:
        pass
    monkeypatch.setattr(PartitionFile, "delete", refuse)
    with pytest.raises(OSError, match="it cannot be removed"):
        end(data)
    assert ready.pop_channel(0) == 0
